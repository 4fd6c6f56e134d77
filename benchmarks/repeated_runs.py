"""Do bounds that `ciwrap repeat` suggests from some runs hold for many more of them?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ciwrap.check.check import check_outputs
from ciwrap.golden.store import GoldenStore
from ciwrap.model import CheckResult, Verdict
from ciwrap.project.config import load_config
from ciwrap.studies.simulation import Settings, run_simulation

THREADS = 2
CONFIG = f"""\
run: [{json.dumps(sys.executable)}, -m, ciwrap.studies.simulation, out, --threads, "{THREADS}"]
checks:
  mesh:
    outputs: out
    evidence: data
"""


def run(*, runs: int, further: int) -> dict[str, Any]:
    """Bounds from `runs` runs of the demonstration, then that many further runs against
    the golden of another one, and one with the planted defect."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ciwrap.yaml").write_text(CONFIG)
        _ciwrap(folder, "repeat", "-n", str(runs), "--write-bounds", "--json", "repeat.json")
        suggested = json.loads((folder / "repeat.json").read_text())
        _simulate(folder, Settings(threads=THREADS))
        _ciwrap(folder, "accept")
        failed = []
        for number in range(further):
            _simulate(folder, Settings(threads=THREADS))
            if _check(folder).verdict is not Verdict.MATCH:
                failed.append(number)
        _simulate(folder, Settings(threads=THREADS, defect="boundary-sign"))
        defect = _check(folder).first_divergence
    return {
        "runs": runs,
        "further": further,
        "headline": suggested["headline"],
        "bounds": {
            one["name"]: one["suggested_bound"]
            for one in suggested["variables"]
            if one["suggested_bound"] is not None
        },
        "failed": len(failed),
        "defect_at": None if defect is None else defect.variable.id.text,
    }


def _ciwrap(folder: Path, *arguments: str) -> None:
    words = [sys.executable, "-m", "ciwrap", *arguments]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=600)


def _simulate(folder: Path, settings: Settings) -> None:
    shutil.rmtree(folder / "out", ignore_errors=True)
    run_simulation(folder / "out", settings)


def _check(folder: Path) -> CheckResult:
    config = load_config(folder / "ciwrap.yaml")
    return check_outputs(config.check("mesh"), GoldenStore(folder / "golden"))


def table(result: dict[str, Any]) -> list[list[str]]:
    bounds = ", ".join(
        f"{name} {one.get('atol') or one.get('rtol'):g}" for name, one in result["bounds"].items()
    )
    return [
        ["runs", "bounds", "further runs", "beyond", "planted defect"],
        [
            str(result["runs"]),
            bounds,
            str(result["further"]),
            str(result["failed"]),
            f"differs from {result['defect_at']} on" if result["defect_at"] else "not found",
        ],
    ]
