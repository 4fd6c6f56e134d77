"""An ensemble of Lorenz-96 by commands alone: honest re-runs, and the forcing off by 5 %.

`repeat --keep` makes the members and `capture --ensemble` the golden; then `ciwrap run` makes three
new runs with a seed of their own and judges them, as often as is asked.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.written_bounds import EXAMPLES, ciwrap

MEMBERS, NEW_RUNS = 60, 3
FORCING = 8.0
CHANGE = 0.05
_FIRST_SEED = 1_000_000


def run(*, trials: int, changed_trials: int) -> dict[str, Any]:
    """How often each verdict was given."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(EXAMPLES / "lorenz96" / "lorenz96.py", folder)
        _configure(folder, f"{sys.executable} lorenz96.py --seed {{seed}}", ".ciwrap/repeat/run_*")
        ciwrap(folder, "repeat", "-n", str(MEMBERS), "--keep", "--seed", "1")
        ciwrap(
            folder, "capture", "--ensemble", "air", "--features", "mean,std,lag", "--blocks", "8"
        )
        honest = [_verdict(folder, seed, FORCING) for seed in range(trials)]
        changed = [
            _verdict(folder, trials + seed, FORCING * (1 + CHANGE))
            for seed in range(changed_trials)
        ]
    return {
        "members": MEMBERS,
        "new_runs": NEW_RUNS,
        "honest": dict(Counter(honest)),
        "changed": dict(Counter(changed)),
    }


def _configure(folder: Path, command: str, runs: str) -> None:
    (folder / "ciwrap.yaml").write_text(
        f"run: {command}\nchecks:\n  air:\n    outputs: out\n    ensemble: {runs}\n"
    )


def _verdict(folder: Path, trial: int, forcing: float) -> str:
    command = (
        f"{sys.executable} lorenz96.py --seed {_FIRST_SEED + trial} --runs {NEW_RUNS}"
        f" --forcing {forcing} --output new_{{}}"
    )
    _configure(folder, command, "new_*")
    return str(ciwrap(folder, "run")[1]["verdict"])


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["members", "new runs", "what was run", "sets of runs", "consistent", "inconsistent"]]
    for what, key in (("the same program", "honest"), (f"forcing +{CHANGE:.0%}", "changed")):
        counts = result[key]
        rows.append(
            [
                str(result["members"]),
                str(result["new_runs"]),
                what,
                str(sum(counts.values())),
                str(counts.get("consistent", 0)),
                str(counts.get("inconsistent", 0)),
            ]
        )
    return rows
