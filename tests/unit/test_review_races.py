"""Between looking at a pending golden and accepting it, others are at work, and processes die.

What was shown is what is done, or nothing is: the golden and what waits are looked at again under
their locks.
"""

from __future__ import annotations

import json
import shutil
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dying_process import DyingProcess
from golden_pairs import value_of, variable, write
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.base.errors import CiwrapError, PendingConflictError, WriteFailedError
from ciwrap.base.files import PENDING_DIR
from ciwrap.golden.places import Place, staged, writer_lock
from ciwrap.golden.store import GoldenStores
from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
from ciwrap.report.document import document_text, to_document
from ciwrap.review.accept import PendingChange, accept, look_at
from ciwrap.review.pending import pending_origin, reject
from ciwrap.review.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Act = Callable[[Project], None]

PLACE = Place("", "mesh")
OLD, NEW, OTHER = 1.0, 2.0, 3.0
RESULT = document_text(to_document(RunResult(Verdict.NOT_COMPARABLE)))


def project_at(root: Path) -> Project:
    golden_dir = root / "golden"
    return Project(
        root=root,
        golden_dir=golden_dir,
        goldens=GoldenStores(golden_dir),
        pending_dir=root / PENDING_DIR,
    )


def wait(project: Project, value: float, result: str = RESULT) -> None:
    """Leaves a golden for review, made against the one that is there."""
    base = golden(project)
    root = None if base is None else project.store.read("mesh").root
    origin = pending_origin(root, "c0ffee")
    project.pending.write(PLACE, [variable(value)], origin, {"cpu": "x"}, result, {})


def golden(project: Project) -> float | None:
    """The value of the golden; None without one."""
    return value_of(project.store.read("mesh")) if project.store.contains("mesh") else None


def waiting(project: Project) -> float | None:
    """The value of what waits; None if nothing does."""
    goldens = project.pending.all()
    if not goldens:
        return None
    return value_of(project.pending.store(goldens[0].place).read("mesh"))


def reasons(project: Project) -> list[str]:
    return [entry.why for entry in project.store.read("mesh").manifest.accepted]


def look(project: Project) -> PendingChange:
    (found,) = project.pending.all()
    return look_at(project, found)


@pytest.fixture(params=["changed", "new"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """With a golden that waits, for a check that has one already, or none yet."""
    found = project_at(tmp_path / "p")
    found.root.mkdir()
    if request.param == "changed":
        write(found.store, "mesh", OLD)
    wait(found, NEW)
    return found


def snapshot(project: Project) -> dict[str, bytes]:
    return {
        path.relative_to(project.root).as_posix(): path.read_bytes()
        for path in project.root.rglob("*")
        if path.is_file()
    }


def test_an_accept_that_was_killed_is_finished_by_the_same_one(project: Project) -> None:
    looked = look(project)
    write(project.store, "mesh", NEW)
    path = project.store.path("mesh")
    path.rename(staged(path))  # as if killed between its two renames
    accept(project, looked, "again")
    assert golden(project) == NEW
    assert not staged(path).exists()
    assert waiting(project) is None


# --- what others do


def replace_golden(project: Project) -> None:
    write(project.store, "mesh", OTHER)


def delete_golden(project: Project) -> None:
    project.store.path("mesh").unlink(missing_ok=True)
    project.store.manifest_path("mesh").unlink(missing_ok=True)


def damage_golden(project: Project) -> None:
    project.store.folder.mkdir(exist_ok=True)
    project.store.path("mesh").write_bytes(b"no golden")


def replace_pending(project: Project) -> None:
    wait(project, OTHER)


def remove_pending(project: Project) -> None:
    project.pending.discard(PLACE)


def make_pending_anew(project: Project) -> None:
    """The same numbers, from another commit."""
    (found,) = project.pending.all()
    stored = project.pending.store(PLACE).read("mesh")
    origin = pending_origin(found.origin.base_root, "another")
    project.pending.write(PLACE, stored.variables, origin, {}, RESULT, {})


OTHERS: dict[str, Act] = {
    "the golden is replaced": replace_golden,
    "the golden is damaged": damage_golden,
    "another one waits": replace_pending,
    "nothing waits any more": remove_pending,
    "the same numbers wait anew": make_pending_anew,
}


@pytest.mark.parametrize("act", OTHERS)
def test_what_others_change_meanwhile_stays(project: Project, act: str) -> None:
    looked = look(project)
    OTHERS[act](project)
    before = snapshot(project)
    with pytest.raises(PendingConflictError):
        accept(project, looked, "why")
    assert snapshot(project) == before


def test_a_golden_that_vanished_is_not_made_again(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    write(project.store, "mesh", OLD)
    wait(project, NEW)
    looked = look(project)
    delete_golden(project)
    before = snapshot(project)
    with pytest.raises(PendingConflictError):
        accept(project, looked, "why")
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("act", "locked"),
    [("the golden is replaced", "golden"), ("another one waits", PENDING_DIR)],
)
def test_who_accepts_waits_for_others_and_sees_what_they_did(
    project: Project, tmp_path: Path, act: str, locked: str
) -> None:
    looked = look(project)
    theirs = project_at(tmp_path / "theirs")
    shutil.copytree(project.root, theirs.root)
    OTHERS[act](theirs)
    said: list[str] = []

    def run() -> None:
        with pytest.raises(PendingConflictError) as caught:
            accept(project, looked, "why")
        said.append(str(caught.value))

    (project.root / locked).mkdir(exist_ok=True)
    thread = threading.Thread(target=run)
    with writer_lock(project.root / locked):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        shutil.copytree(theirs.root / locked, project.root / locked, dirs_exist_ok=True)
    thread.join()
    assert len(said) == 1
    assert (golden(project), waiting(project)) == (golden(theirs), waiting(theirs))


def test_what_others_changed_before_is_not_even_shown(project: Project) -> None:
    replace_golden(project)
    with pytest.raises(PendingConflictError, match="has changed since this one was made"):
        look(project)


def test_what_waits_from_before_an_acceptance_is_refused(project: Project) -> None:
    """A run that began before somebody accepted leaves its golden afterwards."""
    (found,) = project.pending.all()
    accept(project, look(project), "why")
    assert waiting(project) is None
    origin = pending_origin(found.origin.base_root, "c0ffee")
    project.pending.write(PLACE, [variable(OTHER)], origin, {}, RESULT, {})
    with pytest.raises(PendingConflictError):
        look(project)
    assert golden(project) == NEW
    assert waiting(project) == OTHER


@pytest.mark.parametrize("act", ["another one waits", "the same numbers wait anew"])
def test_only_what_was_seen_is_rejected(project: Project, act: str) -> None:
    (found,) = project.pending.all()
    OTHERS[act](project)
    before = snapshot(project)
    with pytest.raises(PendingConflictError, match="was replaced or removed meanwhile"):
        reject(project, found, "why")
    assert snapshot(project) == before
    (found,) = project.pending.all()
    reject(project, found, "why")
    assert waiting(project) is None
    (line,) = (project.root / ".ciwrap/rejected.jsonl").read_text().splitlines()
    assert json.loads(line)["root"] == found.root


def test_what_could_not_be_rejected_is_not_noted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = project.pending.all()
    log = project.root / ".ciwrap/rejected.jsonl"
    log.write_text('{"check": "an earlier one"}\n')

    def full(*_: object) -> None:
        raise WriteFailedError("No space left on device", file=log)

    with monkeypatch.context() as patched:
        patched.setattr(type(project.pending), "remove", full)
        with pytest.raises(WriteFailedError):
            reject(project, found, "why")
    assert log.read_text() == '{"check": "an earlier one"}\n'
    assert project.pending.all() == [found]


def test_two_who_accept_the_same_do_it_once(project: Project) -> None:
    """The second has nothing left to do: what it was shown has been done."""
    one, other = look(project), look(project)
    accept(project, one, "one")
    accept(project, other, "other")
    assert golden(project) == NEW
    assert reasons(project)[-1] == "one"
    assert waiting(project) is None


def test_what_waits_anew_outlives_an_acceptance_of_the_same(project: Project) -> None:
    """Somebody has accepted what was shown, and newer numbers wait."""
    one, other = look(project), look(project)
    accept(project, one, "one")
    wait(project, OTHER)
    accept(project, other, "other")
    assert reasons(project)[-1] == "one"
    assert waiting(project) == OTHER


def test_the_log_of_acceptances_is_the_newest(tmp_path: Path) -> None:
    """The golden was replaced, and replaced back: it is the one that was shown, its log is not."""
    project = project_at(tmp_path)
    write(project.store, "mesh", OLD)
    wait(project, NEW)
    looked = look(project)
    write(project.store, "mesh", OTHER)
    shutil.copytree(project.golden_dir, tmp_path / "kept")
    manifest = project.store.read("mesh").manifest
    write(project.store, "mesh", OLD)
    path = project.store.manifest_path("mesh")
    entry = f"- when: now\n  who: me\n  why: in between\n  new_root: {manifest.binary.root!r}\n"
    path.write_text(path.read_text().replace("accepted:\n", f"accepted:\n{entry}"))
    accept(project, looked, "last")
    assert golden(project) == NEW
    assert reasons(project) == ["in between", "because of 1.0", "last"]


# --- death


def copies(project: Project) -> Iterator[Project]:
    number = 0
    while True:
        root = project.root.with_name(f"{project.root.name}-{number}")
        shutil.copytree(project.root, root)
        yield project_at(root)
        shutil.rmtree(root)
        number += 1


def killed_everywhere(project: Project, act: Act) -> Iterator[tuple[Project, DyingProcess]]:
    """A copy of the project for each step of an act, of a process that died there."""
    for number, copy in enumerate(copies(project)):
        with DyingProcess(copy.root, number) as process:
            act(copy)
        if not process.is_dead:
            assert number > 10
            return
        yield copy, process


def accept_again(project: Project) -> None:
    """What a user does who finds that something was killed: `ciwrap accept --pending`."""
    for found in project.pending.all():
        accept(project, look_at(project, found), "again")


def accept_shown(project: Project) -> None:
    accept(project, look(project), "why")


def test_killed_anywhere_and_killed_again_while_recovering(project: Project) -> None:
    old = golden(project)
    for dead, process in killed_everywhere(project, accept_shown):
        found = golden(dead)
        assert found in (old, NEW), process.steps
        for again, second in killed_everywhere_or_done(dead, accept_again):
            now = golden(again)
            assert now in (found, NEW), (process.steps, second.steps)
            accept_again(again)
            assert golden(again) == NEW, (process.steps, second.steps)
            assert waiting(again) is None
            assert len(reasons(again)) == (1 if old is None else 2)


def killed_everywhere_or_done(project: Project, act: Act) -> Iterator[tuple[Project, DyingProcess]]:
    """As `killed_everywhere`, and once not killed at all."""
    for number, copy in enumerate(copies(project)):
        with DyingProcess(copy.root, number) as process:
            act(copy)
        yield copy, process
        if not process.is_dead:
            return


@pytest.mark.parametrize("act", [name for name in OTHERS if name != "the golden is damaged"])
def test_killed_and_then_others_are_at_work(project: Project, act: str) -> None:
    """Whatever they did stays, unless it is what was shown."""
    for dead, process in killed_everywhere(project, accept_shown):
        if not dead.pending.all() and act == "the same numbers wait anew":
            continue
        OTHERS[act](dead)
        before, left = golden(dead), waiting(dead)
        refused = ""
        try:
            accept_again(dead)
        except CiwrapError as error:
            refused = type(error).__name__
        assert refused in ("", "PendingConflictError"), process.steps
        if refused or left is None:
            assert (golden(dead), waiting(dead)) == (before, left), process.steps
        else:
            assert (golden(dead), waiting(dead)) == (left, None), process.steps
        if act == "the golden is replaced":
            assert golden(dead) == OTHER, process.steps


def test_an_artifact_is_accepted_whatever_was_killed(project: Project) -> None:
    """Of somebody else's pending goldens none is removed, however often they are accepted."""
    old = golden(project)

    def from_artifact(copy: Project) -> None:
        accept_shown(replace(copy, is_own=False))

    for dead, process in killed_everywhere_or_done(project, from_artifact):
        assert golden(dead) in (old, NEW), process.steps
        assert waiting(dead) == NEW
        for again, second in killed_everywhere_or_done(dead, from_artifact):
            assert golden(again) in (golden(dead), NEW), (process.steps, second.steps)
            from_artifact(again)
            assert golden(again) == NEW, (process.steps, second.steps)
            assert reasons(again)[-1] == "why"
            assert len(reasons(again)) == (1 if old is None else 2)
            assert waiting(again) == NEW


def test_a_result_never_lies_beside_another_golden(tmp_path: Path) -> None:
    project = project_at(tmp_path / "p")
    first, second = (
        document_text(to_document(RunResult(Verdict.NOT_COMPARABLE, kind=kind)))
        for kind in ("first", "second")
    )
    wait(project, OLD, first)

    def write_second(copy: Project) -> None:
        wait(copy, NEW, second)

    seen = set()
    for dead, process in killed_everywhere_or_done(project, write_second):
        document = dead.pending.read_result(PLACE)
        kind = None if document is None else document["kind"]
        seen.add((waiting(dead), kind))
        assert kind is None or kind == {OLD: "first", NEW: "second"}[waiting(dead) or 0]
        wait(dead, OTHER, first)
        assert waiting(dead) == OTHER
        assert process.steps
    assert seen == {(OLD, "first"), (OLD, None), (NEW, None), (NEW, "second")}


# --- what is shown of goldens that do not hold their data


def residues_of(value: float) -> _core.GoldenVariable:
    parameters = _core.TreeParameters("<f8", atol=1.0, residue_levels=15)
    array = np.full(10, value)
    return _core.GoldenVariable("x", array.shape, _core.build_tree(parameters, array))


def put(project: Project, made: _core.GoldenVariable) -> Any:
    from ciwrap.golden.manifest import BinaryFile, Manifest, VariableRow

    def manifest(root: str, byte_count: int) -> Manifest:
        rows = (VariableRow.of(made),)
        return Manifest("mesh", BinaryFile("mesh.golden", root, byte_count), rows, {})

    with project.store.locked():
        return project.store.write("mesh", [made], manifest)


def test_drift_against_another_golden_is_not_shown(tmp_path: Path) -> None:
    """0.05 and 0.35 round alike at a bound of 1, so their trees have one root."""
    project = project_at(tmp_path)
    one, other = residues_of(0.05), residues_of(0.35)
    assert one.tree.root == other.tree.root
    there = put(project, one)
    elsewhere = put(project_at(tmp_path / "q"), other)
    assert there.root != elsewhere.root
    recorded = VariableResult(
        "x", Verdict.DIFFER, golden_root=one.tree.root.hex(), max_drift_share=0.3
    )
    for base, is_shown in ((there, True), (elsewhere, False)):
        check = CheckResult("mesh", Verdict.DIFFER, (recorded,), golden_root=base.root)
        text = document_text(to_document(RunResult(Verdict.DIFFER, (check,))))
        origin = pending_origin(there.root, None)
        project.pending.write(PLACE, [residues_of(1.3)], origin, {}, text, {})
        (change,) = look(project).change.changes
        assert (change.moved == recorded) is is_shown
        assert (change.moved is None) is not is_shown
