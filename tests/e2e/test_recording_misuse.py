"""Programs that record wrongly: none ends as a match of what was not recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from e2e.online_runs import ciwrap
from recorded_runs import need_library

from ciwrap.base.errors import ExitCode

PROGRAM = """
import os, sys, numpy as np, ciwrap
x = np.arange(6.0)
r = ciwrap.Recorder("wrong")
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_library()
    monkeypatch.chdir(tmp_path)


def recorded(body: str, *options: str, to: str = "a") -> tuple[int, str]:
    Path("wrong.py").write_text(PROGRAM + body)
    return ciwrap("record", "-o", to, *options, "--", sys.executable, "wrong.py")


def test_an_error_that_the_journal_does_not_name_is_an_error() -> None:
    """A C program that gives NULL for the name of a point: that checkpoint leaves no hole."""
    body = "r.record(0, x=x); r._table.checkpoint(r._run, 1, None, 0); r.close()"
    for run in ("a", "b"):
        code, text = recorded(body, to=run)
        assert code == ExitCode.NOT_COMPARABLE, text
        assert "was not recorded: something of which only stderr tells" in text
    assert ciwrap("compare", "a", "b")[0] == ExitCode.NOT_COMPARABLE


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    "body",
    [
        "r.record(0, x=x); os.kill(os.getpid(), 9)",
        "sys.exit(7)",
        "raise SystemExit(7)",
    ],
)
@pytest.mark.parametrize("is_held", [False, True])
def test_a_program_that_failed_is_told_before_what_it_did_not_record(
    body: str, is_held: bool
) -> None:
    """It was told to add arrays before the first checkpoint, which it had done."""
    assert recorded("r.record(0, x=x)", to="old")[0] == ExitCode.MATCH
    code, text = recorded(body, *(["--against", "old"] if is_held else []))
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "the command" in text
    assert ("ended by signal 9" if "kill" in body else "ended with exit code 7") in text
    assert "add arrays" not in text


def test_bounds_that_are_not_the_same_are_told_as_such() -> None:
    """It was said that chunks were of another size, which they were not."""
    for name, atol in (("a", "1e-9"), ("b", "1e-8")):
        assert recorded("r.record(0, x=x)", "--atol", atol, to=name)[0] == ExitCode.MATCH
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "with atol=1e-9 rtol=0, and the other side's with atol=1e-8 rtol=0" in text
    assert "blocks of" not in text


def test_an_array_that_is_called_as_another_at_a_point_is_refused() -> None:
    """The two were taken for one that was recorded twice."""
    body = "r.record(0, 'half', x=x); r.record(0, **{'x@half': x})"
    code, text = recorded(body)
    assert code == ExitCode.NOT_COMPARABLE, text
    said = "x@half: is the name of an array, and of another one at a point"
    assert said in text.replace("'", "")


def test_a_command_that_does_not_begin_is_told() -> None:
    code, text = ciwrap("record", "-o", "a", "--", "./no-such-program")
    assert code == ExitCode.NOT_COMPARABLE
    assert "no-such-program" in text
    assert "let the program record" not in text


def test_a_process_that_ends_without_a_word_is_told() -> None:
    """os._exit(): with exit code 0, and nothing of what was recorded has been written."""
    code, text = recorded("r.record(0, x=x); os._exit(0)")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "add arrays" not in text


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    "option",
    [
        "--on-divergence report",
        "--patience 2",
        "--stop-within 2",
        "--wait 2",
        "--common",
        "--json out.json",
        "--json-detail all",
        "--report out.html",
    ],
)
def test_what_means_nothing_without_a_reference_is_refused(option: str) -> None:
    """--json and --report wrote nothing, with exit code 0."""
    code, text = recorded("r.record(0, x=x)", *option.split())
    assert code == ExitCode.USAGE, text
    assert f"{option.split()[0]} needs --against" in text


IGNORED = """
move = [float(word) for word in os.environ["MOVE"].split(",")]
for n in range(6):
    r.record(n, "half", noise=x + move[n], y=x)
    if r.should_stop():
        break
r.close()
"""
CHECKS = """
checks:
  without: {outputs: unused, ignore: ["noise*"]}
  until: {outputs: unused, until_iteration: 1}
"""


def held(
    check: str, policy: str, move: str, monkeypatch: pytest.MonkeyPatch, ignore: str = "noise*"
) -> tuple[int, str]:
    Path("ciwrap.yaml").write_text(CHECKS.replace("noise*", ignore))
    monkeypatch.setenv("MOVE", "0,0,0,0,0,0")
    assert recorded(IGNORED, "--check", check, "--residues", to="old")[0] == ExitCode.MATCH
    monkeypatch.setenv("MOVE", move)
    more = ("--check", check, "--against", "old", "--on-divergence", policy)
    return recorded(IGNORED, *more)


def test_what_is_ignored_is_not_told_as_what_first_did_not_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, text = held("without", "report", "0,0,1,1,1,1", monkeypatch)
    assert code == ExitCode.MATCH, text
    assert "the first that did not match while it ran" not in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    "ignore", ["noise*", "noise@half", "iter 2 / rank 0 / noise@*", "* / rank 0 / noise@half"]
)
@pytest.mark.parametrize("policy", ["stop", "abort", "callback"])
def test_what_is_ignored_ends_no_program(
    ignore: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ended, and the run was not comparable."""
    code, text = held("without", policy, "0,0,1,0,0,0", monkeypatch, ignore)
    assert code == ExitCode.MATCH, text
    assert "does not match" not in text
    assert "ended" not in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("ignore", ["iter 1 / rank 0 / noise@half", "noise", "y*"])
def test_what_is_not_ignored_ends_it(ignore: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = held("without", "stop", "0,0,1,0,0,0", monkeypatch, ignore)
    assert code == ExitCode.DIFFER, text
    assert "noise@half differs from the reference in iteration 2" in text


def test_what_comes_later_than_counts_ends_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = held("until", "stop", "0,0,1,1,1,1", monkeypatch)
    assert code == ExitCode.MATCH, text
    assert "does not match" not in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("check", "move"), [("until", "0,0,1,1,1,1"), ("without", "0,0,0,0,0,1")])
def test_a_run_that_has_all_that_counts_was_not_ended_too_early(
    check: str, move: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = held(check, "stop", move, monkeypatch)
    assert code == ExitCode.MATCH, text
    assert "ended in iteration" not in text


def test_processes_that_do_not_agree_how_many_they_are_are_told_so() -> None:
    """Nothing is damaged: it was said that the journal is."""
    body = "r.record(0, x=x); s = ciwrap.Recorder(rank=1, ranks=2); s.record(0, x=x); s.close()"
    code, text = recorded(body)
    assert code == ExitCode.NOT_COMPARABLE, text
    told = "rank-000001.cwr: was recorded as rank 1 of 2, and another process as one of 1; let each"
    assert told in text
    assert "damaged" not in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("atol: 1e-3, rtol: 1e-3, combine: both", "combine"),
        ("atol: 1e-3, period: 10.0", "period"),
        ("atol: 1e-3, mask: m", "mask"),
        ("atol: 1e-3, align_by: i", "align_by"),
    ],
)
def test_a_golden_is_not_held_to_less_than_its_check_says(setting: str, name: str) -> None:
    """With `combine: both` a run matched that `ciwrap check` calls different."""
    Path("ciwrap.yaml").write_text(
        "checks:\n  c:\n    outputs: out\n    evidence: data\n"
        f"    variables: {{x: {{{setting}}}}}\n"
    )
    for iteration in range(2):
        folder = Path(f"out/iter_{iteration:04d}")
        folder.mkdir(parents=True)
        for variable, array in {
            "x": np.arange(6.0),
            "m": np.zeros(6, "?"),
            "i": np.arange(6),
        }.items():
            np.save(folder / f"{variable}.npy", array)
    assert ciwrap("accept", "--reason", "new")[0] == ExitCode.MATCH
    body = "[r.record(n, x=x + [0, 0, 0, 0, 0, n * 5e-3], m=x < 0, i=np.arange(6)) for n in (0, 1)]"
    for given in (["--against", "golden/c"], ["--against", "golden/c.golden.yaml"]):
        code, text = recorded(body, *given)
        assert code == ExitCode.USAGE, text
        assert f"`{name}` of 'x' needs the data, and a recorded run has none" in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("x: {atol: 1}, 'x@*': {atol: 1}", ExitCode.MATCH),
        ("x: {atol: 1}", ExitCode.DIFFER),  # undecided
        ("'x@*': {atol: 1}", ExitCode.NOT_COMPARABLE),
    ],
)
def test_a_rule_is_of_the_array_and_of_its_points(rules: str, code: ExitCode) -> None:
    """As the page on recording says: the library looks it up by name alone."""
    Path("ciwrap.yaml").write_text(f"checks: {{c: {{outputs: out, variables: {{{rules}}}}}}}\n")
    body = "r.record(0, 'half', x=x + {}); r.record(0, x=x + {})"
    checked = ("--check", "c")
    assert recorded(body.format(0, 0), *checked, "--residues", to="old")[0] == ExitCode.MATCH
    found, text = recorded(body.format(0.3, 0.3), *checked, "--against", "old")
    assert found == code, text


def test_a_second_recorder_of_a_rank_says_so() -> None:
    said = "nothing is recorded: "
    _, text = recorded("s = ciwrap.Recorder(); s.record(0, x=x); r.record(0, x=x); r.close()")
    assert text.count(said) == 1
    assert "another process records as rank 0, too" in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("s = ciwrap.Recorder('again')", "rank-000000.cwr"),
        ("r._table.open(b'beyond', 2, 2)", "there is no rank 2 of 2"),
        ("os.fork() or (r.record(1, x=x), os._exit(0)); os.wait()", "a child of fork()"),
    ],
)
def test_a_process_that_cannot_record_leaves_no_match(body: str, said: str) -> None:
    """Its arrays were lost, the journal that there was said nothing of it, and all matched."""
    first = "r.record(0, x=x)"
    assert recorded(first, to="good")[0] == ExitCode.MATCH
    code, text = recorded(f"{first}; {body}; r.close()")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "a process could not record" in text
    assert said in text
    for runs in (("a", "good"), ("good", "a")):
        code, text = ciwrap("compare", *runs)
        assert code == ExitCode.NOT_COMPARABLE
        assert said in text
        assert "the journals alone are" not in text
    assert recorded(first, "--replace")[0] == ExitCode.MATCH
    assert sorted(path.name for path in Path("a").glob("*.txt")) == []
    assert ciwrap("compare", "a", "good")[0] == ExitCode.MATCH


def test_where_no_process_can_record_it_is_told_why() -> None:
    code, text = recorded("r.close(); os.remove('a/000/rank-000000.cwr'); r._table.open(b'', 9, 2)")
    assert code == ExitCode.NOT_COMPARABLE
    assert "there is no rank 9 of 2" in text
    assert recorded("r.record(0, x=x); r.close()", "--replace")[0] == ExitCode.MATCH


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("option", ["--replace", "--again", "--residues"])
def test_two_calls_at_once_never_tell_of_one_another(option: str) -> None:
    """The first was told to match of what the second had recorded in its place."""
    good = "r.record(0, x=x); r.close()"
    assert recorded(good, "--residues", to="good")[0] == ExitCode.MATCH
    Path("other.py").write_text(PROGRAM + good)
    body = f"""
import subprocess
r.record(0, x=x + 1)
words = ["-m", "ciwrap", "record", "-o", "a", {option!r}, "--", sys.executable, "other.py"]
done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
open("said.txt", "w").write(str(done.returncode) + done.stderr)
r.close()
"""
    code, text = recorded(body, "--against", "good")
    assert code == ExitCode.DIFFER, text
    said = Path("said.txt").read_text()
    assert said.startswith(f"{ExitCode.NOT_COMPARABLE:d}error: a: process ")
    assert "is recording in this folder" in said
    assert "let it finish, then try again" in said
    assert not list(Path("a").glob(".*"))  # the lock is gone


ARRAY = """
t = r._table
from ciwrap.recording import native as library
a, keep = library._described("x", x, (-1.0, -1.0))
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a.strides[0] = 2**61", "strides that lead beyond any memory"),
        ("a.extents[0] = 2**40; a.strides[0] = 2**23", "strides that lead beyond any memory"),
        ("a.flags = 4", "unknown flags"),
        ("a.dtype = b''", "no type that can be recorded"),
        ("a.dtype = None", "no type that can be recorded"),
        ("a.dimensions = 2; a.extents[0] = 2**60; a.extents[1] = 0", "more than 2^56 values"),
    ],
)
def test_what_no_array_can_be_is_not_recorded(body: str, said: str) -> None:
    """An element elsewhere was recorded for a stride whose bytes overflow."""
    add = "t.add(r._run, library.ctypes.byref(a)); t.checkpoint(r._run, 0, b'', 0); r.close()"
    code, text = recorded(f"{ARRAY}\n{body}\n{add}")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert said in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("t.add(r._run, None)", "NULL was given for an array"),
        ("t.replace(r._run, 0, None)", "NULL was given for an array"),
        ("t.find(r._run, None)", "NULL was given for an array's name"),
        ("t.prepare(r._run, 1, None)", "NULL was given for a point's name"),
    ],
)
def test_null_is_told(call: str, said: str) -> None:
    """It ended the program, or was told as a string that cannot be constructed."""
    code, text = recorded(f"r.record(0, x=x); t = r._table; print('got', {call}); r.close()")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "got -1" in text
    assert said in text


KINDS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "S3"]
FILLS = "-999, 255, 256, -1, 0.1, -1.0e+18, 1.0e+300, 65519.9, 65520, 1.0e-50, 2.5e-8, .nan, .inf"


def test_fill_values_are_those_of_the_comparison() -> None:
    """One that a type cannot hold left a hole; of others the nearest number is meant."""
    Path("ciwrap.yaml").write_text(
        f"checks: {{c: {{outputs: data, atol: 1.0e-3, fill_values: [{FILLS}]}}}}"
    )
    body = (
        f"kinds = {KINDS!r}\n"
        "values = [-999, 255, 256, -1, 0.1, -1e18, 65519.9, 1e-50, 2.5e-8, np.nan, np.inf, 7]\n"
        "with np.errstate(all='ignore'):\n"
        "    all = {f'v{n}': np.array(values).astype(kind) for n, kind in enumerate(kinds)}\n"
        "r.record(0, **all)\n"
        "os.makedirs('data/iter_0/rank_0', exist_ok=True)\n"
        "for name, one in all.items():\n"
        "    np.save(f'data/iter_0/rank_0/{name}.npy', one)\n"
    )
    checked = ("--check", "c")
    assert recorded(body, *checked)[0] == ExitCode.MATCH
    assert ciwrap("capture", "data", "--chunk-bytes", "4096", *checked)[0] == ExitCode.MATCH
    for other in ("data", "data/.ciwrap.tree"):
        code, text = ciwrap("compare", "a", other, *checked)
        assert code == ExitCode.MATCH, text
        assert f"compared {len(KINDS)} variables" in text
