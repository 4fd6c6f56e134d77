"""What `ciwrap record` says of a run, in the run's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciwrap.captures.journals import OWN_FILES, RUN_FILE
from ciwrap.errors import UsageError, WriteFailedError

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "ciwrap recorded run 1"


class RunFile(msgspec.Struct, frozen=True):
    """What `run.json` holds. format: FORMAT in a file of ours. command: without secrets.
    bounds_from: who asked for its bounds; None if nobody but the program itself.
    """

    format: str = ""
    command: str = ""
    bounds_from: str | None = None


def write_run_file(run: Path, said: RunFile) -> None:
    """Makes the folder, if need be. Raises WriteFailedError."""
    try:
        run.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.encode(msgspec.structs.replace(said, format=FORMAT)) + b"\n"
        (run / RUN_FILE).write_bytes(text)
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error


def run_file_of(run: Path) -> RunFile | None:
    """What a run's folder says; None for one without a run file of ours."""
    try:
        found = msgspec.json.decode((run / RUN_FILE).read_bytes(), type=RunFile)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.format == FORMAT else None


def refuse_files_of_others(run: Path) -> None:
    """Raises UsageError if somebody else's files have the names that `ciwrap record` writes, or
    deletes with a run: those in a folder without a run file of ours.
    """
    found = next((run / name for name in OWN_FILES if (run / name).exists()), None)
    if found is not None and run_file_of(run) is None:
        raise UsageError(
            "already exists and is not of a recorded run; it is left as it is",
            file=found,
            remedy="give another folder with -o",
        )
