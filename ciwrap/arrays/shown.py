"""Texts of arrays as messages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LAST_CHARACTER = 0x10FFFF


def element_texts(elements: NDArray[Any]) -> list[str]:
    """Each element as text that reads back exactly."""
    if elements.dtype.kind in "SU":
        return text_literals(elements)
    return [str(one) for one in elements]


def text_literals(texts: NDArray[Any]) -> list[str]:
    """Fixed-width texts or bytes as Python writes them: `'ab'`, `b'ab'`.

    What a damaged file holds need not be characters; NumPy cannot even take such an element out of
    its array. A number that is no character is shown as `\\U00110000`.
    """
    if texts.dtype.kind == "U":
        order = texts.dtype.str[:1]
        numbers = np.ascontiguousarray(texts).reshape(-1).view(f"{order}u4")
        if numbers.size and int(numbers.max()) > _LAST_CHARACTER:
            return [_literal(one) for one in numbers.reshape(texts.size, -1)]
    return [repr(one) for one in texts.tolist()]


def _literal(numbers: NDArray[Any]) -> str:
    ends = np.flatnonzero(numbers)
    used = numbers[: int(ends[-1]) + 1 if ends.size else 0].tolist()
    return "'" + "".join(map(_character, used)) + "'"


def _character(number: int) -> str:
    return f"\\U{number:08x}" if number > _LAST_CHARACTER else repr(chr(number))[1:-1]
