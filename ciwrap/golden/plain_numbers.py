"""The numbers of a small golden as people read them, in a diff say, and back to the same bytes."""

from __future__ import annotations

from ciwrap.arrays.values import element_texts, is_bfloat16, storage_dtype
from ciwrap.base.documents import DocumentError
from ciwrap.base.late import numpy as np

# The elements of a variable: numbers with blanks between them, or each text.
Plain = str | tuple[str, ...]
# More numbers are not read one by one by anybody, and take more bytes than in base64.
MOST_PLAIN = 16
_TRUTH = {"True": True, "False": False}


def plain_numbers(data: bytes, dtype: str) -> Plain | None:
    """A variable's elements as text; None where there are more than MOST_PLAIN, or where the text
    would not give the same bytes: NaN with bits of its own, bytes, bfloat16.

    dtype: an array-protocol string. data: the elements, one after the other.
    """
    stored = storage_dtype(dtype)
    if len(data) > MOST_PLAIN * stored.itemsize or is_bfloat16(dtype) or stored.kind == "S":
        return None
    try:
        elements = np.frombuffer(data, stored)
        is_text = stored.kind == "U"
        found = tuple(elements.tolist()) if is_text else " ".join(element_texts(elements))
        return found if numbers_of(found, dtype) == data else None
    except (DocumentError, ValueError):
        return None  # what a text holds need not be characters


def numbers_of(plain: Plain, dtype: str) -> bytes:
    """The bytes of what `plain_numbers` wrote. Raises DocumentError for anything else."""
    stored = storage_dtype(dtype)
    if isinstance(plain, str) == (stored.kind == "U"):
        raise DocumentError(f"holds no values of {dtype}")
    try:
        if not isinstance(plain, str):
            return np.array(plain, stored).tobytes()
        elements = plain.split()
        if stored.kind == "b":
            return np.array([_TRUTH[one] for one in elements], stored).tobytes()
        return np.array(elements, np.str_).astype(stored).tobytes()
    except (KeyError, OverflowError, ValueError):
        raise DocumentError(f"holds no values of {dtype}") from None
