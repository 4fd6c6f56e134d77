"""What a command takes that has next to nothing to do, beside `import numpy` and bare Python.

Each line is a process of its own, in turns with the others; wall time, and the processor time of
user and system. Only the ratios are claims.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ELEMENTS = 20_000
FILES = 5
CONFIG = "checks:\n  - name: one\n    outputs: [one.npy]\n    atol: 1e-6\n"
PYTHON, NUMPY = "python -c pass", "python -c 'import numpy'"
CASES = {
    PYTHON: ("-c", "pass"),
    NUMPY: ("-c", "import numpy"),
    "ciwrap --version": ("-m", "ciwrap", "--version"),
    "ciwrap check, one small array": ("-m", "ciwrap", "check"),
    "ciwrap compare, two captured equal runs": ("-m", "ciwrap", "compare", "A", "B"),
    "ciwrap compare, two equal files": ("-m", "ciwrap", "compare", "A/x_0.npy", "B/x_0.npy"),
}
PREPARE = (
    ("accept", "--reason", "to measure"),
    ("capture", "A", "--atol", "1e-3"),
    ("capture", "B", "--atol", "1e-3"),
)


class _Cost(NamedTuple):
    wall: float
    cpu: float


def run(*, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for words in PREPARE:
            _cost(folder, ("-m", "ciwrap", *words))
        costs: dict[str, list[_Cost]] = {case: [] for case in CASES}
        for turn in range(repeats + 1):
            for case, words in CASES.items():
                cost = _cost(folder, words)
                if turn:  # the first one compiles modules, and fills caches
                    costs[case].append(cost)
    return {
        "elements": ELEMENTS,
        "files": FILES,
        "rows": [
            {
                "case": case,
                "wall_seconds": statistics.median(one.wall for one in found),
                "cpu_seconds": statistics.median(one.cpu for one in found),
                "wall_of_numpy": _ratio(found, costs[NUMPY], 0),
                "cpu_of_numpy": _ratio(found, costs[NUMPY], 1),
                "cpu_of_python": _ratio(found, costs[PYTHON], 1),
            }
            for case, found in costs.items()
        ],
    }


def _ratio(costs: list[_Cost], others: list[_Cost], which: int) -> float:
    """The median, over the rounds, of one cost beside the other."""
    return statistics.median(
        mine[which] / theirs[which] for mine, theirs in zip(costs, others, strict=True)
    )


def _write_inputs(folder: Path) -> None:
    (folder / "ciwrap.yaml").write_text(CONFIG)
    np.save(folder / "one.npy", np.linspace(0, 1, ELEMENTS))
    for run_name in "AB":
        (folder / run_name).mkdir()
        for number in range(FILES):
            np.save(folder / run_name / f"x_{number}.npy", np.linspace(0, number, ELEMENTS))


def _cost(folder: Path, words: tuple[str, ...]) -> _Cost:
    """Of one process. Raises RuntimeError if it fails."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed")
    return _Cost(wall, used.ru_utime + used.ru_stime)


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["process", "wall s", "CPU s", "wall : numpy", "CPU : numpy", "CPU : python"]]
    rows += [
        [
            row["case"],
            f"{row['wall_seconds']:.3f}",
            f"{row['cpu_seconds']:.3f}",
            f"{row['wall_of_numpy']:.2f}",
            f"{row['cpu_of_numpy']:.2f}",
            f"{row['cpu_of_python']:.1f}",
        ]
        for row in result["rows"]
    ]
    return rows
