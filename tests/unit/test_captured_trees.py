"""Which trees of a capture may be used: those made with what is asked for now, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from msgspec import structs
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Signature
from ciwrap.base.errors import UsageError
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.formats.catalog import Rules
from ciwrap.formats.find_outputs import find_in
from ciwrap.golden.trees import Resources
from ciwrap.model import ErrorBound, VariableId, VariableSettings, Verdict
from ciwrap.runs.capture import Against, CaptureOptions, TreeMaker, capture_run
from ciwrap.runs.capture_file import CaptureFile, Section
from ciwrap.runs.capture_index import (
    BoundRow,
    Bounds,
    CapturedVariable,
    CaptureHeader,
    FineIdentity,
    MadeWith,
    StoredTree,
    read_checkpoint,
    read_index,
)
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.sides import Variables, comparable_trees, fitting, open_run

if TYPE_CHECKING:
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
    alone = captured(fine=fine(ASKED))  # as of a golden that keeps residues
    assert fitting(alone, ASKED, X) is alone


@pytest.mark.parametrize("made", OTHERWISE.values(), ids=OTHERWISE)
def test_trees_of_another_bound_are_not_used(made: VariableSettings) -> None:
    assert fitting(captured(plain=tree(made)), ASKED, X) is None
    assert fitting(captured(plain=tree(made), fine=fine(ASKED)), ASKED, X) is None
    assert fitting(captured(fine=fine(made)), ASKED, X) is None
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


def test_two_trees_with_residues_of_their_own_tell_only_that_they_are_the_same() -> None:
    ours, plain = fine(ASKED), tree(ASKED)
    same, other, wide = fine(ASKED), fine(ASKED, b"o" * 16), fine(WIDE)
    assert same.identity == ours.identity == wide.identity != other.identity
    mine = captured(plain=plain, fine=ours)
    assert comparable_trees(mine, captured(plain=plain, fine=same)) == (ours, same)
    for one in (other, wide):
        assert comparable_trees(mine, captured(plain=plain, fine=one)) == (plain, plain)
        assert comparable_trees(mine, captured(fine=one)) is None


def test_plain_trees_are_compared_if_both_are_of_one_bound() -> None:
    one = captured(plain=tree(ASKED))
    assert comparable_trees(one, captured(plain=tree(WIDE))) is None
    assert comparable_trees(one, captured()) is None
    assert comparable_trees(captured(), one) is None


def rules(settings: VariableSettings) -> Rules:
    return Rules(lambda *_: settings, lambda _: False, bounds_are_given=True)


def capture(run: Path, settings: VariableSettings = ASKED, *, against: Path | None = None) -> Path:
    target = run / ".ciwrap.tree"
    found = find_in(run, layout=LAYOUT, exclude=(".ciwrap.tree*",))
    options = CaptureOptions(
        chunk_bytes=None if against else 64,
        residues=against is None,
        against=against,
        settle_seconds=0,
    )
    capture_run(run, found, target, rules(settings), options)
    return target


def compare(one: Path, other: Path) -> CheckResult:
    sides = [
        open_run(run, find_in(run, layout=LAYOUT, exclude=(".ciwrap.tree*",)))
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


# --- an earlier capture's trees: whether they are those that would be made now


def maker(settings: VariableSettings = ASKED, **more: Any) -> TreeMaker:
    known: dict[str, Any] = {"chunk_bytes": 64, "residues": False, "against": None, **more}
    is_ignored = known.pop("is_ignored", False)
    are_given = known.pop("bounds_are_given", True)
    return TreeMaker(
        Path("run"),
        Rules(lambda *_: settings, lambda _: is_ignored, bounds_are_given=are_given),
        resources=Resources(backend="serial"),
        progress=NO_PROGRESS,
        **known,
    )


class Reference:
    """Stands for another run's capture: of each variable it holds one tree with residues."""

    header = CaptureHeader("given", 64, ())

    def __init__(self, one: StoredTree | None) -> None:
        self._one = one

    def fine(self, identity: VariableId) -> StoredTree | None:
        return self._one


@pytest.mark.parametrize("is_captured", [True, False])
def test_files_that_change_after_they_were_read_are_noticed(
    tmp_path: Path, is_captured: bool
) -> None:
    """Also where a capture tells where the numbers lie, and no reader opens the file."""
    run, path = tmp_path / "a", tmp_path / "a/iter_1/x.npy"
    path.parent.mkdir(parents=True)
    np.save(path, np.arange(8.0))
    if is_captured:
        capture(run)
    side = open_run(run, find_in(run, layout=LAYOUT, exclude=(".ciwrap.tree*",)))
    ((key, _),) = side.groups.items()
    found = Variables(side, key)
    region = found.region(VariableId("x", 1))
    assert region is not None
    assert region.path == str(path)
    assert found.look.change() is None
    np.save(path, np.arange(9.0))
    assert "iter_1/x.npy had" in (found.look.change() or "")
    found.close()
    side.close()


@pytest.mark.parametrize("residues", [False, True])
def test_trees_that_would_be_made_again_are_kept(residues: bool) -> None:
    both = captured(plain=tree(ASKED), fine=fine(ASKED))
    assert maker(residues=residues).is_as_asked(both)
    plain = captured(plain=tree(ASKED))
    assert maker(residues=residues).is_as_asked(plain) is not residues
    # What is compared exactly has no residues.
    exact = VariableSettings(bound=ErrorBound())
    assert maker(exact, residues=residues).is_as_asked(captured(plain=tree(exact)))


@pytest.mark.parametrize("made", OTHERWISE.values(), ids=OTHERWISE)
def test_trees_of_another_bound_are_made_anew(made: VariableSettings) -> None:
    assert not maker().is_as_asked(captured(plain=tree(made)))
    mixed = captured(plain=tree(ASKED), fine=fine(made))
    assert not maker(residues=True).is_as_asked(mixed)
    assert maker(residues=False).is_as_asked(mixed)


def test_trees_with_few_residues_are_kept_too() -> None:
    few = replace(ASKED, residue_levels=3)
    held = captured(plain=tree(ASKED), fine=tree(few, 3, residues=Section(16, 4, b"d" * 16)))
    assert maker(few, residues=True).is_as_asked(held)
    assert not maker(ASKED, residues=True).is_as_asked(held)
    assert not maker(few, residues=True).is_as_asked(captured(plain=tree(ASKED)))


def test_what_needs_trees_and_has_none_is_captured_anew() -> None:
    assert not maker().is_as_asked(captured())


@pytest.mark.parametrize(
    "how",
    [{"is_ignored": True}, {"settings": replace(ASKED, mask="land")}],
    ids=["ignored", "mask"],
)
def test_what_needs_no_trees_is_as_asked(how: dict[str, Any]) -> None:
    assert maker(**how).is_as_asked(captured())
    assert maker(**how).is_as_asked(captured(plain=tree(WIDE)))


def test_trees_against_another_reference_are_made_anew() -> None:
    reference = fine(ASKED)
    again = maker(against=Reference(reference))
    made = captured(plain=tree(ASKED), relative=tree(ASKED, 15, against=reference.identity))
    assert again.is_as_asked(made)
    assert not again.is_as_asked(captured(plain=tree(ASKED)))
    other = tree(ASKED, 15, against=fine(ASKED, root=b"o" * 16).identity)
    assert not again.is_as_asked(captured(plain=tree(ASKED), relative=other))
    # The reference does not hold the variable.
    assert maker(against=Reference(None)).is_as_asked(captured(plain=tree(ASKED)))


# --- what a capture against another run takes over from it


def write(run: Path, value: float = 0.0, *, dtype: str = "<f8", name: str = "x") -> Path:
    path = run / "iter_1" / f"{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.full(40, value, dtype))
    return run


def test_the_bound_of_the_other_run_is_taken_over(tmp_path: Path) -> None:
    made = replace(ASKED, equal_nan=False, fill_values=(-1.0,))
    golden = capture(write(tmp_path / "a"), made)
    with CaptureFile(golden) as file:
        reference = Against(file)
    assert reference.header.chunk_bytes == 64
    mine = replace(WIDE, residue_levels=7, mask="land")
    taken = replace(mine, bound=ErrorBound(1e-3), equal_nan=False, fill_values=(-1.0,))
    bounds = Bounds.of_header(reference.header)
    # Another checkpoint has the bound that the variable has elsewhere.
    for iteration in (1, 2):
        assert bounds.settings_for(mine, VariableId("x", iteration), "<f8") == taken
    assert bounds.settings_for(mine, VariableId("y", 1), "<f8") is None
    assert reference.fine(VariableId("x", 2)) is None
    for are_given, wanted in ((True, mine), (False, taken)):
        made_now = maker(mine, chunk_bytes=None, against=reference, bounds_are_given=are_given)
        assert made_now._settings_of(VariableId("x", 1), Signature("<f8", ())) == wanted


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<c16"])
def test_chunks_are_as_large_as_the_other_runs(tmp_path: Path, dtype: str) -> None:
    golden = capture(write(tmp_path / "a", dtype=dtype))
    options = {"residues": False, "against": golden, "settle_seconds": 0}
    run = write(tmp_path / "b", dtype=dtype)
    found = find_in(run, layout=LAYOUT)
    with pytest.raises(UsageError, match="--chunk-bytes 128"):
        capture_run(run, found, run / "t", rules(ASKED), CaptureOptions(chunk_bytes=128, **options))
    capture_run(run, found, run / "t", rules(ASKED), CaptureOptions(chunk_bytes=64, **options))
    assert variables_of(run / "t")["x"].relative is not None


def test_another_bound_than_the_other_runs_is_refused(tmp_path: Path) -> None:
    golden = capture(write(tmp_path / "a"))
    with pytest.raises(UsageError, match="was captured with") as caught:
        capture(write(tmp_path / "b"), WIDE, against=golden)
    assert caught.value.variable == "iter 1 / x"


@pytest.mark.parametrize("other", [{"dtype": "<f4"}, {"name": "y"}], ids=["dtype", "name"])
def test_what_cannot_be_held_against_the_other_run_has_its_own_tree(
    other: dict[str, str], tmp_path: Path
) -> None:
    golden = capture(write(tmp_path / "a"))
    target = capture(write(tmp_path / "b", **other), against=golden)  # type: ignore[arg-type]
    (one,) = variables_of(target).values()
    assert (one.plain is None, one.relative) == (False, None)


def test_what_is_not_captured_says_why(tmp_path: Path) -> None:
    run = write(tmp_path / "a")
    write(run, name="mask", dtype="|b1")
    masked = capture(run, replace(ASKED, mask="mask"))
    assert str(variables_of(masked)["x"].reason).startswith("it is compared in a way that trees")
    assert variables_of(masked)["x"].plain is None


def variables_of(path: Path) -> dict[str, CapturedVariable]:
    with CaptureFile(path) as file:
        return {
            one.identity.name: one
            for directory in read_index(file).checkpoints.values()
            for one in read_checkpoint(file, directory).variables
        }


# --- the bound of a capture as a whole

OF_ALL = Rules(lambda *_: ASKED, lambda _: False, general=ASKED)


def test_a_bound_of_everything_is_one_row() -> None:
    bounds = Bounds.of_rules(OF_ALL)
    bounds.note(ASKED, X, "<f8")
    bounds.note(ASKED, VariableId("y"), "<f4")
    assert bounds.rows == (BoundRow.of(ASKED),)
    again = Bounds.of_header(CaptureHeader("given", 64, bounds.rows))
    assert again.settings_for(VariableSettings(), VariableId("z"), "<i4") == ASKED


def test_bounds_of_some_variables_are_told_by_name_and_dtype() -> None:
    bounds = Bounds.of_rules(replace(OF_ALL, general=None, bounds_from="check c"))
    filled = replace(WIDE, fill_values=(float("nan"),))
    for name, dtype, one in (("x", "<f8", ASKED), ("y", "<f8", ASKED), ("x", "<f4", filled)):
        bounds.note(one, VariableId(name, 3), dtype)
    assert len(bounds.rows) == 2
    again = Bounds.of_header(CaptureHeader(bounds.origin, 64, bounds.rows))
    plain = VariableSettings()
    assert again.settings_for(plain, VariableId("y", 9), "<f8") == ASKED
    assert again.settings_for(plain, VariableId("z", 9), "<f8") is None
    found = again.settings_for(plain, VariableId("x", 9), "<f4")
    assert found is not None
    assert str(found.fill_values) == "(nan,)"
    again.refuse_other(filled, VariableId("x"), "<f4")  # NaN is the fill value that it was
    with pytest.raises(UsageError, match="was made with"):
        again.refuse_other(WIDE, VariableId("y"), "<f8")
    again.refuse_other(WIDE, VariableId("z"), "<f8")  # of which nothing is known


def test_bounds_by_iteration_are_not_given_to_other_iterations() -> None:
    bounds = Bounds.of_rules(replace(OF_ALL, general=None, by_place=True))
    for iteration, one in ((1, ASKED), (2, WIDE)):
        bounds.note(one, VariableId("x", iteration), "<f8")
    again = Bounds.of_header(CaptureHeader(bounds.origin, 64, bounds.rows))
    plain = VariableSettings()
    found = [again.settings_for(plain, VariableId("x", n), "<f8") for n in (1, 2, 3)]
    assert found == [ASKED, WIDE, None]
