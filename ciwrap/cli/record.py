"""`ciwrap record`: runs a program that records its arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.errors import NotComparableError, UsageError

if TYPE_CHECKING:
    from ciwrap.config import Check
    from ciwrap.model import SettingsLayer

_BOUNDS_FILE = "bounds.txt"


@click.command(name="record", short_help="Run a program that records its arrays as it goes.")
@click.option("-o", "--output", default="recorded", help="Folder of the run (`recorded`).")
@click.option("--check", "check_name", metavar="NAME", help="Bounds of this check of ciwrap.yaml.")
@click.option("--config", "config_path", metavar="PATH", help="The ciwrap.yaml of that check.")
@click.option("--atol", type=float, help="Absolute error bound of all variables.")
@click.option("--rtol", type=float, help="Relative error bound of all variables.")
@click.option("--again", is_flag=True, help="The run goes on: a restart of the same program.")
@click.option(
    "--folder-of",
    "language",
    type=click.Choice(("c", "fortran")),
    help="Print the folder of ciwrap/record.h, or of ciwrap_record.f90, and end.",
)
@click.argument("words", nargs=-1, metavar="-- COMMAND...")
def command(
    output: str,
    check_name: str | None,
    config_path: str | None,
    atol: float | None,
    rtol: float | None,
    again: bool,
    language: str | None,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND and have it record its arrays, if it has ciwrap/record.h or ciwrap.Recorder.

    What was recorded (digests, no data) is compared with another run's by `ciwrap compare`, also
    while the program runs. Bounds of ciwrap.yaml, or of the options, come before those in the
    program. The program's output goes to stderr.

    Exit codes: 0 recorded, 2 usage, 3 the program failed or not all could be recorded.
    """
    from ciwrap.native.library import fortran_folder, include_folder

    if language is not None:
        click.echo(include_folder() if language == "c" else fortran_folder())
        return 0
    if not words:
        raise click.UsageError("there is no command to run")
    return _record(Path(output), _table(check_name, config_path, atol, rtol), words, again=again)


def _record(
    folder: Path, bounds: tuple[str | None, str | None], words: tuple[str, ...], *, again: bool
) -> int:
    from ciwrap.captures.recording import RunFile, journal_paths, write_run_file
    from ciwrap.config.settings import CommandSettings
    from ciwrap.native.library import library_path
    from ciwrap.running.run_command import failure_of, run_command

    library = library_path()
    table, whose = bounds
    if journal_paths(folder) and not again:
        raise UsageError(
            "holds a recorded run already",
            file=folder,
            remedy="give another folder with -o, or --again if this is a restart of that run",
        )
    write_run_file(folder, RunFile(command=words, bounds_from=whose))
    env = {
        "CIWRAP_RECORD": os.path.abspath(folder),  # noqa: PTH100 - resolve() would follow links
        "CIWRAP_RECORD_LIBRARY": str(library),
        "CIWRAP_RECORD_BOUNDS": "",
    }
    if table is not None:
        bounds_path = folder / _BOUNDS_FILE
        bounds_path.write_text(table)
        env["CIWRAP_RECORD_BOUNDS"] = str(bounds_path.absolute())
    outcome = run_command(CommandSettings(words, Path.cwd(), env=env))
    _tell(folder)
    if outcome.exit_code != 0:
        raise failure_of(outcome)
    return 0


def _table(
    check_name: str | None, config_path: str | None, atol: float | None, rtol: float | None
) -> tuple[str | None, str | None]:
    """The table of bounds for the program, and who asked for them; None if nobody did."""
    from ciwrap.native.bounds_table import bounds_table

    check, layer = _check(check_name, config_path), _layer(atol, rtol)
    table = bounds_table(check, layer)
    return table, None if table is None else "given" if check is None else f"check {check.name}"


def _check(name: str | None, config_path: str | None) -> Check | None:
    if name is None:
        if config_path is not None:
            raise UsageError("--config says nothing without --check", remedy="name a check of it")
        return None
    from ciwrap.cli.load_project import load_project

    return load_project(config_path, None, (name,)).checks[0]


def _layer(atol: float | None, rtol: float | None) -> SettingsLayer:
    from ciwrap.model import SettingsLayer

    said = {"atol": atol, "rtol": rtol}
    return SettingsLayer.of({name: value for name, value in said.items() if value is not None})


def _tell(folder: Path) -> None:
    """Says what was recorded. Raises the first error of the recording."""
    from ciwrap.captures.index_codec import read_index
    from ciwrap.captures.recording import RecordedCapture

    with RecordedCapture(folder) as capture:
        keys = read_index(capture).checkpoints
        ranks = len({rank for _, rank in keys})
        iterations = len({iteration for iteration, _ in keys})
        click.echo(
            f"recorded {iterations} {'iteration' if iterations == 1 else 'iterations'}"
            f" of {ranks} {'process' if ranks == 1 else 'processes'} in {folder}"
        )
        for fault in capture.faults[1:]:
            click.echo(f"error: {fault}", err=True)
        if capture.faults:
            raise capture.faults[0]
        if capture.open_journals:
            raise NotComparableError(
                "not all was recorded: a process was killed, or could not write to the end",
                file=folder,
                remedy="see what the program said on stderr",
            )
