"""The examples that record, built and run: a planted defect is found in its step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from recorded_runs import captured, find_kokkos, need_library, recording, start

from ciwrap.base.errors import ExitCode
from ciwrap.cli.main import run as run_cli

EXAMPLES = Path(__file__).parents[2] / "examples" / "recording"


def native(option: str) -> str:
    """What `ciwrap native` prints; of what is installed, which Python 3.10 looks for here first."""
    words = [sys.executable, "-m", "ciwrap", "native", option]
    elsewhere = tempfile.gettempdir()
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=60, cwd=elsewhere
    )
    (line,) = done.stdout.splitlines()
    return line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as a stranger builds them: with CMake, and no variable but PATH."""
    need_library()
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("CMake is not installed")
    folder = tmp_path_factory.mktemp("examples")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    words = [f"-Dciwrap-record_DIR={native('--cmake')}", f"-DKokkos_DIR={find_kokkos() or ''}"]
    for step in (["-S", str(EXAMPLES), "-B", str(folder), *words], ["--build", str(folder)]):
        done = subprocess.run(
            [cmake, *step], env=env, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def example(built: Path, name: str) -> Path:
    if not (built / name).is_file():
        pytest.skip(f"what the example {name} is built with is not installed")
    return built / name


def record_three(tmp_path: Path, words: list[str | Path], step: int) -> None:
    """Two equal runs, and one with a defect in a step."""
    more_env = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_PROC_BIND": "false"}
    for name, more in (("one", []), ("two", []), ("wrong", [str(step)])):
        done = start([*words, *more], recording(tmp_path / name, **more_env))
        assert done.returncode == 0, done.stderr
        assert "ciwrap" not in done.stderr
    assert start(words, recording(None, **more_env)).returncode == 0


def judge(tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str) -> None:
    one, two, wrong = (str(tmp_path / name) for name in ("one", "two", "wrong"))
    assert run_cli(["compare", one, two]) == ExitCode.MATCH
    capsys.readouterr()
    assert run_cli(["compare", one, wrong]) == ExitCode.DIFFER
    assert f"first difference: {first}" in capsys.readouterr().out


def launcher() -> str:
    found = shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec here")
    return found


@pytest.mark.slow
def test_c_with_mpi(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_three(tmp_path, [launcher(), "-n", "2", example(built, "heat")], 7)
    assert {one.identity.rank for one in captured(tmp_path / "one").values()} == {0, 1}
    judge(tmp_path, capsys, "iter 7 / rank 1 / temperature")


@pytest.mark.slow
def test_kokkos(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_three(tmp_path, [example(built, "advection")], 5)
    assert {one.shape for one in captured(tmp_path / "one").values()} == {(60, 80)}
    judge(tmp_path, capsys, "iter 5 / rank 0 / cloud")


@pytest.mark.slow
def test_fortran(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_three(tmp_path, [example(built, "waves")], 4)
    energy = captured(tmp_path / "one")["iter 4 / rank 0 / energy"]
    assert energy.plain is not None
    assert energy.plain.made_with.atol == 1e-9
    one, two, wrong = (str(tmp_path / name) for name in ("one", "two", "wrong"))
    assert run_cli(["compare", one, two]) == ExitCode.MATCH
    capsys.readouterr()
    assert run_cli(["compare", one, wrong]) != ExitCode.MATCH
    assert "first difference: iter 4 / rank 0 / " in capsys.readouterr().out


def test_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_library()
    record_three(tmp_path, [sys.executable, EXAMPLES / "pendulums.py"], 7)
    judge(tmp_path, capsys, "iter 7 / rank 0 / angle")


@pytest.mark.slow
def test_python_with_mpi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_library()
    pytest.importorskip("mpi4py")
    record_three(tmp_path, [launcher(), "-n", "2", sys.executable, EXAMPLES / "orbits.py"], 6)
    judge(tmp_path, capsys, "iter 6 / rank 1 / place")


def test_what_is_asked_for_is_there() -> None:
    need_library()
    holds = {
        "--include": "ciwrap/record.hpp",
        "--fortran": "ciwrap_record.f90",
        "--cmake": "ciwrap-recordConfig.cmake",
        "--pkg-config": "ciwrap-record.pc",
        "--library": ".",
        "--kokkos": ".",
    }
    found = {option: native(option) for option in holds}
    for option, name in holds.items():
        path = Path(found[option])
        assert path.is_file() if name == "." else (path / name).exists()
    done = subprocess.run(
        [sys.executable, "-m", "ciwrap", "native"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()] == [*found.values()]


def test_native_prints_a_path_for_each_option() -> None:
    need_library()
    words = [sys.executable, "-m", "ciwrap", "native", "--fortran", "--include"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [native("--include"), native("--fortran")]


def test_pkg_config(tmp_path: Path) -> None:
    """With the options that pkg-config names, and its word for the version of the interface."""
    need_library()
    for tool in ("pkg-config", "gfortran"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    env = {"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": native("--pkg-config")}
    text = (
        "set -eu; sources=$(pkg-config --variable=fortran_sources ciwrap-record);"
        f' gfortran -J"{tmp_path}" $(pkg-config --cflags ciwrap-record)'
        ' "$sources"/*.f90 "$sources"/*.c'
        f' "{EXAMPLES}/waves.f90" -o "{tmp_path}/waves" $(pkg-config --libs ciwrap-record);'
        " pkg-config --modversion ciwrap-record"
    )
    done = subprocess.run(
        ["sh", "-c", text], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    header = (Path(native("--include")) / "ciwrap" / "record.h").read_text()
    assert f"#define CIWRAP_TABLE_VERSION {done.stdout.strip()}\n" in header
    version = (Path(native("--cmake")) / "ciwrap-recordConfigVersion.cmake").read_text()
    assert f"set(PACKAGE_VERSION {done.stdout.strip()})" in version
    assert start([tmp_path / "waves"], recording(tmp_path / "run")).returncode == 0
    assert len(captured(tmp_path / "run")) == 20
