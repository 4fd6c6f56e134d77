"""What writing a golden costs when a folder holds many: the time of a write as the folder grows.

Goldens of 100 float64 are written into one folder, under one lock for all of them, as `ciwrap
accept` does, and under a lock for each, as the pytest plugin does with `--ciwrap-update=new`.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ciwrap.arrays.values import ArrayValues
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, VariableRow, capture
from ciwrap.golden.store import GoldenStore
from ciwrap.model import ErrorBound, VariableId, VariableSettings


def run(*, counts: tuple[int, ...]) -> dict[str, Any]:
    rows = []
    for count in counts:
        for is_one_lock in (True, False):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / "golden"
                seconds, cpu_seconds = _write_many(folder, count, is_one_lock=is_one_lock)
            rows.append(
                {
                    "count": count,
                    "one_lock": is_one_lock,
                    "seconds": seconds,
                    "cpu_seconds": cpu_seconds,
                }
            )
    return {"rows": rows, "exponents": _exponents(rows)}


def _write_many(folder: Path, count: int, *, is_one_lock: bool) -> tuple[float, float]:
    store = GoldenStore(folder, is_kept=True)
    variable = capture(
        ArrayValues(np.linspace(0, 1, 100)),
        VariableSettings(bound=ErrorBound(1e-6)),
        VariableId("array"),
    ).variable
    rows = (VariableRow.of(variable),)

    def write(number: int) -> None:
        check = f"test_it[{number}]-name"

        def manifest(root: str, byte_count: int) -> Manifest:
            binary = BinaryFile(store.path(check).name, root, byte_count)
            return Manifest(check, binary, rows, {}, (Acceptance("now", "me", "why", root),))

        store.write(check, [variable], manifest)

    started, started_cpu = time.perf_counter(), time.process_time()
    if is_one_lock:
        with store.locked():
            for number in range(count):
                write(number)
    else:
        for number in range(count):
            with store.locked():
                write(number)
    store.close()
    return time.perf_counter() - started, time.process_time() - started_cpu


def _exponents(rows: list[dict[str, Any]]) -> dict[str, float]:
    """How the CPU's seconds grow from the smallest count to the largest: 1 is linear."""
    found = {}
    for is_one_lock, words in ((True, "one lock"), (False, "a lock each")):
        own = [row for row in rows if row["one_lock"] is is_one_lock]
        first, last = own[0], own[-1]
        found[words] = math.log(last["cpu_seconds"] / first["cpu_seconds"]) / math.log(
            last["count"] / first["count"]
        )
    return found


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["goldens", "lock", "seconds", "ms each", "ms of CPU each"]]
    for row in result["rows"]:
        each = 1e3 * row["seconds"] / row["count"]
        lock = "one" if row["one_lock"] else "each its own"
        cpu = 1e3 * row["cpu_seconds"] / row["count"]
        rows.append(
            [f"{row['count']:,}", lock, f"{row['seconds']:.2f}", f"{each:.2f}", f"{cpu:.2f}"]
        )
    for words, exponent in result["exponents"].items():
        rows.append([f"growth with {words}", "", "", "", f"N^{exponent:.2f}"])
    return rows
