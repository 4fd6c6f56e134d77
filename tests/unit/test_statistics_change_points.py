"""Changes of level in series of run times, in simulated series with stated seeds."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from ciwrap.base.errors import UsageError
from ciwrap.statistics.change_points import LEAST, LEAST_ASIDE, RARE, find_change_points


def series(seed: int, levels: list[tuple[int, float]], noise: float = 0.03) -> np.ndarray:
    generator = np.random.default_rng(seed)
    times = np.concatenate([np.full(count, level) for count, level in levels])
    return times * np.exp(noise * generator.normal(size=times.size))


def test_a_step_is_found_where_it_is() -> None:
    errors = []
    for seed in range(30):
        found = find_change_points(series(seed, [(20, 1.0), (15, 1.1)]), margin=0.05, seed=seed)
        assert len(found) == 1
        errors.append(abs(found[0].position - 20))
        assert found[0].change == pytest.approx(0.1, abs=0.04)
        assert found[0].p < RARE
    assert np.median(errors) == 0
    assert max(errors) <= 2


def test_several_steps_come_in_order_with_the_levels_between() -> None:
    levels = [(15, 1.0), (15, 1.3), (20, 1.0), (12, 0.8)]
    found = find_change_points(series(1, levels), margin=0.05, seed=1)
    assert [point.position for point in found] == pytest.approx([15, 30, 50], abs=1)
    for point, (before, after) in zip(found, [(1, 1.3), (1.3, 1), (1, 0.8)], strict=True):
        assert (point.before, point.after) == pytest.approx((before, after), rel=0.03)


def test_noise_alone_has_no_steps() -> None:
    """300 series of 40: at p < 0.001 for each, one or two at most."""
    generator = np.random.default_rng(2)
    heavy = [np.exp(0.1 * generator.standard_t(2, 40)) for _ in range(300)]
    calls = [find_change_points(times, margin=0.01, seed=2) for times in heavy[:300]]
    assert sum(bool(found) for found in calls) <= 2


@pytest.mark.parametrize(
    "levels",
    [
        [(30, 1.0), (10, 1.3), (30, 1.0)],
        [(20, 1.3), (20, 1.0), (20, 1.3)],
        [(10, 1.0), (8, 1.5), (10, 1.0)],
        [(100, 1.0), (30, 0.7), (100, 1.0)],
    ],
)
def test_a_level_that_comes_and_goes_is_found(levels: list[tuple[int, float]]) -> None:
    """No single split of such a series is rare. Seeds 0 to 5."""
    first, last = levels[0][0], levels[0][0] + levels[1][0]
    for seed in range(6):
        found = find_change_points(series(seed, levels), margin=0.05, seed=seed)
        assert [point.position for point in found] == pytest.approx([first, last], abs=2)
        assert all(point.p < RARE for point in found)
        assert found[0].after == pytest.approx(levels[1][1], rel=0.05)


@pytest.mark.parametrize(("before", "after"), [(7, 8), (10, 7), (20, 6), (50, 6)])
def test_a_clear_step_is_mostly_told_after_six_or_seven_runs(before: int, after: int) -> None:
    """As the how-to says. Seeds 0 to 11."""
    found = 0
    for seed in range(12):
        times = series(seed, [(before, 1.0), (after, 2.0)], noise=0.01)
        places = [point.position for point in find_change_points(times, margin=0.05, seed=1)]
        # Neither a slow run before the step nor a fast one after it moves it.
        assert places in ([], [before])
        found += bool(places)
    assert found >= 7


def test_fewer_than_fifteen_runs_are_too_likely_an_accident() -> None:
    """Of 13, no order is rare enough; of 15, one is by far."""
    assert 2 / comb(13, 6) >= RARE > 2 * 2 / comb(LEAST, LEAST // 2)
    times = series(1, [(LEAST // 2, 1.0), (LEAST - LEAST // 2, 2.0)], noise=0.01)
    found = [find_change_points(times, margin=0.05, seed=seed) for seed in range(10)]
    assert sum(map(bool, found)) >= 6
    assert find_change_points(times[:-1], margin=0.05, seed=1) == ()


def test_single_slow_runs_are_no_level() -> None:
    times = series(3, [(40, 1.0)])
    times[[7, 8, 20, 33]] *= 5
    assert find_change_points(times, margin=0.05, seed=0) == ()
    # Four slow runs at the end are an accident, ten of them are not.
    times = series(4, [(40, 1.0), (LEAST_ASIDE - 1, 1.5)])
    assert all(point.position <= 40 for point in find_change_points(times, margin=0.05, seed=0))
    times = series(4, [(40, 1.0), (10, 1.5)])
    assert [point.position for point in find_change_points(times, margin=0.05, seed=0)] == [40]


def test_a_small_step_does_not_hide_a_large_one() -> None:
    times = series(5, [(20, 1.0), (20, 1.02), (20, 1.2)], noise=0.003)
    assert len(find_change_points(times, margin=0.01, seed=0)) == 2
    (only,) = find_change_points(times, margin=0.05, seed=0)
    assert only.position == 40
    # The levels are those of what is left, not of the stretches that were.
    assert only.before == pytest.approx(1.01, abs=0.01)


def test_the_same_seed_finds_the_same_and_short_series_nothing() -> None:
    times = series(6, [(10, 1.0), (10, 1.2)])
    found = [find_change_points(times, margin=0.05, seed=9) for _ in range(2)]
    assert found[0] == found[1] != ()
    assert find_change_points(times[: LEAST - 1], margin=0.05, seed=9) == ()
    assert find_change_points([1.0] * 30, margin=0.05, seed=9) == ()


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, float("nan")]])
def test_what_is_no_time_is_refused(values: list[float]) -> None:
    with pytest.raises(UsageError):
        find_change_points(values, margin=0.05, seed=0)
