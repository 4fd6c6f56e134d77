"""What a command takes that has next to nothing to do, beside `import numpy` and bare Python.

Each line is a process of its own, in turns with the others; wall time, and the processor time of
user and system. Only the ratios are claims.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.used import in_turns, median_ratio, used

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


def run(*, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for words in PREPARE:
            used((sys.executable, "-m", "ciwrap", *words), cwd=folder)
        commands = {case: (sys.executable, *words) for case, words in CASES.items()}
        costs = in_turns(commands, cwd=folder, rounds=repeats)
    return {
        "elements": ELEMENTS,
        "files": FILES,
        "rows": [
            {
                "case": case,
                "wall_seconds": statistics.median(one.seconds for one in found),
                "cpu_seconds": statistics.median(one.cpu_seconds for one in found),
                "wall_of_numpy": median_ratio(found, costs[NUMPY], "seconds"),
                "cpu_of_numpy": median_ratio(found, costs[NUMPY], "cpu_seconds"),
                "cpu_of_python": median_ratio(found, costs[PYTHON], "cpu_seconds"),
            }
            for case, found in costs.items()
        ],
    }


def _write_inputs(folder: Path) -> None:
    (folder / "ciwrap.yaml").write_text(CONFIG)
    np.save(folder / "one.npy", np.linspace(0, 1, ELEMENTS))
    for run_name in "AB":
        (folder / run_name).mkdir()
        for number in range(FILES):
            np.save(folder / run_name / f"x_{number}.npy", np.linspace(0, number, ELEMENTS))


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
