"""`ciwrap changes` on what could hide a change: files beside the golden, and commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from e2e.test_cli_changes import changes, edit
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = """\
run: {command: ./simulate, env: {THREADS: "1", API_TOKEN: "abcdefgh"}}
checks:
  mesh: {outputs: x.csv, atol: 1e-6, run: {command: ./mesh, working_dir: sub}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text(CONFIG)
    Path("sub").mkdir()
    Path("x.csv").write_text("1\n2\n")
    assert run(["accept"]) == 0
    repository.commit("base", {})
    return tmp_path


def test_a_copy_of_the_old_manifest_hides_nothing(project: Path) -> None:
    """Its check is that of another file, so no check reads it."""
    edit(("atol: 1e-6", "atol: 10"))()
    Path("x.csv").write_text("3\n2\n")
    for name in ("zzz", "aaa"):
        shutil.copy("golden/mesh.golden.yaml", f"golden/{name}.golden.yaml")
    assert run(["accept", "--reason", "cleanup"]) == 0
    found = {(one["check"], one["what"], one["wider"]) for one in changes()}
    assert {("mesh", "bound", True), ("mesh", "values", False)} <= found
    texts = {one["check"]: one["text"] for one in changes() if one["what"] == "check"}
    assert texts == dict.fromkeys(("aaa", "zzz"), "the manifest of its golden cannot be read")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('THREADS: "1"', 'THREADS: "2"', (None, "environment of the command: THREADS: 1 -> 2")),
        ('THREADS: "1", ', "", (None, "environment of the command: THREADS: 1 -> none")),
        ("{THREADS", '{NEW: "", THREADS', (None, "environment of the command: NEW: none -> ''")),
        ("abcdefgh", "ijklmnop",
         (None, "environment of the command: API_TOKEN: (hidden) -> (hidden)")),
        ("working_dir: sub", "working_dir: .", ("mesh", "folder of the command: sub -> .")),
        ("./mesh", "./fast", ("mesh", "command: ./mesh -> ./fast")),
    ],
)  # fmt: skip
def test_what_is_run_otherwise(project: Path, old: str, new: str, told: tuple[str, str]) -> None:
    edit((old, new))()
    assert [(one["check"], one["text"]) for one in changes()] == [told]


@pytest.mark.parametrize("is_run", [True, False])
def test_a_check_that_nothing_is_run_for(project: Path, is_run: bool) -> None:
    """The command of all checks is run for one without its own, if there is one."""
    text = CONFIG if is_run else CONFIG.split("\n", 1)[1]
    GitRepository(project).commit("command", {"ciwrap.yaml": text})
    edit((", run: {command: ./mesh, working_dir: sub}", ""))()
    (one,) = changes()
    assert (one["text"], one["wider"]) == ("command: ./mesh -> none", not is_run)


@pytest.fixture
def with_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A golden of a variable with units, which its binary does not hold."""
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text("checks: {mesh: {outputs: x.h5, atol: 1e-6}}\n")
    save_units("K")
    assert run(["accept"]) == 0
    repository.commit("base", {})
    return tmp_path / "golden/mesh.golden.yaml"


def save_units(text: str) -> None:
    with h5py.File("x.h5", "w") as file:
        file["t"] = np.arange(4.0)
        file["t"].attrs["units"] = text


def test_other_units_in_a_manifest_are_told(with_units: Path) -> None:
    """Nothing else of the golden changes with them, neither its root nor its log."""
    with_units.write_text(with_units.read_text().replace("{units: K}", "{units: mK}"))
    save_units("mK")
    assert run(["check"]) == 0
    (found,) = changes()
    assert (found["variable"], found["what"], found["wider"]) == ("t", "variable", False)
    assert found["text"] == "units: K -> mK"


def test_a_manifest_that_says_nothing_of_units_checks_less(with_units: Path) -> None:
    """As one of an earlier release: then outputs of any units match it."""
    text = with_units.read_text().replace("format: 3", "format: 1")
    with_units.write_text(text.replace(", labels: {units: K}", ""))
    save_units("mK")
    assert run(["check"]) == 0
    (found,) = changes()
    assert (found["check"], found["variable"], found["wider"]) == ("mesh", None, True)
    assert "units" in found["text"]


def test_units_that_an_accepted_golden_has_otherwise(with_units: Path) -> None:
    save_units("mK")
    assert run(["accept", "--reason", "better units"]) == 0
    assert {one["text"] for one in changes()} >= {"units: K -> mK"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("gate: true", "gate: false", [("timing: a slower run is only reported now", True)]),
        ("margin: 0.02", "margin: 0.5", [("timing: margin: 0.02 -> 0.5", True)]),
        ("margin: 0.02", "margin: 0.01", [("timing: margin: 0.02 -> 0.01", False)]),
        ("gate: true", "gate: true, confidence: 0.999",
         [("timing: confidence: 0.99 -> 0.999", True)]),
        ("gate: true", "gate: true, confidence: 0.99", []),
        ("./work", "./rest", [("timing: command: ./work -> ./rest", False)]),
        ("{command: ./work", "{build: make, command: ./work",
         [("timing: build: none -> make", False)]),
        ("margin", "pairs: 20, margin", []),
        ("max_seconds: 90", "max_seconds: 95", [("timing: max_seconds: 90 s -> 95 s", True)]),
        ("max_seconds: 90", "max_seconds: 80", [("timing: max_seconds: 90 s -> 80 s", False)]),
        (", max_seconds: 90", "", [("timing: max_seconds: 90 s -> none", True)]),
        ("max_seconds: 90", "max_seconds: 90, max_memory: 1 GiB",
         [("timing: max_memory: none -> 1024 MiB", False)]),
        ("reference: golden", "runs: 3", [("repeat: reference: golden -> first", True)]),
    ],
)  # fmt: skip
def test_what_is_asked_of_run_times_and_repeated_runs(
    project: Path, old: str, new: str, told: list[tuple[str, bool]]
) -> None:
    timing = "timing: {command: ./work, gate: true, margin: 0.02, max_seconds: 90}\n"
    text = CONFIG + timing + "repeat: {reference: golden}\n"
    GitRepository(project).commit("timing", {"ciwrap.yaml": text})
    edit((old, new))()
    assert [(one["text"], one["wider"]) for one in changes()] == told


@pytest.fixture
def with_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A check whose golden lies in golden/, and one of a test whose golden lies elsewhere."""
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text("checks: {mesh: {outputs: x.csv, atol: 1e-6}}\n")
    accept_number(1)
    for folder in ("test_it", "tests/kept/test_it", "other/test_it"):
        shutil.copytree("golden", folder)
    return repository


def accept_number(number: int, *options: str) -> None:
    Path("x.csv").write_text(f"{number}\n2\n")
    assert run(["accept", "--reason", "cleanup", *options]) == 0


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pytest.ini", "[pytest]\nciwrap_golden_dir = tests/kept\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\nciwrap_golden_dir = "tests/kept" # here\n'),
        ("setup.cfg", "[tool:pytest]\nciwrap_golden_dir: tests/kept\n"),
    ],
)
def test_goldens_of_tests_that_pytest_is_told_of(
    with_tests: GitRepository, file: str, text: str
) -> None:
    with_tests.commit("base", {file: text})
    assert changes() == []
    accept_number(5, "--golden-dir", "tests/kept/test_it")
    assert {(one["check"], one["what"]) for one in changes()} == {("test_it/mesh", "values")}
    with_tests.git("checkout", "-q", ".")
    Path(file).write_text(text.replace("tests/kept", "other"))
    (found,) = changes()
    assert found["text"] == "goldens of tests read from: tests/kept -> other"
    Path(file).write_text("")
    found = changes()
    assert {(one["check"], one["wider"]) for one in found} == {
        (None, False),
        ("test_it/mesh", True),
    }


def test_goldens_of_tests_within_those_of_checks_are_told_once(with_tests: GitRepository) -> None:
    Path("golden/of").mkdir()
    Path("test_it").rename("golden/of/test_it")
    with_tests.commit("base", {"pytest.ini": "[pytest]\nciwrap_golden_dir = golden/of\n"})
    accept_number(5, "--golden-dir", "golden/of/test_it")
    assert {(one["check"], one["what"]) for one in changes()} == {("test_it/mesh", "values")}
    with_tests.commit("broken", {"ciwrap.yaml": "checks: ["})
    Path("ciwrap.yaml").write_text("checks: {mesh: {outputs: x.csv, atol: 1e-6}}\n")
    assert [one["text"][:24] for one in changes()] == ["the configuration before"]


def test_what_the_base_has_tightened_since_is_not_loosened_here(project: Path) -> None:
    """A branch that is behind; only what it changes itself is told."""
    repository = GitRepository(project)
    repository.git("branch", "-q", "-M", "main")
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("of the branch", {"README": "x"})
    repository.git("checkout", "-q", "main")
    tight = CONFIG.replace("atol: 1e-6", "atol: 1e-9")
    repository.commit("tightened", {"ciwrap.yaml": tight})
    repository.git("checkout", "-q", "topic")
    assert changes("--base", "main") == []
    repository.commit("wider", {"ciwrap.yaml": CONFIG.replace("atol: 1e-6", "atol: 10")})
    assert {(one["what"], one["wider"]) for one in changes("--base", "main")} == {("bound", True)}
    # A history of its own has no commit in common with it.
    repository.git("checkout", "-q", "--orphan", "other")
    repository.commit("wider", {"ciwrap.yaml": CONFIG})
    assert {(one["what"], one["wider"]) for one in changes("--base", "main")} == {("bound", True)}
