"""ciwrap's own measurements: `python -m benchmarks --help`."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

# `python -m benchmarks` puts the source tree first, which has a compiled core only after
# tools/dev-install. Without one the installed ciwrap is meant.
if not any((_ROOT / "ciwrap").glob("_core*.so")):
    sys.path[:] = [*(entry for entry in sys.path if Path(entry).resolve() != _ROOT), str(_ROOT)]
