"""`python -m ciwrap` is `ciwrap`."""

from __future__ import annotations

from ciwrap.cli import main

if __name__ == "__main__":
    main()
