"""Numbers of documents as doubles, none of which may become another one's."""

from __future__ import annotations

import math
import re

from ciwrap.documents.records import DocumentError

_SHOWN = 40
_IS_NO_ZERO = re.compile(r"[+-]?[0._]*[1-9]")


def double_of(text: str) -> float:
    """The double nearest to a decimal number. Raises DocumentError for one that is so large that it
    would be infinite, or so small that it would be zero.
    """
    value = float(text)
    if not math.isfinite(value):
        raise DocumentError(f"holds a number that is too large: {text[:_SHOWN]}")
    if value == 0 and _IS_NO_ZERO.match(text):
        raise DocumentError(f"holds a number that is too small: {text[:_SHOWN]}")
    return value
