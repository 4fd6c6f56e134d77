"""The command line. Nobody imports it; it imports everything else, late. Read first `main`."""

from __future__ import annotations

import gc
import os
import sys

from ciwrap import __version__

# New objects between two searches for garbage. What modules are made of is none, and with Python's
# 700 it is looked through a hundred times before a command begins.
_GC_THRESHOLD = 100_000


def _told_version(arguments: list[str]) -> bool:
    """Whether that is all that was asked for, and written. click would say the same after it has
    been loaded, and says what is wrong where nothing can be written.
    """
    if arguments not in (["--version"], ["-V"]):
        return False
    try:
        os.write(1, f"ciwrap {__version__}\n".encode())
    except OSError:
        return False
    return True


def main() -> None:
    """Entry point of `ciwrap`."""
    if _told_version(sys.argv[1:]):
        return
    gc.set_threshold(_GC_THRESHOLD)
    from ciwrap.base.late import use_one_thread
    from ciwrap.cli.main import settle_streams

    settle_streams()
    use_one_thread()
    from ciwrap.cli.main import run

    try:
        sys.exit(run(sys.argv[1:]))
    finally:
        # The process ends: what is left is the system's to take back, not to be searched once more.
        gc.freeze()
