"""Where two texts differ, in sentences: by template and place, and what would leave it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import grouped_number, plural, safe_name, short_number

if TYPE_CHECKING:
    from ciwrap.model import VariableResult
    from ciwrap.model.text_result import DifferingNumbers, TextPlace, TextResult, UnpairedLines

_LONGEST_TEMPLATE = 100
_LONGEST_TEXT = 60
# What each set of `ignore` covers.
_LOOKS = {
    "dates": "dates",
    "times": "timings",
    "paths": "paths",
    "hosts": "names of hosts",
    "pids": "numbers of processes",
    "memory": "sizes of memory",
}


def summary_line(text: TextResult) -> str:
    """`192 of 2,135 numbers differ, in 126 places; 119 lines have no partner`."""
    parts = []
    if text.differing:
        verb = "differs" if text.differing == 1 else "differ"
        places = f"{text.place_count:,} {'place' if text.place_count == 1 else 'places'}"
        parts.append(
            f"{text.differing:,} of {text.numbers:,} {'number' if text.numbers == 1 else 'numbers'}"
            f" {verb}, in {places}"
        )
    unpaired = sum(text.unpaired_lines)
    if unpaired:
        parts.append(f"{unpaired:,} {'line has' if unpaired == 1 else 'lines have'} no partner")
    return "; ".join(parts)


def text_lines(variable: VariableResult, most: int, sides: tuple[str, str]) -> list[str]:
    """The places of a text that does not match, a line or two for each, and what to do."""
    text = variable.text
    if text is None or not (text.differing or any(text.unpaired_lines)):
        return []
    lines = [summary_line(text)]
    for place in text.places[:most]:
        lines.append(place_words(place))
        if place.remedies:
            lines.append(f"  {looks_like(place.remedies)}")
    lines += _rest(text.place_count, min(most, len(text.places)), "place")
    for one in text.unpaired[:most]:
        lines.append(unpaired_words(one, sides))
        if one.remedies:
            lines.append(f"  {looks_like(one.remedies)}")
    lines += _rest(text.unpaired_count, min(most, len(text.unpaired)), "template")
    return lines


def _rest(count: int, shown: int, noun: str) -> list[str]:
    return [f"... and {plural(count - shown, f'more {noun}')}"] if count > shown else []


def place_words(place: DifferingNumbers) -> str:
    """`6 x "MD| step [s] #" number 1, first at 747:52: 2.5 / 15.3`."""
    return (
        f'{place.count:,} x "{safe_name(place.template, _LONGEST_TEMPLATE)}" number {place.number},'
        f" first at {position(place.golden, place.new)}: {pair_text(place)}"
    )


def position(golden: TextPlace, new: TextPlace) -> str:
    """`747:52`, and the other side's place where that is another."""
    ours, theirs = (f"{one.line}:{one.column}" for one in (golden, new))
    return ours if ours == theirs else f"{ours} / {theirs}"


def pair_text(place: DifferingNumbers) -> str:
    golden, new = (safe_name(one.text, _LONGEST_TEXT) for one in (place.golden, place.new))
    return f"{golden} / {new}"


def difference_text(place: DifferingNumbers) -> str:
    """The largest difference of a place; nothing where it is none of numbers."""
    return short_number(place.max_abs_difference) if place.max_abs_difference else ""


def unpaired_words(one: UnpairedLines, sides: tuple[str, str]) -> str:
    """`3 x "warning: #" only in golden, first at line 12`."""
    parts = []
    for side, count, first in zip(
        sides, (one.golden_count, one.new_count), (one.golden, one.new), strict=True
    ):
        if first is not None:
            where = "first at line" if count > 1 else "line"
            parts.append(f"{grouped_number(count)} in {side}, {where} {first.line}")
    template = safe_name(one.template, _LONGEST_TEMPLATE) or "(blank)"
    return f'no partner: "{template}": {"; ".join(parts)}'


def looks_like(remedies: tuple[str, ...]) -> str:
    """`looks like timings: ignore: [times]`."""
    words = " and ".join(_LOOKS[one] for one in remedies if one in _LOOKS)
    return f"looks like {words}: ignore: [{', '.join(remedies)}]"
