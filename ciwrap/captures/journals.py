"""Where the journals of a recorded run lie."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.errors import NotComparableError, WriteFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.model import VariableId

RUN_FILE = "run.json"
BOUNDS_FILE = "bounds.txt"
SNAPSHOT_FILE = "snapshot.json"
OWN_FILES = (RUN_FILE, SNAPSHOT_FILE, BOUNDS_FILE)  # beside the journals
_JOURNALS = "[0-9][0-9][0-9]*/rank-*.cwr"


def journal_paths(run: Path) -> list[Path]:
    """The journals of a recorded run, by rank."""
    return sorted(run.glob(_JOURNALS))


def is_recording(path: Path) -> bool:
    """Whether a folder is a recorded run."""
    return path.is_dir() and next(path.glob(_JOURNALS), None) is not None


def remove_run(run: Path) -> None:
    """Deletes a recorded run, and nothing else that lies in its folder. Raises WriteFailedError."""
    journals = journal_paths(run)
    if not journals:
        return
    try:
        for path in (*journals, *(run / one for one in OWN_FILES)):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in journals}:
            with contextlib.suppress(OSError):  # something else lies in it
                folder.rmdir()
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error


def recorded_again(run: Path, identity: VariableId) -> NotComparableError:
    """Why a second recording of a variable, which is not as the first one, is no variable of its
    own that a run may have or lack.
    """
    return NotComparableError(
        "was recorded twice, and not the same",
        file=run,
        variable=identity.text,
        remedy="record the run in one go, and each iteration once",
    )
