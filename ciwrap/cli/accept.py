"""`ciwrap accept`: make goldens of the outputs, or replace them, and say what that changes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import (
    check_option,
    config_options,
    json_option,
    resource_options,
    verbose_option,
)
from ciwrap.cli.session import Session, quiet_pipe
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from ciwrap.compare.accept import Candidate


@click.command(name="accept", short_help="Make goldens of the outputs, or replace them.")
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@check_option
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
    reason: str | None,
    dry_run: bool,
    force: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Make the outputs that lie there now the goldens of their checks.

    A first golden needs no reason; replacing one does, and it goes into the history that the
    manifest keeps. A golden that everything matches within its bounds is kept, so that it does not
    creep along with the noise (--force replaces it). Either all that is asked for is captured, or
    nothing is written.
    """
    from ciwrap.cli.acceptance import acceptance_document, render_acceptance
    from ciwrap.cli.progress import progress_bar
    from ciwrap.cli.project import load_project
    from ciwrap.compare.accept import prepare, write

    if reason is not None and not reason.strip():
        raise UsageError("--reason is empty", remedy="say why the new numbers are right")
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
            _demand_reason(candidates, reason)
            for candidate in candidates:
                if candidate.needs_writing:
                    write(candidate, project.store, reason)
    session.emit_document(acceptance_document(candidates, reason=reason, dry_run=dry_run))
    with quiet_pipe():
        render_acceptance(candidates, session.console, dry_run=dry_run, verbose=session.verbose)
    return 0


def _demand_reason(candidates: list[Candidate], reason: str | None) -> None:
    from ciwrap.compare.accept import Status

    replaced = [one.check.name for one in candidates if one.status is Status.REPLACED]
    if replaced and reason is None:
        raise UsageError(
            f"replacing the golden of {', '.join(replaced)} needs a reason; nothing was written",
            remedy="add --reason 'why the new numbers are right' (--dry-run shows what changes)",
        )
