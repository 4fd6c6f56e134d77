"""Paired comparison of run times, against SciPy's signed-rank test and by simulation."""

from __future__ import annotations

import math
import statistics
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from ciwrap.base.errors import UsageError
from ciwrap.statistics.spread import MOST_PAIRS, TimingVerdict, compare_pairs, least_pairs

MARGIN = 0.05


def times_apart(seed: int, count: int, shift: float = 0.0) -> tuple[list[float], list[float]]:
    generator = np.random.default_rng(seed)
    a = np.exp(generator.normal(0, 0.05, count))
    return a.tolist(), (a * np.exp(shift + generator.standard_t(3, count) * 0.05)).tolist()


def differences(a: list[float], b: list[float]) -> list[float]:
    return [math.log(after / before) for before, after in zip(a, b, strict=True)]


@pytest.mark.parametrize("count", [6, 7, 10, 19, 25])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_interval_holds_what_the_signed_rank_test_does_not_reject(
    count: int, confidence: float
) -> None:
    if count < least_pairs(confidence):
        return
    a, b = times_apart(count, count)
    found = compare_pairs(a, b, margin=MARGIN, confidence=confidence)
    assert found.lower is not None
    assert found.upper is not None
    d = np.array(differences(a, b))

    def p(shift: float) -> float:
        return float(stats.wilcoxon(d - shift, method="exact").pvalue)

    for end, inward in ((math.log1p(found.lower), 1e-9), (math.log1p(found.upper), -1e-9)):
        assert p(end + inward) > 1 - confidence
        assert p(end - inward) <= 1 - confidence


def test_the_estimate_is_the_median_of_all_averages() -> None:
    a, b = times_apart(3, 9, 0.1)
    d = differences(a, b)
    averages = [(one + other) / 2 for one, other in combinations_with_replacement(d, 2)]
    found = compare_pairs(a, b, margin=MARGIN, confidence=0.95)
    assert math.log1p(found.change) == pytest.approx(statistics.median(averages), rel=1e-12)


@pytest.mark.parametrize(("confidence", "least"), [(0.95, 6), (0.99, 8), (0.5, 2)])
def test_too_few_pairs_are_inconclusive_and_say_how_many_it_takes(
    confidence: float, least: int
) -> None:
    a = [1.0] * (least - 1)
    found = compare_pairs(a, [2.0] * (least - 1), margin=MARGIN, confidence=confidence)
    assert found.verdict is TimingVerdict.INCONCLUSIVE
    assert (found.lower, found.upper, found.seen_in_half) == (None, None, None)
    assert found.more_pairs == 1
    enough = compare_pairs([1.0] * least, [2.0] * least, margin=MARGIN, confidence=confidence)
    assert enough.verdict is TimingVerdict.CHANGED
    assert enough.change == pytest.approx(1.0)


def test_the_three_verdicts() -> None:
    noise = np.tile([1.001, 0.999, 1.0005, 0.9995], 3)
    a = np.ones(12)

    def verdict(b: np.ndarray, margin: float = MARGIN) -> TimingVerdict:
        return compare_pairs(a.tolist(), b.tolist(), margin=margin, confidence=0.95).verdict

    assert verdict(noise) is TimingVerdict.NOT_CHANGED
    assert verdict(1.1 * noise) is TimingVerdict.CHANGED
    assert verdict(0.9 * noise) is TimingVerdict.CHANGED
    # A change for sure, and for sure too small to matter.
    assert verdict(1.01 * noise) is TimingVerdict.NOT_CHANGED
    assert verdict(1.01 * noise, margin=0.009) is TimingVerdict.CHANGED
    assert verdict(noise**300) is TimingVerdict.INCONCLUSIVE


def noisy(
    generator: np.random.Generator, noise: float, pairs: int, change: float
) -> tuple[list[float], list[float]]:
    a, b = (np.exp(noise * generator.normal(size=pairs)) for _ in "ab")
    return a.tolist(), (b * (1 + change)).tolist()


@pytest.mark.parametrize("noise", [0.02, 0.08])
def test_changes_are_seen_as_often_as_said(noise: float) -> None:
    """In one of two, and in nine of ten; for noise within the margin of 5 %, and beyond it."""
    generator = np.random.default_rng(5)
    compare = partial(compare_pairs, margin=MARGIN, confidence=0.95)
    first = [compare(*noisy(generator, noise, 10, 0.0)) for _ in range(100)]
    for field, share in (("seen_in_half", 0.5), ("seen_in_most", 0.9)):
        change = statistics.median(getattr(one, field) for one in first)
        again = [compare(*noisy(generator, noise, 10, change)) for _ in range(200)]
        seen = sum(one.verdict is TimingVerdict.CHANGED for one in again) / 200
        assert seen == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(("noise", "change"), [(0.04, 0.0), (0.08, 0.0), (0.04, 0.02)])
def test_as_many_more_pairs_as_said_settle_it(noise: float, change: float) -> None:
    generator = np.random.default_rng(6)
    compare = partial(compare_pairs, margin=MARGIN, confidence=0.95)
    settled = []
    while len(settled) < 60:
        more = compare(*noisy(generator, noise, 10, change)).more_pairs
        if more is not None:
            again = compare(*noisy(generator, noise, 10 + more, change))
            settled.append(again.verdict is not TimingVerdict.INCONCLUSIVE)
    assert statistics.mean(settled) >= 0.8


def test_fewer_pairs_than_said_would_not_settle_it() -> None:
    """Of times whose estimate is 0: an interval as wide as the margin holds it in few cases."""
    a, b = [1.0] * 10, [math.exp(0.1 * step / 4.5) for step in range(-9, 10, 2)]
    found = compare_pairs(a, b, margin=MARGIN, confidence=0.95)
    assert found.lower is not None
    half_width = -math.log1p(found.lower)
    assert found.more_pairs is not None
    assert 2 < (10 + found.more_pairs) / (10 * (half_width / math.log1p(MARGIN)) ** 2) < 4


def test_a_change_at_the_margin_asks_for_no_further_pairs() -> None:
    a = [1.0] * 10
    b = [1.05 * (1 + 0.001 * (number - 4.5)) for number in range(10)]
    found = compare_pairs(a, b, margin=0.05001, confidence=0.95)
    assert (found.verdict, found.more_pairs) == (TimingVerdict.INCONCLUSIVE, None)


def test_swapping_the_sides_turns_the_change_round() -> None:
    a, b = times_apart(8, 15, 0.2)
    one = compare_pairs(a, b, margin=MARGIN, confidence=0.95)
    other = compare_pairs(b, a, margin=MARGIN, confidence=0.95)
    assert (1 + one.change) * (1 + other.change) == pytest.approx(1)
    assert one.lower is not None
    assert other.upper is not None
    assert (1 + one.lower) * (1 + other.upper) == pytest.approx(1)
    assert one.verdict is other.verdict


@pytest.mark.parametrize(
    ("a", "b", "more"),
    [
        ([], [], {}),
        ([1.0], [1.0, 2.0], {}),
        ([0.0], [1.0], {}),
        ([1.0], [math.nan], {}),
        ([1.0], [math.inf], {}),
        ([1.0] * (MOST_PAIRS + 1), [1.0] * (MOST_PAIRS + 1), {}),
        ([1.0], [1.0], {"margin": 0.0}),
        ([1.0], [1.0], {"margin": math.nan}),
        ([1.0], [1.0], {"confidence": 1.0}),
    ],
)
def test_what_has_no_meaning_is_refused(
    a: list[float], b: list[float], more: dict[str, float]
) -> None:
    with pytest.raises(UsageError):
        compare_pairs(a, b, **{"margin": MARGIN, "confidence": 0.95, **more})


def test_as_many_pairs_as_may_be() -> None:
    a, b = times_apart(9, MOST_PAIRS)
    found = compare_pairs(a, b, margin=MARGIN, confidence=0.99)
    assert found.verdict is TimingVerdict.NOT_CHANGED
    # The interval of the normal approximation, which is good here.
    d = np.array(differences(a, b))
    far = stats.wilcoxon(d - math.log1p(found.upper or 0), method="approx").pvalue
    assert far == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("pairs", [10, 50, 300, 1000])
def test_no_more_pairs_are_asked_for_than_can_be_taken(pairs: int) -> None:
    """Seed 6: times that vary by a third, and a margin of 1 %."""
    generator = np.random.default_rng(6)
    a, b = (np.exp(0.3 * generator.normal(size=pairs)) for _ in "ab")
    for margin in (0.01, 0.02, 0.04, 0.08):
        found = compare_pairs(list(a), list(b), margin=margin, confidence=0.95)
        assert found.more_pairs is None or pairs + found.more_pairs <= MOST_PAIRS
