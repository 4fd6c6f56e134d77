"""Which tests run, and on how many examples: the quick tier, the full one, the exhaustive modes.

The quick tier is what runs on each change. The full one (CIWRAP_FULL=1, `tools/test --full`) adds
the tests marked `slow`, and four times the examples. The exhaustive modes (CIWRAP_LONG=1) add the
tests marked `long`.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

IS_LONG = os.environ.get("CIWRAP_LONG") == "1"
# Somebody who names one of these profiles wants all tests, and all of their examples.
_IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") in ("long", "mutation")
IS_FULL = IS_LONG or _IS_THOROUGH or os.environ.get("CIWRAP_FULL") == "1"


def examples(full: int) -> int:
    """How many examples a property is tried on, of which the full tier tries `full`."""
    return full if IS_FULL else max(1, full // 4)


def slow_ones(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The tests that the quick tier leaves out.

    A test marked `slow`, and of the cases of a function marked `slow(but=N)` all but the first N.
    """
    seen: Counter[str] = Counter()
    found = set()
    for item in items:
        kept = [marker.kwargs.get("but", 0) for marker in item.iter_markers("slow")]
        function = item.nodeid.partition("[")[0]
        if kept and seen[function] >= min(kept):
            found.add(item)
        elif kept:
            seen[function] += 1
    return found
