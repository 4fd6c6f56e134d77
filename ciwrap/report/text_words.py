"""What was found in a text that was compared token by token, in words."""

from __future__ import annotations

from ciwrap.model import VariableResult
from ciwrap.model.variable_result import (
    DifferingNumbers,
    MaskedText,
    TextPlace,
    TextResult,
    UnpairedLines,
)
from ciwrap.report.text import A_AND_B, grouped_number, plural, safe_name, safe_text, short_number

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
        numbers, places = plural(text.numbers, "number"), plural(text.place_count, "place")
        parts.append(f"{text.differing:,} of {numbers} {verb}, in {places}")
    unpaired = sum(text.unpaired_lines)
    if unpaired:
        parts.append(f"{unpaired:,} {'line has' if unpaired == 1 else 'lines have'} no partner")
    return "; ".join(parts)


def text_lines(variable: VariableResult, sides: tuple[str, str], *, is_verbose: bool) -> list[str]:
    """The places of a text that does not match, a line or two for each, and what to do."""
    text, most = variable.text, 50 if is_verbose else 5
    if text is None or not (text.differing or any(text.unpaired_lines)):
        return []
    lines = [summary_line(text)]
    for place in text.places[:most]:
        lines.append(text_place_words(place))
        lines += [f"  {hint}" for hint in place_hints(place, sides, with_place=is_verbose)]
    lines += _rest(text.place_count, min(most, len(text.places)), "place")
    for one in text.unpaired[:most]:
        lines.append(unpaired_words(one, sides))
        if one.remedies:
            lines.append(f"  {looks_like(one.remedies, sides)}")
    lines += _rest(text.unpaired_count, min(most, len(text.unpaired)), "template")
    return lines


def masked_lines(variable: VariableResult, most: int = 50) -> list[str]:
    """What was left out of a text, a line for each template."""
    text = variable.text
    if text is None:
        return []
    lines = [masked_words(one) for one in text.masked[:most]]
    return lines + _rest(text.masked_count, len(lines), "template that is left out")


def masked_words(one: MaskedText) -> str:
    """`left out by times: 3 numbers in 3 lines "Elapsed: ...", first at 5:10: 3.2 s / 3.4 s`."""
    template = safe_name(one.template, _LONGEST_TEMPLATE)
    words = f"left out by {one.by}: {plural(one.numbers, 'number')} in {plural(one.lines, 'line')}"
    if one.golden is None or one.new is None:
        return f'{words} "{template}"'
    golden, new = (safe_name(side.text, _LONGEST_TEXT) for side in (one.golden, one.new))
    return f'{words} "{template}", first at {position(one.golden, one.new)}: {golden} / {new}'


def _rest(count: int, shown: int, noun: str) -> list[str]:
    return [f"... and {plural(count - shown, f'more {noun}')}"] if count > shown else []


def text_place_words(place: DifferingNumbers) -> str:
    """`6 x "MD| step [s] #" number 1, first at 747:52: 2.5 / 15.3`."""
    golden, new = (safe_name(one.text, _LONGEST_TEXT) for one in (place.golden, place.new))
    return (
        f'{place.count:,} x "{safe_name(place.template, _LONGEST_TEMPLATE)}" number {place.number},'
        f" first at {position(place.golden, place.new)}: {golden} / {new}"
    )


def place_hints(place: DifferingNumbers, sides: tuple[str, str], *, with_place: bool) -> list[str]:
    """What to know about a place, and what would leave it out."""
    hints = []
    if place.is_part:
        hints.append("may be part of a longer number, so it has to be written alike")
    if place.remedies:
        hints.append(looks_like(place.remedies, sides))
    elif with_place and place.place and safe_text(place.place) == place.place:
        is_option = sides == A_AND_B
        quoted = place.place.replace("'", "'\\''" if is_option else "''")
        words = f"--ignore-places '{quoted}'" if is_option else f"ignore_places: ['{quoted}']"
        hints.append(f"to leave it out: {words}")
    return hints


def position(golden: TextPlace, new: TextPlace) -> str:
    """`747:52`, and the other side's place where that is another."""
    ours, theirs = (f"{one.line}:{one.column}" for one in (golden, new))
    return ours if ours == theirs else f"{ours} / {theirs}"


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


def looks_like(remedies: tuple[str, ...], sides: tuple[str, str]) -> str:
    """`looks like timings: ignore: [times]`, or the options where two runs are compared."""
    words = " and ".join(_LOOKS[one] for one in remedies if one in _LOOKS)
    if sides == A_AND_B:
        options = " ".join(f"--ignore-tokens {one}" for one in remedies)
        return f"looks like {words}: {options}"
    return f"looks like {words}: ignore: [{', '.join(remedies)}]"
