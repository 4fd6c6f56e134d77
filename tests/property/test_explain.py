"""Hypotheses on what differs: found where they were planted, and nowhere else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from tiers import examples

from ciwrap import api
from ciwrap.explain.hypotheses import _rounded
from ciwrap.model.variable_result import Cause, Explanation, IndexBox
from ciwrap.report.cause_words import cause_words

if TYPE_CHECKING:
    from collections.abc import Callable

    Plant = Callable[[np.ndarray, np.random.Generator], np.ndarray]

LAYOUTS: tuple[tuple[int, ...], ...] = ((60,), (30, 30), (9, 12, 12), (50, 3))


def told(golden: np.ndarray, new: np.ndarray, **bound: Any) -> Explanation | None:
    """The first cause that is told; a bound that would have passed is none."""
    result = api.compare_arrays(golden, new, **(bound or {"atol": 1e-6}))
    causes = [one for one in result.explanations if one.cause is not Cause.WIDER_BOUND]
    return causes[0] if causes else None


def base(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(3.0, 2.0, shape)


def partly(change: Callable[[np.ndarray], Any]) -> Plant:
    """Changes a third of the elements."""

    def plant(golden: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return np.where(random.random(golden.shape) < 0.35, change(golden), golden)

    return plant


def whole(change: Callable[[np.ndarray], Any]) -> Plant:
    return lambda golden, _: np.asarray(change(golden))


PLANTED: tuple[tuple[Cause, Plant], ...] = (
    (Cause.SIGN_FLIPPED, partly(np.negative)),
    (Cause.SIGN_FLIPPED, whole(np.negative)),
    (Cause.CONSTANT_OFFSET, whole(lambda g: g + 0.25)),
    (Cause.CONSTANT_OFFSET, partly(lambda g: g - 0.0625)),
    (Cause.CONSTANT_FACTOR, whole(lambda g: g * 1e3)),
    (Cause.CONSTANT_FACTOR, partly(lambda g: g * 4.184)),
    (Cause.CONSTANT_FACTOR, whole(lambda g: g * 1.37)),
    (Cause.ALL_ZERO, partly(lambda g: g * 0)),
    (Cause.ALL_NAN, partly(lambda g: g * np.nan)),
    (Cause.FILL_VALUE, partly(lambda g: np.full_like(g, -9999.0))),
    (Cause.BYTE_ORDER, whole(lambda g: g.byteswap())),
    (Cause.SHIFTED, whole(lambda g: np.roll(g, 1, axis=0))),
    (Cause.SHIFTED, whole(lambda g: np.roll(g, -2, axis=0))),
    (Cause.OTHER_ORDER, lambda g, random: g[random.permutation(len(g))]),
)


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
@pytest.mark.parametrize(("cause", "plant"), PLANTED)
def test_what_was_planted_is_found(cause: Cause, plant: Plant, shape: tuple[int, ...]) -> None:
    golden = base(shape, 1)
    new = plant(golden, np.random.default_rng(2))
    found = told(golden, new)
    assert found is not None
    assert found.cause is cause
    differing = int(np.count_nonzero(~(np.abs(new - golden) <= 1e-6)))
    assert found.differing_count == differing
    assert 0.5 * differing <= found.held_count <= differing


@pytest.mark.parametrize("value", [273.15, -0.001, 1013.25, 1e-4 / 3])
def test_an_offset_and_a_factor_are_told_in_the_digits_that_they_have(value: float) -> None:
    golden = base((500,), 21)
    random = np.random.default_rng(22)
    for noise in (0.0, 1e-7):
        new = golden + value + noise * random.uniform(-1, 1, 500)
        found = told(golden, new, atol=1e-6)
        assert found is not None
        assert (found.cause, found.values) == (
            Cause.CONSTANT_OFFSET,
            (pytest.approx(value, abs=2e-6),),
        )
        if value != 1e-4 / 3:
            assert found.values == (value,)
            assert cause_words(found, ("A", "B"), "x").endswith(f"{abs(value):g}")
        found = told(golden, golden * value * 1e4 * (1 + noise * random.uniform(-1, 1)), rtol=1e-6)
        assert found is not None
        assert found.cause is Cause.CONSTANT_FACTOR
        if value != 1e-4 / 3:
            assert found.values == (value * 1e4,)


@pytest.mark.parametrize("kind", ["<i8", "<u8", ">i8", "<f8", "<f4"])
def test_a_fill_value_is_named_to_the_digit_and_none_is_offered(kind: str) -> None:
    """Missing on one side alone is a difference, whatever is said to mean "missing"."""
    dtype = np.dtype(kind)
    is_float = dtype.kind == "f"
    values = [1e20, 9.96921e36] if is_float else [int(np.iinfo(dtype).max) - 1, 2**62 + 1]
    golden = np.random.default_rng(23).integers(1, 1000, 300).astype(dtype)
    for value in values:
        new = golden.copy()
        new[5:40] = value
        found = told(golden, new, atol=0)
        assert found is not None
        assert found.cause is Cause.FILL_VALUE
        assert found.remedy is None
        if not is_float:
            assert f"new is {value}, " in cause_words(found, ("golden", "new"), "x")
        found = told(golden, new, atol=0, fill_values=[value])
        assert found is not None
        assert (found.cause, found.remedy) == (Cause.FILL_VALUE, None)


def test_an_offset_of_a_slope_is_no_shift() -> None:
    """2 more is two rows further in np.arange, but for the last two."""
    golden = np.arange(40.0)
    explanation = told(golden, golden + 2)
    assert explanation is not None
    assert (explanation.cause, explanation.held_count) == (Cause.CONSTANT_OFFSET, 40)


@pytest.mark.parametrize("shape", [(20, 20), (8, 15, 15), (4, 9, 9, 2)], ids=str)
def test_exchanged_axes_are_found(shape: tuple[int, ...]) -> None:
    golden = base(shape, 3)
    one, other = (0, 1) if len(shape) == 2 else (1, 2)
    found = told(golden, golden.swapaxes(one, other).copy())
    assert found is not None
    assert (found.cause, found.axes) == (Cause.TRANSPOSED, (one, other))
    on_diagonal = int(np.prod(shape)) // shape[one]
    assert found.held_count == found.differing_count == golden.size - on_diagonal


@pytest.mark.parametrize("shape", [(20, 30), (8, 15, 4), (40, 3)], ids=str)
def test_the_order_of_fortran_is_found(shape: tuple[int, ...]) -> None:
    golden = base(shape, 4)
    found = told(golden, golden.reshape(-1, order="F").reshape(shape))
    assert found is not None
    assert found.cause is Cause.COLUMNS_FIRST


@pytest.mark.parametrize("shape", [(50, 3), (3, 20, 20), (9, 12, 6)], ids=str)
def test_exchanged_components_are_found(shape: tuple[int, ...]) -> None:
    axis = int(np.argmin(shape))
    for come in ((1, 0), (2, 0), (2, 0, 1), (1, 2, 0)):
        rows = sorted(come)
        golden = base(shape, 16)
        order = np.arange(shape[axis])
        order[rows] = come
        new = np.take(golden, order, axis=axis)
        found = told(golden, new)
        assert found is not None
        assert (found.cause, found.axes, found.values) == (Cause.EXCHANGED, (axis,), come)
        assert found.held_count == found.differing_count == len(rows) * golden.size // shape[axis]


@pytest.mark.parametrize("shape", [(400,), (300, 3), (100, 4, 2)], ids=str)
def test_another_order_is_found_beside_a_row_that_changed(shape: tuple[int, ...]) -> None:
    golden, random = base(shape, 17), np.random.default_rng(18)
    new = golden[random.permutation(shape[0])]
    new[5] += 1
    found = told(golden, new)
    assert found is not None
    assert found.cause is Cause.OTHER_ORDER
    assert 0.95 * found.differing_count <= found.held_count < found.differing_count


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("name", "rtol"), [("float32", 6.1e-8), ("float16", 5e-4), ("bfloat16", 4e-3)]
)
def test_lost_precision_is_found(name: str, rtol: float, shape: tuple[int, ...]) -> None:
    golden = base(shape, 5)
    golden.reshape(-1)[:3] = 1 + 2.0**-8, 1 + 2.0**-11, 1 + 2.0**-24
    rounded = _rounded(golden, name)
    found = told(golden, rounded, atol=1e-14)
    assert found is not None
    assert (found.cause, found.words, found.on_golden) == (Cause.LESS_PRECISE, name, False)
    assert found.remedy is not None
    offered = float(found.remedy.removeprefix("rtol: "))
    assert offered <= rtol
    assert api.compare_arrays(golden, rounded, rtol=offered).differing_count == 0


@pytest.mark.parametrize("rounds_golden", [False, True])
def test_no_rtol_is_offered_where_the_shorter_type_has_fewer_digits(rounds_golden: bool) -> None:
    """Next to zero float16 has steps of 6e-8, which are more than any share of 1e-6."""
    golden = base((200,), 5)
    golden[:20] *= 1e-6
    sides = (golden, _rounded(golden, "float16"))
    found = told(*(reversed(sides) if rounds_golden else sides), rtol=1e-9)
    assert found is not None
    assert (found.cause, found.words, found.remedy) == (Cause.LESS_PRECISE, "float16", None)


@pytest.mark.parametrize("shape", [(200,), (80, 3), (10, 40, 2)], ids=str)
def test_a_periodic_image_is_found_and_its_period_helps(shape: tuple[int, ...]) -> None:
    box = np.array([5.0, 7.5, 9.0])[: shape[-1]] if len(shape) > 1 else np.array([6.5])
    random = np.random.default_rng(6)
    golden = random.uniform(0, 1, shape) * box
    turns = np.where(random.random(shape) < 0.2, random.choice([-1, 1], shape), 0)
    new = golden + turns * box
    found = told(golden, new)
    assert found is not None
    assert found.cause is Cause.PERIODIC_IMAGE
    assert found.values == tuple(float(one) for one in box)
    period = box.tolist() if len(box) > 1 else float(box[0])
    assert api.compare_arrays(golden, new, atol=1e-6, period=period).differing_count == 0


def settings_in(remedy: str | None) -> dict[str, Any]:
    """What a line for ciwrap.yaml sets."""
    assert remedy is not None
    found = yaml.safe_load(remedy)
    return {key: value if key == "period" else float(value) for key, value in found.items()}


BOUNDS: tuple[dict[str, Any], ...] = ({}, {"atol": 1e-6}, {"rtol": 1e-9}, {"ulps": 3})


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("seed", range(examples(20)))
def test_what_is_offered_for_a_circle_is_enough(seed: int, kind: str, bound: Any) -> None:
    """It was offered beside bounds that no period goes with, and for exact ones without an atol for
    what rounding leaves.
    """
    random = np.random.default_rng(seed)
    golden = random.uniform(0, 10, (60, 3))
    if kind == "f4":  # which rounds away more than a narrow bound lets a hypothesis see
        golden = np.round(golden, 0) + random.integers(0, 1024, golden.shape) / 1024
    turns = np.where(random.random(golden.shape) < 0.2, random.choice([-1, 1], golden.shape), 0)
    sides = golden.astype(kind), (golden + 10 * turns).astype(kind)
    found = told(*sides, **bound) if bound else api.compare_arrays(*sides).explanations[0]
    assert found is not None
    assert found.cause is Cause.PERIODIC_IMAGE
    offered = settings_in(found.remedy)
    assert {*offered} - {"atol"} == {"period"}
    offered.setdefault("atol", bound.get("atol", 0.0))
    assert api.compare_arrays(*sides, **offered).differing_count == 0


@pytest.mark.parametrize("period", [0.94970325, 6.2831855, 10.0, 360.0, 2 * math.pi])
def test_a_period_is_rounded_no_further_than_the_bound_lets(period: float) -> None:
    random = np.random.default_rng(1)
    golden = random.uniform(0, period, 200)
    new = golden + period * np.where(random.random(200) < 0.2, random.choice([-1, 1], 200), 0)
    found = told(golden, new, atol=1e-12)
    assert found is not None
    assert (found.cause, found.values) == (
        Cause.PERIODIC_IMAGE,
        (pytest.approx(period, abs=1e-12),),
    )
    assert found.remedy is not None
    assert found.remedy.startswith("period: ")
    offered = settings_in(found.remedy)
    assert api.compare_arrays(golden, new, atol=1e-12, **offered).differing_count == 0


def test_the_values_that_a_cause_leaves_open_are_found() -> None:
    golden = base((40, 50), 1)
    new = golden.copy()
    new[5:15] = -new[5:15]
    new[7, 3] += 9
    new[11, 40] += 9
    found = told(golden, new)
    assert found is not None
    assert (found.cause, found.differing_count - found.held_count) == (Cause.SIGN_FLIPPED, 2)
    assert found.unexplained == IndexBox((7, 3), (11, 40))
    whole = told(golden, -golden)
    assert whole is not None
    assert whole.unexplained is None


@pytest.mark.parametrize("by", [-1, 1])
def test_what_was_shifted_in_from_nowhere_is_left_open(by: int) -> None:
    golden = base((60, 4), 2)
    found = told(golden, np.roll(golden, by, axis=0) + 5.0 * _row(60, 0 if by > 0 else 59))
    assert found is not None
    row = 0 if by > 0 else 59
    assert (found.cause, found.unexplained) == (Cause.SHIFTED, IndexBox((row, 0), (row, 3)))


def _row(count: int, row: int) -> np.ndarray:
    """1 in one row, 0 in all others."""
    return (np.arange(count) == row).astype(float)[:, None]


def test_each_complex_number_that_became_nan_is_counted() -> None:
    golden = base((40,), 1) + 1j * base((40,), 2)
    golden[3] = complex(1.0, np.nan)
    found = told(golden, np.full_like(golden, complex(np.nan, np.nan)))
    assert found is not None
    assert (found.cause, found.held_count, found.differing_count) == (Cause.ALL_NAN, 40, 40)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_the_rtol_of_a_shorter_type_is_enough(seed: int) -> None:
    """It takes the place of the whole bound, so that noise next to zero needs the atol with it."""
    random = np.random.default_rng(seed)
    golden = base((200,), seed)
    atol = 0.0 if seed % 4 == 0 else 1e-6
    new = _rounded(golden, "float16")
    if seed % 2:
        golden[:20] = random.uniform(-1, 1, 20) * 1e-7
        new[:20] = golden[:20] + random.uniform(-1, 1, 20) * atol / 2
    found = (
        told(golden, new, atol=atol) if atol else api.compare_arrays(golden, new).explanations[0]
    )
    assert found is not None
    assert found.cause is Cause.LESS_PRECISE
    offered = settings_in(found.remedy)
    assert ("atol" in offered) == bool(seed % 2 and atol)
    assert api.compare_arrays(golden, new, **offered).differing_count == 0


def test_a_zero_is_no_number_with_a_bit_turned() -> None:
    """Turned in its exponent, a number is next to zero, and so within the bound of it."""
    golden = base((8, 10), 4).astype("f4")
    golden[0, 0] = -1.2196409
    new = golden.copy()
    new[0, 0] = 0.0
    assert told(golden, new) is None


def test_what_is_next_to_zero_is_no_number_with_a_bit_turned() -> None:
    """2.0 with its bytes turned is a denormal, as near to 0.0 as 2.0's own bound is wide."""
    golden = np.array([2.0], "f4")
    assert told(golden, golden.byteswap(), ulps=4) is None


def test_an_offset_of_small_numbers_holds_on_each_of_them() -> None:
    random = np.random.default_rng(1)
    golden = random.normal(size=400) * 10.0 ** random.integers(-9, 1, 400)
    found = told(golden, golden + 1.0, rtol=1e-12)
    assert found is not None
    assert (found.cause, found.values) == (Cause.CONSTANT_OFFSET, (1.0,))
    assert found.held_count == found.differing_count == 400


def test_an_offset_of_few_digits_is_told_as_it_is() -> None:
    """273.15 is 273.25 as float16, and no other number of that type is meant."""
    golden = (np.arange(-60, 60) / 1000).astype("f2")
    found = told(golden, golden + np.float16(273.15), rtol=1e-3)
    assert found is not None
    assert abs(found.values[0] - 273.25) <= 0.125


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_what_crossed_one_edge_of_a_circle_is_found(direction: float) -> None:
    golden = np.random.default_rng(8).uniform(0, 360, 1000)
    golden[:5], golden[5:10] = 1e-9, 360 - 1e-9
    new = (golden - direction * 1e-8) % 360
    found = told(golden, new)
    assert found is not None
    assert (found.cause, found.values) == (Cause.PERIODIC_IMAGE, (360.0,))


def test_an_offset_of_some_rows_is_no_periodic_image() -> None:
    golden = np.linspace(0, 1, 400)
    for rows in (slice(0, None, 2), slice(100), slice(300, None)):
        new = golden.copy()
        new[rows] += 0.6
        found = told(golden, new)
        assert found is not None
        assert found.cause is Cause.CONSTANT_OFFSET


@pytest.mark.parametrize("shape", [(40, 40), (20, 20, 20), (400, 30)], ids=str)
def test_faces_are_found(shape: tuple[int, ...]) -> None:
    golden, random = base(shape, 7), np.random.default_rng(8)
    new = golden.copy()
    new[:, -1] += random.normal(size=new[:, -1].shape)
    new[:, 0] += random.normal(size=new[:, 0].shape)
    found = told(golden, new)
    assert found is not None
    assert (found.cause, found.axes, found.values) == (Cause.BOUNDARY, (1,), (1.0,))


def test_a_bound_too_small_next_to_zero_is_found_and_its_atol_helps() -> None:
    for size in (200, 4000, 30_000):
        golden = np.sin(np.linspace(0, 20 * math.pi, size))
        random = np.random.default_rng(size)
        golden[random.random(size) < 0.05] *= 1e-9
        new = golden + random.uniform(-1e-15, 1e-15, size)
        found = told(golden, new, rtol=1e-9)
        assert found is not None
        assert found.cause is Cause.NEAR_ZERO
        wider = api.compare_arrays(golden, new, rtol=1e-9, atol=found.values[0])
        assert wider.differing_count == 0


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<f8", "<c16"])
def test_the_bound_that_is_said_to_pass_passes(kind: str) -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        golden = random.normal(size=200) * 10.0 ** random.integers(-8, 8)
        moved = golden * (1 + random.normal(scale=2e-4, size=200))
        if kind == "<c16":
            phase = np.exp(1j * random.uniform(0, 6, 200))
            golden, moved = golden * phase, moved * phase
        one, other = golden.astype(kind), moved.astype(kind)
        atol = float(np.abs(moved - golden).max()) / random.choice([2.0, 50.0])
        bound = {"atol": atol, "rtol": float(random.choice([0.0, 1e-6]))}
        result = api.compare_arrays(one, other, **bound)
        (said,) = [e for e in result.explanations if e.cause is Cause.WIDER_BOUND]
        passed = api.compare_arrays(one, other, **settings_in(said.remedy))
        assert passed.differing_count == 0
        assert settings_in(said.remedy).get("atol") == said.values[0]


def test_what_is_offered_is_enough_by_itself_where_rtol_lets_something_pass() -> None:
    """Whoever sets an atol for a variable sets its rtol to 0, if they do not name it."""
    golden = np.array([200.0, *np.linspace(1, 2, 50)])
    new = golden + np.array([1e-4, *np.full(50, 1e-5)])
    result = api.compare_arrays(golden, new, rtol=1e-6)
    (said,) = (one for one in result.explanations if one.cause is Cause.WIDER_BOUND)
    assert settings_in(said.remedy) == {"atol": said.values[0], "rtol": 1e-6}
    assert api.compare_arrays(golden, new, **settings_in(said.remedy)).differing_count == 0


def test_no_bound_is_told_that_would_hide_a_defect() -> None:
    golden = np.random.default_rng(0).normal(size=200)
    result = api.compare_arrays(golden, golden + 1, atol=1e-3)
    assert not [e for e in result.explanations if e.cause is Cause.WIDER_BOUND]
    # Exactly: nobody has thought of a bound yet, and yet it has to be small beside the values.
    for by, is_offered in ((1.0, False), (0.01, False), (1e-7, True)):
        result = api.compare_arrays(golden, golden + by)
        assert is_offered == any(e.cause is Cause.WIDER_BOUND for e in result.explanations)


@pytest.mark.parametrize("fill", [9.96921e36, -9999.0])
def test_no_bound_is_told_across_a_fill_value(fill: float) -> None:
    """Nor one of the size of what the values span, whatever stands for what is missing."""
    golden = np.random.default_rng(1).normal(size=300)
    golden[:20] = fill
    for new in (np.where(golden == fill, 0.5, golden), golden + np.where(golden == fill, 0, 3.0)):
        result = api.compare_arrays(golden, new)
        assert result.differing_count
        assert not [e for e in result.explanations if e.cause is Cause.WIDER_BOUND]


@pytest.mark.parametrize("side", [0, 1])
def test_no_bound_is_told_of_what_is_missing_on_one_side(side: int) -> None:
    sides = np.arange(4.0), np.arange(4.0)
    sides[side][2] = -999.0
    result = api.compare_arrays(*sides, atol=1e6, fill_values=[-999.0])
    assert (result.differing_count, result.missing_mismatch_count) == (1, 1)
    assert not [e for e in result.explanations if e.cause is Cause.WIDER_BOUND]


@pytest.mark.parametrize(
    ("shape", "threads", "thread"),
    [((256,), 8, 2), ((125, 20), 4, 1), ((470, 6, 5), 16, 9)],
    ids=str,
)
def test_the_rows_of_one_thread_are_found(
    shape: tuple[int, ...], threads: int, thread: int
) -> None:
    golden, random = base(shape, 11), np.random.default_rng(12)
    new = golden.copy()
    # As OpenMP deals out a loop without a schedule of its own.
    rows = np.array_split(np.arange(shape[0]), threads)[thread]
    new[rows] += random.normal(size=new[rows].shape)
    found = told(golden, new)
    assert found is not None
    assert (found.cause, found.axes, found.values) == (Cause.STRIPE, (0,), (thread, threads))
    # Of so few rows as these threads would be dealt here, any may be some thread's.
    few = golden.copy()
    few[rows[0] : rows[0] + 8] += 1 + random.random(few[:8].shape)
    said = told(golden, few)
    assert said is None or said.cause is not Cause.STRIPE
    # Rows that no even share begins or ends with are nobody's.
    other = golden.copy()
    other[rows[0] + 1 : rows[-1]] += 1 + random.random(other[rows[0] + 1 : rows[-1]].shape)
    said = told(golden, other)
    assert said is None or said.cause is not Cause.STRIPE


@pytest.mark.parametrize(
    ("golden", "new"),
    [(0.0, 5e-324), (1.0, 1.0 + 2**-52), (0.0, 1.5e308), (0.0, 1.7976931348623157e308)],
)
def test_a_bound_is_told_of_the_least_and_the_largest_numbers(golden: float, new: float) -> None:
    sides = np.full(4, golden), np.full(4, new)
    result = api.compare_arrays(*sides)
    assert result.differing_count == 4
    for said in (e for e in result.explanations if e.cause is Cause.WIDER_BOUND):
        assert math.isfinite(said.values[0])
        assert api.compare_arrays(*sides, atol=said.values[0]).differing_count == 0


def other_difference(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that differ in a way of which none of the hypotheses is true."""
    random = np.random.default_rng(seed)
    shape = LAYOUTS[seed % len(LAYOUTS)]
    golden = random.normal(random.choice([0, 5]), 1.0, shape) * 10.0 ** random.integers(-3, 4)
    size = float(np.abs(golden).max())
    noise = random.normal(size=shape) * size * 10.0 ** random.uniform(-4, 1)
    kinds = (
        lambda: golden + noise,
        lambda: golden + np.where(random.random(shape) < 0.2, noise, 0),
        lambda: golden * (1 + random.normal(scale=0.3, size=shape)),
        lambda: random.permutation(golden.reshape(-1)).reshape(shape) + noise,
        lambda: golden + np.cumsum(noise.reshape(-1)).reshape(shape),
        lambda: golden**3 / size**2 + noise,
        lambda: golden + random.choice([-1, 1], shape) * random.uniform(0.5, 1.5, shape) * size,
    )
    return golden, np.asarray(kinds[seed % len(kinds)]())


def test_nothing_is_claimed_of_other_differences() -> None:
    claimed = {}
    for seed in range(examples(500)):
        golden, new = other_difference(seed)
        atol = float(np.abs(new - golden).max()) * 10.0 ** -(seed % 7)
        found = told(golden, new, atol=atol)
        if found is not None:
            claimed[seed] = found
    assert claimed == {}


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
@pytest.mark.parametrize(("kind", "bit"), [("<f8", 30), ("<f8", 55), ("<f4", 3), ("<f4", 25)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_flipped_bit_is_found(shape: tuple[int, ...], kind: str, bit: int, count: int) -> None:
    golden = np.abs(base(shape, 13)).astype(kind)
    new = golden.copy()
    places = np.random.default_rng(14).choice(golden.size, count, replace=False)
    bits = new.reshape(-1).view(f"u{new.itemsize}")
    bits[places] ^= np.array(1 << bit, bits.dtype)
    found = told(golden, new, atol=1e-30)
    assert found is not None
    fraction = 52 if kind == "<f8" else 23
    part = "fraction" if bit < fraction else "exponent"
    assert (found.cause, found.values, found.words) == (Cause.BIT_FLIPPED, (bit,), part)
    assert (found.held_count, found.differing_count) == (count, count)


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
@pytest.mark.parametrize("bit", [50, 53, 55])
@pytest.mark.parametrize("count", [1, 4])
def test_a_flipped_bit_is_found_beside_noise(shape: tuple[int, ...], bit: int, count: int) -> None:
    golden, random = np.abs(base(shape, 13)) + 0.1, np.random.default_rng(15)
    new = golden * (1 + 1e-9 * random.uniform(-1, 1, golden.shape))
    places = random.choice(golden.size, count, replace=False)
    new.reshape(-1).view("u8")[places] ^= np.uint64(1 << bit)
    found = told(golden, new, rtol=1e-8)
    assert found is not None
    assert (found.cause, found.values) == (Cause.BIT_FLIPPED, (bit,))
    assert found.held_count == found.differing_count == count


def test_no_bit_is_named_of_what_rounding_does() -> None:
    golden = np.abs(base((60,), 13)) + 0.1
    new = golden.copy()
    new[7] = np.nextafter(golden[7], 9.0)
    assert told(golden, new) is None


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8"])
@pytest.mark.parametrize("values", [(2.0, 3.0), (1.0, 1.5), (20.0, 24.0), (0.25, 0.375)])
def test_no_bit_is_named_of_round_numbers(kind: str, values: tuple[float, float]) -> None:
    golden, new = (np.array([one], kind) for one in values)
    assert not is_told_as_flipped(golden, new)
    among = np.linspace(1.0, 2.0, 50).astype(kind)
    both = np.append(among, golden), np.append(among, new)
    assert not is_told_as_flipped(*both)


def test_a_round_number_that_was_added_is_no_flipped_bit() -> None:
    """Adding a power of two without a carry turns one bit."""
    claimed = []
    for seed in range(50):
        golden = np.random.default_rng(seed).uniform(270, 300, 1000)
        for added in (0.25, 0.5, 1.0, 2.0):
            new = golden.copy()
            new[3] += added
            claimed += [seed] if is_told_as_flipped(golden, new) else []
    assert claimed == []


def is_told_as_flipped(golden: np.ndarray, new: np.ndarray) -> bool:
    found = told(golden, new, atol=1e-6)
    return found is not None and found.cause is Cause.BIT_FLIPPED


def test_no_bit_is_named_where_the_value_is_any_other() -> None:
    claimed = []
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        golden = random.normal(size=LAYOUTS[seed % len(LAYOUTS)])
        new = golden.copy()
        new.reshape(-1)[random.integers(golden.size)] += random.normal()
        found = told(golden, new, rtol=(seed % 3) * 1e-8)
        claimed += [] if found is None else [found]
    assert claimed == []


@pytest.mark.parametrize("shape", [(60,), (9, 12), (4, 5, 6)], ids=str)
@pytest.mark.parametrize("is_unit", [True, False])
def test_a_turn_of_the_phase_is_found(shape: tuple[int, ...], is_unit: bool) -> None:
    random = np.random.default_rng(15)
    golden = np.exp(1j * random.uniform(0, 6, shape))
    golden = golden if is_unit else golden * random.uniform(1, 2, shape)
    found = told(golden, golden * np.exp(0.3j))
    assert found is not None
    assert (found.cause, found.words) == (
        Cause.CONSTANT_FACTOR,
        "a turn of the phase by 0.3",
    )
    assert complex(*found.values) == pytest.approx(np.exp(0.3j))


def test_a_fill_value_does_not_make_all_others_next_to_zero() -> None:
    golden = np.random.default_rng(0).normal(0, 1e-5, (80, 80))
    golden[:20] = -1e18
    new = golden.copy()
    new[50:] += 1e-5
    result = api.compare_arrays(golden, new, atol=1e-6)
    assert Cause.NEAR_ZERO not in {one.cause for one in result.explanations}
    effect = result.details.effect
    assert effect is not None
    assert (effect.apart, effect.apart_count, effect.element_count) == (-1e18, 1600, 4800)
    assert (effect.least, effect.greatest) == (golden[20:].min(), golden[20:].max())
    assert effect.golden_sum == pytest.approx(golden[20:].sum(), rel=1e-9)


def test_one_or_two_elements_have_nothing_in_common() -> None:
    golden = base((50,), 9)
    new = golden.copy()
    new[:2] *= -1
    assert told(golden, new) is None


def test_a_row_that_was_copied_is_no_shifted_array() -> None:
    golden = np.random.default_rng(8).normal(size=(40, 30))
    new = golden.copy()
    new[-1] = new[-2]
    causes = api.compare_arrays(golden, new, atol=1e-6).explanations
    assert [one.cause for one in causes[:2]] == [Cause.BOUNDARY, Cause.SHIFTED]
    assert causes[0].words == "the last row"
