"""A golden that was made with one bound, asked with another: what is said of it is true.

The oracle decides every element by fractions; the verdict, the counts, the shares and the sentence
of suspect chunks have to agree with it, whatever the golden keeps.
"""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from oracle import contract
from oracle import scalars as sc
from tiers import examples

from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden, compare_values
from ciwrap.cli.main import run
from ciwrap.golden.manifest import capture
from ciwrap.model import (
    ErrorBound,
    Evidence,
    EvidencePolicy,
    VariableId,
    VariableResult,
    VariableSettings,
)
from ciwrap.report.document import from_document

X = VariableId("x")
DTYPES = ("<f8", "<f8", "<f4", "<f2", ">f8", "<c16", "<i4", "<u1", "<i8")
SIZES = (1e-12, 1e-6, 1e-3, 0.25, 1.0, 3.5, 40.0)
FACTORS = (
    0.0,
    1e-9,
    0.05,
    0.125,
    0.25,
    0.5,
    0.874,
    0.875,
    0.876,
    0.999,
    1.0,
    1.001,
    2.0,
    10.0,
    1e6,
)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[ErrorBound, ErrorBound]:
    """What the golden is made with, and what is asked for: mostly a multiple of it."""

    def one() -> ErrorBound:
        kind = draw(st.sampled_from(["atol", "atol", "rtol", "mixed", "ulps", "exact"]))
        size = draw(st.sampled_from(SIZES))
        if kind == "ulps":
            return ErrorBound(ulps=draw(st.sampled_from([1, 2, 3, 8, 40, 1000])))
        if kind == "exact":
            return ErrorBound()
        atol = size if kind != "rtol" else 0.0
        return ErrorBound(atol, draw(st.sampled_from(SIZES)) if kind != "atol" else 0.0)

    made = one()
    if draw(st.integers(0, 3)) == 0:
        return made, one()
    by = draw(st.sampled_from(FACTORS))
    asked = ErrorBound(made.atol * by, made.rtol * by, round(made.ulps * by))
    if draw(st.integers(0, 4)) == 0 and not asked.ulps:
        asked = ErrorBound(asked.atol, asked.rtol + draw(st.sampled_from(SIZES)))
    return made, asked


def pair(
    rng: np.random.Generator, dtype: str, made: ErrorBound, asked: ErrorBound, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    """Golden and new values, most of them moved by some share of one of both bounds."""
    count = int(rng.choice([1, 8, 30, 50]))
    scale = float(rng.choice([1e-3, 1.0, 1e3, 1e9]))
    if dtype[1] in "iu":
        kind = np.iinfo(dtype)
        high = min(kind.max, 10 ** int(rng.integers(1, 10)))
        golden = rng.integers(max(kind.min, -high), high, count, endpoint=True).astype(dtype)
        most = int(min(max(made.atol, asked.atol) * reach + 1, kind.max // 4))
        moved = golden.astype(object) + rng.integers(-most, most, count, endpoint=True).astype(
            object
        )
        new = np.clip(moved, kind.min, kind.max).astype(dtype)
    else:
        parts = 2 if dtype[1] == "c" else 1
        real = f"{dtype[0]}f{int(dtype[2:]) // parts}"
        with np.errstate(over="ignore"):
            numbers = (rng.normal(size=parts * count) * scale).astype(real)
        bound = [made, asked][int(rng.integers(2))]
        with np.errstate(invalid="ignore"):
            shift = bound.atol + bound.rtol * np.abs(numbers.astype("f8"))
            if bound.ulps:
                shift = np.spacing(np.abs(numbers)).astype("f8") * bound.ulps
        shares = rng.uniform(-reach, reach, numbers.size)
        edge = rng.random(numbers.size) < 0.1
        shares[edge] = np.sign(shares[edge]) * rng.choice([1.0, 0.875, 1.125])
        with np.errstate(all="ignore"):
            new = (numbers.astype("f8") + shares * shift).astype(real)
        golden = numbers.view(dtype)
        new = new.view(dtype)
    keep = rng.random(golden.size) < rng.choice([0.0, 0.5, 0.95])
    new = np.where(keep, golden, new).astype(dtype)
    if dtype[1] == "f" and rng.random() < 0.2:
        at = rng.integers(golden.size)
        golden[at] = rng.choice([np.nan, np.inf, 0.0, -0.0])
        new[at] = rng.choice([np.nan, np.inf, 0.0, golden[at]])
    return golden, new


def truth(dtype: str, golden: np.ndarray, new: np.ndarray, bound: ErrorBound) -> np.ndarray:
    """Which elements differ."""
    is_real = dtype[1] in "fc"
    asked = contract.Bound(bound.atol, bound.rtol if is_real else 0.0, bound.ulps if is_real else 0)
    return contract.differs(dtype, golden.tobytes(), new.tobytes(), asked)


def moved_by_more(
    dtype: str, golden: np.ndarray, new: np.ndarray, bound: ErrorBound, share: float
) -> np.ndarray:
    """Which elements moved by more than a share of the bound, to within the rounding of doubles."""
    least = share * (1 - 1e-9)
    layout = sc.parse_dtype(dtype)
    sides = (sc.scalars_of(layout, side.tobytes()) for side in (golden, new))
    is_real = dtype[1] in "fc"
    asked = contract.Bound(bound.atol, bound.rtol if is_real else 0.0, bound.ulps if is_real else 0)
    if dtype[1] in "iu":
        asked = contract.Bound(float(np.floor(bound.atol)))
    found = contract.differs_of_scalars(layout.scalar, *sides, asked, Fraction(least))
    parts = layout.scalars_per_element
    return found.reshape(-1, parts).any(axis=1)


def settings(bound: ErrorBound, evidence: str, levels: int) -> VariableSettings:
    return VariableSettings(
        bound=bound,
        evidence=EvidencePolicy(evidence),
        residue_levels=levels,
        chunk_bytes=64,
    )


@given(
    bounds(),
    st.sampled_from(DTYPES),
    st.sampled_from(["data", "residues", "residues", "tree"]),
    st.sampled_from([3, 15, 255]),
    st.sampled_from([0.05, 0.4, 1.0, 1.2, 30.0]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_said_is_true(
    both: tuple[ErrorBound, ErrorBound],
    dtype: str,
    evidence: str,
    levels: int,
    reach: float,
    seed: int,
) -> None:
    made, asked = both
    golden, new = pair(np.random.default_rng(seed), dtype, made, asked, reach)
    variable = capture(ArrayValues(golden), settings(made, evidence, levels), X).variable
    wanted = settings(asked, evidence, levels)
    result = check_golden(variable, ArrayValues(new), wanted)
    differs = truth(dtype, golden, new, asked)
    note(f"{result}")
    note(f"{variable.evidence} {golden!r} {new!r} {np.flatnonzero(differs)}")
    agrees(result, dtype, golden, new, differs)
    if variable.evidence == "data":
        by_values = compare_values(ArrayValues(golden), ArrayValues(new), wanted, X)
        fields = ("verdict", "bound", "differing_count", "max_bound_share", "first_index", "root")
        for field in fields:
            assert getattr(result, field) == getattr(by_values, field), field


def agrees(
    result: VariableResult,
    dtype: str,
    golden: np.ndarray,
    new: np.ndarray,
    differs: np.ndarray,
    *,
    may_need_data: bool = False,
) -> None:
    """may_need_data: whether it may be open, and say so."""
    if may_need_data and result.verdict.value == "not_comparable":
        assert "data needed" in str(result.reason)
        return
    count = int(differs.sum())
    assert result.verdict.value in ("match", "differ", "undecided")
    assert (result.verdict.value == "match") <= (count == 0)
    assert (result.verdict.value == "differ") <= (count > 0)
    if result.differing_count is not None:
        assert result.differing_count == count
    else:
        assert result.differing_count_at_least is not None
        assert result.differing_count_at_most is not None
        assert result.differing_count_at_least <= count <= result.differing_count_at_most
    for one in result.moved_elements:
        assert one.is_beyond is None or one.is_beyond == differs[one.index]
    bound = result.bound
    assert bound is not None
    if result.evidence is Evidence.DATA:
        return
    per_chunk = 64 // np.dtype(dtype).itemsize
    suspect = np.zeros(golden.size, dtype=bool)
    for one in result.suspect_ranges:
        suspect[one.first_element : one.first_element + one.element_count] = True
    if result.suspect_range_count != len(result.suspect_ranges):
        return
    assert not differs[~suspect].any()
    if result.least_share:
        assert moved_by_more(dtype, golden, new, bound, result.least_share).any()
    if result.guaranteed_share and result.suspect_chunks:
        more = moved_by_more(dtype, golden, new, bound, result.guaranteed_share)
        for first in range(0, golden.size, per_chunk):
            if suspect[first]:
                assert more[first : first + per_chunk].any()
    used = result.used_interval
    if used is not None and not bound.is_exact and not suspect.all():
        rest = ~suspect
        beyond = moved_by_more(dtype, golden[rest], new[rest], bound, used[1] * (1 + 1e-6))
        assert not beyond.any()
        if used[0] > 0 and not result.moved_elements:
            assert moved_by_more(dtype, golden[rest], new[rest], bound, used[0] * (1 - 1e-6)).any()


@pytest.mark.parametrize("seed", range(examples(24)))
def test_of_captures_without_their_data(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that were captured with one bound, and compared with another, without data of one
    of them or of both.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(seed)
    made = ErrorBound(float(rng.choice(SIZES[1:5])))
    asked = ErrorBound(made.atol * float(rng.choice(FACTORS[1:])))
    if seed % 4 == 0:
        asked = ErrorBound(asked.atol, 1e-3)
    dtype, reach = DTYPES[seed % len(DTYPES)], float(rng.choice([0.05, 0.4, 1.2, 30.0]))
    golden, new = pair(rng, dtype, made, asked, reach)
    as_chunks = ["--chunk-bytes", "64", "--residues"]
    for name, values, more in (
        ("A", golden, as_chunks),
        ("B", new, ["--against", "A/.ciwrap.tree"]),
    ):
        Path(name).mkdir()
        np.save(f"{name}/x.npy", values)
        assert run(["capture", name, "--atol", repr(made.atol), "--settle", "0", *more]) == 0
        Path(f"F{name}").mkdir()
        shutil.copy(f"{name}/.ciwrap.tree", f"F{name}/.ciwrap.tree")
    differs = truth(dtype, golden, new, asked)
    for sides in (("FA", "B"), ("A", "FB"), ("FA", "FB")):
        bound = ["--atol", repr(asked.atol), "--rtol", repr(asked.rtol)]
        run(["compare", *sides, *bound, "--json", "r.json", "--json-detail", "all"])
        (result,) = from_document(json.loads(Path("r.json").read_text())).checks[0].variables
        print(sides, made, asked, result)
        agrees(result, dtype, golden, new, differs, may_need_data=True)
