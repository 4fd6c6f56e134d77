"""What a rule finds in a line: fields with their places, or a word that is none of them."""

from __future__ import annotations

from typing import TypeAlias

from ciwrap.logs.numbers import WORD, means_number, minus_before
from ciwrap.model.forms import cut
from ciwrap.structs import Struct


class Field(Struct, frozen=True):
    """A place in a template. kind: "number", "int" or "text"."""

    name: str
    kind: str = "number"


class Found(Struct, frozen=True):
    """A field in a line: its bytes from `start` to before `end`."""

    field: Field
    start: int
    end: int


class Problem(Struct, frozen=True):
    """A line that fits but for one word, which is not what its field wants."""

    start: int
    end: int
    text: str


Match: TypeAlias = "tuple[Found, ...] | Problem | None"


def fits(line: bytes, found: Match) -> bool:
    """Whether a line matches, or does but for a number that is damaged. Where a word stands in
    place of the number, it is another line.
    """
    if isinstance(found, Problem):
        return means_number(line[found.start : found.end])
    return found is not None


def no_number(line: bytes, start: int, end: int, why: str = ", not a number") -> Problem:
    """Words that stand where a number should."""
    shown = cut(line[start:end].decode("utf-8", "replace"))
    return Problem(start, end, f"is {shown!r}{why}")


def minus_apart(line: bytes, at: int) -> Problem | None:
    """A minus before the number at `at`, if white space parts the two; None without one.

    Whether it is of the value only a template tells that says where it stands.
    """
    begin = minus_before(line, at)
    word = WORD.match(line, at)
    if begin is None or word is None:
        return None
    return no_number(line, begin, word.end(), ", a minus apart from its number")
