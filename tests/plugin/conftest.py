"""A project of its own for each test, and pytest run in it."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from command_line import call
from plugin.review_suite import write
from result_schema import validator

import ciwrap
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStores

# After each run pytester forgets the modules that the run has loaded, so all of ours are loaded
# before: NumPy does not bear being loaded twice, and pydantic takes longer than all the rest.
importlib.import_module("numpy.ma")  # which NumPy itself loads when it is asked for
for _module in pkgutil.walk_packages(ciwrap.__path__, "ciwrap."):
    # Libraries for programs lie beside them, which are no modules.
    if not _module.name.endswith((".__main__", ".libciwrap_record", ".libciwrap_kokkos")):
        importlib.import_module(_module.name)

if TYPE_CHECKING:
    from ciwrap.golden.store import StoredGolden

ROOT = Path(__file__).resolve().parents[2]
CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "JENKINS_URL", "TF_BUILD")
INI = """
[pytest]
addopts = -p no:hypothesispytest -p no:zarr --strict-markers --strict-config
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning
"""
# Plugins that a run in this process is quicker without; runs in their own process have them all.
LEAN = tuple(
    word
    for name in ("unraisableexception", "threadexception", "xdist", "rerunfailures", "syrupy")
    for word in ("-p", f"no:{name}")
)
PREAMBLE = "import numpy as np\nimport pytest\n\n"


class Installed:
    """A distribution whose files and entry points are read once: they stay as they are."""

    def __init__(self, distribution: importlib.metadata.Distribution) -> None:
        self._distribution = distribution
        self.entry_points = distribution.entry_points
        self.files = distribution.files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._distribution, name)


@cache
def installed() -> tuple[Installed, ...]:
    """What pytest looks through for plugins each time it starts; a third of a start goes there."""
    return tuple(Installed(one) for one in importlib.metadata.distributions())


class Suite:
    """A project with one test file, `tests/test_it.py`, and what is around it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        (self.root / "pytest.ini").write_text(INI)
        (self.root / "tests").mkdir()

    def write(self, text: str, name: str = "tests/test_it.py") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PREAMBLE + dedent(text))
        return path

    def run(self, *arguments: str) -> pytest.RunResult:
        """pytest in this process, where modules are loaded already."""
        # What an earlier run compiled may be of the same second as the file as it is now.
        for cached in self.root.rglob("__pycache__"):
            for path in cached.iterdir():
                path.unlink()
        known = installed()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(importlib.metadata, "distributions", lambda: iter(known))
            return self.pytester.runpytest_inprocess(*LEAN, *arguments)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-B", "-m", "pytest", *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST_") and name not in CI_VARIABLES
        }
        # Tests run on the installed package, whatever lies in the folder they are started from.
        return {**kept, "COLUMNS": "200", **more}

    def subprocess(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """pytest in a process of its own."""
        return self.call(self.command(*arguments), **env)

    def cli(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = call(*arguments, folder=self.root, environment=self.environment(**env))
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def call(self, command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment(**env),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def files(self, folder: str) -> dict[str, bytes]:
        """All files below a folder, and what is in them; but for snapshots of environments."""
        return {
            path.relative_to(self.root / folder).as_posix(): path.read_bytes()
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file() and not {"__pycache__", "snapshots", ".snapshots"} & {*path.parts}
        }

    def goldens(self) -> list[str]:
        """All goldens, by the file that each has, or would have if it did not share one."""
        found = []
        for name, data in self.files("golden").items():
            folder, _, suffix = name.rpartition(".")
            if suffix == "golden":
                found.append(name)
            elif suffix == "goldens":
                bodies = [line.rpartition(b" ")[0] for line in data.splitlines()]
                names = [json.loads(one)[0] for one in bodies if one.startswith(b"[")]
                found += [f"{folder}/{quote(one, safe='')}.golden" for one in names]
        return sorted(found)

    def golden(self, name: str, folder: str = "golden") -> StoredGolden:
        """The golden of a check of tests/test_it.py. folder: of all goldens, or what waits."""
        place = Place("tests/test_it", name)
        return GoldenStores(self.root / folder).at(place).read(name)

    def waiting(self) -> dict[str, Any]:
        """The index of pending goldens, by check."""
        path = self.root / ".ciwrap" / "pending" / "pending.json"
        if not path.exists():
            return {}
        return {one["check"]: one for one in json.loads(path.read_text())["checks"]}

    def document(self, *arguments: str) -> Any:
        """The JSON of a run, compared with its schema."""
        target = self.root / "result.json"
        self.run("--ciwrap-json", str(target), *arguments)
        document = json.loads(target.read_text())
        validator().validate(document)
        return document

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments],
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was found out about loaded objects, for all tests: hashing them takes a while."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> Suite:
    for name in CI_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))
    return Suite(pytester)


@pytest.fixture(scope="session")
def changed_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `changed` keeps what it has made, for the next test."""
    return tmp_path_factory.mktemp("changed") / "suite"


@pytest.fixture
def changed(suite: Suite, changed_before: Path) -> Suite:
    """A repository with two goldens, and what both tests compute now beyond their bounds."""
    if changed_before.exists():
        shutil.copytree(changed_before, suite.root, symlinks=True, dirs_exist_ok=True)
        return suite
    write(suite)
    suite.git("init", "-q")
    (suite.root / ".gitignore").write_text("__pycache__/\n")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.git("add", ".")
    suite.git("commit", "-qm", "first")
    write(suite, 1.5, 2.5)
    suite.run().assert_outcomes(failed=2)
    shutil.copytree(suite.root, changed_before, symlinks=True)
    return suite


def summary(result: pytest.RunResult) -> str:
    """The line of all checks; '' if there is none."""
    lines = [line for line in result.outlines if line.startswith("ciwrap: ")]
    assert len(lines) <= 1, lines
    return lines[0] if lines else ""
