"""Comments on pull requests and orders in them, against a fake API: who may, what is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from action.act_runs import ROOT
from action.fake_github import FakeGithub, artifact
from zips import make_zip

from ciwrap.action.github import Api, Inputs, Runner
from ciwrap.action.orders import MARK, RefusedError, carry_out, comment_on_run, read_order
from ciwrap.base.errors import CiwrapError, RemoteError, UsageError
from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
from ciwrap.report.document import document_text, to_document

if TYPE_CHECKING:
    from pathlib import Path

SHA, OTHER_SHA = "a" * 40, "b" * 40
REPOSITORY = "o/r"
INPUTS = Inputs(mode="comment", workflow="numbers.yml", reason="As reviewed")
HOSTILE = "x</details>|`@everyone` ![](http://evil/x.png) <img src=x> [a](javascript:1)\n::error::y"


def result_bytes(verdict: Verdict, name: str = "temperature") -> bytes:
    variable = (
        VariableResult(name, verdict, differing_count=0 if verdict is Verdict.MATCH else 3)
        if verdict is not Verdict.NOT_COMPARABLE
        else VariableResult(name, verdict, reason="no such thing")
    )
    run = RunResult(verdict, (CheckResult("mesh", verdict, (variable,)),))
    return document_text(to_document(run)).encode()


def zip_of(verdict: Verdict, *, sha: str = SHA, key: str = "", name: str = "temperature") -> bytes:
    meta = json.dumps({"platform_key": key, "sha": sha, "commit": sha}).encode()
    pending = {} if verdict is Verdict.MATCH else {"pending/pending.json": b"{}"}
    return make_zip({"result.json": result_bytes(verdict, name), "meta.json": meta, **pending})


def pull(*, sha: str = SHA, fork: bool = False, branch: str = "topic") -> dict[str, Any]:
    home = "stranger/r" if fork else REPOSITORY
    return {
        "number": 5,
        "state": "open",
        "head": {"sha": sha, "ref": branch, "repo": {"full_name": home}},
    }


def workflow_run(*, sha: str = SHA, fork: bool = False, branch: str = "topic") -> dict[str, Any]:
    return {
        "id": 77,
        "event": "pull_request",
        "head_sha": sha,
        "head_branch": branch,
        "head_repository": {"full_name": "stranger/r" if fork else REPOSITORY},
        "pull_requests": [],
        "path": ".github/workflows/numbers.yml",
        "status": "completed",
    }


def runner_for(folder: Path, event: dict[str, Any]) -> Runner:
    path = folder / "event.json"
    path.write_text(json.dumps(event))
    return Runner({"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_EVENT_PATH": str(path)})


def comment(folder: Path, github: FakeGithub, run: dict[str, Any]) -> str:
    runner = runner_for(folder, {"workflow_run": run})
    return comment_on_run(INPUTS, runner, Api(github.url, "secret"))


def bodies(github: FakeGithub) -> list[str]:
    return [one["body"] for one in github.state["comments"].get("5", [])]


@pytest.mark.parametrize("fork", [False, True])
def test_a_difference_is_commented_on_once(tmp_path: Path, fork: bool) -> None:
    state = {
        "pulls": [pull(fork=fork)],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER))]},
    }
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, workflow_run(fork=fork)) == "differ"
        assert comment(tmp_path, github, workflow_run(fork=fork)) == "differ"
        (body,) = bodies(github)
        assert body.startswith(MARK)
        assert SHA in body
        # Of a fork nothing can be accepted by comment, so it is not offered.
        assert ("/ciwrap accept" in body) is not fork
        assert len(github.written) == 1
        assert all(
            one["token"] in ("", "Bearer secret")
            and (one["token"] == "") == ("/blob/" in one["path"])
            for one in github.state["requests"]
        )


def test_the_comment_follows_the_results(tmp_path: Path) -> None:
    state = {
        "pulls": [pull()],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER))]},
        # Somebody else has written the mark: not ours.
        "comments": {"5": [{"id": 1, "body": MARK, "user": {"login": "eve", "type": "User"}}]},
    }
    with FakeGithub(state) as github:
        comment(tmp_path, github, workflow_run())
        github.state["artifacts"]["77"] = [artifact(2, "ciwrap", zip_of(Verdict.MATCH))]
        assert comment(tmp_path, github, workflow_run()) == "match"
        first, second = bodies(github)
        assert first == MARK
        assert "match" in second
        assert "differ" not in second
        assert [one["method"] for one in github.written] == ["POST", "PATCH"]


WITHOUT_CORE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("ciwrap._core", "numpy", "click"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
from ciwrap.action.__main__ import main
sys.exit(main(["comment"]))
"""


def test_a_comment_takes_nothing_that_has_to_be_built(tmp_path: Path) -> None:
    """The job that comments runs on the action's own checkout, where no core was built."""
    state = {
        "pulls": [pull()],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER))]},
    }
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": {**workflow_run(), "conclusion": "failure"}}))
    with FakeGithub(state) as github:
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_CORE],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GITHUB_REPOSITORY": REPOSITORY,
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_API_URL": github.url,
                "GITHUB_OUTPUT": str(tmp_path / "output"),
                "CIWRAP_INPUT_MODE": "comment",
                "CIWRAP_TOKEN": "secret",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (body,) = bodies(github)
    assert "temperature" in body


def test_a_match_makes_no_noise(tmp_path: Path) -> None:
    state = {
        "pulls": [pull()],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.MATCH))]},
    }
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, workflow_run()) == "match"
        assert github.written == []


@pytest.mark.parametrize(
    "run",
    [
        workflow_run(sha=OTHER_SHA),  # the branch has moved on
        workflow_run(branch="other"),
        {**workflow_run(), "event": "push"},
        {**workflow_run(), "head_sha": "x; rm -rf /"},
        {**workflow_run(), "head_repository": None},
    ],
)
def test_runs_of_no_open_head_are_passed_over(tmp_path: Path, run: dict[str, Any]) -> None:
    state = {
        "pulls": [pull()],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER))]},
    }
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, run) == ""
        assert github.written == []


def test_no_result_at_all_is_told(tmp_path: Path) -> None:
    with FakeGithub({"pulls": [pull()]}) as github:
        assert comment(tmp_path, github, workflow_run()) == "not-comparable"
        assert "0 results found" in bodies(github)[0]


def test_hostile_names_do_nothing_in_a_comment(tmp_path: Path) -> None:
    state = {
        "pulls": [pull(fork=True)],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER, name=HOSTILE))]},
    }
    with FakeGithub(state) as github:
        comment(tmp_path, github, workflow_run(fork=True))
        (body,) = bodies(github)
    for text in ("<img", "</details>", "`@", "@everyone", "](http://evil", "](java", "\n::error"):
        assert text not in body, text


@pytest.mark.parametrize("text", [b"", b"[]", b'{"schema_version": 1}', b"[" * 100_000, b"\xff"])
def test_a_result_that_is_none_is_never_a_match(tmp_path: Path, text: bytes) -> None:
    data = make_zip({"result.json": text, "meta.json": b"{}"})
    state = {"pulls": [pull()], "artifacts": {"77": [artifact(1, "ciwrap", data)]}}
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, workflow_run()) == "error"


def test_a_forged_match_is_an_error(tmp_path: Path) -> None:
    document = json.loads(result_bytes(Verdict.DIFFER))
    document["verdict"], document["exit_code"] = "match", 0
    data = make_zip({"result.json": json.dumps(document).encode(), "meta.json": b"{}"})
    state = {"pulls": [pull()], "artifacts": {"77": [artifact(1, "ciwrap", data)]}}
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, workflow_run()) == "error"


def test_other_artifacts_are_left_alone(tmp_path: Path) -> None:
    state = {
        "pulls": [pull()],
        "artifacts": {
            "77": [
                artifact(1, "wheels", b"no zip"),
                artifact(2, "ciwrap-a", zip_of(Verdict.MATCH, key="a")),
                artifact(3, "ciwrap-b", zip_of(Verdict.DIFFER, key="b")),
                artifact(4, "ciwrap-c", b"no zip", expired=True),
                artifact(5, "ciwrap-../../x", b"no zip"),
            ]
        },
    }
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, workflow_run()) == "differ"
        asked = [one["path"] for one in github.state["requests"] if one["path"].endswith("/zip")]
        assert [path.split("/")[-2] for path in asked] == ["2", "3"]


# --- orders ---------------------------------------------------------------------------------------


def order_event(
    body: str = f"/ciwrap accept {SHA}", *, association: str = "MEMBER", login: str = "ann"
) -> dict[str, Any]:
    return {
        "action": "created",
        "issue": {"number": 5, "pull_request": {"url": "x"}},
        "comment": {"body": body, "author_association": association, "user": {"login": login}},
    }


def test_orders() -> None:
    order = read_order(order_event(f"/ciwrap accept {SHA} mesh/*\nSince it is better."))
    assert order is not None
    assert (order.sha, order.pattern, order.login, order.number) == (SHA, "mesh/*", "ann", 5)


@pytest.mark.parametrize(
    "event",
    [
        order_event("Nice! /ciwrap accept"),
        {**order_event(), "action": "edited"},
        {**order_event(), "issue": {"number": 5}},
        {"action": "created", "issue": {"number": 5, "pull_request": {}}, "comment": None},
    ],
)
def test_what_is_no_order(event: dict[str, Any]) -> None:
    assert read_order(event) is None


@pytest.mark.parametrize(
    "body",
    [
        "/ciwrap", "/ciwrap accept", f"/ciwrap accept {SHA[:12]}", "/ciwrap accept main",
        f"/ciwrap accept {SHA.upper()}", f"/ciwrap accept {SHA} a b", f"/ciwrap accept {SHA} `x`",
        f"/ciwrap accept {SHA};id", f"/ciwrap  accept {SHA}",
    ],
)  # fmt: skip
def test_malformed_orders_are_refused(body: str) -> None:
    with pytest.raises(RefusedError, match="40 digits"):
        read_order(order_event(body))


@pytest.mark.parametrize("association", ["NONE", "CONTRIBUTOR", "FIRST_TIMER", "", None])
def test_strangers_get_neither_goldens_nor_an_answer(
    tmp_path: Path, association: str | None
) -> None:
    event = order_event(association=association)  # type: ignore[arg-type]
    with FakeGithub({"pulls": [pull()], "permissions": {"ann": "admin"}}) as github:
        runner = runner_for(tmp_path, event)
        assert carry_out(INPUTS, runner, Api(github.url, "secret")) is False
        assert github.state["requests"] == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"permissions": {"ann": "read"}}, "write access"),
        ({"permissions": {"ann": "triage"}}, "write access"),
        ({"pulls": [pull(sha=OTHER_SHA)]}, OTHER_SHA),
        ({"pulls": [{**pull(), "state": "closed"}]}, "not open"),
        ({"pulls": [pull(fork=True)]}, "fork"),
        ({"runs": []}, "no run of numbers.yml"),
        ({"runs": [workflow_run(sha=OTHER_SHA)]}, "no run of numbers.yml"),
        ({"runs": [workflow_run(fork=True)]}, "no run of numbers.yml"),
        ({"runs": [{**workflow_run(), "event": "push"}]}, "no run of numbers.yml"),
        ({"runs": [{**workflow_run(), "status": "in_progress"}]}, "not finished"),
        ({"artifacts": {}}, "no pending goldens"),
        (
            {"artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.MATCH))]}},
            "no pending goldens",
        ),
        (
            {"artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER, sha=OTHER_SHA))]}},
            "another commit",
        ),
    ],
)
def test_orders_that_are_refused(tmp_path: Path, state: dict[str, Any], said: str) -> None:
    whole = {
        "permissions": {"ann": "write"},
        "pulls": [pull()],
        "runs": [workflow_run()],
        "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.DIFFER))]},
        **state,
    }
    with FakeGithub(whole) as github:
        runner = runner_for(tmp_path, order_event())
        assert carry_out(INPUTS, runner, Api(github.url, "secret")) is False
        (body,) = bodies(github)
        assert body.startswith("Nothing was accepted")
        assert said in body


def test_a_login_is_no_path(tmp_path: Path) -> None:
    with FakeGithub({"permissions": {}, "pulls": [pull()]}) as github:
        runner = runner_for(tmp_path, order_event(login="../../x?a=b"))
        with pytest.raises(RemoteError):
            carry_out(INPUTS, runner, Api(github.url, "secret"))
        asked = github.state["requests"][0]["path"]
        assert asked == "/repos/o/r/collaborators/..%2F..%2Fx%3Fa%3Db/permission"


# --- the API itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://evil.example", "file:///etc", "ftp://x", "127.0.0.1:80"])
def test_the_token_goes_nowhere_unsafe(url: str) -> None:
    with pytest.raises(UsageError):
        Api.of({"GITHUB_API_URL": url, "CIWRAP_TOKEN": "secret"})


def test_no_token_is_told() -> None:
    with pytest.raises(UsageError, match="token"):
        Api.of({"GITHUB_API_URL": "https://api.github.com"})


def test_refusals_say_what_may_help() -> None:
    with FakeGithub({}) as github, pytest.raises(RemoteError, match=r"404.*permissions"):
        Api(github.url, "secret").get("/repos/o/r/nothing")
    with FakeGithub({}) as github, pytest.raises(CiwrapError, match="more than 1 bytes"):
        Api(github.url, "secret").download("/repos/o/r/pulls", 1)
