"""One variable against its golden or another run: verdicts and numbers as plain NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues, ConvertedValues, MaskedValues, convert_exactly
from ciwrap.base.errors import DtypeMismatchError, MaskError, UsageError
from ciwrap.check.judge import check_golden, compare_values
from ciwrap.check.two_sides import runs_of, suspect_ranges, to_index
from ciwrap.golden.manifest import capture
from ciwrap.model import (
    ErrorBound,
    Evidence,
    EvidencePolicy,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)
from ciwrap.model.settings import StrictDtype
from ciwrap.report.digest_words import by_digests_sentence

X = VariableId("x")


def settings_of(evidence: str = "auto", **more: Any) -> VariableSettings:
    bound = more.pop("bound", ErrorBound(1e-3))
    return VariableSettings(bound=bound, evidence=EvidencePolicy(evidence), **more)


def check(
    golden: Any, new: Any, settings: VariableSettings, now: VariableSettings | None = None
) -> VariableResult:
    variable = capture(ArrayValues(np.asarray(golden)), settings, X).variable
    return check_golden(variable, ArrayValues(np.asarray(new)), now or settings)


GOLDEN = np.random.default_rng(1).normal(size=(40, 50, 3))


def moved(*places: tuple[tuple[int, ...], float]) -> np.ndarray:
    new = GOLDEN.copy()
    for index, by in places:
        new[index] += by
    return new


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_equal_data_match_on_any_evidence(evidence: str) -> None:
    result = check(GOLDEN, GOLDEN.copy(), settings_of(evidence))
    assert (result.verdict, result.evidence) == (Verdict.MATCH, Evidence(evidence))
    assert (result.differing_count, result.suspect_chunks) == (0, 0)
    assert result.root == result.golden_root
    assert result.max_drift_share == (None if evidence == "tree" else 0.0)


def test_data_give_exact_counts_and_indices() -> None:
    new = moved(((3, 7, 1), 2e-3), ((39, 49, 2), -5e-3), ((10, 0, 0), 0.9e-3))
    result = check(GOLDEN, new, settings_of("data"))
    assert result.verdict is Verdict.DIFFER
    assert (result.differing_count, result.first_index) == (2, (3, 7, 1))
    assert [one.index for one in result.first_differences] == [(3, 7, 1), (39, 49, 2)]
    first = result.first_differences[0]
    assert (float(first.golden), float(first.new)) == (GOLDEN[3, 7, 1], new[3, 7, 1])
    assert first.abs_difference == abs(new - GOLDEN)[3, 7, 1]
    assert first.bound_share == pytest.approx(2.0)
    assert result.max_abs_difference == abs(new - GOLDEN).max()
    assert result.max_abs_index == (39, 49, 2)
    assert result.mean_abs_difference == pytest.approx(abs(new - GOLDEN).mean())
    assert result.max_bound_share == pytest.approx(5.0)
    assert result.bound_share_histogram is not None
    assert sum(result.bound_share_histogram) == GOLDEN.size


def test_suspects_within_the_bound_are_matches_with_data() -> None:
    new = GOLDEN + 0.99e-3
    result = check(GOLDEN, new, settings_of("data"))
    assert result.verdict is Verdict.MATCH
    assert result.suspect_chunks == result.chunk_count
    assert result.max_drift_share == pytest.approx(0.99)


def test_residues_pass_noise_and_tell_the_drift() -> None:
    noise = np.random.default_rng(2).uniform(-0.8e-3, 0.8e-3, GOLDEN.shape)
    result = check(GOLDEN, GOLDEN + noise, settings_of("residues"))
    assert result.verdict is Verdict.MATCH
    assert result.max_drift_share == pytest.approx(0.8, abs=0.13)
    assert result.drift_histogram is not None
    assert sum(result.drift_histogram) == GOLDEN.size
    assert (result.max_abs_difference, result.max_bound_share) == (None, None)
    # The same noise on a plain tree: false alarms.
    assert check(GOLDEN, GOLDEN + noise, settings_of("tree")).verdict is Verdict.UNDECIDED


def test_residues_never_miss_and_give_limits_and_ranges() -> None:
    new = moved(((3, 7, 1), 1.01e-3))
    result = check(GOLDEN, new, settings_of("residues"))
    assert result.verdict is Verdict.UNDECIDED
    assert (result.differing_count, result.first_index) == (None, None)
    assert (result.differing_count_at_least, result.suspect_chunks) == (0, 1)
    (element,) = result.moved_elements
    assert (element.index, element.is_beyond) == ((3, 7, 1), None)
    (found,) = result.suspect_ranges
    flat = int(np.ravel_multi_index((3, 7, 1), GOLDEN.shape))
    assert found.first_element <= flat <= found.last_element
    assert found.first_index == to_index(found.first_element, GOLDEN.shape)
    assert (result.differing_count_at_most, found.element_count) == (1, 512)
    assert result.guaranteed_share == pytest.approx(0.875, abs=1e-3)


@pytest.mark.parametrize(
    ("bound", "size"),
    [
        (ErrorBound(1e-9, 1e-14), 1e6),  # rtol is too fine for a logarithmic scale
        (ErrorBound(1e300), 1e295),
        (ErrorBound(1e-307, 1.0), 0.0),
    ],
)
def test_no_share_is_guaranteed_of_a_bound_that_digests_know_in_part(
    bound: ErrorBound, size: float
) -> None:
    golden = np.full(600, size)
    allowed = bound.atol + bound.rtol * size
    for share in (0.01, 0.05, 0.2, 0.5, 0.8):
        new = golden.copy()
        new[::7] += share * allowed
        used = check(golden, new, settings_of("data", bound=bound)).max_drift_share
        result = check(golden, new, settings_of("residues", bound=bound))
        assert result.verdict in (Verdict.MATCH, Verdict.UNDECIDED)
        assert result.guaranteed_share == 0
        if result.verdict is Verdict.MATCH:
            assert used is not None
            assert result.drift_share_from is not None
            assert result.drift_share_to is not None
            assert result.drift_share_from <= used <= result.drift_share_to
        elif not result.moved_elements:
            assert "residues cannot tell" in by_digests_sentence(result)


def test_exact_trees_prove_what_they_find() -> None:
    golden = np.arange(5000)
    new = golden.copy()
    new[[7, 4990]] += 1
    result = check(golden, new, settings_of("tree", bound=ErrorBound()))
    assert (result.differing_count_at_least, result.suspect_chunks) == (2, 2)
    assert (result.differing_count, result.differing_count_at_most) == (2, 2)
    new[8:20] += 1
    result = check(golden, new, settings_of("tree", bound=ErrorBound()))
    assert (result.verdict, result.differing_count) == (Verdict.DIFFER, None)
    assert (result.differing_count_at_least, result.suspect_chunks) == (2, 2)
    assert result.differing_count_at_most == 512 + 5000 - 9 * 512
    assert check(golden, golden, settings_of("tree", bound=ErrorBound())).max_abs_difference == 0


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_specials_on_one_side_differ(evidence: str, special: float) -> None:
    new = GOLDEN.copy()
    new[0, 0, 1] = special
    assert check(GOLDEN, new, settings_of(evidence)).verdict is Verdict.DIFFER
    assert check(new, GOLDEN, settings_of(evidence)).verdict is Verdict.DIFFER
    assert check(new, new, settings_of(evidence)).verdict is Verdict.MATCH


def test_shape_and_dtype_are_strict() -> None:
    for new in (GOLDEN[:-1], GOLDEN.T, GOLDEN.reshape(-1), GOLDEN.astype("f4")):
        result = check(GOLDEN, new, settings_of())
        assert result.verdict is Verdict.NOT_COMPARABLE
        assert result.differing_count is None


def test_another_shape_where_that_is_allowed() -> None:
    relaxed = settings_of("residues", strict_shape=False)
    assert check(GOLDEN, GOLDEN.reshape(-1), relaxed).verdict is Verdict.MATCH
    shorter = check(GOLDEN, GOLDEN[:-1], relaxed)
    assert shorter.verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_another_dtype_where_that_is_allowed(evidence: str) -> None:
    golden = np.arange(100.0)
    relaxed = settings_of(evidence, strict_dtype=StrictDtype.NONE)
    assert check(golden, golden.astype("f4"), relaxed).verdict is Verdict.MATCH
    assert check(golden, golden.astype(">i8"), relaxed).verdict is Verdict.MATCH
    assert check(golden.astype("f4"), golden + 0.1, relaxed).verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize(
    ("now", "by_residues", "by_tree"),
    [
        (ErrorBound(1e-2), Verdict.MATCH, Verdict.MATCH),
        (ErrorBound(1e-3, 1e-9), Verdict.MATCH, Verdict.MATCH),
        (ErrorBound(5e-4), Verdict.MATCH, Verdict.UNDECIDED),
        (ErrorBound(1e-5), Verdict.UNDECIDED, Verdict.UNDECIDED),
        (ErrorBound(), Verdict.UNDECIDED, Verdict.UNDECIDED),
        (ErrorBound(ulps=3), Verdict.UNDECIDED, Verdict.UNDECIDED),
    ],
)
def test_another_bound_than_the_goldens(
    now: ErrorBound, by_residues: Verdict, by_tree: Verdict
) -> None:
    """The golden's own numbers: what it keeps tells to within a step of its own bound."""
    wanted = {"data": Verdict.MATCH, "residues": by_residues, "tree": by_tree}
    for evidence, verdict in wanted.items():
        result = check(GOLDEN, GOLDEN, settings_of(evidence), settings_of(bound=now))
        assert (result.verdict, result.bound) == (verdict, now), evidence
        assert result.golden_bound == "atol=0.001 rtol=0"


def test_a_golden_without_data_refutes_a_narrower_bound() -> None:
    new = GOLDEN.copy()
    new[7] += 4.5e-4
    result = check(GOLDEN, new, settings_of("residues"), settings_of(bound=ErrorBound(2e-4)))
    assert (result.verdict, result.suspect_chunks) == (Verdict.DIFFER, 1)
    assert (result.differing_count_at_least, result.differing_count) == (1, None)
    assert result.guaranteed_share is not None
    assert 1 < result.guaranteed_share < 2.25


@pytest.mark.parametrize(
    "now", [settings_of(equal_nan=False), settings_of(fill_values=(-1.0,))], ids=str
)
@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_other_classes_than_the_goldens_need_its_data(evidence: str, now: VariableSettings) -> None:
    result = check(GOLDEN, GOLDEN, settings_of(evidence), now)
    if evidence == "data":
        assert result.verdict is Verdict.MATCH
        assert result.golden_bound == "atol=0.001 rtol=0"
        return
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert f"was made with atol=0.001 rtol=0, but {describe_now(now)}" in str(result.reason)


def describe_now(settings: VariableSettings) -> str:
    more = "fill_values=(-1)" if settings.fill_values else "equal_nan=false"
    return f"{settings.bound.text} {more} is asked for, and it keeps its"


def test_chunks_and_levels_are_the_goldens_own_business() -> None:
    now = settings_of(chunk_bytes=65536, residue_levels=3)
    assert check(GOLDEN, GOLDEN, settings_of("residues"), now).verdict is Verdict.MATCH


def test_impossible_settings_are_usage_errors() -> None:
    variable = capture(ArrayValues(np.zeros(3, "u1")), settings_of(), X).variable
    with pytest.raises(UsageError):
        check_golden(variable, ArrayValues(np.zeros(3, "u1")), settings_of(fill_values=(-1,)))


@pytest.mark.parametrize(
    "array",
    [
        np.array(["ab", "c"]),
        np.array([b"ab", b"c"]),
        np.array([True, False, False]),
        np.array([1 + 2j, np.nan]),
        np.array([1, 2], "u8"),
        np.array([1, 2], ">i2"),
        np.array([1.5, np.inf], "f2"),
        np.zeros(0),
        np.float32(3),
    ],
)
@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_every_kind_of_type(array: np.ndarray, evidence: str) -> None:
    array = np.asarray(array)
    assert check(array, array.copy(), settings_of(evidence)).verdict is Verdict.MATCH
    if array.size:
        other = array.copy()
        other[...] = np.roll(other, 1) if array.ndim else other + 1
        verdict = check(array, other, settings_of(evidence)).verdict
        assert verdict is Verdict.DIFFER if evidence == "data" else verdict.is_alarm


def test_texts_of_values_read_back() -> None:
    golden = np.array([0.1, 1e-30, 3.0], "f4")
    result = check(golden, golden + np.float32(1), settings_of("data"))
    assert [np.float32(one.golden) for one in result.first_differences] == golden.tolist()
    assert result.first_differences[0].golden == "0.1"
    texts = check(np.array([b"a\x1b"]), np.array([b"bc"]), settings_of("data"))
    assert texts.first_differences[0].golden == "b'a\\x1b'"
    assert texts.max_abs_difference is None


# --- both sides at hand
# ----------------------------------------------------------------------------


def compare(golden: Any, new: Any, settings: VariableSettings) -> VariableResult:
    return compare_values(
        ArrayValues(np.asarray(golden)), ArrayValues(np.asarray(new)), settings, X
    )


def test_small_pairs_are_compared_in_full() -> None:
    new = moved(((3, 7, 1), 2e-3), ((39, 49, 2), -5e-3))
    result = compare(GOLDEN, new, settings_of())
    assert (result.differing_count, result.first_index) == (2, (3, 7, 1))
    assert result.mean_abs_difference == pytest.approx(abs(new - GOLDEN).mean())
    assert result.evidence is Evidence.DATA


def test_large_pairs_are_compared_in_full_too() -> None:
    rng = np.random.default_rng(4)
    golden = rng.normal(size=(3, 3_000_001))
    new = golden + rng.uniform(-1e-8, 1e-8, golden.shape)
    new[1, 7] += 2e-3
    new[2, -1] = np.nan
    result = compare(golden, new, settings_of())
    assert (result.differing_count, result.first_index) == (2, (1, 7))
    assert result.max_abs_difference == abs(new - golden)[1, 7]
    assert result.nan_mismatch_count == 1
    assert result.mean_abs_difference is not None
    assert result.suspect_chunks is not None
    assert result.suspect_chunks >= 2
    same = compare(golden, golden + 1e-8, settings_of())
    assert same.verdict is Verdict.MATCH
    assert same.max_abs_difference == pytest.approx(1e-8, rel=1e-6)


@given(st.data())
def test_pairs_agree_with_numpy(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    golden = rng.normal(size=shape)
    atol = 10.0 ** -data.draw(st.integers(1, 9))
    new = golden + atol * rng.choice([0, 0, 0, 0.5, 0.9, 1.1, 3, np.nan], size=shape)
    expected = ~(abs(new - golden) <= atol)
    settings = settings_of("data", bound=ErrorBound(atol))
    for result in (compare(golden, new, settings), check(golden, new, settings)):
        assert result.differing_count == np.count_nonzero(expected)
        if expected.any():
            assert result.first_index == tuple(int(i) for i in np.argwhere(expected)[0])


def test_pairs_of_other_shape_or_dtype() -> None:
    for new in (GOLDEN[:-1], GOLDEN.astype("f4")):
        assert compare(GOLDEN, new, settings_of()).verdict is Verdict.NOT_COMPARABLE
    relaxed = settings_of(strict_dtype=StrictDtype.NONE, strict_shape=False)
    exact = GOLDEN.astype("f4").astype("f8")
    assert compare(exact, exact.astype("f4").reshape(-1), relaxed).verdict is Verdict.MATCH


# --- pieces
# -------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 60)), st.integers(1, 10))
def test_ranges_cover_the_suspects_exactly(leaves: set[int], tail: int) -> None:
    parameters = _core.TreeParameters("<f8", atol=1.0, chunk_bytes=80)
    suspects = np.array(sorted(leaves), dtype=np.int64)
    count = 60 * 10 + tail
    ranges, total, elements = suspect_ranges(suspects, parameters, (count,), count)
    wanted = {i for leaf in leaves for i in range(leaf * 10, min(leaf * 10 + 10, count))}
    assert elements == len(wanted)
    assert total == len(runs_of(suspects))
    found = {i for one in ranges for i in range(one.first_element, one.last_element + 1)}
    assert found == wanted if total <= 20 else found < wanted
    assert sum(one.chunk_count for one in ranges) <= len(leaves)


def test_masked_elements_count_as_zero() -> None:
    mask = np.zeros(GOLDEN.shape, bool)
    mask[5] = True
    masked = MaskedValues(ArrayValues(GOLDEN), ArrayValues(mask), "land")
    variable = capture(masked, settings_of("data"), X).variable
    new = GOLDEN.copy()
    new[5] = np.nan
    other = MaskedValues(ArrayValues(new), ArrayValues(mask), "land")
    assert check_golden(variable, other, settings_of()).verdict is Verdict.MATCH
    new[6] += 1
    assert check_golden(variable, other, settings_of()).differing_count == 150
    assert (GOLDEN[5] != 0).all()


@pytest.mark.parametrize("mask", [np.zeros((40, 50, 3)), np.zeros((40, 50), bool)])
def test_masks_of_another_type_or_shape(mask: np.ndarray) -> None:
    with pytest.raises(MaskError, match="land"):
        MaskedValues(ArrayValues(GOLDEN), ArrayValues(mask), "land")


@pytest.mark.parametrize(
    ("values", "from_dtype", "to_dtype", "is_exact"),
    [
        (np.array([0.5, np.nan, np.inf, -0.0]), "<f8", "<f4", True),
        (np.array([0.1]), "<f8", "<f4", False),
        (np.array([1e300]), "<f8", "<f4", False),
        (np.array([1, 2], "i4"), "<i4", ">i2", True),
        (np.array([40000], "i4"), "<i4", "<i2", False),
        (np.array([-1], "i4"), "<i4", "<u8", False),
        (np.array([2**64 - 1], "u8"), "<u8", "<i8", False),
        (np.array([2**53 + 1]), "<i8", "<f8", False),
        (np.array([2**63 - 1]), "<i8", "<f8", False),
        (np.array([2**64 - 1], "u8"), "<u8", "<f8", False),
        (np.array([-(2**53)]), "<i8", "<f8", True),
        (np.array([2.5]), "<f8", "<i8", False),
        (np.array([np.nan]), "<f8", "<i8", False),
        # The least integer is what a machine makes of it, and as float16 that is infinite again.
        (np.array([-np.inf], "f2"), "<f2", "<i4", False),
        (np.array([np.inf], "f2"), "<f2", ">i8", False),
        (np.array([2.0**63]), "<f8", "<i8", False),
        (np.array([2.0**64]), "<f8", "<u8", False),
        (np.array([2**62, -(2**63)]), "<i8", "<f4", True),
        (np.array([2**63], "u8"), "<u8", "<bf2", True),
        (np.array([65504], "u4"), "<u4", "<f2", True),
        (np.array([65520], "u4"), "<u4", "<f2", False),
        (np.array([2**24 + 2]), "<i8", "<c8", True),
        (np.array([2**24 + 1]), "<i8", "<c8", False),
        (np.array([True, False]), "|b1", "<i4", True),
        (np.array([2]), "<i8", "|b1", False),
        (np.array([1 + 0j]), "<c16", "<f8", True),
        (np.array([1 + 1j]), "<c16", "<f8", False),
        (np.array([1.5]), "<f8", "<c8", True),
        (np.array([b"ab"]), "|S2", "|S5", True),
        (np.array([b"abc"]), "|S3", "|S2", False),
        (np.array([b"ab"]), "|S2", "<U2", False),
        (np.array([b"1"]), "|S1", "<f8", False),
        (np.array([0x3F80, 0xFF80, 0x7FC1], "<u2"), "<bf2", "<f4", True),
        (np.array([1.0, -np.inf, np.nan], "f4"), "<f4", "<bf2", True),
        (np.array([1.0001], "f4"), "<f4", "<bf2", False),
    ],
)
def test_conversion_is_exact_or_refused(
    values: np.ndarray, from_dtype: str, to_dtype: str, is_exact: bool
) -> None:
    if not is_exact:
        with pytest.raises(DtypeMismatchError):
            convert_exactly(values, from_dtype, to_dtype)
        return
    there = convert_exactly(values, from_dtype, to_dtype)
    back = convert_exactly(there, to_dtype, from_dtype)
    if values.dtype.kind == "u" and from_dtype == "<bf2":
        assert back[:2].tolist() == values[:2].tolist()
    else:
        np.testing.assert_array_equal(back, values)


def test_converted_values_name_the_element() -> None:
    values = ConvertedValues(ArrayValues(np.array([0.5, 0.1])), "<f4")
    with pytest.raises(DtypeMismatchError, match=r"value 1 = 0\.1"):
        values.read(0, 2)


@pytest.mark.parametrize(
    ("value", "to_dtype"),
    [
        (complex(np.nan, 5), "<f8"),
        (complex(np.nan, np.inf), "<f4"),
        (complex(np.nan, 0.1), "<c8"),
        (complex(0.1, np.nan), "<c8"),
    ],
)
def test_nan_in_one_part_does_not_hide_the_other(value: complex, to_dtype: str) -> None:
    with pytest.raises(DtypeMismatchError, match="no exact form"):
        convert_exactly(np.array([value]), "<c16", to_dtype)
    parts = np.array([complex(np.nan, 0.5), complex(np.nan, np.nan)])
    assert convert_exactly(parts, "<c16", "<c8").tobytes() == parts.astype("<c8").tobytes()
    assert np.isnan(convert_exactly(np.array([complex(np.nan, 0)]), "<c16", "<f8")).all()
