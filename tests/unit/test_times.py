"""Times in paths and logs, as whole numbers of steps."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.errors import ConfigError, CorruptFileError
from ciwrap.base.patterns import PathPattern, steps_of
from ciwrap.formats.entries import IterationRule
from ciwrap.formats.find_outputs import find_outputs
from ciwrap.formats.log import LogReader


@given(
    st.integers(0, 10**12),
    st.integers(-6, 6),
    st.decimals(min_value="1e-9", max_value=1000, places=9),
)
def test_a_time_is_the_steps_that_fractions_say(digits: int, exponent: int, step: object) -> None:
    text, size = f"{digits}e{exponent}", float(str(step))
    exact = Fraction(text) / Fraction(repr(size))
    is_whole = exact.denominator == 1 and exact < 1 << 63
    assert steps_of(text, size) == (int(exact) if is_whole else None)


@pytest.mark.parametrize(
    ("text", "step", "count"),
    [
        ("0.0125", 0.0125, 1),
        ("0.3", 0.1, 3),  # which doubles would make 2.9999999999999996
        ("1e-05", 1e-5, 1),
        ("2.5D-03", 0.0025, 1),
        ("100", 0.5, 200),
        ("0", 0.1, 0),
        ("0.05", 0.1, None),
        ("0.5", 1.0, None),
        ("-0.5", 0.5, None),
        ("nan", 0.5, None),
        ("1e999", 0.5, None),
        ("1.5e", 0.5, None),
    ],
)
def test_times(text: str, step: float, count: int | None) -> None:
    assert steps_of(text, step) == count


@pytest.mark.parametrize(
    ("pattern", "path", "iteration"),
    [
        ("{iteration}/{name}", "0.0125/U", "0.0125"),
        ("{iteration}/{name}", "1e-05/U", "1e-05"),
        ("u_{iteration}.npy", "u_0.5.npy", "0.5"),
        ("u_{iteration}.{rank}.npy", "u_3.12.npy", "3"),
        ("{iteration}.{name}.npy", "3.12.npy", "3"),  # what is a name stays one
        ("{iteration}{name}.npy", "1e3b.npy", "1"),
        ("u_{iteration:d}.npy", "u_7.npy", 7),
    ],
)
def test_the_time_in_a_path(pattern: str, path: str, iteration: object) -> None:
    found = PathPattern(pattern).match(path)
    assert (found is not None, found and found.iteration) == (True, iteration)
    assert PathPattern("u_{iteration:d}.npy").match("u_0.5.npy") is None


def _saved(folder: Path, *times: str) -> None:
    for time in times:
        (folder / time).mkdir()
        (folder / time / "x.csv").write_text(f"a\n{time}\n", encoding="ascii")


def test_folders_of_times_are_iterations_in_the_order_of_their_values(tmp_path: Path) -> None:
    _saved(tmp_path, "0", "0.05", "0.1", "10", "2e-1")
    outputs = ["{iteration}/x.csv"]
    found = find_outputs(tmp_path, outputs, options={"iteration_step": 0.05})
    assert [(one.iteration, one.path.parent.name) for one in found.files] == [
        (0, "0"),
        (1, "0.05"),
        (2, "0.1"),
        (4, "2e-1"),
        (200, "10"),
    ]
    with pytest.raises(ConfigError, match=r"the time 0\.05 .*whole number of iterations.*0\.5"):
        find_outputs(tmp_path, outputs)


LOG = b"Time = 0\nres = 1.5\nTime = 0.0025\nres = 1.25\nTime = 5e-3\nres = 1.125\n"
RULES = {
    "steps": {"t": "^Time = {iteration}"},
    "values": {"res": {"match": "res = {res}", "step": "t"}},
}


def test_times_in_a_log_are_steps(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(LOG)
    with LogReader().open(path, options={**RULES, "iteration_step": 0.0025}) as source:
        assert source.read("res.step", 0, 3).tolist() == [0, 1, 2]
    with pytest.raises(CorruptFileError, match=r"line 3 gives no whole number of steps.*_step"):
        LogReader().open(path, options=RULES)


def test_times_beside_a_value_and_in_a_column_are_steps(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"t=0.5 E=-1.5\nt=1.0 E=-1.25\nTime Temp\n 0.5 300\n 1.5 301\ndone\n")
    options = {
        "values": {"E": "t={iteration} E={E}"},
        "tables": {"run": {"header": "Time *", "iteration": "Time"}},
    }
    with LogReader().open(path, options={**options, "iteration_step": 0.5}) as source:
        assert source.read("E.step", 0, 2).tolist() == [1, 2]
        assert source.read("run.Time.step", 0, 2).tolist() == [1, 3]
        assert source.read("run.Time", 0, 2).tolist() == [0.5, 1.5]
    with LogReader().open(path, options=options) as source:
        faults = {one.name: one.fault for one in source.variables}
    assert "gives" not in str(faults["E"])
    assert "is no whole number of steps from 0 on" in str(faults["E"])
    assert "not a whole number" in str(faults["run.Time"])


def test_a_time_between_two_steps_is_neither_however_late() -> None:
    rule = IterationRule(variable="time", step=0.001)
    assert rule.numbers([0.0, 0.0010000001, 5000.0], "time") == [0, 1, 5_000_000]
    with pytest.raises(CorruptFileError, match="is not a whole number of iterations"):
        rule.numbers([5000.0005], "time")
