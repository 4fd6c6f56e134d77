"""`ciwrap accept`: make goldens of the outputs, or replace them, and say what that changes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.options import (
    check_option,
    config_options,
    json_option,
    resource_options,
    verbose_option,
)
from ciwrap.errors import ConfigMissingError, UsageError
from ciwrap.golden.places import check_matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.cli.proposals import Workplace
    from ciwrap.cli.session import Session


@click.command(name="accept", short_help="Make goldens of the outputs, or replace them.")
@click.argument("names", nargs=-1, metavar="[CHECK|PATTERN]...")
@check_option
@click.option("--pending", "is_pending", is_flag=True, help="Accept goldens that wait for review.")
@click.option(
    "--from",
    "source",
    metavar="DIR|ZIP",
    help="Accept the pending goldens of a CI run: its artifact, unpacked or not.",
)
@click.option("--variant", metavar="NAME", help="Accept pending goldens for one kind of machine.")
@click.option("--commit", metavar="SHA", help="The commit that the artifact was made from.")
@click.option("--allow-wider", is_flag=True, help="Let an artifact widen error bounds.")
@click.option("-m", "--reason", metavar="TEXT", help="Why; needed to replace a golden.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@click.option(
    "--force", is_flag=True, help="Replace goldens, too, that everything matches within its bound."
)
@config_options
@json_option
@verbose_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    names: tuple[str, ...],
    check_names: tuple[str, ...],
    is_pending: bool,
    source: str | None,
    variant: str | None,
    commit: str | None,
    allow_wider: bool,
    reason: str | None,
    dry_run: bool,
    force: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Make the outputs that lie there now the goldens of their checks, or accept goldens that wait.

    CHECK is a check of the configuration: its outputs are captured. Any other name, and every name
    with --pending or --from, is a PATTERN for goldens that a test run or `ciwrap check --pending`
    left for review: the name of a check, test, file or folder, or with the wild cards * and ?.

    A first golden needs no reason; replacing one does, and it goes into the history that the
    manifest keeps. A golden that everything matches within its bounds is kept, so that it does not
    creep along with the noise (--force replaces it). Either all that is asked for is captured, or
    nothing is written.
    """
    from ciwrap.cli.acceptance import DRY_RUN, render_acceptance
    from ciwrap.cli.progress import progress_bar
    from ciwrap.cli.project import load_project
    from ciwrap.cli.proposals import demand_reason, find_workplace
    from ciwrap.compare.accept import prepare, write
    from ciwrap.review.accept_document import accept_document

    if reason is not None and not reason.strip():
        raise UsageError("--reason is empty", remedy="say why the new numbers are right")
    if source is None and (commit is not None or allow_wider):
        raise UsageError("--commit and --allow-wider belong to --from")
    if is_pending or source is not None or _means_pending(config_path, names, check_names):
        if check_names or force:
            raise UsageError("--check and --force are for outputs, not for goldens that wait")
        return _accept_waiting(
            session,
            find_workplace(config_path, golden_dir),
            names,
            source,
            commit,
            reason=reason,
            dry_run=dry_run,
            variant=variant,
            allow_wider=allow_wider,
        )
    if variant is not None:
        raise UsageError("--variant is for goldens that wait")
    project = load_project(config_path, golden_dir, (*names, *check_names))
    lock = contextlib.nullcontext() if dry_run else project.store.locked()
    with lock:
        with progress_bar() as progress:
            candidates = [
                prepare(
                    check,
                    project.store,
                    force=force,
                    resources=session.resources,
                    progress=progress,
                )
                for check in project.checks
            ]
        if not dry_run:
            demand_reason(candidates, reason)
            for candidate in candidates:
                if candidate.needs_writing:
                    write(candidate, project.store, reason)
    session.emit_record(accept_document(candidates, reason=reason, dry_run=dry_run))
    render_acceptance(candidates, session.console, dry_run=dry_run, verbose=session.verbose)
    if dry_run:
        session.console.print(DRY_RUN)
    return 0


def _accept_waiting(
    session: Session,
    place: Workplace,
    patterns: Sequence[str],
    source: str | None,
    commit: str | None,
    *,
    allow_wider: bool,
    **options: Any,
) -> int:
    from ciwrap.cli.accept_pending import accept_pending, artifact_workplace

    if source is None:
        return accept_pending(session, place, patterns, **options)
    with artifact_workplace(place, source, commit) as there:
        return accept_pending(session, there, patterns, allow_wider=allow_wider, **options)


def _means_pending(
    config_path: str | None, names: Sequence[str], check_names: Sequence[str]
) -> bool:
    """Whether goldens that wait are meant: no check of the configuration is called so, or there is
    no configuration at all.
    """
    from ciwrap.cli.project import load_project
    from ciwrap.cli.proposals import find_workplace

    if check_names:
        return False
    try:
        known = {check.name for check in load_project(config_path, None).config.checks}
    except ConfigMissingError:
        if config_path is not None or not find_workplace(None, None).goldens():
            raise
        return True
    unknown = [name for name in names if name not in known]
    if not unknown:
        return False
    waiting = find_workplace(config_path, None).goldens()
    is_pending = [any(check_matches(name, one.check) for one in waiting) for name in unknown]
    if all(is_pending) and len(unknown) < len(names):
        raise UsageError(
            f"{unknown[0]!r} waits for review, other names are checks of the configuration",
            remedy="accept them in two steps",
        )
    return all(is_pending)
