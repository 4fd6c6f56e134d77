"""Hypotheses that are not claimed: of flags, few values, boxes, other ranks and iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace
from tiers import examples

from ciwrap import api
from ciwrap.cli.main import run as run_cli
from ciwrap.explain.across import with_one_rank
from ciwrap.explain.moved import other_decomposition
from ciwrap.model import Verdict
from ciwrap.model.variable_result import Cause
from ciwrap.report.cause_words import cause_words

if TYPE_CHECKING:
    from pathlib import Path

SHAPES: tuple[tuple[int, ...], ...] = ((60,), (30, 30), (12, 12, 12), (50, 3))


def causes(golden: np.ndarray, new: np.ndarray, **bound: Any) -> set[Cause]:
    told = {one.cause for one in api.compare_arrays(golden, new, **bound).explanations}
    return told - {Cause.WIDER_BOUND}


def few_values(kind: int, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (
        lambda: random.random(shape) < 0.5,
        lambda: random.integers(0, 3, shape),
        lambda: np.round(random.normal(size=shape), 0),
        lambda: (random.random(shape) < 0.1).astype("f8"),
        lambda: random.integers(0, 10, shape),
    )[kind]()


def test_a_few_other_flags_or_classes_have_not_moved() -> None:
    """Any one of few values is found somewhere else, and as often as not in another order."""
    claimed = {}
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        golden = few_values(seed % 5, random, SHAPES[seed % len(SHAPES)])
        new = golden.copy()
        flat = new.reshape(-1)
        at = random.choice(flat.size, int(random.integers(3, 9)), replace=False)
        if golden.dtype == bool:
            flat[at] = ~flat[at]
        else:
            flat[at] = flat[at] + random.choice([-2, -1, 1, 2], at.size).astype(golden.dtype)
        found = causes(golden, new)
        # These two are so where they are told.
        moved = new.reshape(-1)[at] * 1.0 - golden.reshape(-1)[at]
        if golden.dtype != bool and np.all(moved == moved[0]):
            found -= {Cause.CONSTANT_OFFSET}
        if not np.any(new.reshape(-1)[at]):
            found -= {Cause.ALL_ZERO}
        if found:
            claimed[seed] = found
    assert claimed == {}


def test_few_rows_that_were_exchanged_are_in_no_other_order() -> None:
    for seed in range(examples(100)):
        random = np.random.default_rng(seed)
        flags = random.random(80) < 0.5
        new = flags.copy()
        for value in (True, False):
            new[random.choice(np.flatnonzero(flags == value), 3, replace=False)] = not value
        assert Cause.OTHER_ORDER not in causes(flags, new)


def test_boxes_inside_an_array_are_no_face_and_no_stripe() -> None:
    claimed = {}
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        shape = ((40, 40), (20, 24, 18), (200,))[seed % 3]
        golden = random.normal(size=shape)
        low = [int(random.integers(4, extent // 2)) for extent in shape]
        box = tuple(
            slice(first, int(random.integers(first + 2, extent - 4)))
            for first, extent in zip(low, shape, strict=True)
        )
        new = golden.copy()
        new[box] += random.normal(size=new[box].shape)
        found = causes(golden, new, atol=1e-6)
        if found:
            claimed[seed] = found
    assert claimed == {}


@pytest.mark.parametrize("count", [64, 128, 1000])
def test_chance_hardly_ever_deals_a_thread_its_rows(count: int) -> None:
    """Stretches between two rows drawn at random, and some of which short ones are as many as long
    ones; a share of 0.1 % of them or less is claimed.
    """
    random = np.random.default_rng(count)
    golden = random.normal(size=count)
    claimed = []
    for seed in range(examples(500)):
        length = int(np.exp(random.uniform(0, np.log(count))))
        first = int(random.integers(0, count - length + 1))
        stop = first + length
        if seed % 2:
            first, stop = (int(row) for row in np.sort(random.integers(0, count + 1, 2)))
        new = golden.copy()
        new[first:stop] += random.normal(size=stop - first)
        if Cause.STRIPE in causes(golden, new):
            claimed.append((first, stop))
    assert len(claimed) <= 2, claimed


def test_what_is_not_next_to_zero_is_not_said_to_be() -> None:
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        golden = random.normal(2, 1, SHAPES[seed % len(SHAPES)]) * 10.0 ** random.integers(-9, 9)
        new = golden * (1 + random.normal(scale=10.0 ** random.uniform(-8, 0), size=golden.shape))
        assert Cause.NEAR_ZERO not in causes(golden, new, rtol=1e-9)


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 2e-4])
def test_round_numbers_with_noise_beside_them_were_not_rounded(noise: float) -> None:
    """What noise is added to is what the sum rounds to, too."""
    for seed in range(examples(200)):
        random = np.random.default_rng(seed)
        golden = random.integers(-100, 100, 300).astype(np.float64)
        golden = (golden, np.full(300, 1.0), golden / 4, np.exp2(golden // 20))[seed % 4]
        new = golden + random.uniform(-noise, noise, 300)
        sides = (golden, new) if seed % 8 < 4 else (new, golden)
        assert Cause.LESS_PRECISE not in causes(*sides, atol=noise / 1000)


@pytest.mark.parametrize("factor", [1000.1, 2.0003, 0.09999, -100.01, 59.99, 1 / 3600.2])
def test_a_factor_next_to_one_of_a_name_has_none(factor: float) -> None:
    golden = np.random.default_rng(0).normal(300, 10, 400)
    (found,) = (
        one
        for one in api.compare_arrays(golden, golden * factor, atol=1e-9).explanations
        if one.cause is Cause.CONSTANT_FACTOR
    )
    assert found.words is None
    # Noise that the bound allows leaves the name.
    named = golden * 1000 + np.random.default_rng(1).uniform(-1e-3, 1e-3, 400)
    (found,) = (
        one
        for one in api.compare_arrays(golden, named, atol=1e-3).explanations
        if one.cause is Cause.CONSTANT_FACTOR
    )
    assert (found.values, found.words) == ((1000.0,), "a unit prefix")


def test_one_number_beside_nan_alone_is_no_fill_value() -> None:
    golden, new = np.full(50, np.nan), np.full(50, 5.0)
    assert causes(golden, new) == set()
    assert causes(new, golden) == {Cause.ALL_NAN}


@pytest.mark.parametrize("shape", [(4000,), (60, 70), (16, 17, 18)], ids=str)
def test_next_to_zero_is_found_in_every_layout(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    golden = random.normal(size=shape)
    golden[random.random(shape) < 0.05] *= 5e-10
    new = golden + random.uniform(-1e-15, 1e-15, shape)
    (found,) = (
        one
        for one in api.compare_arrays(golden, new, rtol=1e-9).explanations
        if one.cause is Cause.NEAR_ZERO
    )
    passed = api.compare_arrays(golden, new, rtol=1e-9, atol=found.values[0])
    assert passed.differing_count == 0


def parts(random: np.random.Generator, few: bool) -> list[np.ndarray]:
    shape = ((20,), (8, 3), (4, 5, 2))[int(random.integers(3))]
    count = int(random.integers(2, 5))
    if few:
        return [random.integers(0, 2, shape) for _ in range(count)]
    return [random.normal(size=shape) for _ in range(count)]


def test_other_numbers_on_each_rank_are_no_other_decomposition() -> None:
    claimed = []
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        golden = parts(random, few=bool(seed % 2))
        new = [one.copy() for one in golden]
        for one in new:
            where = random.random(one.shape) < 0.2
            if seed % 2:
                one[where] = 1 - one[where]
            else:
                one[where] += random.normal(size=int(where.sum()))
        if other_decomposition(golden, new, None) is not None:
            claimed.append(seed)
    assert claimed == []


def test_as_many_flags_on_other_ranks_are_not_dealt_out_anew() -> None:
    for seed in range(examples(100)):
        random = np.random.default_rng(seed)
        golden = [random.random(40) < 0.5 for _ in range(3)]
        new = [one.copy() for one in golden]
        new[0][int(np.flatnonzero(golden[0])[0])] = False
        new[1][int(np.flatnonzero(~golden[1])[0])] = True
        assert other_decomposition(golden, new, None) is None


def test_other_iterations_and_ranks_are_not_claimed_of_noise(tmp_path: Path, capsys: Any) -> None:
    """Twenty arrays a run that differ on two ranks or more, by something of their own."""
    for number in range(examples(25)):
        random = np.random.default_rng(number)
        for iteration in range(5):
            for rank in range(4):
                golden = random.normal(size=(30, 4))
                new = golden + random.normal(size=golden.shape) * 10.0 ** random.uniform(-4, 0)
                for side, array in (("a", golden), ("b", new)):
                    place = tmp_path / str(number) / side / f"iter_{iteration}" / f"rank_{rank}"
                    place.mkdir(parents=True)
                    np.save(place / "x.npy", array)
        runs = [str(tmp_path / str(number) / side) for side in ("a", "b")]
        assert run_cli(["compare", *runs, "--atol=1e-6"]) == 1
        said = capsys.readouterr().out
        for claim in ("of iteration", "only rank", "dealt", "values that differ,", "another order"):
            assert claim not in said, number


def test_each_element_that_is_said_to_lie_at_a_face_does() -> None:
    golden = np.random.default_rng(3).normal(size=(100, 100))
    new = golden.copy()
    new[[0, -1]] += 1.0
    # Few of them all, and at another face.
    new[40:60, 0] += np.linspace(2.0, 3.0, 20)
    (told,) = (
        one
        for one in api.compare_arrays(golden, new, atol=1e-6).explanations
        if one.cause is Cause.BOUNDARY
    )
    rows, columns = np.nonzero(new != golden)
    layers = int(told.values[0])
    depths = [np.minimum(one, 99 - one) for one in (rows, columns)]
    assert np.all(np.min([depths[axis] for axis in told.axes], axis=0) < layers)


def test_what_some_rows_have_in_common_is_not_said_of_the_array() -> None:
    """Half of the rows have two components in each other's place; the others do not."""
    golden = np.random.default_rng(4).normal(size=(80, 3))
    new = golden.copy()
    new[:40] = golden[:40][:, [1, 0, 2]]
    told = api.compare_arrays(golden, new, atol=1e-6).explanations[0]
    assert told.cause is Cause.EXCHANGED
    assert "values that differ, B is A with components 0 and 1" in cause_words(
        told, ("A", "B"), "x"
    )


def test_under_the_bound_that_is_offered_all_match_to_the_last_bit() -> None:
    """Differences that rtol nearly allows: what doubles lose of both stands out of what is left."""
    told = 0
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        rtol = float(random.uniform(0.01, 0.2))
        golden = random.uniform(1, 2, 5)
        new = golden * (1 + rtol) + random.uniform(0, 20e-16, 5)
        for one in api.compare_arrays(golden, new, rtol=rtol).explanations:
            if one.cause is Cause.WIDER_BOUND:
                told += 1
                wider = api.compare_arrays(golden, new, rtol=rtol, atol=one.values[0])
                assert wider.differing_count == 0, seed
    assert told > examples(500) // 5


@pytest.mark.parametrize("other", [Verdict.NOT_COMPARABLE, Verdict.UNDECIDED, Verdict.MATCH])
def test_only_one_rank_is_said_of_ranks_that_were_all_compared(other: Verdict) -> None:
    golden = np.random.default_rng(5).normal(size=(30, 4))
    found = []
    for rank in range(4):
        one = api.compare_arrays(golden, golden + (rank == 1), atol=1e-6)
        found.append(replace(one, rank=rank, iteration=1))
    if other is Verdict.UNDECIDED:
        found[1] = replace(found[1], verdict=other, differing_count=None)
    elif other is Verdict.NOT_COMPARABLE:
        found[3] = replace(found[3], verdict=other, reason="cut off")
    told = {cause.cause for one in with_one_rank(found) for cause in one.explanations}
    assert (Cause.ONE_RANK in told) == (other is Verdict.MATCH)
