"""Solving a suspect chunk: what is told of the element that moved is true, against plain NumPy.

The oracle knows both sides. It never asks the code under test what a cell is: it holds the told
range of golden values against the golden value, and the told shares against the true share.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden
from ciwrap.model import Verdict
from ciwrap.report.digest_words import moved_words

BOUNDS = ("absolute", "relative", "mixed", "ulps")


def parameters_of(dtype: str, bound: str, levels: int, chunk_bytes: int) -> _core.TreeParameters:
    keywords: dict[str, float | int] = {
        "absolute": {"atol": 1e-3},
        "relative": {"rtol": 1e-4},
        "mixed": {"atol": 1e-4, "rtol": 1e-4},
        "ulps": {"ulps": 1000},
    }[bound]
    return _core.TreeParameters(dtype, residue_levels=levels, chunk_bytes=chunk_bytes, **keywords)


def bound_at(parameters: _core.TreeParameters, golden: np.generic) -> float:
    if parameters.ulps:
        return float(np.spacing(np.abs(golden))) * parameters.ulps
    return parameters.atol + parameters.rtol * abs(float(golden))


def is_beyond(parameters: _core.TreeParameters, golden: np.generic, new: np.generic) -> bool:
    """The contract's section 1, in exact arithmetic."""
    if parameters.ulps:
        kind = {4: np.int32, 8: np.int64}[golden.dtype.itemsize]
        places = [int(one.view(kind)) for one in (golden, new)]
        lowest = int(np.iinfo(kind).min)
        places = [place if place >= 0 else lowest - place for place in places]
        return abs(places[0] - places[1]) > parameters.ulps
    room = Fraction(parameters.atol) + Fraction(parameters.rtol) * abs(Fraction(float(golden)))
    return abs(Fraction(float(new)) - Fraction(float(golden))) > room


def value(text: str | None, dtype: str) -> float:
    """The number that a text stands for in its type."""
    assert text is not None
    return float(np.array(text, dtype=dtype[1:]))


def golden_of(parameters: _core.TreeParameters, values: np.ndarray) -> _core.GoldenVariable:
    builder = _core.TreeBuilder(parameters, values.size * parameters.scalars_per_element)
    builder.update(values)
    return _core.GoldenVariable("x", list(values.shape), builder.finish())


def judged(parameters: _core.TreeParameters, golden: np.ndarray, new: np.ndarray):
    return check_golden(
        golden_of(parameters, golden), ArrayValues(new, parameters.dtype), settings=None
    )


def noisy(rng: np.random.Generator, dtype: str, count: int, kind: str) -> np.ndarray:
    if kind == "smooth":
        return (2 + np.sin(np.arange(count) / 37)).astype(dtype)
    return rng.uniform(-3, 3, count).astype(dtype)


@given(
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from(["<f4", "<f8"]),
    bound=st.sampled_from(BOUNDS),
    levels=st.sampled_from([1, 3, 15, 255]),
    kind=st.sampled_from(["smooth", "noise"]),
    chunk_bytes=st.sampled_from([64, 512, 4096]),
    factor=st.floats(0.85, 9.0),
)
@settings(deadline=None)
def test_one_element_is_found_and_what_is_said_is_true(
    seed: int, dtype: str, bound: str, levels: int, kind: str, chunk_bytes: int, factor: float
) -> None:
    rng = np.random.default_rng(seed)
    parameters = parameters_of(dtype, bound, levels, chunk_bytes)
    golden = noisy(rng, dtype, 1500, kind)
    new = golden.copy()
    at = int(rng.integers(golden.size))
    new[at] += np.array(rng.choice([-1, 1]) * factor * bound_at(parameters, golden[at]), dtype)
    result = judged(parameters, golden, new)
    beyond = is_beyond(parameters, golden[at], new[at])
    assert (result.verdict is Verdict.DIFFER) <= beyond
    assert (result.verdict is Verdict.MATCH) <= (not beyond)
    if not result.suspect_chunks:
        return
    # The docs claim: an element that moved by up to ten bounds is always found.
    (moved,) = result.moved_elements
    assert moved.index == (at,)
    told = value(moved.golden_from, dtype), value(moved.golden_to, dtype)
    assert told[0] <= float(golden[at]) <= told[1]
    assert np.array(moved.new, dtype) == new[at]
    assert moved.is_beyond in (None, beyond)
    if not parameters.ulps:
        share = abs(float(new[at]) - float(golden[at])) / bound_at(parameters, golden[at])
        assert moved.share_from is not None
        assert moved.share_to is not None
        assert moved.share_from * (1 - 1e-9) <= share <= moved.share_to * (1 + 1e-9)


@given(
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from(["<f4", "<f8", ">f8"]),
    bound=st.sampled_from(BOUNDS),
    levels=st.sampled_from([1, 15]),
    count=st.integers(1, 5),
    noise=st.sampled_from([0.0, 0.2]),
)
@settings(deadline=None)
def test_nothing_untrue_is_said_of_several(
    seed: int, dtype: str, bound: str, levels: int, count: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    parameters = parameters_of(dtype, bound, levels, 512)
    golden = noisy(rng, dtype, 200, "smooth")
    bounds = np.array([bound_at(parameters, one) for one in golden.astype(dtype[1:])])
    drift = rng.uniform(-noise, noise, golden.size) * bounds if levels > 1 else 0
    new = (golden.astype("f8") + drift).astype(dtype)
    places = rng.choice(golden.size, count, replace=False)
    new[places] += (rng.uniform(0.9, 4, count) * bounds[places]).astype(dtype)
    result = judged(parameters, golden, new)
    truth = [
        is_beyond(parameters, one, two)
        for one, two in zip(golden.astype(dtype[1:]), new.astype(dtype[1:]), strict=True)
    ]
    if result.verdict is Verdict.MATCH:
        assert not any(truth)
    if result.verdict is Verdict.DIFFER:
        assert any(truth)
    if result.differing_count is not None:
        assert result.differing_count == sum(truth)
    assert (result.differing_count_at_least or 0) <= sum(truth)
    if result.suspect_chunks:
        assert result.differing_count_at_most is not None
        assert sum(truth) <= result.differing_count_at_most
    for moved in result.moved_elements:
        (at,) = moved.index
        told = value(moved.golden_from, dtype), value(moved.golden_to, dtype)
        assert told[0] <= float(golden[at]) <= told[1]
        assert moved.is_beyond in (None, truth[at])


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["golden", "new"])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_a_number_that_became_special_or_was(
    special: float, side: str, bound: str, dtype: str
) -> None:
    parameters = parameters_of(dtype, bound, 15, 4096)
    golden = noisy(np.random.default_rng(3), dtype, 700, "smooth")
    new = golden.copy()
    (golden if side == "golden" else new)[123] = special
    result = judged(parameters, golden, new)
    assert result.verdict is Verdict.DIFFER
    (moved,) = result.moved_elements
    assert moved.index == (123,)
    assert moved.is_beyond is True
    if moved.golden_from is None:
        # Its cell is too far from its neighbours', but its residue is that of a number.
        assert side == "new"
        return
    told = [value(moved.golden_from, dtype), value(moved.golden_to, dtype)]
    if side == "golden":
        assert np.array_equal(told, [special, special], equal_nan=True)
    else:
        assert told[0] <= golden[123] <= told[1]


def test_a_fill_value_that_went_missing() -> None:
    parameters = _core.TreeParameters("<f8", atol=1e-3, residue_levels=15, fill_values=[-999.0])
    golden = noisy(np.random.default_rng(4), "<f8", 300, "smooth")
    new = golden.copy()
    golden[7] = -999.0
    (moved,) = judged(parameters, golden, new).moved_elements
    assert (moved.index, moved.golden_from, moved.is_beyond) == ((7,), "-999.0", True)


@pytest.mark.parametrize(
    ("dtype", "bound"), [("<f8", {"atol": 1e-3, "residue_levels": 15}), ("<i4", {})]
)
@pytest.mark.parametrize("fills", [[-999, -99], [-99, -999]])
def test_which_of_several_fill_values_went_missing_is_not_told(
    dtype: str, bound: dict[str, Any], fills: list[int]
) -> None:
    parameters = _core.TreeParameters(dtype, **bound, fill_values=fills)
    golden = np.arange(300).astype(dtype)
    new = golden.copy()
    golden[7] = -999
    (moved,) = judged(parameters, golden, new).moved_elements
    assert (moved.index, moved.is_beyond, moved.new) == ((7,), True, str(new[7]))
    assert (moved.golden_from, moved.golden_to, moved.golden_is_fill) == (None, None, True)
    assert "(golden a fill value, new 7" in moved_words(moved)


@pytest.mark.parametrize("dtype", ["<i4", ">i8", "<u2", "|u1"])
@pytest.mark.parametrize("atol", [0, 3])
def test_whole_numbers(dtype: str, atol: int) -> None:
    parameters = _core.TreeParameters(dtype, atol=atol, residue_levels=1, chunk_bytes=256)
    golden = np.arange(100).astype(dtype)
    new = golden.copy()
    new[40] += 16
    result = judged(parameters, golden, new)
    (moved,) = result.moved_elements
    assert moved.index == (40,)
    assert int(moved.golden_from) <= 40 <= int(moved.golden_to)
    assert result.verdict is Verdict.DIFFER


def test_a_part_of_a_complex_number() -> None:
    parameters = _core.TreeParameters("<c16", atol=1e-3, residue_levels=15)
    golden = noisy(np.random.default_rng(5), "<f8", 300, "smooth") * (1 + 2j)
    new = golden.copy()
    new[31] += 0.005j
    (moved,) = judged(parameters, golden, new).moved_elements
    assert (moved.index, moved.part, moved.is_beyond) == ((31,), "imaginary", True)
    assert float(moved.golden_from) <= golden[31].imag <= float(moved.golden_to)


def test_a_flipped_bit_of_an_exact_number() -> None:
    parameters = _core.TreeParameters("<f8", chunk_bytes=4096)
    golden = noisy(np.random.default_rng(6), "<f8", 512, "noise")
    new = golden.copy()
    new.view(np.uint64)[99] ^= np.uint64(1 << 61)
    result = judged(parameters, golden, new)
    (moved,) = result.moved_elements
    assert moved.index == (99,)
    assert float(moved.golden_from) == float(moved.golden_to) == golden[99]


def test_a_chunk_that_matches_has_no_solution() -> None:
    parameters = _core.TreeParameters("<f8", atol=1e-3, residue_levels=15)
    golden = noisy(np.random.default_rng(7), "<f8", 512, "noise")
    tree = golden_of(parameters, golden).tree
    assert _core.solve_chunk(tree, 0, golden) == []
    with pytest.raises(_core.CoreError, match="not those of the block"):
        _core.solve_chunk(tree, 0, golden[:-1])
    with pytest.raises(IndexError):
        _core.solve_chunk(tree, 1, golden)


def test_what_was_special_in_the_golden_is_no_difference() -> None:
    """NaN on both sides, in a chunk where too many others moved to be told."""
    parameters = parameters_of("<f8", "absolute", 15, 4096)
    golden = noisy(np.random.default_rng(8), "<f8", 500, "noise")
    golden[::7] = math.nan
    golden[3::70] = math.inf
    new = golden.copy()
    new[[1, 2, 4, 5, 6, 9]] += 5e-3
    result = judged(parameters, golden, new)
    assert (result.verdict, result.moved_elements) == (Verdict.UNDECIDED, ())
    new[[10, 11]] = math.nan
    result = judged(parameters, golden, new)
    _, residues = _core.cell_codes(parameters, golden)
    assert residues is not None
    told = [(at,) for at in (10, 11) if residues[at]]
    assert [one.index for one in result.moved_elements] == told
    assert result.differing_count_at_least == len(told) > 0


def test_a_zero_under_a_purely_relative_bound() -> None:
    parameters = parameters_of("<f8", "relative", 15, 4096)
    golden = noisy(np.random.default_rng(9), "<f8", 500, "smooth")
    golden[40] = 0.0
    new = golden.copy()
    new[40] = 1e-3
    result = judged(parameters, golden, new)
    (moved,) = result.moved_elements
    assert (moved.golden_from, moved.golden_to, moved.is_beyond) == ("0.0", "0.0", True)
    result = judged(parameters, new, golden)
    (moved,) = result.moved_elements
    assert value(moved.golden_from, "<f8") <= 1e-3 <= value(moved.golden_to, "<f8")
    assert result.verdict is Verdict.DIFFER
