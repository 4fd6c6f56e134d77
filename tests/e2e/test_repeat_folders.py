"""`ciwrap repeat`: outputs of runs stay apart, and what lay there before comes back."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.repeated import files_in, runs_made, with_program

if TYPE_CHECKING:
    from e2e.cli_project import Outcome, Project

NOISY = 'np.save("out/x.npy", x + 1e-9 * noise.uniform(-1, 1, 500))'
EQUAL = 'np.save("out/x.npy", x)'
IN_FOLDERS = """\
out = pathlib.Path("out_" + sys.argv[1])
out.mkdir()
pathlib.Path("began_" + sys.argv[1]).touch()
deadline = time.monotonic() + 30
while int(sys.argv[1]) <= 2 and not pathlib.Path(f"began_{3 - int(sys.argv[1])}").exists():
    assert time.monotonic() < deadline, "the other run never began"
    time.sleep(0.01)
np.save(out / "x.npy", x + 1e-9 * int(sys.argv[1]))
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def assert_only_snapshots_are_left(project: Project) -> None:
    """Snapshots of the environment are kept for `ciwrap snapshot diff`; runs and locks are not."""
    left = files_in(project.folder / ".ciwrap")
    stays = [".gitignore", "ciwrap.schema.json"]
    assert [one for one in left if not one.startswith("snapshots/")] == stays


def variable(outcome: Outcome, name: str = "x") -> Any:
    (found,) = [one for one in outcome.document["variables"] if one["name"] == name]
    return found


def texts(outcome: Outcome) -> str:
    return "\n".join(one["text"] for one in outcome.document["messages"])


def test_a_program_that_writes_to_a_fixed_folder(project: Project) -> None:
    """The outputs are to be in a folder of each run; the program does not know."""
    with_program(
        project, EQUAL, command="[{python}, program.py, '{run}']", check="outputs: 'out_{run}'"
    )
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert "wrote nothing that 'outputs' names (out_1)" in outcome.err
    assert runs_made(project) == 1


def test_folders_of_their_own_that_no_command_is_told_of(project: Project) -> None:
    with_program(project, EQUAL, check="outputs: 'out_{run}'")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 2
    assert "{run} is in the outputs, but in no command" in outcome.err
    assert runs_made(project) == 0


def test_run_and_seed_reach_the_command_and_the_outputs(project: Project) -> None:
    with_program(
        project,
        "out = pathlib.Path('out_' + sys.argv[1]); out.mkdir()\n"
        "np.save(out / 'x.npy', x + 1e-9 * int(sys.argv[2]) / 2**31)\n",
        command="[{python}, program.py, '{run}', '{seed}']",
        check="outputs: 'out_{run}'",
    )
    outcome = project.run("repeat", "-n", "4", "--seed", "5", "--keep")
    assert outcome.code == 0, outcome
    assert variable(outcome)["distinct_results"] == 4
    seeds = [run["seed"] for run in outcome.document["runs"]]
    assert len(set(seeds)) == 4
    assert not list(project.folder.glob("out_*"))
    again = project.run("repeat", "-n", "4", "--seed", "5")
    assert [run["seed"] for run in again.document["runs"]] == seeds


def test_a_run_that_links_to_what_another_wrote_is_not_compared_with_itself(
    project: Project,
) -> None:
    with_program(
        project,
        'kept = pathlib.Path("kept.npy")\nif run == 1: np.save(kept, x)\n'
        'os.link(kept, "out/x.npy")',
    )
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 3
    assert "it would be compared with itself" in outcome.out


def test_what_lay_there_before_is_back_afterwards(project: Project) -> None:
    with_program(project, NOISY)
    project.save("x", np.arange(3.0))
    project.save("old", np.arange(4.0))
    before = {path: path.read_bytes() for path in (project.folder / "out").iterdir()}
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0
    assert [one["name"] for one in outcome.document["variables"]] == ["x"]
    assert {path: path.read_bytes() for path in (project.folder / "out").iterdir()} == before
    assert_only_snapshots_are_left(project)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGKILL])
def test_links_come_back_as_links(project: Project, number: int | None) -> None:
    """What they point to is not ours, and may lie anywhere, or nowhere."""
    slow = "" if number is None else "\nif run == 2: time.sleep(5)"
    with_program(project, f"{NOISY}{slow}")
    np.save(project.folder / "elsewhere.npy", np.arange(3.0))
    links = {"x.npy": "../elsewhere.npy", "broken.npy": "nowhere.npy"}
    for name, target in links.items():
        (project.folder / "out" / name).symlink_to(target)
    if number is not None:
        kill_in_run(project, 2, number)
    if number != signal.SIGINT:
        with_quick = (project.folder / "program.py").read_text().replace("sleep(5)", "sleep(0)")
        (project.folder / "program.py").write_text(with_quick)
        assert project.run("repeat", "-n", "2").code == 0
    there = {path.name: str(path.readlink()) for path in (project.folder / "out").iterdir()}
    assert there == links
    assert np.array_equal(np.load(project.folder / "elsewhere.npy"), np.arange(3.0))


def kill_in_run(project: Project, run: int, number: int) -> int:
    """Starts a repeat and sends it a signal once that run is under way; the exit code."""
    process = project.begin("repeat", "-n", "6")
    deadline = time.monotonic() + 60
    while runs_made(project) < run:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode


def test_a_killed_repeat_is_mended_by_the_next_one(project: Project) -> None:
    late = "time.sleep(5); open('late', 'w').close()"
    with_program(project, f"{NOISY}\nif run == 2: {late}")
    project.save("x", np.arange(3.0))
    assert kill_in_run(project, 2, signal.SIGKILL) == -signal.SIGKILL
    time.sleep(6)  # the program is killed, too, and writes nothing any more
    assert not (project.folder / "late").exists()
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0, outcome
    assert "an earlier call was killed, and the outputs that it had set aside are back" in texts(
        outcome
    )
    assert np.load(project.folder / "out/x.npy").tolist() == [0, 1, 2]
    again = project.run("repeat", "-n", "3")
    assert "killed" not in texts(again)


def test_what_came_in_the_place_of_a_killed_one_is_kept(project: Project) -> None:
    """Killed, then the program is run by hand, then repeated: nothing of the three is lost."""
    with_program(project, f"{NOISY}\nif run == 2: time.sleep(5)")
    project.save("x", np.arange(3.0))
    kill_in_run(project, 2, signal.SIGKILL)
    time.sleep(1)  # the program is killed with it
    project.save("x", np.arange(4.0))
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0, outcome
    assert "what had come in its place is in .ciwrap/repeat/found" in texts(outcome)
    assert np.load(project.folder / "out/x.npy").tolist() == [0, 1, 2]
    assert np.load(project.folder / ".ciwrap/repeat/found/out/x.npy").tolist() == [0, 1, 2, 3]


@pytest.mark.slow
def test_what_came_in_the_place_of_two_killed_ones_is_kept(project: Project) -> None:
    """The second one was killed before it could tell what it had found."""
    with_program(project, f"{NOISY}\nif run == 2: time.sleep(5)")
    project.save("x", np.arange(3.0))
    for values in (np.arange(4.0), np.arange(5.0)):
        (project.folder / "count").unlink(missing_ok=True)
        kill_in_run(project, 2, signal.SIGKILL)
        time.sleep(1)  # the program is killed with it
        project.save("x", values)
    outcome = project.run("repeat", "-n", "3")
    assert "what had come in its place is in .ciwrap/repeat/found_2" in texts(outcome)
    assert np.load(project.folder / "out/x.npy").tolist() == [0, 1, 2]
    found = [project.folder / f".ciwrap/repeat/{name}/out/x.npy" for name in ("found", "found_2")]
    assert [np.load(path).tolist() for path in found] == [[0, 1, 2, 3], [0, 1, 2, 3, 4]]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("run", [1, 2, 3, 5])
def test_killed_over_and_over_it_loses_nothing(project: Project, run: int) -> None:
    with_program(project, f"{NOISY}\ntime.sleep(0.2)")
    before = {"x": np.arange(3.0), "old": np.arange(5.0)}
    for name, values in before.items():
        project.save(name, values)
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        (project.folder / "count").unlink(missing_ok=True)
        kill_in_run(project, run, number)
        time.sleep(1)  # the program is killed with it
    outcome = project.run("repeat", "-n", "2")
    assert outcome.code == 0, outcome
    for name, values in before.items():
        assert np.load(project.folder / f"out/{name}.npy").tolist() == values.tolist()


def test_an_interrupted_run_leaves_nothing_of_its_own(project: Project) -> None:
    with_program(
        project,
        f'{NOISY}\nif run == 2:\n    os.mkdir("out/half")\n'
        '    np.save("out/half/done.npy", x)\n    time.sleep(600)',
    )
    project.save("x", np.arange(3.0))
    assert kill_in_run(project, 2, signal.SIGINT) == 130
    assert files_in(project.folder / "out") == ["x.npy"]
    assert np.load(project.folder / "out/x.npy").tolist() == [0, 1, 2]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_puts_everything_back(project: Project, number: signal.Signals) -> None:
    with_program(project, f"{NOISY}\nif run == 2: time.sleep(600)")
    project.save("x", np.arange(3.0))
    process = project.begin("repeat", "-n", "4")
    deadline = time.monotonic() + 60
    while runs_made(project) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert np.load(project.folder / "out/x.npy").tolist() == [0, 1, 2]
    assert_only_snapshots_are_left(project)


@pytest.mark.slow
def test_two_at_once_do_not_mix(project: Project) -> None:
    with_program(project, f"{NOISY}\nif run == 1: time.sleep(600)")
    process = project.begin("repeat", "-n", "4")
    deadline = time.monotonic() + 60
    while runs_made(project) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 3
    assert f"process {process.pid} is running commands in this folder" in outcome.err
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


def test_runs_at_the_same_time(project: Project) -> None:
    """The first two runs wait for each other, so they end only if they run together."""
    with_program(
        project,
        IN_FOLDERS,
        command="[{python}, program.py, '{run}']",
        check="outputs: 'out_{run}'",
    )
    outcome = project.run("repeat", "-n", "5", "--concurrent", "2")
    assert [run.get("problem") for run in outcome.document["runs"]] == [None] * 5
    assert outcome.code == 0, outcome
    assert variable(outcome)["classes"] == [1, 2, 3, 4, 5]
    assert [run["number"] for run in outcome.document["runs"]] == [1, 2, 3, 4, 5]
    assert not list(project.folder.glob("out_*"))


def test_runs_at_the_same_time_need_folders_of_their_own(project: Project) -> None:
    with_program(project, NOISY)
    outcome = project.run("repeat", "-n", "4", "--concurrent", "2")
    assert outcome.code == 2
    assert "runs at the same time would write to one place" in outcome.err
    assert runs_made(project) == 0


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_runs_that_are_under_way(
    project: Project, number: signal.Signals
) -> None:
    with_program(
        project,
        'pathlib.Path("pid_" + sys.argv[1]).write_text(str(os.getpid()) + "\\n")\ntime.sleep(600)',
        command="[{python}, program.py, '{run}']",
        check="outputs: 'out_{run}'",
    )
    process = project.begin("repeat", "-n", "4", "--concurrent", "2")
    paths = [project.folder / f"pid_{run}" for run in (1, 2)]
    deadline = time.monotonic() + 60
    while not all(path.exists() and path.read_text().endswith("\n") for path in paths):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    for path in paths:
        while is_running(int(path.read_text())):
            assert time.monotonic() < deadline + 60
            time.sleep(0.05)


def test_folders_that_are_no_outputs_stay(project: Project) -> None:
    """Outputs beside everything else, as in a git repository, whose empty folders matter."""
    with_program(
        project,
        'os.makedirs("new/deep", exist_ok=False)\n'
        'np.save("new/deep/x.npy", x)\nnp.save("y.npy", x)',
        check='outputs: ["*.npy", "new"]',
    )
    for name in (".git/refs/tags", "empty/inside", "out/kept"):
        (project.folder / name).mkdir(parents=True)
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0, outcome
    assert [one["name"] for one in outcome.document["variables"]] == ["deep/x", "y"]
    for name in (".git/refs/tags", "empty/inside", "out/kept"):
        assert (project.folder / name).is_dir(), name
    assert not (project.folder / "new").exists()


def test_a_run_that_breaks_leaves_no_folders_behind(project: Project) -> None:
    """A program that makes its folder anew each time, and fails once it has."""
    with_program(project, f'os.mkdir("out/inner")\nif run == 2: sys.exit(1)\n{EQUAL}')
    (project.folder / "out").mkdir(exist_ok=True)
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert variable(outcome)["classes"] == [1, 0, 1, 1]


def test_kept_runs_outlive_a_call_that_runs_nothing(project: Project) -> None:
    """Sixty members of an ensemble may have taken a night."""
    with_program(project, NOISY)
    assert project.run("repeat", "-n", "3", "--keep").code == 0
    kept = {path: path.read_bytes() for path in kept_files(project)}
    assert len(kept) >= 3
    config = (project.folder / "ciwrap.yaml").read_text()
    # No golden to compare with, and a command that is not there.
    for arguments, change in (
        (("--reference", "golden"), config),
        ((), "run: [no-such-program]\nchecks: {sim: {outputs: out}}\n"),
    ):
        (project.folder / "ciwrap.yaml").write_text(change)
        assert project.run("repeat", "-n", "2", *arguments).code == 3
        assert {path: path.read_bytes() for path in kept_files(project)} == kept
    (project.folder / "ciwrap.yaml").write_text(config)
    assert project.run("repeat", "-n", "2").code == 0
    assert kept_files(project) == []


def kept_files(project: Project) -> list[Path]:
    return sorted((project.folder / ".ciwrap/repeat").glob("run_*/**/*.npy"))
