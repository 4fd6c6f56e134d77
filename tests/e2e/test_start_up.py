"""What a command loads before it does something: modules, since times say nothing in CI.

Of other libraries by their names, of our own modules by how many they are.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

LIST = (
    "import atexit, sys; sys.argv[0] = 'ciwrap';"
    " atexit.register(lambda: print('LOADED', *sys.modules));"
    " from ciwrap.cli import main; main()"
)
# None of these is wanted by any command that finds everything as it should be.
NEVER = {
    *("jinja2", "scipy", "email", "importlib.metadata", "subprocess", "zipfile"),
    *("tempfile", "traceback", "difflib", "fractions"),
}
WITHOUT_VALUES = {
    *("numpy", "yaml", "json", "dataclasses", "concurrent.futures", "logging", "hashlib"),
    *("base64", "csv", "shutil", "socket"),
}
# How many modules of ours a command loads at most.
MOST_OF_OURS = {"a completion": 9, "compare": 72, "check": 61}


def listed(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIST, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
    return set(line.split())


def loaded(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    """Without what the libraries that are wanted load themselves, as old releases of them did."""
    found = listed(folder, *arguments, code=code)
    libraries = ("click", "msgspec", *({"numpy"} & found))
    return found - (loaded_by(*libraries) - {"numpy"})


@cache
def loaded_by(*libraries: str) -> set[str]:
    words = f"import {', '.join(('sys', *libraries))}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def of_ours(found: set[str]) -> int:
    return sum(name.startswith("ciwrap.") for name in found)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start-up")
    np.save(folder / "one.npy", np.linspace(0, 1, 2000))
    (folder / "ciwrap.yaml").write_text(
        "checks:\n  - name: one\n    outputs: [one.npy]\n    atol: 1e-6\n"
    )
    for name in "AB":
        (folder / name).mkdir()
        np.save(folder / name / "x_1.npy", np.linspace(0, 1, 2000))
        loaded(folder, "capture", name, "--atol", "1e-3")
    loaded(folder, "accept", "--reason", "first")
    return folder


def test_equal_captured_runs_are_compared_without_values(project: Path) -> None:
    found = loaded(project, "compare", "A", "B")
    assert found & (NEVER | WITHOUT_VALUES) == set()
    assert 0 < of_ours(found) <= MOST_OF_OURS["compare"]


def test_two_files_and_a_bound_are_compared_without_a_configuration(project: Path) -> None:
    found = loaded(project, "compare", "A/x_1.npy", "B/x_1.npy", "--atol", "1e-6")
    assert "numpy" in found
    assert found & (NEVER | WITHOUT_VALUES) == {"numpy"}
    assert 0 < of_ours(found) <= MOST_OF_OURS["compare"]


def test_runs_that_differ_are_told_without_the_environment_of_this_call(project: Path) -> None:
    (project / "C").mkdir()
    np.save(project / "C" / "x_1.npy", np.linspace(0, 2, 2000))
    loaded(project, "capture", "C", "--atol", "1e-3")
    found = loaded(project, "compare", "A", "C", code=1)
    assert "numpy" in found
    assert found & {"importlib.metadata", "subprocess"} == set()


def test_a_matching_check_loads_what_it_uses(project: Path) -> None:
    found = loaded(project, "check")
    assert "numpy" in found
    assert found & NEVER == set()
    assert 0 < of_ours(found) <= MOST_OF_OURS["check"]


def test_names_of_commands_are_completed_without_loading_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CIWRAP_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ciwrap c")
    monkeypatch.setenv("COMP_CWORD", "1")
    found = loaded(project)
    assert found & (NEVER | WITHOUT_VALUES) == set()
    assert not any(name.startswith("ciwrap.model") for name in found)
    assert 0 < of_ours(found) <= MOST_OF_OURS["a completion"]


@pytest.mark.parametrize("asked", ["--version", "-V"])
def test_the_version_is_told_before_anything_is_loaded(project: Path, asked: str) -> None:
    found = listed(project, asked) - loaded_by()
    assert {name for name in found if name.startswith("ciwrap")} == {"ciwrap", "ciwrap.cli"}
    assert found & {"click", "enum", "re", "typing"} == set()


LATE = """
import os, sys
from ciwrap.base.late import numpy, use_one_thread
assert "numpy" not in sys.modules
use_one_thread()
{first}
print(os.environ.get("OPENBLAS_NUM_THREADS"), len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.parametrize("first", ["numpy.zeros(1)", "import numpy.linalg", "import h5py"])
def test_numpy_starts_no_threads_and_no_setting_stays(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(first=first)],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert done.stdout.split() == ["None", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_setting_of_the_users_own_holds() -> None:
    environment = {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(first="import numpy")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.split()[0] == "2"
