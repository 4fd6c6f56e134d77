"""What a command loads before it does something: modules, since times say nothing in CI."""

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
    *(
        "jinja2",
        "scipy",
        "email",
        "importlib.metadata",
        "subprocess",
        "zipfile",
        "tempfile",
        "traceback",
    ),
    *("difflib", "fractions", "ciwrap.api", "ciwrap.compare.circle", "ciwrap.compare.combined"),
    *("ciwrap.compare.details", "ciwrap.compare.hints", "ciwrap.compare.solve"),
    *("ciwrap.compare.texts", "ciwrap.compare.differences", "ciwrap.logs", "ciwrap.snapshot.take"),
    *("ciwrap.report.html", "ciwrap.report.document", "ciwrap.report.environment"),
    *("ciwrap.report.unmatched_terminal", "ciwrap.report.timelines", "ciwrap.report.causes"),
    *("ciwrap.golden.module_store", "ciwrap.golden.shared_text", "ciwrap.review.pending_goldens"),
    *("ciwrap.snapshot.runs", "ciwrap.snapshot.store", "ciwrap.compare.whole"),
    *("ciwrap.compare.over_checkpoints", "ciwrap.compare.series", "ciwrap.compare.pictures"),
    "ciwrap.golden.yaml_text",
}
WITHOUT_VALUES = {
    *("numpy", "yaml", "json", "ciwrap.config", "ciwrap.golden", "ciwrap.snapshot"),
    *("ciwrap.compare.check", "ciwrap.compare.judge", "ciwrap.documents", "ciwrap.cli.capture"),
    *(
        "dataclasses",
        "concurrent.futures",
        "logging",
        "hashlib",
        "base64",
        "ciwrap.captures.recording",
    ),
    *("ciwrap.compare.across_ranks", "ciwrap.compare.explain"),
    *("ciwrap.compare.stream", "ciwrap.compare.elements", "ciwrap.compare.timelines"),
    *("ciwrap.catalog.catalog", "ciwrap.catalog.rows", "ciwrap.readers.npy_format"),
}


def loaded(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIST, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
    found = set(line.split())
    return found - (_of_libraries("numpy" in found) - {"numpy"})


@cache
def _of_libraries(has_numpy: bool) -> set[str]:
    """What the libraries that are wanted load themselves, as old releases of them did."""
    words = f"import sys, click, msgspec{', numpy' if has_numpy else ''}; print(*sys.modules)"
    listed = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True)
    return set(listed.stdout.decode().split())


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
    assert "ciwrap.compare.by_trees" in found
    assert found & (NEVER | WITHOUT_VALUES) == set()


def test_runs_that_differ_are_told_without_the_environment_of_this_call(project: Path) -> None:
    (project / "C").mkdir()
    np.save(project / "C" / "x_1.npy", np.linspace(0, 2, 2000))
    loaded(project, "capture", "C", "--atol", "1e-3")
    found = loaded(project, "compare", "A", "C", code=1)
    assert "numpy" in found
    assert found & {"ciwrap.snapshot.describe", "importlib.metadata", "subprocess"} == set()


def test_a_matching_check_loads_what_it_uses(project: Path) -> None:
    found = loaded(project, "check")
    assert {"numpy", "ciwrap.compare.judge"} <= found
    assert found & NEVER == set()


def test_the_version_loads_no_command(project: Path) -> None:
    found = loaded(project, "--version")
    assert {name for name in found if name.startswith("ciwrap.")} == {
        *("ciwrap.cli", "ciwrap.cli.main", "ciwrap.cli.session", "ciwrap.cli.streams"),
        *("ciwrap.errors", "ciwrap.late", "ciwrap.structs"),
    }


LATE = """
import os, sys
from ciwrap.late import numpy, use_one_thread
assert "numpy" not in sys.modules
use_one_thread()
numpy.zeros(1)
print(os.environ.get("OPENBLAS_NUM_THREADS"), len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_numpy_starts_no_threads_and_no_setting_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, env={}
    )
    assert done.stdout.split() == ["None", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_setting_of_the_users_own_holds() -> None:
    environment = {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split()[0] == "2"
