"""The steps of the action on real projects: nothing that failed or checks less goes by unseen."""

from __future__ import annotations

import json
import shutil
import sys
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
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
from action.test_steps import parse_outputs
from zips import make_zip

from ciwrap.action.api import Api
from ciwrap.action.changes import base_of
from ciwrap.action.check import run_check
from ciwrap.action.gate import gate
from ciwrap.action.inputs import FailOn, Inputs, read_inputs
from ciwrap.action.merge import run_merge
from ciwrap.action.order import RefusedError, carry_out, read_order
from ciwrap.action.runner import Runner
from ciwrap.action.update import body_of, run_update
from ciwrap.cli.main import run as ciwrap
from ciwrap.errors import CiwrapError, NotComparableError, UsageError
from ciwrap.model import Verdict
from ciwrap.report.markdown import escaped

PROGRAM = "import numpy as np\nnp.savez('o.npz', energy=np.arange(4.), t=np.arange(4.))\n"
CONFIG = f"version: 1\nrun: {sys.executable} p.py\nchecks:\n  x: {{outputs: o.npz, atol: 1e-9}}\n"


class Project:
    """A repository with a program, a configuration and goldens, and the folders of a runner."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder, self.temporary = folder, temporary
        temporary.mkdir()
        (folder / "p.py").write_text(PROGRAM)
        (folder / "ciwrap.yaml").write_text(CONFIG)
        (folder / ".gitignore").write_text("o.npz\n.ciwrap/\n")
        self.make_outputs()
        git(folder, "init", "-q", "-b", "main")
        assert ciwrap(["accept"]) == 0
        self.commit()

    def make_outputs(self, shift: float = 0.0) -> None:
        np.savez(self.folder / "o.npz", energy=np.arange(4.0) + shift, t=np.arange(4.0))

    def commit(self) -> str:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "x")
        return git(self.folder, "rev-parse", "HEAD")

    def replace(self, old: str, new: str, file: str = "ciwrap.yaml") -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def runner(self, event: dict[str, Any] | None = None, name: str = "push") -> Runner:
        for file in ("output", "summary"):
            (self.temporary / file).write_text("")
        (self.temporary / "event.json").write_text(json.dumps(event or {}))
        return Runner(
            {
                "PATH": "/usr/bin:/bin",
                "GITHUB_WORKSPACE": str(self.folder),
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_EVENT_NAME": name,
                "GITHUB_EVENT_PATH": str(self.temporary / "event.json"),
                "GITHUB_SHA": git(self.folder, "rev-parse", "HEAD"),
                "GITHUB_OUTPUT": str(self.temporary / "output"),
                "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            }
        )

    def check(self, runner: Runner | None = None, **given: str) -> dict[str, str]:
        """The step `check`: its outputs, with the summary as `summary`."""
        inputs = read_inputs({f"CIWRAP_INPUT_{name.upper()}": v for name, v in given.items()})
        run_check(inputs, runner or self.runner())
        told = parse_outputs((self.temporary / "output").read_text())
        return {**told, "summary": (self.temporary / "summary").read_text()}

    @property
    def stage(self) -> Path:
        return self.temporary / "ciwrap-results/ciwrap"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "r"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return Project(folder, tmp_path / "runner")


# --- what crashes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 4"])
def test_a_crash_is_an_error_with_the_last_lines(
    project: Project, end: str, capfd: pytest.CaptureFixture[str]
) -> None:
    project.replace(f"{sys.executable} p.py", f"\"echo began; echo '```@all'; {end}\"")
    told = project.check()
    assert told["status"] == "error"
    assert "````text\nbegan\n```@all\n````" in told["summary"]
    for fail_on in (FailOn.DIFFER, FailOn.NOT_COMPARABLE, FailOn.ERROR):
        assert gate(told["status"], fail_on, {"CIWRAP_COMPARED": "0"}) == 1


def test_a_crash_of_one_check_is_an_error(project: Project) -> None:
    project.replace("  x: {", "  y: {outputs: o.npz, run: exit 3}\n  x: {")
    assert project.check()["status"] == "error"


def test_no_golden_is_made_of_a_crash(project: Project) -> None:
    project.replace(f"{sys.executable} p.py", f'"{sys.executable} p.py && kill -SEGV $$"')
    project.check()
    shutil.copytree(project.stage, project.folder / "candidates")
    inputs = Inputs(mode="update", source="candidates", reason="x")
    with pytest.raises(NotComparableError, match="the result is an error"):
        run_update(inputs, project.runner())
    assert git(project.folder, "status", "--porcelain", "golden") == ""


def test_no_golden_is_made_beside_outputs_that_cannot_be_read(project: Project) -> None:
    project.replace("  x: {", "  y: {outputs: nowhere.npy}\n  x: {")
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert project.check()["status"] == "not-comparable"
    shutil.copytree(project.stage, project.folder / "candidates")
    inputs = Inputs(mode="update", source="candidates", reason="x")
    with pytest.raises(NotComparableError, match="'y' is not comparable"):
        run_update(inputs, project.runner())


def test_what_could_not_be_read_is_told_before_what_is_missing_for_it(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    data = (project.folder / "o.npz").read_bytes()
    (project.folder / "o.npz").write_bytes(data[: len(data) // 2])
    told = project.check(run="none")
    assert told["status"] == "not-comparable"
    assert told["summary"].split("\n\n")[1].startswith("**o.npz: ")
    assert told["summary"].count("**o.npz: ") + told["summary"].count("error: o.npz") == 1
    assert "first mend what the errors name" in told["summary"]
    assert "accept the new outputs" not in told["summary"]
    errors = [one for one in capfd.readouterr().out.splitlines() if one.startswith("::error")]
    assert "::o.npz: " in errors[0]
    assert len(errors) == 3


def test_goldens_are_made_of_what_differs(project: Project) -> None:
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    told = project.check()
    assert told["status"] == "differ"
    assert "ciwrap accept --from ciwrap.zip --reason 'WHY'" in told["summary"]
    shutil.copytree(project.stage, project.folder / "candidates")
    run_update(Inputs(mode="update", source="candidates", reason="x"), project.runner())
    assert "golden/x.golden" in git(project.folder, "status", "--porcelain")


# --- what is checked otherwise --------------------------------------------------------------------


def as_pull_request(project: Project, base: str) -> Runner:
    return project.runner({"pull_request": {"base": {"sha": base}}}, "pull_request")


def test_a_bound_that_is_wide_enough_is_seen(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """All numbers match, and the summary, the log and the gate say what that is worth."""
    base = git(project.folder, "rev-parse", "HEAD")
    project.replace("1e-9", "10")
    project.make_outputs(1.0)
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert ciwrap(["accept", "--reason", "cleanup"]) == 0
    project.commit()
    told = project.check(as_pull_request(project, base))
    assert told["status"] == "match"
    assert told["wider"] == "2"
    assert "2 of them check less" in told["summary"]
    assert "because: cleanup" in told["summary"]
    # Before the headline that all numbers match.
    assert told["summary"].index("check less") < told["summary"].index("All numbers match")
    out = capfd.readouterr().out
    assert "::warning title=ciwrap%3A less is checked,file=ciwrap.yaml,line=4::" in out
    given = {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": told["wider"]}
    assert gate("match", FailOn.DIFFER, given) == 0
    assert gate("match", FailOn.DIFFER, {**given, "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 1
    assert gate("match", FailOn.NEVER, {**given, "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 1


def test_what_is_ignored_is_not_comparable_and_told(project: Project) -> None:
    base = git(project.folder, "rev-parse", "HEAD")
    project.replace("1e-9", "1e-9, ignore: [energy]")
    project.commit()
    told = project.check(as_pull_request(project, base))
    assert (told["status"], told["wider"]) == ("not-comparable", "1")
    assert "energy" in told["summary"]


def test_a_pull_request_that_changes_nothing_is_quiet(project: Project) -> None:
    base = git(project.folder, "rev-parse", "HEAD")
    (project.folder / "README").write_text("x")
    project.commit()
    told = project.check(as_pull_request(project, base))
    assert (told["status"], told["wider"]) == ("match", "0")
    assert "What is checked" not in told["summary"]
    assert gate("match", FailOn.DIFFER, {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "0",
                                         "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 0  # fmt: skip


def test_a_base_that_was_not_fetched_is_told(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    told = project.check(as_pull_request(project, "a" * 40))
    assert (told["status"], told["wider"]) == ("match", "unknown")
    assert "fetch-depth: 2" in told["summary"]
    assert "fetch-depth" in capfd.readouterr().out
    given = {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "unknown"}
    assert gate("match", FailOn.DIFFER, {**given, "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 1


def test_merged_results_tell_what_each_checks_otherwise(project: Project) -> None:
    """The gate of the job that merges is the one that a rule of the branch asks for."""
    base = git(project.folder, "rev-parse", "HEAD")
    project.replace("1e-9", "10")
    project.commit()
    runner = as_pull_request(project, base)
    for name in ("a", "b"):
        project.check(runner)
        shutil.copytree(project.stage, project.folder / "results" / name)

    def merge(runner: Runner) -> dict[str, str]:
        run_merge(Inputs(mode="merge", source="results"), runner)
        told = parse_outputs((project.temporary / "output").read_text())
        return {**told, "summary": (project.temporary / "summary").read_text()}

    told = merge(as_pull_request(project, base))
    assert told["wider"] == "2"
    assert told["summary"].count("**WIDER**") == 2
    assert merge(project.runner())["wider"] == ""
    (project.folder / "results/b/changes.json").unlink()
    told = merge(as_pull_request(project, base))
    assert told["wider"] == "unknown"
    assert "1 of 2 results does not tell" in told["summary"]


def test_a_base_whose_configuration_cannot_be_read_is_told(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").write_text("checks: [")
    base = project.commit()
    (project.folder / "ciwrap.yaml").write_text(text.replace("1e-9", "10"))
    project.commit()
    told = project.check(as_pull_request(project, base))
    assert told["wider"] == "unknown"
    assert "**?**" in told["summary"]
    assert "less may be checked" in capfd.readouterr().out


def test_a_push_has_no_base(project: Project) -> None:
    told = project.check()
    assert told["wider"] == ""
    given = {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "", "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}
    assert gate("match", FailOn.DIFFER, given) == 0


def merged(project: Project, ours: str, theirs: str) -> str:
    """Checks `ours` out and merges `theirs` into it; returns the merge."""
    git(project.folder, "checkout", "-q", ours)
    git(project.folder, "merge", "-q", "--no-ff", "-m", "m", theirs)
    return git(project.folder, "rev-parse", "HEAD")


def test_of_the_merge_that_github_tests_the_first_parent_is_the_base(project: Project) -> None:
    old = git(project.folder, "rev-parse", "HEAD")
    git(project.folder, "checkout", "-q", "-b", "topic")
    (project.folder / "a").write_text("x")
    head = project.commit()
    git(project.folder, "checkout", "-q", "main")
    (project.folder / "b").write_text("x")
    base = project.commit()
    merge = merged(project, "main", "topic")
    event = {"pull_request": {"base": {"sha": old}, "head": {"sha": head}}}
    assert base_of(project.runner(event, "pull_request")) == base
    event = {"merge_group": {"base_sha": old, "head_sha": merge}}
    assert base_of(project.runner(event, "merge_group")) == base


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
def test_the_first_parent_of_a_merge_that_somebody_made_is_no_base(
    project: Project, name: str
) -> None:
    """Where the head itself is checked out, it may be a merge; its author chose the order."""
    git(project.folder, "checkout", "-q", "-b", "topic")
    project.replace("1e-9", "10")
    project.make_outputs(1.0)
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert ciwrap(["accept", "--reason", "cleanup"]) == 0
    project.commit()
    git(project.folder, "checkout", "-q", "main")
    (project.folder / "b").write_text("x")
    base = project.commit()
    head = merged(project, "topic", "main")
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}
    assert base_of(project.runner(event, name)) == base
    assert project.check(project.runner(event, name))["wider"] == "2"
    # The last merge into main is no part of the pull request either.
    event = {"pull_request": {"base": {"sha": head}, "head": {"sha": "a" * 40}}}
    assert base_of(project.runner(event, name)) == head


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


# --- orders ---------------------------------------------------------------------------------------

INPUTS = Inputs(mode="accept", workflow="numbers.yml")


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


def served_order(project: Project, tmp_path: Path) -> tuple[Runner, dict[str, Any], Path]:
    """A server with the project's HEAD, and the state of an API whose run left the last check."""
    head = git(project.folder, "rev-parse", "HEAD")
    bare = tmp_path / "server/o/r.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare", "-b", "main")
    git(project.folder, "push", "-q", str(bare), "HEAD:refs/heads/topic")
    files = {
        path.relative_to(project.stage).as_posix(): path.read_bytes()
        for path in project.stage.rglob("*")
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
    project: Project, tmp_path: Path, old: str, new: str, word: str, said: str
) -> None:
    project.replace(old, new)
    project.replace("np.arange(4.), t", "np.arange(4.) + 20, t", "p.py")
    project.commit()
    project.check()
    runner, state, bare = served_order(project, tmp_path)
    before = git(bare, "rev-parse", "topic")
    answer = give_order(runner, state, "", fails=True)
    assert said in answer
    assert word in answer
    assert git(bare, "rev-parse", "topic") == before
    answer = give_order(runner, state, f" {word} -- Since it is chaotic")
    assert answer.startswith("Accepted in ")
    manifest = git(bare, "show", "topic:golden/x.golden.yaml")
    assert "Since it is chaotic (Accepted by @ann on #5)" in manifest


def test_a_pattern_that_means_nothing_is_answered(project: Project, tmp_path: Path) -> None:
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    project.commit()
    project.check()
    runner, state, _ = served_order(project, tmp_path)
    assert "nonsense" in give_order(runner, state, " nonsense", fails=True)


def test_goldens_in_lfs_are_refused_with_the_way_out(project: Project, tmp_path: Path) -> None:
    (project.folder / ".gitattributes").write_text("*.golden filter=lfs -text\n")
    project.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    git(project.folder, "-c", "filter.lfs.clean=cat", "add", "-A")
    git(project.folder, "-c", "filter.lfs.clean=cat", "commit", "-q", "-m", "lfs")
    project.check()
    runner, state, bare = served_order(project, tmp_path)
    before = git(bare, "rev-parse", "topic")
    answer = give_order(runner, state, "", fails=True)
    assert "Git LFS" in answer
    assert "accept --from ZIP" in answer
    assert git(bare, "rev-parse", "topic") == before


def test_a_pointer_of_lfs_is_told(project: Project) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    (project.folder / "golden/x.golden").write_text(pointer)
    told = project.check(run="none")
    assert told["status"] == "not-comparable"
    assert "git lfs pull" in told["summary"]


# --- what is refused ------------------------------------------------------------------------------


def test_no_program_in_the_job_that_opens_a_pull_request() -> None:
    given = {"CIWRAP_INPUT_MODE": "update", "CIWRAP_INPUT_PULL_REQUEST": "true"}
    with pytest.raises(UsageError, match=r"no program.*refresh\.yml"):
        read_inputs(given)
    assert read_inputs({**given, "CIWRAP_INPUT_SOURCE": "candidates"}).pull_request


def test_manifests_name_actor_and_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "true", "GITHUB_ACTOR": "ann", "GITHUB_RUN_ID": "77",
        "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    project.make_outputs(1.0)
    assert ciwrap(["accept", "--reason", "x"]) == 0
    text = (project.folder / "golden/x.golden.yaml").read_text()
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


def test_the_first_goldens_of_another_platform(project: Project) -> None:
    """What the messages propose is done, and then the platform has goldens of its own."""
    told = project.check(platform_key="linux-arm64")
    assert told["status"] == "not-comparable"
    assert "ciwrap accept x --golden-dir golden/linux-arm64" in unescape(told["summary"])
    words = "ciwrap accept --from ciwrap-linux-arm64.zip --golden-dir golden/linux-arm64"
    assert f"{words} --reason 'WHY'" in told["summary"]
    stage = project.temporary / "ciwrap-results/ciwrap-linux-arm64"
    shutil.make_archive(str(project.folder / "ciwrap-linux-arm64"), "zip", stage)
    assert ciwrap([*words.split()[1:], "--reason", "First goldens"]) == 0
    assert project.check(platform_key="linux-arm64")["status"] == "match"
