"""Designs of experiments, and what they find. Seeds are stated."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats

from ciwrap.statistics.factors import (
    alike_pairs,
    cells_of,
    differing_shares,
    effects,
    ranks_of,
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


def test_pairs_of_equal_settings_are_counted_by_cell() -> None:
    cells = [(False,), (False,), (False,), (True,), (True,)]
    assert alike_pairs(cells, [1, 1, 2, 3, 4]) == {(False,): (3, 2), (True,): (1, 1)}


def distances(
    generator: np.random.Generator, cells: list[tuple[bool, ...]], case: str
) -> np.ndarray:
    """How far runs are from the first one, which has all factors off; the first factor acts."""
    on = np.array([cell[0] for cell in cells])
    values = generator.normal(size=len(cells))
    if case == "shift":
        values += 10 * on
    elif case == "only on":
        values *= on
    elif case == "spread":
        values *= np.where(on, 5.0, 1.0)
    elif case == "two modes":
        values += 30 * (generator.random(len(cells)) < 0.3)
    elif case == "rounded":
        values = np.round(values)
    return np.abs(values - values[0])[1:]


def found_in(
    cells: list[tuple[bool, ...]], case: str, trials: int, variables: int = 1
) -> list[set[int]]:
    """The factors that were found in each trial, on any variable."""
    found = []
    for seed in range(trials):
        generator = np.random.default_rng((seed, len(cells)))
        rows = np.array([distances(generator, cells, case) for _ in range(variables)])
        tested = effects(rows, cells[1:], seed=seed)
        found.append({one.factor for row in tested for one in row if one.p <= 0.05})
    return found


@pytest.mark.parametrize(("factors", "runs"), [(1, 5), (2, 3), (3, 2)])
@pytest.mark.parametrize("case", ["shift", "only on"])
def test_a_factor_that_shifts_values_or_switches_noise_on_is_found(
    factors: int, runs: int, case: str
) -> None:
    found = found_in(cells_of("full", factors) * runs, case, 40)
    assert sum(0 in one for one in found) >= 38
    assert sum(bool(one - {0}) for one in found) <= 4


@pytest.mark.parametrize("case", ["normal", "two modes", "rounded"])
def test_where_nothing_acts_a_factor_is_named_in_one_of_twenty_calls(case: str) -> None:
    """Six variables and two factors in each of 200 calls. The limit is 2 standard deviations."""
    found = found_in(cells_of("full", 2) * 3, case, 200, variables=6)
    assert sum(map(bool, found)) <= 16


def test_power_is_how_often_a_five_fold_spread_is_found() -> None:
    cells = cells_of("full", 1) * 10
    found = sum(0 in one for one in found_in(cells, "spread", 200))
    ((one,),) = effects(np.arange(19.0), cells[1:])
    assert one.power == pytest.approx(found / 200, abs=0.1)


def test_few_runs_cannot_show_an_effect() -> None:
    """Of 5 runs, 2 with the factor off: 10 orders, two of which are as extreme."""
    ((one,),) = effects([1.0, 2.0, 3.0, 4.0, 5.0], [(False,)] * 2 + [(True,)] * 3)
    assert one.p > 0.1
    assert one.power == 0
    assert one.size == pytest.approx(1.0)


def test_the_size_of_an_effect_is_that_of_cliff() -> None:
    """The share of pairs of which the one with the factor on is larger, less the others."""
    generator = np.random.default_rng(5)
    cells = cells_of("full", 1) * 8
    values = generator.normal(size=16)
    on = np.array([cell[0] for cell in cells])
    delta = np.mean(np.sign(values[on][:, None] - values[~on][None, :]))
    ((one,),) = effects(values, cells)
    assert one.size == pytest.approx(delta)
    test = scipy.stats.mannwhitneyu(values[on], values[~on])
    assert one.p == pytest.approx(test.pvalue, abs=0.05)


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [1.0, 1.0, 0.0, np.inf], [2.0, 2.0, 2.0]])
def test_ranks_are_those_of_scipy(values: list[float]) -> None:
    assert ranks_of(np.array(values)).tolist() == scipy.stats.rankdata(values).tolist()


def test_equal_responses_have_no_effect() -> None:
    ((one,),) = effects(np.zeros(8), cells_of("full", 1) * 4)
    assert (one.size, one.p) == (0, 1)


def test_one_cell_has_no_effects() -> None:
    assert effects(np.arange(5.0), [()] * 5) == [[]]
