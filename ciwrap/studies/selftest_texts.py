"""What `selftest` plants in a text that is compared token by token: a number in every place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ciwrap import _core
from ciwrap.base.late import numpy as np
from ciwrap.check.texts import section_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ciwrap.arrays.values import TextRules
    from ciwrap.model import ErrorBound, VariableResult

_LONGEST_TEMPLATE = 80


class Place(msgspec.Struct, frozen=True):
    """A number of a text: the first one in its place of its line's template.

    words: which one, for people. offset: of its first byte. text: as it is. left_out_by: what
    leaves it out of the comparison; None if nothing does. is_part: it has to be written alike.
    """

    words: str
    offset: int
    text: bytes
    left_out_by: str | None
    is_part: bool


def places_of(text: bytes, rules: TextRules) -> list[Place]:
    """Every distinct place of a text, in order. Raises CiwrapError for rules that mean nothing."""
    found = []
    for one in _core.text_places(
        text,
        ignore=rules.ignore,
        ignore_lines=rules.ignore_lines,
        ignore_places=rules.ignore_places,
        sections=section_rows(rules, text, text),
    ):
        template = one["template"].decode("utf-8", "replace")
        if len(template) > _LONGEST_TEMPLATE:
            template = f"{template[:_LONGEST_TEMPLATE]}..."
        words = f'"{template}" number {one["number"]}, line {one["line"]}'
        number = text[one["offset"] : one["offset"] + one["size"]]
        found.append(Place(words, one["offset"], number, one["left_out_by"], one["is_part"]))
    return found


def other_number(
    place: Place, bound: ErrorBound, beyond: Callable[[object, ErrorBound], object | None]
) -> bytes | None:
    """Another number for a place, the nearest beyond the bound; None if there is none.

    Where a number has to be written alike, its last digit is another one.
    """
    if place.is_part:
        at = max(i for i, c in enumerate(place.text) if chr(c).isdigit())
        digit = b"%d" % ((place.text[at] - ord("0") + 1) % 10)
        return place.text[:at] + digit + place.text[at + 1 :]
    value = np.float64(_as_python(place.text))
    if not np.isfinite(value):
        return b"0.5"
    found = beyond(value, bound)
    return None if found is None else repr(float(found)).encode()  # type: ignore[arg-type]


def _as_python(number: bytes) -> str:
    """`1.0D-05` as `1.0e-05`, `1.5-100` as `1.5e-100`."""
    text = re.sub("[dDqQ](?=[-+0-9])", "e", number.decode("ascii"))
    return re.sub(r"(?<=[0-9.])([-+])", r"e\1", text)


def caught_places(
    text: bytes,
    changes: Sequence[tuple[Place, bytes]],
    judge: Callable[[bytes], VariableResult | None],
) -> set[int]:
    """The offsets of the places in which another number is reported.

    changes: places in ascending order, and another number for each. judge: what the check has
    against a text; it is asked about all changes at once, and where not each of them is a
    difference, about halves of them.
    """
    if not changes:
        return set()
    found = judge(_with_numbers(text, changes))
    if found is None:
        return set()
    told = found.text
    if (
        len(changes) == 1
        or told is None
        or (told.differing == len(changes) and not any(told.unpaired_lines))
    ):
        return {place.offset for place, _ in changes}
    middle = len(changes) // 2
    return caught_places(text, changes[:middle], judge) | caught_places(
        text, changes[middle:], judge
    )


def _with_numbers(text: bytes, changes: Iterable[tuple[Place, bytes]]) -> bytes:
    """The text with other numbers in these places, which ascend."""
    parts, at = [], 0
    for place, number in changes:
        parts += [text[at : place.offset], number]
        at = place.offset + len(place.text)
    return b"".join((*parts, text[at:]))
