"""Pending goldens that are accepted for one kind of machine, or from somebody else's run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from golden_pairs import value_of, variable, write
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.base.errors import ArtifactError, GoldenToMendError, PendingConflictError, UsageError
from ciwrap.base.files import PENDING_DIR
from ciwrap.golden.manifest import BinaryFile, Manifest, VariableRow
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStores
from ciwrap.model import RunResult, Verdict
from ciwrap.report.document import document_text, to_document
from ciwrap.review.accept import accept, accept_pending, look_at
from ciwrap.review.change import Status
from ciwrap.review.pending import pending_origin
from ciwrap.review.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.review.accept import PendingChange

RESULT = document_text(to_document(RunResult(Verdict.NOT_COMPARABLE)))
OLD, NEW, OTHER = 1.0, 2.0, 3.0
PLACE = Place("tests/test_it", "test_a")
ARM = PLACE.for_variant("arm64")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(
        root=tmp_path,
        golden_dir=tmp_path / "golden",
        goldens=GoldenStores(tmp_path / "golden"),
        pending_dir=tmp_path / PENDING_DIR,
    )
    write(found.goldens.at(PLACE), "test_a", OLD)
    base = found.goldens.at(PLACE).read("test_a").root
    found.pending.write(PLACE, [variable(NEW)], pending_origin(base, "c0"), {}, RESULT, {})
    return found


def look(project: Project) -> PendingChange:
    (found,) = project.pending.all()
    return look_at(project, found, "arm64")


def values(project: Project) -> tuple[float, float | None]:
    at = project.goldens.at(ARM)
    arm = value_of(at.read("test_a")) if at.contains("test_a") else None
    return value_of(project.goldens.at(PLACE).read("test_a")), arm


@pytest.mark.parametrize("there", [None, OTHER, NEW, "damaged"])
def test_accepting_for_one_kind_of_machine(project: Project, there: float | str | None) -> None:
    store = project.goldens.at(ARM)
    if there is not None:
        write(store, "test_a", OTHER if there == "damaged" else float(there))
    if there == "damaged":
        # The file is that of all small goldens of the test file: nothing in it is given up here.
        store.path("test_a").write_bytes(b"no golden")
        with pytest.raises(GoldenToMendError, match="where it is whole, or delete it"):
            look(project)
        assert len(project.pending.all()) == 1
        return
    looked = look(project)
    statuses = {None: Status.CREATED, NEW: Status.SAME}
    assert looked.change.status is statuses.get(there, Status.REPLACED)
    assert looked.place == ARM
    assert looked.change.path == store.path("test_a")
    accept(project, looked, "why")
    assert values(project) == (OLD, NEW)
    assert not project.pending.all()


@pytest.mark.parametrize("there", [None, OTHER])
@pytest.mark.parametrize("act", ["replaced", "removed", "damaged"])
def test_what_others_change_of_it_meanwhile_stays(
    project: Project, there: float | None, act: str
) -> None:
    store = project.goldens.at(ARM)
    if there is not None:
        write(store, "test_a", there)
    elif act == "removed":
        return
    looked = look(project)
    if act == "replaced":
        write(store, "test_a", 4.0)
    elif act == "removed":
        store.path("test_a").unlink()
    else:
        store.path("test_a").parent.mkdir(parents=True, exist_ok=True)
        store.path("test_a").write_bytes(b"no golden")
    is_damaged = act == "damaged"
    error = GoldenToMendError if is_damaged else PendingConflictError
    with pytest.raises(
        error, match="delete it" if is_damaged else "has changed since this one was made"
    ):
        accept(project, looked, "why")
    assert len(project.pending.all()) == 1


def test_a_check_of_no_test_has_no_golden_for_one_kind_of_machine(project: Project) -> None:
    project.pending.discard(PLACE)
    place = Place("", "mesh")
    project.pending.write(place, [variable(NEW)], pending_origin(None, "c0"), {}, RESULT, {})
    with pytest.raises(UsageError, match="'mesh' is not a check of a test"):
        look(project)


def test_somebody_elses_pending_goldens_are_not_locked(project: Project) -> None:
    (found,) = project.pending.all()
    theirs = replace(project, is_own=False)
    with project.pending.store(PLACE).locked():
        accept(theirs, look_at(theirs, found), "why")
    assert values(project) == (NEW, None)
    assert project.pending.all() == [found]


@pytest.mark.parametrize("variant", [None, "arm64"])
def test_a_wider_bound_for_one_kind_of_machine_needs_a_word(
    project: Project, variant: str | None
) -> None:
    """There is no golden for it yet, so the common one counts there, with its bound."""
    (found,) = project.pending.all()
    project.pending.discard(PLACE)
    place = PLACE if variant is not None else ARM
    origin = found.origin if variant is not None else pending_origin(None, "c0")
    project.pending.write(place, [variable(NEW, 10.0)], origin, {}, RESULT, {})
    theirs = replace(project, is_own=False)
    with pytest.raises(ArtifactError, match="widens a bound: atol=0"):
        accept_pending(theirs, [], "why", variant=variant, allowed=())
    assert values(project) == (OLD, None)
    accept_pending(theirs, [], "why", variant=variant, allowed=("allow-wider",))
    assert values(project) == (OLD, NEW)


def test_a_dry_run_writes_nothing(project: Project) -> None:
    (change,) = accept_pending(project, [], None, dry_run=True)
    assert change.status is Status.REPLACED
    assert values(project) == (OLD, None)
    with pytest.raises(UsageError, match="needs a reason"):
        accept_pending(project, [], None)
    assert values(project) == (OLD, None)
    accept_pending(project, [], "why")
    assert values(project) == (NEW, None)


def test_how_far_values_of_any_type_and_shape_moved(project: Project) -> None:
    def held(first: int) -> _core.GoldenVariable:
        numbers = np.array([[first, 0x3F80], [0x3F80, 0x3F80]], "<u2")  # ones
        tree = _core.build_tree(_core.TreeParameters("<bf2", atol=0.5), numbers)
        return _core.GoldenVariable("x", numbers.shape, tree, data=numbers.tobytes())

    store = project.goldens.at(PLACE)
    old, new = held(0x3F80), held(0x4040)
    with store.locked():
        store.write(
            "test_a",
            [old],
            lambda root, count: Manifest(
                "test_a", BinaryFile("test_a.golden", root, count), (VariableRow.of(old),), {}
            ),
        )
    base = pending_origin(store.read("test_a").root, None)
    project.pending.write(PLACE, [new], base, {}, RESULT, {})
    (found,) = project.pending.all()
    (change,) = look_at(project, found).change.changes
    assert change.moved is not None
    assert (change.moved.dtype, change.moved.shape) == ("<bf2", (2, 2))
    assert (change.moved.max_abs_difference, change.moved.differing_count) == (2.0, 1)
