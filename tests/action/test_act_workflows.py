"""The workflows to copy, as they are in examples/workflows, under act."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from action.act_runs import ROOT, commit, git
from action.fake_github import artifact
from action.test_comment_and_order import pull, workflow_run
from zips import make_zip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from action.act_runs import Act

EXAMPLES = ROOT / "examples/workflows"


def example(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def zip_of_folder(folder: Path) -> bytes:
    return make_zip(
        {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    )


def test_check(act: Act, project: Callable[..., Path]) -> None:
    run = act.run(project(example("check.yml")))
    assert run.job("check").result == "success"
    assert run.job("check").step("Compare").result == "success"


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
def test_less_is_checked_in_a_pull_request_or_a_merge_queue(
    act: Act, project: Callable[..., Path], event: str
) -> None:
    """All numbers match by a wider bound, and the job fails where it is told to."""
    text = example("check.yml").replace("  pull_request:\n", f"  {event}:\n")
    folder = project(f"{text}        with: {{fail-on-wider: true}}\n")
    base = commit(folder)
    config = folder / "ciwrap.yaml"
    config.write_text(config.read_text().replace("atol: 1e-6", "atol: 10"))
    subprocess.run([sys.executable, "simulate.py"], cwd=folder, check=True)
    accept = [sys.executable, "-m", "ciwrap", "accept", "--reason", "cleanup"]
    subprocess.run(accept, cwd=folder, check=True)
    head = commit(folder)
    payload = {
        "pull_request": {"pull_request": {"head": {"sha": head}, "base": {"sha": base}}},
        "merge_group": {"merge_group": {"head_sha": head, "base_sha": base}},
    }[event]
    job = act.run(folder, event=event, payload=payload).job("check")
    assert job.result == "failure"
    assert job.step("Compare").result == "success"
    assert job.summary.index("2 of them check less") < job.summary.index("All numbers match")
    warnings = [text for kind, _, text in job.annotations if kind == "warning"]
    assert any("atol=1e-6 rtol=0 -> atol=10 rtol=0" in text for text in warnings)


def test_a_pull_request_against_its_base_without_goldens(
    act: Act, project: Callable[..., Path]
) -> None:
    folder = project(example("base.yml"), goldens=False)
    base = commit(folder)
    git(folder, "switch", "-q", "-c", "work")
    program = folder / "simulate.py"
    program.write_text(program.read_text().replace("i / 7", "i / 8"))
    head = commit(folder)
    payload = {
        "pull_request": {
            "number": 5,
            "head": {"sha": head, "ref": "work", "repo": {"full_name": "o/r"}},
            "base": {"sha": base, "ref": "main"},
        }
    }
    run, github = act.run_with_api(folder, {}, event="pull_request", payload=payload)
    job = run.job("compare")
    assert job.result == "failure", job.text
    assert job.step("Compare").result == "success"
    assert job.step("Gate").result == "failure"
    (comment,) = github["comments"]["5"]
    for text in (job.summary, comment["body"]):
        assert "Numbers differ" in text
        assert f"({base[:10]})" in text


def test_matrix_and_merge(
    act: Act, project: Callable[..., Path], golden_files: dict[str, bytes]
) -> None:
    folder = project(example("matrix.yml"), goldens=False)
    for key in ("linux-x64", "linux-arm64"):
        (folder / "golden" / key).mkdir(parents=True)
        for name, data in golden_files.items():
            (folder / "golden" / key / name).write_bytes(data)
    # One platform's goldens are of another program.
    shutil.rmtree(folder / "golden/linux-arm64")
    commit(folder)
    run = act.run(folder)
    # act tells of one result for all legs, so the legs' own steps are asked.
    gates = {leg.matrix["platform-key"]: leg.step("Gate").result for leg in run.jobs["check"]}
    assert gates == {"linux-x64": "success", "linux-arm64": "failure"}
    merged = run.job("report")
    assert merged.result == "failure"
    assert "Not everything could be compared" in merged.summary
    assert sorted(one.name for one in act.artifacts.iterdir()) == [
        "ciwrap-linux-arm64", "ciwrap-linux-x64", "report",
    ]  # fmt: skip
    document = json.loads((act.artifacts / "report/result.json").read_text())
    assert sorted(check["verdict"] for check in document["checks"]) == ["match", "not_comparable"]


def test_merge_misses_a_job_that_left_nothing(
    act: Act, project: Callable[..., Path], golden_files: dict[str, bytes]
) -> None:
    # The second job ends before it comes to ciwrap.
    text = example("matrix.yml").replace(
        "      - uses: YOUR_ORGANISATION/ciwrap@v1\n        with:\n          platform-key",
        "      - if: ${{ matrix.platform-key == 'linux-arm64' }}\n        run: exit 1\n"
        "      - uses: YOUR_ORGANISATION/ciwrap@v1\n        with:\n          platform-key",
    )
    folder = project(text, goldens=False)
    (folder / "golden/linux-x64").mkdir(parents=True)
    for name, data in golden_files.items():
        (folder / "golden/linux-x64" / name).write_bytes(data)
    commit(folder)
    run = act.run(folder)
    merged = run.job("report")
    assert merged.result == "failure"
    assert "1 result found, 2 expected" in merged.summary


@pytest.mark.parametrize(("shift", "result"), [("0", "success"), ("$RANDOM", "failure")])
def test_run_to_run(act: Act, project: Callable[..., Path], shift: str, result: str) -> None:
    config = (
        "version: 1\ndefaults: {atol: 1e-6}\nchecks: {mesh: {outputs: out}}\n"
        f"run: bash -c 'python3 simulate.py {shift}'\n"
    )
    folder = project(example("nightly.yml"), goldens=False, **{"ciwrap.yaml": config})
    run = act.run(folder, event="workflow_dispatch")
    assert run.job("twice").result == result
    assert not (folder / "golden").exists()


def test_noise(act: Act, project: Callable[..., Path]) -> None:
    """The job that repeats; the others need SciPy, which no runner of ours can install."""
    config = (
        "version: 1\ndefaults: {atol: 1e-6}\nchecks: {mesh: {outputs: out}}\n"
        "run: bash -c 'python3 simulate.py $RANDOM'\n"
    )
    folder = project(example("noise.yml"), goldens=False, **{"ciwrap.yaml": config})
    run = act.run(folder, "-j", "noise", event="workflow_dispatch")
    assert run.job("noise").result == "failure"
    assert "## ciwrap repeat: 10 runs" in run.job("noise").summary
    assert "| mesh:" in run.job("noise").summary


def test_store(act: Act, project: Callable[..., Path]) -> None:
    """Two commits, the second of which differs; a branch of another name keeps nothing."""
    folder = project(example("store.yml"))
    bare = served(act, folder, "other")
    payload = {"repository": {"default_branch": "main"}}
    commits = [git(folder, "rev-parse", "HEAD")]
    run = act.run(folder, event="push", payload={**payload, "ref": "refs/heads/main"})
    assert run.job("keep").result == "success", run.log[-3000:]
    address = f"({act.server.as_uri()}/o/r/tree/ciwrap-results)"
    assert f"[All results on the branch ciwrap-results]{address}" in run.job("keep").summary
    text = (folder / "ciwrap.yaml").read_text().replace("simulate.py", "simulate.py 0.5")
    (folder / "ciwrap.yaml").write_text(text)
    commits.append(commit(folder))
    run = act.run(folder, event="push", payload={**payload, "ref": "refs/heads/main"})
    assert [run.job(name).result for name in ("check", "keep")] == ["failure", "success"]
    names = git(bare, "ls-tree", "-r", "--name-only", "ciwrap-results").splitlines()
    assert names == ["README.md", *sorted(f"results/{one}.json" for one in commits)]
    page = git(bare, "show", "ciwrap-results:README.md")
    assert "| mesh | 1 of 2 results matches; differ since " in page
    assert git(bare, "log", "-1", "--format=%an", "ciwrap-results") == "github-actions[bot]"
    tip = git(bare, "rev-parse", "ciwrap-results")
    payload = {"repository": {"default_branch": "trunk"}, "ref": "refs/heads/main"}
    run = act.run(folder, event="push", payload=payload)
    assert run.job("keep").result == "success"
    assert git(bare, "rev-parse", "ciwrap-results") == tip


# --- comment --------------------------------------------------------------------------------------


def failing_artifact(
    act: Act, project: Callable[..., Path], shift: str = "0.5"
) -> tuple[Path, bytes]:
    """A project whose check differs, and the artifact that its run has uploaded."""
    folder = project(example("check.yml"))
    text = (folder / "ciwrap.yaml").read_text().replace("simulate.py", f"simulate.py {shift}")
    (folder / "ciwrap.yaml").write_text(text)
    sha = commit(folder)
    payload = {"pull_request": {"head": {"sha": sha}}}
    run = act.run(folder, event="pull_request", payload=payload)
    assert run.job("check").result == "failure"
    assert json.loads((act.artifacts / "ciwrap/meta.json").read_text())["sha"] == sha
    return folder, zip_of_folder(act.artifacts / "ciwrap")


@pytest.mark.parametrize("fork", [False, True])
def test_comment(act: Act, project: Callable[..., Path], fork: bool) -> None:
    folder, data = failing_artifact(act, project)
    sha = git(folder, "rev-parse", "HEAD")
    (folder / ".github/workflows/ciwrap.yml").write_text(example("comment.yml"))
    commit(folder)
    state: dict[str, Any] = {
        "pulls": [pull(sha=sha, fork=fork)],
        "artifacts": {"77": [artifact(1, "ciwrap", data)]},
    }
    payload = {"action": "completed", "workflow_run": workflow_run(sha=sha, fork=fork)}
    run, after = act.run_with_api(folder, state, event="workflow_run", payload=payload)
    assert run.job("comment").result == "success", run.log[-3000:]
    (comment,) = after["comments"]["5"]
    assert "temperature" in comment["body"]
    assert sha in comment["body"]
    again, later = act.run_with_api(folder, after, event="workflow_run", payload=payload)
    assert again.job("comment").result == "success"
    assert later["comments"] == after["comments"]
    assert [r["method"] for r in later["requests"]].count("POST") == 1


# --- accept and refresh ---------------------------------------------------------------------------


def served(act: Act, folder: Path, branch: str) -> Path:
    """A bare repository where GitHub's would be, with the project's HEAD on main and a branch."""
    bare = act.server / "o/r.git"
    shutil.rmtree(bare, ignore_errors=True)
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare", "-b", "main")
    git(folder, "push", "-q", str(bare), "HEAD:refs/heads/main", f"HEAD:refs/heads/{branch}")
    return bare


def order_state(sha: str, data: bytes) -> dict[str, Any]:
    return {
        "permissions": {"ann": "write"},
        "pulls": [pull(sha=sha)],
        "runs": [workflow_run(sha=sha) | {"path": ".github/workflows/check.yml"}],
        "artifacts": {"77": [artifact(1, "ciwrap", data)]},
    }


def order_payload(sha: str, pattern: str = "") -> dict[str, Any]:
    body = f"/ciwrap accept {sha} {pattern}".strip() + " -- As reviewed"
    return {
        "action": "created",
        "issue": {"number": 5, "pull_request": {"url": "x"}},
        "comment": {"body": body, "author_association": "MEMBER", "user": {"login": "ann"}},
    }


def test_accept_by_comment(act: Act, project: Callable[..., Path]) -> None:
    folder, data = failing_artifact(act, project)
    sha = git(folder, "rev-parse", "HEAD")
    bare = served(act, folder, "topic")
    (folder / ".github/workflows/ciwrap.yml").write_text(example("accept.yml"))
    commit(folder)
    run, after = act.run_with_api(
        folder, order_state(sha, data), event="issue_comment", payload=order_payload(sha)
    )
    assert run.job("accept").result == "success", run.log[-3000:]
    (comment,) = after["comments"]["5"]
    new = git(bare, "rev-parse", "topic")
    assert comment["body"].startswith(f"Accepted in {new}")
    assert git(bare, "rev-parse", "topic^") == sha
    assert git(bare, "rev-parse", "main") == sha
    changed = git(bare, "diff", "--name-only", sha, new).split()
    assert changed == ["golden/mesh.golden", "golden/mesh.golden.yaml"]
    assert "Accepted by @ann on #5" in git(bare, "show", "topic:golden/mesh.golden.yaml")
    assert "secret" not in run.log.replace("***", "")

    # With these goldens the same program matches.
    (folder / ".github/workflows/ciwrap.yml").write_text(example("check.yml"))
    git(folder, "fetch", "-q", str(bare), "topic")
    git(folder, "checkout", "-q", "FETCH_HEAD", "--", "golden")
    commit(folder)
    assert act.run(folder).job("check").result == "success"

    # The same order once more: the head has moved on.
    (folder / ".github/workflows/ciwrap.yml").write_text(example("accept.yml"))
    commit(folder)
    state = {**after, "pulls": [pull(sha=new)]}
    _, later = act.run_with_api(folder, state, event="issue_comment", payload=order_payload(sha))
    assert new in later["comments"]["5"][-1]["body"]
    assert git(bare, "rev-parse", "topic") == new


def test_refresh(act: Act, project: Callable[..., Path]) -> None:
    folder = project(example("refresh.yml"))
    text = (folder / "ciwrap.yaml").read_text().replace("simulate.py", "simulate.py 0.5")
    (folder / "ciwrap.yaml").write_text(text)
    sha = commit(folder)
    bare = served(act, folder, "other")
    payload = {"inputs": {"reason": "Better `physics` @all $(id)", "pattern": ""}}
    run, after = act.run_with_api(folder, {}, event="workflow_dispatch", payload=payload)
    assert run.job("candidates").step("Gate").result == "success", run.log[-3000:]
    assert run.job("pull-request").result == "success", run.log[-3000:]
    (made,) = after["pulls"]
    assert made["head"]["ref"] == "ciwrap/refresh-main"
    assert made["base"]["ref"] == "main"
    assert "temperature" in made["body"]
    assert "@all" not in made["body"]
    branch = "ciwrap/refresh-main"
    assert git(bare, "rev-parse", f"{branch}^") == git(bare, "rev-parse", "main") == sha
    changed = git(bare, "diff", "--name-only", "main", branch).split()
    assert changed == ["golden/mesh.golden", "golden/mesh.golden.yaml"]

    # Once more: the same branch and the same pull request.
    shutil.rmtree(act.artifacts)
    act.artifacts.mkdir()
    run, later = act.run_with_api(folder, after, event="workflow_dispatch", payload=payload)
    assert run.job("pull-request").result == "success"
    assert [one["number"] for one in later["pulls"]] == [made["number"]]
    assert git(bare, "rev-parse", f"{branch}^") == sha


def two_platforms(
    act: Act,
    project: Callable[..., Path],
    golden_files: dict[str, bytes],
    program: str,
) -> tuple[Path, Path]:
    """A project with goldens of the first platform alone, and its bare repository."""
    folder = project(example("refresh-matrix.yml"), goldens=False)
    (folder / "golden/linux-x64").mkdir(parents=True)
    for name, data in golden_files.items():
        (folder / "golden/linux-x64" / name).write_bytes(data)
    text = (folder / "ciwrap.yaml").read_text().replace("python3 simulate.py", program)
    (folder / "ciwrap.yaml").write_text(text)
    commit(folder)
    return folder, served(act, folder, "other")


def test_refresh_of_two_platforms(
    act: Act, project: Callable[..., Path], golden_files: dict[str, bytes]
) -> None:
    """One replaces its goldens, the other one makes its first."""
    folder, bare = two_platforms(act, project, golden_files, "python3 simulate.py 0.5")
    payload = {"inputs": {"reason": "Better physics", "pattern": ""}}
    run, after = act.run_with_api(folder, {}, event="workflow_dispatch", payload=payload)
    assert len(run.jobs["candidates"]) == 2
    assert run.job("pull-request").result == "success", run.log[-3000:]
    (made,) = after["pulls"]
    branch = "ciwrap/refresh-main"
    changed = git(bare, "diff", "--name-status", "main", branch).split()
    assert dict(zip(changed[1::2], changed[::2], strict=True)) == {
        f"golden/{platform}/mesh.golden{suffix}": status
        for platform, status in (("linux-x64", "M"), ("linux-arm64", "A"))
        for suffix in ("", ".yaml")
    }
    for platform, word in (("linux-x64", "replaced"), ("linux-arm64", "created")):
        assert f"**{platform}/mesh**: {word}" in made["body"].replace("&#45;", "-")
        manifest = git(bare, "show", f"{branch}:golden/{platform}/mesh.golden.yaml")
        assert "Better physics" in manifest

    # With these goldens both platforms match.
    git(folder, "fetch", "-q", str(bare), branch)
    git(folder, "checkout", "-q", "FETCH_HEAD", "--", "golden")
    (folder / ".github/workflows/ciwrap.yml").write_text(example("matrix.yml"))
    commit(folder)
    assert act.run(folder).job("report").result == "success"


def test_refresh_of_two_platforms_one_of_which_fails(
    act: Act, project: Callable[..., Path], golden_files: dict[str, bytes]
) -> None:
    folder, bare = two_platforms(act, project, golden_files, "python3 simulate.py 0.5")
    text = example("refresh-matrix.yml").replace(
        "          platform-key: ${{ matrix.platform-key }}\n",
        "          platform-key: ${{ matrix.platform-key }}\n"
        "          run: python3 simulate.py ${{ matrix.shift }}\n",
    )
    text = text.replace("platform-key: linux-x64", "platform-key: linux-x64\n            shift: 1")
    text = text.replace(
        "platform-key: linux-arm64", "platform-key: linux-arm64\n            shift: nonsense"
    )
    (folder / ".github/workflows/ciwrap.yml").write_text(text)
    commit(folder)
    payload = {"inputs": {"reason": "x", "pattern": ""}}
    run, after = act.run_with_api(folder, {}, event="workflow_dispatch", payload=payload)
    assert after.get("pulls", []) == []
    assert git(bare, "branch", "--list", "ciwrap/*") == ""
    assert "shift" in run.jobs["candidates"][0].matrix


def test_refresh_of_a_program_that_fails_writes_nothing(
    act: Act, project: Callable[..., Path]
) -> None:
    folder = project(example("refresh.yml"))
    text = (folder / "ciwrap.yaml").read_text().replace("simulate.py", "simulate.py nonsense")
    (folder / "ciwrap.yaml").write_text(text)
    commit(folder)
    bare = served(act, folder, "other")
    payload = {"inputs": {"reason": "x", "pattern": ""}}
    _, after = act.run_with_api(folder, {}, event="workflow_dispatch", payload=payload)
    assert after.get("pulls", []) == []
    assert git(bare, "branch", "--list", "ciwrap/*") == ""
