"""What residues show of values that nobody kept: planted changes are named, chance never is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiers import examples

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden
from ciwrap.explain.by_residues import by_residues, nan_box
from ciwrap.golden.manifest import capture
from ciwrap.golden.trees import build_tree
from ciwrap.model import ErrorBound, EvidencePolicy, VariableId, VariableSettings
from ciwrap.model.variable_result import Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable

ATOL = 1e-6


def golden_of(values: np.ndarray, **bound: float) -> _core.GoldenVariable:
    asked = VariableSettings(
        bound=ErrorBound(**(bound or {"atol": ATOL})), evidence=EvidencePolicy.RESIDUES
    )
    return capture(ArrayValues(values), asked, VariableId("x")).variable


def told_of(golden: np.ndarray, new: np.ndarray, **bound: float) -> Explanation | None:
    tree = golden_of(golden, **bound).tree
    built = build_tree(tree.parameters, ArrayValues(new), golden=tree).tree
    return by_residues(tree, new, _core.diff_trees(tree, built))


def field(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    smooth = sum(
        np.sin((axis + 2) * np.linspace(0, 3, extent)).reshape(
            [-1 if one == axis else 1 for one in range(len(shape))]
        )
        for axis, extent in enumerate(shape)
    )
    return 3 + smooth + 0.05 * rng.normal(size=shape)


def noisy(values: np.ndarray, seed: int, share: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(1000 + seed)
    return values + rng.uniform(-share, share, size=values.shape) * ATOL


def beside(values: np.ndarray, by: int, axis: int) -> np.ndarray:
    """Moved by some rows; what comes in from outside is new."""
    moved = np.roll(values, by, axis=axis)
    edge = [slice(None)] * values.ndim
    edge[axis] = slice(0, by) if by > 0 else slice(by, None)
    moved[tuple(edge)] = 17.25
    return moved


PLANTED: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Cause, dict[str, Any]]] = {
    "sign": (lambda x: -x, Cause.SIGN_FLIPPED, {}),
    "unit": (lambda x: x * 4.184, Cause.CONSTANT_FACTOR, {"values": (4.184,)}),
    "unit back": (lambda x: x / 1000, Cause.CONSTANT_FACTOR, {"values": (1 / 1000,)}),
    "transposed": (lambda x: x.T.copy(), Cause.TRANSPOSED, {"axes": (0, 1)}),
    "shifted down": (lambda x: beside(x, 1, 0), Cause.SHIFTED, {"axes": (0,), "values": (1.0,)}),
    "shifted right": (lambda x: beside(x, 1, 1), Cause.SHIFTED, {"axes": (1,), "values": (1.0,)}),
    "shifted left": (lambda x: beside(x, -2, 1), Cause.SHIFTED, {"axes": (1,), "values": (-2.0,)}),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_planted_change_is_named(name: str, seed: int) -> None:
    change, cause, more = PLANTED[name]
    golden = field(seed, (40 + seed % 3, 40 + seed % 3))
    told = told_of(golden, change(noisy(golden, seed)))
    assert told is not None
    assert told.cause is cause
    assert told.of_residues
    for key, wanted in more.items():
        assert getattr(told, key) == pytest.approx(wanted)
    assert 0.9 * golden.size < told.held_count <= told.differing_count <= golden.size


def test_the_other_order_of_axes_and_components_are_named() -> None:
    golden = field(3, (30, 50))
    new = golden.ravel(order="F").reshape(30, 50)
    told = told_of(golden, noisy(new, 3))
    assert told is not None
    assert told.cause is Cause.COLUMNS_FIRST
    golden = field(4, (500, 3)) + np.array([0.0, 5.0, -3.0])
    told = told_of(golden, noisy(golden[:, [1, 0, 2]], 4))
    assert told is not None
    assert (told.cause, told.axes, told.values) == (Cause.EXCHANGED, (1,), (1.0, 0.0))


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4"])
def test_types_and_byte_orders(dtype: str) -> None:
    golden = (1000 * field(5, (60, 60))).astype(dtype)
    told = told_of(golden, np.ascontiguousarray(golden.T), atol=3.0)
    assert told is not None
    assert told.cause is Cause.TRANSPOSED


def test_a_relative_bound() -> None:
    golden = field(6, (60, 60))
    told = told_of(golden, -golden, rtol=1e-6)
    assert told is not None
    assert told.cause is Cause.SIGN_FLIPPED


@pytest.mark.parametrize("seed", range(examples(200)))
def test_nothing_is_said_of_chance(seed: int) -> None:
    """Other noise, offsets, other fields, few different values, constants, and short arrays."""
    rng = np.random.default_rng(seed)
    golden = field(seed, (24 + seed % 5, 24 + seed % 7))
    others = (
        golden + rng.normal(size=golden.shape) * 10.0 ** rng.uniform(-5, 0),
        golden + rng.uniform(-9, 9),
        field(seed + 1, golden.shape),
        golden * rng.uniform(1.01, 1.5),
        golden + 10 * ATOL * rng.integers(-3, 4, size=golden.shape),
    )
    for new in others:
        assert told_of(golden, new) is None
    few = rng.integers(0, 3, size=golden.shape).astype(float)
    assert told_of(few, rng.integers(0, 3, size=golden.shape).astype(float)) is None
    flat = np.full(golden.shape, 2.5)
    assert told_of(flat, flat + rng.uniform(-1, 1)) is None
    short = rng.normal(size=12)
    assert told_of(short, -short) is None


def test_a_tree_alone_and_texts_of_numbers_say_nothing() -> None:
    golden = field(1, (30, 30))
    asked = VariableSettings(bound=ErrorBound(ATOL), evidence=EvidencePolicy.TREE)
    tree = capture(ArrayValues(golden), asked, VariableId("x")).variable.tree
    assert by_residues(tree, -golden, np.arange(tree.leaf_count)) is None


def test_nan_are_counted_where_the_golden_has_none() -> None:
    golden = field(2, (64, 64))
    golden[3, 3] = np.nan  # in a block of its own
    new = golden.copy()
    new[40:44, 5:25] = np.nan
    kept = golden_of(golden)
    result = check_golden(kept, ArrayValues(new), None)
    (told,) = result.explanations
    assert (told.cause, told.held_count, told.words) == (Cause.ALL_NAN, 80, "")
    built = build_tree(kept.tree.parameters, ArrayValues(new), golden=kept.tree).tree
    assert nan_box(kept.tree, new, _core.diff_trees(kept.tree, built)) == "[40:44, 5:25]"
    # Where the golden has some, nobody knows which of them are new.
    mixed = golden.copy()
    mixed[41, 6] = np.nan
    result = check_golden(golden_of(mixed), ArrayValues(new), None)
    assert sum(one.held_count for one in result.explanations) < 80
