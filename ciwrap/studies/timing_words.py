"""What `ciwrap time` says of a comparison, and of one command alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import percent_text, plural, time_text
from ciwrap.statistics.spread import PairedComparison, TimingVerdict
from ciwrap.studies.timing import WHAT

if TYPE_CHECKING:
    from ciwrap.studies.timing import TimedSide, TimingDocument


def beside_words(document: TimingDocument) -> str | None:
    """What the kind of time that does not decide says, and what processor time does not see."""
    found = document.beside
    if found is None:
        return None
    verdict = str(found.verdict)
    other = "cpu" if document.decides == "time" else "time"
    if found.lower is not None and found.upper is not None:
        verdict += f", {interval_text(found.lower, found.upper, WHAT[other])} for B"
    name = "processor time" if other == "cpu" else "time on the clock"
    return (
        f"{name} alone: {verdict}; processor time does not see waiting for disks, networks and"
        " other programs, and counts threads that wait by spinning as work"
    )


def looks_words(document: TimingDocument) -> str | None:
    """How sure a verdict is that was asked for again and again; None if it was not."""
    if len(document.looks) < 2 or document.comparison is None:
        return None
    looks = document.looks
    sure = 1 - (1 - document.comparison.confidence) * len(looks)
    return (
        f"pairs were added until it was decided, up to {looks[-1]}: {_given_text(sure)} confidence"
        f" for all {len(looks)} looks together"
    )


def headline(found: PairedComparison, what: str = "time") -> str:
    """The verdict in one line: `changed: B takes 9.8 % more time than A`. what: is compared."""
    if found.verdict is TimingVerdict.CHANGED:
        return f"changed: B takes {change_text(found.change, what)} than A"
    if found.verdict is TimingVerdict.NOT_CHANGED:
        as_much = "as long" if what == "time" else f"as much {what}"
        return f"not changed: B takes {as_much} as A, to within {_given_text(found.margin)}"
    more = "longer" if what == "time" else f"more {what}"
    return f"inconclusive: these pairs do not tell whether B takes {more} than A"


def alone_headline(side: TimedSide) -> str:
    """How long one command takes: `A takes 1.2 s in the median of 10 runs, 1.1 s to 1.4 s`."""
    spread = side.spread
    return (
        f"it takes {time_text(spread.median)} in the median of {plural(spread.count, 'run')}:"
        f" {time_text(spread.minimum)} to {time_text(spread.maximum)}"
    )


def explanation(found: PairedComparison, what: str = "time", *, is_call: bool = False) -> list[str]:
    """How sure the verdict is, and what would make it surer. what: is compared. is_call: whether
    more pairs are asked for by an argument, `pairs=20`, and not by an option.
    """
    sure = f"with {_given_text(found.confidence)} confidence, from {plural(found.pairs, 'pair')}"
    if found.lower is None or found.upper is None:
        least = found.pairs + (found.more_pairs or 0)
        needed = plural(least, "pair")
        return [f"{_given_text(found.confidence)} confidence takes {needed} at least"]
    lines = [f"B takes {interval_text(found.lower, found.upper, what)} than A, {sure}"]
    if found.verdict is not TimingVerdict.CHANGED:
        half, most = found.seen_in_half or 0.0, found.seen_in_most or 0.0
        lines.append(
            f"that many pairs detect a change of {percent_text(half)} half of the time, and one of"
            f" {percent_text(most)} nine times in ten; {margin_words(found)}"
        )
    if found.verdict is TimingVerdict.INCONCLUSIVE:
        lines.append(_what_would_help(found, "pairs=" if is_call else "--pairs "))
    return lines


def margin_words(found: PairedComparison) -> str:
    """What is not counted: `changes below 5 % are ignored`. The margin is a ratio of the
    slower side to the other: 4.8 % less time of B is 5 % more time of A.
    """
    return f"changes below {_given_text(found.margin)} are ignored"


def _what_would_help(found: PairedComparison, option: str) -> str:
    if found.more_pairs is None:
        if (found.seen_in_half or 0.0) > found.margin * (1 + 1e-9):
            return (
                "the times vary too much for more pairs to settle it: a quieter machine, longer"
                " runs or a wider margin would"
            )
        return "the change is about as large as the margin, so more pairs will hardly settle it"
    more, option = (
        plural(found.more_pairs, "more pair"),
        f"{option}{found.pairs + found.more_pairs}",
    )
    return f"about {more} would settle it in nine of ten cases ({option})"


def change_text(change: float, what: str = "time") -> str:
    """`9.8 % more time`, `12 % less time`."""
    return f"{percent_text(abs(change))} {_side_of(change)} {what}"


def interval_text(lower: float, upper: float, what: str = "time") -> str:
    """`between 3.1 % less and 12 % more time`."""
    if _side_of(lower) != _side_of(upper):
        less = f"{percent_text(abs(lower))} {_side_of(lower)}"
        return f"between {less} and {change_text(upper, what)}"
    near, far = sorted((lower, upper), key=abs)
    return f"between {percent_text(abs(near))} and {change_text(far, what)}"


def _given_text(share: float) -> str:
    """A share that somebody has set, as it was set: `99.999 %`."""
    return f"{100 * share:.5g} %"


def _side_of(change: float) -> str:
    return "more" if change >= 0 else "less"
