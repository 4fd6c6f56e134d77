"""How often what `repeat`, `trend` and `time` say of simulated runs is right. Seeds are stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.statistics.change_points import rare_ones, slope_of
from ciwrap.statistics.factors import Cell, cells_of, effects
from ciwrap.statistics.spread import Differences, suggest_bound

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 34
VARIABLES = 6
COMPARED = 9  # ten runs
LATER = 2000

Generator = np.random.Generator

# What the first factor does to the values of all runs; `on`: where it is on.
CASES: dict[str, Callable[[Generator, Any], Any]] = {
    "shift of 10 sigma": lambda g, on: g.normal(size=on.size) + 10 * on,
    "noise only when on": lambda g, on: g.normal(size=on.size) * on,
    "spread times 5": lambda g, on: g.normal(size=on.size) * np.where(on, 5, 1),
    "nothing, normal noise": lambda g, on: g.normal(size=on.size),
    "nothing, t2 noise": lambda g, on: g.standard_t(2, size=on.size),
    "nothing, two modes": lambda g, on: g.normal(size=on.size) + 30 * (g.random(on.size) < 0.3),
    "nothing, rounded noise": lambda g, on: np.round(g.normal(size=on.size)),
}
DESIGNS = ((1, 5), (2, 3), (3, 2), (3, 3))  # factors, runs of each cell

NOISES: dict[str, Callable[[Generator, int], Any]] = {
    "normal": lambda g, n: g.normal(size=n),
    "t2": lambda g, n: g.standard_t(2, size=n),
    "Cauchy": lambda g, n: g.standard_cauchy(size=n),
    "log-normal, sigma 2": lambda g, n: g.lognormal(0, 2, size=n),
    "second mode in 10 %": lambda g, n: g.normal(size=n) + 1000 * (g.random(n) < 0.1),
    "second mode in 30 %": lambda g, n: g.normal(size=n) + 1000 * (g.random(n) < 0.3),
    "rounded": lambda g, n: np.round(g.normal(size=n)),
}


def run(*, trials: int) -> dict[str, Any]:
    return {
        "seed": SEED,
        "trials": trials,
        "factors": _factors(trials),
        "bounds": _bounds(trials),
        "trends": _trends(trials),
    }


def _factors(trials: int) -> list[dict[str, Any]]:
    """In calls with six variables: whether the factor that acts is found on all of them, and
    whether one that does not act is found on any.
    """
    rows = []
    for name, values in CASES.items():
        for factors, per_cell in DESIGNS:
            cells = cells_of("full", factors) * per_cell
            generator = np.random.default_rng((SEED, factors, per_cell))
            told = [_found(generator, cells, values, seed) for seed in range(trials)]
            acting = set() if name.startswith("nothing") else {0}
            right = [acting <= found for call in told for found in call]
            wrong = [any(found - acting for found in call) for call in told]
            rows.append(
                {
                    "case": name,
                    "factors": factors,
                    "runs": len(cells),
                    "found": float(np.mean(right)) if acting else None,
                    "wrong_calls": float(np.mean(wrong)),
                }
            )
    return rows


def _found(
    generator: Generator, cells: list[Cell], values: Callable[[Generator, Any], Any], seed: int
) -> list[set[int]]:
    """The factors that are named, for each variable; the first run is the reference."""
    on = np.array([cell[0] for cell in cells])
    runs = np.array([values(generator, on) for _ in range(VARIABLES)])
    tested = effects(np.abs(runs - runs[:, :1])[:, 1:], cells[1:], seed=seed)
    return [{one.factor for one in row if one.p <= 0.05} for row in tested]


def _bounds(trials: int) -> list[dict[str, Any]]:
    """Of bounds from ten runs of one number: how many later runs fail."""
    rows = []
    for name, noise in NOISES.items():
        generator = np.random.default_rng((SEED, COMPARED))
        failing = []
        for _ in range(trials):
            values = noise(generator, 1 + COMPARED + LATER)
            far = np.abs(values - values[0])
            bound = suggest_bound(Differences(COMPARED, float(far[1 : 1 + COMPARED].max()), 1.0))
            limit = 0.0 if bound is None else bound.atol
            failing.append(float(np.mean(far[1 + COMPARED :] > limit)))
        beyond = np.array(failing)
        rows.append(
            {"noise": name, "beyond": beyond.mean(), "poor_sets": float(np.mean(beyond > 0.05))}
        )
    return rows


def _trends(trials: int) -> list[dict[str, Any]]:
    """In how many sets of six shares without a trend one is told, by how much of each share's noise
    is in the next one.
    """
    rows = []
    for memory in (0.0, 0.3, 0.6, 0.9):
        for count in (12, 30, 60):
            generator = np.random.default_rng((SEED, count, round(10 * memory)))
            told = [
                _trend_told([_dependent(generator, count, memory) for _ in range(VARIABLES)])
                for _ in range(trials)
            ]
            rows.append({"memory": memory, "results": count, "false": float(np.mean(told))})
    generator = np.random.default_rng((SEED, 1))
    steps = [
        np.repeat((0.3, 0.7), (8, 11)) + 0.01 * generator.normal(size=19) for _ in range(trials)
    ]
    told = [_trend_told([one]) for one in steps]
    return [*rows, {"memory": None, "results": 19, "false": float(np.mean(told))}]


def _dependent(generator: Generator, count: int, memory: float) -> Any:
    noise = generator.normal(size=count + 50)
    for at in range(1, noise.size):
        noise[at] = memory * noise[at - 1] + np.sqrt(1 - memory**2) * noise[at]
    return 0.3 + 0.02 * noise[50:]


def _trend_told(series: list[Any]) -> bool:
    slopes = [slope_of(one) for one in series]
    return any(rare_ones([1.0 if one is None else one.p for one in slopes], 0.01))


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["of", "case", "right", "wrong"]]
    rows += [
        [
            f"{one['factors']} factors, {one['runs']} runs",
            one["case"],
            "" if one["found"] is None else f"found: {100 * one['found']:.0f} %",
            f"in {100 * one['wrong_calls']:.1f} % of calls",
        ]
        for one in result["factors"]
    ]
    rows += [
        [
            "bounds from 10 runs",
            one["noise"],
            f"within: {100 * (1 - one['beyond']):.2f} % of later runs",
            f"more than 5 % of later runs beyond: {100 * one['poor_sets']:.0f} % of bounds",
        ]
        for one in result["bounds"]
    ]
    rows += [
        [
            f"trends of {one['results']} results",
            "one step" if one["memory"] is None else f"memory {one['memory']}",
            "",
            f"a trend told in {100 * one['false']:.1f} % of sets",
        ]
        for one in result["trends"]
    ]
    return rows
