"""`ciwrap time`: is B slower than A?"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.options import json_option, markdown_option, report_option
from ciwrap.cli.section_options import section_options
from ciwrap.config.schema import TIMING
from ciwrap.errors import UsageError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.cli.session import Session
    from ciwrap.config import CommandSettings, Config
    from ciwrap.config.settings import TimingSettings
    from ciwrap.snapshot.program import ProgramWatcher
    from ciwrap.timing.document import TimingDocument
    from ciwrap.timing.measure import Side
    from ciwrap.timing.revisions import Recipe


@click.command(name="time", short_help="Say whether one command is slower than another.")
@click.argument("commands", nargs=-1, metavar="[A B]")
@click.option("--base", metavar="REF", help="Take the command in this revision as A.")
@click.option("--head", metavar="REF", help="And in this one as B, instead of the working tree.")
@section_options(
    TIMING,
    *("pairs", "margin", "confidence", "gate", "warm_up", "reserve_core", "duet"),
    *("timeout_seconds",),
)
@click.option(
    "--concurrent",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="M",
    help="Run M of a side at once; the slowest of them counts.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of the random order; else a new one.")
@click.option("--config", "config_path", type=click.Path(), help="The configuration, if any.")
@markdown_option
@json_option
@report_option
@click.pass_obj
def command(
    session: Session,
    /,
    commands: tuple[str, ...],
    base: str | None,
    head: str | None,
    concurrent: int,
    seed: int | None,
    config_path: str | None,
    **given: Any,
) -> int:
    """Run two commands in pairs, in random order, and say whether the second one takes longer.

    A and B are texts for the shell. With --base REF, A is the configured command in that revision,
    built in a working tree of its own by the `build` of `timing`, and B the same command in the
    working tree as it is; one command may then be given instead of the configured one.

    The verdict is changed, not changed, or inconclusive, and says what it rests on. A run that
    fails ends it all.

    Exit codes: 0 whatever the verdict; with --gate 1 if B takes longer; 2 usage or configuration,
    3 a run or a build failed.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.interrupts import ends_are_interrupts
    from ciwrap.report.document import write_text
    from ciwrap.timing.choices import chosen_timing
    from ciwrap.timing.summary import timing_summary
    from ciwrap.timing.timing_page import render_timing_html

    session.kind = "timing"
    config = load_config_if_any(config_path)
    settings = chosen_timing(config, given)
    if settings.duet and concurrent > 1:
        raise UsageError("a duet is one run of each side, so --concurrent has no meaning in it")
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    with ends_are_interrupts(), _sides(commands, base, head, config, settings) as sides:
        watchers = _watchers(config, settings)
        found = _measure(session, sides, settings, seed, concurrent, watchers)
    session.emit_record(found)
    session.emit_summary(timing_summary(found))
    if session.report_target is not None:
        write_text(render_timing_html(found), session.report_target, "the report")
    _print(session, found)
    return found.exit_code


@contextlib.contextmanager
def _sides(
    commands: tuple[str, ...],
    base: str | None,
    head: str | None,
    config: Config | None,
    settings: TimingSettings,
) -> Iterator[tuple[Side, Side]]:
    """Both sides, for as long as they can be run."""
    from ciwrap.timing.measure import Side

    if any(not text.strip() for text in commands):
        raise UsageError("a command is empty")
    if base is None:
        if head is not None:
            raise UsageError("--head needs --base")
        if len(commands) != 2:
            raise UsageError(
                f"it takes two commands to compare, but {len(commands)} given",
                remedy="put each in quotes, or compare revisions with --base",
            )
        a, b = (_fitted(_here(config, text), settings) for text in commands)
        yield Side("A", a), Side("B", b)
        return
    from ciwrap.repository import Repository
    from ciwrap.timing.revisions import revision_side, working_tree_side

    recipe = _recipe(commands, config, settings)
    repository = Repository.around(recipe.timed.working_dir)
    for reference in (base, head):
        if reference is not None:
            repository.commit(reference)  # before anything is built
    with revision_side("A", base, repository, recipe) as first:
        if head is None:
            with working_tree_side("B", repository, recipe) as second:
                yield first, second
        else:
            with revision_side("B", head, repository, recipe) as second:
                yield first, second


def _recipe(commands: tuple[str, ...], config: Config | None, settings: TimingSettings) -> Recipe:
    from ciwrap.timing.revisions import Recipe

    if len(commands) > 1:
        raise UsageError("with --base, one command is timed in both revisions")
    timed = _timed(commands, config, settings)
    root = Path.cwd() if config is None else config.root
    build = (
        None if settings.build is None else replace(timed, words=settings.build, working_dir=root)
    )
    return Recipe(_fitted(timed, settings), build)


def _timed(
    commands: tuple[str, ...], config: Config | None, settings: TimingSettings
) -> CommandSettings:
    """What is run in both revisions: as given, as configured for timing, or as for `run`."""
    if commands:
        return _here(config, commands[0])
    usual = None if config is None else config.command
    if config is not None and settings.command is not None:
        place = usual or _here(config, "")
        return replace(place, words=settings.command, working_dir=place.working_dir)
    if usual is None:
        raise UsageError(
            "there is no command to time",
            remedy="give one, or configure 'command' under 'timing' or 'run'",
        )
    return usual


def _here(config: Config | None, text: str) -> CommandSettings:
    from ciwrap.config import CommandSettings

    usual = None if config is None else config.command
    return CommandSettings(text, Path.cwd(), env={} if usual is None else usual.env)


def _fitted(timed: CommandSettings, settings: TimingSettings) -> CommandSettings:
    """The command with the time limit and the cores that runs are given."""
    from ciwrap.running.cores import all_cores_but_one

    return replace(
        timed,
        timeout_seconds=settings.timeout_seconds or timed.timeout_seconds,
        cores=all_cores_but_one() if settings.reserve_core else timed.cores,
    )


def _tell(line: str) -> None:
    """Tells a person at a terminal how far it is."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _watchers(config: Config | None, settings: TimingSettings) -> tuple[ProgramWatcher, ...]:
    """What looks at both sides in their first warm-up run; nothing without a project to keep
    snapshots in.
    """
    from ciwrap.snapshot.program import ProgramWatcher

    if config is None or not config.snapshot.objects or not settings.warm_up:
        return ()
    return ProgramWatcher(), ProgramWatcher()


def _measure(
    session: Session,
    sides: tuple[Side, Side],
    settings: TimingSettings,
    seed: int,
    concurrent: int,
    watchers: Sequence[ProgramWatcher],
) -> TimingDocument:
    from importlib.metadata import version

    from ciwrap.snapshot.describe import describe_environment
    from ciwrap.snapshot.runs import environment_of_program
    from ciwrap.statistics.library import scipy
    from ciwrap.timing.document import timing_document
    from ciwrap.timing.measure import take_times

    scipy("stats", "`ciwrap time`")  # before anything has run for an hour
    assert settings.confidence is not None
    load = os.getloadavg()[0]
    started = time.monotonic()
    taken = take_times(
        sides,
        pairs=settings.pairs,
        warm_up=settings.warm_up,
        seed=seed,
        size=concurrent,
        duet=settings.duet,
        tell=_tell,
        watchers=watchers or (None, None),
    )
    environments = [
        environment_of_program(Path.cwd(), watcher, side.command.text)
        for side, watcher in zip(sides, watchers, strict=False)
    ]
    return timing_document(
        sides,
        taken,
        margin=settings.margin,
        confidence=settings.confidence,
        gate=settings.gate,
        seed=seed,
        warm_up=settings.warm_up,
        reserve_core=settings.reserve_core,
        environment=environments[0] if environments else describe_environment(Path.cwd()),
        ciwrap_version=version("ciwrap"),
        started_at=session.started_at,
        seconds=time.monotonic() - started,
        load=load,
        duet=settings.duet,
        snapshots=(
            (environments[0].get("snapshot"), environments[1].get("snapshot"))
            if environments
            else (None, None)
        ),
    )


def _print(session: Session, found: TimingDocument) -> None:
    from ciwrap.timing import wording

    console = session.console
    console.print(wording.headline(found.comparison))
    for line in wording.explanation(found.comparison):
        console.print(f"  {line}")
    console.print()
    for side in found.sides:
        console.print(wording.side_text(side))
    rows = [("", "A", "B"), *wording.table_of(found)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, a, b in rows:
        console.print(f"  {name:<{widths[0]}}  {a:<{widths[1]}}  {b}".rstrip())
    for note in wording.notes(found):
        console.print(f"note: {note}")
    console.print(f"order of runs: seed {found.seed}")
    if found.gate:
        console.print(f"gate: exit code {found.exit_code}")
