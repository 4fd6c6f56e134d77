"""The examples that record, built and run: a planted defect is found in its step."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from recorded_runs import build, captured, need_library, recording, start

from ciwrap.cli.main import run as run_cli
from ciwrap.errors import ExitCode
from ciwrap.native.library import fortran_folder, include_folder

EXAMPLES = Path(__file__).parents[2] / "examples" / "recording"
INCLUDE = f"-I{include_folder()}"


def record_three(tmp_path: Path, words: list[str | Path], step: int) -> None:
    """Two equal runs, and one with a defect in a step."""
    for name, more in (("one", []), ("two", []), ("wrong", [str(step)])):
        done = start(
            [*words, *more], recording(tmp_path / name, PYTHONPATH=os.pathsep.join(sys.path))
        )
        assert done.returncode == 0, done.stderr
        assert "ciwrap" not in done.stderr
    assert start(words, recording(None)).returncode == 0


def judge(tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str) -> None:
    one, two, wrong = (str(tmp_path / name) for name in ("one", "two", "wrong"))
    assert run_cli(["compare", one, two]) == ExitCode.MATCH
    capsys.readouterr()
    assert run_cli(["compare", one, wrong]) == ExitCode.DIFFER
    assert f"first divergence: {first}" in capsys.readouterr().out


def test_c_with_mpi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_library()
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec here")
    program = build("mpicc", ["-std=c99", "-Wall", INCLUDE, EXAMPLES / "heat.c"], tmp_path / "heat")
    record_three(tmp_path, [launcher, "-n", "2", program], 7)
    assert {one.identity.rank for one in captured(tmp_path / "one").values()} == {0, 1}
    judge(tmp_path, capsys, "iter 7 / rank 1 / temperature")


def test_fortran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_library()
    sources = ["ciwrap_record.f90", "ciwrap_record_fortran.c"]
    program = build(
        "gfortran",
        [
            INCLUDE,
            f"-J{tmp_path}",
            *(fortran_folder() / one for one in sources),
            EXAMPLES / "waves.f90",
        ],
        tmp_path / "waves",
    )
    record_three(tmp_path, [program], 4)
    energy = captured(tmp_path / "one")["iter 4 / rank 0 / energy"]
    assert energy.plain is not None
    assert energy.plain.made_with.atol == 1e-9
    one, two, wrong = (str(tmp_path / name) for name in ("one", "two", "wrong"))
    assert run_cli(["compare", one, two]) == ExitCode.MATCH
    capsys.readouterr()
    assert run_cli(["compare", one, wrong]) != ExitCode.MATCH
    assert "first divergence: iter 4 / rank 0 / " in capsys.readouterr().out


def test_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_library()
    record_three(tmp_path, [sys.executable, EXAMPLES / "pendulums.py"], 7)
    judge(tmp_path, capsys, "iter 7 / rank 0 / angle")
