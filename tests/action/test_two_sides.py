"""Mode check without goldens: two paths, and two revisions; and the comment of one workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from action.act_runs import git
from action.fake_github import FakeGithub

from ciwrap.action.github import Api, Runner, read_inputs
from ciwrap.action.orders import comment_on_this
from ciwrap.base.errors import UsageError

if TYPE_CHECKING:
    from action.gate_project import Project


def test_two_paths_need_no_configuration(repository: Project) -> None:
    (repository.folder / "ciwrap.yaml").unlink()
    repository.folder.joinpath("old.csv").write_text("x\n1\n2\n")
    repository.folder.joinpath("new.csv").write_text("x\n1\n2.1\n")
    told = repository.check(result="new.csv", reference="old.csv")
    assert (told["status"], told["differing"], told["pending-path"]) == ("differ", "1", "")
    assert "A 2, B 2.1" in told["summary"] or "2.1" in told["summary"]
    assert told["report-path"]
    told = repository.check(result="new.csv", reference="old.csv", atol="0.2")
    assert (told["status"], told["compared"]) == ("match", "1")
    more = "--bound 'x=rtol=1e-3'"
    told = repository.check(result="new.csv", reference="old.csv", arguments=more)
    assert told["status"] == "differ"
    assert repository.check(result="none.csv", reference="old.csv")["status"] == "not-comparable"


def test_a_base_takes_the_place_of_goldens(repository: Project) -> None:
    git(repository.folder, "rm", "-q", "-r", "golden")
    base = repository.commit()
    git(repository.folder, "switch", "-q", "-c", "work")
    repository.replace("np.arange(4.)", "np.arange(4.) + 1", file="p.py")
    repository.commit()
    told = repository.check(base="main")
    assert (told["status"], told["differing"], told["pending-path"]) == ("differ", "2", "")
    assert f"A is main ({base[:10]})" in told["summary"]
    told = repository.check(base="work", run="true")
    assert told["status"] == "not-comparable"


def test_the_base_of_a_pull_request_is_what_it_was_merged_with(repository: Project) -> None:
    """In a clone that has the merge and its parents, and no branches."""
    git(repository.folder, "switch", "-q", "-c", "work")
    repository.replace("np.arange(4.)", "np.arange(4.) + 1", file="p.py")
    head = repository.commit()
    git(repository.folder, "switch", "-q", "main")
    (repository.folder / "other").write_text("x")
    base = repository.commit()
    git(repository.folder, "switch", "-q", "--detach")
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "merge", "work")
    git(repository.folder, "branch", "-q", "-D", "main", "work")
    pull = {"head": {"sha": head}, "base": {"sha": base, "ref": "main"}}
    runner = repository.runner({"pull_request": pull}, "pull_request")
    told = repository.check(runner, base="main")
    assert told["status"] == "differ"
    assert f"({base[:10]})" in told["summary"]
    with pytest.raises(UsageError, match="the base 'v1' was not fetched"):
        repository.check(runner, base="v1")


def test_a_working_directory_is_where_paths_count_from(repository: Project) -> None:
    sub = repository.folder / "sub"
    sub.mkdir()
    for name in ("ciwrap.yaml", "p.py", "golden", "o.npz"):
        (repository.folder / name).rename(sub / name)
    repository.commit()
    environment = {**repository.runner().environment, "CIWRAP_INPUT_WORKING_DIRECTORY": "sub"}
    told = repository.check(Runner(environment), working_directory="sub", report="page.html")
    assert told["status"] == "match"
    assert (sub / "page.html").is_file()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"result": "a"}, "give both"),
        ({"result": "a", "reference": "b", "config": "c"}, "config cannot be used with result"),
        ({"atol": "1"}, "atol needs result and reference"),
        ({"base": "main", "run": "none"}, "cannot be used with run: none"),
        ({"base": "main", "mode": "repeat"}, "base has no meaning in mode repeat"),
        ({"comment": "true", "mode": "repeat"}, "comment has no meaning in mode repeat"),
        ({"working_directory": "../x"}, "working-directory cannot be"),
        ({"working_directory": "/x"}, "working-directory cannot be"),
    ],
)
def test_inputs_that_contradict_each_other(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_inputs({f"CIWRAP_INPUT_{name.upper()}": text for name, text in given.items()})


def _commented(repository: Project, github: FakeGithub, event: dict[str, Any], **more: str) -> None:
    told = repository.check()
    environment = {
        **repository.runner(event, "pull_request").environment,
        "CIWRAP_SUMMARY_PATH": told["summary-path"],
        "CIWRAP_STATUS": told["status"],
        "GITHUB_RUN_ID": "77",
        **more,
    }
    comment_on_this(read_inputs({}), Runner(environment), Api(github.url, "secret"))


def test_one_workflow_comments_on_branches_of_the_repository_alone(
    repository: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    head = {"sha": "a" * 40, "repo": {"full_name": "o/r"}}
    own = {"pull_request": {"number": 5, "head": head}}
    fork = {"pull_request": {"number": 5, "head": {**head, "repo": {"full_name": "x/r"}}}}
    with FakeGithub({"comments": {}}) as github:
        _commented(repository, github, own)
        assert not github.state["comments"].get("5")  # everything matches
        less = {"pull_request": {"number": 6, "head": head}}
        _commented(repository, github, less, CIWRAP_WIDER="1")
        assert len(github.state["comments"]["6"]) == 1
        repository.replace("np.arange(4.)", "np.arange(4.) + 1", file="p.py")
        _commented(repository, github, fork)
        assert "of a fork" in capfd.readouterr().out
        assert not github.state["comments"].get("5")
        _commented(repository, github, own, GITHUB_EVENT_NAME="pull_request_target")
        assert not github.state["comments"].get("5")
        for _ in range(2):
            _commented(repository, github, own)
        (comment,) = github.state["comments"]["5"]
        assert "Numbers differ" in comment["body"]
        assert "/o/r/actions/runs/77" in comment["body"]
