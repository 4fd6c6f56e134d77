"""What `ciwrap time` found, in plain words."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from ciwrap.report import text
from ciwrap.report.text import percent_text
from ciwrap.statistics.pairs import PairedComparison, TimingVerdict

if TYPE_CHECKING:
    from ciwrap.timing.document import TimedSide, TimingDocument

# Starting a process takes a few milliseconds by itself.
_SHORT_SECONDS = 0.02
_MUCH_MEMORY = 0.4
_BUSY = 0.5


def headline(found: PairedComparison) -> str:
    """The verdict in one line: `changed: B takes 9.8 % more time than A`."""
    if found.verdict is TimingVerdict.CHANGED:
        return f"changed: B takes {change_text(found.change)} than A"
    if found.verdict is TimingVerdict.NOT_CHANGED:
        return f"not changed: B takes as long as A, to within {_given_text(found.margin)}"
    return "inconclusive: these pairs do not tell whether B takes longer than A"


def explanation(found: PairedComparison, *, is_call: bool = False) -> list[str]:
    """How sure the verdict is, and what would make it surer. is_call: whether more pairs are asked
    for by an argument, `pairs=20`, and not by an option.
    """
    sure = (
        f"with {_given_text(found.confidence)} confidence, from {text.plural(found.pairs, 'pair')}"
    )
    if found.lower is None or found.upper is None or found.smallest_detectable is None:
        least = found.pairs + (found.more_pairs or 0)
        needed = text.plural(least, "pair")
        return [f"{_given_text(found.confidence)} confidence takes {needed} at least"]
    lines = [f"B takes {interval_text(found.lower, found.upper)} than A, {sure}"]
    if found.verdict is not TimingVerdict.CHANGED:
        lines.append(
            "the smallest change that these pairs would show is about"
            f" {percent_text(found.smallest_detectable)}; {margin_words(found)}"
        )
    if found.verdict is TimingVerdict.INCONCLUSIVE:
        lines.append(_what_would_help(found, "pairs=" if is_call else "--pairs "))
    return lines


def margin_words(found: PairedComparison) -> str:
    """What is not counted: `less than 5 % more time of either side does not count`. The margin is a
    ratio, so that A and B may change places: 4.8 % less time of B is 5 % more time of A.
    """
    return f"less than {_given_text(found.margin)} more time of either side does not count"


def _what_would_help(found: PairedComparison, option: str) -> str:
    if found.more_pairs is None:
        if (found.smallest_detectable or 0.0) > found.margin:
            return (
                "the times vary too much for more pairs to settle it: a quieter machine, longer"
                " runs or a wider margin would"
            )
        return "the change is about as large as the margin, so more pairs will hardly settle it"
    more = text.plural(found.more_pairs, "more pair")
    return f"about {more} would settle it ({option}{found.pairs + found.more_pairs})"


def table_of(document: TimingDocument) -> list[tuple[str, str, str]]:
    """Rows of what is measured: its name, that of A, that of B."""
    a, b = (_figures(side) for side in document.sides)
    return [(name, text, b[name]) for name, text in a.items()]


def _figures(side: TimedSide) -> dict[str, str]:
    spread = side.spread
    figures = {
        "median": seconds_text(spread.median),
        "median lies between (95 %)": (
            "too few runs"
            if spread.median_lower is None or spread.median_upper is None
            else f"{seconds_text(spread.median_lower)} and {seconds_text(spread.median_upper)}"
        ),
        "shortest, longest": f"{seconds_text(spread.minimum)}, {seconds_text(spread.maximum)}",
        "range over the shortest": percent_text(spread.range),
        "middle half over the median": percent_text(spread.iqr),
    }
    if side.together is not None:
        figures[f"{side.together.size} at once: the slowest takes"] = seconds_text(
            side.together.mean_makespan
        )
        figures["slowest of as many such runs by chance"] = seconds_text(
            side.together.expected_makespan
        )
        figures["share of time spent waiting for it"] = percent_text(side.together.waste)
    return figures


def notes(document: TimingDocument) -> list[str]:
    """What makes these times less sure than they look."""
    found = []
    if document.duet:
        found.append(
            "both sides of each pair ran at the same time, each on half of the cores; where one"
            " ends first, the other one runs on alone, so if they slow each other, the change is"
            " larger than what is told"
        )
    cores = int(document.environment.get("cpu_count", os.cpu_count() or 1))
    if document.load is not None and document.load > _BUSY * cores:
        found.append(
            f"the machine was busy with other things ({document.load:.1f} processes on"
            f" {text.plural(cores, 'core')}) when this began"
        )
    for side in document.sides:
        if side.spread.median < _SHORT_SECONDS:
            found.append(
                f"a run of {side.name} takes {seconds_text(side.spread.median)}, much of which is"
                " the start of a process; let it do more work"
            )
        # Of times that know nothing of each other, one in twenty sets goes beyond this.
        by_chance = 2 / math.sqrt(side.spread.count)
        if (side.spread.autocorrelation or 0) > max(_MUCH_MEMORY, by_chance):
            found.append(
                f"the times of {side.name} follow each other ({side.spread.autocorrelation:.2f}),"
                " so the machine changed meanwhile; pairs allow for that"
            )
        if side.spread.modes == 2:
            found.append(
                f"the times of {side.name} fall into two groups; something switches between runs"
            )
    return found


def side_text(side: TimedSide) -> str:
    """`A: main (1a2b3c4): ./simulate`."""
    revision = f"{text.safe_name(side.revision, 60)}: " if side.revision else ""
    return f"{side.name}: {revision}{text.safe_name(side.command, 120)}"


def change_text(change: float) -> str:
    """`9.8 % more time`, `12 % less time`."""
    return f"{percent_text(abs(change))} {_side_of(change)} time"


def interval_text(lower: float, upper: float) -> str:
    """`between 3.1 % less and 12 % more time`."""
    if _side_of(lower) != _side_of(upper):
        return f"between {percent_text(abs(lower))} {_side_of(lower)} and {change_text(upper)}"
    near, far = sorted((lower, upper), key=abs)
    return f"between {percent_text(abs(near))} and {change_text(far)}"


def _given_text(share: float) -> str:
    """A share that somebody has set, as it was set: `99.999 %`."""
    return f"{100 * share:.10g} %"


def _side_of(change: float) -> str:
    return "more" if change >= 0 else "less"


def seconds_text(seconds: float) -> str:
    """With three digits, where that of other texts rounds to a tenth."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.2f} s" if seconds < 10 else text.seconds_text(seconds)
