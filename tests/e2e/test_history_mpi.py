"""One comparison by several processes: the same report, and a report when one of them dies."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import call, command
from e2e.cli_project import ROOT, environment

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest.importorskip("mpi4py")
MPIEXEC = Path(sys.executable).parent / "mpiexec"
pytestmark = pytest.mark.skipif(
    not MPIEXEC.exists(), reason="no mpiexec beside this Python (pip install mpich)"
)

# Dies at its second checkpoint, as rank 1; the others take their time.
DYING = """
import os, signal, sys, time
from mpi4py import MPI
from ciwrap.compare import comparer
rank = MPI.COMM_WORLD.Get_rank()
plain, seen = comparer.Comparer.compare, []
def compare(self, keys):
    seen.append(1)
    time.sleep(0.05)
    if rank == 1 and len(seen) == 2:
        {act}
    return plain(self, keys)
comparer.Comparer.compare = compare
from ciwrap.cli.main import run
sys.exit(run(sys.argv[4:]))
"""

# The source tree is appended, so that an installed ciwrap comes before it.
SCALING = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module("benchmarks.mpi_scaling", run_name="__main__", alter_sys=True)
"""


def write_runs(folder: Path) -> tuple[Path, Path]:
    runs = folder / "A", folder / "B"
    for run in runs:
        for iteration in range(10):
            for rank in range(2):
                place = run / f"iter_{iteration}" / f"rank_{rank}"
                place.mkdir(parents=True)
                array = np.random.default_rng([iteration, rank]).normal(size=1000 * (1 + rank))
                if run.name == "B" and iteration >= 7:
                    array[iteration] += 1
                np.save(place / "x.npy", array)
    return runs


def comparable(document: Any) -> Any:
    """What must not depend on who compared what."""
    check = document["checks"][0]
    for key in ("seconds", "bytes_read"):
        check.pop(key, None)
    check["history"].pop("by_mpi_rank", None)
    return check


def compared(folder: Path, *more: str, start: Sequence[str] = ()) -> tuple[int, Any, str]:
    target = folder / "result.json"
    target.unlink(missing_ok=True)
    words = ("compare", "A", "B", "--threads=1", "--json", str(target), *more)
    if start or more:
        done = subprocess.run(
            [*start, *command(*words)],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    else:
        done = call(*words, folder=folder, environment=environment())
    document = json.loads(target.read_text()) if target.exists() else None
    return done.returncode, document, done.stdout + done.stderr


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    write_runs(tmp_path)
    code, alone, _ = compared(tmp_path)
    assert code == 1
    for more, start in (
        (["--mpi"], [str(MPIEXEC), "-n", "2"]),
        ([f"--mpi-launch={MPIEXEC} -n 2"], []),
    ):
        code, together, text = compared(tmp_path, *more, start=start)
        assert code == 1, text
        shares = together["checks"][0]["history"].get("by_mpi_rank", [])
        assert comparable(together) == comparable(json.loads(json.dumps(alone)))
        if start:
            assert sum(shares) == 20
            assert min(shares) > 0, "nothing was dealt to one of them"


@pytest.mark.parametrize(
    "act", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(7)", "raise RuntimeError('broken')"]
)
def test_a_process_that_fails_costs_no_more_than_its_part(tmp_path: Path, act: str) -> None:
    write_runs(tmp_path)
    program = tmp_path / "dying.py"
    program.write_text(DYING.replace("{act}", act))
    launcher = shlex.join([str(MPIEXEC), "-n", "2", sys.executable, str(program)])
    code, document, text = compared(tmp_path, f"--mpi-launch={launcher}", "--mpi-silence=3")
    assert code == 3, text
    check = document["checks"][0]
    lost = check["history"]["not_compared_checkpoints"]
    assert 1 <= lost < 20
    assert len(check["variables"]) == 20 - lost
    (told,) = [one["text"] for one in check["messages"] if "not compared: " in one["text"]]
    assert lost == 1 or told.startswith(f"{lost} checkpoints, from iter ")
    assert not list(tmp_path.glob(".ciwrap-mpi-*"))


def test_a_launcher_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_cli(["compare", "A", "B", "--mpi-launch", "no-such-mpiexec -n 2"]) == 3
    assert "no-such-mpiexec cannot be started" in capsys.readouterr().err
    assert run_cli(["compare", "A", "B", "--mpi-launch", ""]) == 2


@pytest.mark.slow
def test_the_benchmark_of_scaling_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c", SCALING, str(ROOT), "--folder", str(tmp_path)),
            *("--gib", "0.002", "--repeats", "1", "--processes", "2", "--json", "found.json"),
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [(row["way"], row["cache"]) for row in rows] == [
        (way, cache) for way in ("without MPI", "2 MPI processes") for cache in ("cold", "warm")
    ]
    assert sum(rows[-1]["checkpoints_by_process"]) == 20
    assert all(0 < row["comparison_seconds"] < row["command_seconds"] for row in rows)
    assert list(tmp_path.iterdir()) == [tmp_path / "found.json"]
