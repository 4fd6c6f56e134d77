"""Two files compared while another process keeps one core busy, as beside tests or a build.

Each line is the command in a process of its own, threads that sleep while they wait (as ciwrap has
them) beside threads that spin (as libgomp has them by default) and beside one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import interleaved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ATOL = 1e-3
# What libgomp does unless it is told otherwise: some milliseconds.
SPIN_COUNT = "300000"
SLEEPING, SPINNING, ALONE = "threads that sleep", "threads that spin", "one thread"
WAYS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    SLEEPING: ({}, ()),
    SPINNING: ({"GOMP_SPINCOUNT": SPIN_COUNT}, ()),
    ALONE: ({}, ("--threads", "1")),
}


def run(*, data_bytes: int, repeats: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_pair(folder, data_bytes)
        for is_busy in (False, True):
            with _one_busy_process(is_busy):
                timings = interleaved({way: _compare(folder, way) for way in WAYS}, repeats)
            rows += [
                {
                    "machine": "one busy process" if is_busy else "idle",
                    "case": way,
                    "times_sleeping": timings[SLEEPING].ratio_of(timing),
                    **timing.as_json(),
                }
                for way, timing in timings.items()
            ]
    return {"data_bytes": data_bytes, "atol": ATOL, "rows": rows}


def _write_pair(folder: Path, data_bytes: int) -> None:
    """Normally distributed float32, and the same moved by up to a tenth of the bound."""
    rng = np.random.default_rng(7)
    golden = rng.standard_normal(data_bytes // 4, dtype=np.float32)
    np.save(folder / "golden.npy", golden)
    golden += np.float32(ATOL / 5) * (rng.random(golden.size, dtype=np.float32) - np.float32(0.5))
    np.save(folder / "new.npy", golden)


def _compare(folder: Path, way: str) -> Callable[[], object]:
    settings, options = WAYS[way]
    inherited = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    words = [
        sys.executable,
        "-m",
        "ciwrap",
        "compare",
        "golden.npy",
        "new.npy",
        "--atol",
        str(ATOL),
    ]

    def work() -> None:
        done = subprocess.run(
            [*words, *options],
            cwd=folder,
            env={**environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"the two files do not match:\n{done.stdout}{done.stderr}")

    return work


@contextmanager
def _one_busy_process(is_wanted: bool) -> Iterator[None]:
    if not is_wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            yield
        finally:
            busy.kill()


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["machine", "way", "seconds", "slowest", "times threads that sleep"]]
    rows += [
        [
            row["machine"],
            row["case"],
            f"{row['median_seconds']:.2f}",
            f"{row['max_seconds']:.2f}",
            f"{row['times_sleeping']:.2f}",
        ]
        for row in result["rows"]
    ]
    return rows
