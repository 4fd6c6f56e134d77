"""What comparing two texts token by token has found, gathered by template and place."""

from __future__ import annotations

# Types of fields are needed when the program runs: documents are checked against them.
from msgspec import Struct

from ciwrap.details import Number


class TextPlace(Struct, frozen=True):
    """Where something stands in a text. line, column: from 1. text: what stands there, cut."""

    line: int
    column: int
    text: str


class DifferingNumbers(Struct, frozen=True):
    """Numbers that differ in one place of one template.

    template: the line with `#` for its numbers. number: which of them, from 1. count: lines in
    which it differs. golden, new: the first of these. remedies: sets of `ignore`, each of which
    would leave it out.
    """

    template: str
    number: int
    count: int
    golden: TextPlace
    new: TextPlace
    max_abs_difference: Number
    max_bound_share: Number
    remedies: tuple[str, ...] = ()


class UnpairedLines(Struct, frozen=True):
    """Lines of one template that have no partner on the other side.

    golden_count, new_count: how many there are on each side. golden, new: the first of them.
    remedies: sets of `ignore` that together would have paired the first one.
    """

    template: str
    golden_count: int = 0
    new_count: int = 0
    golden: TextPlace | None = None
    new: TextPlace | None = None
    remedies: tuple[str, ...] = ()


class TextResult(Struct, frozen=True):
    """What a comparison of two texts has found. Counts are of numbers or of lines.

    lines: of the golden text and of the new one. unpaired_lines: those without a partner, on each
    side; they were not compared. ignored_lines: those that `ignore_lines` covers, on each side.
    numbers: of lines that have a partner. differing: those of them beyond the bound. ignored:
    those that `ignore` covers in lines that are not equal, and of ignored lines. places: where
    numbers differ, the first few; place_count: all of them. unpaired: templates of lines without
    partner, the first few; unpaired_count: all of them. not_utf8: sides that are read as Latin-1.
    """

    lines: tuple[int, int]
    unpaired_lines: tuple[int, int]
    ignored_lines: tuple[int, int]
    numbers: int
    differing: int
    ignored: int
    places: tuple[DifferingNumbers, ...] = ()
    place_count: int = 0
    unpaired: tuple[UnpairedLines, ...] = ()
    unpaired_count: int = 0
    not_utf8: tuple[str, ...] = ()
