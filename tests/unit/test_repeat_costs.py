"""What repeated runs took, and what is said of slow ones."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap.model import Used
from ciwrap.model.repeat_result import RepeatedRun
from ciwrap.project.run_command import run_command
from ciwrap.project.settings import CommandSettings, FactorSettings, LevelSettings
from ciwrap.statistics.factors import chance_of_levels
from ciwrap.studies.repeat.costs import (
    hour_note,
    note_of_runs,
    run_costs,
    slow_runs_note,
    used_by_all,
)
from ciwrap.studies.repeat.run import make_plan


def used(cpu: float, *, faults: int = 100, peak: int | None = None) -> Used:
    return Used(cpu, 10, 5, faults, 0, peak)


def test_slow_runs_that_waited() -> None:
    note = slow_runs_note([1.0, 1.4, 1.1, 2.0, 1.2], [used(0.9 + 0.001 * n) for n in range(5)])
    assert note is not None
    assert note.startswith("runs took 1.00 s to 2.00 s (100 % more); slow runs did no more work")
    assert note.endswith("they waited: processor time 900 ms to 904 ms")


@pytest.mark.parametrize("has_faults", [False, True])
def test_slow_runs_that_worked(has_faults: bool) -> None:
    work = (0.9, 1.3, 1.0, 1.9, 1.1)
    all_used = [used(one, faults=int(100_000 * one) if has_faults else 100) for one in work]
    note = slow_runs_note([one + 0.1 for one in work], all_used)
    assert note is not None
    assert "slow runs did more work: processor time 900 ms to 1.90 s" in note
    assert note.endswith("with more page faults: 90,000 to 190,000") is has_faults


def test_slow_runs_that_did_both() -> None:
    work = (0.5, 0.75, 0.6, 1.0, 0.55)
    note = slow_runs_note([2 * one for one in work], [used(one) for one in work])
    assert note is not None
    assert "50 % of what slow runs took longer was waiting, the rest was work" in note


@pytest.mark.parametrize(
    ("times", "work"),
    [
        ([1.0, 1.4, 1.1, 2.0], [0.9] * 4),  # too few
        ([1.0, 1.01, 1.02, 1.0, 1.0], [0.9] * 5),  # no slow ones
        ([1.0, 1.4, 1.1, 2.0, 1.2], [1.9] * 5),  # several processors
    ],
)
def test_nothing_is_said_where_it_cannot_be_told(times: list[float], work: list[float]) -> None:
    assert slow_runs_note(times, [used(one) for one in work]) is None


@pytest.mark.parametrize("kind", ["work", "waiting"])
def test_nine_of_ten_sentences_are_right(kind: str) -> None:
    """Ten runs, half of which take 10 % longer; noise of 1 % in both parts."""
    generator = np.random.default_rng(8)
    right = 0
    for _ in range(100):
        slow = 0.1 * (generator.random(10) < 0.5)
        work = 1 + 0.01 * generator.random(10) + (slow if kind == "work" else 0)
        waited = 0.01 * generator.random(10) + (slow if kind == "waiting" else 0)
        note = slow_runs_note((work + waited).tolist(), [used(one) for one in work]) or ""
        right += ("they waited" if kind == "waiting" else "did more work") in note
    assert right >= 90


def test_times_that_go_with_the_hour() -> None:
    """Six runs an hour; those of the night are faster. A run alone in its hour tells nothing."""
    begun = [(n, 22 + n // 6, 1.0 + 0.5 * (n < 6) + 0.01 * (n % 6)) for n in range(12)]
    all_runs = [
        RepeatedRun(
            n + 1, 0, seconds=seconds, exit_code=0, began_at=f"2026-03-01T{hour}:10:00+01:00"
        )
        for n, hour, seconds in [*begun, (12, 21, 9.0)]
    ]
    note = hour_note(all_runs)
    assert note is not None
    assert note.startswith("times go with the hour (p = 0.0")
    assert note.endswith("in the median 22 h: 1.52 s (6 runs), 23 h: 1.02 s (6 runs)")
    alike = [replace(one, seconds=1.0 + 0.01 * (one.number % 5)) for one in all_runs]
    assert hour_note(alike) is None
    assert hour_note([replace(one, began_at=None) for one in all_runs]) is None
    assert hour_note(all_runs[:8]) is None


def test_levels_that_part_nothing_are_told_apart_in_one_of_twenty() -> None:
    generator = np.random.default_rng(2)
    chances = [
        chance_of_levels(generator.standard_t(2, size=15), [0, 1, 2] * 5, seed=n)
        for n in range(400)
    ]
    assert 0.02 <= np.mean(np.array(chances) <= 0.05) <= 0.08


def test_factors_act_on_costs() -> None:
    factor = FactorSettings("slow", LevelSettings({"S": "0"}), LevelSettings({"S": "1"}))
    plan = make_plan(10, [factor], "full", 1)
    runs = [
        RepeatedRun(
            run.number, 0, seconds=1.0 + 3 * run.cell[0] + 0.01 * run.number, exit_code=0,
            used=used(0.9, peak=1 << 30 if run.cell[0] else None),
        )
        for run in plan.runs
    ]  # fmt: skip
    costs = {one.name: one for one in run_costs(plan, runs)}
    assert [one.p <= 0.05 for one in costs["seconds"].factors] == [True]
    assert costs["seconds"].factors[0].on > 3.9 > costs["seconds"].factors[0].off
    assert costs["peak_bytes"].factors[0].p <= 0.05
    assert costs["cpu_seconds"].factors[0].p == 1
    assert costs["seconds"].smallest < costs["seconds"].median < costs["seconds"].largest


def test_runs_that_failed_or_were_there_already_cost_nothing() -> None:
    runs = [RepeatedRun(1, 0, seconds=1.0, exit_code=1, used=used(1.0)), RepeatedRun(2, 0)]
    assert run_costs(None, runs) == ()
    assert note_of_runs(runs) is None


def test_commands_one_after_the_other_add_up() -> None:
    both = used_by_all([used(1.0, peak=5), used(2.0, peak=3)])
    assert both == Used(3.0, 20, 10, 200, 0, 5)
    assert used_by_all([used(1.0), None]) is None
    assert used_by_all([]) is None


def test_what_a_command_used_is_what_it_did() -> None:
    """Processor time of a child of the shell, and memory beyond what this process holds."""
    code = (
        "import time; data = bytearray(1 << 29); end = time.process_time() + 0.3\n"
        "while time.process_time() < end: pass"
    )
    words = (sys.executable, "-S", "-c", code)
    quiet = run_command(CommandSettings(words, Path()), is_shown=False)
    assert quiet.exit_code == 0
    assert quiet.used is not None
    assert 0.3 <= quiet.used.cpu_seconds <= quiet.seconds * 1.05
    assert quiet.used.peak_bytes is not None
    assert quiet.used.peak_bytes > 1 << 29
    small = run_command(CommandSettings(("true",), Path()), is_shown=False)
    assert small.used is not None
    # A process begins with the peak of the one that starts it, which says nothing of its own.
    assert small.used.peak_bytes is None
    limited = run_command(CommandSettings("exit 3", Path(), timeout_seconds=60), is_shown=False)
    assert (limited.exit_code, limited.used is None) == (3, False)
