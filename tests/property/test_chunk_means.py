"""What the summaries of chunks let a report draw and say of a golden without data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden
from ciwrap.check.solve import chunk_means, least_shares
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer
from ciwrap.golden.manifest import capture
from ciwrap.model import (
    ErrorBound,
    EvidencePolicy,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)
from ciwrap.model.variable_result import Cause, cells
from ciwrap.report.cause_words import cause_words

SIDES = ("golden", "new")
PER_CHUNK = 64


def settings(atol: float, levels: int, itemsize: int) -> VariableSettings:
    return VariableSettings(
        bound=ErrorBound(atol),
        evidence=EvidencePolicy.RESIDUES,
        residue_levels=levels,
        chunk_bytes=PER_CHUNK * itemsize,
    )


def golden_of(values: np.ndarray, atol: float, levels: int = 15) -> _core.GoldenVariable:
    asked = settings(atol, levels, values.itemsize)
    return capture(ArrayValues(values), asked, VariableId("x")).variable


def judged(golden: _core.GoldenVariable, new: np.ndarray, **more: Any) -> VariableResult:
    return check_golden(golden, ArrayValues(new), None, work=Work(explain=explainer), **more)


@pytest.mark.parametrize("levels", [1, 3, 15])
@pytest.mark.parametrize(
    ("dtype", "atol"), [("<f8", 1e-3), ("<f4", 0.01), (">f8", 2.0), ("<i4", 7), ("<u2", 3.5)]
)
def test_means_are_those_of_the_values_to_within_the_bound(
    dtype: str, atol: float, levels: int
) -> None:
    rng = np.random.default_rng(4)
    numbers = rng.uniform(20, 200, size=10 * PER_CHUNK - 5)
    moved = numbers + rng.uniform(-9, 9, size=numbers.size)
    golden, new = numbers.astype(dtype), moved.astype(dtype)
    held = golden_of(golden, atol, levels)
    changed = np.arange(held.tree.leaf_count)
    least = least_shares(held, ArrayValues(new), changed)
    assert least is not None
    means = chunk_means(held, changed, least)
    assert means is not None
    for found, side in zip(means, (golden, new), strict=True):
        starts = np.arange(0, side.size, PER_CHUNK)
        true = np.add.reduceat(side.astype("f8"), starts) / np.diff([*starts, side.size])
        assert np.abs(found - true).max() <= atol * (1 + 1e-6) + (dtype[1] in "iu")


def test_a_chunk_without_a_number_has_no_mean() -> None:
    golden = np.arange(4.0 * PER_CHUNK)
    golden[PER_CHUNK : 2 * PER_CHUNK] = np.nan
    held = golden_of(golden, 1e-3)
    new = golden + 1
    new[: 3 * PER_CHUNK] = np.inf
    changed = np.arange(4)
    least = least_shares(held, ArrayValues(new), changed)
    assert least is not None
    means = chunk_means(held, changed, least)
    assert means is not None
    assert np.isnan(means[0]).tolist() == [False, True, False, False]
    assert np.isnan(means[1]).tolist() == [True, True, True, False]


def field(rng: np.random.Generator) -> np.ndarray:
    y, x = np.mgrid[0:40, 0:64] / 40
    return np.sin(7 * x) * np.cos(5 * y) * 30 + rng.uniform(50, 300)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause.CONSTANT_OFFSET, "new = golden + 4"),
        (Cause.SIGN_FLIPPED, "new = -golden"),
        (Cause.CONSTANT_FACTOR, "new = golden x 1.25"),
        (None, ""),
    ],
)
def test_causes_that_means_tell(seed: int, cause: Cause | None, words: str) -> None:
    rng = np.random.default_rng(seed)
    golden = field(rng)
    new = {
        Cause.CONSTANT_OFFSET: golden + 4,
        Cause.SIGN_FLIPPED: -golden,
        Cause.CONSTANT_FACTOR: golden * 1.25,
        None: golden + rng.normal(size=golden.shape),
    }[cause]
    new = new + rng.uniform(-1, 1, size=new.shape) * 1e-7
    result = judged(golden_of(golden, 1e-6), new)
    assert result.verdict is Verdict.DIFFER
    assert [one.cause for one in result.explanations] == ([] if cause is None else [cause])
    for one in result.explanations:
        assert one.of_means
        said = cause_words(one, SIDES, "x")
        assert said.startswith("in the means of all 40 blocks that may differ, ")
        assert words in said


def test_a_few_chunks_say_nothing_of_a_cause() -> None:
    golden = field(np.random.default_rng(1))
    new = golden.copy()
    new[:2] += 4
    assert judged(golden_of(golden, 1e-6), new).explanations == ()


def test_the_picture_holds_the_means_of_both_sides() -> None:
    golden = field(np.random.default_rng(2))
    new = golden.copy()
    new[10:20] += 25
    result = judged(golden_of(golden, 1e-6), new)
    assert result.details is not None
    picture = result.details.means
    assert picture is not None
    assert (picture.rows, picture.columns, picture.block_elements) == (40, 64, PER_CHUNK)
    sides = [
        np.frombuffer(cells(text, 40, 64), np.uint8).reshape(40, 64)
        for text in (picture.golden, picture.new)
    ]
    for drawn, side in zip(sides, (golden, new), strict=True):
        values = picture.low + (picture.high - picture.low) * drawn / 254.0
        means = np.repeat(side.mean(axis=1)[:, None], 64, axis=1)
        assert np.abs(values - means).max() <= (picture.high - picture.low) / 254
    is_other = (sides[0] != sides[1]).all(axis=1)
    assert np.flatnonzero(is_other).tolist() == list(range(10, 20))


def test_relative_bounds_have_no_means() -> None:
    """Their codes are logarithms, and the mean of these is no mean of the values."""
    golden = field(np.random.default_rng(3))
    asked = VariableSettings(
        bound=ErrorBound(0.0, 1e-6), evidence=EvidencePolicy.RESIDUES, chunk_bytes=512
    )
    held = capture(ArrayValues(golden), asked, VariableId("x")).variable
    result = judged(held, golden * 1.5)
    assert result.verdict is Verdict.DIFFER
    assert result.details is not None
    assert result.details.means is None
