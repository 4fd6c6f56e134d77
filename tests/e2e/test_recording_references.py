"""What a recorded run may be compared with, and what is no match for want of a sound reference."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from e2e.online_runs import against, ciwrap, quietly, record
from recorded_runs import need_library

from ciwrap.base.errors import ExitCode

# Arguments: iteration:value, in the order in which they are recorded.
FILLED_TEXT = """
import sys, numpy as np, ciwrap
with ciwrap.Recorder("filled") as r:
    for word in sys.argv[1:]:
        iteration, value = word.split(":")
        r.record(int(iteration), x=np.full(100, float(value)))
"""


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("filled.py").write_text(FILLED_TEXT)
    return [sys.executable, "filled.py"]


@pytest.mark.parametrize("is_restart", [False, True])
def test_an_iteration_recorded_twice_is_compared_twice(filled: list[str], is_restart: bool) -> None:
    """Both values lie in one cell of the plain tree, and the second is beyond the bound."""
    record([*filled, "0:0.55"], "a", "--atol", "1")
    words = [*against("a", "report"), "-o", "b", "--"]
    if is_restart:
        code, text = ciwrap(*words, *filled, "0:0.45")
        assert code == 0, text
        words.insert(1, "--again")
        code, text = ciwrap(*words, *filled, "0:-0.47")
    else:
        code, text = ciwrap(*words, *filled, "0:0.45", "0:-0.47")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text
    assert "does not match the reference in iteration 0" in text


MOVED_TEXT = """
import sys, numpy as np, ciwrap
x = np.random.default_rng(3).normal(size=4000)
with ciwrap.Recorder("moved") as r:
    for n, word in enumerate(sys.argv[1:]):
        r.record(n, x=x * float(word), same=x)
"""
SAID = re.compile(
    r"^ciwrap: rank 0: x differs from the reference in iteration 2, by at least ([0-9.]+) x the"
    r" bound \(8 of 8 blocks\)$",
    re.MULTILINE,
)


@pytest.mark.parametrize("kind", ["recorded run", "capture", "golden"])
def test_a_difference_is_proved_while_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """All numbers moved, so no single one can be worked out: their sums tell, in the library, in
    `watch` and in the comparison at the end.
    """
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("moved.py").write_text(MOVED_TEXT)
    Path("ciwrap.yaml").write_text("checks: {moved: {outputs: a, atol: 1e-3}}")
    program = [sys.executable, "moved.py", "1"]
    record([*program, "1", "1"], "a", "--check", "moved")
    reference = {"recorded run": "a", "capture": "a.tree", "golden": "golden/moved"}[kind]
    if kind == "capture":
        assert quietly("capture", "--merge", "a", "-o", reference) == 0
    elif kind == "golden":
        assert quietly("accept", "--reason", "first") == 0
    # In iteration 1 what moved is still within the bound.
    words = ["-o", "b", "--json", "r.json", "--", *program, "1.0001", "1.01"]
    code, text = ciwrap(*against(reference, "report", "--check", "moved"), *words)
    assert code == ExitCode.DIFFER, text
    assert text.count("ciwrap: rank 0:") == 1, text
    said = SAID.search(text)
    assert said is not None, text
    (check,) = json.loads(Path("r.json").read_text())["checks"]
    (found,) = (one for one in check["variables"] if one["verdict"] != "match")
    assert (found["verdict"], found["iteration"], found["name"]) == ("differ", 2, "x")
    # By a hundredth of numbers of which the largest is about 3.5: 35 bounds.
    assert 5 < found["least_share"] < 40
    assert found["least_share"] * 0.99 <= float(said[1]) <= found["least_share"]
    watched = ciwrap("watch", "b")[1]
    assert f"differs since iteration 2 (rank 0, 8 of 8 blocks), by at least {said[1]}" in watched
    assert "does not match" not in watched


def test_what_does_not_match_and_what_differs_are_told_apart(filled: list[str]) -> None:
    """The first is within a hair of the bound, which leaves a doubt; then it surely differs."""
    record([*filled, "0:0", "1:0", "2:0"], "a", "--atol", "1")
    code, text = ciwrap(*against("a", "report"), "-o", "b", "--", *filled, "0:0.97", "1:2.5", "2:9")
    assert code == ExitCode.DIFFER, text
    assert text.count("ciwrap: rank 0:") == 2, text
    assert "x does not match the reference in iteration 0 (1 of 1 block)" in text
    assert "x differs from the reference in iteration 2, by at least" in text
    watched = ciwrap("watch", "b")[1]
    assert "does not match since iteration 0 (rank 0, 1 of 1 block)" in watched
    assert "differs since iteration 2 (rank 0, 1 of 1 block), by at least" in watched


RANKED_TEXT = """
import sys, numpy as np, ciwrap
rank, ranks, policy = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with ciwrap.Recorder("ranked", rank=rank, ranks=ranks) as r:
    for n in range(5):
        r.record(n, x=np.full(100, float(rank)))
        if r.should_stop():
            print(f"stops in {n}")  # in one piece: the others print, too
            break
"""


def ranked(ranks: int) -> list[str]:
    """The words that start so many processes at once."""
    each = " & ".join(f"{sys.executable} ranked.py {rank} {ranks} x" for rank in range(ranks))
    return ["sh", "-c", f"{each} & wait"]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("policy", "stopped"), [("stop", 3), ("report", 0), ("abort", 0)])
def test_another_number_of_processes_is_refused_at_once(
    filled: list[str], policy: str, stopped: int
) -> None:
    """Ranks that the reference does not have waited for their journals."""
    Path("ranked.py").write_text(RANKED_TEXT)
    record(ranked(2), "a")
    words = [*against("a", policy, "--wait", "3600"), "-o", "b", "--", *ranked(3)]
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    said = "the reference was recorded by 2 processes, and this program has 3"
    assert text.count(said) >= 3, text
    assert text.count("stops in 0") == stopped
    assert text.count("the program is ended") == (3 if policy == "abort" else 0)


def test_a_reference_that_lacks_a_journal_is_refused(filled: list[str]) -> None:
    Path("ranked.py").write_text(RANKED_TEXT)
    record(ranked(2), "a")
    Path("a/000/rank-000001.cwr").unlink()
    os.utime("a/000/rank-000000.cwr", (0, 0))
    words = [*against("a", "report", "--wait", "3600"), "-o", "b", "--", *ranked(2)]
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "a: has ended, and lacks the journals of 1 of its 2 processes" in text
    assert not Path("b").exists()


AGAIN_TEXT = """
import sys, numpy as np, ciwrap
first, by = map(float, sys.argv[1:])
with ciwrap.Recorder("again") as r:
    for n in range(int(first), 4):
        r.record(n, "half", noise=np.full(100, by), y=np.full(100, 0.5))
        if r.should_stop():
            break
"""


@pytest.mark.parametrize("ignore", ["noise@half", "noise*", "* / rank 0 / noise@half"])
@pytest.mark.parametrize("policy", ["report", "stop"])
def test_what_is_ignored_is_ignored_when_it_is_recorded_again(
    filled: list[str], ignore: str, policy: str
) -> None:
    """Under `NAME (attempt 2)` it was not comparable, and told as what first did not match."""
    Path("again.py").write_text(AGAIN_TEXT)
    Path("ciwrap.yaml").write_text(f"checks: {{c: {{outputs: o, ignore: ['{ignore}'], atol: 1}}}}")
    program = [filled[0], "again.py"]
    record([*program, "0", "0"], "a", "--check", "c")
    words = [*against("a", policy), "-o", "b", "--check", "c"]
    assert ciwrap(*words, "--", *program, "0", "5")[0] == ExitCode.MATCH
    code, text = ciwrap(*words, "--again", "--", *program, "2", "9")
    assert code == ExitCode.MATCH, text
    assert "attempt" not in text
    assert "compared 1 variable in 4 arrays" in text
    code, text = ciwrap("compare", "a", "b", "--check", "c")
    assert code == ExitCode.MATCH, text
    code, text = ciwrap("compare", "a", "b", "--check", "c", "--executor", "process")
    assert code == ExitCode.MATCH, text
    # Whoever asks for all of it is told.
    code, text = ciwrap("compare", "a", "b", "--ignore", "y*")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "noise@half (attempt 2)" in text
    assert "was recorded twice, and not the same" in text


def test_the_second_recording_is_named_where_it_alone_does_not_match(filled: list[str]) -> None:
    record([*filled, "0:0.55", "1:0.55"], "a", "--atol", "1")
    recorded = ("0:0.55", "1:0.55", "1:3.0")
    code, text = ciwrap(*against("a", "report"), "-o", "b", "--", *filled, *recorded)
    assert code == ExitCode.NOT_COMPARABLE
    first = "the first that did not match while it ran: iter 1 / rank 0 / x (again)"
    assert first in text


def test_the_larger_share_is_told_of_what_was_recorded_twice(filled: list[str]) -> None:
    """Both are in one cell, of the plain tree and beside the reference's residues."""
    record([*filled, "0:0.55", "1:0.55"], "a", "--atol", "1")
    for recorded in (("0:0.55", "0:0.95"), ("0:0.95", "0:0.55")):
        words = (*against("a", "report"), "--replace", "-o", "b", "--", *filled)
        code, text = ciwrap(*words, *recorded, "1:0.55")
        assert code == ExitCode.MATCH
        assert "at most 62.5 % of the bound used (by iter 0 / rank 0 / x)" in text
    assert "at most 12.5 % of the bound" in ciwrap("watch", "b", "--once")[1]


def test_a_second_recording_is_no_new_variable(filled: list[str]) -> None:
    """A check that allows new variables does not allow a restart that went another way."""
    Path("ciwrap.yaml").write_text(
        "checks: {m: {outputs: run, atol: 1, strict: {variables: allow-new}}}\n"
    )
    record([*filled, "0:1", "1:5"], "run", "--check", "m")
    assert ciwrap("accept", "m")[0] == 0
    words = ["record", "--check", "m", "--replace", "--against", "golden/m", "-o", "run", "--"]
    code, text = ciwrap(*words, *filled, "0:1", "1:5")
    assert code == 0, text
    assert "1970" not in text
    for found in (ciwrap(*words, *filled, "0:1", "0:9", "1:5"), ciwrap("check", "m")):
        assert found[0] == ExitCode.NOT_COMPARABLE, found[1]
        assert "was recorded twice, and not the same" in found[1]


@pytest.mark.parametrize("change", ["another value", "a new file", "a lost file"])
def test_a_run_that_is_not_what_its_capture_tells_is_no_reference(
    filled: list[str], change: str
) -> None:
    run = Path("data")
    run.mkdir()
    for iteration, value in enumerate((1.0, 5.0)):
        np.save(run / f"{iteration}_x.npy", np.full(100, value))
    layout = ["--layout", "{iteration}_{name}.npy"]
    assert ciwrap("capture", "data", *layout, "--residues", "--atol", "1", "--settle", "0")[0] == 0
    words = [*against("data", "report"), "-o", "b", "--replace", "--", *filled, "0:1", "1:5"]
    code, text = ciwrap(*words)
    assert code == 0, text
    if change == "another value":
        np.save(run / "1_x.npy", np.full(100, 50.0))
    elif change == "a new file":
        np.save(run / "2_x.npy", np.full(100, 50.0))
    else:
        (run / "1_x.npy").unlink()
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "has changed since its capture was made" in text
    words[words.index("data")] = "data/.ciwrap.tree"
    code, text = ciwrap(*words)
    assert code == 0, text


def test_what_a_capture_has_no_tree_of_is_not_left_out_unseen(filled: list[str]) -> None:
    Path("data").mkdir()
    np.save("data/0_x.npy", np.full(100, 1.0))
    np.save("data/0_angle.npy", np.full(3, 1.0))
    text = "checks: {m: {outputs: data, layout: '{iteration}_{name}.npy', atol: 1, variables: "
    Path("ciwrap.yaml").write_text(text + "{angle: {period: 360}}}}\n")
    capture = ["capture", "data", "--check", "m", "--residues", "--settle", "0"]
    assert ciwrap(*capture)[0] == 0
    words = [*against("data", "report"), "-o", "b", "--", *filled, "0:1"]
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "iter 0 / angle" in text
    assert "has no tree of it" in text
    assert ciwrap(*capture, "--ignore", "angle", "--rebuild")[0] == 0
    code, text = ciwrap(*words)
    assert code == 0, text


def test_a_journal_does_not_go_on_with_a_run_that_was_recorded_on(filled: list[str]) -> None:
    """The folder of a recorded run looks the same when its journals have grown."""
    for run in ("a", "b"):
        record([*filled, "0:1", "1:5"], run)
    again = ["record", "--again", "-o", "b", "--"]
    assert ciwrap(*again, *filled, "1:5")[0] == 0
    compare = ["compare", "a", "b", "--journal", "kept"]
    assert ciwrap(*compare)[0] == ExitCode.MATCH
    assert ciwrap(*compare, "--resume")[0] == ExitCode.MATCH
    assert ciwrap(*again, *filled, "1:9")[0] == 0
    code, text = ciwrap(*compare, "--resume")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text


def test_a_program_that_fails_leaves_a_whole_result(filled: list[str], tmp_path: Path) -> None:
    """Its numbers match, the run does not: terminal, JSON and page say both."""
    record([*filled, "0:1", "1:5"], "a")
    text = Path("filled.py").read_text()
    Path("filled.py").write_text(f"{text}sys.exit(5)\n")
    words = [*against("a", "report"), "-o", "b", "--json", "b.json", "--report", "b.html", "--"]
    code, said = ciwrap(*words, *filled, "0:1", "1:5")
    assert code == ExitCode.NOT_COMPARABLE, said
    assert "ended with exit code 5, though all that it recorded matches" in said
    assert "not compared" not in said
    document = json.loads((tmp_path / "b.json").read_text())
    assert document["verdict"] == "not_comparable"
    assert [one["verdict"] for one in document["checks"]] == ["match"]
    assert "though all that it recorded matches" in (tmp_path / "b.html").read_text()
    for values in (("0:1",), ("0:1", "1:6")):  # an iteration is missing, a number differs
        code, said = ciwrap(*against("a", "report"), "-o", "b", "--replace", "--", *filled, *values)
        assert code == (ExitCode.NOT_COMPARABLE if len(values) == 1 else ExitCode.DIFFER), said
        assert "ended with exit code 5, so what it recorded may not be all" in said
    code, said = ciwrap("record", "-o", "c", "--", *filled, "0:1")
    assert (code, "so what it recorded may not be all" in said) == (3, True), said


def test_a_name_that_ends_like_a_point_is_a_name(tmp_path: Path, filled: list[str]) -> None:
    """`x@half` is x at a point; `x@` is no x, and beside it is not the same twice."""
    for name in ("x", "x@"):
        path = tmp_path / "run" / "iter_0" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.full(100, len(name) * 1.0))
    assert ciwrap("capture", "run", "--settle", "0")[0] == ExitCode.MATCH
    text = FILLED_TEXT.replace("x=np.full", "**{'x': np.full(100, 1.0), 'x@': 1.0 + np.full")
    Path("filled.py").write_text(text.replace("float(value)))", "float(value))})"))
    for value, wanted in (("1", ExitCode.MATCH), ("2", ExitCode.DIFFER)):
        words = (*against("run", "report"), "--replace", "-o", "b", "--", *filled)
        code, told = ciwrap(*words, f"0:{value}")
        assert code == wanted, told
        assert "is damaged" not in told


def test_what_somebody_keeps_in_the_folder_stays(tmp_path: Path, filled: list[str]) -> None:
    kept = tmp_path / "b" / ".reference" / "mine"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    path = tmp_path / "run" / "iter_0" / "x.npy"
    path.parent.mkdir(parents=True)
    np.save(path, np.full(100, 1.0))
    assert ciwrap("capture", "run", "--settle", "0")[0] == ExitCode.MATCH
    code, told = ciwrap(*against("run", "report"), "-o", "b", "--", *filled, "0:1")
    assert code == ExitCode.MATCH, told
    assert kept.read_text() == "mine"
