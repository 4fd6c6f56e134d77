"""Pending goldens of somebody else: what is accepted from an artifact, and what is refused."""

from __future__ import annotations

import os
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest
from plugin.review_suite import manifest, write

if TYPE_CHECKING:
    from pathlib import Path

    from plugin.conftest import Suite


def packed(suite: Suite, name: str = "run.zip", prefix: str = "") -> Path:
    path = suite.root / name
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in suite.files(".ciwrap/pending").items():
            archive.writestr(prefix + inner, data)
    return path


@pytest.mark.parametrize("prefix", ["", "pending/", "run/.ciwrap/pending/"])
def test_accept_from_an_artifact(changed: Suite, prefix: str) -> None:
    packed(changed, prefix=prefix)
    with zipfile.ZipFile(changed.root / "run.zip", "a") as archive:
        if prefix:
            archive.writestr("report.html", "beside it")
    shutil.rmtree(changed.root / ".ciwrap")
    done = changed.cli("accept", "--from", "run.zip", "tests/test_it.py::test_b", "-m", "CI's")
    assert done.returncode == 0, done.stderr
    assert manifest(changed, "test_b")["accepted"][-1]["why"] == "CI's"
    changed.run().assert_outcomes(passed=1, failed=1)
    assert changed.cli("accept", "--from", "run.zip", "-m", "all").returncode == 0
    changed.run().assert_outcomes(passed=2)


def test_accept_from_a_folder(changed: Suite) -> None:
    (changed.root / ".ciwrap/pending").rename(changed.root / "download")
    done = changed.cli("accept", "--from", "download", "-m", "all")
    assert done.returncode == 0, done.stderr
    changed.run().assert_outcomes(passed=2)
    assert (changed.root / "download/pending.json").exists()


def refused(suite: Suite, source: str, *more: str) -> str:
    before = suite.files("golden")
    outside = sorted(path.name for path in suite.root.parent.iterdir())
    done = suite.cli("accept", "--from", source, "-m", "x", *more)
    assert done.returncode == 3, done.stdout + done.stderr
    assert suite.files("golden") == before
    assert sorted(path.name for path in suite.root.parent.iterdir()) == outside
    assert "/ciwrap-" not in done.stderr  # the copy that nobody else has seen
    return done.stderr


EVIL_NAMES = {
    "../evil.golden": "is not a path that can be taken over",
    "tests\\..\\evil.golden": "is not a path that can be taken over",
    "evil.py": "is not a file of a pending golden",
    "tests/test_it/.gitattributes": "is not a file of a pending golden",
    "other/pending.json": "holds 2 pending.json",
}


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_paths_in_an_artifact(changed: Suite, name: str) -> None:
    with zipfile.ZipFile(packed(changed), "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"data")
    error = refused(changed, "run.zip")
    assert "run.zip: " in error
    assert EVIL_NAMES[name] in error


def test_links_in_an_artifact(changed: Suite) -> None:
    with zipfile.ZipFile(packed(changed), "a") as archive:
        info = zipfile.ZipInfo("tests/test_it/evil.golden")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert "is a link" in refused(changed, "run.zip")
    (changed.root / ".ciwrap/pending/tests/link.golden").symlink_to("/etc/passwd")
    assert "is a link" in refused(changed, ".ciwrap/pending")


def test_bombs(changed: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    from ciwrap.base import archive
    from ciwrap.base.errors import FileLimitError
    from ciwrap.review import artifact as pending_artifact

    with zipfile.ZipFile(packed(changed), "a", zipfile.ZIP_DEFLATED) as run:
        run.writestr("tests/test_it/bomb.golden", bytes(50_000_000))
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    with (
        pytest.raises(FileLimitError, match="is too large"),
        pending_artifact.opened(changed.root / "run.zip"),
    ):
        pass
    monkeypatch.setattr(archive, "MOST_FILES", 1)
    for source in ("run.zip", ".ciwrap/pending"):
        with (
            pytest.raises(FileLimitError, match="more than 1 file"),
            pending_artifact.opened(changed.root / source),
        ):
            pass


def test_no_archive_at_all(changed: Suite) -> None:
    path = changed.root / "run.zip"
    path.write_bytes(b"PK\x03\x04 nothing of the kind")
    assert "is not a .zip that can be read" in refused(changed, "run.zip")
    whole = packed(changed).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(changed, "run.zip")
    middle = bytearray(whole)
    middle[whole.index(b"pending.json") + 30] ^= 0xFF
    path.write_bytes(bytes(middle))
    refused(changed, "run.zip")
    assert "nowhere.zip: cannot be read: No such file" in refused(changed, "nowhere.zip")
    os.mkfifo(changed.root / "pipe")
    assert "neither a folder nor a file" in refused(changed, "pipe")
    (changed.root / "empty").mkdir()
    assert "holds no pending.json" in refused(changed, "empty")


def test_what_is_damaged_is_named_as_in_the_artifact(changed: Suite) -> None:
    (changed.root / ".ciwrap/pending/pending.json").write_text("[]")
    packed(changed)
    shutil.rmtree(changed.root / ".ciwrap")
    assert "run.zip/pending.json: is not a list of pending goldens" in refused(changed, "run.zip")


def test_an_artifact_of_another_commit(changed: Suite) -> None:
    packed(changed)
    made_from = changed.git("rev-parse", "HEAD")
    changed.git("commit", "-qam", "second")
    error = refused(changed, "run.zip")
    assert "was made from commit" in error
    assert made_from in error
    assert "checked out here is" in error
    refused(changed, "run.zip", "--commit", "0" * 40)
    error = refused(changed, "run.zip", "--commit", "HEAD~1")
    assert ", --commit HEAD~1 is not the beginning of that" in error
    assert "checked out here" not in error
    refused(changed, "run.zip", "--commit", made_from[:4])
    done = changed.cli("accept", "--from", "run.zip", "-m", "x", "--commit", made_from[:10])
    assert done.returncode == 0, done.stderr


def test_an_artifact_of_another_golden(changed: Suite) -> None:
    packed(changed)
    assert changed.cli("accept", "--pending", "-m", "first").returncode == 0
    write(changed, 7.5, 7.5)
    changed.run("--ciwrap-update=failed", "--ciwrap-reason=second")
    assert "has changed since this one was made" in refused(changed, "run.zip")


def test_an_artifact_that_widens_a_bound(suite: Suite) -> None:
    write(suite)
    suite.run("--ciwrap-update=new")
    write(suite, 2e3, bound=1e3)
    suite.run().assert_outcomes(passed=1, failed=1)
    packed(suite)
    assert "widens a bound: atol=0.001 rtol=0 -> atol=1000 rtol=0" in refused(suite, "run.zip")
    assert suite.cli("accept", "--from", "run.zip", "-m", "x", "--allow-wider").returncode == 0
    # The test asks for its own bound all the same.
    write(suite, 2e3 + 1)
    suite.run().assert_outcomes(passed=1, failed=1)


def test_an_artifact_for_another_folder(changed: Suite) -> None:
    index = changed.root / ".ciwrap/pending/pending.json"
    index.write_text(index.read_text().replace('"golden_dir": "golden"', '"golden_dir": "src"'))
    packed(changed)
    assert "lie in 'golden'" in refused(changed, "run.zip", "--golden-dir", "golden")
    index.write_text("[]")
    assert "is not a list of pending goldens: it must be a mapping" in refused(
        changed, ".ciwrap/pending"
    )


def test_a_pending_folder_does_not_lead_out_of_the_project(changed: Suite) -> None:
    index = changed.root / ".ciwrap/pending/pending.json"
    index.write_text(index.read_text().replace('"golden_dir": "golden"', '"golden_dir": "../x"'))
    done = changed.cli("accept", "--pending", "-m", "x")
    assert done.returncode == 2
    assert "must lie in the project's" in done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("equal_nan=False", ""),
        ("", "fill_values=[7.0]"),
        ("fill_values=[1e20]", "fill_values=[7.0]"),
    ],
)
def test_an_artifact_that_lets_more_pass_beside_its_bound(
    suite: Suite, before: str, after: str
) -> None:
    text = "def test_it(ciwrap): ciwrap.check(np.arange(9.0), {})"
    suite.write(text.format(before))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(text.format(after).replace("9.0", "8.0"))
    suite.run().assert_outcomes(failed=1)
    packed(suite)
    assert "widens a bound: " in refused(suite, "run.zip")
    assert suite.cli("accept", "--from", "run.zip", "-m", "x", "--allow-wider").returncode == 0
