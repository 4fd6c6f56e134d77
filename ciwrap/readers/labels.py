"""Labels: what a file says about a variable that belongs to its identity, as its dtype does.

Two variables of one name and other labels are two different things: `t(x, y)` and `t(y, x)`, or a
temperature in K and one in C. Labels are short texts, so that goldens and captures can keep them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ciwrap.errors import UnsupportedDtypeError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.readers.base import Labels

# The label that names the dimensions; all others are named as the attributes they come from.
DIMS = "dims"
MOST_CHARACTERS = 200
_DIGEST_CHARACTERS = 32


def labels_of(
    dimensions: Sequence[str | None] | None, attributes: Mapping[str, Any] | None = None
) -> Labels:
    """The labels of a variable.

    dimensions: their names, None for one without a name; None where the format names none.
    attributes: the values of those attributes that count (numbers, texts, arrays of them).
    """
    found = {name: text_of(value) for name, value in (attributes or {}).items()}
    if dimensions and any(dimensions):
        found[DIMS] = _short(names_as_text(dimensions))
    return tuple(sorted(found.items()))


def names_as_text(names: Sequence[str | None]) -> str:
    """Several names, None for what has none; other names give another text."""
    return " ".join(_name(one) for one in names)


def plain_name(name: str | bytes) -> str:
    """A name of HDF5, which h5py gives as bytes where they are not UTF-8; these are escaped."""
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def text_of(value: Any) -> str:
    """A value as text: equal values of one dtype give one text, and so do a text and its bytes.

    Numbers have as many digits as tell them apart. Characters that cannot be printed are escaped;
    of a long text the beginning and a digest are left. Raises UnsupportedDtypeError for what is
    neither number nor text.
    """
    if getattr(value, "shape", ()) is None:  # an attribute of HDF5 without a value
        return ""
    array = np.asarray(value)
    parts = [_scalar_text(one) for one in array.reshape(-1)]
    return _short(" ".join(parts))


def _scalar_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if not isinstance(value, (str, bool, int, float, np.number, np.bool_)):
        raise UnsupportedDtypeError("has an attribute that is neither number nor text")
    return str(value)


def _name(dimension: str | None) -> str:
    """The names are joined by blanks, so a blank within one is marked."""
    return "-" if not dimension else dimension.replace("\\", "\\\\").replace(" ", "\\ ")


def _short(text: str) -> str:
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if len(plain) <= MOST_CHARACTERS:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: MOST_CHARACTERS - _DIGEST_CHARACTERS - 8]}... ({digest})"
