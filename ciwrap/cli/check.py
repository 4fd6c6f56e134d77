"""`ciwrap check`: the outputs against their goldens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import (
    check_option,
    config_options,
    json_option,
    pending_option,
    report_option,
    resource_options,
    verbose_option,
)
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ciwrap.cli.session import Session
    from ciwrap.compare.work import Work
    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, CommandOutcome, Message, RunResult
    from ciwrap.progress import Progress
    from ciwrap.review.project import Project


@click.command(name="check", short_help="Compare the outputs with their goldens.")
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@check_option
@pending_option
@config_options
@json_option
@report_option
@verbose_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    names: tuple[str, ...],
    check_names: tuple[str, ...],
    pending_dir: str | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Compare what the program wrote with the goldens, within the error bounds of ciwrap.yaml.

    Writes nothing but the JSON result, and what --pending asks for: a golden that is missing is an
    error, never made here. A check with an `ensemble` is judged by the statistics of its runs.

    Exit codes: 0 match or consistent, 1 differ or inconsistent, 2 usage or configuration, 3 could
    not compare.
    """
    from ciwrap.cli.load_project import load_project

    project = load_project(config_path, golden_dir, (*names, *check_names))
    if pending_dir is not None:
        project = with_pending(project, pending_dir)
    result = run_checks(session, project)
    if pending_dir is not None:
        leave_pending(session, project, result)
    return session.emit(result, project.root)


def run_checks(
    session: Session,
    project: Project,
    *,
    done: tuple[CheckResult, ...] = (),
    command: CommandOutcome | None = None,
) -> RunResult:
    """Checks all of the project's checks, but those already `done`."""
    from ciwrap.cli.progress import progress_bar

    started = time.monotonic()
    session.golden_dir = project.golden_dir
    settled = {result.name: result for result in done}
    with progress_bar() as progress:
        results = [
            settled.get(check.name) or _check_one(session, project, check, progress)
            for check in project.checks
        ]
    return make_result(
        session, project, tuple(results), time.monotonic() - started, command=command
    )


def _check_one(session: Session, project: Project, check: Check, progress: Progress) -> CheckResult:
    """One check against its golden, whatever its outputs are."""
    from ciwrap.compare.explaining import explainer
    from ciwrap.compare.work import Work
    from ciwrap.work_folder import RUN_NOTES

    work = Work(session.resources, progress, explain=explainer)
    result = _kind_of(check)(check, project.store, work)
    is_known = session.environment is not None or check.ensemble
    if not is_known and (project.root / RUN_NOTES).exists():
        return _with_known_run(result, check, project.root)
    return result


def _kind_of(check: Check) -> Callable[[Check, GoldenStore, Work], CheckResult]:
    """What compares the outputs of a check: those of an ensemble, a recorded run, or files."""
    if check.ensemble:
        from ciwrap.ensemble.check import check_ensemble

        return check_ensemble
    from ciwrap.compare.outputs import recorded_run_of

    if recorded_run_of(check) is not None:
        from ciwrap.compare.recorded import check_recorded

        return check_recorded
    from ciwrap.compare.check import check_outputs

    return check_outputs


def _with_known_run(result: CheckResult, check: Check, root: Path) -> CheckResult:
    """The result with the environment of the `ciwrap run` that made the outputs, if one did."""
    from ciwrap.compare.outputs import files_of
    from ciwrap.snapshot.runs import environment_of_outputs

    known = environment_of_outputs(root, files_of(check))
    return result if known is None else replace(result, environment=known)


def with_pending(project: Project, folder: str) -> Project:
    """The project whose pending goldens lie in a folder; '' for its own.

    Raises UsageError if its golden folder is one that they could not be accepted into.
    """
    from pathlib import Path

    _ = project.golden_dir_text
    return replace(project, pending_dir=Path(folder)) if folder else project


def leave_pending(session: Session, project: Project, result: RunResult) -> None:
    """Keeps what checks that do not match found, for `ciwrap review` and `ciwrap accept --from`.

    A check whose outputs cannot be captured leaves none. Raises WriteFailedError, LockBusyError,
    once the result has been seen.
    """
    from ciwrap.errors import CiwrapError
    from ciwrap.report.document import document_text, to_document
    from ciwrap.report.terminal import render
    from ciwrap.review.keep_pending import keep_unmatched

    result = session.with_circumstances(result, project.root)
    documents = {
        check.name: document_text(to_document(replace(result, checks=(check,), messages=())))
        for check in result.checks
        if not check.verdict.is_good
    }
    try:
        problems = keep_unmatched(
            project.checks,
            project.store,
            project.pending,
            documents,
            with_snapshots=project.own_config.snapshot.objects,
            resources=session.resources,
        )
        project.pending.write_index(project.golden_dir_text)
    except CiwrapError:
        render(result, session.console, verbose=session.verbose)
        raise
    for name, problem in problems.items():
        session.console.print(f"{name}: nothing waits for review: {problem}")


def make_result(
    session: Session,
    project: Project,
    results: tuple[CheckResult, ...],
    seconds: float,
    *,
    command: CommandOutcome | None = None,
) -> RunResult:
    """All results as one."""
    from ciwrap.model import RunResult, Verdict
    from ciwrap.model.commands import ProjectOptions

    options = None if project.options == ProjectOptions() else project.options
    return RunResult(
        verdict=Verdict.worst(result.verdict for result in results),
        checks=tuple(replace(one, accept_options=options) for one in results),
        kind=session.kind,
        messages=tuple(orphan_messages(project)),
        command=command,
        seconds=seconds,
    )


def orphan_messages(project: Project) -> Iterator[Message]:
    """Goldens and ensembles that no check uses: of a check renamed or removed, perhaps by accident,
    or of one that names no runs. What another configuration's checks use is passed over.
    """
    from ciwrap.golden.names import golden_orphans
    from ciwrap.golden.paths import ensemble_orphans, ensemble_path
    from ciwrap.model import Message, MessageLevel

    checks = project.own_config.checks
    known = [check.name for check in checks]
    orphans = golden_orphans(project.golden_dir, known)
    found = [("golden", name, path) for name, path in orphans.items()]
    strange = ensemble_orphans(project.golden_dir, known)
    found += [("ensemble", name, path) for name, path in strange.items()]
    for check in checks:
        path = ensemble_path(project.golden_dir, check.name)
        if not check.ensemble and path.exists():
            text = f"the ensemble of {check.name!r} is not used; name its runs by 'ensemble'"
            yield Message(MessageLevel.WARNING, f"{text} in the check", file=str(path))
    if found:
        yield from _without_others(project, found)


def _without_others(project: Project, found: Sequence[tuple[str, str, Path]]) -> Iterator[Message]:
    from ciwrap.errors import ConfigError
    from ciwrap.model import Message, MessageLevel
    from ciwrap.review.other_configs import checks_of_others

    try:
        others = checks_of_others(project)
    except ConfigError as error:
        text = f"nobody can tell which goldens another configuration uses: {error}"
        yield Message(MessageLevel.WARNING, text, file=str(project.golden_dir))
        return
    for what, name, path in found:
        if name in others:
            continue
        text = (
            f"the {what} of {name!r} belongs to no check of the configuration; delete it, or fix"
            " the check's name"
        )
        yield Message(MessageLevel.WARNING, text, file=str(path))
