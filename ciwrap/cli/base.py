"""`ciwrap run --base`: two revisions, and no golden."""

from __future__ import annotations

import time
from secrets import randbelow
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.base.errors import NotComparableError, UsageError
from ciwrap.base.processes import ends_are_interrupts
from ciwrap.cli.check import keep_snapshot
from ciwrap.cli.repeat import config_of_runs, finish, teller
from ciwrap.model import Message, MessageLevel, RunResult, Verdict
from ciwrap.project.settings import CommandSettings, Config, RunPlace
from ciwrap.report.text import relative_to
from ciwrap.review.commands import Ran, refuse_without_command, run_commands
from ciwrap.review.project import near
from ciwrap.snapshot.take import ProgramWatcher
from ciwrap.studies.repeat.run import HowToRepeat, repeat_command
from ciwrap.studies.repeat.two_revisions import noise_result, plan_of, runs_of_base
from ciwrap.studies.timing import build_revision, moved
from ciwrap.studies.two_revisions import (
    Base,
    base_of,
    compare_check,
    named,
    notes_on,
    refuse_shared_program,
)

if TYPE_CHECKING:
    from ciwrap.cli.main import Session
    from ciwrap.model import CheckResult
    from ciwrap.model.repeat_result import RepeatResult
    from ciwrap.review.project import Project

_WHAT_IS_THERE = (
    "A's working tree holds what git tracks, and nothing else: let 'build' under 'timing', or the"
    " command itself, make what it needs beside that"
)


def run_against(
    session: Session,
    project: Project,
    reference: str,
    count: int | None,
    words: str | tuple[str, ...] | None,
) -> int:
    """Runs the base, then the working tree, and compares what both wrote. count: of runs of each,
    where their noise is asked for. words: the command that the project has in place of the
    configured ones. Raises UsageError, CommandFailedError for a build that fails.
    """
    session.kind = "run --base"
    refuse_without_command(project)
    started = time.monotonic()
    with ends_are_interrupts(), base_of(project, reference) as base:
        notes = [*notes_on(base, project.own_config)]
        build(base, project)
        if count is not None:
            return _repeated(session, project, base, count, words, notes, started)
        watcher = ProgramWatcher()
        ran = run_commands(base.moved_project(project), watcher)
        refuse_shared_program(base, watcher.seen)
        checks = _failures(base, ran)
        if checks:
            notes.append(Message(MessageLevel.NOTE, _WHAT_IS_THERE))
        if len(checks) < len(project.checks):
            checks = _both(session, project, base, checks)
    result = RunResult(
        verdict=Verdict.worst(one.verdict for one in checks),
        checks=checks,
        kind=session.kind,
        messages=tuple(notes),
        seconds=time.monotonic() - started,
    )
    # What is told of the base's files outlasts its working tree.
    result = relative_to(result, base.folder, f"{base.reference}:")
    return session.emit(result, project.root)


def build(base: Base, project: Project) -> None:
    """Builds both revisions, by the command that `timing` has for that. Raises
    CommandFailedError.
    """
    config = project.own_config
    words = config.timing.build
    if words is None:
        return
    usual = config.command or CommandSettings("", config.root)
    command = replace(usual, words=words, working_dir=config.root)
    there = moved(command, base.repository.top, base.folder)
    build_revision(base.text, there)
    build_revision("the working tree", command)


def _failures(base: Base, ran: Ran) -> tuple[CheckResult, ...]:
    """The checks of which the base left nothing to compare."""
    found = []
    for one in ran.settled:
        told = (replace(m, text=f"at {base.text}: {m.text}") for m in one.messages)
        found.append(named(base, replace(one, messages=tuple(told))))
    return tuple(found)


def _both(
    session: Session, project: Project, base: Base, failed: tuple[CheckResult, ...]
) -> tuple[CheckResult, ...]:
    """Runs the working tree, and compares all checks but those that failed at the base."""
    watcher = ProgramWatcher() if project.own_config.snapshot.objects else None
    ran = run_commands(project, watcher)
    if watcher is not None:
        keep_snapshot(session, project, watcher)
    settled = {one.name: named(base, one) for one in ran.settled}
    settled.update((one.name, one) for one in failed)
    return tuple(
        settled.get(check.name) or compare_check(base, check, session.resources)
        for check in project.checks
    )


def _repeated(
    session: Session,
    project: Project,
    base: Base,
    count: int,
    words: str | tuple[str, ...] | None,
    notes: list[Message],
    started: float,
) -> int:
    """Runs both revisions so many times, and says whether they differ by more than the noise."""
    if session.junit_target is not None:
        raise UsageError("--junit cannot be used with --repeat", remedy="leave one of them out")
    plan = plan_of(count, randbelow(1 << 31))
    at_base = runs_of_base(plan)
    usual = config_of_runs(project)
    watcher = ProgramWatcher()

    def config_of(place: RunPlace) -> Config:
        config = usual(place)
        config = config if words is None else _with_words(config, words, place)
        return base.moved_config(config) if place.number in at_base else config

    how = HowToRepeat(
        names=tuple(check.name for check in project.checks),
        is_shown=session.verbose,
        resources=session.resources,
        on_run=teller(session, len(plan.runs)),
        watchers=dict.fromkeys(at_base, watcher),
        root=near(project.own_config.root),
    )
    try:
        found = repeat_command(config_of, plan, how)
    except NotComparableError as error:  # the first run, which all others are compared with
        text = f"at {base.text}: {error.message}"
        raise type(error)(text, remedy=error.remedy) from error
    refuse_shared_program(base, watcher.seen)
    notes.append(Message(MessageLevel.NOTE, "the factor revision is off in A, and on in B"))
    notes += (Message(MessageLevel.WARNING, text) for text in found.notes)
    result = noise_result(found.measurers, found.runs, plan, base.text, notes)
    told: RepeatResult = relative_to(result, base.folder, f"{base.reference}:")
    return finish(session, project, told, started)


def _with_words(config: Config, words: str | tuple[str, ...], place: RunPlace) -> Config:
    """The configuration with one command in place of all of its own."""
    filled = place.filled(words) if isinstance(words, str) else tuple(map(place.filled, words))
    command = replace(config.command or CommandSettings("", config.root), words=filled)
    checks = tuple(replace(check, command=None) for check in config.checks)
    return replace(config, command=command, checks=checks)
