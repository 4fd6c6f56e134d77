"""`ciwrap time`: two commands, or two revisions, in pairs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from e2e.cli_project import Project
from git_repository import GitRepository

from ciwrap.studies.timing import pair_order

if TYPE_CHECKING:
    from pathlib import Path

# So far apart that a busy machine, which may keep either waiting, hides it in no pair of ten.
LONG = "sleep 0.3"
SHORT = "sleep 0.02"
# Few pairs, for what does not depend on how many there are.
QUICK = ("--pairs", "2", "--warm-up", "0")


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    """A folder without a configuration."""
    project = Project(tmp_path / "p")
    (project.folder / "ciwrap.yaml").unlink()
    return project


def sides(document: Any) -> tuple[Any, Any]:
    a, b = document["sides"]
    assert (a["name"], b["name"]) == ("A", "B")
    return a, b


def test_a_slower_command_is_found_and_gates_only_if_asked(folder: Project) -> None:
    outcome = folder.run("time", SHORT, LONG, "--seed", "4")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("changed: B takes ")
    assert "more time than A, with 95 % confidence, from 10 pairs" in outcome.out
    assert outcome.err == ""
    found = outcome.document
    assert found["kind"] == "timing"
    assert found["comparison"]["verdict"] == "changed"
    assert 0.5 < found["comparison"]["lower"] < found["comparison"]["change"] < 15
    a, b = sides(found)
    assert len(a["seconds"]) == len(b["seconds"]) == 10
    assert all(seconds >= 0.3 for seconds in b["seconds"])
    assert a["spread"]["median"] < b["spread"]["median"]
    assert a["spread"]["count"] == 10
    assert found["seed"] == 4
    assert found["order"] == ["A" if first else "B" for first in pair_order(10, 4)]

    gated = folder.run("time", SHORT, LONG, "--gate")
    assert gated.code == gated.document["exit_code"] == 1
    assert "with 99 % confidence" in gated.out
    faster = folder.run("time", LONG, SHORT, "--gate")
    assert (faster.code, faster.document["comparison"]["verdict"]) == (0, "changed")
    assert "less time than A" in faster.out


def test_what_no_pair_tells_is_inconclusive(folder: Project) -> None:
    outcome = folder.run("time", "true", "true", "--pairs", "3", "--gate")
    assert outcome.code == 0
    assert outcome.out.startswith("inconclusive: ")
    assert "99 % confidence takes 8 pairs at least" in outcome.out
    assert outcome.document["comparison"]["more_pairs"] == 5
    assert "lower" not in outcome.document["comparison"]


def test_equal_commands_have_not_changed(folder: Project) -> None:
    """With a margin so wide that no busy machine gets beyond it."""
    outcome = folder.run("time", SHORT, SHORT, "--pairs", "7", "--margin", "20")
    assert outcome.out.startswith("not changed: B takes as long as A, to within 2000 %")
    assert "that many pairs detect a change of 2000 % half of the time" in outcome.out
    assert outcome.document["comparison"]["margin"] == 20


MEMORY = f"{sys.executable} -S -c 'x = bytearray(400 << 20)'"


def test_more_than_a_budget_is_exit_code_1_and_one_line(folder: Project) -> None:
    page = folder.folder / "page.html"
    outcome = folder.run(
        "time", "true", SHORT, *QUICK, "--max-seconds", "0.01", "--report", str(page)
    )
    assert (outcome.code, outcome.document["exit_code"]) == (1, 1)
    line = outcome.out.splitlines()[0]
    assert line.startswith("over budget: B takes ")
    assert line.endswith(" in the median, and may take 10 ms")
    assert outcome.document["exceeded"] == [line.removeprefix("over budget: ")]
    assert "Over budget: B takes " in page.read_text()
    # The budget is of B.
    outcome = folder.run(
        "time", SHORT, "true", *QUICK, "--max-seconds", "9", "--max-memory", "4GiB"
    )
    assert (outcome.code, outcome.document.get("exceeded", [])) == (0, [])

    (folder.folder / "ciwrap.yaml").write_text("timing: {max_memory: 300 MiB}\n")
    outcome = folder.run("time", "true", MEMORY, *QUICK)
    assert outcome.code == 1
    assert " of memory at its peak, and may take 300.0 MiB" in outcome.out.splitlines()[0]
    assert folder.run("time", "true", MEMORY, *QUICK, "--max-memory", "500 MiB").code == 0


def test_a_budget_below_what_can_be_measured_is_not_met_unseen(folder: Project) -> None:
    outcome = folder.run("time", "true", "true", *QUICK, "--max-memory", "1 MiB")
    assert outcome.code == 3
    assert "the memory of B is less than that of ciwrap itself" in outcome.err


def test_every_run_is_made_in_the_order_that_is_told(folder: Project) -> None:
    outcome = folder.run(
        "time", "echo A >> log", "echo B >> log", "--pairs", "5", "--warm-up", "2", "--seed", "1"
    )
    told = [side + ("B" if side == "A" else "A") for side in outcome.document["order"]]
    assert (folder.folder / "log").read_text().split() == [*"ABAB", *"".join(told)]


def test_the_order_is_balanced_and_random() -> None:
    orders = {pair_order(10, seed) for seed in range(200)}
    assert len(orders) > 100
    assert all(sum(order) == 5 for order in orders)
    assert {sum(pair_order(7, seed)) for seed in range(50)} == {3, 4}
    assert pair_order(0, 1) == ()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo oops; exit 4", ("exit code 4", "its last words: oops")),
        ("kill -9 $$", ("was ended by signal 9",)),
        ("sleep 60", ("ran out of time",)),
    ],
)
def test_a_run_that_fails_ends_it(folder: Project, command: str, words: tuple[str, ...]) -> None:
    outcome = folder.run("time", "true", command, *QUICK, "--timeout-seconds", "0.5")
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert line.startswith(f"error: run 1 of 2 of B ({command}) ")
    assert all(word in line for word in (*words, "so nothing was compared"))
    assert outcome.document["verdict"] == "not_comparable"
    assert outcome.document["kind"] == "timing"
    assert outcome.document["messages"][0]["slug"] == "command-failed"


def test_a_run_that_fails_late_ends_it_too(folder: Project) -> None:
    count = "echo x >> log; test $(wc -l < log) -lt 4"
    outcome = folder.run("time", "true", count, "--pairs", "10")
    assert outcome.code == 3
    assert "run 3 of 10 of B" in outcome.err
    assert (folder.folder / "log").read_text().count("x") == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is no command to time"),
        (("true", "true", "true"), "but 3 are given; put each in quotes, or compare revisions"),
        (("true", "--gate"), "--gate is of two sides, and there is one command"),
        (("true", "--until-decided", "20"), "--until-decided is of two sides"),
        (
            ("true", "true", "--until-decided", "9"),
            "at most 9 pairs are allowed, but the first decision takes 10",
        ),
        (("true", " "), "a command is empty"),
        (("true", "true", "--head", "HEAD"), "--head needs --base"),
        (("true", "true", "--pairs", "0"), "must be from 1 to 1000"),
        (("true", "true", "--margin", "0"), "must be a number above 0"),
        (("true", "true", "--confidence", "95"), "must be from 0.5 to below 1"),
        (("true", "true", "--base", "HEAD"), "with --base, one command is timed"),
        (("--base", "HEAD"), "there is no command to time"),
        (("true", "--base", "HEAD"), "this is not in a git work tree"),
    ],
)
def test_what_has_no_meaning(folder: Project, arguments: tuple[str, ...], words: str) -> None:
    outcome = folder.run("time", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert len(outcome.error_lines) == 1


def test_the_configuration_says_how(folder: Project) -> None:
    (folder.folder / "ciwrap.yaml").write_text(
        "run: {command: 'true', env: {WHO: somebody}}\n"
        "timing: {pairs: 1, warm_up: 0, margin: 0.5, confidence: 0.9, gate: true}\n"
        "checks: {a: {outputs: out}}\n"
    )
    outcome = folder.run("time", "echo $WHO >> log", "true")
    assert (folder.folder / "log").read_text() == "somebody\n"
    comparison = outcome.document["comparison"]
    assert (comparison["pairs"], comparison["margin"], comparison["confidence"]) == (1, 0.5, 0.9)
    assert outcome.document["gate"] is True
    assert outcome.document["warm_up"] == 0
    over = folder.run("time", "true", "true", "--pairs", "2", "--no-gate")
    assert over.document["comparison"]["pairs"] == 2
    assert over.document["gate"] is False


def test_a_mistake_in_the_configuration_is_told(folder: Project) -> None:
    path = folder.folder / "ciwrap.yaml"
    path.write_text("checks: {a: {outputs: out}}\ntiming: {pairs: many}\n")
    outcome = folder.run("time", "true", "true")
    assert outcome.code == 2
    assert "ciwrap.yaml:2:17: timing.pairs: must be a whole number" in outcome.err


@pytest.mark.slow
def test_several_at_once(folder: Project) -> None:
    """Every other one of B's runs takes longer: its group waits for it."""
    slow = "mkdir first 2> /dev/null && sleep 0.8 && rmdir first || sleep 0.1"
    outcome = folder.run("time", SHORT, slow, "--concurrent", "2", *QUICK)
    assert outcome.code == 0, outcome
    a, b = (side["together"] for side in sides(outcome.document))
    assert (a["size"], b["size"]) == (2, 2)
    assert b["mean_makespan"] >= 0.8
    assert 0.15 < b["waste"] < 0.5
    assert a["mean_makespan"] >= a["expected_makespan"] * 0.5
    assert all(seconds >= 0.8 for seconds in sides(outcome.document)[1]["seconds"])
    assert "2 at once: the slowest takes" in outcome.out
    # All of them ran at once: nothing is known of runs that leave each other alone.
    assert "slowest of as many such runs by chance" in outcome.out


def test_one_that_fails_of_several_at_once(folder: Project) -> None:
    outcome = folder.run("time", "true", "mkdir first", "--concurrent", "3", *QUICK)
    assert outcome.code == 3
    assert "ended with exit code 1" in outcome.err


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core alone")
def test_a_core_is_left_to_the_system(folder: Project) -> None:
    code = "import os; print(*sorted(os.sched_getaffinity(0)))"
    command = f'{sys.executable} -c "{code}" > cores'
    outcome = folder.run("time", command, "true", "--reserve-core", *QUICK)
    assert outcome.document["reserve_core"] is True
    cores = [int(word) for word in (folder.folder / "cores").read_text().split()]
    assert cores == sorted(os.sched_getaffinity(0))[1:]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        refused = folder.run("time", "true", "true", "--reserve-core")
    finally:
        os.sched_setaffinity(0, before)
    assert refused.code == 2
    assert "there is only one core" in refused.err


def test_without_scipy_nothing_runs(folder: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    outcome = folder.run("time", "echo >> log", "true")
    assert outcome.code == 3
    assert "`ciwrap time` needs SciPy" in outcome.err
    assert "pip install scipy" in outcome.err
    assert not (folder.folder / "log").exists()


def test_a_job_summary(folder: Project) -> None:
    target = folder.folder / "summary.md"
    outcome = folder.run("time", "true # @team", "true", *QUICK, "--markdown", str(target))
    assert outcome.code == 0
    text = target.read_text()
    assert text.startswith("## ciwrap time: inconclusive: ")
    assert "95 % confidence takes 6 pairs at least." in text
    assert "| median | " in text
    assert "@team" not in text
    both = folder.run("time", "true", "true", *QUICK, "--markdown", "-", json_too=False)
    assert both.out.startswith("## ciwrap time: ")
    assert both.err.startswith("inconclusive: ")


# --- revisions ------------------------------------------------------------------------------------

CONFIG = """
run: ./sim/run
timing: {build: cp sim/source sim/run && chmod +x sim/run, pairs: 2, warm_up: 0}
checks: {a: {outputs: out}}
"""


@pytest.fixture
def repository(folder: Project) -> GitRepository:
    """Two commits, of which the second one made the program slower."""
    made = GitRepository.make(folder.folder)
    files = {"ciwrap.yaml": CONFIG, ".gitignore": "sim/run\nlog\n"}
    made.commit("fast", {"sim/source": "#!/bin/sh\nsleep 0.02\n", **files})
    made.commit("slow", {"sim/source": "#!/bin/sh\nsleep 0.2\n"})
    return made


def nothing_is_left(repository: GitRepository) -> bool:
    left = repository.folder / ".ciwrap/revisions"
    return not left.exists() or not list(left.iterdir())


def test_a_revision_against_the_working_tree(folder: Project, repository: GitRepository) -> None:
    before = repository.state()
    outcome = folder.run("time", "--base", "HEAD~1", "--pairs", "6")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("changed: B takes ")
    a, b = sides(outcome.document)
    assert a["commit"] == repository.git("rev-parse", "HEAD~1")
    assert b["commit"] == repository.git("rev-parse", "HEAD")
    assert a["revision"] == f"HEAD~1 ({a['commit'][:10]})"
    assert b["revision"] == f"working tree ({b['commit'][:10]})"
    assert a["spread"]["median"] < 0.15 < b["spread"]["median"]
    assert repository.state() == before
    assert nothing_is_left(repository)


def test_two_revisions_from_a_folder_below(folder: Project, repository: GitRepository) -> None:
    (folder.folder / "sim/source").write_text("#!/bin/sh\nexit 9\n")  # never looked at
    before = repository.state()
    target = folder.folder.parent / "result.json"
    below = Project(folder.folder.parent / "empty")
    done = below.run(
        "time", "--base", "HEAD", "--head", "HEAD~1", "--json", str(target),
        "--config", str(folder.folder / "ciwrap.yaml"), json_too=False,
    )  # fmt: skip
    assert done.code == 0, done
    a, b = sides(json.loads(target.read_text()))
    assert a["spread"]["median"] > b["spread"]["median"]
    assert repository.state() == before


def test_changes_that_are_not_committed_are_told_of(
    folder: Project, repository: GitRepository
) -> None:
    (folder.folder / "sim/source").write_text("#!/bin/sh\ntrue\n")
    outcome = folder.run("time", "--base", "HEAD")
    assert sides(outcome.document)[1]["revision"].endswith(", with changes)")


def test_another_command_in_both_revisions(folder: Project, repository: GitRepository) -> None:
    log = folder.folder / "log"
    outcome = folder.run("time", "--base", "HEAD~1", f"pwd >> {log}; sh sim/source", *QUICK)
    assert outcome.code == 0, outcome
    places = set(log.read_text().split())
    assert str(folder.folder) in places
    (other,) = places - {str(folder.folder)}
    assert "/.ciwrap/revisions/" in other


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("base", "code", "words"),
    [
        ("no-such-branch", 2, "there is no commit 'no-such-branch' in this repository"),
        ("--upload-pack=x", 2, "there is no commit"),
        ("HEAD~1", 3, "the build of A (HEAD~1) (cp sim/source"),
    ],
)
def test_a_revision_that_cannot_be_had(
    folder: Project, repository: GitRepository, base: str, code: int, words: str
) -> None:
    if code == 3:
        repository.git("rm", "-q", "sim/source")
        repository.commit("nothing to build", {"other": ""})
        repository.commit("back", {"sim/source": "#!/bin/sh\n"})
    before = repository.state()
    outcome = folder.run("time", f"--base={base}")
    assert outcome.code == code
    assert words in outcome.err
    assert repository.state() == before
    assert nothing_is_left(repository)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_behind(
    folder: Project, repository: GitRepository, number: signal.Signals
) -> None:
    before = repository.state()
    pids = folder.folder.parent / "pids"
    process = folder.begin("time", "--base", "HEAD~1", f"echo $$ >> {pids}; sleep 60",
                           "--concurrent", "2")  # fmt: skip
    deadline = time.monotonic() + 120
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert error.splitlines()[-1] == "interrupted"
    assert repository.state() == before
    assert nothing_is_left(repository)
    for pid in pids.read_text().split():
        while os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
            assert time.monotonic() < deadline, "a run goes on"
            time.sleep(0.01)


def test_what_a_killed_call_left_is_removed_by_the_next(
    folder: Project, repository: GitRepository
) -> None:
    before = repository.state()
    mark = folder.folder.parent / "started"
    process = folder.begin("time", "--base", "HEAD~1", f"touch {mark}; sleep 5")
    deadline = time.monotonic() + 120
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=30)
    assert not nothing_is_left(repository)
    assert folder.run("time", "--base", "HEAD~1", *QUICK).code == 0
    assert nothing_is_left(repository)
    assert repository.state() == before


MEETS = """\
import os, pathlib, sys, time
me, other = sys.argv[1:]
pathlib.Path(me).touch()
while not pathlib.Path(other).exists():
    time.sleep(0.005)
with open(f"cores-{me}", "a") as log:
    print(*sorted(os.sched_getaffinity(0)), file=log)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a duet takes two cores")
def test_a_duet_runs_both_sides_at_once_on_cores_of_their_own(folder: Project) -> None:
    """Each side waits for the other one, which would never end if one came after the other."""
    (folder.folder / "meet.py").write_text(MEETS)
    a, b = (f"{sys.executable} meet.py {words}" for words in ("a b", "b a"))
    outcome = folder.run(
        "time", a, b, "--duet", "--pairs", "6", "--warm-up", "0", "--timeout-seconds", "60"
    )
    assert outcome.code == 0, outcome
    assert outcome.document["duet"] is True
    assert "both sides of each pair ran at the same time, each on half of the cores" in outcome.out
    used = [(folder.folder / f"cores-{me}").read_text().splitlines() for me in ("a", "b")]
    halves = set(used[0]) | set(used[1])
    assert len(halves) == 2
    first, second = (set(half.split()) for half in halves)
    assert not first & second
    assert len(first) == len(second) == len(os.sched_getaffinity(0)) // 2
    # Either side has had either half, three times each, in the order that is told.
    for of_a, of_b, side in zip(*used, outcome.document["order"], strict=True):
        assert of_a != of_b
        assert (of_a == used[0][0]) is (side == outcome.document["order"][0])
    assert outcome.document["order"].count("A") == 3


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a duet takes two cores")
def test_a_side_that_fails_in_a_duet_is_named(folder: Project) -> None:
    outcome = folder.run("time", "true", "echo oops; exit 4", *QUICK, "--duet")
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert line.startswith("error: run 1 of 2 of B (echo oops; exit 4) ended with exit code 4")
    assert line.endswith("; its last words: oops")


def test_a_duet_that_cannot_be(folder: Project) -> None:
    outcome = folder.run("time", "true", "true", "--duet", "--concurrent", "2")
    assert outcome.code == 2
    assert "--concurrent has no meaning in it" in outcome.err
    one = str(min(os.sched_getaffinity(0)))
    alone = subprocess.run(
        ["taskset", "-c", one, sys.executable, "-m", "ciwrap", "time", "true", "true", "--duet"],
        cwd=folder.folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert alone.returncode == 2
    assert "there is only one core, so two commands cannot have one each" in alone.stderr


def test_a_configuration_of_times_alone(folder: Project) -> None:
    """Nothing is checked, so there need be no check; `run` without one would match in vain."""
    (folder.folder / "ciwrap.yaml").write_text('run: "true"\ntiming: {pairs: 6}\n')
    outcome = folder.run("time", "true", "true")
    assert outcome.code == 0, outcome
    assert outcome.document["comparison"]["pairs"] == 6
    refused = folder.run("run")
    assert refused.code == 2
    assert "checks: is required" in refused.err


def test_processor_time_stands_beside_the_time(folder: Project) -> None:
    """B waits for a second: it takes longer, and does no more work."""
    command = f"{sys.executable} -S -c 'sum(range(3000000))'"
    outcome = folder.run("time", command, f"{command}; sleep 1", "--pairs", "6")
    a, b = outcome.document["sides"]
    assert len(a["used"]) == len(b["used"]) == 6
    changes = [outcome.document[one]["change"] for one in ("comparison", "beside")]
    assert changes[0] > changes[1]
    assert "processor time alone: " in outcome.out
    assert "processor time does not see waiting for disks" in outcome.out
    assert "processor time, median" in outcome.out


def test_processor_time_decides_where_it_is_asked_to(folder: Project) -> None:
    """B waits, and does no more work: no longer by processor time, which --gate then goes by."""
    command = f"{sys.executable} -S -c 'sum(range(3000000))'"
    words = ("time", command, f"{command}; sleep 0.5", "--margin", "0.5", "--gate", "--pairs", "8")
    outcome = folder.run(*words, "--decides", "cpu", "--report", "time.html")
    assert outcome.code == 0, outcome
    assert outcome.document["decides"] == "cpu"
    assert outcome.document["comparison"]["change"] < outcome.document["beside"]["change"]
    assert " processor time" in outcome.out.splitlines()[0]
    assert "time on the clock alone: changed" in outcome.out
    assert "B takes more processor time" in (folder.folder / "time.html").read_text()
    assert folder.run(*words).code == 1


def test_pairs_are_added_until_it_is_decided(folder: Project) -> None:
    outcome = folder.run("time", SHORT, LONG, "--pairs", "2", "--until-decided", "40")
    found = outcome.document
    assert found["comparison"]["verdict"] == "changed"
    # Two and four pairs can decide nothing at any such confidence; eight can.
    assert found["looks"] == [2, 4, 8, 16, 32, 40]
    assert found["comparison"]["pairs"] == len(found["order"]) == 8
    assert found["comparison"]["confidence"] == pytest.approx(1 - 0.05 / 6)
    assert all(len(side["used"]) == len(side["seconds"]) == 8 for side in found["sides"])
    assert "95 % confidence for all 6 looks together" in outcome.out


def test_the_limit_of_pairs_ends_it(folder: Project) -> None:
    outcome = folder.run("time", SHORT, SHORT, "--pairs", "2", "--until-decided", "5")
    assert outcome.document["comparison"]["pairs"] == 5
    assert outcome.out.startswith("inconclusive: ")


def test_one_command_alone_has_times_and_no_verdict(folder: Project) -> None:
    kept = ("--json", str(folder.folder / "t.json"))
    folder.run("time", "true", "--pairs", "1", *kept, json_too=False)
    (series,) = folder.run("trend", "t.json").document["times"]
    assert len(series["points"]) == 1
    outcome = folder.run("time", "sleep 0.05", "--pairs", "6", "--report", "t.html")
    assert outcome.code == 0, outcome
    assert re.match(r"it takes \S+ \w+ in the median of 6 runs: ", outcome.out)
    found = outcome.document
    assert found["comparison"] is None
    (side,) = found["sides"]
    assert len(side["seconds"]) == side["spread"]["count"] == 6
    assert all(one >= 0.05 for one in side["seconds"])
    page = (folder.folder / "t.html").read_text()
    assert "How long runs take" in page
    assert "How B compares" not in page


def test_the_configured_command_is_timed_alone(folder: Project) -> None:
    """What only a comparison has may be configured for when there is one."""
    (folder.folder / "ciwrap.yaml").write_text(
        "run: touch timed\ntiming: {pairs: 3, gate: true, duet: true, until_decided: 9}\n"
    )
    outcome = folder.run("time")
    assert outcome.code == 0, outcome
    assert len(outcome.document["sides"][0]["seconds"]) == 3
    assert (folder.folder / "timed").exists()


def test_the_machine_is_named_where_somebody_says_so(folder: Project) -> None:
    """Trends of two machines are two series."""
    for name, more in (("a", ()), ("b", ("--keep-host",))):
        target = ("--json", str(folder.folder / f"{name}.json"))
        folder.run("time", "true", "--pairs", "1", *more, *target, json_too=False)
        written = json.loads((folder.folder / f"{name}.json").read_text())
        assert ("host" in written["environment"]) is bool(more)
    assert len(folder.run("trend", "a.json", "b.json").document["times"]) == 2
