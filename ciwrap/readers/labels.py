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
# By NetCDF's conventions of the variable's own type: 1e20 as that type holds it, so that it is the
# same of a variable in another precision.
_OF_THE_TYPE = {
    *("_FillValue", "flag_masks", "flag_values", "missing_value"),
    *("valid_max", "valid_min", "valid_range"),
}


def labels_of(
    dimensions: Sequence[str | None] | None, attributes: Mapping[str, Any] | None = None
) -> Labels:
    """The labels of a variable.

    dimensions: their names, None for one without a name; None where the format names none.
    attributes: the values of those attributes that count (numbers, texts, arrays of them).
    """
    found = {
        name: text_of(value, is_of_the_type=name in _OF_THE_TYPE)
        for name, value in (attributes or {}).items()
    }
    if dimensions and any(dimensions):
        found[DIMS] = names_as_text(dimensions)
    return tuple(sorted(found.items()))


def names_as_text(names: Sequence[str | None]) -> str:
    """Several names as the text of a label, None for what has none; other names give another."""
    return _cut(" ".join(_name(one) for one in names))


def plain_name(name: str | bytes) -> str:
    """A name of HDF5, which h5py gives as bytes where they are not UTF-8; these are escaped."""
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def text_of(value: Any, *, is_of_the_type: bool = False) -> str:
    """A value as text: equal numbers of one kind give one text, other numbers another one, and a
    text and its bytes the same.

    Floats of any width have as many digits as tell doubles apart, so that the float32 next to 0.1
    is not 0.1; those of the variable's own type have as many as tell numbers of that type apart.
    Characters that cannot be printed are escaped, as are backslashes, and blanks within
    one of several texts; of a long text the beginning and a digest are left. Raises
    UnsupportedDtypeError for what is neither number nor text.
    """
    if getattr(value, "shape", ()) is None:  # an attribute of HDF5 without a value
        return ""
    array = np.asarray(value)
    parts = [_escaped(_scalar_text(one, is_of_the_type)) for one in array.reshape(-1)]
    if len(parts) > 1:
        parts = [_in_one_word(part) for part in parts]
    return _cut(" ".join(parts))


def _scalar_text(value: Any, is_of_the_type: bool) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, (str, bool, int, float, np.number, np.bool_)):
        raise UnsupportedDtypeError("has an attribute that is neither number nor text")
    is_short = isinstance(value, (np.float16, np.float32)) and not is_of_the_type
    return repr(float(value)) if is_short else str(value)


def _name(dimension: str | None) -> str:
    """A name among others; `-` stands for one without a name."""
    if not dimension:
        return "-"
    return "\\-" if dimension == "-" else _in_one_word(_escaped(dimension))


def _in_one_word(escaped: str) -> str:
    """Texts are joined by blanks, so a blank within one is marked."""
    return escaped.replace(" ", "\\ ")


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() and c != "\\" else ascii(c)[1:-1] for c in text)


def _cut(plain: str) -> str:
    if len(plain) <= MOST_CHARACTERS:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: MOST_CHARACTERS - _DIGEST_CHARACTERS - 8]}... ({digest})"
