"""Cells of text tables as numbers: strict, the same in every locale.

A number is decimal with an optional exponent, also with Fortran's letters (`1.0D-3`) or without any
(`1.0-103`), or hexadecimal (`0x1.8p+1`), or nan, inf, infinity in any case.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.logs.numbers import DECIMAL, NOT_FINITE, WITHOUT_LETTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(DECIMAL)
_FRACTION = re.compile(r"[0-9]+([eEdDqQ][+-]?[0-9]+)?")
# As hours and degrees are printed whose minutes follow: a 0 would be without its sign.
_MINUS_OF_MORE = re.compile(r"-00+")
_WITHOUT_LETTER = re.compile(WITHOUT_LETTER)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?"
)
_WORD = re.compile(NOT_FINITE)
_HEXADECIMAL_WHOLE = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
_IS_NO_ZERO = re.compile(r"[+-]?(?:0[xX][0.]*[1-9a-fA-F]|[0.]*[1-9])")
LOST_MINUS = "has a minus that 0 loses, as of an angle"
_LETTERS = str.maketrans("dDqQ", "eeee")
_LARGEST_EXACT = 1 << 53  # whole numbers up to here are exact in a double
_MOST_DIGITS = 4000  # that Python makes a whole number of
_INT64 = np.iinfo(np.int64)


class Kind(Enum):
    """What a column holds. UNKNOWN: all of its cells so far are empty."""

    UNKNOWN = "unknown"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


class CellError(ValueError):
    """A cell that is not what its column holds; `row` counts from the start of the block."""

    def __init__(self, row: int, cell: str, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.cell = cell
        self.problem = problem


def parse_float(cell: str) -> float | None:
    """The number in a cell, None if it is none. Raises OverflowError for one that a double would
    make infinite or zero, and for a whole number that no double is.
    """
    text = cell.strip()
    value = _nearest(text)
    problem = None if value is None else _lost(text, value)
    if problem is not None:
        raise OverflowError(problem)
    return value


def _nearest(text: str) -> float | None:
    if _DECIMAL.fullmatch(text):
        return float(text.translate(_LETTERS))
    if _WORD.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return float("inf")
    if _WITHOUT_LETTER.fullmatch(text):
        return float(f"{text[:-4]}e{text[-4:]}")
    return None


def _lost(text: str, value: float) -> str | None:
    """What of the number in a text the double nearest to it does not say; None if it says all."""
    is_infinite = value in (np.inf, -np.inf) and not _WORD.fullmatch(text)
    if is_infinite or (value == 0 and _IS_NO_ZERO.match(text)):
        return "is beyond the range of a double"
    if value == 0 and loses_minus(text):
        return LOST_MINUS
    if abs(value) >= _LARGEST_EXACT and _is_whole(text) and _whole(text) != value:
        return "is a whole number that a double does not hold"
    return None


def _is_whole(text: str) -> bool:
    return bool(_WHOLE.fullmatch(text) or _HEXADECIMAL_WHOLE.fullmatch(text))


def _whole(text: str) -> int | None:
    """The whole number in a text; None for one of more digits than anybody means."""
    if _HEXADECIMAL_WHOLE.fullmatch(text):
        return int(text, 16)
    return int(text) if len(text) <= _MOST_DIGITS else None


def first_lost(
    values: NDArray[np.float64], text_of: Callable[[int], str], *, takes_rounded: bool = False
) -> tuple[int, str] | None:
    """Where the first text is of which the double nearest to it does not say all, and why.

    takes_rounded: whether a double may be another whole number than its text.
    """
    with np.errstate(invalid="ignore"):
        is_far = np.isinf(values) if takes_rounded else np.abs(values) >= _LARGEST_EXACT
    for row in np.flatnonzero(is_far | (values == 0)).tolist():
        problem = _lost(text_of(row), float(values[row]))
        if problem is not None:
            return row, problem
    return None


def loses_minus(text: str) -> bool:
    """Whether the number 0 would be without the minus that a whole number has."""
    return _MINUS_OF_MORE.fullmatch(text.strip()) is not None


def parse_floats(words: Sequence[str]) -> list[float] | None:
    """The numbers in words; None if one of them is none, or one that no double is."""
    try:
        found = [parse_float(word) for word in words]
    except OverflowError:
        return None
    numbers = [value for value in found if value is not None]
    return numbers if len(numbers) == len(found) else None


def is_number(cell: str) -> bool:
    try:
        return parse_float(cell) is not None
    except OverflowError:
        return True


def kind_of(cells: Sequence[str], before: Kind, *, is_simple: bool) -> Kind:
    """What a column holds, given what the cells before these said.

    The first cell that is not empty decides between numbers and text; numbers are whole until one
    is not. is_simple: all cells are ASCII without underscores, which Python's own parsers may then
    read.
    """
    if before is Kind.TEXT or before is Kind.FLOAT:
        return before
    if before is Kind.UNKNOWN:
        first = next((cell for cell in cells if cell.strip()), None)
        if first is None:
            return Kind.UNKNOWN
        if not is_number(first):
            return Kind.TEXT
    if is_simple:
        try:
            for cell in cells:
                int(cell)
        except ValueError:
            pass  # empty cells and those too long for int() are looked at below
        else:
            return Kind.INT
    return Kind.INT if all(_WHOLE.fullmatch(cell.strip()) for cell in cells) else Kind.FLOAT


def may_be_decimal(columns: Sequence[Sequence[str]]) -> bool:
    """Whether two columns may be one of numbers with a decimal comma, of which 1,05 is no 1,5."""
    if not columns:
        return True  # without rows nothing is said
    return len(columns) == 2 and all(
        _WHOLE.fullmatch(whole) and _FRACTION.fullmatch(fraction)
        for whole, fraction in zip(*columns, strict=True)
    )


def as_ints(cells: Sequence[str], *, is_simple: bool) -> NDArray[np.int64]:
    """Raises CellError."""
    if is_simple:
        try:
            simple = np.array(list(map(int, cells)), dtype=np.int64)
            if not any(loses_minus(cells[row]) for row in np.flatnonzero(simple == 0).tolist()):
                return simple
        except (ValueError, OverflowError):
            pass  # which of them it is, and why, is found below
    found = np.empty(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        text = cell.strip()
        if not _WHOLE.fullmatch(text):
            problem = "is empty" if not text else "is not a whole number"
            raise CellError(row, cell, problem)
        if loses_minus(text):
            raise CellError(row, cell, f"{LOST_MINUS} (say 'types: {{column: text}}')")
        value = int(text) if len(text) < 30 else _INT64.max + 1
        if not _INT64.min <= value <= _INT64.max:
            raise CellError(row, cell, "does not fit 64 bits (say 'types: {column: float}')")
        found[row] = value
    return found


def as_floats(
    cells: Sequence[str], *, is_simple: bool, empty_is_nan: bool, takes_rounded: bool = False
) -> NDArray[np.float64]:
    """takes_rounded: whether a double may be another whole number than its cell.

    Raises CellError.
    """
    found = _doubles(cells, is_simple=is_simple, empty_is_nan=empty_is_nan)
    lost = first_lost(found, lambda row: cells[row].strip(), takes_rounded=takes_rounded)
    if lost is not None:
        row, problem = lost
        raise CellError(row, cells[row], problem)
    return found


def _doubles(cells: Sequence[str], *, is_simple: bool, empty_is_nan: bool) -> NDArray[np.float64]:
    if is_simple:
        try:
            return np.array(list(map(float, cells)), dtype=np.float64)
        except ValueError:
            pass  # another spelling, or a bad cell: one by one below
    found = np.empty(len(cells), dtype=np.float64)
    for row, cell in enumerate(cells):
        value = _nearest(cell.strip())
        if value is None:
            if cell.strip():
                raise CellError(row, cell, "is not a number")
            if not empty_is_nan:
                raise CellError(row, cell, "is empty (set 'empty_is_nan: true' to read it as NaN)")
            value = np.nan
        found[row] = value
    return found


def as_texts(cells: Sequence[str], width: int) -> NDArray[Any]:
    """Raises CellError for one that is longer than `width`."""
    for row, cell in enumerate(cells):
        if len(cell) > width:
            raise CellError(row, cell, "was shorter a moment ago (is the file being written?)")
    return np.array(cells, dtype=f"<U{width}")
