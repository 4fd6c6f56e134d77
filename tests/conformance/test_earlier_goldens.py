"""What an earlier release wrote is read, checked and accepted now (earlier/README.md)."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import call
from e2e.cli_project import environment

from ciwrap.base.documents import load_json
from ciwrap.golden.manifest import dump_manifest
from ciwrap.golden.store import GoldenStore
from ciwrap.model import Verdict
from ciwrap.report.document import from_document

if TYPE_CHECKING:
    from subprocess import CompletedProcess

EARLIER = Path(__file__).with_name("earlier")
CHECK = "mesh: a/b ä"
FILES = "mesh%3A%20a%2Fb%20%C3%A4"


def outputs() -> Any:
    spec = importlib.util.spec_from_file_location("earlier_outputs", EARLIER / "outputs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(*arguments: str, folder: Path) -> CompletedProcess[str]:
    return call(*arguments, folder=folder, environment=environment())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    shutil.copytree(EARLIER, folder)
    return folder


def without_comment(manifest: str) -> str:
    """What its head says to people may be said better by now."""
    return "".join(line for line in manifest.splitlines(True) if not line.startswith("#"))


def test_the_golden_reads_back_to_the_byte() -> None:
    golden = GoldenStore(EARLIER / "golden").read(CHECK)
    text = (EARLIER / "golden" / f"{FILES}.golden.yaml").read_text(encoding="utf-8")
    assert without_comment(dump_manifest(golden.manifest)) == without_comment(text)
    assert golden.root == "8a31016635ac9d1486330ff66c37fadd"
    assert len(golden.variables) == 56
    assert {row.evidence for row in golden.manifest.variables} == {
        *("data", "tree", "residues k=15", "residues k=9", "residues k=5"),
    }
    assert [entry.why for entry in golden.manifest.accepted] == [
        *("first golden", 'Numbers of "today": second-order # push', "A wider bound"),
    ]
    assert golden.manifest.accepted[-1].bounds[0] == (
        "iter 10 / rank 0 / pressure: atol=0.0001 rtol=1e-5 -> atol=0.0001 rtol=2e-5 (wider)"
    )


def test_the_pending_golden_reads_back_to_the_byte() -> None:
    golden = GoldenStore(EARLIER / "pending").read(CHECK)
    text = (EARLIER / "pending" / f"{FILES}.golden.yaml").read_text(encoding="utf-8")
    assert without_comment(dump_manifest(golden.manifest)) == without_comment(text)
    assert golden.manifest.pending is not None
    assert golden.manifest.pending.base_root == "8a31016635ac9d1486330ff66c37fadd"


def test_the_result_is_read() -> None:
    run = from_document(load_json((EARLIER / "pending" / f"{FILES}.result.json").read_bytes()))
    assert run.verdict is Verdict.DIFFER
    (check,) = run.checks
    assert len(check.variables) == 56
    assert sum(one.verdict is Verdict.MATCH for one in check.variables) == 24
    assert check.golden_environment["cpu"] == "Some CPU"


def test_equal_outputs_match(project: Path) -> None:
    outputs().write(project / "out")
    done = said("check", folder=project)
    assert done.returncode == 0, done
    # Equal numbers: residues of five levels know it to within a third of the bound.
    assert "56 arrays of 14 variables [32 data, 12 residues, 12 tree]" in done.stdout
    assert "at most 33.4 % of the bound used" in done.stdout


@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("temperature", (3, 4), 1e-5),
        ("pressure", (19, 29), 0.1),
        ("velocity", (0, 0), 1e-5),
        ("half", (5, 5), 1.0),
        ("field", (1, 1), 1e-5j),
        ("missing", (3, 4), 1.0),
        ("odd", (0, 3), 1.0),
        ("ids", (599,), 3),
        ("counts", (7,), 1),
        ("levels", (8,), 1),
        ("flags", (1,), True),
        ("time", (), 1e-5),
    ],
)
def test_a_single_change_is_found(
    project: Path, name: str, position: tuple[int, ...], value: Any
) -> None:
    outputs().write(project / "out")
    path = project / "out" / "iter_20" / "rank_1" / f"{name}.npy"
    array = np.load(path)
    array[position] += value
    np.save(path, array)
    done = said("check", folder=project)
    assert done.returncode == 1, done
    assert f"iter 20 / rank 1 / {name}" in done.stdout


def test_the_pending_golden_is_accepted(project: Path) -> None:
    outputs().write(project / "out", 0.25)
    assert said("check", folder=project).returncode == 1
    done = said("accept", "--from", "pending", "--reason", "A quarter more", folder=project)
    assert done.returncode == 0, done
    assert said("check", folder=project).returncode == 0
    accepted = GoldenStore(project / "golden").read(CHECK).manifest.accepted
    assert [entry.why for entry in accepted][2:] == ["A wider bound", "A quarter more"]
