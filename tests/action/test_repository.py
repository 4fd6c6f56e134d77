"""Clones of repositories that may be a stranger's: what gets committed, and what cannot happen."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from action.act_runs import commit, git

from ciwrap.action.github import Clone, Runner, read_inputs, safe_branch
from ciwrap.action.orders import golden_dir_below
from ciwrap.action.steps import copy_goldens
from ciwrap.base.errors import ConfigError, RemoteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

RUNNER_KEYS = {"GITHUB_REPOSITORY": "o/r"}


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "server/o/r.git"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "receive.denyCurrentBranch", "ignore")
    (folder / "ciwrap.yaml").write_text("version: 1\nchecks: {mesh: {outputs: out}}\n")
    (folder / "golden").mkdir()
    (folder / "golden/mesh.golden").write_bytes(b"old")
    commit(folder)
    return folder


def runner_of(origin: Path) -> Runner:
    return Runner({**RUNNER_KEYS, "GITHUB_SERVER_URL": f"file://{origin.parents[1]}"})


def clone_of(origin: Path, tmp_path: Path, branch: str = "main") -> Clone:
    return Clone.make(tmp_path / "clone", branch, runner_of(origin), "secret")


def test_goldens_and_nothing_else_are_committed(origin: Path, tmp_path: Path) -> None:
    clone = clone_of(origin, tmp_path)
    (clone.folder / "golden/mesh.golden").write_bytes(b"new")
    (clone.folder / "golden/mesh.golden.yaml").write_bytes(b"new")
    (clone.folder / "golden/run.sh").write_text("id")
    (clone.folder / "other").write_text("x")
    assert clone.commit_goldens([clone.folder / "golden"], "Accept")
    clone.push("topic", runner_of(origin))
    changed = git(origin, "diff", "--name-only", "main", "topic").split()
    assert changed == ["golden/mesh.golden", "golden/mesh.golden.yaml"]
    assert git(origin, "log", "-1", "--format=%an", "topic") == "github-actions[bot]"


def test_no_change_is_no_commit(origin: Path, tmp_path: Path) -> None:
    clone = clone_of(origin, tmp_path)
    assert not clone.commit_goldens([clone.folder / "golden"], "Accept")
    assert clone.head == git(origin, "rev-parse", "main")


def test_the_token_is_nowhere_to_be_read(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = clone_of(origin, tmp_path)
    kept = [p.read_bytes() for p in (clone.folder / ".git").rglob("*") if p.is_file()]
    assert not any(b"secret" in data for data in kept)
    with pytest.raises(RemoteError) as caught:
        clone.git("push", "file:///nowhere/at/all", "HEAD:refs/heads/x")
    assert "secret" not in str(caught.value)


def test_a_branch_that_moved_on_is_not_overwritten(origin: Path, tmp_path: Path) -> None:
    clone = clone_of(origin, tmp_path)
    (origin / "more").write_text("x")
    newest = commit(origin)
    (clone.folder / "golden/mesh.golden").write_bytes(b"new")
    assert clone.commit_goldens([clone.folder / "golden"], "Accept")
    with pytest.raises(RemoteError, match="push failed"):
        clone.push("main", runner_of(origin))
    assert git(origin, "rev-parse", "main") == newest


def test_links_are_checked_out_as_plain_files(origin: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(origin, "rm", "-q", "-r", "golden")
    os.symlink(outside, origin / "golden")  # noqa: PTH211 - as an attacker would
    commit(origin)
    clone = clone_of(origin, tmp_path)
    assert not (clone.folder / "golden").is_symlink()
    assert (clone.folder / "golden").read_text() == str(outside)


def test_hooks_and_filters_of_a_repository_do_not_run(origin: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (origin / ".gitattributes").write_text("* filter=evil\n")
    (origin / ".gitconfig").write_text(f'[filter "evil"]\n\tsmudge = touch {marker}\n')
    (origin / ".githooks").mkdir()
    hook = origin / ".githooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    commit(origin)
    clone = clone_of(origin, tmp_path)
    (clone.folder / "golden/mesh.golden").write_bytes(b"new")
    assert clone.commit_goldens([clone.folder / "golden"], "Accept")
    assert not marker.exists()


@pytest.mark.parametrize("folder", ["..", "../..", "/tmp", "/etc", "golden/../../x"])
def test_folders_outside_are_refused(origin: Path, tmp_path: Path, folder: str) -> None:
    clone = clone_of(origin, tmp_path)
    inputs = read_inputs({"CIWRAP_INPUT_GOLDEN_DIR": folder})
    with pytest.raises(UsageError, match="outside"):
        golden_dir_below(clone.folder, inputs, "")
    with pytest.raises(UsageError, match="outside"):
        clone.commit_goldens([clone.folder / folder], "x")


def test_a_configuration_that_points_outside_is_refused(origin: Path, tmp_path: Path) -> None:
    text = "version: 1\ngolden_dir: ../../x\nchecks: {mesh: {outputs: out}}\n"
    (origin / "ciwrap.yaml").write_text(text)
    commit(origin)
    clone = clone_of(origin, tmp_path)
    with pytest.raises((UsageError, ConfigError)):
        golden_dir_below(clone.folder, read_inputs({}), "")


def test_only_plain_goldens_are_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    (source / "x.golden").write_bytes(b"x")
    (source / "run.sh").write_bytes(b"id")
    os.symlink("/etc/passwd", source / "y.golden")  # noqa: PTH211
    copy_goldens(source, target)
    assert [path.name for path in target.iterdir()] == ["x.golden"]
    (target / "x.golden").unlink()
    victim = tmp_path / "victim"
    victim.write_text("safe")
    os.symlink(victim, target / "x.golden")  # noqa: PTH211
    with pytest.raises(UsageError, match="symbolic link"):
        copy_goldens(source, target)
    assert victim.read_text() == "safe"


@pytest.mark.parametrize(
    "name",
    [
        "", "-x", "--upload-pack=id", "a b", "a..b", "a:b", "a\nb", "$(id)", "`id`", "a;id", 'a"b',
        "refs/heads/../x", "a//b", "a.lock", "/a", "a/", "a^", "a~1", "x" * 300, "ä", "@{u}",
    ],
)  # fmt: skip
def test_branch_names_that_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        safe_branch(name)


@pytest.mark.parametrize("name", ["main", "feature/x-1", "dependabot/pip/a_b-1.2", "v1.2", "a@b"])
def test_branch_names(name: str) -> None:
    assert safe_branch(name) == name


def test_no_filter_of_user_or_system_runs_and_no_token_is_in_reach(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runners have git-lfs in the system's configuration; here a spy is in the user's."""
    seen = tmp_path / "seen"
    home = tmp_path / "home"
    home.mkdir()
    spy = f"sh -c 'env >> {seen}; cat'"
    (home / ".gitconfig").write_text(f'[filter "spy"]\n\tclean = "{spy}"\n\tsmudge = "{spy}"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    (origin / ".gitattributes").write_text("*.golden filter=spy\n")
    commit(origin)
    clone = clone_of(origin, tmp_path)
    (clone.folder / "golden/mesh.golden").write_bytes(b"new")
    assert clone.commit_goldens([clone.folder / "golden"], "Accept")
    clone.push("topic", runner_of(origin))
    assert not seen.exists()


def test_the_token_goes_with_fetch_and_push_to_one_host_alone(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git in the place of git notes what it is given."""
    notes = tmp_path / "notes"
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/git"
    fake.write_text(f'#!/bin/sh\n(echo "CALL $1"; env) >> {notes}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    clone = clone_of(origin, tmp_path)
    (clone.folder / "golden/mesh.golden").write_bytes(b"new")
    assert clone.commit_goldens([clone.folder / "golden"], "Accept")
    clone.push("topic", runner_of(origin))
    calls = notes.read_text().split("CALL ")[1:]
    given = {call.split()[0] for call in calls if "Authorization" in call}
    assert given == {"fetch", "push"}
    keys = {line.partition("=")[2] for call in calls for line in call.splitlines()
            if "extraHeader" in line}  # fmt: skip
    assert keys == {f"http.file://{origin.parents[1]}/.extraHeader"}
