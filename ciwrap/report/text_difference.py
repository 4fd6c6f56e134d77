"""Where two texts differ that are too long to be shown whole: by lines, or around the first
character.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence

from ciwrap.report.text import first_apart, safe_name

# A pair of texts up to so long is read at a glance.
_SHORT = 60
_MOST_PLACES = 5
# difflib takes the square of the lines that are compared.
_MOST_LINES = 400
_BEFORE = 20
_LONGEST = 90


def text_difference_lines(golden: str, new: str, sides: tuple[str, str]) -> list[str] | None:
    """What differs between two texts, a line for each place; None for short texts, and for what is
    no text: the whole elements say it.

    golden, new: elements as results hold them, texts as Python writes them. sides: what the two are
    called.
    """
    texts = _texts(golden, new)
    if texts is None or (max(map(len, texts)) <= _SHORT and "\n" not in "".join(texts)):
        return None
    old, new_lines = (one.splitlines() for one in texts)
    if old == new_lines or max(len(old), len(new_lines)) == 1:
        return [_around_first(texts, sides)]
    places = list(_places(old, new_lines, sides))
    more = len(places) - _MOST_PLACES
    return [*places[:_MOST_PLACES], *([f"{more:,} more lines differ"] if more > 0 else [])]


def _texts(golden: str, new: str) -> tuple[str, str] | None:
    if golden[:1] not in "'\"" or new[:1] not in "'\"":
        return None
    try:
        return str(ast.literal_eval(golden)), str(ast.literal_eval(new))
    except (SyntaxError, ValueError):
        return None  # a number that is no character


def _around_first(texts: tuple[str, str], sides: tuple[str, str]) -> str:
    first = max(0, first_apart(*texts) - _BEFORE)
    shown = [repr(one[first : first + _LONGEST]) for one in texts]
    return f"from character {first + 1:,} on: {sides[0]} {shown[0]}, {sides[1]} {shown[1]}"


def _places(old: Sequence[str], new: Sequence[str], sides: tuple[str, str]) -> Iterator[str]:
    """A line of words for each line that differs."""
    if max(len(old), len(new)) > _MOST_LINES:
        at = first_apart(old, new)
        yield f"line {at + 1:,} is the first that differs"
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        both = min(last - first, new_last - new_first)
        for step in range(both):
            golden, other = _shown(old[first + step]), _shown(new[new_first + step])
            yield f"line {first + step + 1:,}: {sides[0]} {golden}, {sides[1]} {other}"
        for at in range(first + both, last):
            yield f"line {at + 1:,}: only {sides[0]} has {_shown(old[at])}"
        for at in range(new_first + both, new_last):
            yield f"line {at + 1:,}: only {sides[1]} has {_shown(new[at])}"


def _shown(line: str) -> str:
    return safe_name(repr(line), _LONGEST)
