"""Importing ciwrap is quick and loads nothing that it does not need."""

from __future__ import annotations

import inspect
import os
import pydoc
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

import ciwrap
import ciwrap.formats.reader
import ciwrap.testing
from ciwrap import _core
from ciwrap.base import late

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.10 looks here first, and may find the source tree instead of what is installed."""
    monkeypatch.chdir(tmp_path)


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


# Records are msgspec's, so that is loaded by nearly all.
HEAVY = {"numpy", "yaml", "click", "jinja2", "ciwrap._core"}


@pytest.mark.parametrize(
    "statement",
    [
        "import ciwrap",
        "import ciwrap.model",
        "import ciwrap.base.errors",
        "import ciwrap.project.settings",
    ],
)
def test_imports_stay_light(statement: str) -> None:
    assert not loaded_by(statement) & HEAVY


def test_a_configuration_does_not_load_readers_or_the_core() -> None:
    loaded = loaded_by("import ciwrap.project.config, ciwrap.project.starter")
    assert not loaded & {"numpy", "ciwrap._core", "ciwrap.formats.catalog"}


@pytest.mark.parametrize("chosen", [None, "active", "passive"])
@pytest.mark.parametrize(
    "statement",
    [
        "from ciwrap import _core; _core.backends()",
        "import ciwrap.api; ciwrap.api.compare_arrays([1.0], [1.0])",
        "from ciwrap.golden.trees import Resources; Resources().backend_used",
    ],
)
def test_threads_of_the_core_sleep_unless_the_user_has_chosen(
    statement: str, chosen: str | None
) -> None:
    """libgomp tells what it has read; programs that are started later inherit nothing."""
    environment = {**os.environ, "OMP_DISPLAY_ENV": "true"}
    environment.pop("OMP_WAIT_POLICY", None)
    if chosen is not None:
        environment["OMP_WAIT_POLICY"] = chosen
    code = f"{statement}; import os; print(os.environ.get('OMP_WAIT_POLICY'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"{chosen}\n"
    if any(backend["name"] == "openmp" and backend["usable"] for backend in _core.backends()):
        policies = re.findall(r"OMP_WAIT_POLICY = '(\w+)'", done.stderr)
        assert policies == [(chosen or "passive").upper()]


@pytest.mark.parametrize("chosen", [{"OMP_PLACES": "cores"}, {"OMP_PROC_BIND": "close"}])
def test_programs_do_not_inherit_the_core_that_libgomp_binds_us_to(chosen: dict[str, str]) -> None:
    """As `ciwrap run` starts them, once the core is loaded; it would be one core of all."""
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not tell on which cores a process may run")
    child = "import os; print(sorted(os.sched_getaffinity(0)))"
    code = (
        "import subprocess, sys; from ciwrap import _core; _core.backends();"
        f" subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"{sorted(os.sched_getaffinity(0))}\n"


def test_threads_load_the_core_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them could withdraw the setting twice, which ends in a KeyError."""
    monkeypatch.delenv(late.WAIT_POLICY, raising=False)
    start, inside, most = Barrier(8), [], []

    def load_slowly(name: str) -> str:
        inside.append(os.environ[late.WAIT_POLICY])
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return name

    def use(_: int) -> object:
        start.wait(timeout=30)
        return late.load_core.__wrapped__()

    monkeypatch.setattr(late, "import_module", load_slowly)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(8))) == 8 * ["ciwrap._core"]
    assert most == 8 * [1]
    assert late.WAIT_POLICY not in os.environ


def test_the_core_is_loaded_in_one_place() -> None:
    """`from ciwrap import _core` goes through `load_core` in base/late.py."""
    direct = re.compile(r"^(import|from) ciwrap\._core|import_module\(.ciwrap\._core", re.MULTILINE)
    folder = Path(ciwrap.__file__).parent
    found = [path.name for path in folder.rglob("*.py") if direct.search(path.read_text())]
    assert found == ["late.py"]


def test_every_public_name_exists() -> None:
    for name in ciwrap.__all__:
        assert getattr(ciwrap, name) is not None
        assert name in dir(ciwrap)


def test_the_whole_api_is_offered() -> None:
    from ciwrap import api

    assert set(api.__all__) == set(ciwrap._API)
    assert set(api.__all__) < set(ciwrap.__all__)
    assert ciwrap.build_tree is api.build_tree


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = ciwrap.no_such_name


def test_windows_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """When CMake configures, before anybody looks for a compiler."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("CMake is not installed")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [cmake, "-S", root, "-B", tmp_path, "-DCMAKE_HOST_WIN32=ON"],
        capture_output=True,
        text=True,
        check=False,
    )
    words = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert "does not run on Windows" in words
    assert "WSL 2" in words
    assert "compiler" not in done.stdout


def test_pip_refuses_windows_in_one_line(tmp_path: Path) -> None:
    """What pip starts, as Python on Windows would see itself."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    root = Path(__file__).resolve().parents[2]
    program = (
        "import sys; import scikit_build_core.build as build; sys.platform = 'win32';"
        f"build.build_wheel({str(tmp_path)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    (line,) = (done.stdout + done.stderr).strip().splitlines()
    assert line.startswith("ciwrap does not run on Windows. It runs on Linux in WSL 2: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (ciwrap, ciwrap.__all__),
        (ciwrap.testing, ciwrap.testing.__all__),
        (ciwrap.formats.reader, ("FileRegion", "InputFile", "Reader", "Source", "VariableInfo")),
    ],
)
def test_help_of_what_is_public(module: ModuleType, names: tuple[str, ...]) -> None:
    """Signatures of records are made of the types of their fields, which have to be at hand."""
    for name in names:
        if inspect.isclass(getattr(module, name)):
            assert name in pydoc.render_doc(getattr(module, name), renderer=pydoc.plaintext)
