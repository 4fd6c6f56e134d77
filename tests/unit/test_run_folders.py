"""Runs of an ensemble that lie there already: nobody's are lost, and none is taken for another."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.base.errors import WriteFailedError
from ciwrap.project.config import load_text
from ciwrap.project.outputs import each_run
from ciwrap.studies.repeat.run import RunFolders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.project.settings import Check

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


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is but one file system")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_outputs_on_another_file_system_outlive_a_full_disk(
    tmp_path: Path, elsewhere: Path
) -> None:
    text = "checks: {far: {outputs: far/x.npy}}"
    (check,) = load_text(text, tmp_path / "ciwrap.yaml").checks
    (tmp_path / "far").symlink_to(elsewhere)
    np.save(tmp_path / "far/x.npy", np.arange(1000.0))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with RunFolders(tmp_path) as folders:
                resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
                folders.set_aside([check])
        except WriteFailedError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(np.load(tmp_path / "far/x.npy"), np.arange(1000.0))
    # With room enough they go and come back.
    with RunFolders(tmp_path) as folders:
        folders.set_aside([check])
        assert [*elsewhere.iterdir()] == []
    assert np.array_equal(np.load(tmp_path / "far/x.npy"), np.arange(1000.0))
    assert [path.name for path in elsewhere.iterdir()] == ["x.npy"]


def test_a_second_interrupt_waits_until_all_is_back(
    tmp_path: Path, checks: tuple[Check, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1.0, 0, 1)
    put_back = RunFolders._put_back

    def interrupted(folders: RunFolders) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        put_back(folders)

    with pytest.raises(KeyboardInterrupt), RunFolders(tmp_path, by_ensemble=True) as folders:  # noqa: PT012
        folders.set_aside(checks)
        monkeypatch.setattr(RunFolders, "_put_back", interrupted)
        raise KeyboardInterrupt
    assert held(tmp_path) == MINE
