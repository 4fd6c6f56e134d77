"""What accepting a check's outputs would change: masks, periods, missing values, order, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from golden_pairs import value_of, variable, write
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.base.errors import ArtifactError, CorruptFileError, PeriodError, UsageError
from ciwrap.base.files import PENDING_DIR
from ciwrap.formats.catalog import Catalog
from ciwrap.golden.places import Place, writer_lock
from ciwrap.golden.store import GoldenStores
from ciwrap.model import ErrorBound, RunResult, VariableId, Verdict
from ciwrap.project.config import load_text
from ciwrap.project.outputs import arrangement_of, outputs_of
from ciwrap.report.document import document_text, to_document
from ciwrap.review.accept import accept_outputs, accept_pending
from ciwrap.review.change import GoldenChange, Status, capture_change, change_of_catalog
from ciwrap.review.pending import pending_origin
from ciwrap.review.project import Project

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.linspace(0.0, 1.0, 100)
LAND = np.arange(100) < 10


class Outputs:
    """A project with one check, `c`, of a folder of arrays."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "out").mkdir()
        self.goldens = GoldenStores(root / "golden")
        self.put("x", VALUES)

    def put(self, name: str, values: np.ndarray) -> None:
        np.save(self.root / "out" / f"{name}.npy", values)

    def project(self, settings: str) -> Project:
        text = f"checks:\n  c:\n    outputs: out/{{name}}.npy\n    {settings}\n"
        config = load_text(text, self.root / "ciwrap.yaml")
        return Project(
            root=self.root,
            golden_dir=self.root / "golden",
            goldens=self.goldens,
            pending_dir=self.root / PENDING_DIR,
            config=config,
            checks=tuple(config.checks),
        )

    def change(self, settings: str, **more: Any) -> GoldenChange:
        project = self.project(settings)
        return capture_change(project.checks[0], project.store, **more)

    def accept(self, settings: str, reason: str | None = "why", **more: Any) -> GoldenChange:
        (change,) = accept_outputs(self.project(settings), reason, **more)
        return change


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return Outputs(tmp_path)


def moved_by(change: GoldenChange) -> float | None:
    (one,) = [one for one in change.changes if one.identity.name == "x"]
    assert one.moved is not None
    return one.moved.max_abs_difference


BOUND = "atol: 1e-3"


def test_what_matches_is_kept_unless_it_is_forced(outputs: Outputs) -> None:
    first = outputs.accept(BOUND, None)
    assert first.status is Status.CREATED
    same = outputs.change(BOUND)
    assert (same.status, same.changes) == (Status.SAME, ())
    assert outputs.change(BOUND, force=True).status is Status.SAME
    outputs.put("x", VALUES + 1e-4)
    assert outputs.change(BOUND).status is Status.KEPT
    project = outputs.project(BOUND)
    (check,) = project.checks
    with Catalog(outputs_of(check), arrangement_of(check)) as catalog:
        assert change_of_catalog(check, project.store, catalog).status is Status.KEPT
    assert outputs.accept(BOUND, None).status is Status.KEPT
    assert outputs.goldens.at(Place("", "")).read("c").root == first.root
    assert outputs.change(BOUND, force=True).status is Status.REPLACED
    assert outputs.accept(BOUND, force=True).status is Status.REPLACED
    assert outputs.goldens.at(Place("", "")).read("c").root != first.root


def test_a_dry_run_takes_no_lock_and_asks_for_no_reason(outputs: Outputs) -> None:
    assert outputs.accept(BOUND, None, dry_run=True).status is Status.CREATED
    assert not (outputs.root / "golden").exists()
    outputs.accept(BOUND, None)
    outputs.put("x", VALUES + 1)
    with writer_lock(outputs.root / "golden"):
        assert outputs.accept(BOUND, None, dry_run=True).status is Status.REPLACED
    assert outputs.accept(BOUND, None, dry_run=True).status is Status.REPLACED
    with pytest.raises(UsageError, match="needs a reason"):
        outputs.accept(BOUND, None)
    (entry,) = outputs.goldens.at(Place("", "")).read("c").manifest.accepted
    outputs.accept(BOUND, "as measured")
    log = outputs.goldens.at(Place("", "")).read("c").manifest.accepted
    assert [one.why for one in log] == [entry.why, "as measured"]


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_what_a_mask_takes_out_does_not_count(outputs: Outputs, evidence: str) -> None:
    settings = f"atol: 1e-3\n    evidence: {evidence}\n    variables: {{x: {{mask: land}}}}"
    outputs.put("land", LAND)
    outputs.put("x", np.where(LAND, np.nan, VALUES))
    outputs.accept(settings)
    outputs.put("x", np.where(LAND, 7.0, VALUES))
    assert outputs.change(settings).status is Status.SAME
    outputs.put("x", np.where(LAND, 7.0, VALUES + (np.arange(100) == 50)))
    change = outputs.change(settings)
    assert change.status is Status.REPLACED
    if evidence == "data":
        assert moved_by(change) == 1.0


def test_a_period_is_asked_for_with_the_bound_of_the_golden(outputs: Outputs) -> None:
    def settings(atol: float) -> str:
        return f"atol: {atol}\n    evidence: data\n    period: 1.0"

    outputs.put("x", np.array([0.01, 0.5]))
    outputs.accept(settings(0.05))
    outputs.put("x", np.array([0.99, 0.5]))  # by 0.02 on the circle
    assert outputs.change(settings(0.05)).status is Status.KEPT
    wider = outputs.change(settings(0.1))
    assert wider.status is Status.REPLACED
    (one,) = wider.changes
    assert moved_by(wider) == pytest.approx(0.02)
    assert one.moved is not None
    assert (one.moved.verdict, one.moved.bound) == (Verdict.MATCH, ErrorBound(0.05))
    assert one.used_share == pytest.approx(0.4)


def test_only_data_can_be_compared_modulo_a_period(outputs: Outputs) -> None:
    settings = "atol: 1e-3\n    period: 7.0\n    "
    with pytest.raises(PeriodError, match="modulo a period") as caught:
        outputs.change(f"{settings}evidence: tree")
    assert caught.value.variable == "x"
    assert "do not fit" not in str(caught.value)  # nobody has tried
    with pytest.raises(PeriodError, match=r"do not fit 'data_budget_bytes' \(1\)"):
        outputs.change(f"{settings}data_budget_bytes: 1")
    assert outputs.change("atol: 1e-3\n    period: 7.0").status is Status.CREATED
    # A golden that was made without the period tells what it can.
    outputs.accept("atol: 1e-3\n    evidence: tree")
    change = outputs.change("atol: 1e-3\n    period: 7.0\n    evidence: data")
    assert change.status is Status.REPLACED
    assert change.changes[0].moved is not None
    assert change.changes[0].moved.verdict is Verdict.MATCH


def test_missing_values_are_as_the_type_holds_them(outputs: Outputs) -> None:
    settings = "atol: 1e-3\n    fill_values: 1e20"
    outputs.put("x", np.array([1e20, 1.0], np.float32))
    outputs.accept(settings)
    (held,) = outputs.goldens.at(Place("", "")).read("c").variables
    assert held.tree.parameters.fill_values == (float(np.float32(1e20)),)
    outputs.put("x", np.array([1e20, 1.0001], np.float32))
    change = outputs.change(settings)
    assert change.status is Status.KEPT
    # Modulo a period, too.
    outputs.accept(f"{settings}\n    period: 7.0\n    evidence: data")
    outputs.put("x", np.array([1e20, 1.0002], np.float32))
    change = outputs.change(f"{settings}\n    period: 7.0\n    evidence: data")
    assert change.status is Status.KEPT


def test_rows_are_put_in_order_first(outputs: Outputs) -> None:
    settings = "atol: 1e-3\n    align_by: id"
    order = np.random.default_rng(1).permutation(100)
    outputs.put("id", np.arange(100))
    outputs.accept(settings)
    outputs.put("id", np.arange(100)[order])
    outputs.put("x", VALUES[order])
    assert outputs.change(settings).status is Status.SAME
    assert outputs.change(BOUND).status is Status.REPLACED


def test_one_file_that_cannot_be_read_is_enough(outputs: Outputs) -> None:
    outputs.put("y", VALUES)
    (outputs.root / "out" / "x.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(CorruptFileError, match=r"x\.npy"):
        outputs.change(BOUND)


def test_labels_and_the_commit_are_kept(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ciwrap.review.change.git_commit", lambda _: "c0ffee")
    with h5py.File(outputs.root / "out" / "x.h5", "w") as file:
        file["v"] = VALUES
        file["v"].attrs["units"] = "m"
    project = outputs.project(BOUND)
    check = replace(project.checks[0], outputs=("out/x.h5",))
    accept_outputs(replace(project, checks=(check,)), None)
    manifest = outputs.goldens.at(Place("", "")).read("c").manifest
    assert manifest.labels is not None
    assert dict(manifest.labels[VariableId("v")])["units"] == "m"
    assert manifest.accepted[-1].commit == "c0ffee"


# --- pending goldens of a run


@pytest.fixture
def pending(outputs: Outputs) -> Project:
    project = outputs.project(BOUND)
    place = Place("tests/test_it", "test_a")
    store = project.goldens.at(place)
    write(store, "test_a", 1.0)
    result = document_text(to_document(RunResult(Verdict.NOT_COMPARABLE)))
    origin = pending_origin(store.read("test_a").root, "c0ffee")
    labels = {VariableId("x"): (("units", "m"),)}
    project.pending.write(place, [variable(2.0)], origin, {"cpu": "y"}, result, labels)
    return project


def test_accepting_what_waits(pending: Project) -> None:
    accept_pending(pending, [], "as measured")
    stored = pending.goldens.at(Place("tests/test_it", "test_a")).read("test_a")
    assert value_of(stored) == 2.0
    entry = stored.manifest.accepted[-1]
    assert (entry.why, entry.commit) == ("as measured", "c0ffee")
    assert stored.manifest.labels == {VariableId("x"): (("units", "m"),)}
    assert stored.manifest.environment == {"cpu": "y"}


def test_accepting_what_waits_for_one_kind_of_machine(pending: Project) -> None:
    accept_pending(pending, [], "why", variant="arm64")
    place = Place("tests/test_it", "test_a")
    assert value_of(pending.goldens.at(place).read("test_a")) == 1.0
    assert value_of(pending.goldens.at(place.for_variant("arm64")).read("test_a")) == 2.0


def test_a_wider_bound_is_accepted_if_that_is_allowed(pending: Project) -> None:
    place = Place("tests/test_it", "test_a")
    (found,) = pending.pending.all()
    array = np.full(10, 2.0)
    tree = _core.build_tree(_core.TreeParameters("<f8", atol=1e-2), array)
    wide = _core.GoldenVariable("x", array.shape, tree, data=array.tobytes())
    result = document_text(to_document(RunResult(Verdict.NOT_COMPARABLE)))
    pending.pending.write(place, [wide], found.origin, {}, result, {})
    with pytest.raises(ArtifactError, match=r"it widens a bound: atol=0\.001"):
        accept_pending(pending, [], "why", allowed=())
    assert value_of(pending.goldens.at(place).read("test_a")) == 1.0
    (change,) = accept_pending(pending, [], "why")
    assert change.changes[0].is_bound_wider
    assert value_of(pending.goldens.at(place).read("test_a")) == 2.0
