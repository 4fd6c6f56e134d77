"""How often the paired comparison of run times is right, on simulated machines.

A machine's run times are a base time, a drift over the whole campaign, noise that remembers the
run before, and now and then a tail. "In blocks" is what people do instead: all runs of A, then all
of B, and a Mann-Whitney test at 5 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ciwrap.statistics.spread import TimingVerdict, compare_pairs
from ciwrap.studies.timing import pair_order

if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN = 0.05
NOISE = 0.04
DRIFT = 0.2  # over the whole campaign
MEMORY = 0.5  # of each run's noise in the next one's
SEED = 11

Generator = np.random.Generator


def _normal(generator: Generator, count: int) -> Any:
    return NOISE * generator.normal(size=count)


def _heavy_tails(generator: Generator, count: int) -> Any:
    return NOISE * generator.standard_t(2, size=count)


def _two_modes(generator: Generator, count: int) -> Any:
    return _normal(generator, count) + 0.25 * (generator.random(count) < 0.3)


def _drift(generator: Generator, count: int) -> Any:
    noise = _normal(generator, count)
    for run in range(1, count):
        noise[run] += MEMORY * noise[run - 1]
    return noise + np.linspace(0, np.log1p(DRIFT), count) * generator.choice((-1, 1))


MACHINES: dict[str, Callable[[Generator, int], Any]] = {
    "normal noise": _normal,
    "heavy tails (t, 2 degrees)": _heavy_tails,
    "two modes, 28 % apart": _two_modes,
    "drift of 20 % and memory": _drift,
}


def measured(
    generator: Generator, machine: Callable[[Generator, int], Any], pairs: int, change: float
) -> tuple[Any, Any]:
    """Times of A and B, run in pairs in random order on a simulated machine."""
    times = np.exp(machine(generator, 2 * pairs)).reshape(pairs, 2)
    a_first = np.array(pair_order(pairs, int(generator.integers(1 << 32))))
    a = np.where(a_first, times[:, 0], times[:, 1])
    b = np.where(a_first, times[:, 1], times[:, 0])
    return a, b * (1 + change)


def run(*, trials: int, pair_counts: tuple[int, ...] = (10, 20)) -> dict[str, Any]:
    """Shares of verdicts without a change and with +10 %, and how often the interval holds."""
    rows = []
    for name, machine in MACHINES.items():
        for pairs in pair_counts:
            for change in (0.0, 0.1):
                generator = np.random.default_rng((SEED, pairs, round(100 * change)))
                rows.append(
                    {"machine": name, "pairs": pairs, "change": change}
                    | _shares(generator, machine, pairs, change, trials)
                )
    return {"trials": trials, "margin": MARGIN, "noise": NOISE, "seed": SEED, "rows": rows}


def _shares(
    generator: Generator,
    machine: Callable[[Generator, int], Any],
    pairs: int,
    change: float,
    trials: int,
) -> dict[str, float]:
    verdicts = dict.fromkeys(TimingVerdict, 0)
    covered = blocks = 0
    for _ in range(trials):
        found = compare_pairs(
            *measured(generator, machine, pairs, change), margin=MARGIN, confidence=0.95
        )
        verdicts[found.verdict] += 1
        assert found.lower is not None
        assert found.upper is not None
        covered += found.lower <= change <= found.upper
        campaign = np.exp(machine(generator, 2 * pairs))
        p = stats.mannwhitneyu(campaign[:pairs], campaign[pairs:] * (1 + change)).pvalue
        blocks += p < 0.05
    shares = {verdict.value: count / trials for verdict, count in verdicts.items()}
    return {**shares, "covered": covered / trials, "blocks_call_a_change": blocks / trials}


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [
        [
            *("machine", "pairs", "true change", "changed", "not changed", "inconclusive"),
            *("interval holds it", "in blocks: changed"),
        ]
    ]
    rows += [
        [
            row["machine"],
            str(row["pairs"]),
            f"{100 * row['change']:+.0f} %",
            *(
                f"{100 * row[name]:.1f} %"
                for name in (
                    *("changed", "not_changed", "inconclusive"),
                    *("covered", "blocks_call_a_change"),
                )
            ),
        ]
        for row in result["rows"]
    ]
    return rows
