"""How variables are gathered and ordered, and what charts are made of them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.model import CheckResult, ErrorBound, RunResult, VariableResult, Verdict
from ciwrap.report.cards import card_of
from ciwrap.report.charts import ChartSide, Spot, image_chart, share_histogram
from ciwrap.report.drawing import iteration_ticks
from ciwrap.report.lead import groups_of
from ciwrap.report.view import growth_of, share_class, timeline_of, where_words

if TYPE_CHECKING:
    from collections.abc import Sequence


def at(iteration: int, rank: int, share: float | None = 0.5, **more: Any) -> VariableResult:
    is_beyond = share is None or share > 1
    facts: dict[str, Any] = {"element_count": 10, "bound": ErrorBound(1e-6), **more}
    return VariableResult(
        facts.pop("name", "x"),
        Verdict.DIFFER if is_beyond else Verdict.MATCH,
        iteration=iteration,
        rank=rank,
        differing_count=1 if is_beyond else 0,
        max_bound_share=share,
        **facts,
    )


def groups(*variables: VariableResult) -> Any:
    verdict = Verdict.worst(variable.verdict for variable in variables)
    return groups_of(RunResult(verdict, (CheckResult("c", verdict, variables),)))


def run(ranks: int, iterations: int, bad: set[tuple[int, int]]) -> Any:
    (group,) = groups(
        *(at(i, r, 5.0 if (i, r) in bad else 0.5) for i in range(iterations) for r in range(ranks))
    )
    return group


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({(i, 1) for i in range(2, 6)}, "from iteration 2 on, on rank 1 only"),
        ({(3, 0), (3, 1), (3, 2)}, "in iteration 3 only, on all 3 ranks"),
        (
            {(1, 0), (4, 2)},
            "in 2 of 6 iterations, first in 1 on rank 0; on 2 of 3 ranks in all",
        ),
        (
            {(i, r) for i in range(2, 6) for r in range(3) if r == 1 or i >= 4},
            "from iteration 2 on rank 1, from 4 on all 3 ranks",
        ),
        (
            {(i, r) for i in range(6) for r in range(3) if i >= r},
            "from iteration 0 on rank 0, from 1 on ranks 0, 1, from 2 on all 3 ranks",
        ),
        (
            {(2, 0), (3, 0), (3, 1), (5, 2)},
            "in 3 of 6 iterations, first in 2 on rank 0; on 3 of 3 ranks in all",
        ),
        ({(i, r) for i in range(6) for r in range(3)}, "in all 6 iterations, on all 3 ranks"),
        (set(), ""),
    ],
)
def test_when_and_on_which_ranks(bad: set[tuple[int, int]], words: str) -> None:
    assert where_words(run(3, 6, bad)) == words


def test_many_stages_are_told_by_the_first_and_the_last() -> None:
    bad = {(i, r) for i in range(9) for r in range(8) if i > r}
    words = where_words(run(8, 9, bad))
    assert words == "from iteration 1 on rank 0, spreading, from 8 on all 8 ranks"


def test_the_earliest_stands_before_the_worst() -> None:
    found = groups(
        at(9, 0, 1e6, name="late"), at(3, 1, 2.0, name="early"), at(1, 0, 0.2, name="fine")
    )
    assert [group.name for group in found] == ["early", "late", "fine"]


def test_a_timeline_of_a_huge_run_stays_small() -> None:
    group = run(64, 400, {(333, 17)})
    chart = timeline_of(group)
    assert chart is not None
    assert len(chart) < 60_000
    assert chart.count("the first that does not match") == 1
    # One bad checkpoint among 25,600 is not averaged away.
    assert re.search(r'fill="#f[0-9a-f]{5}"', chart)


def test_a_growth_curve_keeps_the_worst_point() -> None:
    group = run(1, 5000, {(4321, 0)})
    chart = growth_of(group)
    assert chart is not None
    assert len(chart) < 60_000
    assert chart.count('class="mo"') == 1
    assert "iteration 4321: 5 x the bound" in chart


def test_what_is_not_known_is_drawn_hollow() -> None:
    (group,) = groups(at(1, 0), at(2, 0, None))
    chart = growth_of(group)
    assert chart is not None
    assert chart.count('class="mu"') == 1
    assert "iteration 2: not known" in chart
    assert ">?</text>" in chart


def test_nan_is_drawn_above_all_numbers_and_on_no_curve() -> None:
    (group,) = groups(at(1, 0, 0.5), at(2, 0, 100.0), at(3, 0, math.inf))
    chart = growth_of(group)
    assert chart is not None
    assert "\u221e</text>" in chart
    assert "iteration 3: not a number on one side, or far beyond the bound" in chart
    ys = [float(y) for y in re.findall(r'd="M[\d.]+ ([\d.]+)l', chart)]
    assert ys[1] < ys[0]
    (curve,) = re.findall(r'd="(M[^"]*)" class="cv"', chart)
    assert curve.count("L") == 1


def test_a_single_element_in_a_large_map_is_ringed() -> None:
    def rings(spot: Spot | None) -> int:
        return image_chart(b"", ChartSide(0, 100), ChartSide(1, 100), "x", spot).count("<circle")

    assert rings(Spot(0.5, 0.5, 0.51, 0.51)) == 1
    assert rings(Spot(0.5, 0.5, 0.51, 0.6)) == 0
    assert rings(None) == 0


def test_no_chart_without_data() -> None:
    (single,) = groups(at(1, 0, 5.0))
    assert timeline_of(single) is None
    assert growth_of(single) is None
    (exact,) = groups(at(1, 0, 0.0, bound=ErrorBound()), at(2, 0, 0.0, bound=ErrorBound()))
    assert growth_of(exact) is None
    (part,) = card_of(1, single, with_check=False).parts
    assert (part.figures.rows, part.figures.beside, part.levels) == ((), None, ())


@pytest.mark.parametrize(
    ("share", "beyond", "found"),
    [(0.0, False, 0), (1e-9, False, 1), (0.5, False, 17), (1.0, False, 17), (1.5, True, 18)],
)
def test_share_classes(share: float, beyond: bool, found: int) -> None:
    assert share_class(share, is_beyond=beyond) == found


def test_a_single_outlier_among_millions_has_a_bar() -> None:
    counts = [10_000_000, *[0] * 32, 1]
    chart = share_histogram(counts, "x")
    heights = [float(h) for h in re.findall(r'<rect [^>]*height="([\d.]+)"', chart)]
    assert len(heights) == 2
    assert min(heights) > 3


def test_texts_in_charts_are_escaped() -> None:
    chart = share_histogram([1] * 34, '<script>"&')
    assert "<script>" not in chart
    assert "&lt;script&gt;&#34;&amp;" in chart


@pytest.mark.parametrize(
    ("iterations", "named"),
    [
        ([3, 5], [3, 5]),
        (range(200), [0, 50, 100, 150]),
        (range(0, 301, 15), [0, 60, 120, 180, 240, 300]),
        ([*range(10), 1000], [0, 2, 4, 6, 8, 1000]),
    ],
)
def test_round_iterations_are_named_as_far_as_they_are_there(
    iterations: Sequence[int], named: list[int]
) -> None:
    assert iteration_ticks(iterations) == named
