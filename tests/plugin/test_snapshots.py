"""Goldens that tests write have the snapshot of the process that wrote them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from plugin.review_suite import manifest, write
from snapshots import snapshot

from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from plugin.conftest import Suite


def test_a_golden_of_a_test_has_a_snapshot(suite: Suite) -> None:
    pytest.importorskip("threadpoolctl")
    suite.write("import numpy as np\ndef test_a(ciwrap): ciwrap.check(np.ones(3))\n")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    environment = suite.golden("test_a").manifest.environment
    found = SnapshotStore.of_goldens(suite.root / "golden").load(environment["snapshot"])
    assert found.seen == "process"
    assert any(one.api == "blas" and one.architecture for one in found.blas)
    assert "openblas" in environment["blas"]
    suite.run().assert_outcomes(passed=1)


def test_a_pending_golden_brings_its_snapshot(changed: Suite) -> None:
    """As from another machine: out of a folder, into a project that has never run."""
    shutil.copytree(changed.root / ".ciwrap/pending", changed.root / "from-ci")
    shutil.rmtree(changed.root / ".ciwrap")
    shutil.rmtree(changed.root / "golden/.snapshots")
    assert changed.cli("accept", "--from", "from-ci", "-m", "CI's").returncode == 0
    kept = SnapshotStore.of_goldens(changed.root / "golden")
    assert kept.load(manifest(changed, "test_b")["environment"]["snapshot"]).seen == "process"


def test_nothing_else_comes_with_it(changed: Suite) -> None:
    folder = changed.root / ".ciwrap/pending"
    (path,) = (folder / ".snapshots").iterdir()
    for name in (".snapshots/x.json", f"other/{path.name}", f".snapshots/{path.name}.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
        done = changed.cli("accept", "--from", str(folder), "-m", "CI's")
        assert done.returncode == 3
        assert "is not a file of a pending golden" in done.stderr
        (folder / name).unlink()
    # What is called like a snapshot and is none is not taken over.
    path.write_bytes(b"{}")
    shutil.rmtree(changed.root / "golden/.snapshots")
    assert changed.cli("accept", "--from", str(folder), "-m", "CI's").returncode == 0
    assert not (changed.root / "golden/.snapshots").exists()


def test_snapshots_of_what_waits_no_longer_go(changed: Suite) -> None:
    folder = changed.root / ".ciwrap/pending/.snapshots"
    assert len(list(folder.iterdir())) == 1
    assert changed.cli("reject", "--all", "-m", "no").returncode == 0
    assert not folder.exists()


def test_snapshots_that_no_golden_names_are_pruned(suite: Suite) -> None:
    write(suite, 1.0)
    suite.run("--ciwrap-update=new")
    store = SnapshotStore.of_goldens(suite.root / "golden")
    (used,) = store.others(())
    left = store.path_of(store.save(snapshot()))
    assert left is not None
    said = str(left.relative_to(suite.root))
    assert suite.cli("prune", "--dry-run").stdout.splitlines()[0] == f"unused  {said}"
    assert suite.cli("prune").returncode == 2, "there is nobody to ask"
    # Nobody knows what a golden needs that cannot be read.
    first = next((suite.root / "golden").rglob("*.goldens"))
    text = first.read_text()
    first.write_text("{")
    pruned = suite.cli("prune", "--yes")
    assert pruned.returncode == 0
    assert "left as" in pruned.stdout
    assert left.exists()
    first.write_text(text)
    # An ensemble is a golden, too.
    ensemble = suite.root / "golden/x.ensemble.json"
    ensemble.write_text(json.dumps({"environment": {"snapshot": left.name[:32]}}))
    assert suite.cli("prune", "--yes").returncode == 0
    assert left.exists()
    ensemble.unlink()
    assert f"deleted  {said}" in suite.cli("prune", "--yes").stdout
    assert store.others(()) == [used]
