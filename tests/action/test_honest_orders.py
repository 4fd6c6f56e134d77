"""Comments, orders and refreshes on real projects: none tells or does more than its run did."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from action.act_runs import git
from action.fake_github import FakeGithub, artifact
from action.test_comment_and_order import (
    SHA,
    bodies,
    comment,
    order_event,
    pull,
    result_bytes,
    runner_for,
    workflow_run,
    zip_of,
)
from zips import make_zip

from ciwrap.action.github import Api, Inputs, Runner, read_inputs
from ciwrap.action.orders import RefusedError, carry_out, read_order
from ciwrap.action.steps import body_of
from ciwrap.base.errors import CiwrapError, UsageError
from ciwrap.cli.main import run as ciwrap
from ciwrap.model import Verdict
from ciwrap.report.markdown import escaped

if TYPE_CHECKING:
    from action.gate_project import Project

# --- names of artifacts ---------------------------------------------------------------------------


def test_each_configuration_has_an_artifact_of_its_own() -> None:
    def name(**given: str) -> str:
        return read_inputs({f"CIWRAP_INPUT_{k.upper()}": v for k, v in given.items()}).artifact_name

    assert name() == name(config="ciwrap.yaml") == "ciwrap"
    assert name(config="a/ciwrap.yaml") == "ciwrap-a"
    assert name(config="a/b.yaml") == "ciwrap-a-b.yaml"
    assert name(config="a/ciwrap.yaml", platform_key="arm") == "ciwrap-arm-a"
    long = [name(config=f"{'x' * 200}{end}/ciwrap.yaml") for end in "ab"]
    assert len(set(long)) == 2
    odd = [name(config=f"{one}/ciwrap.yaml") for one in ("é", "ü", "a b", "a  b", "../a", "a,b")]
    assert len({*odd, "ciwrap", "ciwrap-a", "ciwrap-a-b"}) == len(odd) + 3
    assert name(config="./ciwrap.yaml") == "ciwrap"
    assert name(config="../up/ciwrap.yaml", artifact_name="own") == "own"


# --- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out"])
def test_a_comment_is_never_better_than_its_run(tmp_path: Path, conclusion: str) -> None:
    state = {"pulls": [pull()], "artifacts": {"77": [artifact(1, "ciwrap", zip_of(Verdict.MATCH))]}}
    with FakeGithub(state) as github:
        run = {**workflow_run(), "conclusion": conclusion}
        assert comment(tmp_path, github, run) == "error"
        (body,) = bodies(github)
        assert escaped(conclusion) in body
        assert "match" not in body.partition("the results that were uploaded match")[2]
        assert "ended with" in body
        assert comment(tmp_path, github, {**run, "conclusion": "success"}) == "match"


def test_a_comment_tells_what_is_checked_otherwise_though_all_matches(tmp_path: Path) -> None:
    change = {
        "check": "x`@all", "variable": "v</td>", "what": "bound", "text": "atol=1 -> atol=9",
        "wider": True,
    }  # fmt: skip
    document = {"schema_version": 1, "kind": "changes", "base": SHA, "changes": [change]}
    meta = json.dumps({"platform_key": "", "sha": SHA, "commit": SHA}).encode()
    files = {
        "result.json": result_bytes(Verdict.MATCH),
        "meta.json": meta,
        "changes.json": json.dumps(document).encode(),
    }
    state = {"pulls": [pull()], "artifacts": {"77": [artifact(1, "ciwrap", make_zip(files))]}}
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, {**workflow_run(), "conclusion": "success"}) == "match"
        (body,) = bodies(github)
    assert body.index("**WIDER**") < body.index("All numbers match")
    assert "@all" not in body
    assert "</td>" not in body


def test_a_comment_tells_that_a_result_does_not_tell(tmp_path: Path) -> None:
    meta = json.dumps({"platform_key": "", "sha": SHA, "commit": SHA}).encode()
    files = {"result.json": result_bytes(Verdict.DIFFER), "meta.json": meta}
    state = {"pulls": [pull()], "artifacts": {"77": [artifact(1, "ciwrap", make_zip(files))]}}
    with FakeGithub(state) as github:
        assert comment(tmp_path, github, {**workflow_run(), "conclusion": "failure"}) == "differ"
        (body,) = bodies(github)
    assert "Not known: 1 of 1 result does not tell" in body


# --- orders ---------------------------------------------------------------------------------------

INPUTS = Inputs(mode="accept", workflow="numbers.yml", reason="As reviewed")


def test_orders_with_words_and_reasons() -> None:
    body = f"/ciwrap accept {SHA} mesh --allow-wider --allow-removed -- A better -- push"
    order = read_order(order_event(body))
    assert order is not None
    assert order.pattern == "mesh"
    assert order.allowed == ("allow-wider", "allow-removed")
    assert order.reason == "A better -- push"
    order = read_order(order_event(f"/ciwrap accept {SHA} -- Because"))
    assert order is not None
    assert (order.pattern, order.allowed, order.reason) == ("", (), "Because")


@pytest.mark.parametrize("rest", ["--allow-all", "--config x", "-- ", "help", "a --force"])
def test_orders_with_strange_words_are_refused(rest: str) -> None:
    body = f"/ciwrap {rest}" if rest == "help" else f"/ciwrap accept {SHA} {rest}"
    if rest == "--config x":
        body += " y"
    if rest == "-- ":
        body = f"/ciwrap accept {SHA} --"
    with pytest.raises(RefusedError, match="40 digits"):
        read_order(order_event(body))


@pytest.mark.parametrize("data", [b"no zip", zip_of(Verdict.DIFFER)[:200], b""])
def test_whatever_goes_wrong_is_answered(tmp_path: Path, data: bytes) -> None:
    whole = {
        "permissions": {"ann": "write"},
        "pulls": [pull()],
        "runs": [workflow_run()],
        "artifacts": {"77": [artifact(1, "ciwrap", data)]},
    }
    with FakeGithub(whole) as github:
        runner = runner_for(tmp_path, order_event())
        with pytest.raises(CiwrapError):
            carry_out(INPUTS, runner, Api(github.url, "secret"))
        (body,) = bodies(github)
    assert body.startswith("Nothing was accepted: ")


def served_order(repository: Project, tmp_path: Path) -> tuple[Runner, dict[str, Any], Path]:
    """A server with its HEAD, and the state of an API whose run left the last check."""
    head = git(repository.folder, "rev-parse", "HEAD")
    bare = tmp_path / "server/o/r.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare", "-b", "main")
    git(repository.folder, "push", "-q", str(bare), "HEAD:refs/heads/topic")
    files = {
        path.relative_to(repository.stage).as_posix(): path.read_bytes()
        for path in repository.stage.rglob("*")
        if path.is_file()
    }
    state = {
        "permissions": {"ann": "write"},
        "pulls": [pull(sha=head)],
        "runs": [workflow_run(sha=head)],
        "artifacts": {"77": [artifact(1, "ciwrap", make_zip(files))]},
    }
    runner = Runner(
        {
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SERVER_URL": f"file://{bare.parents[1]}",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        }
    )
    return runner, state, bare


def give_order(runner: Runner, state: dict[str, Any], rest: str, *, fails: bool = False) -> str:
    head = state["pulls"][0]["head"]["sha"]
    event = order_event(f"/ciwrap accept {head}{rest}")
    Path(runner.environment["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    with FakeGithub(state) as github:
        api = Api(github.url, "secret")
        if fails:
            with pytest.raises(CiwrapError):
                carry_out(INPUTS, runner, api)
        else:
            assert carry_out(INPUTS, runner, api)
        return bodies(github)[-1]


@pytest.mark.parametrize(
    ("old", "new", "word", "said"),
    [
        ("1e-9", "10", "--allow-wider", "widens a bound"),
        ("1e-9", "1e-9, evidence: tree", "--allow-less-evidence", "keeps less evidence"),
        ("1e-9", "1e-9, ignore: [t]", "--allow-removed", "out of the golden"),
    ],
)
def test_less_needs_a_word_of_its_own(
    repository: Project, tmp_path: Path, old: str, new: str, word: str, said: str
) -> None:
    repository.replace(old, new)
    repository.replace("np.arange(4.), t", "np.arange(4.) + 20, t", "p.py")
    repository.commit()
    repository.check()
    runner, state, bare = served_order(repository, tmp_path)
    before = git(bare, "rev-parse", "topic")
    answer = give_order(runner, state, "", fails=True)
    assert said in answer
    assert word in answer
    assert git(bare, "rev-parse", "topic") == before
    answer = give_order(runner, state, f" {word} -- Since it is chaotic")
    assert answer.startswith("Accepted in ")
    manifest = git(bare, "show", "topic:golden/x.golden.yaml")
    assert "Since it is chaotic (Accepted by @ann on #5)" in manifest


SPY = """#!/bin/sh
env > {said}.$$
cat
"""


def test_no_program_of_the_user_or_the_system_sees_the_token(
    repository: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters of all configurations, chosen by the attributes of the pull request; and `git`."""
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    (repository.folder / ".gitattributes").write_text("* filter=spy\n")
    repository.commit()
    repository.check()
    runner, state, _ = served_order(repository, tmp_path)
    spy = tmp_path / "spy"
    spy.write_text(SPY.format(said=tmp_path / "seen"))
    spy.chmod(0o755)
    settings = tmp_path / "settings"
    settings.write_text(f'[filter "spy"]\n\tclean = {spy}\n\tsmudge = {spy}\n')
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(settings, home / ".gitconfig")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(settings))
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    for name in ("CIWRAP_TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "OF_SOMEBODY"):
        monkeypatch.setenv(name, "s3cret")
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    wrapped = tmp_path / "bin/git"
    wrapped.write_text(f'#!/bin/sh\nenv > {tmp_path}/git.$$\nexec {real} "$@"\n')
    wrapped.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert give_order(runner, state, " -- Because").startswith("Accepted in ")
    assert not list(tmp_path.glob("seen.*"))
    calls = [path.read_text() for path in tmp_path.glob("git.*")]
    assert len(calls) > 5
    assert not any("s3cret" in one for one in calls)


def test_an_order_without_a_reason_is_refused(repository: Project, tmp_path: Path) -> None:
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    repository.commit()
    repository.check()
    runner, state, bare = served_order(repository, tmp_path)
    before = git(bare, "rev-parse", "topic")
    event = order_event(f"/ciwrap accept {state['pulls'][0]['head']['sha']}")
    Path(runner.environment["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    with FakeGithub(state) as github:
        assert not carry_out(replace(INPUTS, reason=""), runner, Api(github.url, "secret"))
        (answer,) = bodies(github)
    assert "an order says why the numbers are right: `/ciwrap accept SHA" in answer
    assert git(bare, "rev-parse", "topic") == before


def test_a_pattern_that_means_nothing_is_answered(repository: Project, tmp_path: Path) -> None:
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    repository.commit()
    repository.check()
    runner, state, _ = served_order(repository, tmp_path)
    assert "nonsense" in give_order(runner, state, " nonsense", fails=True)


def test_goldens_in_lfs_are_refused_with_the_way_out(repository: Project, tmp_path: Path) -> None:
    (repository.folder / ".gitattributes").write_text("*.golden filter=lfs -text\n")
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    git(repository.folder, "-c", "filter.lfs.clean=cat", "add", "-A")
    git(repository.folder, "-c", "filter.lfs.clean=cat", "commit", "-q", "-m", "lfs")
    repository.check()
    runner, state, bare = served_order(repository, tmp_path)
    before = git(bare, "rev-parse", "topic")
    answer = give_order(runner, state, "", fails=True)
    assert "Git LFS" in answer
    assert "accept --from ZIP" in answer
    assert git(bare, "rev-parse", "topic") == before


def test_a_pointer_of_lfs_is_told(repository: Project) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    (repository.folder / "golden/x.golden").write_text(pointer)
    told = repository.check(run="none")
    assert told["status"] == "not-comparable"
    assert "git lfs pull" in told["summary"]


# --- what is refused ------------------------------------------------------------------------------


def test_no_program_in_the_job_that_opens_a_pull_request() -> None:
    given = {"CIWRAP_INPUT_MODE": "update", "CIWRAP_INPUT_PULL_REQUEST": "true"}
    with pytest.raises(UsageError, match=r"no program.*refresh\.yml"):
        read_inputs(given)
    assert read_inputs({**given, "CIWRAP_INPUT_SOURCE": "candidates"}).pull_request


def test_manifests_name_actor_and_run(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "true", "GITHUB_ACTOR": "ann", "GITHUB_RUN_ID": "77",
        "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    repository.make_outputs(1.0)
    assert ciwrap(["accept", "--in-ci", "--reason", "x"]) == 0
    text = (repository.folder / "golden/x.golden.yaml").read_text()
    assert "  actor: ann\n" in text
    assert "https://github.com/o/r/actions/runs/77" in text


def test_the_pull_request_of_a_refresh_names_its_run() -> None:
    environment = {
        "GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "77",
    }  # fmt: skip
    body = body_of("Because of @all", "what changed", Runner(environment))
    assert "Made by [this run](https://github.com/o/r/actions/runs/77).\n\nwhat changed" in body
    assert "@all" not in body
    assert "this run" not in body_of("x", "y", Runner({}))


def test_the_first_goldens_of_another_platform(repository: Project) -> None:
    """What the messages propose is done, and then the platform has goldens of its own."""
    told = repository.check(platform_key="linux-arm64")
    assert told["status"] == "not-comparable"
    assert "ciwrap accept x --golden-dir golden/linux-arm64" in unescape(told["summary"])
    words = "ciwrap accept --from ciwrap-linux-arm64.zip --golden-dir golden/linux-arm64"
    assert f"{words} --reason 'WHY'" in told["summary"]
    stage = repository.temporary / "ciwrap-results/ciwrap-linux-arm64"
    shutil.make_archive(str(repository.folder / "ciwrap-linux-arm64"), "zip", stage)
    assert ciwrap([*words.split()[1:], "--reason", "First goldens"]) == 0
    assert repository.check(platform_key="linux-arm64")["status"] == "match"
