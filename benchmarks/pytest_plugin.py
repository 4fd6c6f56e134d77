"""What the pytest plugin costs: at the start of a session, for small checks, for a large array.

Each case is a pytest run of its own, on a test file written for it; only the checking call is
timed, and the whole run beside it. Baselines of many small checks are weighed and written beside
those of pytest-regressions, syrupy and inline-snapshot, with processor time, in one run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_TIMER = """
import json, os, time
import numpy as np
import pytest

SECONDS = []

def timed(function, *arguments, **options):
    started = time.perf_counter()
    function(*arguments, **options)
    SECONDS.append(time.perf_counter() - started)

@pytest.fixture(scope="session", autouse=True)
def write_seconds():
    yield
    with open(os.environ["SECONDS_FILE"], "w") as stream:
        json.dump(SECONDS, stream)
"""
_NPY = """
def check_npy(x, name):
    path = f"npy/{name}.npy"
    if not os.path.exists(path):
        os.makedirs("npy", exist_ok=True)
        np.save(path, x)
    np.testing.assert_allclose(x, np.load(path), rtol=0, atol=1e-6)

def check_snapshot(snapshot, x):
    assert snapshot == x
"""
_SMALL = {
    "ciwrap": "timed(ciwrap.check, x, atol=1e-6)",
    "npy + numpy.testing": "timed(check_npy, x, str(number))",
}
# The fixture's call, a first run that makes the baseline, and where that lies.
_LARGE = {
    "npy + numpy.testing": ("", "timed(check_npy, x, 'x')", (), "npy"),
    "ciwrap": ("ciwrap", "timed(ciwrap.check, x, atol=1e-6)", ("--ciwrap-update=new",), "golden"),
    "pytest-regressions ndarrays_regression": (
        "ndarrays_regression",
        "timed(ndarrays_regression.check, {'x': x}, default_tolerance={'atol': 1e-6, 'rtol': 0})",
        ("--force-regen",),
        "test_it",
    ),
    "pytest-regressions num_regression": (
        "num_regression",
        "timed(num_regression.check, {'x': x}, default_tolerance={'atol': 1e-6, 'rtol': 0})",
        ("--force-regen",),
        "test_it",
    ),
    "syrupy (of the array's repr: blind)": (
        "snapshot",
        # The snapshot first: NumPy would otherwise compare it with every element on its own.
        "timed(check_snapshot, snapshot, x)",
        ("--snapshot-update",),
        "__snapshots__",
    ),
    "pytest-arraydiff (text)": (
        "",
        "return x",
        ("--arraydiff-generate-path=reference",),
        "reference",
    ),
}
# Peers that keep a baseline of any size: theirs of a large array are made and checked once.
_LARGE_PEERS = (
    "ciwrap",
    "npy + numpy.testing",
    "pytest-regressions ndarrays_regression",
    "pytest-regressions num_regression",
    "syrupy (of the array's repr: blind)",
)
# As above; the call that a passing run makes. inline-snapshot keeps its numbers in the test itself.
_MANY = {
    "ciwrap": ("ciwrap", "ciwrap.check(x, atol=1e-6)", ("--ciwrap-update=new",)),
    "pytest-regressions ndarrays_regression": (
        "ndarrays_regression",
        "ndarrays_regression.check({'x': x}, default_tolerance={'atol': 1e-6, 'rtol': 0})",
        ("--force-regen",),
    ),
    "pytest-regressions num_regression": (
        "num_regression",
        "num_regression.check({'x': x}, default_tolerance={'atol': 1e-6, 'rtol': 0})",
        ("--force-regen",),
    ),
    "syrupy (of the array's repr: blind)": (
        "snapshot",
        "assert snapshot == x",
        ("--snapshot-update",),
    ),
    "inline-snapshot (of a list)": (
        "",
        "assert x.tolist() == snapshot()",
        ("--inline-snapshot=create",),
    ),
}
_NEEDS = {
    "pytest-regressions num_regression": "pandas",
    "inline-snapshot (of a list)": "inline_snapshot",
    "pytest-regressions ndarrays_regression": "pytest_regressions",
    "syrupy (of the array's repr: blind)": "syrupy",
    "pytest-arraydiff (text)": "pytest_arraydiff",
}


def run(*, check_count: int, element_count: int, repeats: int) -> dict[str, Any]:
    return {
        "startup": _startup(max(3, repeats)),
        "small": {"check_count": check_count, "cases": _small(check_count)},
        "many": {"check_count": check_count, "cases": many(check_count)},
        "large": {"element_count": element_count, "cases": _large(element_count, repeats)},
    }


def run_peers(*, check_count: int, element_count: int) -> dict[str, Any]:
    """Baselines beside those of other tools, in one run: many small ones, and a large one.

    inline-snapshot writes numbers into the test, so it has no part in the large one.
    """
    return {
        "many": {"check_count": check_count, "cases": many(check_count)},
        "large": {
            "element_count": element_count,
            "cases": _large(element_count, 1, only=_LARGE_PEERS),
        },
    }


def _pytest(folder: Path, *arguments: str) -> tuple[float, list[float], int]:
    """Seconds of the run, seconds of the calls, exit code."""
    target = folder / "seconds.json"
    target.unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**kept, "SECONDS_FILE": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if not target.exists():
        return seconds, [], done.returncode
    return seconds, json.loads(target.read_text()), done.returncode


def _startup(repeats: int) -> dict[str, float]:
    """Median seconds of a session with one empty test, with the plugin and without it."""
    found: dict[str, list[float]] = {"with the plugin": [], "-p no:ciwrap": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text("def test_it(): pass\n")
        for _ in range(repeats):
            for case, seconds in found.items():
                more = () if case == "with the plugin" else ("-p", "no:ciwrap")
                seconds.append(_pytest(folder, *more)[0])
    return {case: statistics.median(seconds) for case, seconds in found.items()}


def _small(check_count: int) -> dict[str, dict[str, float]]:
    found = {}
    for case, call in _SMALL.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fixture = "ciwrap" if case == "ciwrap" else "request"
            (folder / "test_it.py").write_text(
                f"{_TIMER}{_NPY}\n@pytest.mark.parametrize('number', range({check_count}))\n"
                f"def test_it(number, {fixture}):\n"
                f"    x = np.random.default_rng(number).normal(size=100)\n    {call}\n"
            )
            _pytest(folder, *(("--ciwrap-update=new",) if case == "ciwrap" else ()))
            total, seconds, code = _pytest(folder)
            assert code == 0, case
            assert len(seconds) == check_count
            found[case] = {
                "median_seconds": statistics.median(seconds),
                "percentile_95_seconds": sorted(seconds)[int(0.95 * check_count)],
                "session_seconds": total,
            }
    return found


def many(check_count: int, element_count: int = 50) -> dict[str, dict[str, Any]]:
    """Bytes and files of the baselines of small checks; processor seconds to write and to check.

    Of whole sessions, start-up included, since that is what people wait for.
    """
    found: dict[str, dict[str, Any]] = {}
    for case, (fixture, call, first_run) in _MANY.items():
        if case in _NEEDS and find_spec(_NEEDS[case]) is None:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "pytest.ini").write_text("[pytest]\n")
            is_inline = case.startswith("inline")
            lines = ["import numpy as np", "import pytest"]
            lines += ["from inline_snapshot import snapshot"] if is_inline else []
            for number in range(check_count):
                lines.append(f"def test_{number}({fixture or 'request'}):")
                lines.append(
                    f"    x = np.random.default_rng({number}).normal(size={element_count})"
                )
                lines.append(f"    {call}")
            (folder / "test_it.py").write_text("\n".join(lines) + "\n")
            before = _files(folder)
            writing, _ = _cpu_seconds(folder, *first_run)
            after = _files(folder)
            checking, code = _cpu_seconds(folder)
            found[case] = {
                "passed": code == 0,
                "files": len(after) - (0 if is_inline else len(before)),
                "bytes": sum(after.values()) - sum(before.values()),
                "write_cpu_seconds": writing,
                "check_cpu_seconds": checking,
            }
    return found


def _files(folder: Path) -> dict[Path, int]:
    return {
        path: path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".ciwrap", ".inline-snapshot"} & {*path.parts}
    }


def _cpu_seconds(folder: Path, *arguments: str) -> tuple[float, int]:
    """Processor seconds of a run, and its exit code."""
    before = _children_seconds()
    code = _pytest(folder, *arguments)[2]
    return _children_seconds() - before, code


def _children_seconds() -> float:
    found = os.times()
    return found.children_user + found.children_system


def _large(
    element_count: int, repeats: int, only: tuple[str, ...] = tuple(_LARGE)
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for case, (fixture, call, first_run, baseline) in _LARGE.items():
        if case not in only or (case in _NEEDS and find_spec(_NEEDS[case]) is None):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            mark = "@pytest.mark.array_compare(atol=1e-6)\n" if "arraydiff" in case else ""
            (folder / "test_it.py").write_text(
                f"{_TIMER}{_NPY}\n{mark}def test_it({fixture or 'request'}):\n"
                f"    x = np.random.default_rng(1).normal(size={element_count})\n    {call}\n"
            )
            writing, _ = _cpu_seconds(folder, *first_run)
            more = ("--arraydiff", "--arraydiff-reference-path=reference") if mark else ()
            before = _children_seconds()
            runs = [_pytest(folder, *more) for _ in range(repeats)]
            checking = (_children_seconds() - before) / repeats
            files = [path for path in (folder / baseline).rglob("*") if path.is_file()]
            calls = [seconds[-1] for _, seconds, _ in runs if seconds]
            found[case] = {
                "passed": all(code == 0 for _, _, code in runs),
                "call_seconds": statistics.median(calls) if calls else None,
                "session_seconds": statistics.median(seconds for seconds, _, _ in runs),
                "baseline_bytes": sum(path.stat().st_size for path in files),
                "write_cpu_seconds": writing,
                "check_cpu_seconds": checking,
            }
    return found


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["what", "a check", "the session", "baseline"]]
    for case, seconds in result["startup"].items():
        rows.append([f"a session with one empty test, {case}", "", f"{seconds:.3f} s", ""])
    count = result["small"]["check_count"]
    for case, found in result["small"]["cases"].items():
        median, high = 1e3 * found["median_seconds"], 1e3 * found["percentile_95_seconds"]
        rows.append(
            [
                f"{count} checks of 100 float64: {case}",
                f"{median:.2f} ms (95 %: {high:.2f} ms)",
                f"{found['session_seconds']:.1f} s",
                "",
            ]
        )
    rows += _many_rows(result["many"])
    count = result["large"]["element_count"]
    for case, found in result["large"]["cases"].items():
        call = found["call_seconds"]
        rows.append(
            [
                f"{count:,} float64: {case}" + ("" if found["passed"] else " (FAILED)"),
                "" if call is None else f"{call:.2f} s",
                f"{found['session_seconds']:.1f} s",
                f"{found['baseline_bytes'] / 1e6:,.1f} MB",
            ]
        )
    return rows


def peers_table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["what", "CPU of the sessions", "ratios", "baseline"], *_many_rows(result["many"])]
    count = result["large"]["element_count"]
    own = result["large"]["cases"]["ciwrap"]
    for case, found in result["large"]["cases"].items():
        size = f"{found['baseline_bytes'] / 1e6:,.1f} MB"
        rows.append([_title(count, case, found), *_costs(found, own, "baseline_bytes"), size])
    return rows


def _many_rows(result: dict[str, Any]) -> list[list[str]]:
    cases = result["cases"]
    return [
        [
            _title(result["check_count"], case, found, " checks of 50"),
            *_costs(found, cases["ciwrap"], "bytes"),
            f"{found['bytes'] / 1e3:,.0f} kB in {found['files']} files",
        ]
        for case, found in cases.items()
    ]


def _title(count: int, case: str, found: dict[str, Any], what: str = "") -> str:
    return f"{count:,}{what} float64: {case}" + ("" if found["passed"] else " (FAILED)")


def _costs(found: dict[str, Any], own: dict[str, Any], size: str) -> list[str]:
    """Processor seconds of the sessions, and what they and the bytes are of ciwrap's."""
    keys = (size, "write_cpu_seconds", "check_cpu_seconds")
    ratios = ", ".join(f"{found[key] / own[key]:.2f}" for key in keys)
    writing, checking = found["write_cpu_seconds"], found["check_cpu_seconds"]
    return [
        f"write {writing:.1f} s, check {checking:.1f} s of CPU",
        f"bytes, write, check / ciwrap: {ratios}",
    ]
