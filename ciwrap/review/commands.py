"""Running the commands of a project, and of which checks they left nothing to compare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import ExitCode, UsageError
from ciwrap.check.two_sides import failed_check
from ciwrap.model import CheckResult, CommandOutcome, Message, MessageLevel, RunResult, Verdict
from ciwrap.model.results import names_text
from ciwrap.project.outputs import RUN_GOLDEN, Stamps, recorded_run_of
from ciwrap.project.run_command import failure_of, run_command
from ciwrap.project.settings import Check, CommandSettings
from ciwrap.review.project import Project
from ciwrap.snapshot.take import ProgramWatcher

_MOST_NAMED = 3


def refuse_without_command(project: Project) -> None:
    """Raises UsageError where there is nothing to run."""
    if project.own_config.command is None and not any(check.command for check in project.checks):
        raise UsageError(
            "the configuration has no command to run",
            file=project.own_config.path,
            remedy="give one under 'run' or as `ciwrap run -- COMMAND`, or use `ciwrap check`",
        )


class Ran(Struct, frozen=True):
    """What became of the commands of a project. overall: of the one for all checks. settled: checks
    that it left nothing to compare of. commands: those of each check that ended with 0, or not.
    beside: files that they wrote beside the outputs, and that no check means.
    """

    overall: CommandOutcome | None
    settled: tuple[CheckResult, ...]
    commands: tuple[tuple[Check, CommandOutcome], ...] = ()
    beside: tuple[Path, ...] = ()

    def with_failures(self, found: RunResult, root: Path) -> RunResult:
        """The result, in which no check is good whose command did not end with 0, and with what was
        not compared. root: of the names of files.
        """
        failed = {check.name: outcome for check, outcome in self.commands if outcome.exit_code != 0}
        checks = tuple(
            failed_check(one.name, failure_of(failed[one.name]), one.golden_path)
            if one.name in failed and one.verdict.is_good
            else one
            for one in found.checks
        )
        verdict = Verdict.worst(one.verdict for one in checks)
        messages = (*found.messages, *self._in_no_check(root))
        return replace(found, checks=checks, verdict=verdict, messages=messages)

    def _in_no_check(self, root: Path) -> Iterator[Message]:
        """What was not compared since no check names it."""
        if not self.beside:
            return
        count = len(self.beside)
        names = names_text([os.path.relpath(path, root) for path in self.beside], _MOST_NAMED)
        files = (
            "1 file that the command wrote is"
            if count == 1
            else (f"{count:,} files that the command wrote are")
        )
        yield Message(MessageLevel.NOTE, f"not compared: {files} in no check ({names})")


def run_commands(project: Project, watcher: ProgramWatcher | None) -> Ran:
    """Runs the command for all checks, then those of the checks; where it fails, no other."""
    stamps = Stamps(project.checks)
    command, overall = project.own_config.command, None
    if command is not None:
        overall = run_command(_knowing_golden(project, project.checks, command), watcher=watcher)
    if overall is not None and not _is_over(overall, project.checks):
        error = failure_of(overall)
        results = tuple(
            failed_check(check.name, error, str(project.store.path(check.name)))
            for check in project.checks
        )
        return Ran(overall, results)
    settled = []
    commands = [] if overall is None else [(check, overall) for check in project.checks]
    for check in project.checks:
        own = None
        if check.command is not None:
            own = run_command(_knowing_golden(project, (check,), check.command), watcher=watcher)
        if own is not None:
            commands.append((check, own))
        result = _without_outputs(project, check, stamps, overall, own)
        if result is not None:
            settled.append(result)
    beside = stamps.written_beside(project.checks, project.own_config.checks)
    return Ran(overall, tuple(settled), tuple(commands), tuple(beside))


def _knowing_golden(
    project: Project, checks: tuple[Check, ...], command: CommandSettings
) -> CommandSettings:
    """The command of these checks: of a single one, it learns what that is compared with."""
    if len(checks) != 1:
        return command
    golden = os.path.realpath(project.store.path(checks[0].name))
    return replace(command, env={**command.env, RUN_GOLDEN: golden})


def _is_over(outcome: CommandOutcome, checks: tuple[Check, ...]) -> bool:
    """Whether a command has made the outputs of these checks: it ended with 0, or recorded them and
    says itself that they differ from what it compared them with.
    """
    if outcome.exit_code != ExitCode.DIFFER:
        return outcome.exit_code == 0
    from ciwrap.recording.recorded_run import run_file_of

    runs = [recorded_run_of(check) for check in checks]
    files = [None if run is None else run_file_of(run) for run in runs]
    return all(file is not None and file.exit_code == ExitCode.DIFFER for file in files)


def _without_outputs(
    project: Project,
    check: Check,
    stamps: Stamps,
    overall: CommandOutcome | None,
    own: CommandOutcome | None,
) -> CheckResult | None:
    """A check's result if its own command, or that of all, left nothing to compare; else None."""
    golden_path = str(project.store.path(check.name))
    if own is not None and not _is_over(own, (check,)):
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
