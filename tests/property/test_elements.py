"""Element comparison of the core against the contract, evaluated exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from core_side import parameters
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import adversary, contract, elements
from oracle import scalars as sc
from oracle.cases import Case, all_cases

from ciwrap import _core

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = [case for case in all_cases() if case.residue_levels == 1]


def assert_as_expected(
    got: _core.Comparison, want: elements.Expected, max_indices: int = 100, first: int = 0
) -> None:
    assert got.element_count == want.element_count
    assert got.differing_count == len(want.differing)
    shifted = (want.differing + first).tolist()
    assert got.indices.tolist() == shifted[:max_indices]
    assert got.first_index == (shifted[0] if shifted else -1)
    assert got.max_abs_difference == pytest.approx(want.max_abs_difference, rel=1e-15)
    if want.max_abs_difference > 0:
        assert got.max_abs_index in (want.max_abs_elements + first)
    assert got.mean_abs_difference == pytest.approx(want.mean_abs_difference, rel=1e-9)
    assert got.max_rel_difference == pytest.approx(want.max_rel_difference, rel=1e-15)
    if want.mean_rel_difference * want.element_count > 1e306:
        assert got.mean_rel_difference > 1e300  # the sum may leave the range of binary64
    else:
        assert got.mean_rel_difference == pytest.approx(want.mean_rel_difference, rel=1e-9)
    if want.tiny == 0:
        assert got.max_bound_share == pytest.approx(want.max_bound_share, rel=1e-12)
    assert got.max_bound_share >= want.max_bound_share * (1 - 1e-12)
    assert (got.max_bound_share > 1) == (len(want.differing) > 0)
    assert got.nan_mismatch_count == want.nan_mismatch_count
    assert got.inf_mismatch_count == want.inf_mismatch_count
    assert got.missing_mismatch_count == want.missing_mismatch_count
    assert got.histogram.shape == (elements.BINS,)
    assert int(got.histogram.sum()) == want.element_count
    assert (got.histogram >= want.histogram).all()
    assert int((got.histogram - want.histogram).sum()) == want.unsure_bins
    assert int(got.histogram[19:].sum()) <= got.differing_count


def tamed(case: Case, count: int, salt: int) -> tuple[bytes, bytes]:
    """Adversarial pairs without differences beyond the range of binary64."""
    plan, rng = case.plan(), case.rng(salt)
    golden, new = adversary.pairs(plan, rng, count * plan.layout.scalars_per_element)
    if plan.layout.scalar == "f8":
        for values in (golden, new):
            with np.errstate(invalid="ignore"):
                huge = np.isfinite(values) & (np.abs(values) > 1e150)
            values[huge] = np.sqrt(np.abs(values[huge])) * np.sign(values[huge])
    return sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_whole_arrays(case: Case) -> None:
    golden, new = tamed(case, 3000, 3)
    want = elements.compare(case.dtype, golden, new, case.contract())
    assert_as_expected(_core.compare_arrays(parameters(case), golden, new), want)
    few = _core.compare_arrays(parameters(case), golden, new, max_indices=3)
    assert_as_expected(few, want, max_indices=3)


def test_the_first_index_is_told_even_if_no_indices_are_asked_for() -> None:
    golden, new = np.zeros(9), np.zeros(9)
    new[4] = 1
    got = _core.compare_arrays(_core.TreeParameters("<f8"), golden, new, max_indices=0)
    assert (got.first_index, got.differing_count, got.indices.tolist()) == (4, 1, [])


ANY_FLOAT = st.one_of(st.floats(), st.floats(-10, 10), st.sampled_from([0.0, -0.0, 1.0, -1.0]))
NON_NEGATIVE = st.one_of(st.just(0.0), st.floats(0, 1e308), st.floats(0, 1), st.floats(0, 1e-300))


@given(ANY_FLOAT, ANY_FLOAT, NON_NEGATIVE, NON_NEGATIVE, st.booleans())
def test_one_pair_exactly(
    golden: float, new: float, atol: float, rtol: float, equal_nan: bool
) -> None:
    bound = contract.Bound(atol, rtol, equal_nan=equal_nan)
    params = _core.TreeParameters("<f8", atol=atol, rtol=rtol, equal_nan=equal_nan)
    got = _core.compare_arrays(params, np.array([golden]), np.array([new]))
    assert got.differing_count == int(contract.differs_scalar(golden, new, bound))


FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e-307, 1e-307),
    st.floats(1e307, 1.7e308).map(lambda x: -x),
    st.floats(1e307, 1.7e308),
)


@given(FINITE, FINITE, NON_NEGATIVE, NON_NEGATIVE)
@example(1.7e308, -1.6e308, 0.0, 2.0)
@example(3e-310, 4e-310, 0.0, 0.2)
def test_shares_at_the_ends_of_the_doubles(
    golden: float, new: float, atol: float, rtol: float
) -> None:
    """Differences, bounds and products may be beyond what a double holds; quotients are told."""
    params = _core.TreeParameters("<f8", atol=atol, rtol=rtol)
    got = _core.compare_arrays(params, np.array([golden]), np.array([new]))
    difference = abs(Fraction(golden) - Fraction(new))
    bound = Fraction(atol) + Fraction(rtol) * abs(Fraction(golden))
    assert_quotient(got.max_bound_share, difference, bound)
    if golden != 0:
        assert_quotient(got.max_rel_difference, difference, abs(Fraction(golden)))


def assert_quotient(got: float, above: Fraction, below: Fraction) -> None:
    if above == 0:
        assert got == 0
    elif below == 0 or above / below > Fraction(1.7e308):
        assert got > 1.6e308
    else:
        assert got == pytest.approx(float(above / below), rel=1e-12, abs=1e-300)


@given(ANY_FLOAT, NON_NEGATIVE, NON_NEGATIVE, st.integers(-3, 3), st.booleans())
def test_exactly_at_the_bound(
    golden: float, atol: float, rtol: float, ulps_away: int, above: bool
) -> None:
    """The values around g +- bound, one representable value at a time."""
    with np.errstate(all="ignore"):
        edge = atol + rtol * abs(golden)
        new = golden + edge if above else golden - edge
        for _ in range(abs(ulps_away)):
            new = math.nextafter(new, math.inf if ulps_away > 0 else -math.inf)
    params = _core.TreeParameters("<f8", atol=atol, rtol=rtol)
    got = _core.compare_arrays(params, np.array([golden]), np.array([new]))
    want = contract.differs_scalar(golden, new, contract.Bound(atol, rtol))
    assert got.differing_count == int(want)


@pytest.mark.parametrize("dtype", ["<i8", "<u8", "|i1", "|u1"])
@pytest.mark.parametrize("atol", [0.0, 1.0, 2.9, 2.0**53, 2.0**62, 2.0**63, 1e19, 1e300])
def test_integers_at_the_ends_of_their_range(dtype: str, atol: float) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 3]
    golden = np.array([a for a in ends for _ in ends], dtype=dtype)
    new = np.array([b for _ in ends for b in ends], dtype=dtype)
    got = _core.compare_arrays(_core.TreeParameters(dtype, atol=atol), golden, new)
    want = [
        contract.differs_scalar(int(g), int(v), contract.Bound(atol), integer=True)
        for g, v in zip(golden, new, strict=True)
    ]
    assert got.indices.tolist() == np.flatnonzero(want).tolist()


PIECES = [
    Case("<f4", 1, {"atol": 1e-3}, {"equal_nan": False}),
    Case(">c16", 1, {"rtol": 1e-3}),
    Case("<i2", 1, {"atol": 3.0}, {"fill_values": (7,)}),
    Case("|S5"),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", PIECES, ids=str)
def test_pieces_with_gaps(case: Case, threads: int) -> None:
    """Only what was given is compared, and indices are those of the whole array."""
    size = case.plan().layout.scalar_bytes * case.plan().layout.scalars_per_element
    golden, new = tamed(case, 50_000, 4)
    comparer = _core.ElementComparer(parameters(case), threads=threads, max_indices=10**6)
    given_elements: list[int] = []
    for first, last in ((0, 1), (1, 20_001), (20_001, 20_001), (30_000, 49_999)):
        comparer.update(
            golden[first * size : last * size], new[first * size : last * size], first_element=first
        )
        given_elements.extend(range(first, last))
    got = comparer.finish()
    pieces = [
        b"".join(data[i * size : (i + 1) * size] for i in given_elements) for data in (golden, new)
    ]
    want = elements.compare(case.dtype, pieces[0], pieces[1], case.contract())
    want.differing = np.array(given_elements)[want.differing]
    want.max_abs_elements = np.array(given_elements)[want.max_abs_elements]
    assert_as_expected(got, want, max_indices=10**6)


@pytest.mark.parametrize("engine", ["io_uring", "pread", "auto"])
@pytest.mark.parametrize("memory_bytes", [1 << 20, 64 << 20])
@pytest.mark.parametrize("case", PIECES, ids=str)
def test_scattered_chunks_of_files(
    case: Case, engine: str, memory_bytes: int, tmp_path: Path
) -> None:
    known = {entry["name"]: entry for entry in _core.io_engines()}
    if engine != "auto" and not known[engine]["usable"]:
        pytest.skip(f"{engine}: {known[engine]['reason']}")
    case = Case(case.dtype, 1, case.bound, case.special, chunk_bytes=720)
    plan = case.plan()
    size = plan.layout.scalar_bytes * plan.layout.scalars_per_element
    golden, new = tamed(case, 20_003, 6)
    (tmp_path / "golden").write_bytes(bytes(13) + golden + b"behind")
    (tmp_path / "new").write_bytes(bytes(511) + new)
    chunk = plan.chunk_scalars * plan.layout.scalar_bytes
    count = -(-len(golden) // chunk)
    rng = np.random.default_rng(3)
    for leaves in (
        None,
        np.arange(count),
        np.array([], dtype=np.int64),
        np.array([count - 1]),
        np.flatnonzero(rng.random(count) < 0.3),
    ):
        session = _core.StreamSession(engine=engine, memory_bytes=memory_bytes, max_indices=10**6)
        session.add(
            parameters(case),
            str(tmp_path / "golden"),
            13,
            str(tmp_path / "new"),
            511,
            len(golden),
            leaves,
        )
        ((_, got, error, _),) = session.take_done(wait=True)
        assert error is None
        assert got is not None
        assert session.close()["engine"] == engine or engine == "auto"
        chosen = range(count) if leaves is None else leaves
        pieces = [
            b"".join(data[int(i) * chunk : (int(i) + 1) * chunk] for i in chosen)
            for data in (golden, new)
        ]
        per_chunk = chunk // size
        index = np.array(
            [e for i in chosen for e in range(int(i) * per_chunk, (int(i) + 1) * per_chunk)],
            dtype=np.int64,
        )
        want = elements.compare(case.dtype, pieces[0], pieces[1], case.contract())
        want.differing = index[want.differing]
        want.max_abs_elements = index[want.max_abs_elements]
        assert_as_expected(got, want, max_indices=10**6)


def test_pieces_out_of_order_or_of_unequal_length_are_refused() -> None:
    params = _core.TreeParameters("<f4", atol=1e-3)
    comparer = _core.ElementComparer(params)
    comparer.update(bytes(40), bytes(40), first_element=10)
    for golden, new, first in ((40, 44, 30), (40, 40, 5), (39, 39, 30), (40, 40, 19)):
        with pytest.raises(_core.CoreError) as caught:
            comparer.update(bytes(golden), bytes(new), first_element=first)
        assert caught.value.code == "invalid_argument"


def test_structured_arrays_field_by_field() -> None:
    """The oracle's own rule, which the Python layers follow: each field is an array of its own."""
    dtype = np.dtype([("x", "<f4"), ("inner", [("y", ">f8"), ("tag", "S3")]), ("n", "<i2", (2,))])
    golden = np.zeros(4, dtype=dtype)
    new = golden.copy()
    new["x"][1] = 1e-3
    new["inner"]["y"][2] = 2.0
    new["inner"]["tag"][3] = b"z"
    new["n"][0, 1] = 5
    bounds = {"x": contract.Bound(1e-2), "inner.y": contract.Bound(1.0)}
    told = contract.differs_structured(golden, new, bounds)
    assert {name: np.argwhere(mask).tolist() for name, mask in told.items()} == {
        "x": [],
        "inner.y": [[2]],
        "inner.tag": [[3]],
        "n": [[0, 1]],
    }
    for path, field_golden, field_new in (
        ("x", golden["x"], new["x"]),
        ("inner.y", golden["inner"]["y"], new["inner"]["y"]),
        ("n", golden["n"], new["n"]),
    ):
        bound = bounds.get(path, contract.Bound())
        params = _core.TreeParameters(field_golden.dtype.str, atol=bound.atol)
        got = _core.compare_arrays(
            params, np.ascontiguousarray(field_golden), np.ascontiguousarray(field_new)
        )
        assert got.differing_count == int(told[path].sum())
