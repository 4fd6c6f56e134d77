"""The law of every verdict, and results field by field: what they say and what they leave out."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues, MaskedValues, Signature
from ciwrap.catalog.rules import Rules
from ciwrap.compare.findings import Suspects, matched_by_digests
from ciwrap.compare.fit import GOLDEN, RUNS, in_dtype, refuse_other_labels, refuse_other_shape
from ciwrap.compare.judge import check_golden, compare_values
from ciwrap.compare.law import begun, failed_check, message_of, not_comparable, refuse_mistakes
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.pairing import Nothing, pair_up
from ciwrap.compare.question import Question, answered, streamed_result
from ciwrap.compare.stream import Streamed
from ciwrap.core_errors import ContradictionError
from ciwrap.details import IndexBox, Pattern
from ciwrap.errors import (
    CorruptFileError,
    DtypeMismatchError,
    LabelMismatchError,
    ShapeMismatchError,
    UsageError,
)
from ciwrap.golden.evidence import capture
from ciwrap.model import (
    CheckResult,
    ErrorBound,
    Evidence,
    EvidencePolicy,
    Message,
    MessageLevel,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)

X = VariableId("x", 3, 1)
BOUND = ErrorBound(1e-3)
ERROR = CorruptFileError("is cut off", file="a.npy", variable="x", remedy="write it anew")
MISTAKE = UsageError("no such option")


def said(result: VariableResult | CheckResult) -> dict[str, Any]:
    """What a result says besides its defaults."""
    plain = type(result)(result.name, Verdict.DIFFER)
    return {
        name: value
        for name, value in vars_of(result).items()
        if value != vars_of(plain)[name] or name in ("name", "verdict")
    }


def vars_of(result: VariableResult | CheckResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in asdict(result)}


# --- errors


def test_a_users_mistake_is_never_a_result() -> None:
    result = begun(X, None, None)
    with pytest.raises(UsageError):
        refuse_mistakes(MISTAKE)
    with pytest.raises(UsageError):
        not_comparable(result, MISTAKE)
    with pytest.raises(UsageError):
        failed_check("c", MISTAKE)
    refuse_mistakes(ERROR)


def test_whatever_else_goes_wrong_is_not_comparable() -> None:
    before = VariableResult("x", Verdict.DIFFER, differing_count=7, element_count=9)
    assert not_comparable(before, ERROR) == VariableResult(
        "x",
        Verdict.NOT_COMPARABLE,
        reason="a.npy: is cut off; write it anew",
        element_count=9,
    )
    plain = CorruptFileError("is\ncut off")
    assert not_comparable(before, plain).reason == "is cut off"
    assert failed_check("c", ERROR, "golden/c.golden") == CheckResult(
        "c",
        Verdict.NOT_COMPARABLE,
        messages=(message_of(ERROR),),
        golden_path="golden/c.golden",
    )


def test_an_error_as_a_message() -> None:
    wanted = Message(
        MessageLevel.ERROR, str(ERROR), slug="corrupt-file", file="a.npy", variable="x"
    )
    assert message_of(ERROR) == wanted
    assert message_of(ERROR, MessageLevel.NOTE) == replace(wanted, level=MessageLevel.NOTE)


# --- before anything was compared


def test_what_has_only_begun_is_not_comparable() -> None:
    labels = (("units", "m"),)
    new = Signature("<f8", (2, 3), labels)
    settings = VariableSettings(mask="land", period=(1.0,))
    result = begun(
        X,
        new,
        new,
        bound=BOUND,
        evidence=Evidence.TREE,
        settings=settings,
        source_path="a.npy",
        aligned_by="id",
        golden_root="00",
    )
    assert said(result) == {
        "name": "x",
        "verdict": Verdict.NOT_COMPARABLE,
        "iteration": 3,
        "rank": 1,
        "evidence": Evidence.TREE,
        "reason": "it was not compared",
        "dtype": "<f8",
        "shape": (2, 3),
        "labels": labels,
        "bound": BOUND,
        "mask": "land",
        "period": (1.0,),
        "source_path": "a.npy",
        "aligned_by": "id",
        "golden_root": "00",
        "byte_count": 48,
    }
    plain = begun(X, new, new, settings=VariableSettings())
    assert (plain.mask, plain.period) == (None, None)


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        (Signature("<f4", (2, 3)), {"golden_dtype": "<f4"}),
        (Signature("<f8", (6,)), {"golden_shape": (6,)}),
        (Signature("<f8", (2, 3), (("units", "m"),)), {"golden_labels": (("units", "m"),)}),
    ],
)
def test_the_reference_is_named_where_it_is_another(
    reference: Signature, named: dict[str, Any]
) -> None:
    new = Signature("<f8", (2, 3))
    common = {"name": "x", "verdict": Verdict.NOT_COMPARABLE, "iteration": 3, "rank": 1}
    common["reason"] = "it was not compared"
    ours = {"dtype": "<f8", "shape": (2, 3), "byte_count": 48}
    assert said(begun(X, reference, new)) == {**common, **ours, **named}
    assert said(begun(X, None, new)) == {**common, **ours}
    alone = {"golden_dtype": reference.dtype, "golden_shape": reference.shape}
    if reference.labels:
        alone["golden_labels"] = reference.labels
    assert said(begun(X, reference, None)) == {**common, **alone}


def test_a_side_of_nothing_holds_nothing() -> None:
    assert not Nothing().identities
    with pytest.raises(KeyError):
        Nothing().signature(X)
    with pytest.raises(KeyError):
        Nothing().path_of(X)


def test_outcomes_add_up_field_by_field() -> None:
    def one(number: int) -> Outcome:
        name = f"n{number}"
        result = VariableResult(name, Verdict.DIFFER)
        identity = VariableId(name)
        return Outcome(
            results=[result],
            missing=[result],
            extra=[result],
            ignored=[identity],
            left_out=[identity],
            errors=[CorruptFileError(name)],
            notes=[name],
            stale=[(name, (1, 2), name)],
            unused=[name],
            lost=[((1, 2), name)],
            by_mpi_rank=[number],
            capture_bytes_read=number,
            data_bytes_read=10 * number,
            engine=name,
        )

    total, first, second = one(1), one(1), one(2)
    total.add(second)
    for name in asdict(first):
        mine, other, both = (getattr(outcome, name) for outcome in (first, second, total))
        if name == "engine":
            assert both == "n2"
        elif name == "errors":
            assert [error.message for error in both] == ["n1", "n2"]
        else:
            assert both == mine + other, name
    total.add(Outcome())
    assert total.engine == "n2"


# --- what does not fit


def test_shapes_that_do_not_fit() -> None:
    square, line, number = (Signature("<f8", shape) for shape in ((2, 3), (6,), ()))
    refuse_other_shape(square, square, RUNS, is_strict=True)
    refuse_other_shape(square, line, RUNS, is_strict=False)
    with pytest.raises(ShapeMismatchError, match=r"^shape 2x3 on one side, 6 on the other$"):
        refuse_other_shape(square, line, RUNS, is_strict=True)
    with pytest.raises(ShapeMismatchError) as caught:
        refuse_other_shape(number, square, GOLDEN, is_strict=False)
    assert str(caught.value) == (
        "shape 2x3, but the golden has () (a single number); if that is right, accept the new"
        " outputs"
    )


def test_labels_that_do_not_fit() -> None:
    ours = (("dims", "x y"), ("units", "m"))
    refuse_other_labels(ours, ours, RUNS)
    for theirs, text in (
        ((), "dimension names 'x y' on one side, none on the other"),
        ((("dims", "x y"),), "label 'units': 'm' on one side, none on the other"),
        ((("dims", "x y"), ("units", "s")), "label 'units': 'm' on one side, 's' on the other"),
        ((*ours, ("long", "a")), "label 'long': none on one side, 'a' on the other"),
    ):
        with pytest.raises(LabelMismatchError) as caught:
            refuse_other_labels(ours, theirs, RUNS)
        assert str(caught.value) == text


def test_dtypes_that_do_not_fit() -> None:
    values = ArrayValues(np.zeros(3, "<u2"), "<bf2")
    with pytest.raises(DtypeMismatchError) as caught:
        in_dtype(values, "<f4", GOLDEN, is_strict=True)
    assert str(caught.value) == (
        "dtype bfloat16 (<bf2), but the golden has float32 (<f4); if that is right, accept the"
        " new outputs"
    )
    assert in_dtype(values, "<bf2", GOLDEN, is_strict=True) is values
    assert in_dtype(values, "<f4", GOLDEN, is_strict=False).dtype == "<f4"


# --- what was compared, field by field

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
    result = check_golden(held, new, settings, labels=(), source_path="x.npy", aligned_by="id")
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
        assert (result.differing_count_at_least, result.differing_count_at_most) == (0, 488)
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
    relaxed = settings_of("data", strict_shape=False, strict_dtype=False)
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
def test_mixed_precision_keeps_the_goldens_bound(golden: str, new: str) -> None:
    held = golden_of(VALUES.astype(golden), "data", mixed_precision=True)
    values = ArrayValues(VALUES.astype(new))
    asked = settings_of("data", mixed_precision=True)
    assert check_golden(held, values, asked).verdict is Verdict.MATCH
    result = check_golden(held, values, replace(asked, bound=ErrorBound(1e-6)))
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert "was made with atol=0.001" in str(result.reason)


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
    held = golden_of(VALUES, "data")
    asked = replace(settings_of("data"), bound=ErrorBound(1e-6))
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
        bound=ErrorBound(0.01), mixed_precision=True, fill_values=(0.1,), strict_dtype=False
    )
    reference = ArrayValues(np.array([0.1, 0.1, 2.0]))
    for new, differing in (([0.1, 0.1, 2.0], 0), ([0.1, 0.105, 2.0], 1)):
        values = ArrayValues(np.array(new, np.float32))
        assert compare_values(reference, values, settings, X).differing_count == differing


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
    result = compare_values(ArrayValues(golden), ArrayValues(new), settings_of("auto"), X)
    assert result.differing_box == IndexBox((3, 7), (4, 8))
    assert (result.pattern, result.pattern_value) == (Pattern.CONSTANT_OFFSET, 2.5)
    same = compare_values(ArrayValues(golden), ArrayValues(golden), settings_of("auto"), X)
    assert (same.differing_box, same.pattern, same.pattern_value) == (None, None, None)


@pytest.mark.parametrize("count", [0, 3])
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
            assert str(result.reason).startswith("the mask 'land' takes out all 3 elements")
        else:
            assert result.verdict is Verdict.MATCH


def test_a_period_means_nothing_for_a_golden_of_bfloat16_values() -> None:
    numbers = np.array([0x3F80, 0xBF80], "<u2")
    held = capture(ArrayValues(numbers, "<bf2"), settings_of("data"), X).variable
    asked = settings_of("data", period=(7.0,))
    result = check_golden(held, ArrayValues(numbers, "<bf2"), asked)
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert result.reason == "values of dtype <bf2 cannot be compared modulo a period"


class Held:
    """A side that holds variables of one number each."""

    def __init__(self, *names: str) -> None:
        self.identities = {VariableId(name) for name in names}

    def signature(self, identity: VariableId) -> Signature:
        assert identity in self.identities
        return Signature("<f8", (1,), (("units", identity.name),))

    def path_of(self, identity: VariableId) -> str:
        assert identity in self.identities
        return f"{identity.name}.npy"


def test_who_is_compared_with_whom() -> None:
    ignored = {VariableId("i"), VariableId("j"), VariableId("k")}
    rules = Rules(lambda *_: VariableSettings(), ignored.__contains__)
    outcome = Outcome()
    both = pair_up(
        outcome, rules, Held("b", "a", "gone", "i", "j"), Held("a", "b", "new", "j", "k")
    )
    assert [one.name for one in both] == ["a", "b"]
    assert [one.name for one in outcome.ignored] == ["i", "j", "k"]
    assert [one.name for one in outcome.left_out] == ["i", "j"]
    gone, new = VariableId("gone"), VariableId("new")
    assert outcome.missing == [begun(gone, Held("gone").signature(gone), None)]
    assert outcome.extra == [begun(new, None, Held("new").signature(new), source_path="new.npy")]
    assert outcome.results == []


# --- what trees leave open, and what is made of the answer

EXACT = _core.TreeParameters("<i8")
PLAIN = _core.TreeParameters("<f8", atol=1e-3)


def compared(parameters: _core.TreeParameters, golden: Any, new: Any, *leaves: int) -> Any:
    comparer = _core.ElementComparer(parameters)
    for leaf in leaves:
        piece = slice(512 * leaf, 512 * (leaf + 1))
        comparer.update(golden[piece].tobytes(), new[piece].tobytes(), first_element=512 * leaf)
    return comparer.finish()


def question(leaves: list[int] | None, suspects: list[int] | None, **more: Any) -> Question:
    asked = None if leaves is None else np.array(leaves, np.int64)
    told = None if suspects is None else Suspects(np.array(suspects, np.int64), 2)
    begin = VariableResult("x", Verdict.NOT_COMPARABLE, reason="it was not compared")
    return Question(begin, more.get("parameters", PLAIN), (10, 100), asked, told)


def moved_at(*places: int, by: float = 1.0) -> np.ndarray:
    new = VALUES.copy()
    new[list(places)] += by
    return new


def read_of(golden: np.ndarray, new: np.ndarray) -> Any:
    return lambda flats: (golden[list(flats)], new[list(flats)])


def test_elements_of_suspect_chunks_give_exact_counts() -> None:
    new = moved_at(600, 999)
    asked = question([1], [1])
    assert asked.byte_count == 8000
    result = answered(asked, compared(PLAIN, VALUES, new, 1), read_of(VALUES, new))
    assert result.verdict is Verdict.DIFFER
    assert (result.evidence, result.byte_count) == (Evidence.DATA, 8000)
    assert (result.reason, result.bound, result.element_count) == (None, BOUND, 1000)
    assert (result.differing_count, result.first_index) == (2, (6, 0))
    assert [one.index for one in result.first_differences] == [(6, 0), (9, 99)]
    assert (result.chunk_count, result.suspect_chunks) == (2, 1)
    assert (result.suspect_range_count, len(result.suspect_ranges)) == (1, 1)
    # A largest difference beyond the bound lies among the elements compared ...
    assert (result.max_abs_difference, result.max_abs_index) == (1.0, (6, 0))
    assert result.max_rel_difference == 1 / 600
    assert result.max_rel_index == (6, 0)
    assert result.max_bound_share == pytest.approx(1000)
    # ... and means would be those of a part.
    assert (result.mean_abs_difference, result.mean_rel_difference) == (None, None)
    assert (result.bound_share_histogram, result.max_drift_share) == (None, None)
    assert (result.nan_mismatch_count, result.inf_mismatch_count) == (0, 0)


def test_suspect_chunks_within_the_bound_are_a_match_and_tell_no_maximum() -> None:
    new = moved_at(600, by=1e-4)
    result = answered(question([1], [1]), compared(PLAIN, VALUES, new, 1), read_of(VALUES, new))
    assert (result.verdict, result.differing_count) == (Verdict.MATCH, 0)
    assert (result.max_abs_difference, result.max_abs_index) == (None, None)
    assert (result.max_rel_difference, result.max_bound_share) == (None, None)
    assert (result.first_index, result.first_differences) == (None, ())


def test_all_elements_give_means_and_histogram() -> None:
    new = moved_at(600, by=1e-4)
    new[7] = np.nan
    new[8] = np.inf
    result = answered(
        question(None, None), compared(PLAIN, VALUES, new, 0, 1), read_of(VALUES, new)
    )
    assert (result.verdict, result.differing_count) == (Verdict.DIFFER, 2)
    assert (result.nan_mismatch_count, result.inf_mismatch_count) == (1, 1)
    assert result.mean_abs_difference == pytest.approx(1e-4 / 998)
    assert result.mean_rel_difference == pytest.approx(1e-4 / 600 / 997)
    assert result.bound_share_histogram is not None
    assert sum(result.bound_share_histogram) == 1000
    assert result.max_drift_share == np.inf
    assert (result.chunk_count, result.suspect_chunks) == (None, None)
    assert (result.suspect_ranges, result.suspect_range_count) == ((), None)


def test_whole_numbers_that_match_differ_by_nothing_at_all() -> None:
    whole = np.arange(1000)
    asked = question([1], [], parameters=EXACT)
    result = answered(asked, compared(EXACT, whole, whole, 1), read_of(whole, whole))
    assert (result.verdict, result.max_abs_difference) == (Verdict.MATCH, 0.0)
    assert (result.max_abs_index, result.max_rel_index) == ((5, 12), (5, 12))


def test_trees_that_contradict_the_data_make_nothing_of_it() -> None:
    """Elements differ in a chunk whose digests agree; of the suspect ones they say nothing."""
    new = moved_at(3, 600)
    whole = compared(PLAIN, VALUES, new, 0, 1)
    told = answered(question(None, [1]), whole, read_of(VALUES, new))
    assert told.verdict is Verdict.NOT_COMPARABLE
    assert str(told.reason).startswith("its captured trees contradict its data: ")
    assert str(told.reason).endswith("--rebuild, or compare with --no-captures")
    assert answered(question(None, [0, 1]), whole, read_of(VALUES, new)).differing_count == 2
    # Digests of whole numbers differ, and no element does.
    values = np.arange(1000)
    same = compared(EXACT, values, values, 0)
    told = answered(question([0], [0], parameters=EXACT), same, read_of(values, values))
    assert told.verdict is Verdict.NOT_COMPARABLE
    # What was not compared contradicts nothing.
    one = compared(EXACT, values, values + (values == 600), 1)
    told = answered(question([1], [1], parameters=EXACT), one, read_of(values, values))
    assert told.differing_count == 1
    told = answered(question([1], [0, 1], parameters=EXACT), one, read_of(values, values))
    assert told.differing_count == 1


def test_what_the_stream_found() -> None:
    new = moved_at(600, 999)
    values = (VALUES[[600, 999]].tobytes(), new[[600, 999]].tobytes())
    found = Streamed(compared(PLAIN, VALUES, new, 1), first_values=values)
    result = streamed_result(question([1], [1]), found)
    assert [(one.golden, one.new) for one in result.first_differences] == [
        ("600.0", "601.0"),
        ("999.0", "1000.0"),
    ]
    failed = streamed_result(question([1], [1]), Streamed(None, ERROR))
    assert (failed.verdict, failed.reason) == (
        Verdict.NOT_COMPARABLE,
        "a.npy: is cut off; write it anew",
    )


@pytest.mark.parametrize("parameters", [EXACT, PLAIN])
@pytest.mark.parametrize("levels", [None, 15])
def test_two_roots_that_match(parameters: _core.TreeParameters, levels: int | None) -> None:
    begin = VariableResult(
        "x", Verdict.NOT_COMPARABLE, reason="it was not compared", residue_levels=levels
    )
    assert said(matched_by_digests(begin, parameters, 2, 1000)) == {
        "name": "x",
        "verdict": Verdict.MATCH,
        "bound": ErrorBound() if parameters is EXACT else BOUND,
        "evidence": Evidence.TREE if levels is None else Evidence.RESIDUES,
        "element_count": 1000,
        "differing_count": 0,
        "chunk_count": 2,
        "suspect_chunks": 0,
        **({"max_abs_difference": 0.0} if parameters is EXACT else {}),
        **({"residue_levels": levels} if levels else {}),
    }
