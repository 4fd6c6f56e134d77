"""The law of every verdict: errors, what was not compared, what does not fit, who is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict, replace
from result_fields import said

from ciwrap.arrays.values import ArrayValues, Signature
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    DtypeMismatchError,
    LabelMismatchError,
    MaskError,
    NotComparableError,
    ShapeMismatchError,
    UsageError,
)
from ciwrap.check.two_sides import (
    GOLDEN,
    RUNS,
    EmptySide,
    Findings,
    PartSums,
    failed_check,
    in_dtype,
    message_of,
    not_comparable,
    pair_up,
    refuse_incompatible,
    refuse_mistakes,
    refuse_other_labels,
    refuse_unseen_mask,
    uncompared,
)
from ciwrap.formats.catalog import Rules
from ciwrap.model import (
    CheckResult,
    ErrorBound,
    Evidence,
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


# --- errors


def test_a_users_mistake_is_never_a_result() -> None:
    result = uncompared(X, None, None)
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
    result = uncompared(
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
    plain = uncompared(X, new, new, settings=VariableSettings())
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
    assert said(uncompared(X, reference, new)) == {**common, **ours, **named}
    assert said(uncompared(X, None, new)) == {**common, **ours}
    alone = {"golden_dtype": reference.dtype, "golden_shape": reference.shape}
    if reference.labels:
        alone["golden_labels"] = reference.labels
    assert said(uncompared(X, reference, None)) == {**common, **alone}


def test_a_side_of_nothing_holds_nothing() -> None:
    assert not EmptySide().identities
    with pytest.raises(KeyError):
        EmptySide().signature(X)
    with pytest.raises(KeyError):
        EmptySide().path_of(X)


def test_outcomes_add_up_field_by_field() -> None:
    def one(number: int) -> Findings:
        name = f"n{number}"
        result = VariableResult(name, Verdict.DIFFER)
        identity = VariableId(name)
        return Findings(
            results=[result],
            missing=[result],
            extra=[result],
            ignored=[identity],
            left_out=[identity],
            uncommon=number,
            errors=[CorruptFileError(name)],
            notes=[name],
            stale=[(name, (1, 2), name)],
            unused=[name],
            lost=[((1, 2), name)],
            sums=[PartSums(identity, number, 1.0, 1, 1.0, 1)],
            capture_bytes_read=number,
            data_bytes_read=10 * number,
            attributes_left_out=number,
            engine=name,
            ended_by=name,
        )

    total, first, second = one(1), one(1), one(2)
    total.add(second)
    for name in asdict(first):
        mine, other, both = (getattr(outcome, name) for outcome in (first, second, total))
        assert mine != getattr(Findings(), name), f"{name} is not tried"
        if name in ("engine", "ended_by"):
            assert both == "n2"
        elif name == "errors":
            assert [error.message for error in both] == ["n1", "n2"]
        else:
            assert both == mine + other, name
    total.add(Findings())
    assert (total.engine, total.ended_by) == ("n2", "n2")


@pytest.mark.parametrize("combine", ["sum", "either", "both"])
def test_how_bounds_combine_is_said_unless_they_add_up(combine: str) -> None:
    settings = VariableSettings(combine=combine)
    found = uncompared(X, None, None, settings=settings).combine
    assert found == (None if combine == "sum" else combine)
    assert uncompared(X, None, None).combine is None


def test_the_mask_is_that_of_the_same_checkpoint() -> None:
    masked, mask = VariableSettings(mask="m"), VariableId("m", X.iteration, X.rank)
    refuse_unseen_mask(X, VariableSettings(), lambda _: "n", lambda _: False)
    refuse_unseen_mask(X, masked, lambda _: None, mask.__eq__)
    with pytest.raises(MaskError, match="is not compared itself"):
        refuse_unseen_mask(X, masked, lambda _: None, lambda one: one != mask)
    refuse_unseen_mask(X, masked, lambda one: None if one == mask else "n", mask.__eq__)
    with pytest.raises(MaskError, match="its mask 'm' has a mask itself, 'n'"):
        refuse_unseen_mask(X, masked, lambda one: "n" if one == mask else None, mask.__eq__)


# --- what does not fit


def test_shapes_that_do_not_fit() -> None:
    square, line, number = (Signature("<f8", shape) for shape in ((2, 3), (6,), ()))
    refuse_incompatible(square, square, RUNS, is_strict=True)
    refuse_incompatible(square, line, RUNS, is_strict=False)
    with pytest.raises(ShapeMismatchError, match=r"^shape 2x3 in A, 6 in B$"):
        refuse_incompatible(square, line, RUNS, is_strict=True)
    with pytest.raises(ShapeMismatchError) as caught:
        refuse_incompatible(number, square, GOLDEN, is_strict=False)
    assert str(caught.value) == (
        "shape 2x3, but the golden has () (a single number); if that is right, accept the new"
        " outputs"
    )


def test_labels_that_do_not_fit() -> None:
    ours = (("dims", "x y"), ("units", "m"))
    refuse_other_labels(ours, ours, RUNS)
    for theirs, text in (
        ((), "dimension names 'x y' in A, none in B"),
        ((("dims", "x y"),), "label 'units': 'm' in A, none in B"),
        ((("dims", "x y"), ("units", "s")), "label 'units': 'm' in A, 's' in B"),
        ((*ours, ("long", "a")), "label 'long': none in A, 'a' in B"),
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


# --- who is compared


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

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        assert identity in self.identities
        return NotComparableError("is odd") if identity.name == "odd" else None


def test_who_is_compared_with_whom() -> None:
    ignored = {VariableId("i"), VariableId("j"), VariableId("k")}
    rules = Rules(lambda *_: VariableSettings(), ignored.__contains__)
    outcome = Findings()
    both = pair_up(
        outcome, rules, Held("b", "a", "gone", "i", "j"), Held("a", "b", "new", "j", "k")
    )
    assert [one.name for one in both] == ["a", "b"]
    assert [one.name for one in outcome.ignored] == ["i", "j", "k"]
    assert [one.name for one in outcome.left_out] == ["i", "j"]
    gone, new = VariableId("gone"), VariableId("new")
    assert outcome.missing == [uncompared(gone, Held("gone").signature(gone), None)]
    assert outcome.extra == [
        uncompared(new, None, Held("new").signature(new), source_path="new.npy")
    ]
    assert outcome.results == []


def test_what_one_side_alone_has_is_told_with_its_fault() -> None:
    outcome = Findings()
    rules = Rules(lambda *_: VariableSettings(), frozenset().__contains__)
    pair_up(outcome, rules, Held("a"), Held("odd"))
    pair_up(outcome, rules, Held("odd"), Held("a"))
    assert [one.reason for one in outcome.extra] == ["is odd", "it was not compared"]
    assert [one.reason for one in outcome.missing] == ["it was not compared", "is odd"]
