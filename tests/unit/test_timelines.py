"""What is said of how a variable goes beyond its bound: no more than was compared."""

from __future__ import annotations

import pytest

from ciwrap.model.variable_result import PointState, Timeline, TimelinePoint, Trend
from ciwrap.report.where import timeline_lines
from ciwrap.runs.compare_runs import trend

STATES = {
    ".": PointState.MATCH,
    "~": PointState.WITHIN,
    "!": PointState.UNDECIDED,
    "#": PointState.BEYOND,
    "?": PointState.NOT_COMPARED,
    "A": PointState.FIRST_ONLY,
}


def points(marks: str, *shares: float) -> tuple[TimelinePoint, ...]:
    return tuple(
        TimelinePoint(10 * at, None, STATES[mark], bound_share=share)
        for at, (mark, share) in enumerate(zip(marks, shares, strict=True))
    )


@pytest.mark.parametrize(
    ("marks", "shares", "expected"),
    [
        (".~", (0, 0.5), None),
        ("##", (5, 5), Trend.FROM_THE_START),
        (".#", (0, 500), Trend.JUMPS),
        ("~##", (0.5, 2, 3), Trend.GROWS),
        ("~##", (0.5, 3, 3), Trend.STEADY),
        (".#.", (0, 3, 0), Trend.COMES_AND_GOES),
        # One iteration is no trend.
        ("..#", (0, 0, 3), None),
        # Of what is undecided nobody knows how far it is off: the share is that of all others.
        ("~!!", (0.5, 0.6, 0.6), None),
        ("~!#", (0.5, 0.6, 3), None),
        # Nor what was before the first one that was compared.
        ("?##", (0, 5, 5), None),
        ("A#", (0, 5), None),
    ],
)
def test_a_trend_is_told_of_what_was_compared(
    marks: str, shares: tuple[float, ...], expected: Trend | None
) -> None:
    assert trend(points(marks, *shares)) is expected


def test_a_jump_is_after_what_was_compared_last() -> None:
    some = points(".?#", 0, 0, 500)
    lines = list(timeline_lines([Timeline("u", some, trend(some))]))
    assert lines[-1] == "u  .?#  jumps between 0 and 20"
