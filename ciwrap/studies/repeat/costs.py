"""What repeated runs took: time, processor time, memory; and what slow runs did more of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ciwrap.base.late import numpy as np
from ciwrap.model import Used
from ciwrap.model.repeat_result import CostEffect, RepeatedRun, RunCost
from ciwrap.report.text import percent_text, plural, short_number, time_text
from ciwrap.statistics.factors import LEVEL, chance_of_levels, effects

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.studies.repeat.run import Plan

    _Numbers = NDArray[np.float64]

# With fewer runs, or times that lie closer together, nothing is said of what slow ones did.
_LEAST_RUNS = 5
_LEAST_RANGE = 0.05
# Of the time by which runs differ, this share is waiting, or work, or it is both.
_MOST_OF_IT = 0.8
# A clock that ticks now and then may count a little more work than there was time.
_ONE_CORE = 1.05
# Page faults that rise and fall with the work as closely as this are told beside it.
_GO_TOGETHER = 0.8
_MANY_FAULTS = 1.1


def used_by_all(parts: Sequence[Used | None]) -> Used | None:
    """What several commands used, one after the other; None if that is not known of one."""
    known = [one for one in parts if one is not None]
    if not known or len(known) < len(parts):
        return None
    peaks = [one.peak_bytes for one in known if one.peak_bytes is not None]
    return Used(
        cpu_seconds=sum(one.cpu_seconds for one in known),
        voluntary_switches=sum(one.voluntary_switches for one in known),
        involuntary_switches=sum(one.involuntary_switches for one in known),
        minor_faults=sum(one.minor_faults for one in known),
        major_faults=sum(one.major_faults for one in known),
        peak_bytes=max(peaks, default=None),
    )


def run_costs(plan: Plan | None, runs: Sequence[RepeatedRun]) -> tuple[RunCost, ...]:
    """Each cost of the runs that succeeded, and what factors do to it."""
    good = _good(runs)
    values = _values(good)
    if not values:
        return ()
    rows = np.array(list(values.values()))
    found = [
        RunCost(name, float(row.min()), float(np.median(row)), float(row.max()))
        for name, row in zip(values, rows, strict=True)
    ]
    if plan is None or not plan.factors:
        return tuple(found)
    numbers = {run.number for run in good}
    cells = [run.cell for run in plan.runs if run.number in numbers]
    is_on = np.array(cells, dtype=bool)
    return tuple(
        RunCost(
            cost.name,
            cost.smallest,
            cost.median,
            cost.largest,
            tuple(
                CostEffect(
                    plan.factors[one.factor].name,
                    float(np.median(row[~is_on[:, one.factor]])),
                    float(np.median(row[is_on[:, one.factor]])),
                    one.size,
                    one.p,
                )
                for one in tested
            ),
        )
        for cost, row, tested in zip(found, rows, effects(rows, cells, seed=plan.seed), strict=True)
    )


def _good(runs: Sequence[RepeatedRun]) -> list[RepeatedRun]:
    return [one for one in runs if one.exit_code == 0 and one.used is not None]


def _values(runs: Sequence[RepeatedRun]) -> dict[str, list[float]]:
    """Of each cost that is known of all runs, its values."""
    used = [one.used for one in runs if one.used is not None]
    seconds = [one.seconds for one in runs if one.seconds is not None]
    if not used or len(seconds) < len(used):
        return {}
    found = {"seconds": seconds}
    waiting = waiting_seconds(seconds, used)
    if waiting is not None:
        found["waiting_seconds"] = waiting
    for name in Used.__struct_fields__:
        values = [getattr(one, name) for one in used]
        # Memory that is unknown is no more than ciwrap's own, and below all that is known.
        if any(value is not None for value in values):
            found[name] = [float(value or 0) for value in values]
    return found


def waiting_seconds(seconds: Sequence[float], used: Sequence[Used]) -> list[float] | None:
    """How long each run had no processor at work; None where some run used more than one, of which
    nobody knows how long each of them waited.
    """
    pairs = list(zip(seconds, (one.cpu_seconds for one in used), strict=True))
    if any(cpu > _ONE_CORE * wall for wall, cpu in pairs):
        return None
    return [max(0.0, wall - cpu) for wall, cpu in pairs]


def note_of_runs(runs: Sequence[RepeatedRun]) -> str | None:
    """What `slow_runs_note` says of runs that succeeded."""
    values = [(one.seconds, one.used) for one in _good(runs)]
    known = [(wall, used) for wall, used in values if wall is not None and used is not None]
    return slow_runs_note([wall for wall, _ in known], [used for _, used in known])


def hour_note(runs: Sequence[RepeatedRun]) -> str | None:
    """Whether the time of runs goes with the hour of the day at which they began; None where hours
    are not known, where fewer than two have as many runs as it takes, and where it does not.
    """
    by_hour: dict[int, list[float]] = {}
    for one in runs:
        if one.exit_code == 0 and one.seconds is not None and one.began_at is not None:
            by_hour.setdefault(datetime.fromisoformat(one.began_at).hour, []).append(one.seconds)
    known = {hour: times for hour, times in sorted(by_hour.items()) if len(times) >= _LEAST_RUNS}
    if len(known) < 2:
        return None
    pairs = [(time, hour) for hour, times in known.items() for time in times]
    p = chance_of_levels([time for time, _ in pairs], [hour for _, hour in pairs])
    if p > LEVEL:
        return None
    told = ", ".join(
        f"{hour} h: {time_text(float(np.median(times)))} ({plural(len(times), 'run')})"
        for hour, times in known.items()
    )
    return f"times go with the hour (p = {short_number(p)}), in the median {told}"


def slow_runs_note(times: Sequence[float], used: Sequence[Used]) -> str | None:
    """Whether runs that took longer worked more, or waited; None where they took about as long, and
    where that cannot be told. times: in seconds, of each run.
    """
    waiting = waiting_seconds(times, used)
    if waiting is None or len(times) < _LEAST_RUNS:
        return None
    seconds, waited = np.array(times), np.array(waiting)
    work = np.array([one.cpu_seconds for one in used])
    if np.ptp(seconds) < _LEAST_RANGE * seconds.min():
        return None
    centred = seconds - seconds.mean()
    share = float(centred @ (waited - waited.mean()) / (centred @ centred))
    took = (
        f"runs took {time_text(float(seconds.min()))} to {time_text(float(seconds.max()))}"
        f" ({percent_text(float(np.ptp(seconds) / seconds.min()))} more)"
    )
    if share >= _MOST_OF_IT:
        return f"{took}; slow runs did no more work, they waited: processor time {_range(work)}"
    if share > 1 - _MOST_OF_IT:
        part = percent_text(share)
        return f"{took}; {part} of what slow runs took longer was waiting, the rest was work"
    faults = np.array([one.minor_faults + one.major_faults for one in used])
    more = f", with more page faults: {faults.min():,.0f} to {faults.max():,.0f}"
    return f"{took}; slow runs did more work: processor time {_range(work)}" + (
        more if _go_together(work, faults) else ""
    )


def _range(seconds: _Numbers) -> str:
    return f"{time_text(float(seconds.min()))} to {time_text(float(seconds.max()))}"


def _go_together(work: _Numbers, faults: _Numbers) -> bool:
    if faults.max() < _MANY_FAULTS * faults.min() or np.ptp(work) == 0:
        return False
    return float(np.corrcoef(work, faults)[0, 1]) >= _GO_TOGETHER


COST_WORDS = {
    "seconds": "time",
    "waiting_seconds": "waiting",
    "cpu_seconds": "processor time",
    "voluntary_switches": "waits (voluntary context switches)",
    "involuntary_switches": "involuntary context switches",
    "minor_faults": "minor page faults",
    "major_faults": "major page faults",
    "peak_bytes": "peak memory",
}
