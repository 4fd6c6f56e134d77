"""The command line. Nobody imports it; it imports everything else, late. Read first `main`."""

from __future__ import annotations

import gc
import sys

# New objects between two searches for garbage. What modules are made of is none, and with Python's
# 700 it is looked through a hundred times before a command begins.
_GC_THRESHOLD = 100_000


def main() -> None:
    """Entry point of `ciwrap`."""
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
