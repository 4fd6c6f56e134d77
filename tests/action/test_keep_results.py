"""Mode trend with the input store: results go to a branch, and nobody else's are lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from action.act_runs import git
from command_line import call
from e2e.cli_project import environment
from e2e.test_result_store import told
from msgspec.structs import replace

from ciwrap.action import steps
from ciwrap.action.github import Api, Clone, Runner, read_inputs
from ciwrap.base.errors import NotComparableError, RemoteError, UsageError
from ciwrap.report.document import document_text, to_document

if TYPE_CHECKING:
    from pathlib import Path

BRANCH = "ciwrap-results"
API = Api("http://127.0.0.1:1", "secret")


class Job:
    """A job on the main branch, and the server that it pushes to."""

    def __init__(self, folder: Path) -> None:
        self.origin = folder / "server/o/r.git"
        self.origin.mkdir(parents=True)
        git(self.origin, "init", "-q", "--bare", "-b", "main")
        self.work, self.summary = folder / "work", folder / "summary"
        self.work.mkdir()
        (folder / "event").write_text(json.dumps({"repository": {"default_branch": "main"}}))
        self.environment = {
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SERVER_URL": f"file://{folder}/server",
            "GITHUB_WORKSPACE": str(self.work),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_EVENT_PATH": str(folder / "event"),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_REF_NAME": "main",
            "RUNNER_TEMP": str(folder / "temp"),
        }

    def keep(self, number: int, **more: str) -> None:
        """Keeps the result of a commit."""
        result = replace(told(number), seconds=1.0)
        folder = self.work / f"results-{number}"
        folder.mkdir(exist_ok=True)
        (folder / "result.json").write_text(document_text(to_document(result)))
        given = {"MODE": "trend", "STORE": BRANCH, "SOURCE": folder.name, **more}
        inputs = read_inputs({f"CIWRAP_INPUT_{name}": value for name, value in given.items()})
        steps.keep_results(inputs, Runner(self.environment), API)

    @property
    def kept(self) -> list[int]:
        names = git(self.origin, "ls-tree", "-r", "--name-only", BRANCH, "results/").splitlines()
        return [int(name[8:48], 16) for name in names]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    def run_here(words: list[str], *, cwd: Path, env: dict[str, str]) -> int:
        assert "secret" not in "".join(env.values())
        done = call(*words[4:], folder=cwd, environment=environment())
        print(done.stderr)
        return done.returncode

    monkeypatch.setattr(steps, "run_to_the_end", run_here)
    return Job(tmp_path)


def test_results_of_several_commits(job: Job) -> None:
    for number in (1, 2, 3):
        job.keep(number)
    assert job.kept == [1, 2, 3]
    text = job.summary.read_text()
    assert text.count("## ciwrap trend: nothing to warn of in ") == 3
    address = f"{job.environment['GITHUB_SERVER_URL']}/o/r/tree/{BRANCH}"
    assert text.endswith(f"\n[All results on the branch {BRANCH}]({address})\n")
    assert git(job.origin, "log", "-1", "--format=%an", BRANCH) == "github-actions[bot]"
    job.keep(4, ARGUMENTS="--keep 2 --label arm")
    assert job.kept == [3, 4]


def test_another_job_is_faster(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and pushing; then it is done again on what the other one left."""
    others = [2, 3]
    remote = Clone.remote

    def disturbed(clone: Clone, runner: Runner, verb: str, *arguments: str) -> str:
        if verb == "push" and others:
            job.keep(others.pop())
        return remote(clone, runner, verb, *arguments)

    monkeypatch.setattr(Clone, "remote", disturbed)
    job.keep(1)
    assert job.kept == [1, 2, 3]


def test_a_push_that_is_refused(job: Job) -> None:
    """Permissions: nobody else has moved the branch, so it is not tried for ever."""
    job.keep(1)
    hook = job.origin / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(RemoteError, match="git push failed"):
        job.keep(2)
    assert job.kept == [1]


@pytest.mark.parametrize(
    "more",
    [
        {"GITHUB_REF_NAME": "topic"},
        {"GITHUB_EVENT_NAME": "pull_request"},
    ],
)
def test_other_branches_keep_nothing(
    job: Job, more: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    job.environment.update(more)
    job.keep(1)
    assert "nothing is kept: this is not the default branch" in capsys.readouterr().out
    assert git(job.origin, "for-each-ref") == ""


def test_what_cannot_be_kept(job: Job) -> None:
    with pytest.raises(UsageError, match="store is for mode trend"):
        job.keep(1, MODE="check")
    with pytest.raises(UsageError, match="branch name"):
        job.keep(1, STORE="a..b")
    with pytest.raises(NotComparableError, match="kept nothing"):
        job.keep(1, ARGUMENTS="--keep 0")
