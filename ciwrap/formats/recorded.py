"""Where the journals of a recorded run lie."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.base.errors import NotComparableError, WriteFailedError, escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN_FILE = "run.json"
BOUNDS_FILE = "bounds.txt"
SNAPSHOT_FILE = "snapshot.json"
OWN_FILES = (RUN_FILE, SNAPSHOT_FILE, BOUNDS_FILE)  # beside the journals
_JOURNALS = "[0-9][0-9][0-9]*/rank-*.cwr"
_UNRECORDED = "unrecorded-*.txt"
_MOST_BYTES = 1000


def journal_paths(run: Path) -> list[Path]:
    """The journals of a recorded run, by rank."""
    return sorted(run.glob(_JOURNALS))


def unrecorded_paths(run: Path) -> list[Path]:
    """The files that processes left which could not record: each says why."""
    return sorted(run.glob(_UNRECORDED))


def unrecorded(run: Path) -> Iterator[NotComparableError]:
    """An error for each process that could not record."""
    for path in unrecorded_paths(run):
        try:
            with path.open("rb") as stream:
                why = stream.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            why = error.strerror or str(error)
        yield NotComparableError(
            f"a process could not record: {escape(why.strip())}",
            file=path,
            remedy="see who else opens the run, and record it anew (--replace)",
        )


def own_files(run: Path) -> list[Path]:
    """All files that a recorded run may consist of."""
    others = [run / name for name in OWN_FILES]
    return [*journal_paths(run), *unrecorded_paths(run), *others]


def is_recording(path: Path) -> bool:
    """Whether a folder is a recorded run."""
    return path.is_dir() and next(path.glob(_JOURNALS), None) is not None


def remove_run(run: Path) -> None:
    """Deletes a recorded run, and nothing else that lies in its folder; also one of which there is
    nothing but why it could not be recorded. Raises WriteFailedError.
    """
    journals = journal_paths(run)
    if not journals and not unrecorded_paths(run):
        return
    try:
        for path in own_files(run):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in journals}:
            with contextlib.suppress(OSError):  # something else lies in it
                folder.rmdir()
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error
