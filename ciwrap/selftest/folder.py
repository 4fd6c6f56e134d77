"""The temporary folder of a self-test, which goes away again also where it is interrupted."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.interrupts import later_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ciwrap-selftest-"))
    try:
        yield folder
    finally:
        with later_interrupts():  # a second one would leave half of it for good
            shutil.rmtree(folder, ignore_errors=True)
