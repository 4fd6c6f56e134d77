"""Ten planted defects in a small simulation, each as a check and as a comparison of two runs.

Water of little depth in a channel, on three ranks that are cut along axis 1: height h (in cm) and
velocities u and v at ten iterations, two gauges in a table, and the energy in a log. A new run has
other noise of rounding than the golden, a hundredth of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from report_scenarios import ciwrap

if TYPE_CHECKING:
    from pathlib import Path

CELLS, RANKS, ITERATIONS, STEPS = 36, 3, 10, 6
NOISE, BOUND = 1e-8, 1e-6


@dataclass
class State:
    """What one iteration writes. fields: by name, of all ranks. ranks: those that write."""

    iteration: int
    fields: dict[str, np.ndarray]
    ranks: set[int]

    def of_rank(self, name: str, rank: int) -> np.ndarray:
        """The part of a rank, to be changed in place."""
        return self.fields[name][:, rank * CELLS : (rank + 1) * CELLS]


def nothing(state: State) -> None:
    """The same program."""


def sign(state: State) -> None:
    """Rank 1 has v with the wrong sign from iteration 50 on."""
    if state.iteration >= 50:
        state.of_rank("v", 1)[:] *= -1


def shift(state: State) -> None:
    """h is one column further along the channel from iteration 40 on."""
    if state.iteration >= 40:
        state.fields["h"] = np.roll(state.fields["h"], 1, axis=1)


def transposed(state: State) -> None:
    """Rank 2 writes u with its axes exchanged from iteration 30 on."""
    if state.iteration >= 30:
        part = state.of_rank("u", 2)
        part[:] = part.T.copy()


def rank_missing(state: State) -> None:
    """Rank 2 writes nothing from iteration 50 on."""
    if state.iteration >= 50:
        state.ranks.discard(2)


def not_a_number(state: State) -> None:
    """A block of h is NaN on rank 0 from iteration 70 on."""
    if state.iteration >= 70:
        state.of_rank("h", 0)[10:18, 5:25] = np.nan


def precision(state: State) -> None:
    """h goes through float32 in all iterations."""
    state.fields["h"] = state.fields["h"].astype(np.float32).astype(np.float64)


def boundary(state: State) -> None:
    """The wall in the last column of rank 2 is wrong from iteration 40 on."""
    if state.iteration >= 40:
        state.of_rank("v", 2)[:, -1] += 0.02 * np.cos(np.arange(CELLS) / 3)


def growing(state: State) -> None:
    """u drifts away from iteration 20 on, twice as far in each iteration."""
    if state.iteration >= 20:
        y, x = np.indices(state.fields["u"].shape)
        state.fields["u"] += 5e-8 * 2.0 ** (state.iteration / 10 - 2) * np.cos(x / 7 + y / 5)


DEFECTS = {
    "nothing": nothing,
    "sign": sign,
    "unit": nothing,
    "shift": shift,
    "transposed": transposed,
    "rank_missing": rank_missing,
    "not_a_number": not_a_number,
    "precision": precision,
    "boundary": boundary,
    "growing": growing,
    "swapped": nothing,
}


def simulate(folder: Path, defect: str, seed: int) -> None:
    """Writes folder/iter_NNN/rank_R/{h,u,v}.npy, folder/gauges.csv and folder/run.log."""
    random = np.random.default_rng(seed)
    y, x = np.indices((CELLS, CELLS * RANKS)) / CELLS
    h = 1 + 0.2 * np.exp(-9 * ((x - 1.2) ** 2 + (y - 0.4) ** 2)) + 0.05 * np.sin(5 * x + 2 * y)
    u, v = 0.1 * np.sin(4 * x + y), 0.1 * np.cos(3 * y - x)
    rows, energies = [], []
    for iteration in range(10, 10 * ITERATIONS + 1, 10):
        for _ in range(STEPS):
            u[:, 1:-1] -= 0.05 * (h[:, 2:] - h[:, :-2])
            v[1:-1] -= 0.05 * (h[2:] - h[:-2])
            h[1:-1, 1:-1] -= 0.05 * (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1])
            rows.append((len(rows) * 0.01, h[20, 50] + 0.5, 30 * u[20, 50]))
        noisy = {
            name: field + NOISE * random.uniform(-1, 1, field.shape)
            for name, field in (("h", 100 * h), ("u", u), ("v", v))
        }
        energies.append(float((h * (u**2 + v**2)).sum()))
        state = State(iteration, noisy, set(range(RANKS)))
        DEFECTS[defect](state)
        for rank in sorted(state.ranks):
            target = folder / f"iter_{iteration:03d}" / f"rank_{rank}"
            target.mkdir(parents=True, exist_ok=True)
            for name in state.fields:
                np.save(target / f"{name}.npy", state.of_rank(name, rank))
    header = "time,level,flow"
    if defect == "swapped":
        rows = [(time, flow, level) for time, level, flow in rows]
    lines = [header, *(",".join(map(repr, map(float, row))) for row in rows)]
    (folder / "gauges.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    unit = 4.184 if defect == "unit" else 1.0
    lines = [
        f"step {step} energy = {one / unit:.9f} J"
        for step, one in zip(range(10, 10 * ITERATIONS + 1, 10), energies, strict=True)
    ]
    (folder / "run.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


CONFIG = """\
version: 1
defaults: {{atol: 1e-6, evidence: {evidence}}}
checks:
  channel: {{outputs: out, exclude: "*.log"}}
  energy:
    format: log
    outputs: out/run.log
    values: {{energy: "energy = {{energy}} J"}}
    steps: {{step: "step {{iteration:int}}"}}
"""
WRITE = ("--json", "result.json", "--report", "report.html")


def checked(folder: Path, defect: str, evidence: str = "data") -> str:
    """What `ciwrap check` prints; the page is folder/report.html. evidence: of the golden."""
    folder.mkdir(parents=True)
    (folder / "ciwrap.yaml").write_text(CONFIG.format(evidence=evidence), encoding="utf-8")
    simulate(folder / "out", "nothing", 1)
    ciwrap(folder, "accept")
    for old in (folder / "out").rglob("*.npy"):
        old.unlink()
    simulate(folder / "out", defect, 2)
    return ciwrap(folder, "check", *WRITE, codes=(0, 1, 3))


def compared(folder: Path, defect: str) -> str:
    """What `ciwrap compare` prints of the two runs; the page is folder/report.html."""
    for side, what, seed in (("old", "nothing", 1), ("new", defect, 2)):
        simulate(folder / side, what, seed)
    return ciwrap(
        folder,
        *("compare", "old", "new", "--atol", "1e-6", "--format", "*.log=text"),
        *WRITE,
        codes=(0, 1, 3),
    )
