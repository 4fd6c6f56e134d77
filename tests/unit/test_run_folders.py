"""Runs of an ensemble that lie there already: nobody's are lost, and none is taken for another."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.compare.ensemble_runs import each_run
from ciwrap.config.loading import load_text
from ciwrap.repeat.folders import RunFolders

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.config import Check

CONFIG = "checks: {air: {outputs: out, ensemble: [new_*]}, plain: {outputs: 'p*.npy'}}\n"


@pytest.fixture
def checks(tmp_path: Path) -> tuple[Check, ...]:
    path = tmp_path / "ciwrap.yaml"
    path.write_text(CONFIG)
    return load_text(CONFIG, path).checks


def write(root: Path, value: float, *runs: int) -> None:
    for run in runs:
        (root / f"new_{run}/out").mkdir(parents=True, exist_ok=True)
        np.save(root / f"new_{run}/out/x.npy", np.full(3, value))
    np.save(root / "p.npy", np.full(3, value))


def held(root: Path) -> dict[str, float]:
    return {
        str(path.relative_to(root)): float(np.load(path)[0])
        for path in sorted(root.rglob("*.npy"))
        if ".ciwrap" not in path.parts
    }


MINE = {"new_0/out/x.npy": 1.0, "new_1/out/x.npy": 1.0, "p.npy": 1.0}


def test_runs_that_were_there_come_back(tmp_path: Path, checks: tuple[Check, ...]) -> None:
    write(tmp_path, 1.0, 0, 1)
    with RunFolders(tmp_path, prefix="commit", by_ensemble=True) as folders:
        folders.set_aside(checks)
        assert held(tmp_path) == {}
        write(tmp_path, 2.0, 0, 1, 2)
        folders.take(1, checks)
        # The next commit has fewer runs; those of the one before are not taken for its own.
        assert held(tmp_path) == {}
        assert len([*folders.run_folder(1).rglob("*.npy")]) == 4
        assert [one.root.name for one in each_run(checks[0])] == ["new_0", "new_1"]
        folders.drop(1)
        write(tmp_path, 3.0, 0)
    assert held(tmp_path) == MINE
    assert not (tmp_path / "new_2").exists()


def test_runs_that_were_there_come_back_after_a_kill(
    tmp_path: Path, checks: tuple[Check, ...]
) -> None:
    write(tmp_path, 1.0, 0, 1)
    child = os.fork()
    if child == 0:
        with RunFolders(tmp_path, prefix="commit", by_ensemble=True) as folders:
            folders.set_aside(checks)
            write(tmp_path, 2.0, 0, 1, 2)
            os._exit(0)
    os.waitpid(child, 0)
    with RunFolders(tmp_path, prefix="commit", by_ensemble=True) as folders:
        assert "an earlier call was killed" in folders.notes[0]
        assert MINE.items() <= held(tmp_path).items()
    assert MINE.items() <= held(tmp_path).items()
