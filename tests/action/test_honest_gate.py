"""The steps of the action on real projects: nothing that failed or checks less goes by unseen."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from action.act_runs import git
from action.test_steps import parse_outputs

from ciwrap.action.github import FailOn, Inputs
from ciwrap.action.orders import run_merge
from ciwrap.action.outputs import base_of
from ciwrap.action.steps import gate, run_update
from ciwrap.base.errors import NotComparableError
from ciwrap.cli.main import run as ciwrap

if TYPE_CHECKING:
    from action.gate_project import Project

    from ciwrap.action.github import Runner

# --- what crashes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 4"])
def test_a_crash_is_an_error_with_the_last_lines(
    repository: Project, end: str, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.replace(f"{sys.executable} p.py", f"\"echo began; echo '```@all'; {end}\"")
    told = repository.check()
    assert told["status"] == "error"
    assert "````text\nbegan\n```@all\n````" in told["summary"]
    for fail_on in (FailOn.DIFFER, FailOn.NOT_COMPARABLE, FailOn.ERROR):
        assert gate(told["status"], fail_on, {"CIWRAP_COMPARED": "0"}) == 1


def test_a_crash_of_one_check_is_an_error(repository: Project) -> None:
    repository.replace("  x: {", "  y: {outputs: o.npz, run: exit 3}\n  x: {")
    assert repository.check()["status"] == "error"


def test_no_golden_is_made_of_a_crash(repository: Project) -> None:
    repository.replace(f"{sys.executable} p.py", f'"{sys.executable} p.py && kill -SEGV $$"')
    repository.check()
    shutil.copytree(repository.stage, repository.folder / "candidates")
    inputs = Inputs(mode="update", source="candidates", reason="x")
    with pytest.raises(NotComparableError, match="the result is an error"):
        run_update(inputs, repository.runner())
    assert git(repository.folder, "status", "--porcelain", "golden") == ""


def test_no_golden_is_made_beside_outputs_that_cannot_be_read(repository: Project) -> None:
    repository.replace("  x: {", "  y: {outputs: nowhere.npy}\n  x: {")
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert repository.check()["status"] == "not-comparable"
    shutil.copytree(repository.stage, repository.folder / "candidates")
    inputs = Inputs(mode="update", source="candidates", reason="x")
    with pytest.raises(NotComparableError, match="'y' is not comparable"):
        run_update(inputs, repository.runner())


def test_what_could_not_be_read_is_told_before_what_is_missing_for_it(
    repository: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    data = (repository.folder / "o.npz").read_bytes()
    (repository.folder / "o.npz").write_bytes(data[: len(data) // 2])
    told = repository.check(run="none")
    assert told["status"] == "not-comparable"
    assert told["summary"].split("\n\n")[1].startswith("**o.npz: ")
    assert told["summary"].count("**o.npz: ") + told["summary"].count("error: o.npz") == 1
    assert "first fix what the errors name" in told["summary"]
    assert "accept the new outputs" not in told["summary"]
    errors = [one for one in capfd.readouterr().out.splitlines() if one.startswith("::error")]
    assert "::o.npz: " in errors[0]
    assert len(errors) == 3


def test_goldens_are_made_of_what_differs(repository: Project) -> None:
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    told = repository.check()
    assert told["status"] == "differ"
    assert "ciwrap accept --from ciwrap.zip --reason 'WHY'" in told["summary"]
    shutil.copytree(repository.stage, repository.folder / "candidates")
    run_update(Inputs(mode="update", source="candidates", reason="x"), repository.runner())
    assert "golden/x.golden" in git(repository.folder, "status", "--porcelain")


# --- what is checked otherwise --------------------------------------------------------------------


def as_pull_request(repository: Project, base: str) -> Runner:
    return repository.runner({"pull_request": {"base": {"sha": base}}}, "pull_request")


def test_a_bound_that_is_wide_enough_is_seen(
    repository: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """All numbers match, and the summary, the log and the gate say what that is worth."""
    base = git(repository.folder, "rev-parse", "HEAD")
    repository.replace("1e-9", "10")
    repository.make_outputs(1.0)
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert ciwrap(["accept", "--reason", "cleanup"]) == 0
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
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


def test_a_program_takes_nothing_out_of_what_is_told(repository: Project) -> None:
    """What is checked otherwise is written once the program has ended."""
    base = git(repository.folder, "rev-parse", "HEAD")
    repository.replace("1e-9", "10")
    folder = "os.environ['RUNNER_TEMP']"
    remove = f"import glob, os\nfor one in glob.glob({folder} + '/**/*.json', recursive=True):\n"
    remove += "    os.remove(one)\n"
    (repository.folder / "p.py").write_text(remove + (repository.folder / "p.py").read_text())
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
    assert told["wider"] == "2"
    kept = json.loads((repository.stage / "changes.json").read_text())
    assert [one["wider"] for one in kept["changes"]] == [True, True]


def test_a_golden_that_the_program_replaces_is_no_match(repository: Project) -> None:
    base = git(repository.folder, "rev-parse", "HEAD")
    accept = "import subprocess, sys\nwords = ['accept', '--in-ci', '--reason', 'x']\n"
    accept += "subprocess.run([sys.executable, '-m', 'ciwrap', *words], check=True)\n"
    program = repository.folder / "p.py"
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    program.write_text(program.read_text() + accept)
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
    assert told["status"] == "not-comparable"
    assert "its golden changed while the command ran" in told["summary"]


def test_goldens_of_a_platform_that_moved_hide_nothing(repository: Project) -> None:
    """The base has them where its own configuration says."""
    (repository.folder / "golden").rename(repository.folder / "linux")
    (repository.folder / "golden").mkdir()
    (repository.folder / "linux").rename(repository.folder / "golden/linux")
    base = repository.commit()
    repository.replace("version: 1\n", "version: 1\ngolden_dir: moved\n")
    repository.replace("atol: 1e-9", "atol: 10")
    repository.make_outputs(shift=3)
    assert ciwrap(["accept", "--golden-dir", "moved/linux"]) == 0
    shutil.rmtree(repository.folder / "golden")
    repository.replace("arange(4.),", "arange(4.) + 5,", "p.py")
    repository.commit()
    told = repository.check(as_pull_request(repository, base), platform_key="linux")
    assert (told["status"], told["wider"]) == ("match", "2")
    assert "| linux/x | energy |" in told["summary"]
    assert "goldens read from: golden" in told["summary"]


def test_what_is_ignored_is_not_comparable_and_told(repository: Project) -> None:
    base = git(repository.folder, "rev-parse", "HEAD")
    repository.replace("1e-9", "1e-9, ignore: [energy]")
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
    assert (told["status"], told["wider"]) == ("not-comparable", "1")
    assert "energy" in told["summary"]


def test_a_pull_request_that_changes_nothing_is_quiet(repository: Project) -> None:
    base = git(repository.folder, "rev-parse", "HEAD")
    (repository.folder / "README").write_text("x")
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
    assert (told["status"], told["wider"]) == ("match", "0")
    assert "What is checked" not in told["summary"]
    assert gate("match", FailOn.DIFFER, {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "0",
                                         "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 0  # fmt: skip


def test_a_base_that_was_not_fetched_is_told(
    repository: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    told = repository.check(as_pull_request(repository, "a" * 40))
    assert (told["status"], told["wider"]) == ("match", "unknown")
    assert "fetch-depth: 2" in told["summary"]
    assert "fetch-depth" in capfd.readouterr().out
    given = {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "unknown"}
    assert gate("match", FailOn.DIFFER, {**given, "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}) == 1


def test_merged_results_tell_what_each_checks_otherwise(repository: Project) -> None:
    """The gate of the job that merges is the one that a rule of the branch asks for."""
    base = git(repository.folder, "rev-parse", "HEAD")
    repository.replace("1e-9", "10")
    repository.commit()
    runner = as_pull_request(repository, base)
    for name in ("a", "b"):
        repository.check(runner)
        shutil.copytree(repository.stage, repository.folder / "results" / name)

    def merge(runner: Runner) -> dict[str, str]:
        run_merge(Inputs(mode="merge", source="results"), runner)
        told = parse_outputs((repository.temporary / "output").read_text())
        return {**told, "summary": (repository.temporary / "summary").read_text()}

    told = merge(as_pull_request(repository, base))
    assert told["wider"] == "2"
    assert told["summary"].count("**WIDER**") == 2
    assert merge(repository.runner())["wider"] == ""
    (repository.folder / "results/b/changes.json").unlink()
    told = merge(as_pull_request(repository, base))
    assert told["wider"] == "unknown"
    assert "1 of 2 results does not tell" in told["summary"]


def test_a_base_whose_configuration_cannot_be_read_is_told(
    repository: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (repository.folder / "ciwrap.yaml").read_text()
    (repository.folder / "ciwrap.yaml").write_text("checks: [")
    base = repository.commit()
    (repository.folder / "ciwrap.yaml").write_text(text.replace("1e-9", "10"))
    repository.commit()
    told = repository.check(as_pull_request(repository, base))
    assert told["wider"] == "unknown"
    assert "**?**" in told["summary"]
    assert "less may be checked" in capfd.readouterr().out


def test_a_push_has_no_base(repository: Project) -> None:
    told = repository.check()
    assert told["wider"] == ""
    given = {"CIWRAP_COMPARED": "2", "CIWRAP_WIDER": "", "CIWRAP_INPUT_FAIL_ON_WIDER": "true"}
    assert gate("match", FailOn.DIFFER, given) == 0


def merged(repository: Project, ours: str, theirs: str) -> str:
    """Checks `ours` out and merges `theirs` into it; returns the merge."""
    git(repository.folder, "checkout", "-q", ours)
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "m", theirs)
    return git(repository.folder, "rev-parse", "HEAD")


def test_of_the_merge_that_github_tests_the_first_parent_is_the_base(repository: Project) -> None:
    old = git(repository.folder, "rev-parse", "HEAD")
    git(repository.folder, "checkout", "-q", "-b", "topic")
    (repository.folder / "a").write_text("x")
    head = repository.commit()
    git(repository.folder, "checkout", "-q", "main")
    (repository.folder / "b").write_text("x")
    base = repository.commit()
    merge = merged(repository, "main", "topic")
    event = {"pull_request": {"base": {"sha": old}, "head": {"sha": head}}}
    assert base_of(repository.runner(event, "pull_request")) == base
    event = {"merge_group": {"base_sha": old, "head_sha": merge}}
    assert base_of(repository.runner(event, "merge_group")) == base


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
def test_the_first_parent_of_a_merge_that_somebody_made_is_no_base(
    repository: Project, name: str
) -> None:
    """Where the head itself is checked out, it may be a merge; its author chose the order."""
    git(repository.folder, "checkout", "-q", "-b", "topic")
    repository.replace("1e-9", "10")
    repository.make_outputs(1.0)
    repository.replace("np.arange(4.), t", "np.arange(4.) + 1, t", "p.py")
    assert ciwrap(["accept", "--reason", "cleanup"]) == 0
    repository.commit()
    git(repository.folder, "checkout", "-q", "main")
    (repository.folder / "b").write_text("x")
    base = repository.commit()
    head = merged(repository, "topic", "main")
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}
    assert base_of(repository.runner(event, name)) == base
    assert repository.check(repository.runner(event, name))["wider"] == "2"
    # The last merge into main is no part of the pull request either.
    event = {"pull_request": {"base": {"sha": head}, "head": {"sha": "a" * 40}}}
    assert base_of(repository.runner(event, name)) == head
