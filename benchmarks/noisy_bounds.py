"""Bounds that `repeat` suggests for eight kinds of noise: what is said, and what later runs do.

Each set is ten runs of 10 checkpoints of 500 numbers, measured as `repeat --runs` does it; 100
later runs and a defect of three bounds follow. Seeds are stated.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.studies.repeat.result import make_result
from ciwrap.studies.repeat.run import HowToRepeat, existing_runs, measure_existing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.model.repeat_result import BoundSuggestion, RepeatedVariable

SEED = 34
RUNS, LATER, STEPS, SIZE = 10, 100, 10, 500
SCALE = 1e-6  # of the noise; values spread by 1
BEYOND = 3

Generator = np.random.Generator


def _scaled(g: Generator, size: float) -> Any:
    return SCALE * size * g.uniform(-1, 1, size=(STEPS, SIZE))


def _rounded(values: Any, digits: int) -> Any:
    return np.round(values, digits)


# Of one run, what is added to what all have in common.
NOISES: dict[str, Callable[[Generator], Any]] = {
    "normal": lambda g: SCALE * g.normal(size=(STEPS, SIZE)),
    "heavy tails (t, 2 degrees)": lambda g: _scaled(g, abs(g.standard_t(2))),
    "Cauchy": lambda g: _scaled(g, abs(g.standard_cauchy())),
    "second mode in 30 %": lambda g: _scaled(g, 1) + 1e-3 * (g.random() < 0.3),
    "growth, doubling each step": lambda g: _scaled(g, 1) * 2.0 ** np.arange(STEPS)[:, None],
    "rounding": lambda g: 2.0**-52 * g.integers(-3, 4, size=(STEPS, SIZE)),
    "quantised": lambda g: _rounded(SCALE * g.normal(size=(STEPS, SIZE)), 6),
    "five elements left open": lambda g: np.pad(g.normal(size=(STEPS, 5)), ((0, 0), (0, SIZE - 5))),
}


def run(*, sets: int) -> dict[str, Any]:
    """sets: of each kind."""
    return {
        "seed": SEED,
        "sets": sets,
        "rows": [_of_noise(name, noise, sets) for name, noise in NOISES.items()],
    }


def _of_noise(name: str, noise: Callable[[Generator], Any], sets: int) -> dict[str, Any]:
    said: Counter[str] = Counter()
    failing, anew, found = [], [], []
    for number in range(sets):
        generator = np.random.default_rng((SEED, number))
        base = generator.normal(size=(STEPS, SIZE))
        if name.startswith("five"):
            base[:, :5] = 0
        first, *others = (base + noise(generator) for _ in range(RUNS))
        variable = _measured([first, *others])
        bound = variable.suggested_bound
        said[_words(variable)] += 1
        if bound is None:
            continue
        until = STEPS if bound.until_iteration is None else bound.until_iteration + 1
        other, *later = (base + noise(generator) for _ in range(LATER + 1))
        fails = partial(_fails, bound, until)
        failing.append(float(np.mean([fails(one, first) for one in later])))
        anew.append(float(np.mean([fails(one, other) for one in later])))
        planted = later[0].copy()
        at = (until - 1, SIZE // 2)
        planted[at] = first[at] + BEYOND * (bound.atol + bound.rtol * abs(first[at]))
        found.append(fails(planted, first))
    return {
        "noise": name,
        "said": dict(said),
        "failing": float(np.mean(failing)) if failing else None,
        "failing_anew": float(np.mean(anew)) if anew else None,
        "found": float(np.mean(found)) if found else None,
    }


def _fails(bound: BoundSuggestion, until: int, run: Any, golden: Any) -> bool:
    limit = bound.atol + bound.rtol * np.abs(golden)
    return bool(np.any((np.abs(run - golden) > limit)[:until]))


def _measured(runs: list[Any]) -> RepeatedVariable:
    with tempfile.TemporaryDirectory() as name:
        for number, run in enumerate(runs, 1):
            for step, values in enumerate(run):
                folder = Path(name, f"run_{number:02}", f"iter_{step}")
                folder.mkdir(parents=True)
                np.save(folder / "x.npy", values)
        found = measure_existing(existing_runs([f"{name}/run_*"]), (), HowToRepeat(names=()))
        (variable,) = make_result(found.measurers, found.runs).variables
    return variable


def _words(variable: RepeatedVariable) -> str:
    """What is said, in a word or two."""
    what = "a bound" if variable.suggested_bound is not None else "no bound, and why"
    return f"{variable.kind.value}, {what}{', two groups' if variable.groups is not None else ''}"


def table(result: dict[str, Any]) -> list[list[str]]:
    heads = ["later runs that fail", "with a golden made anew", "defects found"]
    rows = [["noise", f"said of {result['sets']} sets", *heads]]
    for one in result["rows"]:
        said = "; ".join(f"{words}: {count}" for words, count in sorted(one["said"].items()))
        shares = [
            "" if one[key] is None else f"{100 * one[key]:.1f} %"
            for key in ("failing", "failing_anew", "found")
        ]
        rows.append([one["noise"], said, *shares])
    return rows
