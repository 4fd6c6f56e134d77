"""Reading and replacing pairs, the lock, and capturing by evidence policy."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.base.errors import (
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    LockBusyError,
    NotComparableError,
    UnreadableFileError,
    UsageError,
)
from ciwrap.golden import places as lock
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, VariableRow, capture
from ciwrap.golden.places import LOCK_NAME, orphans, writer_lock
from ciwrap.golden.show import golden_lines, shown_variables
from ciwrap.golden.store import GoldenStore, read_golden_file
from ciwrap.golden.trees import describe_bound
from ciwrap.model import ErrorBound, EvidencePolicy, VariableId, VariableSettings
from ciwrap.snapshot.difference import describe_environment

if TYPE_CHECKING:
    from types import FrameType

SMALL = np.linspace(0, 1, 100)
DATA = EvidencePolicy.DATA


def variable_of(array: Any, name: str = "x", **settings: Any) -> _core.GoldenVariable:
    bound = settings.pop("bound", ErrorBound(1e-6))
    chosen = VariableSettings(bound=bound, **settings)
    return capture(ArrayValues(np.asarray(array)), chosen, VariableId(name)).variable


def put(
    store: GoldenStore, check: str, *variables: _core.GoldenVariable, wait_seconds: float = 10.0
) -> str:
    def manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check,
            BinaryFile(store.path(check).name, root, byte_count),
            tuple(VariableRow.of(variable) for variable in variables),
            {"cpu": "some"},
            (Acceptance("now", "me", "why", root),),
        )

    with store.locked(wait_seconds):
        return store.write(check, variables, manifest).root


def write_one(store: GoldenStore, check: str) -> None:
    """Writes a golden under the caller's lock."""

    def manifest(root: str, byte_count: int) -> Manifest:
        binary = BinaryFile(store.path(check).name, root, byte_count)
        return Manifest(check, binary, (VariableRow.of(variable_of(SMALL)),), {})

    store.write(check, [variable_of(SMALL)], manifest)


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


def test_what_is_written_is_read(store: GoldenStore) -> None:
    root = put(store, "a/b ä", variable_of(SMALL))
    golden = store.read("a/b ä")
    assert (golden.root, golden.check, golden.was_interrupted) == (root, "a/b ä", False)
    assert golden.byte_count == golden.path.stat().st_size
    assert golden.variables[0].data == SMALL.tobytes()
    assert store.checks() == ["a/b ä"]
    assert orphans(store.folder, ["other"]) == {"a/b ä": golden.path}
    assert orphans(store.folder, ["a/b ä"]) == {}


def test_a_shortened_name_is_known_by_its_manifest(store: GoldenStore) -> None:
    name = f"mesh {'é' * 60}"
    put(store, name, variable_of(SMALL))
    assert store.checks() == [name]
    assert orphans(store.folder, ["mesh"]) == {name: store.path(name)}
    assert store.path(name).exists()
    store.manifest_path(name).write_text("no manifest")
    [stem] = orphans(store.folder, [])
    assert orphans(store.folder, [])[stem].exists()
    assert len(stem) == 180
    store.manifest_path(name).unlink()
    assert orphans(store.folder, []) == {}


def test_missing_is_missing(store: GoldenStore) -> None:
    # What a message says can be typed: nothing of a name is an order to a shell.
    with pytest.raises(GoldenMissingError, match=r"`ciwrap accept 'a \$\(touch x\); b'`"):
        store.read("a $(touch x); b")
    with pytest.raises(GoldenMissingError, match="ciwrap accept nothing"):
        store.read("nothing")
    assert not store.folder.exists()
    with pytest.raises(FileNotFoundError):
        read_golden_file(store.folder / "x.golden")


VECTORS = Path(__file__).parents[1] / "conformance" / "golden"
INDEX = json.loads((VECTORS / "vectors.json").read_text(encoding="utf-8"))["vectors"]


def test_hostile_goldens_are_one_clear_error(tmp_path: Path) -> None:
    """Every unsound vector of the format, put in the place of a golden."""
    seen = 0
    for vector in INDEX:
        if "error" not in vector or "max_decoded_bytes" in vector:
            continue
        path = tmp_path / "x.golden"
        path.write_bytes((VECTORS / vector["file"]).read_bytes())
        with pytest.raises(NotComparableError) as caught:
            read_golden_file(path)
        text = str(caught.value)
        assert text.startswith(str(path)), text
        assert "\n" not in text
        assert text.count(str(path)) == 1
        seen += 1
    assert seen > 50


def test_a_golden_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.golden"
    path.write_bytes(_core.encode_golden([variable_of(np.zeros(10**6), evidence=DATA)]))
    read_golden_file(path)
    monkeypatch.setattr("ciwrap.golden.store.largest_decoded", lambda: 10**6)
    with pytest.raises(FileLimitError, match="unpack to more than the 1000000 bytes"):
        read_golden_file(path)
    monkeypatch.setattr("ciwrap.golden.store.largest_decoded", lambda: 100)
    with pytest.raises(FileLimitError):
        read_golden_file(path)


def test_every_sound_golden_can_be_shown(tmp_path: Path) -> None:
    seen = 0
    for vector in INDEX:
        if "error" in vector:
            continue
        variables, root = read_golden_file(VECTORS / vector["file"])
        for full in (False, True):
            lines = list(golden_lines(variables, root, full=full))
            assert all(line.isprintable() for line in lines)
            assert sum(line.startswith("variable ") for line in lines) == len(variables)
        assert root == vector["root"]
        assert len(shown_variables(variables)) == len(variables)
        seen += 1
    assert seen >= 10


def test_reading_needs_a_regular_file(store: GoldenStore) -> None:
    put(store, "a", variable_of(SMALL))
    store.path("a").unlink()
    store.path("a").symlink_to("/dev/zero")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        store.read("a")


def test_a_torn_pair_is_looked_at_again(store: GoldenStore, monkeypatch: Any) -> None:
    """A reader between the two renames of a writer sees a manifest and a binary of two ages."""
    put(store, "a", variable_of(SMALL))
    old = store.manifest_path("a").read_bytes()
    put(store, "a", variable_of(SMALL + 1))
    new = store.manifest_path("a").read_bytes()
    store.manifest_path("a").write_bytes(old)
    naps = []

    def finish_writing(seconds: float) -> None:
        naps.append(seconds)
        store.manifest_path("a").write_bytes(new)

    monkeypatch.setattr("ciwrap.golden.store.time.sleep", finish_writing)
    original = GoldenStore.manifest_bytes
    texts: list[str] = []

    def changing_text(self: GoldenStore, check: str) -> bytes:
        texts.append("x")
        if len(texts) == 2:
            store.manifest_path("a").write_bytes(new)
        return original(self, check)

    monkeypatch.setattr(GoldenStore, "manifest_bytes", changing_text)
    assert store.read("a").variables[0].data == (SMALL + 1).tobytes()
    assert len(naps) == 1


def test_a_torn_pair_that_stays_torn_is_an_error(store: GoldenStore) -> None:
    put(store, "a", variable_of(SMALL))
    old = store.manifest_path("a").read_bytes()
    put(store, "a", variable_of(SMALL + 1))
    store.manifest_path("a").write_bytes(old)
    with pytest.raises(CorruptGoldenError, match="same commit"):
        store.read("a")


def test_a_failing_manifest_leaves_the_old_pair(store: GoldenStore) -> None:
    root = put(store, "a", variable_of(SMALL))

    def broken(root: str, byte_count: int) -> Manifest:
        raise RuntimeError("no manifest today")

    with store.locked(), pytest.raises(RuntimeError):
        store.write("a", [variable_of(SMALL + 1)], broken)
    assert store.read("a").root == root
    assert sorted(path.name for path in store.folder.iterdir()) == ["a.golden", "a.golden.yaml"]


@pytest.mark.parametrize("why", ["surrogate", "size", "root"])
def test_a_manifest_that_would_not_read_back_is_not_written(
    store: GoldenStore, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    root = put(store, "a", variable_of(SMALL))
    before = {path.name: path.read_bytes() for path in store.folder.iterdir()}

    def manifest(root: str, byte_count: int) -> Manifest:
        rows = (VariableRow.of(variable_of(SMALL + 1)),)
        stated = "no root" if why == "root" else root
        environment = {"cpu": {"surrogate": "\udcff", "size": "x" * 1000}.get(why, "some")}
        return Manifest("a", BinaryFile("a.golden", stated, byte_count), rows, environment)

    if why == "size":
        monkeypatch.setattr("ciwrap.golden.manifest.MOST_MANIFEST_BYTES", 1000)
    with store.locked(), pytest.raises(UsageError, match="no manifest that can be read back"):
        store.write("a", [variable_of(SMALL + 1)], manifest)
    assert {path.name: path.read_bytes() for path in store.folder.iterdir()} == before
    assert store.read("a").root == root


def test_a_manifest_that_is_too_large_is_not_read(
    store: GoldenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a", variable_of(SMALL))
    monkeypatch.setattr("ciwrap.golden.store.MOST_MANIFEST_BYTES", 300)
    with pytest.raises(FileLimitError, match="bytes, more than the 300 that are allowed"):
        store.read("a")
    assert store.history("a") == ()


def test_labels_are_kept_and_held_against_nothing(store: GoldenStore) -> None:
    """The binary does not hold them, so it cannot say that they are wrong."""
    variable = variable_of(SMALL)
    labels = {"units": "m s-1", "dims": "x y"}

    def manifest(root: str, byte_count: int) -> Manifest:
        rows = (VariableRow.of(variable, labels),)
        return Manifest("a", BinaryFile("a.golden", root, byte_count), rows, {})

    with store.locked():
        store.write("a", [variable], manifest)
    (row,) = store.read("a").manifest.variables
    assert row.labels == labels
    assert row == VariableRow.of(variable, labels)
    assert row != VariableRow.of(variable)


def test_the_lock_keeps_others_out_and_leaves_nothing(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        assert (tmp_path / LOCK_NAME).exists()
        with pytest.raises(LockBusyError, match="process"), writer_lock(tmp_path, 0.1):
            pass
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK_NAME).touch()  # left by a process that was killed
    with writer_lock(tmp_path, 0.1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            with writer_lock(tmp_path, 60):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert max(most) == 1


def _interrupted_at(line_number: int, folder: Path) -> bool:
    """Takes the lock with Ctrl-C before the n-th line of doing so; False if there are fewer."""
    lines = 0
    taken = False

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if taken or frame.f_code.co_filename != lock.__file__:
            return None
        if event == "line" and not taken:
            lines += 1
            if lines == line_number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with writer_lock(folder, 0.1):
            taken = True
            return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)


def test_ctrl_c_while_the_lock_is_taken_leaves_nothing(tmp_path: Path) -> None:
    line_number = 1
    while _interrupted_at(line_number, tmp_path):
        assert list(tmp_path.iterdir()) == [], f"interrupted at line {line_number}"
        line_number += 1
    assert line_number > 10
    assert list(tmp_path.iterdir()) == []


# --- capture
# -----------------------------------------------------------------------------------------


def random(count: int, dtype: str = "f8") -> np.ndarray:
    return np.random.default_rng(1).normal(size=count).astype(dtype)


@pytest.mark.parametrize(
    ("array", "settings", "evidence"),
    [
        (random(1000), {}, "data"),
        (random(60_000), {}, "residues"),
        (np.zeros(60_000), {}, "data"),  # compresses to next to nothing
        (random(60_000), {"residues_budget_bytes": 1000}, "tree"),
        (random(1000), {"data_budget_bytes": 0}, "residues"),
        (random(1000), {"data_budget_bytes": 0, "residues_budget_bytes": 0}, "tree"),
        (random(1000), {"data_budget_bytes": 0, "bound": ErrorBound()}, "tree"),
        (random(1000), {"evidence": EvidencePolicy.TREE}, "tree"),
        (random(1000), {"evidence": EvidencePolicy.RESIDUES}, "residues"),
        (random(60_000), {"evidence": EvidencePolicy.DATA}, "data"),
        (np.arange(1000), {"evidence": EvidencePolicy.RESIDUES, "bound": ErrorBound()}, "tree"),
    ],
)
def test_evidence_policy(array: np.ndarray, settings: dict[str, Any], evidence: str) -> None:
    variable = variable_of(array, **settings)
    assert variable.evidence == evidence
    assert (variable.data is not None) == (evidence == "data")


@pytest.mark.parametrize(
    "array", [random(1000), random(60_000), random(90_000, "f4"), np.zeros(10**6, "f4")]
)
def test_auto_keeps_within_its_budgets(array: np.ndarray) -> None:
    settings = VariableSettings(bound=ErrorBound(1e-6))
    found = capture(ArrayValues(array), settings, VariableId("x"))
    budgets = {
        "data": settings.data_budget_bytes,
        "residues": settings.residues_budget_bytes,
        "tree": array.nbytes // 50,
    }
    assert found.stored_bytes <= budgets[found.variable.evidence]


def test_the_residue_levels_asked_for_are_kept() -> None:
    variable = variable_of(random(1000), evidence=EvidencePolicy.RESIDUES, residue_levels=5)
    assert variable.tree.parameters.residue_levels == 5
    assert VariableRow.of(variable).evidence == "residues k=5"


def test_settings_that_a_dtype_cannot_have_name_the_variable() -> None:
    with pytest.raises(UsageError, match="x"):
        variable_of(np.zeros(3, "u1"), fill_values=(-1,))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "exact"),
        ({"atol": 1e-6}, "atol=1e-6 rtol=0"),
        ({"ulps": 4}, "ulps=4"),
        ({"atol": 0.5, "equal_nan": False}, "atol=0.5 rtol=0 equal_nan=false"),
        ({"fill_values": (-999.0, 1e30)}, "exact fill_values=(-999, 1e30)"),
    ],
)
def test_bounds_in_words(settings: dict[str, Any], text: str) -> None:
    assert describe_bound(_core.TreeParameters("<f8", **settings)) == text


@pytest.mark.parametrize(
    ("dtype", "settings", "proof"),
    [
        ("<f8", {}, True),
        ("<f8", {"atol": 1e-6}, False),
        ("<f8", {"atol": 1e-6, "residue_levels": 15}, False),
        ("<f8", {"rtol": 1e-15}, False),  # too small for a scale: falls back to bits
        ("<f8", {"ulps": 3, "residue_levels": 7}, True),
        ("<f8", {"ulps": 3, "residue_levels": 3}, False),
        ("<i4", {}, True),
        ("<i4", {"atol": 2.0}, False),
        ("<i4", {"atol": 2.0, "residue_levels": 5}, True),
        ("|b1", {"atol": 5.0}, True),
        ("|S3", {}, True),
        ("<bf2", {"atol": 1e-3}, False),
        ("<bf2", {}, True),
        ("<c16", {}, True),
    ],
)
def test_what_a_suspect_chunk_proves(dtype: str, settings: dict[str, Any], proof: bool) -> None:
    assert _core.TreeParameters(dtype, **settings).suspect_is_proof is proof


def test_environment_is_plain_facts(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    facts = describe_environment(tmp_path)
    assert {"cpu", "os", "python", "numpy", "ciwrap", "kokkos"} <= set(facts)
    assert facts["OMP_NUM_THREADS"] == "3"
    assert all(isinstance(value, str) for value in facts.values())
    assert "git_commit" not in facts
