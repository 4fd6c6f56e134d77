"""`ciwrap record`, `watch` and `native`: programs that record their arrays while they run."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    ExitCode,
    NotComparableError,
    OutputMissingError,
    UsageError,
    WriteFailedError,
)
from ciwrap.check.two_sides import message_of
from ciwrap.cli.commands import command, section, verbosity_options
from ciwrap.cli.main import Session
from ciwrap.cli.options import common_option, json_detail_option, json_option, report_option
from ciwrap.cli.rule_options import RuleOptions
from ciwrap.golden.places import BINARY_SUFFIX, escape_name, writer_lock
from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    Message,
    MessageLevel,
    RunResult,
    SettingsLayer,
    VariableId,
    Verdict,
)
from ciwrap.project.outputs import (
    BOUNDS_FILE,
    RUN_GOLDEN,
    journal_paths,
    recorded_run_of,
    remove_run,
)
from ciwrap.project.run_command import failure_of, run_command
from ciwrap.project.settings import CommandSettings, name_matches
from ciwrap.recording.native import (
    bounds_table,
    cmake_folder,
    fortran_folder,
    include_folder,
    kokkos_environment,
    kokkos_path,
    library_path,
    pkg_config_folder,
    refuse_beyond_trees,
)
from ciwrap.recording.online import (
    Reference,
    WatchedRun,
    golden_file_of,
    judge_recorded,
    prepared,
    set_after_end,
    watch_lines,
)
from ciwrap.recording.recorded_run import (
    RecordedCapture,
    RunFile,
    add_to_run_file,
    refuse_files_of_others,
    write_run_file,
    write_snapshot,
)
from ciwrap.report.console import terminal_width
from ciwrap.report.digest_words import moved_words
from ciwrap.report.text import bytes_text, plural, seconds_text
from ciwrap.review.project import load_config_if_any
from ciwrap.runs.capture_index import read_checkpoint, read_index
from ciwrap.snapshot.store import encoded
from ciwrap.snapshot.take import ProgramWatcher, snapshot_of_program

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


@command("record", example="ciwrap record --against earlier -- ./simulate")
@click.option("-o", "--output", default="recorded", help="Folder of the run (`recorded`).")
@click.option("--check", "check_name", metavar="NAME", help="Bounds of this check of ciwrap.yaml.")
@click.option("--config", "config_path", metavar="PATH", help="The ciwrap.yaml of that check.")
@click.option("--atol", type=float, help="Absolute error bound of all variables.")
@click.option("--rtol", type=float, help="Relative error bound of all variables.")
@click.option(
    "--residues",
    is_flag=True,
    help="Allow comparing other runs with this one, and making a golden of it.",
)
@section(
    "Comparing while it runs",
    click.option(
        "--against",
        metavar="RUN",
        type=click.Path(),
        help="Compare the run with this golden, capture or recorded run while it runs.",
    ),
    click.option(
        "--on-divergence",
        type=click.Choice(_POLICIES),
        default="report",
        help="What to do when it does not match: report it at the end, call the program back,"
        " have the program stop, or abort it (`report`).",
    ),
    click.option(
        "--patience",
        type=click.IntRange(0),
        default=1,
        metavar="N",
        help="Stop or abort N checkpoints after the first that does not match (1).",
    ),
    click.option(
        "--stop-within",
        type=click.FloatRange(0),
        default=60.0,
        metavar="SECONDS",
        help="Abort a program that still records this long after it should have stopped (60).",
    ),
    click.option(
        "--wait",
        type=click.FloatRange(0),
        default=60.0,
        metavar="SECONDS",
        help="Wait this long for a checkpoint of a run that is still recorded itself (60).",
    ),
    common_option,
)
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
@verbosity_options
@click.argument("words", nargs=-1, metavar="-- COMMAND...")
@click.pass_obj
def record_command(
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
    if not words:
        raise click.UsageError("there is no command to run")
    said = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value is not None}
    chosen = RuleOptions(SettingsLayer.of(said), check_name, config_path)
    request = _Request(Path(output), words, chosen, more)
    with alone_in(request.folder), _reference(request) as reference:
        outcome = _run(request, reference)
        if reference is None:
            return _tell_recorded(request, outcome)
        code = _tell_compared(session, request, reference, outcome)
        add_to_run_file(request.folder, exit_code=code)  # for `ciwrap run`
        return code


class _Request(Struct, frozen=True):
    """What the command line says. options: those that are but passed on."""

    folder: Path
    words: tuple[str, ...]
    chosen: RuleOptions
    options: Mapping[str, Any]


@contextlib.contextmanager
def _reference(request: _Request) -> Iterator[Reference | None]:
    """Raises UsageError for options that say nothing, and NotComparableError for what nothing can
    be compared with.
    """
    if request.options["again"] and request.options["replace"]:
        raise UsageError("--again goes on with a run, and --replace deletes it", remedy="give one")
    against = request.options["against"]
    if against is None:
        context = click.get_current_context()
        for one in context.command.params:
            is_given = context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
            if is_given and one.name in _OF_COMPARISON:
                raise UsageError(f"{one.opts[0]} needs --against", remedy="give --against RUN")
        yield None
        return

    if os.path.realpath(against) == os.path.realpath(request.folder):
        raise UsageError(
            "a run cannot be compared with itself",
            file=request.folder,
            remedy="give another folder with -o",
        )
    if request.chosen.check is None:
        _refuse_beyond_golden(Path(against))
    with prepared(Path(against), request.folder / _REFERENCE_FOLDER) as reference:
        yield reference


def _refuse_beyond_golden(against: Path) -> None:
    """Raises UsageError for the golden of a check here that says more than goldens keep, such as
    `combine` or a mask: held to what the golden tells, another run would match.
    """
    golden = golden_file_of(against)
    config = None if golden is None else load_config_if_any(None)
    if golden is None or config is None:
        return
    for check in config.checks:
        own = config.golden_dir / f"{escape_name(check.name)}{BINARY_SUFFIX}"
        if os.path.realpath(own) == os.path.realpath(golden):
            refuse_beyond_trees(check)


def _run(request: _Request, reference: Reference | None) -> CommandOutcome:
    library = library_path()
    folder, chosen = request.folder, request.chosen
    table = bounds_table(chosen.check, chosen.layer, residues=request.options["residues"])
    refuse_files_of_others(folder)
    if request.options["replace"]:
        remove_run(folder)
    if journal_paths(folder) and not request.options["again"]:
        raise UsageError(
            "holds a recorded run already",
            file=folder,
            remedy="give another folder with -o, --replace to delete that run, or --again if this"
            " is a restart of it",
        )
    shown = CommandSettings(request.words, Path.cwd()).text
    bounds_from = "given" if chosen.layer.given else None
    if chosen.check is not None:
        bounds_from = f"check {chosen.check.name}"
    write_run_file(folder, RunFile(command=shown, bounds_from=bounds_from))
    env = {
        "CIWRAP_RECORD": _absolute(folder),
        "CIWRAP_RECORD_LIBRARY": str(library),
        "CIWRAP_RECORD_BOUNDS": "",
        "CIWRAP_RECORD_AGAINST": "" if reference is None else _absolute(reference.journals),
        "CIWRAP_RECORD_ON_DIVERGENCE": request.options["on_divergence"],
        "CIWRAP_RECORD_PATIENCE": str(request.options["patience"]),
        "CIWRAP_RECORD_WAIT": str(request.options["wait"]),
        "CIWRAP_RECORD_STOP_WITHIN": str(request.options["stop_within"]),
        "CIWRAP_RECORD_RESIDUES": "1" if request.options["residues"] else "",
        "CIWRAP_RECORD_ENDED_MARK": _absolute(folder / _ENDED_MARK),
        **kokkos_environment(request.options["views"], request.options["step"]),
    }
    if table is not None:
        bounds_path = folder / BOUNDS_FILE
        bounds_path.write_text(table)
        env["CIWRAP_RECORD_BOUNDS"] = _absolute(bounds_path)
    watcher = ProgramWatcher()
    settings = CommandSettings(request.words, Path.cwd(), env=env)
    with set_after_end(folder / _ENDED_MARK) as stop:
        outcome = run_command(settings, watcher=watcher, stop=stop)
    if stop.is_set():
        outcome = replace(outcome, exit_code=-signal.SIGTERM)
    taken = snapshot_of_program(Path.cwd(), watcher.seen, command=outcome.command)
    write_snapshot(folder, encoded(taken))
    return outcome


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - resolve() would follow links


def _tell_recorded(request: _Request, outcome: CommandOutcome) -> int:
    """Says what was recorded. Raises the first error of the recording, and of the program."""
    folder = request.folder
    with opened(folder, outcome) as capture:
        click.echo(recorded_text(capture, folder))
        refuse_nothing(capture, folder, request.options["views"], outcome)
        faults: list[CiwrapError] = [*capture.faults]
        if capture.open_journals:
            faults.append(not_ended(folder))
    if outcome.exit_code != 0:  # perhaps the reason of the others
        faults.insert(0, failure_of(outcome, so="so what it recorded may not be all"))
    for fault in faults[1:]:
        click.echo(f"error: {fault}", err=True)
    if faults:
        raise faults[0]
    return 0


def _tell_compared(
    session: Session, request: _Request, reference: Reference, outcome: CommandOutcome
) -> int:
    """Says what was recorded and what it comes to against the reference; of a program that failed,
    or was ended, nothing matches.
    """
    with opened(request.folder, outcome) as capture:
        click.echo(recorded_text(capture, request.folder), err=True)
        refuse_nothing(capture, request.folder, request.options["views"], outcome)
        rules = request.chosen.make_rules()
        suspects = tuple(
            one for one in capture.suspects if not capture.leaves_out(one, rules.is_ignored)
        )
        open_journals = capture.open_journals
        # A process is told to end once it had its checkpoints of patience.
        patience = request.options["patience"]
        is_ended = request.options["on_divergence"] in ("stop", "abort") and any(
            capture.followed.get(one, -1) >= patience for one in suspects
        )
    first = next(iter(suspects), None)
    if is_ended and first is not None:
        add_to_run_file(request.folder, ended_in=first.iteration)
    result = judge_recorded(
        reference,
        request.folder,
        rules,
        is_common=request.options["common"],
        resources=session.resources,
    )
    is_good = result.verdict.is_good
    fault: CiwrapError | None = None
    if is_good:
        fault = _fault(request, outcome, has_open=bool(open_journals))
    elif not is_ended and outcome.exit_code != 0:  # perhaps why it does not match
        fault = failure_of(outcome, so="so what it recorded may not be all")
    is_lost = fault is not None and is_good
    notes = (*first_words(result, first),)
    run = RunResult(
        Verdict.NOT_COMPARABLE if is_lost else result.verdict,
        (result,),
        kind=session.kind,
        messages=(*notes, *((message_of(fault),) if fault is not None else ())),
        seconds=outcome.seconds,
    )
    if fault is None and _is_printed_by_run(request):
        for note in notes:
            click.echo(note.text, err=True)
        return session.emit(run, Path.cwd(), is_printed=False)
    return session.emit(run, Path.cwd())


def _is_printed_by_run(request: _Request) -> bool:
    """Whether this is the command of a check, and `ciwrap run` prints the same comparison next."""
    check, golden = request.chosen.check, golden_file_of(Path(request.options["against"]))
    if check is None or golden is None or request.chosen.layer.given or request.options["common"]:
        return False
    run = recorded_run_of(check)
    is_its_output = run is not None and run.samefile(request.folder)
    return is_its_output and os.path.realpath(golden) == os.environ.get(RUN_GOLDEN)


def _fault(request: _Request, outcome: CommandOutcome, *, has_open: bool) -> CiwrapError | None:
    """Why a run is not all there, of which all that was recorded matches."""
    if outcome.exit_code != 0:
        return failure_of(outcome, so="though all that it recorded matches")
    return not_ended(request.folder) if has_open else None


_SO = "and recorded nothing"


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else records into the folder meanwhile: the report at the end is read from there.
    Raises LockBusyError, WriteFailedError.
    """
    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=folder) from error
    try:
        with writer_lock(folder, 0, doing="recording", is_needed=False):
            yield
    finally:
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if nothing came of it


def opened(folder: Path, outcome: CommandOutcome) -> RecordedCapture:
    """The run, to be closed. Raises what went wrong with a command that left none, and the errors
    of reading.
    """
    try:
        return RecordedCapture(folder)
    except OutputMissingError as error:
        if outcome.exit_code == 0:
            raise
        raise failure_of(outcome, so=_SO) from error


def refuse_nothing(
    capture: RecordedCapture, folder: Path, views: Iterable[str], outcome: CommandOutcome
) -> None:
    """Raises an error if no array was recorded, or none of a label that was asked for."""
    names = {
        one.identity
        for directory in read_index(capture).checkpoints.values()
        for one in read_checkpoint(capture, directory).variables
    }
    fault = None if names else _why_nothing(capture, folder, outcome)
    if fault is not None:
        raise fault
    for text in views:
        label = text.partition("=")[0]
        if not any(name_matches(label, name) for name in names):
            raise NotComparableError(
                f"no View was recorded whose label is {label!r}",
                file=folder,
                remedy="see which labels the program gives, and that --step is one of its regions"
                " or kernels",
            )
    if not names:
        raise NotComparableError(
            "holds no array: none was recorded",
            file=folder,
            remedy="add arrays before the first checkpoint (docs/how-to/record-a-program.md)",
        )


def _why_nothing(
    capture: RecordedCapture, folder: Path, outcome: CommandOutcome
) -> CiwrapError | None:
    """What kept a program from recording anything, if something did."""
    if outcome.exit_code != 0:
        return failure_of(outcome, so=_SO)
    if capture.faults:
        return capture.faults[0]
    return not_ended(folder) if capture.open_journals else None


def recorded_text(capture: RecordedCapture, folder: Path) -> str:
    keys = read_index(capture).checkpoints
    ranks = len({rank for _, rank in keys})
    iterations = plural(len({iteration for iteration, _ in keys}), "iteration")
    text = (
        f"recorded {iterations} of {ranks} {'process' if ranks == 1 else 'processes'} in {folder}"
    )
    if not capture.costs:
        return text
    slowest = max(capture.costs, key=lambda one: one.seconds)
    held = max(one.held_bytes for one in capture.costs)
    return (
        f"{text}; that took up to {seconds_text(max(slowest.seconds, 1e-3))} of a process's time"
        f" ({bytes_text(slowest.data_bytes)} hashed) and up to {bytes_text(held)} of its memory"
    )


def not_ended(folder: Path) -> NotComparableError:
    return NotComparableError(
        "not all was recorded: a process was killed, or could not write to the end",
        file=folder,
        remedy="see what the program said on stderr",
    )


def first_words(result: CheckResult, first: VariableId | None) -> Iterator[Message]:
    """What first did not match, in the order in which points were recorded, and which element."""
    if first is None:
        return
    found = next((one for one in result.variables if one.id == first), None)
    moved = None if found is None else next(iter(found.moved_elements), None)
    where = "" if moved is None else f": {moved_words(moved)}"
    yield Message(MessageLevel.NOTE, f"the first that did not match while it ran: {first}{where}")


_LOOK_SECONDS = 0.2


@command("watch", example="ciwrap watch recorded")
@click.argument("run", metavar="RUN", type=click.Path())
@click.option("--once", is_flag=True, help="Show the state now, and stop.")
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Show it this often; default: every second on a terminal, else only at the end.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    default=10.0,
    metavar="SECONDS",
    help="Wait this long for the run to begin (10).",
)
def watch_command(run: str, once: bool, every_seconds: float | None, wait_seconds: float) -> int:
    """Show, for each variable of RUN, how much of its bound it has used, and how fast that grows.

    RUN is the folder of a run that `ciwrap record --against` records, or has recorded. Shares are
    known of variables with residues. Ends when the run has ended; Ctrl-C ends it before.

    Exit codes: 0 what was compared matches, 1 something does not, 2 usage, 3 something, or
    everything, was not compared.
    """
    watched = WatchedRun(Path(run))
    _await(watched, Path(run), 0.0 if once else wait_seconds)
    screen = _Screen(every_seconds)
    try:
        while not (has_ended := watched.has_ended()) and not once:
            screen.show(watched, has_ended=False)
            time.sleep(_LOOK_SECONDS)
            watched.look()
        watched.look()
    except KeyboardInterrupt:
        screen.show(watched, has_ended=False, is_last=True)
        raise
    screen.show(watched, has_ended=has_ended, is_last=True)
    return _code(watched, has_ended=has_ended)


def _await(watched: WatchedRun, run: Path, seconds: float) -> None:
    """Raises OutputMissingError if the run does not begin."""
    until = time.monotonic() + seconds
    watched.look()
    while not watched.ranks:
        if time.monotonic() >= until:
            raise OutputMissingError(
                "holds no journal: nothing was recorded",
                file=run,
                remedy="give the folder that `ciwrap record -o` was given",
            )
        time.sleep(_LOOK_SECONDS)
        watched.look()


class _Screen:
    """Where it is shown: on a terminal each time in the place of the last."""

    def __init__(self, every_seconds: float | None) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._every = every_seconds
        if every_seconds is None and self._is_terminal:
            self._every = 1.0
        encoding = sys.stdout.encoding or "ascii"
        self._has_bars = encoding.lower().replace("-", "") in ("utf8", "utf16")
        self._shown_at = 0.0
        self._height = 0

    def show(self, watched: WatchedRun, *, has_ended: bool, is_last: bool = False) -> None:
        is_due = self._every is not None and time.monotonic() - self._shown_at >= self._every
        if not is_last and not is_due:
            return
        self._shown_at = time.monotonic()
        lines = [*watch_lines(watched, has_ended=has_ended, has_bars=self._has_bars)]
        if self._is_terminal:
            lines = [line[: max(20, terminal_width()) - 1] for line in lines]
            if self._height:
                sys.stdout.write(f"\x1b[{self._height}A\x1b[J")
            self._height = len(lines)
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def _code(watched: WatchedRun, *, has_ended: bool) -> int:
    found = watched.variables.values()
    if any(one.first_no_match is not None for one in found):
        return int(ExitCode.DIFFER)
    is_all = all(one.compared and not one.not_compared for one in found)
    # What a process that was killed would have recorded was not compared either.
    is_all = is_all and not watched.errors and not (has_ended and watched.closed < watched.ranks)
    return int(ExitCode.MATCH if found and is_all else ExitCode.NOT_COMPARABLE)


@command("native", example="ciwrap native --include")
@click.option("--include", is_flag=True, help="The folder of ciwrap/record.h.")
@click.option("--fortran", is_flag=True, help="The folder of ciwrap_record.f90 and its C.")
@click.option("--cmake", is_flag=True, help="The folder for -Dciwrap-record_DIR of CMake.")
@click.option("--pkg-config", is_flag=True, help="The folder for PKG_CONFIG_PATH.")
@click.option("--library", is_flag=True, help="The library that programs load to record.")
@click.option("--kokkos", is_flag=True, help="The library for KOKKOS_TOOLS_LIBS.")
def native_command(**wanted: bool) -> int:
    """Print where the files lie that programs which record are built with: a path for each option,
    in the order below, and all of them for none.

    A program needs none of this to run: `ciwrap record` tells it where the library is.

    Exit codes: 0 printed, 2 usage, 3 this installation lacks it.
    """
    places = {
        "include": include_folder,
        "fortran": fortran_folder,
        "cmake": cmake_folder,
        "pkg-config": pkg_config_folder,
        "library": library_path,
        "kokkos": kokkos_path,
    }
    chosen = [name for name in places if wanted[name.replace("-", "_")]]
    for name in chosen:
        click.echo(places[name]())
    if not chosen:
        for name, find in places.items():
            click.echo(f"{name:<12}{find()}")
    return 0
