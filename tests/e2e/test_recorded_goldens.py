"""Goldens of recorded runs, and recorded runs against goldens of any kind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from recorded_runs import need_library

from ciwrap.base.errors import ExitCode
from ciwrap.cli.main import run as run_cli
from ciwrap.runs.capture_file import MAGIC

PROGRAM = """
import sys, numpy as np, ciwrap
from pathlib import Path
step, by, noise = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
random = np.random.default_rng(int(1e9 * noise) + 1)
x = np.random.default_rng(3).normal(size=4000)
with ciwrap.Recorder("walk") as r:
    for n in range(6):
        x = x + 0.001 * n
        y = x + noise * random.uniform(-1, 1, size=x.size)
        if n >= step:
            y[1234] = x[1234] + by
        r.record(n, x=y, count=np.arange(10) * n)
        folder = Path("files") / f"iter_{n}" / "rank_0"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "x.npy", y)
        np.save(folder / "count.npy", np.arange(10) * n)
"""
CONFIG = """
checks:
  walk:
    outputs: {outputs}
    evidence: {evidence}
    variables: {{x: {{atol: 0.001}}}}
"""
NEVER = "99"
HOWTO = Path(__file__).parents[2] / "docs" / "how-to" / "record-a-program.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("walk.py").write_text(PROGRAM)
    configure("auto")
    return tmp_path


def configure(evidence: str, outputs: str = "run") -> None:
    Path("ciwrap.yaml").write_text(CONFIG.format(evidence=evidence, outputs=outputs))


def ciwrap(*words: str) -> tuple[int, str]:
    """The exit code, and what was printed: by a command that starts a program, to stdout alone."""
    told = io.StringIO()
    errors = sys.__stderr__ if words[0] in ("record", "run") else told
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors or told):
        code = run_cli(words)
    return code, told.getvalue()


def record(*options: str, step: str = NEVER, by: float = 0, noise: float = 0) -> tuple[int, str]:
    return ciwrap(
        *("record", "--check", "walk", "-o", "run", "--replace", *options),
        *("--", sys.executable, "walk.py", step, str(by), str(noise)),
    )


def accepted(evidence: str, *options: str) -> None:
    configure(evidence)
    assert record(*options)[0] == 0
    code, text = ciwrap("accept", "--reason", "new")
    assert code == 0, text


def result(*words: str) -> tuple[int, dict[str, Any]]:
    code, text = ciwrap("check", "--json", "result.json", *words)
    assert "Traceback" not in text
    (check,) = json.loads(Path("result.json").read_text())["checks"]
    return code, check


def test_a_pattern_that_matches_nothing_is_told_of(folder: Path) -> None:
    accepted("auto")
    with Path("ciwrap.yaml").open("a") as config:
        config.write("    ignore: [wall_tmie]\n")
    code, check = result()
    assert code == ExitCode.MATCH
    (message,) = check["messages"][-1:]
    assert message["text"].startswith("the pattern 'wall_tmie' under 'variables' or 'ignore'")


def test_a_golden_of_residues_judges_a_run_that_is_held_against_it(folder: Path) -> None:
    accepted("auto", "--residues")
    text = ciwrap("show", "golden/walk.golden")[1]
    assert text.count("evidence residues") == 6
    assert text.count("evidence tree") == 6  # integers are compared exactly
    against = ("--against", "golden/walk")
    assert record(*against, noise=0.0005)[0] == ExitCode.MATCH
    code, check = result()
    assert code == ExitCode.MATCH
    assert len(check["variables"]) == 12
    assert {one["evidence"] for one in check["variables"]} == {"residues", "tree"}
    assert check["golden_path"].endswith("walk.golden")
    assert record(*against, step="3", by=0.0014, noise=0.0005)[0] == ExitCode.DIFFER
    code, check = result()
    assert code == ExitCode.DIFFER
    bad = [one for one in check["variables"] if one["verdict"] != "match"]
    assert {one["iteration"] for one in bad} == {3, 4, 5}
    assert all(one["moved_elements"][0]["index"] == [1234] for one in bad)


@pytest.mark.parametrize("evidence", ["tree", "residues"])
def test_a_run_that_was_recorded_alone_matches_if_it_is_the_same(
    folder: Path, evidence: str
) -> None:
    accepted(evidence, "--residues")
    assert record("--residues")[0] == 0
    assert result()[0] == ExitCode.MATCH
    # Within the bound, and nobody can tell: no match.
    assert record("--residues", noise=0.0005)[0] == 0
    code, check = result()
    assert code == ExitCode.NOT_COMPARABLE
    open_ones = [one for one in check["variables"] if one["verdict"] != "match"]
    assert {one["name"] for one in open_ones} == {"x"}
    if evidence == "residues":
        assert record(step="2", by=1.0)[0] == 0
        code, check = result()
        assert code == ExitCode.NOT_COMPARABLE
        told = {one["reason"] for one in check["variables"] if one["name"] == "x"}
        assert all("--against" in str(one) for one in told), told


def test_what_is_exact_is_refuted_without_data(folder: Path) -> None:
    Path("ciwrap.yaml").write_text("checks:\n  walk:\n    outputs: run\n")
    assert record()[0] == 0
    assert ciwrap("accept")[0] == 0
    assert result()[0] == ExitCode.MATCH
    assert record(step="4", by=1e-14)[0] == 0
    code, check = result()
    assert code == ExitCode.DIFFER
    bad = [one for one in check["variables"] if one["verdict"] == "differ"]
    assert {(one["iteration"], one["name"]) for one in bad} == {(4, "x"), (5, "x")}


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_goldens_of_files_judge_recorded_runs(folder: Path, evidence: str) -> None:
    configure(evidence, "files")
    subprocess.run([sys.executable, "walk.py", NEVER, "0", "0"], check=True, timeout=60)
    assert ciwrap("accept")[0] == 0
    configure(evidence)
    assert record("--residues")[0] == 0
    assert result()[0] == ExitCode.MATCH
    if evidence == "tree":
        return
    assert record("--against", "golden/walk", noise=0.0005)[0] == ExitCode.MATCH
    assert result()[0] == ExitCode.MATCH
    code, text = record("--against", "golden/walk", step="1", by=0.002)[:2]
    assert code == ExitCode.DIFFER
    # A golden does not say when its run was.
    assert "golden/walk holds digests and no data: what these leave open stays open" in text
    assert result()[0] == ExitCode.DIFFER


def test_what_cannot_be_a_golden_is_refused(folder: Path) -> None:
    assert record()[0] == 0
    for evidence in ("data", "residues"):
        configure(evidence)
        code, text = ciwrap("accept")
        assert code == ExitCode.NOT_COMPARABLE, text
        assert f"does not have the evidence '{evidence}'" in text
    # Other bounds than it was recorded with.
    configure("auto")
    Path("ciwrap.yaml").write_text(Path("ciwrap.yaml").read_text().replace("0.001", "0.01"))
    code, text = ciwrap("accept")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "record it with `ciwrap record --check walk`" in text
    # A run of which a part is missing.
    configure("auto")
    journal = Path("run/000/rank-000000.cwr")
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-200])
    code, text = ciwrap("accept")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "were not closed" in text
    assert not Path("golden/walk.golden").exists()
    journal.write_bytes(whole)
    assert ciwrap("accept")[0] == 0
    journal.write_bytes(whole[:-200])
    assert result()[0] == ExitCode.NOT_COMPARABLE
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    journal.write_bytes(damaged)
    assert result()[0] == ExitCode.NOT_COMPARABLE


def test_a_restart_that_did_otherwise_is_no_golden(folder: Path) -> None:
    assert record()[0] == 0
    words = ("record", "--check", "walk", "-o", "run", "--again", "--", sys.executable, "walk.py")
    assert ciwrap(*words, NEVER, "0", "0")[0] == 0
    assert ciwrap("accept", "--dry-run")[0] == 0
    assert ciwrap(*words, "2", "0.5", "0")[0] == 0
    code, text = ciwrap("accept")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text
    code, text = ciwrap("capture", "--merge", "run")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text
    assert not Path("run.tree").exists()
    # What did otherwise is ignored.
    config = Path("ciwrap.yaml").read_text()
    Path("ciwrap.yaml").write_text(config + "    ignore: ['x*']\n")
    code, text = ciwrap("accept")
    assert code == ExitCode.MATCH, text
    code, text = ciwrap("check")
    assert code == ExitCode.MATCH, text
    assert "attempt" not in text


def test_other_bounds_are_judged_and_other_variables_are_not_comparable(folder: Path) -> None:
    accepted("auto", "--residues")
    text = Path("ciwrap.yaml").read_text()
    Path("ciwrap.yaml").write_text(text.replace("0.001", "0.01"))
    code, check = result()
    assert (code, check["verdict"]) == (0, "match")
    assert {one.get("golden_bound") for one in check["variables"] if one["name"] != "count"} == {
        "atol=0.001 rtol=0"
    }
    Path("ciwrap.yaml").write_text(text + "    ignore: [count]\n")
    code, check = result()
    assert code == ExitCode.NOT_COMPARABLE
    reasons = {one["reason"] for one in check["variables"] if one["name"] == "count"}
    assert len(reasons) == 1
    assert "the configuration ignores it" in reasons.pop()
    Path("ciwrap.yaml").write_text(text)
    Path("walk.py").write_text(PROGRAM.replace("count=", "counts="))
    assert record("--residues")[0] == 0
    code, check = result()
    assert code == ExitCode.NOT_COMPARABLE
    missing = [one for one in check["variables"] if one["verdict"] != "match"]
    assert {one["name"] for one in missing} == {"count", "counts"}
    assert "only in the golden, not in the outputs" in str(missing)


def test_a_golden_of_residues_is_replaced_by_another_one_alone(folder: Path) -> None:
    accepted("auto", "--residues")
    assert record("--residues")[0] == 0
    code, text = ciwrap("accept")
    assert code == 0, text
    assert "same" in text
    # A run that is compared with another one has none of its own, unless it is asked for.
    assert record("--against", "golden/walk", noise=0.0004)[0] == 0
    code, text = ciwrap("accept", "--reason", "noise")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "record it with --residues" in text
    assert record("--residues", step="3", by=0.3)[0] == 0
    assert ciwrap("accept")[0] == ExitCode.USAGE
    code, text = ciwrap("accept", "--reason", "a better step")
    assert code == 0, text
    assert result()[0] == ExitCode.MATCH


def run_of(program: str, *options: str, per_check: bool = True) -> None:
    """A configuration in which `ciwrap run` records the program against the golden."""
    given = " ".join(options)
    text = CONFIG.format(evidence="auto", outputs="run")
    command = f"run: ciwrap record --check walk --replace --against golden/walk {given} -o run -- "
    if per_check:
        text = text.replace("    outputs", f"    {command}{program}\n    outputs")
    else:
        text = f"{command}{program}\n{text}"
    Path("ciwrap.yaml").write_text(text)


def walk(step: str = NEVER, by: float = 0, more: str = "") -> str:
    return f"{sys.executable} walk.py {step} {by} 0.0005 {more}"


@pytest.mark.parametrize("per_check", [True, False])
def test_a_run_is_recorded_and_checked_in_one_go(folder: Path, per_check: bool) -> None:
    """A difference was taken for a command that failed."""
    accepted("auto", "--residues")
    run_of(walk(), per_check=per_check)
    code, told = ciwrap("run")
    assert code == ExitCode.MATCH, told
    run_of(walk("2", 0.01), per_check=per_check)
    done = call("run", folder=folder, environment=os.environ.copy())
    assert done.returncode == ExitCode.DIFFER, done.stdout
    assert "first difference: iter 2 / rank 0 / x" in done.stdout
    assert "first difference" not in done.stderr  # of the command, which says the same
    # Of a command that ends with 1 for another reason, nothing is compared.
    run_of(f"false; {walk()}", per_check=per_check)
    Path("ciwrap.yaml").write_text(
        Path("ciwrap.yaml").read_text().replace("run: ciwrap", "run: exit 1; ciwrap")
    )
    code, told = ciwrap("run")
    assert code == ExitCode.NOT_COMPARABLE, told


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("policy", ["abort", "stop", "report"])
def test_a_run_that_was_ended_for_a_difference_differs_on_every_road(
    folder: Path, policy: str
) -> None:
    """What it lacks made it not comparable, but for the command that had ended it."""
    accepted("auto", "--residues")
    Path("run").rename("old")
    options = ("--on-divergence", policy, "--patience", "0", "--stop-within", "0")
    run_of(walk("2", 0.01), *options)
    assert ciwrap("run")[0] == ExitCode.DIFFER
    assert result()[0] == ExitCode.DIFFER
    assert record("--residues", "--against", "golden/walk", *options, step="2", by=0.01)[0] == 1
    assert result()[0] == ExitCode.DIFFER
    code, text = ciwrap("compare", "old", "run")
    assert code == ExitCode.DIFFER, text
    is_ended = policy != "report"
    assert ("was ended since it differed in iteration 2" in text) == is_ended
    # Where what it was ended for does not count, nobody knows what would have followed.
    code, text = ciwrap("compare", "old", "run", "--ignore", "x")
    assert code == (ExitCode.NOT_COMPARABLE if is_ended else ExitCode.MATCH), text
    assert ("within its bounds after all" in text) == is_ended


def test_3_weighs_more_than_1_on_every_road(folder: Path) -> None:
    """A difference, and an array that was not recorded: both are told."""
    Path("walk.py").write_text(
        PROGRAM.replace("count=np", "odd=np.ma.masked_array([1], [len(sys.argv) > 4]), count=np")
    )
    accepted("auto", "--residues")
    Path("run").rename("old")
    run_of(walk("2", 0.01, "odd"))
    for words in (
        ["run"],
        ["check"],
        ["compare", "old", "run"],
        [
            *["record", "--check", "walk", "--replace", "--against", "old", "-o", "run", "--"],
            *walk("2", 0.01, "odd").split(),
        ],
    ):
        code, text = ciwrap(*words)
        assert code == ExitCode.NOT_COMPARABLE, text
        assert "iter 2 / rank 0 / x" in text, words
        assert "odd" in text


def test_the_first_line_counts_a_difference_beside_what_stays_open(folder: Path) -> None:
    """Of two runs recorded alone; the difference stood further below."""
    assert record()[0] == 0
    Path("run").rename("old")
    assert record(step="5", by=50, noise=0.0005)[0] == 0
    code, text = ciwrap("compare", "old", "run")
    assert code == ExitCode.NOT_COMPARABLE, text
    first = text.splitlines()[0]
    assert "1 of 2 variables does not match (1 not comparable, 1 differ), at 6 of 6" in first, text


def test_the_run_that_differed_is_accepted_without_a_second_one(folder: Path) -> None:
    """Its golden is the one that a run which was recorded alone makes."""
    accepted("auto", "--residues")
    run_of(walk("2", 0.01), "--residues")
    assert ciwrap("run", "--pending", "artifact")[0] == ExitCode.DIFFER
    shutil.copytree("golden", "before")
    code, text = ciwrap("accept", "--from", "artifact", "--reason", "a better step")
    assert code == ExitCode.MATCH, text
    taken = ciwrap("show", "golden/walk.golden")[1]
    assert (taken.count("evidence residues"), taken.count("evidence tree")) == (6, 6)
    assert result()[0] == ExitCode.MATCH
    # Others are compared with it while they run, and with the run itself.
    Path("run").rename("differed")
    for reference in ("golden/walk", "differed"):
        run = ("--residues", "--against", reference)
        assert record(*run, step="2", by=0.01, noise=0.0003)[0] == ExitCode.MATCH
        assert record(*run, step="1", by=0.01, noise=0.0003)[0] == ExitCode.DIFFER
    shutil.rmtree("golden")
    Path("before").rename("golden")
    assert record("--residues", step="2", by=0.01, noise=0.0005)[0] == 0
    ciwrap("accept", "--reason", "recorded alone")
    assert ciwrap("show", "golden/walk.golden")[1] == taken


def test_the_recipe_of_the_howto(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines, word by word; the launcher is a script."""
    page = HOWTO.read_text().partition("## A golden of it")[2]
    config, commands = re.findall(r"^```(?:yaml|console)\n(.*?)^```", page, re.M | re.S)[:2]
    Path("ciwrap.yaml").write_text(config)
    for name, text in (
        ("mpiexec", '#!/bin/sh\nshift 2\nexec "$@"\n'),
        ("model", f'#!/bin/sh\nexec "{sys.executable}" walk.py ${{STEP:-99}} 0.01 1e-11\n'),
        ("ciwrap", f'#!/bin/sh\nexec "{sys.executable}" -m ciwrap "$@"\n'),
    ):
        Path(name).write_text(text)
        Path(name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for line in commands.splitlines():
        code, text = ciwrap(*shlex.split(line.removeprefix("$ ciwrap ")))
        assert code == ExitCode.MATCH, (line, text)
    monkeypatch.setenv("STEP", "3")
    done = call("run", "model", folder=folder, environment=os.environ.copy())
    text = done.stdout + done.stderr
    assert done.returncode == ExitCode.DIFFER, text
    assert "the first that did not match while it ran: iter 3 / rank 0 / x" in done.stderr
    # What both commands come to is printed by one of them, and no values are asked for.
    assert text.count("first difference: iter 3 / rank 0 / x") == 1
    assert "ciwrap compare" not in text


def test_a_recorded_run_is_packed_into_a_capture(folder: Path) -> None:
    assert record("--residues")[0] == 0
    Path("run.tree.new").write_bytes(MAGIC + b"what a killed one left")
    code, text = ciwrap("capture", "--merge", "run")
    assert code == 0, text
    assert not Path("run.tree.new").exists()
    assert "packed 6 checkpoints into run.tree" in text
    assert ciwrap("capture", "--merge", "run")[0] == ExitCode.USAGE
    assert ciwrap("compare", "run", "run.tree")[0] == ExitCode.MATCH
    shown = [ciwrap("show", one)[1].partition("variable")[2] for one in ("run", "run.tree")]
    assert shown[0] == shown[1] != ""
    # It serves as the run does: others are compared with it, and it is refuted by what differs.
    for step, by, expected in ((NEVER, 0, ExitCode.MATCH), ("4", 0.002, ExitCode.DIFFER)):
        code, text = record("--against", "run.tree", step=step, by=by, noise=0.0005)
        assert code == expected, text
        assert ciwrap("compare", "run.tree", "run")[0] == expected
    # What a capture could not tell of stays in its journals.
    journal = Path("run/000/rank-000000.cwr")
    journal.write_bytes(journal.read_bytes()[:-200])
    code, text = ciwrap("capture", "--merge", "run", "-o", "other.tree")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert not Path("other.tree").exists()
    assert ciwrap("capture", "--merge", "golden")[0] == ExitCode.USAGE


def test_other_files_in_the_folder_are_not_compared_and_told_of(folder: Path) -> None:
    """A program that writes results where it is recorded: these differ, its journals do not."""
    for name in ("before", "run"):
        assert record("-o", name)[0] == 0
        Path(name, "out").mkdir()
        Path(name, "out", "result.txt").write_text(name)
    code, text = ciwrap("compare", "before", "run")
    assert code == ExitCode.NOT_COMPARABLE
    for name in ("before", "run"):
        assert f"{name}/out/result.txt" in text
    assert "was not compared: of a recorded run the journals alone are" in text
    assert ciwrap("compare", "before", "run", "--exclude", "out/")[0] == ExitCode.MATCH
    assert ciwrap("compare", "before", "run", "--exclude", "other")[0] == ExitCode.NOT_COMPARABLE
    assert ciwrap("accept")[0] == 0
    code, check = result()
    assert code == ExitCode.NOT_COMPARABLE
    assert "run/out/result.txt: was not compared" in str(check["messages"])
    with Path("ciwrap.yaml").open("a") as config:
        config.write("    exclude: [run/out/result.txt]\n")
    assert result()[0] == ExitCode.MATCH


@pytest.mark.parametrize(
    ("first", "second"),
    [(("--residues",), ("--against", "golden/walk")), ((), ())],
    ids=["against residues", "trees alone"],
)
def test_summaries_prove_that_a_recorded_run_differs(
    folder: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    """All numbers moved, so no single one can be worked out."""
    accepted("auto", *first)
    Path("walk.py").write_text(PROGRAM.replace("y = x + noise", "y = 1.01 * x + noise"))
    record(*second)
    code, check = result()
    assert code == ExitCode.DIFFER
    moved = [one for one in check["variables"] if one["name"] == "x"]
    assert {one["verdict"] for one in moved} == {"differ"}
    # By a hundredth of numbers of which the largest is about 3.5: 35 bounds.
    assert all(5 < one["least_share"] < 40 for one in moved)


def test_two_trees_with_residues_of_their_own_prove_what_differs_and_no_match(folder: Path) -> None:
    """Their digests say nothing of each other, the sums of their codes do."""
    accepted("auto", "--residues")
    config = Path("ciwrap.yaml").read_text()
    Path("walk.py").write_text(PROGRAM.replace("y = x + noise", "y = 1.01 * x + noise"))
    assert record("--residues")[0] == 0
    for bound, least, most in (("0.001", 5, 40), ("0.004", 1, 10), ("0", 0, 0), ("1", 0, 0)):
        Path("ciwrap.yaml").write_text(config.replace("0.001", bound))
        code, check = result()
        moved = [one for one in check["variables"] if one["name"] == "x"]
        if bound == "1":  # wider than what was moved, which nobody can know
            assert code == ExitCode.NOT_COMPARABLE
            assert {one["verdict"] for one in moved} == {"not_comparable"}
            continue
        assert code == ExitCode.DIFFER, check
        assert {one["verdict"] for one in moved} == {"differ"}
        if most:
            assert all(least < one["least_share"] < most for one in moved)
        for one in moved:
            count = one["differing_count_at_least"], one["differing_count_at_most"]
            assert count == (one["suspect_chunks"], 4000)
            assert one["suspect_chunks"] == one["chunk_count"] == 8
    # What moved by less than codes tell is no proof, whatever is asked for.
    Path("walk.py").write_text(PROGRAM)
    Path("ciwrap.yaml").write_text(config)
    assert record("--residues", noise=1e-5)[0] == 0
    for bound in ("0", "0.001"):
        Path("ciwrap.yaml").write_text(config.replace("0.001", bound))
        code, check = result()
        moved = [one for one in check["variables"] if one["name"] == "x"]
        assert (code, {one["verdict"] for one in moved}) == (3, {"not_comparable"})
