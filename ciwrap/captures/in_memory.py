"""Captures that are made to be read at once, and lie in memory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def file_in_memory() -> Iterator[Path]:
    """An empty file that has no place on a disk; it lasts as long as somebody has it open."""
    memory = os.memfd_create("ciwrap-capture", os.MFD_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
