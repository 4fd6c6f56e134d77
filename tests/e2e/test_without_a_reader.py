"""Files that no reader knows or can read: equal bytes match, and nothing is guessed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.cli_project import Project
from e2e.history_runs import ciwrap
from scipy.io import FortranFile

if TYPE_CHECKING:
    from pathlib import Path


def written(run: Path) -> Path:
    run.mkdir()
    (run / "w.movecs").write_bytes(bytes(range(100)))
    (run / "w.out").write_text("E = 1\n")
    (run / "w.err").touch()
    (run / "err.txt").touch()
    (run / "stdout.txt").write_text("step 1 E = -1.5 Ha\nfinished\n")
    return run


def pair(folder: Path) -> tuple[Path, Path]:
    return written(folder / "a"), written(folder / "b")


def messages(document: Any) -> str:
    return "\n".join(one["text"] for one in document["checks"][0]["messages"])


def reasons(document: Any) -> dict[str, str | None]:
    return {one["name"]: one.get("reason") for one in document["checks"][0]["variables"]}


def test_a_folder_and_its_copy_match(tmp_path: Path) -> None:
    code, document = ciwrap(tmp_path, "compare", *pair(tmp_path))
    assert (code, document["coverage"]["compared_variables"]) == (0, 5)
    assert "texts that no reader knows: .err (1), .out (1), .txt (2), 2 of them empty" in messages(
        document
    )
    assert "by their bytes alone, since no reader knows them: .movecs (1)" in messages(document)


def test_texts_are_compared_at_first_contact(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    (second / "stdout.txt").write_text("step 1 E = -1.6 Ha\nfinished\n")
    code, document = ciwrap(tmp_path, "compare", first, second)
    (differing,) = (one for one in document["checks"][0]["variables"] if one["verdict"] == "differ")
    assert (code, differing["name"], differing["differing_count"]) == (1, "stdout.txt", 1)
    assert ciwrap(tmp_path, "compare", first, second, "--atol", "0.2")[0] == 0


def test_other_bytes_are_not_comparable(tmp_path: Path) -> None:
    """What they say of the numbers is not known, so it is no difference either; a person may say
    that bytes are what counts.
    """
    first, second = pair(tmp_path)
    (second / "w.movecs").write_bytes(bytes(100))
    code, document = ciwrap(tmp_path, "compare", first, second, "--atol", "1e9")
    assert code == 3
    reason = reasons(document)["w.movecs"]
    assert reason is not None
    assert "differs in bytes" in reason
    assert "--format '*.movecs=READER'" in reason
    assert "leave it out with --exclude" in reason
    assert ciwrap(tmp_path, "compare", first, second, "--format", "*.movecs=bytes")[0] == 1
    other = shutil.copy(second / "w.movecs", tmp_path / "other.movecs")
    code, document = ciwrap(tmp_path, "compare", first / "w.movecs", other)
    assert code == 3
    assert "--format '*.movecs=READER'" in str(reasons(document)["w"])


def test_records_of_fortran_are_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with FortranFile(tmp_path / name, "w") as file:
            file.write_record(np.arange(5.0) + ord(name))
    code, document = ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")
    assert code == 3
    assert "it looks like records of unformatted Fortran" in str(reasons(document)["a"])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bad.npy", b"no array"),
        ("x.bin", bytes(80)),
        ("cut.csv", b'a,b\n1,"2'),
        ("empty.csv", b""),
        ("bad.h5", b"\x89HDF\r\n\x1a\n and no more"),
    ],
)
def test_what_cannot_be_read_matches_its_copy(tmp_path: Path, name: str, data: bytes) -> None:
    first, second = pair(tmp_path)
    for run in (first, second):
        (run / name).write_bytes(data)
    code, document = ciwrap(tmp_path, "compare", first, second)
    assert (code, document["coverage"]["compared_variables"]) == (0, 6), messages(document)
    assert "compared by its bytes alone" in messages(document)
    assert ciwrap(tmp_path, "compare", first / name, second / name)[0] == 0
    (second / name).write_bytes(data + b"\0")
    assert ciwrap(tmp_path, "compare", first, second)[0] == 3


def test_what_is_read_with_a_file_counts(tmp_path: Path) -> None:
    """The same index and other pieces is no match."""
    first, second = pair(tmp_path)
    for run, piece in ((first, "1"), (second, "2")):
        (run / "x.bin").write_bytes(bytes(7))
        (run / "x.bin.json").write_text(f'{{"dtype": "f8", "shape": [{piece}]}}')
    assert ciwrap(tmp_path, "compare", first, second)[0] == 3
    shutil.copy(first / "x.bin.json", second / "x.bin.json")
    assert ciwrap(tmp_path, "compare", first, second)[0] == 0


def test_a_check_keeps_digests(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.configure("")
    state = project.folder / "out" / "w.movecs"
    state.write_bytes(bytes(100))
    assert project.run("accept").code == 0
    found = project.run("check")
    assert found.code == 0
    assert "by their bytes alone, since no reader knows them: .movecs (1)" in found.out
    state.write_bytes(bytes(101))
    found = project.run("check")
    assert found.code == 3
    assert "--format '*.movecs=READER' (ciwrap.yaml: 'formats')" in found.out
    assert "leave it out with 'exclude', or, if the new bytes are right, accept" in found.out
