"""`ciwrap run`: the configured command, then the check of what it wrote."""

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
from ciwrap.errors import UsageError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.config import Check
    from ciwrap.model import CheckResult, CommandOutcome, RunResult
    from ciwrap.review.project import Project
    from ciwrap.running.stamps import Stamps
    from ciwrap.snapshot.program import ProgramWatcher


@click.command(name="run", short_help="Run the configured command, then check what it wrote.")
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@check_option
@pending_option
@click.option(
    "--command",
    "own_command",
    metavar="TEXT",
    help="Run this, for the shell, instead of the configured commands.",
)
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
    own_command: str | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Run the command of ciwrap.yaml (and those of its checks), then check what it wrote.

    An output that was there before and that the command did not write again is an error: it would
    say nothing about this run. The command's own output goes to stderr. A command that fails, or
    runs out of its time, is exit code 3.
    """
    from ciwrap.cli.check import leave_pending, with_pending
    from ciwrap.cli.load_project import load_project

    project = load_project(config_path, golden_dir, (*names, *check_names))
    if pending_dir is not None:
        project = with_pending(project, pending_dir)
    if own_command is not None:
        project = with_command(project, own_command)
    found, fresh = run_and_check(session, project)
    has_run = found.command is None or found.command.exit_code == 0
    if pending_dir is not None and has_run:
        leave_pending(session, replace(project, checks=fresh), found)
    return session.emit(found, project.root)


def run_and_check(session: Session, project: Project) -> tuple[RunResult, tuple[Check, ...]]:
    """Runs a project's commands and checks what they wrote; also the checks whose outputs are new.

    Raises UsageError if there is no command.
    """
    from ciwrap.cli.check import make_result, run_checks
    from ciwrap.compare.law import failed_check
    from ciwrap.running.run_command import failure_of, run_command
    from ciwrap.running.stamps import Stamps
    from ciwrap.snapshot.program import ProgramWatcher

    if project.own_config.command is None and not any(check.command for check in project.checks):
        raise UsageError(
            "the configuration has no command to run",
            file=project.own_config.path,
            remedy="give one under 'run', or use `ciwrap check`",
        )
    started = time.monotonic()
    stamps = Stamps(project.checks)
    # What looks at the commands while they run, unless the configuration says not to.
    watcher = ProgramWatcher() if project.own_config.snapshot.objects else None
    command = project.own_config.command
    overall = None if command is None else run_command(command, watcher=watcher)
    if overall is not None and overall.exit_code != 0:
        if watcher is not None:
            _keep_snapshot(session, project, watcher)
        error = failure_of(overall)
        results = tuple(
            failed_check(check.name, error, str(project.store.path(check.name)))
            for check in project.checks
        )
        seconds = time.monotonic() - started
        return make_result(session, project, results, seconds, command=overall), ()
    done = tuple(
        result
        for check in project.checks
        if (result := _run_check_command(project, check, stamps, overall, watcher)) is not None
    )
    if watcher is not None:
        _keep_snapshot(session, project, watcher)
    # Of a check whose command failed there is nothing to accept: what lies there is old.
    stale = {check.name for check in done}
    fresh = tuple(check for check in project.checks if check.name not in stale)
    if watcher is not None:
        _note_outputs(session, project, fresh)
    return run_checks(session, project, done=done, command=overall), fresh


def with_command(project: Project, words: str | tuple[str, ...]) -> Project:
    """The project with one command for all of its checks, run where the configuration is."""
    from ciwrap.config.settings import CommandSettings

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


def _keep_snapshot(session: Session, project: Project, watcher: ProgramWatcher) -> None:
    """Keeps what the commands ran with, whatever became of them."""
    from ciwrap.snapshot.runs import environment_of_program

    commands = (project.own_config.command, *(check.command for check in project.checks))
    text = "; ".join(one.text for one in commands if one is not None)
    session.environment = environment_of_program(project.root, watcher, text)


def _note_outputs(session: Session, project: Project, checks: tuple[Check, ...]) -> None:
    """Notes that a run with this environment made the outputs of these checks. What was noted of
    others stays: their files are those of an earlier run.
    """
    from ciwrap.compare.outputs import files_of
    from ciwrap.snapshot.runs import note_outputs

    outputs = {check.name: files_of(check) for check in checks}
    note_outputs(project.root, session.environment or {}, outputs)


def _run_check_command(
    project: Project,
    check: Check,
    stamps: Stamps,
    overall: CommandOutcome | None,
    watcher: ProgramWatcher | None,
) -> CheckResult | None:
    """Runs a check's own command; its result if there is nothing left to compare, else None."""
    from ciwrap.compare.law import failed_check
    from ciwrap.model import CheckResult, Verdict
    from ciwrap.running.run_command import failure_of, run_command

    golden_path = str(project.store.path(check.name))
    own = None if check.command is None else run_command(check.command, watcher=watcher)
    if own is not None and own.exit_code != 0:
        return replace(failed_check(check.name, failure_of(own), golden_path), command=own)
    stale = stamps.stale_messages(check) if own is not None or overall is not None else ()
    if not stale:
        return None
    return CheckResult(
        check.name,
        Verdict.NOT_COMPARABLE,
        golden_path=golden_path,
        messages=stale,
        command=own,
    )
