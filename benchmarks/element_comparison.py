"""Comparing elements of two arrays in memory, beside the bandwidth of reading them and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Timing, interleaved
from ciwrap import _core, _demo

if TYPE_CHECKING:
    from collections.abc import Callable

# dtype, bound, and what it is for
KINDS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("<f4", {"atol": 1e-3}, "float32, absolute"),
    ("<f4", {"atol": 1e-6, "rtol": 1e-3}, "float32, relative"),
    ("<f8", {"atol": 1e-3}, "float64, absolute"),
    (">f4", {"atol": 1e-3}, "float32, other byte order"),
    ("<f4", {"atol": 1e-3, "fill_values": [-999.0]}, "float32, fill value"),
    ("<f4", {"ulps": 4}, "float32, ULPs"),
    ("<f2", {"atol": 1e-3}, "float16, absolute"),
    ("<i4", {}, "int32, exact"),
    ("<i8", {}, "int64, exact"),
)


def run(*, data_bytes: int, repeats: int, thread_counts: tuple[int, ...]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for dtype, bound, name in KINDS:
        golden, new = _arrays(np.dtype(dtype), data_bytes)
        for threads in thread_counts:
            timings = interleaved(_cases(golden, new, dtype, bound, threads), repeats)
            for what in ("equal", "noise"):
                timing = timings[what]
                rows.append(
                    {
                        "case": name,
                        "threads": threads,
                        "data": what,
                        "gb_per_second": 2 * golden.nbytes / timing.median / 1e9,
                        "share_of_read_bandwidth": timing.ratio_of(timings["read"]),
                        "speed_beside_numpy": _beside(timing, timings.get("numpy")),
                        **timing.as_json(),
                    }
                )
    return {"data_bytes": data_bytes, "rows": rows}


def _beside(timing: Timing, numpy: Timing | None) -> float | None:
    return None if numpy is None else timing.ratio_of(numpy)


def _arrays(dtype: np.dtype[Any], data_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and the same moved by up to a tenth of the bound; whole ones: one in a thousand."""
    rng = np.random.default_rng(2)
    count = data_bytes // dtype.itemsize
    if dtype.kind == "f":
        golden = rng.standard_normal(count, dtype=np.float32).astype(dtype)
        moved = golden.astype(np.float32)
        moved += 1e-4 * (rng.random(count, dtype=np.float32) - np.float32(0.5))
        return golden, moved.astype(dtype)
    golden = rng.integers(0, 1000, count).astype(dtype)
    new = golden.copy()
    new[rng.integers(0, count, count // 1000)] += 1
    return golden, new


def _cases(
    golden: np.ndarray, new: np.ndarray, dtype: str, bound: dict[str, Any], threads: int
) -> dict[str, Callable[[], object]]:
    parameters = _core.TreeParameters(dtype, **bound)

    def compare(other: np.ndarray) -> Callable[[], object]:
        def work() -> object:
            comparer = _core.ElementComparer(parameters, threads=threads)
            comparer.update(golden.view(np.uint8), other.view(np.uint8), first_element=0)
            return comparer.finish()

        return work

    def read() -> None:
        _demo.read_pass(golden.view("u1"), threads)
        _demo.read_pass(new.view("u1"), threads)

    cases: dict[str, Callable[[], object]] = {
        "read": read,
        "equal": compare(golden.copy()),
        "noise": compare(new),
    }
    if "ulps" not in bound and "fill_values" not in bound and threads == 1:
        atol, rtol = bound.get("atol", 0.0), bound.get("rtol", 0.0)
        cases["numpy"] = lambda: np.isclose(new, golden, atol=atol, rtol=rtol)
    return cases


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["case", "threads", "data", "GB/s of both", "of read", "times numpy.isclose"]]
    for row in result["rows"]:
        numpy = row["speed_beside_numpy"]
        rows.append(
            [
                row["case"],
                str(row["threads"]),
                row["data"],
                f"{row['gb_per_second']:.2f}",
                f"{row['share_of_read_bandwidth']:.2f}",
                "" if numpy is None else f"{numpy:.0f}",
            ]
        )
    return rows
