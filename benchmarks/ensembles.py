"""False alarms and power of the ensemble test, on Lorenz-96 with another forcing.

The model of Lorenz (1996) with 40 places and forcing 8 is chaotic: errors double in less than half
a unit of time. A run's features are the mean, the standard deviation and the product of neighbours
in each of eight blocks of places, over checkpoints after all memory of the start is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ciwrap.statistics.factors import EnsembleVerdict, compare_with_ensemble

PLACES = 40
FORCING = 8.0
STEP = 0.05
SPIN_UP = 1000  # steps: until a difference of 1e-14 has grown to everything there is
BLOCKS = 8
CHECKPOINTS = 40
APART = 10  # steps between checkpoints
RATE = 0.01
SEED = 8
CHANGES = (0.0, 0.05, 0.025)
# Members and new runs.
SIZES = ((30, 3), (60, 3), (60, 10), (200, 10))


def _tendency(x: Any, forcing: float) -> Any:
    around = np.roll(x, -1, axis=1) - np.roll(x, 2, axis=1)
    return around * np.roll(x, 1, axis=1) - x + forcing


def _step(x: Any, forcing: float) -> Any:
    """One step of Runge and Kutta's fourth order."""
    a = _tendency(x, forcing)
    b = _tendency(x + STEP / 2 * a, forcing)
    c = _tendency(x + STEP / 2 * b, forcing)
    d = _tendency(x + STEP * c, forcing)
    return x + STEP / 6 * (a + 2 * b + 2 * c + d)


def features(runs: int, forcing: float, seed: int) -> Any:
    """Features of runs that begin a hair apart: 24 of each."""
    generator = np.random.default_rng((SEED, seed))
    x = np.full((runs, PLACES), FORCING)
    x[:, 0] += 0.01
    x *= 1 + 1e-14 * generator.uniform(-1, 1, x.shape)
    for _ in range(SPIN_UP):
        x = _step(x, forcing)
    states = []
    for _ in range(CHECKPOINTS):
        for _ in range(APART):
            x = _step(x, forcing)
        states.append(x)
    # By run, block, and all that is in a block at all times.
    history = np.stack(states, axis=1).reshape(runs, CHECKPOINTS, BLOCKS, -1)
    lagged = np.stack([np.roll(x, 1, axis=1) for x in states], axis=1).reshape(history.shape)
    axes = (1, 3)
    return np.concatenate(
        [history.mean(axis=axes), history.std(axis=axes), (history * lagged).mean(axis=axes)],
        axis=1,
    )


def run(*, trials: int, sizes: tuple[tuple[int, int], ...] = SIZES) -> dict[str, Any]:
    """How often new runs are called inconsistent, with the same forcing and with others."""
    pool = max(400, 2 * trials)
    honest = features(pool, FORCING, 0)
    others = {change: features(pool, FORCING * (1 + change), 1) for change in CHANGES if change}
    rows = []
    for members, runs in sizes:
        for change in CHANGES:
            generator = np.random.default_rng((SEED, members, runs, round(1000 * change)))
            rejected = 0
            for trial in range(trials):
                drawn = honest[generator.choice(pool, members + runs, replace=False)]
                new = drawn[members:] if change == 0 else _some(others[change], runs, generator)
                found = compare_with_ensemble(drawn[:members], new, rate=RATE, seed=trial)
                rejected += found.verdict is EnsembleVerdict.INCONSISTENT
            rows.append(
                {"members": members, "runs": runs, "change": change, "rejected": rejected / trials}
            )
    return {"trials": trials, "rate": RATE, "seed": SEED, "rows": rows}


def _some(rows: Any, count: int, generator: np.random.Generator) -> Any:
    return rows[generator.choice(len(rows), count, replace=False)]


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["members", "new runs", "false alarms at 1 %", "+5 % found", "+2.5 % found"]]
    found = {
        (one["members"], one["runs"], one["change"]): one["rejected"] for one in result["rows"]
    }
    for members, runs in dict.fromkeys((one["members"], one["runs"]) for one in result["rows"]):
        shares = [found[members, runs, change] for change in CHANGES]
        rows.append([str(members), str(runs), *(f"{100 * share:.1f} %" for share in shares)])
    return rows
