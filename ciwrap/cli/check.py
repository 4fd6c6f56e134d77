"""`ciwrap check`, and `ciwrap run`, which runs the command first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    NotComparableError,
    UsageError,
)
from ciwrap.base.files import RUN_NOTES
from ciwrap.base.late import hashlib
from ciwrap.check.check import check_outputs
from ciwrap.check.two_sides import Work, failed_check
from ciwrap.cli.commands import command, complete_checks, verbosity_options
from ciwrap.cli.options import (
    check_option,
    config_options,
    json_option,
    junit_option,
    markdown_option,
    pending_option,
    report_option,
    resource_options,
)
from ciwrap.cli.terminal import progress_bar
from ciwrap.explain.across import explainer
from ciwrap.golden.places import (
    BINARY_SUFFIX,
    ENSEMBLE_SUFFIX,
    MANIFEST_SUFFIX,
    SHARED_SUFFIX,
    ensemble_path,
    orphans,
)
from ciwrap.model import CheckResult, Message, MessageLevel, RunResult, Verdict
from ciwrap.model.results import ProjectOptions
from ciwrap.project.outputs import files_of, recorded_run_of
from ciwrap.project.settings import CommandSettings
from ciwrap.report.terminal import render
from ciwrap.review.project import checks_of_others, load_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ciwrap.base.progress import Progress
    from ciwrap.cli.main import Session
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CommandOutcome
    from ciwrap.project.settings import Check
    from ciwrap.review.project import Project
    from ciwrap.snapshot.take import ProgramWatcher


@command("check", example="ciwrap check --report report.html")
@click.argument("names", nargs=-1, metavar="[CHECK]...", shell_complete=complete_checks)
@check_option
@pending_option
@config_options
@json_option
@report_option
@markdown_option
@junit_option
@verbosity_options
@resource_options
@click.pass_obj
def check_command(
    session: Session,
    names: tuple[str, ...],
    check_names: tuple[str, ...],
    pending_dir: str | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Compare what the program wrote with the goldens, within the error bounds of ciwrap.yaml.

    Writes nothing but the results that you ask for: a golden that is missing is an
    error, never made here. A check with an `ensemble` is judged by the statistics of its runs.

    Exit codes: 0 match or consistent, 1 differ or inconsistent, 2 usage or configuration, 3 could
    not compare.
    """
    project = load_project(config_path, golden_dir, (*names, *check_names))
    if pending_dir is not None:
        project = with_pending(project, pending_dir)
    result = run_checks(session, project)
    if pending_dir is not None:
        leave_pending(session, project, result)
    code = session.emit(result, project.root)
    if pending_dir == "":
        tell_review(session, project, result)
    return code


def run_checks(
    session: Session,
    project: Project,
    *,
    done: tuple[CheckResult, ...] = (),
    command: CommandOutcome | None = None,
) -> RunResult:
    """Checks all of the project's checks, but those already `done`, which may be of others, too."""
    started = time.monotonic()
    session.golden_dir = project.golden_dir
    settled = {result.name: result for result in done}
    with progress_bar() as progress:
        results = [
            settled.get(check.name) or _check_one(session, project, check, progress)
            for check in project.checks
        ]
    names = {check.name for check in project.checks}
    results += [one for one in done if one.name not in names]
    return make_result(
        session, project, tuple(results), time.monotonic() - started, command=command
    )


def _check_one(session: Session, project: Project, check: Check, progress: Progress) -> CheckResult:
    """One check against its golden, whatever its outputs are: of an ensemble, a recorded run, or
    files.
    """
    compare: Callable[[Check, GoldenStore, Work], CheckResult] = check_outputs
    if check.ensemble:
        from ciwrap.studies.ensemble import check_ensemble as compare
    elif recorded_run_of(check) is not None:
        from ciwrap.recording.recorded_run import check_recorded as compare

    result = compare(check, project.store, Work(session.resources, progress, explain=explainer))
    is_known = session.environment is not None or check.ensemble
    if not is_known and (project.root / RUN_NOTES).exists():
        return _with_known_run(result, check, project.root)
    return result


def _with_known_run(result: CheckResult, check: Check, root: Path) -> CheckResult:
    """The result with the environment of the `ciwrap run` that made the outputs, if one did."""
    from ciwrap.snapshot.difference import environment_of_outputs

    known = environment_of_outputs(root, files_of(check))
    return result if known is None else replace(result, environment=known)


def with_pending(project: Project, folder: str) -> Project:
    """The project whose pending goldens lie in a folder; '' for its own.

    Raises UsageError if its golden folder is one that they could not be accepted into.
    """
    _ = project.golden_dir_text
    return replace(project, pending_dir=Path(folder)) if folder else project


def leave_pending(session: Session, project: Project, result: RunResult) -> None:
    """Keeps what checks that do not match found, for `ciwrap review` and `ciwrap accept --from`.

    A check whose outputs cannot be captured leaves none. Raises WriteFailedError, LockBusyError,
    once the result has been seen.
    """
    from ciwrap.report.document import document_text, to_document
    from ciwrap.review.pending import keep_unmatched

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


def tell_review(session: Session, project: Project, result: RunResult) -> None:
    """Where something waits, how to look at it."""
    waiting = {one.check for one in project.pending.select((), [])}
    names = [check.name for check in result.checks if check.name in waiting]
    if names:
        count = "1 golden waits" if len(names) == 1 else f"{len(names):,} goldens wait"
        session.console.print(f"  {count} for review: ciwrap review{project.options}")


def make_result(
    session: Session,
    project: Project,
    results: tuple[CheckResult, ...],
    seconds: float,
    *,
    command: CommandOutcome | None = None,
) -> RunResult:
    """All results as one."""
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
    checks = project.own_config.checks
    known = [check.name for check in checks]
    found = [
        (what, name, path)
        for what, suffix in (("golden", BINARY_SUFFIX), ("ensemble", ENSEMBLE_SUFFIX))
        for name, path in orphans(project.golden_dir, known, suffix).items()
    ]
    for check in checks:
        path = ensemble_path(project.golden_dir, check.name)
        if not check.ensemble and path.exists():
            text = f"the ensemble of {check.name!r} is not used; name its runs by 'ensemble'"
            yield Message(MessageLevel.WARNING, f"{text} in the check", file=str(path))
    if found:
        yield from _without_others(project, found)


def _without_others(project: Project, found: Sequence[tuple[str, str, Path]]) -> Iterator[Message]:
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


@command("run", example="ciwrap run -- ./simulate --steps 100")
@click.argument(
    "names", nargs=-1, metavar="[CHECK]... [-- COMMAND...]", shell_complete=complete_checks
)
@check_option
@pending_option
@click.option(
    "--command",
    "own_command",
    metavar="TEXT",
    help="Run this, for the shell, instead of the configured commands.",
)
@click.option(
    "--base",
    metavar="REF",
    help="Compare with what this revision writes, not with goldens; of a branch, with the commit"
    " where yours left it.",
)
@click.option(
    "--repeat",
    "count",
    type=click.IntRange(2, 1000),
    metavar="N",
    help="With --base: run both N times, and say whether they differ by more than the noise.",
)
@config_options
@json_option
@report_option
@markdown_option
@junit_option
@verbosity_options
@resource_options
@click.pass_obj
def run_command(
    session: Session,
    names: tuple[str, ...],
    check_names: tuple[str, ...],
    pending_dir: str | None,
    own_command: str | None,
    base: str | None,
    count: int | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Run the command of ciwrap.yaml (and those of its checks), or COMMAND in place of all of them,
    then check what it wrote.

    An output that was there before and that the command did not write again is an error: it would
    say nothing about this run. The command's own output goes to stderr. A command that fails, or
    runs out of its time, is exit code 3.

    With --base REF no golden is needed: REF is checked out in a folder of its own, built by the
    command `build` under `timing`, and run. The working tree is run as it is. Both are run and
    compared by the present configuration.
    """
    if base is None and count is not None:
        raise UsageError("--repeat needs --base", remedy="`ciwrap repeat` runs one revision")
    names, words = session.split_command(names)
    if words and own_command is not None:
        raise UsageError("--command, and a command behind --", remedy="give one of them")
    project = load_project(config_path, golden_dir, (*names, *check_names))
    if pending_dir is not None:
        project = with_pending(project, pending_dir)
    given = own_command if own_command is not None else words or None
    if given is not None:
        project = with_command(project, given)
    if base is not None:
        from ciwrap.cli.base import run_against

        for option, value in (("--pending", pending_dir), ("--golden-dir", golden_dir)):
            if value is not None:
                raise UsageError(f"{option} cannot be used with --base, which needs no goldens")
        return run_against(session, project, base, count, given)
    found, fresh = run_and_check(session, project)
    has_run = found.command is None or found.command.exit_code == 0
    if pending_dir is not None and has_run:
        leave_pending(session, replace(project, checks=fresh), found)
    code = session.emit(found, project.root)
    if pending_dir == "":
        tell_review(session, project, found)
    return code


def run_and_check(session: Session, project: Project) -> tuple[RunResult, tuple[Check, ...]]:
    """Runs a project's commands and checks what they wrote; also the checks whose outputs are new.

    Raises UsageError if there is no command.
    """
    from ciwrap.review.commands import refuse_without_command, run_commands
    from ciwrap.snapshot.take import ProgramWatcher

    refuse_without_command(project)
    goldens = _goldens_now(project)
    # What looks at the commands while they run, unless the configuration says not to.
    watcher = ProgramWatcher() if project.own_config.snapshot.objects else None
    ran = run_commands(project, watcher)
    settled = _with_changed_goldens(project, ran.settled, goldens)
    # Of a check whose command failed there is nothing to accept: what lies there is old.
    stale = {check.name for check in settled}
    fresh = tuple(check for check in project.checks if check.name not in stale)
    if watcher is not None:
        keep_snapshot(session, project, watcher)
        _note_outputs(session, project, fresh)
    found = run_checks(session, project, done=settled, command=ran.overall)
    return ran.with_failures(found, project.root), fresh


def _goldens_now(project: Project) -> dict[Path, bytes]:
    """Hashes of the files that name all numbers of goldens: manifests, ensembles, and what tests
    share.
    """
    suffixes = (MANIFEST_SUFFIX, ENSEMBLE_SUFFIX, SHARED_SUFFIX)
    paths = [one for one in project.golden_dir.rglob("*") if one.name.endswith(suffixes)]
    return {one: hashlib.sha256(one.read_bytes()).digest() for one in paths if one.is_file()}


def _with_changed_goldens(
    project: Project, done: tuple[CheckResult, ...], before: dict[Path, bytes]
) -> tuple[CheckResult, ...]:
    """Also the results of checks whose goldens are others than before the commands: a program that
    is compared with what it has just written proves nothing. A golden of tests that was replaced
    counts as a check of its file's name.
    """
    settled = {result.name for result in done}
    now = _goldens_now(project)
    changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
    names = {}
    for check in project.checks:
        own = project.store.manifest_path(check.name)
        of_check = {own, ensemble_path(project.golden_dir, check.name)}
        if changed & of_check:
            names[check.name] = project.store.path(check.name)
        changed -= of_check
    for path in sorted(changed & before.keys()):
        names[path.relative_to(project.root).as_posix()] = path
    error = NotComparableError(
        "its golden changed while the command ran, so nothing was compared",
        remedy="let the command write no goldens; accept them afterwards",
    )
    changed_ones = (
        failed_check(name, error, str(path)) for name, path in names.items() if name not in settled
    )
    return (*done, *changed_ones)


def with_command(project: Project, words: str | tuple[str, ...]) -> Project:
    """The project with one command for all of its checks, run where the configuration is."""
    if not "".join(words).strip():
        raise UsageError("the command is empty")
    configured = project.own_config.command
    settings = (
        CommandSettings(words, project.own_config.root)
        if configured is None
        else replace(configured, words=words)
    )
    return replace(
        project,
        config=replace(project.own_config, command=settings),
        checks=tuple(replace(check, command=None) for check in project.checks),
    )


def keep_snapshot(session: Session, project: Project, watcher: ProgramWatcher) -> None:
    """Keeps what the commands ran with, whatever became of them."""
    from ciwrap.snapshot.difference import environment_of_program

    commands = (project.own_config.command, *(check.command for check in project.checks))
    text = "; ".join(one.text for one in commands if one is not None)
    session.environment = environment_of_program(project.root, watcher, text)


def _note_outputs(session: Session, project: Project, checks: tuple[Check, ...]) -> None:
    """Notes that a run with this environment made the outputs of these checks. What was noted of
    others stays: their files are those of an earlier run.
    """
    from ciwrap.snapshot.difference import note_outputs

    outputs = {check.name: files_of(check) for check in checks}
    note_outputs(project.root, session.environment or {}, outputs)
