"""Which trees of a capture may be used: those made with what is asked for now, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from msgspec import structs

from ciwrap import _core
from ciwrap.captures.capture import CaptureOptions, capture_run
from ciwrap.captures.capture_trees import TreeMaker
from ciwrap.captures.checkpoint import comparable_trees, fitting
from ciwrap.captures.container import Section
from ciwrap.captures.index import CapturedVariable, FineIdentity, MadeWith, StoredTree
from ciwrap.captures.side import open_side
from ciwrap.catalog.rules import Rules
from ciwrap.compare.histories import compare_histories
from ciwrap.errors import UsageError
from ciwrap.model import ErrorBound, VariableId, VariableSettings, Verdict
from ciwrap.readers.layout import find_in

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.model import CheckResult

X = VariableId("x")
ASKED = VariableSettings(bound=ErrorBound(1e-3))
WIDE = VariableSettings(bound=ErrorBound(2.0))
LAYOUT = "iter_{iteration:d}/{name}.npy"


def made_with(settings: VariableSettings, residue_levels: int = 1) -> MadeWith:
    return MadeWith.of(
        _core.TreeParameters(
            "<f8",
            atol=settings.bound.atol,
            rtol=settings.bound.rtol,
            residue_levels=residue_levels,
            chunk_bytes=64,
            equal_nan=settings.equal_nan,
            fill_values=settings.fill_values,
        )
    )


def tree(settings: VariableSettings, residue_levels: int = 1, **more: Any) -> StoredTree:
    return StoredTree(
        made_with(settings, residue_levels), b"r" * 16, Section(0, 16, b"c" * 16), **more
    )


def fine(settings: VariableSettings, root: bytes = b"r" * 16) -> StoredTree:
    one = tree(settings, 15, residues=Section(16, 4, b"d" * 16))
    return structs.replace(one, root=root)


def captured(**trees: StoredTree | None) -> CapturedVariable:
    return CapturedVariable(X, "<f8", (8,), **trees)


OTHERWISE = {
    "atol": WIDE,
    "rtol": replace(ASKED, bound=ErrorBound(1e-3, 1e-3)),
    "NaN": replace(ASKED, equal_nan=False),
    "fill values": replace(ASKED, fill_values=(0.0,)),
}


def test_trees_of_the_bound_that_is_asked_for_are_used() -> None:
    both = captured(plain=tree(ASKED), fine=fine(ASKED))
    assert fitting(both, ASKED, X) is both
    plain = captured(plain=tree(ASKED))
    assert fitting(plain, ASKED, X) is plain


@pytest.mark.parametrize("made", OTHERWISE.values(), ids=OTHERWISE)
def test_trees_of_another_bound_are_not_used(made: VariableSettings) -> None:
    assert fitting(captured(plain=tree(made)), ASKED, X) is None
    assert fitting(captured(plain=tree(made), fine=fine(ASKED)), ASKED, X) is None
    assert fitting(captured(fine=fine(ASKED)), ASKED, X) is None
    assert fitting(None, ASKED, X) is None


@pytest.mark.parametrize("made", OTHERWISE.values(), ids=OTHERWISE)
def test_a_tree_with_residues_of_another_bound_is_left_out(made: VariableSettings) -> None:
    plain = tree(ASKED)
    found = fitting(captured(plain=plain, fine=fine(made)), ASKED, X)
    assert found == captured(plain=plain)


def test_a_bound_that_the_variable_cannot_have_names_it() -> None:
    text = StoredTree(
        MadeWith.of(_core.TreeParameters("|S4")), b"r" * 16, Section(0, 16, b"c" * 16)
    )
    with pytest.raises(UsageError) as caught:
        fitting(captured(plain=text), replace(ASKED, fill_values=(1.0,)), X)
    assert caught.value.variable == "x"


def test_a_relative_tree_is_held_against_its_own_reference_alone() -> None:
    ours, plain = fine(ASKED), tree(ASKED)
    identity = ours.identity
    assert identity is not None
    relative = tree(ASKED, 15, against=identity)
    mine = captured(plain=plain, fine=ours)
    assert comparable_trees(mine, captured(plain=plain, relative=relative)) == (ours, relative)
    others = {
        "another tree": tree(ASKED, 15, against=FineIdentity(b"x" * 16)),
        "none": tree(ASKED, 15),
        "another bound": tree(WIDE, 15, against=identity),
    }
    for one in others.values():
        found = comparable_trees(mine, captured(plain=plain, relative=one))
        assert found == (plain, plain)
    assert comparable_trees(captured(plain=plain), captured(plain=plain, relative=relative)) == (
        plain,
        plain,
    )


def test_plain_trees_are_compared_if_both_are_of_one_bound() -> None:
    one = captured(plain=tree(ASKED))
    assert comparable_trees(one, captured(plain=tree(WIDE))) is None
    assert comparable_trees(one, captured()) is None
    assert comparable_trees(captured(), one) is None


def rules(settings: VariableSettings) -> Rules:
    return Rules(lambda *_: settings, lambda _: False, bounds_are_given=True)


def capture(run: Path, *, against: Path | None = None) -> Path:
    target = run / ".ciwrap.tree"
    found = find_in(run, layout=LAYOUT, exclude=(".ciwrap.tree*",))
    options = CaptureOptions(
        chunk_bytes=None if against else 64,
        residues=against is None,
        against=against,
        settle_seconds=0,
    )
    capture_run(run, found, target, rules(ASKED), options)
    return target


def compare(one: Path, other: Path) -> CheckResult:
    sides = [
        open_side(run, find_in(run, layout=LAYOUT, exclude=(".ciwrap.tree*",)))
        for run in (one, other)
    ]
    try:
        return compare_histories("c", *sides, rules(ASKED), golden_path="a", source_path="b")
    finally:
        for side in sides:
            side.close()


@pytest.mark.parametrize("is_hostile", [False, True])
def test_a_capture_that_lies_about_its_bound_hides_nothing(
    is_hostile: bool, tmp_path: Path
) -> None:
    """Its plain trees are of the bound that is asked for; those with residues are of a wider one,
    within which the runs are equal.
    """
    for run, value in (("a", 0.0), ("b", 1.0)):
        path = tmp_path / run / "iter_1" / "x.npy"
        path.parent.mkdir(parents=True)
        np.save(path, np.full(40, value))
    honest = TreeMaker._parameters

    def wide(self: TreeMaker, dtype: str, settings: Any, levels: int, *more: Any) -> Any:
        return honest(self, dtype, WIDE if levels > 1 else settings, levels, *more)

    with mock.patch.object(TreeMaker, "_parameters", wide if is_hostile else honest):
        golden = capture(tmp_path / "a")
        capture(tmp_path / "b", against=golden)
    result = compare(tmp_path / "a", tmp_path / "b")
    assert (result.verdict, result.variables[0].differing_count) == (Verdict.DIFFER, 40)
