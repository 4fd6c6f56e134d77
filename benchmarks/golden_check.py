"""A passing check of one float64 array against its baseline: ciwrap and two usual ways.

The new array differs from the baseline by up to 10 % of the bound everywhere, as a rerun of a
threaded code does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ciwrap
from benchmarks.measure import Timing, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

ATOL = 1e-6
NOISE_SHARE = 0.1

# Run by pytest, in a process of its own: the time taken is that of the call alone.
PYTEST_FILE = """
import json, os, time
import numpy as np

def test_check(ndarrays_regression):
    data = np.load(os.environ["CIWRAP_BENCH_ARRAY"])
    tolerance = dict(atol=float(os.environ["CIWRAP_BENCH_ATOL"]), rtol=0.0)
    seconds = []
    for _ in range(int(os.environ["CIWRAP_BENCH_REPEATS"])):
        start = time.perf_counter()
        ndarrays_regression.check({"x": data}, default_tolerance=tolerance)
        seconds.append(time.perf_counter() - start)
    with open(os.environ["CIWRAP_BENCH_RESULT"], "w") as file:
        json.dump(seconds, file)
"""


def run(*, element_count: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    golden = rng.standard_normal(element_count)
    new = golden + rng.uniform(-NOISE_SHARE, NOISE_SHARE, element_count) * ATOL
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        baseline = folder / "baseline.npy"
        np.save(baseline, golden)
        cases: dict[str, Callable[[], object]] = {
            "npy file and numpy.isclose": lambda: np.isclose(
                new, np.load(baseline), rtol=0.0, atol=ATOL
            ).all()
        }
        sizes = {"npy file and numpy.isclose": baseline.stat().st_size}
        for evidence, levels in (("tree", 1), ("residues", 3), ("residues", 15), ("data", 1)):
            label = f"ciwrap, {evidence}" + (f" k={levels}" if levels > 1 else "")
            path = folder / f"{label}.golden"
            ciwrap.make_golden(
                {"x": golden}, atol=ATOL, evidence=evidence, residue_levels=max(levels, 3)
            ).write(path)
            sizes[label] = path.stat().st_size
            cases[label] = _ciwrap_check(path, new)
        verdicts = {case: bool(call()) for case, call in cases.items()}
        for case, timing in interleaved(cases, repeats).items():
            rows.append(_row(case, timing, sizes[case], golden.nbytes, verdicts[case]))
        row = _pytest_regressions(folder, golden, repeats)
    if row is not None:
        rows.append(row)
    return {
        "element_count": element_count,
        "atol": ATOL,
        "noise_share_of_bound": NOISE_SHARE,
        "pytest_regressions_measured": row is not None,
        "rows": rows,
    }


def _ciwrap_check(path: Path, new: NDArray[np.float64]) -> Callable[[], bool]:
    return lambda: ciwrap.read_golden(path).check("x", new).verdict is ciwrap.Verdict.MATCH


def _pytest_regressions(
    folder: Path, golden: NDArray[np.float64], repeats: int
) -> dict[str, Any] | None:
    """The row of pytest-regressions' ndarrays_regression, or None where it is not installed."""
    if importlib.util.find_spec("pytest_regressions") is None:
        return None
    (folder / "test_bench.py").write_text(PYTEST_FILE)
    rng = np.random.default_rng(5)
    noise = rng.uniform(-NOISE_SHARE, NOISE_SHARE, golden.size) * ATOL
    np.save(folder / "golden.npy", golden)
    np.save(folder / "new.npy", golden + noise)
    result = folder / "seconds.json"
    environment = {
        **os.environ,
        "CIWRAP_BENCH_ATOL": repr(ATOL),
        "CIWRAP_BENCH_REPEATS": str(repeats),
        "CIWRAP_BENCH_RESULT": str(result),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bench.py"]
    for array, extra in (("golden.npy", ["--force-regen"]), ("new.npy", [])):
        environment["CIWRAP_BENCH_ARRAY"] = str(folder / array)
        done = subprocess.run(
            command + extra,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"pytest-regressions did not pass:\n{done.stdout[-2000:]}")
    timing = Timing(tuple(json.loads(result.read_text())))
    size = sum(path.stat().st_size for path in folder.rglob("*.npz"))
    return _row("pytest-regressions ndarrays_regression", timing, size, golden.nbytes, True)


def _row(
    case: str, timing: Timing, baseline_bytes: int, data_bytes: int, passed: bool
) -> dict[str, Any]:
    return {
        "case": case,
        "baseline_bytes": baseline_bytes,
        "share_of_data": baseline_bytes / data_bytes,
        "passed": passed,
        **timing.as_json(),
    }


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["way", "seconds", "baseline MB", "of the data", "verdict"]]
    rows += [
        [
            row["case"],
            f"{row['median_seconds']:.3f}",
            f"{row['baseline_bytes'] / 1e6:.2f}",
            f"{100 * row['share_of_data']:.1f} %",
            "pass" if row["passed"] else "false alarm (no data to settle it)",
        ]
        for row in result["rows"]
    ]
    if not result["pytest_regressions_measured"]:
        rows.append(["pytest-regressions", "-", "-", "-", "not installed, not measured"])
    return rows
