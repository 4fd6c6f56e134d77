"""Opens what a path holds: a capture, or a recorded run, which only then needs its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.container import CaptureFile

if TYPE_CHECKING:
    from pathlib import Path

_JOURNALS = "[0-9][0-9][0-9]*/rank-*.cwr"


def journal_paths(run: Path) -> list[Path]:
    """The journals of a recorded run, by rank."""
    return sorted(run.glob(_JOURNALS))


def is_recording(path: Path) -> bool:
    """Whether a folder is a recorded run."""
    return path.is_dir() and next(path.glob(_JOURNALS), None) is not None


def open_capture(path: Path) -> CaptureFile:
    """A capture file, or the capture that a recorded run's journals make."""
    if not path.is_dir():
        return CaptureFile(path)
    from ciwrap.captures.recording import RecordedCapture

    return RecordedCapture(path)
