"""`ciwrap record`: runs a program that records its arrays."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ciwrap.cli.options import (
    common_option,
    json_detail_option,
    json_option,
    report_option,
    verbose_option,
)
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ciwrap.captures.recording import RecordedCapture
    from ciwrap.cli.rules import RuleOptions
    from ciwrap.cli.session import Session
    from ciwrap.errors import CiwrapError
    from ciwrap.model import CommandOutcome, VariableId
    from ciwrap.online.reference import Reference

# Names that nobody else gives: what lies there is deleted.
_REFERENCE_FOLDER = ".ciwrap.reference"
_ENDED_MARK = ".ciwrap.ended"
_POLICIES = ("report", "callback", "stop", "abort")
_OF_COMPARISON = {
    "on_divergence",
    "patience",
    "stop_within",
    "wait",
    "common",
    "json_target",
    "json_detail",
    "report_target",
}


@click.command(name="record", short_help="Run a program that records its arrays as it goes.")
@click.option("-o", "--output", default="recorded", help="Folder of the run (`recorded`).")
@click.option("--check", "check_name", metavar="NAME", help="Bounds of this check of ciwrap.yaml.")
@click.option("--config", "config_path", metavar="PATH", help="The ciwrap.yaml of that check.")
@click.option("--atol", type=float, help="Absolute error bound of all variables.")
@click.option("--rtol", type=float, help="Relative error bound of all variables.")
@click.option("--residues", is_flag=True, help="Let other runs be compared with this one.")
@click.option(
    "--against",
    metavar="RUN",
    type=click.Path(),
    help="Hold the run against this golden, capture or recorded run while it runs.",
)
@click.option(
    "--on-divergence",
    type=click.Choice(_POLICIES),
    default="report",
    help="What follows when it does not match: report it in the end, call the program back, have"
    " the program stop, or abort it (`report`).",
)
@click.option(
    "--patience",
    type=click.IntRange(0),
    default=1,
    metavar="N",
    help="Stop or abort N checkpoints after the first that does not match (1).",
)
@click.option(
    "--stop-within",
    type=click.FloatRange(0),
    default=60.0,
    metavar="SECONDS",
    help="Abort a program that still records this long after it should have stopped (60).",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=60.0,
    metavar="SECONDS",
    help="Wait this long for a checkpoint of a run that is still recorded itself (60).",
)
@common_option
@click.option("--again", is_flag=True, help="The run goes on: a restart of the same program.")
@click.option("--replace", is_flag=True, help="Delete the recorded run that the folder holds.")
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="LABEL=TYPE",
    help="Record the Kokkos Views of this label (`v*=f8`, `v=f8[60,80]`) of a program without"
    " ciwrap/record.h; may be repeated.",
)
@click.option("--step", metavar="NAME", help="Record them at the end of this region or kernel.")
@json_option
@json_detail_option
@report_option
@verbose_option
@click.argument("words", nargs=-1, metavar="-- COMMAND...")
@click.pass_obj
def command(
    session: Session,
    /,
    output: str,
    check_name: str | None,
    config_path: str | None,
    atol: float | None,
    rtol: float | None,
    words: tuple[str, ...],
    **more: Any,
) -> int:
    """Run COMMAND and have it record its arrays, if it has ciwrap/record.h or ciwrap.Recorder, or
    Kokkos Views that --view names.

    What was recorded (digests, no data) is compared with another run's by `ciwrap compare`, also
    while the program runs, or by --against as it is recorded. Bounds of ciwrap.yaml, or of the
    options, come before those in the program. The program's output goes to stderr.

    Exit codes: 0 recorded, and it matches what it was compared with; 1 it differs; 2 usage; 3 the
    program failed, or not all could be recorded or compared.
    """
    from ciwrap.cli.recorded import alone_in
    from ciwrap.cli.rules import RuleOptions
    from ciwrap.model import SettingsLayer

    if not words:
        raise click.UsageError("there is no command to run")
    said = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value is not None}
    chosen = RuleOptions(SettingsLayer.of(said), check_name, config_path)
    asked = _Asked(Path(output), words, chosen, more)
    with alone_in(asked.folder), _reference(asked) as reference:
        outcome = _run(asked, reference)
        if reference is None:
            return _tell_recorded(asked, outcome)
        return _tell_compared(session, asked, reference, outcome)


class _Asked(Struct, frozen=True):
    """What the command line says. options: those that are but passed on."""

    folder: Path
    words: tuple[str, ...]
    chosen: RuleOptions
    options: Mapping[str, Any]


@contextlib.contextmanager
def _reference(asked: _Asked) -> Iterator[Reference | None]:
    """Raises UsageError for options that say nothing, and NotComparableError for what nothing can
    be held against.
    """
    if asked.options["again"] and asked.options["replace"]:
        raise UsageError("--again goes on with a run, and --replace deletes it", remedy="give one")
    against = asked.options["against"]
    if against is None:
        _refuse_without_reference()
        yield None
        return
    from ciwrap.online.reference import prepared

    if os.path.realpath(against) == os.path.realpath(asked.folder):
        raise UsageError(
            "a run cannot be compared with itself",
            file=asked.folder,
            remedy="give another folder with -o",
        )
    if asked.chosen.check is None:
        _refuse_beyond_golden(Path(against))
    with prepared(Path(against), asked.folder / _REFERENCE_FOLDER) as reference:
        yield reference


def _refuse_beyond_golden(against: Path) -> None:
    """Raises UsageError for the golden of a check here that says more than goldens keep, such as
    `combine` or a mask: held to what the golden tells, another run would match.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.golden.paths import BINARY_SUFFIX, escape_name
    from ciwrap.native.bounds_table import refuse_beyond_trees
    from ciwrap.online.reference import golden_file_of

    golden = golden_file_of(against)
    config = None if golden is None else load_config_if_any(None)
    if golden is None or config is None:
        return
    for check in config.checks:
        own = config.golden_dir / f"{escape_name(check.name)}{BINARY_SUFFIX}"
        if os.path.realpath(own) == os.path.realpath(golden):
            refuse_beyond_trees(check)


def _refuse_without_reference() -> None:
    """Raises UsageError for an option that is of the comparison alone."""
    context = click.get_current_context()
    for one in context.command.params:
        is_given = context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
        if is_given and one.name in _OF_COMPARISON:
            raise UsageError(f"{one.opts[0]} needs --against", remedy="give --against RUN")


def _run(asked: _Asked, reference: Reference | None) -> CommandOutcome:
    from ciwrap.captures.journals import BOUNDS_FILE, journal_paths, remove_run
    from ciwrap.captures.recording import write_snapshot
    from ciwrap.captures.run_file import RunFile, refuse_files_of_others, write_run_file
    from ciwrap.config.settings import CommandSettings
    from ciwrap.native.bounds_table import bounds_table
    from ciwrap.native.kokkos_views import kokkos_environment
    from ciwrap.native.library import library_path
    from ciwrap.online.ended_mark import set_after_end
    from ciwrap.running.run_command import run_command
    from ciwrap.snapshot.program import ProgramWatcher
    from ciwrap.snapshot.store import encoded
    from ciwrap.snapshot.take import snapshot_of_program

    library = library_path()
    folder, chosen = asked.folder, asked.chosen
    table = bounds_table(chosen.check, chosen.layer, residues=asked.options["residues"])
    refuse_files_of_others(folder)
    if asked.options["replace"]:
        remove_run(folder)
    if journal_paths(folder) and not asked.options["again"]:
        raise UsageError(
            "holds a recorded run already",
            file=folder,
            remedy="give another folder with -o, --replace to delete that run, or --again if this"
            " is a restart of it",
        )
    shown = CommandSettings(asked.words, Path.cwd()).text
    write_run_file(folder, RunFile(command=shown, bounds_from=_bounds_from(chosen)))
    env = {
        "CIWRAP_RECORD": _absolute(folder),
        "CIWRAP_RECORD_LIBRARY": str(library),
        "CIWRAP_RECORD_BOUNDS": "",
        "CIWRAP_RECORD_AGAINST": "" if reference is None else _absolute(reference.journals),
        "CIWRAP_RECORD_ON_DIVERGENCE": asked.options["on_divergence"],
        "CIWRAP_RECORD_PATIENCE": str(asked.options["patience"]),
        "CIWRAP_RECORD_WAIT": str(asked.options["wait"]),
        "CIWRAP_RECORD_STOP_WITHIN": str(asked.options["stop_within"]),
        "CIWRAP_RECORD_ENDED_MARK": _absolute(folder / _ENDED_MARK),
        **kokkos_environment(asked.options["views"], asked.options["step"]),
    }
    if table is not None:
        bounds_path = folder / BOUNDS_FILE
        bounds_path.write_text(table)
        env["CIWRAP_RECORD_BOUNDS"] = _absolute(bounds_path)
    watcher = ProgramWatcher()
    settings = CommandSettings(asked.words, Path.cwd(), env=env)
    with set_after_end(folder / _ENDED_MARK) as stop:
        outcome = run_command(settings, watcher=watcher, stop=stop)
    if stop.is_set():
        outcome = replace(outcome, exit_code=-signal.SIGTERM)
    taken = snapshot_of_program(Path.cwd(), watcher.seen, command=outcome.command)
    write_snapshot(folder, encoded(taken))
    return outcome


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - resolve() would follow links


def _bounds_from(chosen: RuleOptions) -> str | None:
    """Who asked for bounds; None if nobody did."""
    if chosen.check is not None:
        return f"check {chosen.check.name}"
    return "given" if chosen.layer.said else None


def _tell_recorded(asked: _Asked, outcome: CommandOutcome) -> int:
    """Says what was recorded. Raises the first error of the recording, and of the program."""
    from ciwrap.cli.recorded import not_ended, opened, recorded_text, refuse_nothing
    from ciwrap.running.run_command import failure_of

    folder = asked.folder
    with opened(folder, outcome) as capture:
        click.echo(recorded_text(capture, folder))
        refuse_nothing(capture, folder, asked.options["views"], outcome)
        for fault in capture.faults[1:]:
            click.echo(f"error: {fault}", err=True)
        if capture.faults:
            raise capture.faults[0]
        if capture.open_journals:
            raise not_ended(folder)
    if outcome.exit_code != 0:
        raise failure_of(outcome, so="so what it recorded may not be all")
    return 0


def _tell_compared(
    session: Session, asked: _Asked, reference: Reference, outcome: CommandOutcome
) -> int:
    """Says what was recorded and what it comes to against the reference; of a program that failed,
    or was ended, nothing matches.
    """
    from ciwrap.cli.recorded import first_words, opened, recorded_text, refuse_nothing
    from ciwrap.compare.law import message_of
    from ciwrap.model import RunResult, Verdict
    from ciwrap.online.judge import judge_recorded

    with opened(asked.folder, outcome) as capture:
        click.echo(recorded_text(capture, asked.folder), err=True)
        refuse_nothing(capture, asked.folder, asked.options["views"], outcome)
        rules = asked.chosen.make_rules()
        suspects = tuple(
            one for one in capture.suspects if not capture.leaves_out(one, rules.is_ignored)
        )
        open_journals = capture.open_journals
        is_ended = _was_to_end(asked, capture, suspects)
    ended_for = next(iter(suspects if is_ended else ()), None)
    result = judge_recorded(
        reference,
        asked.folder,
        rules,
        is_common=asked.options["common"],
        ended_in=None if ended_for is None else ended_for.iteration,
        resources=session.resources,
    )
    if all(rules.is_ignored(one) for one in result.left_out_variables):
        ended_for = None  # all that counts is there
    is_good = result.verdict.is_good
    if is_good:
        fault = _fault(asked, outcome, ended_for, has_open=bool(open_journals))
    else:
        fault = None if is_ended else _failure(outcome)
    is_lost = fault is not None and is_good
    run = RunResult(
        Verdict.NOT_COMPARABLE if is_lost else result.verdict,
        (result,),
        kind=session.kind,
        messages=(
            *first_words(result, next(iter(suspects), None)),
            *((message_of(fault),) if fault is not None else ()),
        ),
        seconds=outcome.seconds,
    )
    return session.emit(run, Path.cwd())


def _was_to_end(asked: _Asked, capture: RecordedCapture, suspects: Iterable[VariableId]) -> bool:
    """Whether a process was told to end for one of these: it had its checkpoints of patience."""
    patience = asked.options["patience"]
    return asked.options["on_divergence"] in ("stop", "abort") and any(
        capture.followed.get(one, -1) >= patience for one in suspects
    )


def _failure(outcome: CommandOutcome) -> CiwrapError | None:
    """What went wrong with a command whose run does not match: perhaps why."""
    from ciwrap.running.run_command import failure_of

    if outcome.exit_code == 0:
        return None
    return failure_of(outcome, so="so what it recorded may not be all")


def _fault(
    asked: _Asked,
    outcome: CommandOutcome,
    ended_for: VariableId | None,
    *,
    has_open: bool,
) -> CiwrapError | None:
    """Why a run is not all there, of which all that was recorded matches. ended_for: what did not
    match while it ran, for which it was ended.
    """
    from ciwrap.cli.recorded import not_ended
    from ciwrap.running.run_command import failure_of

    if ended_for is not None:
        return NotComparableError(
            f"the run was ended in iteration {ended_for.iteration}, and what it had recorded is"
            " within its bounds after all",
            file=asked.folder,
            remedy="run it with --on-divergence report",
        )
    if outcome.exit_code != 0:
        return failure_of(outcome, so="though all that it recorded matches")
    return not_ended(asked.folder) if has_open else None
