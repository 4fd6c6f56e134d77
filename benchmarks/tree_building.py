"""Tree building beside the memory-read bandwidth of the same process and number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Timing, interleaved
from ciwrap import _core, _demo

if TYPE_CHECKING:
    from collections.abc import Callable

# name, bound, and the least share of the read bandwidth the project holds itself to
KINDS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("absolute, plain", {"atol": 1e-4}, 0.85),
    ("absolute, residues k=15", {"atol": 1e-4, "residue_levels": 15}, 0.6),
    ("relative, plain", {"atol": 1e-6, "rtol": 1e-4}, 0.45),
)
AGAINST = 0.6  # the same, of a new run against residues


def run(*, data_bytes: int, repeats: int, thread_counts: tuple[int, ...]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for dtype in ("<f4", "<f8"):
        numbers = np.dtype(dtype)
        rng = np.random.default_rng(1)
        data = rng.standard_normal(data_bytes // numbers.itemsize, dtype=numbers.type)
        for threads in thread_counts:
            timings = interleaved(_cases(data, dtype, threads), repeats)
            read = timings["read"]
            rows.append(_row(dtype, threads, "memory read", data.nbytes, read, None, None))
            for name, _, target in KINDS:
                timing = timings[name]
                share = timing.ratio_of(read)
                rows.append(_row(dtype, threads, name, data.nbytes, timing, share, target))
            name = "new run against residues k=15"
            share = timings[name].ratio_of(read)
            rows.append(_row(dtype, threads, name, data.nbytes, timings[name], share, AGAINST))
        del data
    return {"data_bytes": data_bytes, "chunk_bytes": 4096, "rows": rows}


def _cases(data: np.ndarray[Any, Any], dtype: str, threads: int) -> dict[str, Callable[[], object]]:
    def builder(bound: dict[str, Any]) -> Callable[[], object]:
        parameters = _core.TreeParameters(dtype, **bound)
        return lambda: _core.build_tree(parameters, data, threads=threads)

    cases: dict[str, Callable[[], object]] = {"read": lambda: _demo.read_pass(data, threads)}
    for name, bound, _ in KINDS:
        cases[name] = builder(bound)
    residues = _core.TreeParameters(dtype, atol=1e-4, residue_levels=15)
    golden = _core.build_tree(residues, data, threads=threads)
    cases["new run against residues k=15"] = lambda: _core.build_tree(
        residues, data, golden=golden, threads=threads
    )
    return cases


def _row(
    dtype: str,
    threads: int,
    name: str,
    data_bytes: int,
    timing: Timing,
    share: float | None,
    target: float | None,
) -> dict[str, Any]:
    return {
        "dtype": dtype,
        "threads": threads,
        "case": name,
        "gb_per_second": data_bytes / timing.median / 1e9,
        "share_of_read_bandwidth": share,
        "target_share": target,
        **timing.as_json(),
    }


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["dtype", "threads", "case", "GB/s", "of read", "target", ""]]
    for row in result["rows"]:
        share, target = row["share_of_read_bandwidth"], row["target_share"]
        verdict = "" if target is None else ("ok" if share >= target else "BELOW TARGET")
        rows.append(
            [
                row["dtype"][1:],
                str(row["threads"]),
                row["case"],
                f"{row['gb_per_second']:.2f}",
                "" if share is None else f"{share:.2f}",
                "" if target is None else f"{target:.2f}",
                verdict,
            ]
        )
    return rows
