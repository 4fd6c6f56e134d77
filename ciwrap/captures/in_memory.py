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
    """The name of a file that is gone once nobody has it open: in memory where the system can."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("ciwrap-capture", os.MFD_CLOEXEC)
        try:
            yield Path(f"/proc/self/fd/{memory}")
        finally:
            os.close(memory)
    else:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="ciwrap-capture-") as folder:
            yield Path(folder) / "capture"
