"""The command line. Nobody imports it; it imports everything else, late."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `ciwrap`."""
    from ciwrap.cli.streams import settle_streams

    settle_streams()
    from ciwrap.cli.main import run

    sys.exit(run(sys.argv[1:]))
