"""`ciwrap repeat`: what varies from run to run, and what is said where that cannot be told."""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.repeated import runs_made, with_program

if TYPE_CHECKING:
    from e2e.cli_project import Outcome, Project

NOISY = 'np.save("out/x.npy", x + 1e-9 * noise.uniform(-1, 1, 500))'
EQUAL = 'np.save("out/x.npy", x)'


def variable(outcome: Outcome, name: str = "x") -> Any:
    (found,) = [one for one in outcome.document["variables"] if one["name"] == name]
    return found


def texts(outcome: Outcome) -> str:
    return "\n".join(one["text"] for one in outcome.document["messages"])


def test_equal_runs_say_how_little_they_prove(project: Project) -> None:
    with_program(project, EQUAL)
    outcome = project.run("repeat", "-n", "10")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("The variable is equal in 10 runs\n")
    assert "a further one differs with a chance of up to 28.3 %" in outcome.out
    assert variable(outcome)["suggested_bound"] is None
    assert variable(outcome)["classes"] == [1] * 10
    assert len(outcome.document["runs"]) == runs_made(project) == 10
    # No result names a machine, unless somebody says so.
    assert "host" not in outcome.document["environment"]
    kept = project.run("repeat", "-n", "2", "--keep-host").document
    assert kept["environment"]["host"] == platform.node()
    assert all(datetime.fromisoformat(one["began_at"]).tzinfo for one in kept["runs"])


def test_digits_are_those_of_as_many_elements_as_said(project: Project) -> None:
    """Of three elements one is noise: none has as many digits as lie between its and theirs."""
    with_program(project, 'np.save("out/x.npy", np.array([1.0, 2.0, 4.0 + (run > 1) * run]))')
    found = variable(project.run("repeat", "-n", "4"))
    assert found["common_digits"] == 0
    assert found["normal_digits"] < 1


def test_numbers_whose_difference_no_double_holds(project: Project) -> None:
    code = 'np.save("out/x.npy", np.array([1e308, -1e308]) * (1 if run < 2 else -1))'
    with_program(project, code)
    outcome = project.run("repeat", "-n", "4")
    assert outcome.err == ""
    assert variable(outcome)["common_digits"] == 0
    assert outcome.out.startswith("1 of 1 variable varies, over 1.79e308; no bound is suggested;")


def test_noise_is_measured_and_a_bound_suggested(project: Project) -> None:
    with_program(project, NOISY)
    outcome = project.run("repeat", "-n", "10", "--keep")
    assert outcome.code == 0, outcome
    runs = [
        np.load(project.folder / f".ciwrap/repeat/run_{number}/out/x.npy")
        for number in range(1, 11)
    ]
    largest = max(np.abs(one - runs[0]).max() for one in runs[1:])
    found = variable(outcome)
    assert found["kind"] == "noise"
    assert found["max_abs"] == largest
    assert np.abs(runs[found["max_abs_run"] - 1] - runs[0]).argmax() == found["max_abs_index"][0]
    assert found["distinct_results"] == 10
    assert (
        3 * largest
        <= found["suggested_bound"].get("atol", 0) + found["suggested_bound"].get("rtol", 0) * 2
    )
    assert found["suggested_bound"]["comparisons"] == 9
    assert found["present_fit"] == "too_tight"
    assert outcome.out.startswith("1 of 1 variable varies, at most ")


def test_few_runs_suggest_no_bound(project: Project) -> None:
    with_program(project, NOISY)
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0
    assert variable(outcome)["suggested_bound"] is None
    assert "no bound is suggested" in outcome.out
    assert "2 comparisons with the reference cannot suggest a bound: that takes 3" in outcome.out


def test_several_runs_that_fail(project: Project) -> None:
    with_program(project, f"if run in (2, 3): sys.exit(1)\n{EQUAL}")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.out.startswith("Runs 2, 3 of 4 were not compared; the variable is equal in 2")


def test_outputs_that_disappear_while_runs_are_made(project: Project) -> None:
    """The program removes what belongs to ciwrap, and with it the outputs of the first run."""
    code = f'import shutil\nif run == 3: shutil.rmtree(".ciwrap")\n{NOISY}'
    with_program(project, code)
    outcome = project.run("repeat", "-n", "5")
    assert outcome.code == 3, outcome
    assert "Runs 3, 4, 5 of 5 were not compared" in outcome.out
    assert variable(outcome)["kind"] == "not_comparable"
    assert "the first run no longer has it (x)" in outcome.out


def test_classes_tell_which_runs_are_equal(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", x + 1e-9 * (run % 3))')
    outcome = project.run("repeat", "-n", "6")
    assert variable(outcome)["classes"] == [1, 2, 3, 1, 2, 3]
    assert variable(outcome)["distinct_results"] == 3


def test_a_run_that_fails_is_told_of_and_not_dropped(project: Project) -> None:
    with_program(project, f'if run == 4: sys.exit("out of luck")\n{NOISY}')
    outcome = project.run("repeat", "-n", "6")
    assert outcome.code == 3, outcome
    assert "Run 4 of 6 was not compared" in outcome.out
    assert "run 4: the command ended with exit code 1; its last words: out of luck" in outcome.out
    assert "out of luck" in outcome.document["runs"][3]["output_tail"]
    assert variable(outcome)["classes"][3] == 0
    assert variable(outcome)["suggested_bound"]["comparisons"] == 4
    assert runs_made(project) == 6


def test_a_first_run_that_fails_ends_it(project: Project) -> None:
    with_program(project, "sys.exit(7)")
    outcome = project.run("repeat", "-n", "6")
    assert outcome.code == 3
    assert "ended with exit code 7" in outcome.err
    assert runs_made(project) == 1


def test_a_run_that_never_ends(project: Project) -> None:
    with_program(project, f"{EQUAL}\nif run == 3: time.sleep(600)", run="  timeout_seconds: 3\n")
    started = time.monotonic()
    outcome = project.run("repeat", "-n", "4")
    assert time.monotonic() - started < 60
    assert outcome.code == 3
    assert re.search(r"run 3: the command ran out of time after 3(\.\d)? s", outcome.out)
    assert outcome.document["runs"][2]["timed_out"] is True
    assert variable(outcome)["classes"] == [1, 1, 0, 1]


def test_a_run_that_writes_nothing(project: Project) -> None:
    with_program(project, f"if run == 2: sys.exit(0)\n{EQUAL}")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert "run 2: mesh: the command wrote nothing that 'outputs' names (out)" in outcome.out
    assert variable(outcome)["classes"] == [1, 0, 1, 1]


def test_a_program_that_never_writes(project: Project) -> None:
    with_program(project, "pass")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert "the first run gives nothing to compare with" in outcome.err
    assert runs_made(project) == 1


def test_nan_in_one_run_is_not_comparable(project: Project) -> None:
    with_program(project, f"if run == 3: x[7] = np.nan\n{EQUAL}")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert variable(outcome)["kind"] == "not_comparable"
    assert "mesh: x: run 3: NaN where the reference has none" in outcome.out
    assert "the other way round (1 value)" in outcome.out
    assert outcome.out.startswith("1 variable cannot be compared (x)\n")
    assert variable(outcome)["suggested_bound"] is None


def test_nan_in_every_run_is_warned_of(project: Project) -> None:
    with_program(project, f"x[7] = np.nan\n{EQUAL}")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 0
    assert "mesh: x: holds NaN in the first run (1 sampled value)" in outcome.out


def test_another_shape_in_one_run(project: Project) -> None:
    with_program(project, f"if run == 2: x = x[:-1]\n{EQUAL}")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert variable(outcome)["kind"] == "not_comparable"
    assert "499" in variable(outcome)["reason"]


def test_a_variable_that_is_missing_in_one_run(project: Project) -> None:
    with_program(project, f'{EQUAL}\nif run != 3: np.save("out/y.npy", x)')
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 3
    assert variable(outcome, "y")["reason"] == "run 3 lacks it (y)"
    assert variable(outcome, "y")["classes"] == [1, 1, 0, 1]
    assert variable(outcome, "x")["kind"] == "equal"


def test_the_largest_doubles_with_another_sign(project: Project) -> None:
    """What no double holds is told in words."""
    with_program(project, 'np.save("out/x.npy", np.full(500, 1.7e308 * (-1) ** run))')
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 0
    assert variable(outcome)["kind"] == "unrelated"
    assert "runs differ by more than the spread of the values" in outcome.out
    assert "inf" not in outcome.out


def test_a_random_seed_left_open(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", noise.normal(size=500))')
    outcome = project.run("repeat", "-n", "10")
    assert outcome.code == 0
    assert variable(outcome)["kind"] == "unrelated"
    assert variable(outcome)["suggested_bound"] is None
    assert "is a random seed left open?" in outcome.out


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("dtype", "size"), [("f4", 1e-6), ("f8", 1e-14), ("f8", 1e-9)])
def test_noise_of_values_that_hardly_spread_is_no_seed(
    project: Project, dtype: str, size: float
) -> None:
    with_program(
        project, f'np.save("out/x.npy", (3 + {size} * noise.uniform(-1, 1, 500)).astype("{dtype}"))'
    )
    outcome = project.run("repeat", "-n", "10")
    assert variable(outcome)["kind"] == "noise"
    assert variable(outcome)["suggested_bound"] is not None


def test_check_fails_beyond_the_configured_bound(project: Project) -> None:
    with_program(project, NOISY, check="outputs: out, atol: 1e-6")
    assert project.run("repeat", "-n", "4", "--check").code == 0
    with_program(project, NOISY, check="outputs: out, atol: 1e-12")
    assert project.run("repeat", "-n", "4").code == 0
    outcome = project.run("repeat", "-n", "4", "--check")
    assert outcome.code == 1
    assert "is too tight" in outcome.out


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("bound", "fit", "words"),
    [
        ("1e-8", "fits", "fits"),
        ("1e-12", "too_tight", "is too tight (differences reach"),
        ("4e-9", "too_tight", "leaves too little room (49.9 % used, and 3 times as much should"),
        ("1e-3", "too_wide", "is too wide"),
    ],
)
def test_the_present_bound_is_judged(project: Project, bound: str, fit: str, words: str) -> None:
    with_program(project, NOISY, check=f"outputs: out, atol: {bound}")
    outcome = project.run("repeat", "-n", "10")
    assert variable(outcome)["present_fit"] == fit
    shown = bound.replace("1e-3", "0.001")
    assert f"the present bound atol={shown} rtol=0 {words}" in outcome.out
    assert variable(outcome)["present_bound"]["atol"] == float(bound)


def test_the_golden_as_the_reference(project: Project) -> None:
    with_program(project, NOISY, check="outputs: out, atol: 1e-6, evidence: data")
    project.save("x", np.linspace(1.0, 2.0, 500))
    project.accept()
    golden = np.load(project.folder / "out/x.npy")
    outcome = project.run("repeat", "-n", "4", "--reference", "golden", "--keep")
    assert outcome.code == 0, outcome
    runs = [
        np.load(project.folder / f".ciwrap/repeat/run_{number}/out/x.npy") for number in range(1, 5)
    ]
    assert variable(outcome)["max_abs"] == max(np.abs(one - golden).max() for one in runs)
    assert variable(outcome)["suggested_bound"]["comparisons"] == 4


def test_a_dry_run_runs_nothing(project: Project) -> None:
    with_program(project, NOISY)
    outcome = project.run("repeat", "-n", "4", "--dry-run", json_too=False)
    assert outcome.code == 0
    assert "4 runs, in this order" in outcome.out
    assert runs_made(project) == 0


def test_without_a_command_there_is_nothing_to_run(project: Project) -> None:
    outcome = project.run("repeat")
    assert outcome.code == 2
    assert "no command to run" in outcome.err


def test_outputs_beside_the_project_are_refused(project: Project) -> None:
    code = 'np.save("../beside.npy", x)'
    with_program(project, code, check="outputs: ../beside.npy", in_advance=False)
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 2
    assert "outputs outside of the configuration's folder" in outcome.err


def test_the_demonstration_with_one_thread_is_equal(project: Project) -> None:
    words = json.dumps([sys.executable, "-m", "ciwrap.studies.simulation", "out", "--threads", "1"])
    with_program(project, "", command=words)
    outcome = project.run("repeat", "-n", "10")
    assert outcome.code == 0, outcome
    assert {one["kind"] for one in outcome.document["variables"]} == {"equal"}
    assert "28.3 %" in outcome.out
    assert texts(outcome).count("28.3 %") == 1


def test_bounds_are_shown_and_then_written(project: Project) -> None:
    with_program(project, NOISY)
    text = (project.folder / "ciwrap.yaml").read_text()
    dry = project.run("repeat", "-n", "10", "--write-bounds", "--dry-run")
    assert dry.code == 0, dry
    assert (project.folder / "ciwrap.yaml").read_text() == text
    assert "# 3 x largest of 9 differences, 20" in dry.out
    outcome = project.run("repeat", "-n", "10", "--write-bounds")
    assert outcome.code == 0, outcome
    assert (project.folder / "ciwrap.yaml").read_text() != text
    with_bounds = (project.folder / "ciwrap.yaml").read_text()
    again = project.run("repeat", "-n", "10", "--write-bounds")
    assert "there is no bound to write" in again.out
    assert (project.folder / "ciwrap.yaml").read_text() == with_bounds


FIVE = """\
x = np.random.default_rng(1).normal(size=5000)
x[:5] = noise.normal(size=5)
np.save("out/x.npy", x)
"""


def test_a_bound_that_catches_nothing_is_not_written(project: Project) -> None:
    """5 of 5,000 elements are drawn anew in each run; the others never vary."""
    with_program(project, FIVE)
    text = (project.folder / "ciwrap.yaml").read_text()
    outcome = project.run("repeat", "-n", "10", "--write-bounds")
    assert outcome.code == 0, outcome
    found = variable(outcome)
    assert (found["kind"], found["suggested_bound"]) == ("noise", None)
    assert "mesh: x: no bound is suggested: it would take `atol: 20`" in texts(outcome)
    assert "5 of 5,000 values vary by up to " in texts(outcome)
    assert ", the others by 0: fix what makes them vary" in texts(outcome)
    assert "there is no bound to write" in outcome.out
    assert (project.folder / "ciwrap.yaml").read_text() == text


def test_a_configured_bound_that_catches_nothing_is_too_wide(project: Project) -> None:
    with_program(project, FIVE, check="outputs: out, atol: 20")
    outcome = project.run("repeat", "-n", "10")
    assert variable(outcome)["present_fit"] == "too_wide"


def test_a_relative_bound_of_the_whole_value_is_not_suggested(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", 10.0 ** (5 * x) * (1 + 0.5 * noise.random(500)))')
    outcome = project.run("repeat", "-n", "10")
    found = variable(outcome)
    if found["kind"] == "noise":
        assert found["suggested_bound"] is None
        assert "which lets any value become 0" in texts(outcome)


def test_two_groups_of_runs_are_told(project: Project) -> None:
    code = 'np.save("out/x.npy", x + 1e-12 * noise.normal(size=500) + 1e-6 * (run in (4, 9)))'
    with_program(project, code)
    outcome = project.run("repeat", "-n", "10")
    groups = variable(outcome)["groups"]
    assert groups["far_runs"] == [4, 9]
    assert groups["near_count"] == 7
    assert "mesh: x: two groups of runs: 7 runs within " in texts(outcome)
    assert "2 runs (4, 9) from 1e-6 on" in texts(outcome)
    assert "make 30 runs" in texts(outcome)


def test_two_results_are_two_groups(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", x + 1e-9 * (run == 6))')
    assert variable(project.run("repeat", "-n", "10"))["groups"]["far_runs"] == [6]


@pytest.mark.slow
def test_written_bounds_pass_honest_runs_and_catch_a_defect(project: Project) -> None:
    """From nothing to a configuration that passes further runs and fails at 3 times the bound."""
    program = f"x = x + float(os.environ.get('DEFECT', '0')) * (np.arange(500) == 400)\n{NOISY}"
    with_program(project, program)
    suggested = project.run("repeat", "-n", "10", "--write-bounds")
    found = variable(suggested)["suggested_bound"]
    bound = found.get("atol") or 2 * found["rtol"]
    assert project.run("run").code == 3  # there is no golden yet
    project.accept()
    assert [project.run("run").code for _ in range(10)] == [0] * 10
    assert project.run("run", DEFECT=repr(3 * bound)).code == 1


def test_no_bound_is_written_if_a_run_failed(project: Project) -> None:
    with_program(project, f"if run == 4: sys.exit(1)\n{NOISY}")
    text = (project.folder / "ciwrap.yaml").read_text()
    outcome = project.run("repeat", "-n", "10", "--write-bounds")
    assert outcome.code == 3
    assert "no bound was written" in outcome.out
    assert len(outcome.document["runs"]) == 10  # what was found is not lost
    assert (project.folder / "ciwrap.yaml").read_text() == text


def test_a_golden_that_is_missing_is_told_of_before_anything_runs(project: Project) -> None:
    with_program(project, NOISY)
    outcome = project.run("repeat", "--reference", "golden")
    assert outcome.code == 3
    assert "golden/mesh.golden" in outcome.err
    assert runs_made(project) == 0


def test_two_checks_of_one_file(project: Project) -> None:
    with_program(project, NOISY)
    text = (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").write_text(f"{text}  again: {{outputs: out/x.npy}}\n")
    outcome = project.run("repeat", "-n", "4")
    assert outcome.code == 0, outcome
    found = outcome.document["variables"]
    assert [(one["check"], one["distinct_results"]) for one in found] == [("mesh", 4), ("again", 4)]


def test_kinds_of_values_that_no_bound_is_for(project: Project) -> None:
    with_program(
        project,
        'np.save("out/flags.npy", x > 1.5 + 0.1 * (run % 2))\n'
        'np.save("out/words.npy", np.array([f"w{run % 2}"]))\n'
        'np.save("out/counts.npy", 1000 * np.arange(5) + run % 2)',
    )
    outcome = project.run("repeat", "-n", "10", "--write-bounds")
    assert outcome.code == 0, outcome
    assert variable(outcome, "flags")["suggested_bound"] is None
    assert variable(outcome, "words")["suggested_bound"] is None
    assert "words: how far it varies is unknown: no numbers" in outcome.out
    assert variable(outcome, "counts")["suggested_bound"]["atol"] == 5
    assert "counts: {atol: 5}" in (project.folder / "ciwrap.yaml").read_text()


def test_without_scipy_all_is_said_but_the_normal_digits(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy")
    with_program(project, NOISY)
    found = variable(project.run("repeat", "-n", "4"))
    assert found["normal_digits"] > 5
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    without = variable(project.run("repeat", "-n", "4"))
    assert "normal_digits" not in without
    assert without["common_digits"] > 5
    assert without["suggested_bound"] is not None


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
@pytest.mark.parametrize("atol", ["0", "1e-3"])
def test_a_golden_without_data_does_not_hide_a_broken_bound(
    project: Project, evidence: str, atol: str
) -> None:
    """How far runs are from a golden of digests is unknown; that they do not match is not."""
    moved = 'np.save("out/x.npy", x + (run > 1))'
    with_program(project, moved, check=f"outputs: out, atol: {atol}, evidence: {evidence}")
    project.save("x", np.linspace(1.0, 2.0, 500))
    project.accept()
    outcome = project.run("repeat", "-n", "3", "--reference", "golden", "--check")
    assert outcome.code == 1, outcome
    found = variable(outcome)
    assert found["breaks_bound"] is True
    assert (found["max_abs"] is None) is (evidence != "data")
    assert "up to 0" not in outcome.out
    assert "at most 0" not in outcome.out
