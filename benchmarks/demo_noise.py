"""Run-to-run noise of the demonstration's simulation, from which its error bounds were chosen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ciwrap.studies.simulation import Settings, run_simulation

VARIABLES = ("x", "y", "vx", "vy", "density", "potential")


def run(*, runs: int, thread_counts: tuple[int, ...] = (2, 4, 8)) -> dict[str, Any]:
    """Largest |difference| from a run with one thread, over `runs` runs of each thread count."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        reference = Path(name) / "reference"
        files = run_simulation(reference, Settings(threads=1))
        for threads in thread_counts:
            largest = dict.fromkeys(VARIABLES, 0.0)
            for number in range(runs):
                folder = Path(name) / f"{threads}_{number}"
                run_simulation(folder, Settings(threads=threads))
                for path in files:
                    if path.stem in largest:
                        difference = _difference(path, folder / path.relative_to(reference))
                        largest[path.stem] = max(largest[path.stem], difference)
            rows.append({"threads": threads, "runs": runs, "max_abs_difference": largest})
    return {"rows": rows}


def _difference(one: Path, other: Path) -> float:
    a, b = np.load(one).astype(np.float64), np.load(other).astype(np.float64)
    return float(np.abs(a - b).max())


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["threads", "runs", *VARIABLES]]
    rows += [
        [
            str(row["threads"]),
            str(row["runs"]),
            *(f"{row['max_abs_difference'][name]:.1e}" for name in VARIABLES),
        ]
        for row in result["rows"]
    ]
    return rows
