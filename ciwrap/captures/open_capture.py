"""Opens what a path holds: a capture, or a recorded run, which only then needs its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.container import CaptureFile

if TYPE_CHECKING:
    from pathlib import Path


def open_capture(path: Path) -> CaptureFile:
    """A capture file, or the capture that a recorded run's journals make."""
    if not path.is_dir():
        return CaptureFile(path)
    from ciwrap.captures.recording import RecordedCapture

    return RecordedCapture(path)
