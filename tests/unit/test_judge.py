"""One variable with both sides at hand: what its result says, field by field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from result_fields import said

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues, MaskedValues
from ciwrap.base.errors import ContradictionError, UsageError
from ciwrap.check.judge import check_golden, compare_values
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer, explainer_without_pictures
from ciwrap.golden.manifest import capture
from ciwrap.model import ErrorBound, Evidence, EvidencePolicy, VariableId, VariableSettings, Verdict
from ciwrap.model.settings import StrictDtype
from ciwrap.model.variable_result import Cause, IndexBox

X = VariableId("x", 3, 1)
BOUND = ErrorBound(1e-3)
VALUES = np.arange(1000.0)  # chunks of 512 elements
MASK = np.arange(1000) < 4


def settings_of(evidence: str, **more: Any) -> VariableSettings:
    return VariableSettings(bound=BOUND, evidence=EvidencePolicy(evidence), **more)


def golden_of(array: np.ndarray, evidence: str, **more: Any) -> _core.GoldenVariable:
    return capture(ArrayValues(array), settings_of(evidence, **more), X).variable


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
@pytest.mark.parametrize("by", [0.0, 1.0])
def test_a_check_says_what_it_rests_on(evidence: str, by: float) -> None:
    golden = golden_of(VALUES, evidence)
    new = MaskedValues(ArrayValues(np.where(MASK, 0, VALUES)), ArrayValues(MASK), "land")
    held = golden_of(np.where(MASK, 0, VALUES), evidence)
    if by:
        moved = VALUES + by * (np.arange(1000) == 600)
        new = MaskedValues(ArrayValues(moved), ArrayValues(MASK), "land")
    settings = settings_of(evidence, mask="land", mixed_precision=True)
    result = check_golden(
        held,
        new,
        settings,
        labels=(),
        work=Work(explain=explainer),
        source_path="x.npy",
        aligned_by="id",
    )
    wanted = {
        "name": "x",
        "iteration": 3,
        "rank": 1,
        "verdict": Verdict.DIFFER if by else Verdict.MATCH,
        "evidence": Evidence(evidence),
        "dtype": "<f8",
        "shape": (1000,),
        "bound": BOUND,
        "mask": "land",
        "aligned_by": "id",
        "source_path": "x.npy",
        "golden_root": held.tree.root.hex(),
        "byte_count": 8000,
        "element_count": 1000,
        "masked_count": 4,
        "chunk_count": 2,
        "suspect_chunks": int(by),
        "suspect_range_count": int(by),
    }
    found = said(result)
    assert {name: found[name] for name in wanted} == wanted
    assert result.reason is None
    assert (result.root == result.golden_root) is not bool(by)
    assert golden.tree.root != held.tree.root
    if evidence == "data":
        assert result.differing_count == int(by)
        assert result.differing_count_at_least is None
    elif by:
        assert (result.differing_count_at_least, result.differing_count_at_most) == (1, 1)
        assert (result.differing_count, result.solved_chunks) == (1, 1)
        assert [one.index for one in result.moved_elements] == [(600,)]
        assert result.details is not None
        assert result.suspect_ranges[0].first_element == 512
    else:
        assert (result.differing_count_at_least, result.differing_count_at_most) == (None, None)
        assert (result.differing_count, result.details) == (0, None)
    if evidence == "residues":
        assert (result.residue_levels, result.max_drift_share) == (15, 0.0)
    else:
        assert result.residue_levels is None


def test_another_shape_and_dtype_than_the_goldens_are_named() -> None:
    golden = golden_of(VALUES, "data")
    relaxed = settings_of("data", strict_shape=False, strict_dtype=StrictDtype.NONE)
    new = ArrayValues(VALUES.astype("<f4").reshape(10, 100))
    labels = (("units", "m"),)
    result = check_golden(golden, new, relaxed)
    assert (result.golden_dtype, result.golden_shape) == ("<f8", (1000,))
    assert (result.dtype, result.shape) == ("<f4", (10, 100))
    assert result.verdict is Verdict.MATCH
    result = check_golden(golden, new, relaxed, labels=labels)
    assert (result.verdict, result.golden_labels) == (Verdict.NOT_COMPARABLE, labels)
    # A golden that does not say has the labels that the outputs have.
    new.labels = labels
    assert check_golden(golden, new, relaxed).golden_labels == ()
    assert check_golden(golden, new, relaxed, labels=labels).verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("golden", "new"),
    [("<f8", "<f8"), ("<f4", "<f8"), ("<f4", "<f4")],
)
def test_mixed_precision_with_another_bound(golden: str, new: str) -> None:
    held = golden_of(VALUES.astype(golden), "data", mixed_precision=True)
    values = ArrayValues(VALUES.astype(new))
    asked = settings_of("data", mixed_precision=True)
    assert check_golden(held, values, asked).verdict is Verdict.MATCH
    result = check_golden(held, values, replace(asked, bound=ErrorBound(1e-6)))
    assert result.verdict is Verdict.MATCH
    assert (result.bound, result.golden_bound) == (ErrorBound(1e-6), BOUND.text)


def test_mixed_precision_whatever_the_order_of_bytes() -> None:
    held = golden_of(VALUES.astype(">f4"), "tree", mixed_precision=True)
    values = ArrayValues(VALUES.astype("<f8"))
    result = check_golden(held, values, settings_of("tree", mixed_precision=True))
    assert result.verdict is Verdict.MATCH


def test_a_bound_that_a_type_cannot_have_names_the_variable() -> None:
    texts = np.array([b"ab"])
    held = capture(ArrayValues(texts), settings_of("data"), X).variable
    with pytest.raises(UsageError) as caught:
        check_golden(held, ArrayValues(texts), settings_of("data", fill_values=(1.0,)))
    assert caught.value.variable == X.text
    with pytest.raises(UsageError) as caught:
        compare_values(
            ArrayValues(texts), ArrayValues(texts), settings_of("data", fill_values=(1.0,)), X
        )
    assert caught.value.variable == X.text


def test_a_golden_whose_tree_is_not_of_its_data_is_loud() -> None:
    """An element differs in a chunk whose digests agree: no verdict at all."""
    held = golden_of(VALUES, "data")
    other = VALUES.copy()
    other[7] += 1
    forged = _core.GoldenVariable("x", VALUES.shape, held.tree, data=other.tobytes())
    with pytest.raises(ContradictionError):
        check_golden(forged, ArrayValues(VALUES), settings_of("data"))


def test_a_comparison_says_what_it_rests_on() -> None:
    new = VALUES.copy()
    new[600] += 1
    settings = settings_of("auto")
    result = compare_values(
        ArrayValues(VALUES),
        ArrayValues(new),
        settings,
        X,
        work=Work(explain=explainer),
        source_path="x.npy",
        aligned_by="id",
    )
    wanted = {
        "name": "x",
        "iteration": 3,
        "rank": 1,
        "verdict": Verdict.DIFFER,
        "evidence": Evidence.DATA,
        "dtype": "<f8",
        "shape": (1000,),
        "bound": BOUND,
        "aligned_by": "id",
        "source_path": "x.npy",
        "byte_count": 8000,
        "element_count": 1000,
        "chunk_count": 2,
        "suspect_chunks": 1,
        "suspect_range_count": 1,
        "differing_count": 1,
        "first_index": (600,),
    }
    found = said(result)
    assert {name: found[name] for name in wanted} == wanted
    assert (result.masked_count, result.details is None) == (None, False)
    assert result.golden_root is not None
    assert result.root not in (None, result.golden_root)


def test_what_is_refused_still_says_what_it_is() -> None:
    held = golden_of(VALUES, "tree")
    asked = replace(settings_of("tree"), equal_nan=False)
    result = check_golden(held, ArrayValues(VALUES), asked)
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert (result.bound, result.golden_root) == (BOUND, held.tree.root.hex())
    shorter = ArrayValues(VALUES[1:])
    result = compare_values(ArrayValues(VALUES), shorter, settings_of("auto"), X)
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert (result.bound, result.shape, result.golden_shape) == (BOUND, (999,), (1000,))


def test_a_golden_of_another_arity_is_held_against_itself() -> None:
    parameters = _core.TreeParameters("<f8", atol=1e-3, arity=4)
    tree = _core.build_tree(parameters, VALUES)
    held = _core.GoldenVariable("x", VALUES.shape, tree, data=VALUES.tobytes())
    result = check_golden(held, ArrayValues(VALUES), settings_of("data"))
    assert result.verdict is Verdict.MATCH


def test_a_golden_with_data_and_residues_is_held_against_itself() -> None:
    """ciwrap makes none, the format allows it: both trees round relative to the golden's values."""
    values = np.full(10, 0.35)
    tree = _core.build_tree(_core.TreeParameters("<f8", atol=1.0, residue_levels=15), values)
    held = _core.GoldenVariable("x", values.shape, tree, data=values.tobytes())
    result = check_golden(held, ArrayValues(np.full(10, 1.3)), None)
    assert (result.verdict, result.differing_count) == (Verdict.MATCH, 0)
    result = check_golden(held, ArrayValues(np.full(10, 1.36)), None)
    assert (result.verdict, result.differing_count) == (Verdict.DIFFER, 10)


def test_a_golden_of_bfloat16_values() -> None:
    numbers = np.array([0x3F80, 0xBF80], "<u2")  # 1 and -1
    held = capture(ArrayValues(numbers, "<bf2"), settings_of("data"), X).variable
    assert check_golden(held, ArrayValues(numbers, "<bf2"), None).verdict is Verdict.MATCH
    other = check_golden(held, ArrayValues(numbers[::-1].copy(), "<bf2"), None)
    assert (other.differing_count, other.max_abs_difference) == (2, 2.0)


def test_missing_values_in_mixed_precision() -> None:
    """0.1 is another number in single precision, and stands for a missing value there, too."""
    settings = VariableSettings(
        bound=ErrorBound(0.01),
        mixed_precision=True,
        fill_values=(0.1,),
        strict_dtype=StrictDtype.NONE,
    )
    reference = ArrayValues(np.array([0.1, 0.1, 2.0]))
    for new, differing in (([0.1, 0.1, 2.0], 0), ([0.1, 0.105, 2.0], 1)):
        values = ArrayValues(np.array(new, np.float32))
        assert compare_values(reference, values, settings, X).differing_count == differing


def test_a_fill_value_beyond_float32_means_no_infinity_there() -> None:
    settings = VariableSettings(mixed_precision=True, fill_values=(1e300, np.nan))
    reference = ArrayValues(np.array([np.inf, np.nan]))
    values = ArrayValues(np.array([np.nan, np.nan], np.float32))
    result = compare_values(reference, values, settings, X)
    assert (result.differing_count, result.first_index) == (1, (0,))


@pytest.mark.parametrize("values", [np.array(["a", "b"]), np.array([b"a", b"b"])])
def test_texts_have_no_largest_difference(values: np.ndarray) -> None:
    plain = VariableSettings()
    for other, differing in ((values, 0), (values[::-1].copy(), 2)):
        result = compare_values(ArrayValues(values), ArrayValues(other), plain, X)
        assert result.differing_count == differing
        assert (result.max_abs_difference, result.max_abs_index) == (None, None)
        assert (result.max_rel_difference, result.max_rel_index) == (None, None)
        assert (result.mean_abs_difference, result.mean_rel_difference) == (None, None)


def test_where_the_largest_difference_is() -> None:
    settings = settings_of("auto")
    nothing = ArrayValues(np.full(3, np.nan))
    assert compare_values(nothing, nothing, settings, X).max_abs_index is None
    first = compare_values(
        ArrayValues(np.array([1.0, 2.0])), ArrayValues(np.array([3.0, 2.0])), settings, X
    )
    assert (first.max_abs_index, first.max_rel_index) == ((0,), (0,))


def test_what_all_differing_elements_have_in_common() -> None:
    golden = np.zeros((20, 30))
    new = golden.copy()
    new[3:5, 7:9] = 2.5
    work = Work(explain=explainer)
    result = compare_values(
        ArrayValues(golden), ArrayValues(new), settings_of("auto"), X, work=work
    )
    assert result.differing_box == IndexBox((3, 7), (4, 8))
    assert [one.cause for one in result.explanations][:1] == [Cause.CONSTANT_OFFSET]
    assert result.explanations[0].values == (2.5,)
    same = compare_values(ArrayValues(golden), ArrayValues(golden), settings_of("auto"), X)
    assert (same.differing_box, same.explanations) == (None, ())


def test_without_pictures_all_else_is_said() -> None:
    moved = VALUES + 1.0 * (np.arange(1000) >= 600)
    ours, theirs = ArrayValues(VALUES), ArrayValues(moved)
    drawn = compare_values(ours, theirs, settings_of("data"), X, work=Work(explain=explainer))
    work = Work(explain=explainer_without_pictures)
    told = compare_values(ours, theirs, settings_of("data"), X, work=work)
    plain = compare_values(ours, theirs, settings_of("data"), X)
    assert drawn.details is not None
    assert told.explanations
    assert told == replace(drawn, details=None)
    assert plain == replace(drawn, details=None, differing_box=None, explanations=())


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_mask_that_takes_out_everything_is_refused(count: int) -> None:
    nothing = MaskedValues(ArrayValues(np.zeros(count)), ArrayValues(np.ones(count, bool)), "land")
    settings = settings_of("data", mask="land")
    held = capture(nothing, settings, X).variable
    for result in (
        check_golden(held, nothing, settings),
        compare_values(nothing, nothing, settings, X),
    ):
        if count:
            assert result.verdict is Verdict.NOT_COMPARABLE
            taken = "the one value that there is" if count == 1 else "all 3 values"
            assert str(result.reason).startswith(f"the mask 'land' takes out {taken}, so nothing")
        else:
            assert result.verdict is Verdict.MATCH


def test_a_period_means_nothing_for_a_golden_of_bfloat16_values() -> None:
    numbers = np.array([0x3F80, 0xBF80], "<u2")
    held = capture(ArrayValues(numbers, "<bf2"), settings_of("data"), X).variable
    asked = settings_of("data", period=(7.0,))
    result = check_golden(held, ArrayValues(numbers, "<bf2"), asked)
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert result.reason == "values of dtype <bf2 cannot be compared modulo a period"
