"""Outputs that cannot be read or compared: one clear line, the right exit code, never a match."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, check_fails

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def shorten_to_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other_type(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 500)


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 8)


def lying_shape(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"(20, 30)", b"(99, 99)"))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


FILE_FAULTS: list[Callable[[Path], None]] = [
    truncate,
    shorten_to_header,
    empty,
    other_type,
    longer,
    lying_shape,
    fifo,
]


@pytest.mark.parametrize("damage", FILE_FAULTS)
def test_damaged_output(accepted: Project, damage: Callable[[Path], None]) -> None:
    damage(accepted.folder / "out" / "temperature.npy")
    outcome = check_fails(accepted, 3, "temperature")
    errors = [m for m in outcome.document["checks"][0]["messages"] if m["level"] == "error"]
    assert len(errors) == 1
    assert "temperature.npy" in errors[0]["file"]
    # What could be compared, was.
    assert outcome.variable("ids")["verdict"] == "match"


@pytest.mark.parametrize("damage", FILE_FAULTS)
def test_damaged_output_is_never_accepted(project: Project, damage: Callable[[Path], None]) -> None:
    damage(project.folder / "out" / "temperature.npy")
    outcome = check_fails(project, 3, "temperature.npy", command=("accept",))
    assert len(outcome.error_lines) == 1


def test_unreadable_output(accepted: Project) -> None:
    path = accepted.folder / "out" / "temperature.npy"
    path.unlink()
    # A link to itself cannot be opened by anyone, root included.
    path.symlink_to(path)
    check_fails(accepted, 3, "temperature")


def test_missing_outputs(accepted: Project) -> None:
    for path in (accepted.folder / "out").iterdir():
        path.unlink()
    check_fails(accepted, 3, "out", "no files")
    (accepted.folder / "out").rmdir()
    check_fails(accepted, 3, "does not exist")


def test_a_file_that_no_reader_knows(accepted: Project) -> None:
    (accepted.folder / "out" / "run.log").write_text("hello")
    check_fails(accepted, 3, "run.log", "only in the outputs, not in the golden")
    accepted.configure("    exclude: '*.log'\n")
    assert accepted.run("check").code == 0


def test_pickled_objects_are_refused_and_never_run(accepted: Project) -> None:
    marker = accepted.folder / "executed"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    accepted.save("temperature", np.array([Evil()], dtype=object))
    outcome = check_fails(accepted, 3, "temperature.npy", "objects")
    assert "pickled-array" in {m.get("slug") for m in outcome.document["checks"][0]["messages"]}
    check_fails(accepted, 3, "objects", command=("accept", "--reason", "x"))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (BASE.astype("f4"), ("float32 (<f4)", "float64 (<f8)")),
        (BASE.astype("i8"), ("int64",)),
        (BASE.astype("c16"), ("complex128",)),
        (BASE.T, ("30x20", "20x30")),
        (BASE.reshape(-1), ("shape 600",)),
        (BASE[:-1], ("19x30",)),
        (BASE[:0], ("0x30",)),
        (np.float64(1.0), ("a single number",)),
    ],
)
def test_another_dtype_or_shape(
    accepted: Project, array: np.ndarray, words: tuple[str, ...]
) -> None:
    accepted.save("temperature", array)
    outcome = check_fails(accepted, 3, "temperature", *words)
    variable = outcome.variable("temperature")
    assert variable["verdict"] == "not_comparable"
    assert {"golden_dtype", "golden_shape"} & set(variable)


def test_a_missing_and_an_extra_variable(accepted: Project) -> None:
    out = accepted.folder / "out"
    (out / "ids.npy").rename(out / "idz.npy")
    outcome = check_fails(accepted, 3, "not in the outputs", "not in the golden")
    check = outcome.document["checks"][0]
    assert check["missing_variables"] == [{"name": "ids"}]
    assert check["extra_variables"] == [{"name": "idz"}]
    assert outcome.variable("temperature")["verdict"] == "match"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_another_nan_or_inf_pattern_differs(project: Project, value: float, evidence: str) -> None:
    project.configure(bound=f"atol: 1e-6, evidence: {evidence}")
    project.accept()
    array = BASE.copy()
    array[7, 11] = value
    project.save("temperature", array)
    outcome = project.run("check")
    assert outcome.code == 1, outcome
    variable = outcome.variable("temperature")
    assert (variable["verdict"], variable["evidence"]) == ("differ", evidence)
    if evidence == "data":
        assert (variable["differing_count"], variable["first_index"]) == (1, [7, 11])
        kind = "nan_mismatch_count" if np.isnan(value) else "inf_mismatch_count"
        assert variable[kind] == 1
        assert "largest |difference| 0" not in outcome.out
    else:
        assert (variable["differing_count"], variable["differing_count_at_most"]) == (1, 1)
        assert [one["index"] for one in variable["moved_elements"]] == [[7, 11]]


def test_equal_nan_pattern_matches(project: Project) -> None:
    array = BASE.copy()
    array[3, 3:9] = np.nan
    project.save("temperature", array)
    project.accept()
    assert project.run("check").code == 0
    project.configure(bound="atol: 1e-6, equal_nan: false")
    project.accept("--reason", "NaN is NaN")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.variable("temperature")["differing_count"] == 6


@pytest.mark.parametrize(
    "array", [np.float64(2.5), np.zeros((0,)), np.zeros((3, 0, 2)), np.zeros(1)]
)
def test_zero_length_and_zero_dimensional_arrays(project: Project, array: np.ndarray) -> None:
    project.save("temperature", array)
    for evidence in ("data", "residues", "tree"):
        project.configure(bound=f"atol: 1e-6, evidence: {evidence}")
        project.accept("--reason", evidence, "--force")
        outcome = project.run("check")
        assert outcome.code == 0, outcome
        assert outcome.variable("temperature")["element_count"] == array.size
        shown = project.run("show", "golden/mesh.golden")
        assert shown.code == 0, shown
    if array.size:
        project.save("temperature", array + 1)
        outcome = project.run("check")
        assert outcome.code == 1
        # The summary of its one chunk tells.
        assert outcome.variable("temperature")["verdict"] == "differ"
