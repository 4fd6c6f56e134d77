"""Captures that stand for a run whose data are elsewhere, or gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ciwrap.captures.container import MAGIC
from ciwrap.captures.index_codec import read_index
from ciwrap.captures.journals import is_recording
from ciwrap.captures.listing import capture_paths
from ciwrap.captures.open_capture import open_capture
from ciwrap.captures.side import Side
from ciwrap.errors import UnreadableFileError
from ciwrap.readers.layout import FoundOutputs

if TYPE_CHECKING:
    from pathlib import Path


def fingerprint_of(path: Path) -> Path | None:
    """The capture that stands for a run without data: the file or recorded run `path` itself, or
    that of a folder that holds no other file; None for a run with data and for anything else.
    Raises UnreadableFileError.
    """
    known = capture_of(path)
    if known == path:
        return path
    return None if known is None or (path.is_dir() and _holds_files(path)) else known


def capture_of(path: Path) -> Path | None:
    """The capture or recorded run at `path`, or the capture of the run there; None if there is
    none. Raises UnreadableFileError.
    """
    try:
        if is_recording(path):
            return path
        if path.is_dir():
            return next((one for one in capture_paths(path) if one.is_file()), None)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return path if file.read(len(MAGIC)) == MAGIC else None
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error


def _holds_files(folder: Path) -> bool:
    """Whether there is any file that is not hidden, nor in a hidden folder."""
    for _, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if any(not name.startswith(".") for name in names):
            return True
    return False


def open_fingerprint(run: Path, capture_path: Path) -> Side:
    """A run of which there is a capture alone. run: what the user calls it.

    Raises the errors of `CaptureFile`, and CorruptCaptureError for an index that is damaged.
    """
    capture = open_capture(capture_path)
    try:
        index = read_index(capture)
    except BaseException:
        capture.close()
        raise
    return Side(
        run,
        FoundOutputs(()),
        {key: [] for key in index.checkpoints},
        capture,
        index,
        header=index.header,
        is_fingerprint=True,
        notes=capture.notes,
        faults=capture.faults,
    )
