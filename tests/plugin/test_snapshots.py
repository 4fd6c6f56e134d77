"""Goldens that tests write have the snapshot of the process that wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
