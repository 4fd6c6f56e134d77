"""Goldens and manifests that are missing, damaged, newer or at odds: told of, never written."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
import yaml
from e2e.cli_project import BASE, Project, check_fails


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
    accepted.golden.write_bytes(with_version(accepted.golden.read_bytes(), 3))
    check_fails(accepted, 3, "newer ciwrap (format 3)")
    # Nobody overwrites what a newer ciwrap made.
    check_fails(accepted, 3, "newer ciwrap", command=("accept", "--reason", "x"))


def test_manifest_of_a_newer_version(accepted: Project) -> None:
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    manifest.write_text(manifest.read_text().replace("format: 3", "format: 9"))
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


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 900\n"


@pytest.mark.parametrize("suffix", ["", ".yaml"], ids=["binary", "manifest"])
@pytest.mark.parametrize("options", [(), ("--force",), ("--dry-run",), ("--pending",)])
def test_a_pointer_of_git_lfs_is_not_replaced(
    accepted: Project, suffix: str, options: tuple[str, ...]
) -> None:
    """The golden is there for those who fetch it, and so is its history."""
    accepted.save("temperature", BASE + 1)
    accepted.run("check", "--pending")
    accepted.golden.with_name(f"mesh.golden{suffix}").write_text(POINTER)
    before = accepted.snapshot()
    outcome = accepted.run("accept", "--reason", "x", *options, json_too=False)
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert f"golden/mesh.golden{suffix}: is a pointer of Git LFS" in line
    assert "git lfs pull" in line
    assert accepted.snapshot() == before
    # Nor does what cannot be accepted wait.
    outcome = accepted.run("check", "--pending")
    assert "git lfs pull" in outcome.out
    assert accepted.run("accept", "--pending").out == "nothing waits for review\n"


def test_a_manifest_with_a_merge_in_it_is_not_replaced(accepted: Project) -> None:
    """Of its two sides somebody has to take one; both say who accepted what."""
    manifest = accepted.golden.with_name("mesh.golden.yaml")
    lines = manifest.read_text().splitlines()
    manifest.write_text("\n".join([*lines, "<<<<<<< a", "=======", ">>>>>>> b", ""]))
    accepted.save("temperature", BASE + 1)
    before = accepted.snapshot()
    outcome = accepted.run("accept", "--reason", "x", json_too=False)
    assert (outcome.code, len(outcome.error_lines)) == (3, 1)
    assert "take both files of one side of the merge" in outcome.err
    assert accepted.snapshot() == before


def test_what_waits_may_be_the_golden_that_is_there(accepted: Project) -> None:
    """Accepted from the outputs meanwhile: then no outputs are read, and none are spoken of."""
    accepted.save("temperature", BASE + 1)
    accepted.run("check", "--pending")
    accepted.accept("--reason", "moved")
    accepted.save("temperature", BASE + 2)
    done = accepted.run("accept", "--pending")
    assert done.code == 0
    assert "identical to the existing golden, byte for byte" in done.out
    assert "outputs" not in done.out


def test_golden_that_is_no_file(accepted: Project) -> None:
    accepted.golden.unlink()
    accepted.golden.mkdir()
    check_fails(accepted, 3, "mesh.golden")


@pytest.mark.parametrize(
    "bound",
    ["atol: 1e-5", "atol: 1e-7", "atol: 0", "rtol: 1e-6", "ulps: 3", "atol: 1e-6, rtol: 1e-9"],
)
def test_a_golden_made_with_another_bound(accepted: Project, bound: str) -> None:
    """Its data decide by the bound that is asked for now, and it stays as it is."""
    before = accepted.golden.read_bytes()
    accepted.configure(bound=bound)
    done = accepted.run("check")
    assert done.code == 0
    assert "temperature: the golden was made with atol=1e-6 rtol=0; judged by" in done.out
    assert done.variable("temperature")["golden_bound"] == "atol=1e-6 rtol=0"
    assert accepted.golden.read_bytes() == before


@pytest.mark.parametrize("more", ["fill_values: [-999]", "equal_nan: false"])
def test_a_golden_without_data_made_with_other_settings(project: Project, more: str) -> None:
    project.configure(bound="atol: 1e-6, evidence: residues")
    project.accept()
    project.configure(bound=f"atol: 1e-6, evidence: residues, {more}")
    outcome = check_fails(project, 3, "is asked for, and it keeps its residues alone", "accept")
    assert outcome.variable("temperature")["verdict"] == "not_comparable"


def test_the_advice_to_widen_the_bound_ends_in_a_match(accepted: Project) -> None:
    """Followed literally, it lets this difference pass and no larger one."""
    before = accepted.golden.read_bytes()
    accepted.save("temperature", BASE + 5e-5 * np.sin(np.arange(600.0)).reshape(20, 30))
    done = accepted.run("check")
    assert done.code == 1
    found = re.search(r"if that much does not matter: (atol: \S+)", done.out)
    assert found is not None, done.out
    accepted.configure(bound=found[1])
    assert accepted.run("check").code == 0
    accepted.save("temperature", BASE + 2e-4 * np.sin(np.arange(600.0)).reshape(20, 30))
    assert accepted.run("check").code == 1
    assert accepted.golden.read_bytes() == before


def test_a_golden_of_a_later_release_is_not_replaced(project: Project) -> None:
    """Its history would be lost, and whoever has that release could not tell why."""
    project.accept()
    path = project.folder / "golden/mesh.golden.yaml"
    path.write_text(re.sub(r"^format: \d+$", "format: 99", path.read_text(), flags=re.MULTILINE))
    before = path.read_bytes()
    project.save("temperature", BASE + 1)
    outcome = project.run("check")
    assert outcome.code == 3
    assert "format 99" in outcome.out
    assert "make the golden anew" not in outcome.out
    for options in ((), ("--force",), ("--dry-run",)):
        outcome = project.run("accept", "--reason", "x", *options)
        assert outcome.code == 3
        assert "update ciwrap" in outcome.err
    assert path.read_bytes() == before


def test_a_manifest_that_git_lfs_has_not_fetched_is_called_so(project: Project) -> None:
    project.accept()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 900\n"
    (project.folder / "golden/mesh.golden.yaml").write_text(pointer)
    outcome = project.run("check")
    assert outcome.code == 3
    assert "mesh.golden.yaml: is a pointer of Git LFS" in outcome.out
    assert "git lfs pull" in outcome.out
