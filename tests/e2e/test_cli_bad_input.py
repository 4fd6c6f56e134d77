"""Bad input of every kind: one clear line, the right exit code, nothing written, never a match."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml
from e2e.cli_project import BASE, Outcome, Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def accepted_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("accepted") / "p")
    project.accept()
    return project


@pytest.fixture
def accepted(accepted_once: Project, tmp_path: Path) -> Project:
    """A copy of a project whose outputs have been accepted."""
    return Project(tmp_path / "p", like=accepted_once)


def check_fails(
    project: Project, code: int, *words: str, command: tuple[str, ...] = ("check",)
) -> Outcome:
    """Runs a command that must fail with that code, name every word, and write nothing."""
    before = project.snapshot()
    outcome = project.run(*command)
    assert outcome.code == code, outcome
    said = outcome.out + outcome.err
    for word in words:
        assert word in said, said
    assert project.snapshot() == before
    assert outcome.document["verdict"] == "not_comparable"
    assert outcome.document["exit_code"] == code
    return outcome


# --- files ----------------------------------------------------------------------------------------


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
    check_fails(accepted, 3, "run.log", "exclude")
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


# --- dtypes, shapes, variables
# ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (BASE.astype("f4"), ("float32 (<f4)", "float64 (<f8)")),
        (BASE.astype(">f8"), (">f8", "<f8")),
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
        assert variable["differing_count"] is None
        assert variable["differing_count_at_most"] >= 1


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
        assert outcome.variable("temperature")["verdict"] == "differ"


# --- goldens
# ----------------------------------------------------------------------------------------


def test_a_missing_golden_is_never_made_by_check(project: Project) -> None:
    check_fails(project, 3, "no golden for check 'mesh'", "ciwrap accept mesh")
    assert not (project.folder / "golden").exists()


def test_half_a_golden(accepted: Project) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    text = manifest.read_text()
    manifest.unlink()
    check_fails(accepted, 3, "manifest", "missing")
    manifest.write_text(text)
    accepted.golden.unlink()
    check_fails(accepted, 3, "golden file is missing")
    # Replacing half a golden takes a reason like any other.
    assert accepted.run("accept").code == 2
    accepted.accept("--reason", "lost its binary")
    assert accepted.run("check").code == 0
    assert len(yaml.safe_load(manifest.read_text())["accepted"]) == 2


def test_truncated_golden(accepted: Project) -> None:
    data = accepted.golden.read_bytes()
    for length in (0, 4, 60, 80, 100, len(data) - 1):
        accepted.golden.write_bytes(data[:length])
        check_fails(accepted, 3, "mesh.golden")


def test_bit_flips_in_the_golden(accepted: Project) -> None:
    data = accepted.golden.read_bytes()
    rng = np.random.default_rng(5)
    for position in [0, 8, 20, 33, *rng.integers(80, len(data), 6).tolist()]:
        flipped = bytearray(data)
        flipped[position] ^= 1 << int(rng.integers(8))
        accepted.golden.write_bytes(flipped)
        check_fails(accepted, 3, "mesh.golden")
    accepted.golden.write_bytes(data)
    assert accepted.run("check").code == 0


def with_version(data: bytes, version: int) -> bytes:
    """The file with another version and a header digest that is right."""
    import xxhash

    head = bytearray(data[:64])
    struct.pack_into("<I", head, 8, version)
    return bytes(head) + xxhash.xxh3_128_digest(bytes(head)) + data[80:]


def test_golden_of_a_newer_version(accepted: Project) -> None:
    accepted.golden.write_bytes(with_version(accepted.golden.read_bytes(), 2))
    check_fails(accepted, 3, "newer ciwrap (format 2)")
    # Nobody overwrites what a newer ciwrap made.
    check_fails(accepted, 3, "newer ciwrap", command=("accept", "--reason", "x"))


def test_manifest_of_a_newer_version(accepted: Project) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    manifest.write_text(manifest.read_text().replace("format: 1", "format: 9"))
    check_fails(accepted, 3, "format 9", "update ciwrap")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('dtype: "<f8"', 'dtype: "<f4"'),
        ("shape: [20, 30]", "shape: [30, 20]"),
        ("atol=1e-6", "atol=1e-3"),
        ("evidence: data", "evidence: tree"),
        ("name: temperature", "name: other"),
        ("check: mesh", "check: other"),
        ("file: mesh.golden", "file: other.golden"),
        ("  bytes: ", "  bytes: 1"),
    ],
)
def test_manifest_and_binary_at_odds(accepted: Project, old: str, new: str) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new))
    check_fails(accepted, 3, "mesh.golden")


def test_manifest_of_another_golden(accepted: Project) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    old = manifest.read_text()
    accepted.save("temperature", BASE + 1)
    accepted.accept("--reason", "moved")
    manifest.write_text(old)
    check_fails(accepted, 3, "same commit")


def test_merge_conflict_in_the_manifest(accepted: Project) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    manifest.write_text("<<<<<<< HEAD\n" + manifest.read_text())
    check_fails(accepted, 3, "merge conflict")


def test_git_lfs_pointer(accepted: Project) -> None:
    accepted.golden.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    check_fails(accepted, 3, "git lfs pull")


def test_golden_that_is_no_file(accepted: Project) -> None:
    accepted.golden.unlink()
    accepted.golden.mkdir()
    check_fails(accepted, 3, "mesh.golden")


@pytest.mark.parametrize(
    "bound",
    ["atol: 1e-5", "atol: 1e-7", "atol: 0", "rtol: 1e-6", "ulps: 3", "atol: 1e-6, rtol: 1e-9"],
)
def test_a_golden_made_with_another_bound(accepted: Project, bound: str) -> None:
    accepted.configure(bound=bound)
    outcome = check_fails(accepted, 3, "was made with atol=1e-6", "accept")
    assert outcome.variable("temperature")["verdict"] == "not_comparable"


def test_a_golden_made_with_other_fill_values(accepted: Project) -> None:
    accepted.configure(bound="atol: 1e-6, fill_values: [-999]")
    check_fails(accepted, 3, "fill_values")


# --- usage
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        ("--atol", "-1"),
        ("--atol", "nan"),
        ("--rtol", "inf"),
        ("--ulps", "-3"),
        ("--atol", "x"),
        ("--atol=1", "--ulps=2"),
        ("--frobnicate",),
    ],
)
def test_bounds_and_options_without_meaning(project: Project, option: tuple[str, ...]) -> None:
    outcome = check_fails(project, 2, command=("compare", "out/ids.npy", "out/ids.npy", *option))
    assert len(outcome.error_lines) == 1
    assert outcome.error_lines[0].startswith("error: ")


@pytest.mark.parametrize("bound", ["atol: -1", "atol: .nan", "rtol: .inf", "ulps: -1", "atol: x"])
def test_bounds_without_meaning_in_the_configuration(project: Project, bound: str) -> None:
    project.configure(bound=bound)
    outcome = check_fails(project, 2, "ciwrap.yaml:2", bound[:4])
    assert len(outcome.error_lines) == 1


def test_unknown_keys_name_the_line_and_the_nearest(project: Project) -> None:
    project.configure("    toleranse: 1\n")
    check_fails(project, 2, "ciwrap.yaml:6", "toleranse")
    project.configure("    ignor: [x]\n")
    check_fails(project, 2, "ciwrap.yaml:6", "'ignore'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "mehs"), ("no check 'mehs'", "mesh")),
        (("chekc",), ("no command 'chekc'", "check")),
        (("check", "--config", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run",), ("no command",)),
        (("accept", "--reason", "  "), ("--reason",)),
        (("compare", "out", "out/ids.npy"), ("folder",)),
        (("compare", "out/ids.npy"), ("Missing argument",)),
        (("check", "--threads", "-1"), ("--threads",)),
        (("check", "--engine", "mmap"), ("--engine",)),
    ],
)
def test_wrong_usage(project: Project, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    before = project.snapshot()
    outcome = project.run(*arguments)
    assert outcome.code == 2, outcome
    assert len(outcome.error_lines) == 1
    assert all(word in outcome.err for word in words), outcome.err
    assert project.snapshot() == before


def test_no_configuration(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    (project.folder / ".git").mkdir()
    (project.folder / "ciwrap.yaml").unlink()
    outcome = project.run("check")
    assert outcome.code == 2
    assert "ciwrap init" in outcome.err


def test_an_unknown_backend_is_an_error_not_another_one(accepted: Project) -> None:
    outcome = accepted.run("check", "--backend", "quantum")
    assert outcome.code == 2, outcome
    assert outcome.document["verdict"] == "not_comparable"
    assert "quantum" in outcome.out + outcome.err


def test_everything_ignored_is_no_match(accepted: Project) -> None:
    accepted.configure("    ignore: ['*']\n")
    check_fails(accepted, 3, "nothing was compared")
    check_fails(accepted, 3, "no variables", command=("accept", "--reason", "x"))


def test_missing_sides_of_compare(project: Project) -> None:
    for sides in (("out/no.npy", "out/ids.npy"), ("out/ids.npy", "out/no.npy")):
        check_fails(project, 3, "no.npy", command=("compare", *sides))


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_a_result_that_cannot_be_written_has_been_shown(accepted: Project, option: str) -> None:
    outcome = accepted.run("check", option, "/nowhere/x", json_too=False)
    assert outcome.code == 3
    assert len(outcome.error_lines) == 1
    assert "/nowhere/x: the " in outcome.err
    assert "could not be written" in outcome.err
    assert outcome.out.startswith("match")


def test_names_in_case_variants_do_not_share_a_golden(accepted: Project) -> None:
    path = accepted.folder / "ciwrap.yaml"
    path.write_text(path.read_text().replace("  mesh:", "  MESH:"))
    outcome = accepted.run("accept")
    assert outcome.code == 2
    assert "upper and lower case" in outcome.err
