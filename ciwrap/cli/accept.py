"""`ciwrap accept`: make goldens of the outputs, or replace them, and say what that changes."""

from __future__ import annotations

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
from ciwrap.golden.places import checks_meant
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.cli.session import Session
    from ciwrap.review.golden_change import GoldenChange
    from ciwrap.review.project import Project


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
@click.option(
    "--allow-less-evidence", is_flag=True, help="Let an artifact keep less than the golden does."
)
@click.option("--allow-removed", is_flag=True, help="Let an artifact take variables out.")
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
    allow_less_evidence: bool,
    allow_removed: bool,
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
    from ciwrap.cli.load_project import find_project, load_project

    if reason is not None and not reason.strip():
        raise UsageError("--reason is empty", remedy="say why the new numbers are right")
    from ciwrap.review.pending_artifact import ALLOWED_WORDS

    said = (allow_wider, allow_less_evidence, allow_removed)
    allowed = tuple(word for word, is_said in zip(ALLOWED_WORDS, said, strict=True) if is_said)
    if source is None and (commit is not None or allowed):
        raise UsageError(f"--{allowed[0] if allowed else 'commit'} belongs to --from")
    if is_pending or source is not None or _means_pending(config_path, names, check_names):
        if check_names or force:
            raise UsageError("--check and --force are for outputs, not for goldens that wait")
        changes = _accept_pending(
            find_project(config_path, golden_dir),
            names,
            reason,
            source,
            commit,
            allowed=allowed if source is not None else ALLOWED_WORDS,
            dry_run=dry_run,
            variant=variant,
        )
        if not changes:
            session.console.print("nothing waits for review")
            return 0
    else:
        if variant is not None:
            raise UsageError("--variant is for goldens that wait")
        project = load_project(config_path, golden_dir, (*names, *check_names))
        if not (names or check_names):
            project = _without_ensembles(project)
        changes = _accept_outputs(session, project, reason, force=force, dry_run=dry_run)
    _tell(session, changes, reason, dry_run=dry_run)
    return 0


def _without_ensembles(project: Project) -> Project:
    """The project without checks whose goldens outputs do not make."""
    checks = tuple(check for check in project.checks if not check.ensemble)
    return replace(project, checks=checks) if checks else project


def _accept_outputs(
    session: Session, project: Project, reason: str | None, **options: bool
) -> list[GoldenChange]:
    from ciwrap.cli.progress import progress_bar
    from ciwrap.review.accept_goldens import accept_outputs

    with progress_bar() as progress:
        return accept_outputs(
            project, reason, resources=session.resources, progress=progress, **options
        )


def _accept_pending(
    project: Project,
    patterns: Sequence[str],
    reason: str | None,
    source: str | None,
    commit: str | None,
    **options: Any,
) -> list[GoldenChange]:
    from ciwrap.review.accept_goldens import accept_pending
    from ciwrap.review.pending_artifact import project_with

    if source is None:
        return accept_pending(project, patterns, reason, **options)
    with project_with(project, source, commit) as there:
        return accept_pending(there, patterns, reason, **options)


def _tell(
    session: Session, changes: Sequence[GoldenChange], reason: str | None, *, dry_run: bool
) -> None:
    from ciwrap.cli.print_changes import DRY_RUN, print_changes
    from ciwrap.review.accept_document import accept_document

    # First what became of the goldens: to write the document may fail.
    print_changes(changes, session.console, dry_run=dry_run, verbose=session.verbose)
    if dry_run:
        session.console.print(DRY_RUN)
    session.emit_record(accept_document(changes, reason=reason, dry_run=dry_run))


def _means_pending(
    config_path: str | None, names: Sequence[str], check_names: Sequence[str]
) -> bool:
    """Whether goldens that wait are meant: no check of the configuration is called so, or there is
    no configuration at all.
    """
    from ciwrap.cli.load_project import find_project, load_project

    if check_names:
        return False
    try:
        known = {check.name for check in load_project(config_path, None).checks}
    except ConfigMissingError:
        if config_path is not None or not any(find_project(None, None).pending.found()):
            raise
        return True
    unknown = [name for name in names if name not in known]
    if not unknown:
        return False
    waiting, _ = find_project(config_path, None).pending.found()
    names_waiting = {one.check for one in waiting}
    is_pending = [bool(checks_meant(name, names_waiting)) for name in unknown]
    if all(is_pending) and len(unknown) < len(names):
        raise UsageError(
            f"{unknown[0]!r} waits for review, other names are checks of the configuration",
            remedy="accept them in two steps",
        )
    return all(is_pending)
