"""The command line. Nobody imports it; it imports everything else, late."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `ciwrap`."""
    from ciwrap.cli.streams import settle_streams
    from ciwrap.late import use_one_thread

    settle_streams()
    use_one_thread()
    from ciwrap.cli.main import run

    sys.exit(run(sys.argv[1:]))
