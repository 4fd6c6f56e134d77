"""Lorenz-96, a small chaotic model of the atmosphere, from initial values a hair apart.

    python lorenz96.py --seed 7                                one run: out/x.npy
    python lorenz96.py --seed 7 --runs 3 --output new_{}  several: new_1/out/x.npy and so on

x.npy has a row for each of 40 checkpoints and a column for each of 40 places, taken once all
memory of the start is gone. Lorenz, "Predictability: a problem partly solved" (1996).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

PLACES = 40
STEP = 0.05
SPIN_UP = 1000  # steps: until a difference of 1e-14 has grown to everything there is
CHECKPOINTS, APART = 40, 10


def tendency(x: np.ndarray, forcing: float) -> np.ndarray:
    around = np.roll(x, -1, axis=0) - np.roll(x, 2, axis=0)
    return around * np.roll(x, 1, axis=0) - x + forcing


def step(x: np.ndarray, forcing: float) -> np.ndarray:
    """One step of Runge and Kutta's fourth order."""
    a = tendency(x, forcing)
    b = tendency(x + STEP / 2 * a, forcing)
    c = tendency(x + STEP / 2 * b, forcing)
    d = tendency(x + STEP * c, forcing)
    return x + STEP / 6 * (a + 2 * b + 2 * c + d)


def simulate(runs: int, forcing: float, seed: int) -> np.ndarray:
    """Several runs at once; shape (runs, checkpoints, places)."""
    generator = np.random.default_rng(seed)
    x = np.full((PLACES, runs), 8.0)
    x[0] += 0.01
    x *= 1 + 1e-14 * generator.uniform(-1, 1, x.shape)
    for _ in range(SPIN_UP):
        x = step(x, forcing)
    states = []
    for _ in range(CHECKPOINTS):
        for _ in range(APART):
            x = step(x, forcing)
        states.append(x.T)
    return np.stack(states, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Lorenz-96, for ciwrap.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--forcing", type=float, default=8.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--output", default=".", help="folder of a run; {} is its number")
    options = parser.parse_args()
    for number, states in enumerate(simulate(options.runs, options.forcing, options.seed), 1):
        folder = Path(options.output.replace("{}", str(number))) / "out"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "x.npy", states)


if __name__ == "__main__":
    main()
