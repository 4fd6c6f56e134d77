"""Designs of experiments, and what they find. Seeds are stated."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats

from ciwrap.statistics.factors import (
    cells_of,
    differing_shares,
    effects,
    power,
    spread_response,
    what_factors_do,
)


@pytest.mark.parametrize("factors", [1, 2, 4])
def test_a_full_design_has_every_cell(factors: int) -> None:
    assert set(cells_of("full", factors)) == set(product((False, True), repeat=factors))
    assert cells_of("full", factors)[0] == (False,) * factors


def test_one_at_a_time() -> None:
    assert cells_of("one-at-a-time", 2) == [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize("factors", [5, 6, 7, 8])
def test_a_fraction_mixes_no_factor_with_another_nor_with_two(factors: int) -> None:
    cells = cells_of("fractional", factors)
    assert len(cells) == len(set(cells)) == 16 < 2**factors
    signs = np.where(np.array(cells), 1, -1)
    assert (signs.sum(axis=0) == 0).all()
    for count in (2, 3):  # resolution IV: products of up to three columns are balanced
        for chosen in combinations(range(factors), count):
            assert np.prod(signs[:, chosen], axis=1).sum() == 0, chosen


@pytest.mark.parametrize("factors", [4, 9])
def test_there_is_no_fraction_of_few_or_many(factors: int) -> None:
    with pytest.raises(ValueError, match="5 to 8 factors"):
        cells_of("fractional", factors)


@pytest.mark.parametrize("design", ["full", "one-at-a-time", "fractional"])
def test_exactly_the_factors_that_change_a_result_are_found(design: str) -> None:
    """Every set of guilty factors of five; results are classes of the guilty switches."""
    cells = cells_of(design, 5) * 2  # type: ignore[arg-type]
    for guilty in (set(one) for count in range(6) for one in combinations(range(5), count)):
        results = [tuple(cell[n] for n in sorted(guilty)) for cell in cells]
        classes = [results.index(one) for one in results]
        told = what_factors_do(cells, classes)
        found = {factor for factor, changes in told.items() if changes}
        if design == "fractional" and len(guilty) > 1:
            # Two that always change together may hide behind one another: never a false one.
            assert found <= guilty
        else:
            assert found == guilty


def test_runs_that_differ_by_themselves_blame_no_factor() -> None:
    cells = cells_of("full", 2) * 2
    assert what_factors_do(cells, list(range(8))) == {}
    shares = differing_shares(cells, list(range(8)))
    assert [(one.factor, one.pairs, one.share) for one in shares] == [
        (None, 4, 1.0), (0, 8, 1.0), (1, 8, 1.0),
    ]  # fmt: skip


def test_nothing_is_said_of_a_factor_of_which_nothing_is_known() -> None:
    """All runs with the second factor on have failed, say."""
    cells = [cell for cell in cells_of("full", 2) * 2 if not cell[1]]
    assert what_factors_do(cells, [cell[0] for cell in cells]) == {0: True}
    assert what_factors_do(cells, [1] * len(cells)) == {0: False}
    fraction = [cell for cell in cells_of("fractional", 5) * 2 if not cell[4]]
    assert what_factors_do(fraction, [1] * len(fraction)) == dict.fromkeys(range(4), False)


def test_a_factor_that_switches_noise_on_is_seen_in_its_spread() -> None:
    """Four cells of 40 runs, one of which spreads five times as much. Seed 36."""
    cells = cells_of("full", 2) * 40
    scale = np.array([5.0 if cell == (True, True) else 1.0 for cell in cells])
    values = 100 + np.random.default_rng(36).normal(0, scale)
    found = effects(spread_response(values, cells), cells, seed=36)
    assert [one.factor for one in found] == [0, 1]
    assert all(one.p < 0.05 and one.size > 0 for one in found)


def test_the_size_of_an_effect_is_a_difference_of_means() -> None:
    cells = cells_of("full", 2) * 5
    response = np.random.default_rng(1).normal(size=20) + np.array([3.0 * c[0] for c in cells])
    found = effects(response, cells, seed=1)
    on = np.array([cell[0] for cell in cells])
    assert found[0].size == pytest.approx(response[on].mean() - response[~on].mean())
    test = scipy.stats.permutation_test(
        (response[on], response[~on]), lambda a, b: abs(a.mean() - b.mean()),
        n_resamples=999, rng=1, alternative="greater",
    )  # fmt: skip
    assert found[0].p == pytest.approx(test.pvalue, abs=0.002)


def test_no_effect_is_found_about_as_rarely_as_it_should_be() -> None:
    """300 experiments without any effect, at 5 %. Seeds 0 to 299."""
    cells = cells_of("full", 2) * 10
    false = sum(
        any(
            one.p <= 0.05
            for one in effects(
                spread_response(np.random.default_rng(seed).normal(size=40), cells),
                cells, seed=seed, permutations=199,
            )
        )
        for seed in range(300)
    )  # fmt: skip
    assert 0.02 <= false / 300 <= 0.08


@pytest.mark.parametrize(("factors", "runs"), [(1, 2), (1, 4), (2, 2), (2, 4), (3, 2)])
def test_an_even_number_of_runs_raises_no_more_alarms(factors: int, runs: int) -> None:
    """Both middle runs of a cell are as far from its median. 200 experiments without any effect, at
    5 %; 43 % of those with two runs in each of four cells found one. Seeds 0 to 199.
    """
    cells = cells_of("full", factors) * runs
    false = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(size=len(cells))
        response = spread_response(values, cells)
        found = effects(response, cells, seed=seed, permutations=199)
        false += any(one.p <= 0.05 for one in found)
    assert false <= 20


def test_of_every_cell_one_run_says_nothing_of_the_spread() -> None:
    cells = [(False,)] * 4 + [(True,)] * 3
    response = spread_response(np.array([1.0, 2.0, 4.0, 9.0, 5.0, 6.0, 8.0]), cells)
    assert np.exp(response[~np.isnan(response)]) == pytest.approx([2, 1, 6, 1, 2])
    assert np.isnan(response).sum() == 2


def test_an_order_that_makes_the_same_effect_counts_whatever_its_rounding() -> None:
    """Two numbers have two orders, both with the same effect but for its sign."""
    generator = np.random.default_rng(3)
    for seed in range(50):
        (only,) = effects(generator.normal(size=2), [(False,), (True,)], seed=seed)
        assert only.p == 1


@pytest.mark.parametrize(("runs", "low", "high"), [(5, 0.1, 0.4), (20, 0.8, 1.0)])
def test_power_is_what_was_measured(runs: int, low: float, high: float) -> None:
    """A five-fold spread in one of four cells: 20 % with 5 runs a cell, over 80 % with 20."""
    assert low <= power(cells_of("full", 2) * runs, seed=36) <= high


def test_power_is_that_of_what_is_told() -> None:
    """Runs of four cells, compared with the first of them: one cell spreads five times as much. The
    effects of single factors on distances are reported, and not what two do together.
    """
    cells = cells_of("full", 2) * 10
    scale = np.array([5.0 if cell == (True, True) else 1.0 for cell in cells])
    generator = np.random.default_rng(7)
    found = 0
    for seed in range(200):
        values = generator.normal(0, scale)
        response = spread_response(np.abs(values - values[0])[1:], cells[1:])
        tested = effects(response, cells[1:], seed=seed, permutations=199)
        assert [one.factor for one in tested] == [0, 1]
        found += any(one.p <= 0.05 for one in tested)
    assert power(cells[1:], seed=3) == pytest.approx(found / 200, abs=0.1)


def test_one_cell_has_no_effects() -> None:
    assert effects(np.arange(5.0), [()] * 5) == []
    assert power([()] * 5) == 0
