"""Chunk sizes against error bounds: what is marked, how much of it for nothing, and how fast.

    python -m benchmarks.chunk_sizes [--mib 28] [--folder DIR] [--json FILE] [--svg FILE]

The questions of the paper's figures 5 to 7, on data like its own: seven float32 variables of a
particle code (x, y, z, vx, vy, vz, phi). The second run differs from the first by noise whose size
changes from place to place, from 1e-9 to 1e-3. With residues, the second run is rounded relative to
the first. Files are in the page cache; the throughput is that of both stages of the comparison over
the data of both runs, trees not counted. --svg needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ciwrap import _core

NAMES = ("x", "y", "z", "vx", "vy", "vz", "phi")
CHUNKS = tuple(1 << power for power in range(12, 20))
BOUNDS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
LEVELS = (1, 15)
_REPEATS = 5
_PLACE = 1 << 13  # elements that share one size of noise


def make(name: str, elements: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(list(name.encode()))
    scale = {"x": 256, "y": 256, "z": 256, "phi": 20}.get(name, 600)
    first = (rng.random(elements) - (0 if scale == 256 else 0.5)) * scale
    places = -(-elements // _PLACE)
    size = np.repeat(10.0 ** rng.uniform(-9, -3, places), _PLACE)[:elements]
    second = first + rng.uniform(-1, 1, elements) * size
    return first.astype(np.float32), second.astype(np.float32)


def measure_one(
    pairs: dict[str, tuple[Path, Path]], data: dict[str, Any], bound: float, chunk: int, k: int
) -> dict[str, Any]:
    jobs, marked, false, chunks = [], 0, 0, 0
    diff_seconds = 0.0
    for name, (one, two) in pairs.items():
        first, second = data[name]
        parameters = _core.TreeParameters("<f4", atol=bound, chunk_bytes=chunk, residue_levels=k)
        golden = _core.build_tree(parameters, first)
        new = _core.build_tree(parameters, second, golden=golden if k > 1 else None)
        started = time.perf_counter()
        leaves = _core.diff_trees(golden, new)
        diff_seconds += time.perf_counter() - started
        differs = np.abs(second.astype(np.float64) - first) > bound
        per_chunk = chunk // 4
        really = np.add.reduceat(differs, np.arange(0, differs.size, per_chunk)) > 0
        if not set(np.flatnonzero(really)) <= set(leaves.tolist()):
            raise AssertionError("a miss")
        marked += leaves.size
        false += leaves.size - int(really.sum())
        chunks += golden.leaf_count
        jobs.append((parameters, str(one), 128, str(two), 128, first.nbytes, leaves))
    times = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        session = _core.StreamSession()
        for job in jobs:
            session.add(*job)
        report = session.close()
        times.append(time.perf_counter() - started)
    seconds = diff_seconds + statistics.median(times)
    total = sum(2 * first.nbytes for first, _ in data.values())
    return {
        "bound": bound,
        "chunk_bytes": chunk,
        "residue_levels": k,
        "marked_share": marked / chunks,
        "false_share": false / chunks,
        "bytes_read": report["bytes_read"],
        "bytes_per_second": total / seconds,
    }


def run(folder: Path, mib: float) -> list[dict[str, Any]]:
    elements = int(mib * (1 << 20)) // 4
    data, pairs = {}, {}
    for name in NAMES:
        data[name] = make(name, elements)
        pairs[name] = (folder / f"{name}.a.npy", folder / f"{name}.b.npy")
        for path, values in zip(pairs[name], data[name], strict=True):
            np.save(path, values)
    return [
        measure_one(pairs, data, bound, chunk, k)
        for bound in BOUNDS
        for chunk in CHUNKS
        for k in LEVELS
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Share of the data marked, in per cent, and in brackets the part for nothing."""
    lines = []
    for k in LEVELS:
        words = "plain trees" if k == 1 else f"relative to residues, k = {k}"
        lines += [f"Marked (for nothing), % of the chunks: {words}", ""]
        lines.append("| chunk | " + " | ".join(f"{bound:g}" for bound in BOUNDS) + " |")
        lines.append("|---" * (len(BOUNDS) + 1) + "|")
        for chunk in CHUNKS:
            cells = []
            for bound in BOUNDS:
                (one,) = _rows(rows, bound, chunk, k)
                cells.append(f"{100 * one['marked_share']:.1f} ({100 * one['false_share']:.1f})")
            lines.append(f"| {chunk // 1024} KiB | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _rows(rows: list[dict[str, Any]], bound: float, chunk: int, k: int) -> list[dict[str, Any]]:
    return [
        one
        for one in rows
        if (one["bound"], one["chunk_bytes"], one["residue_levels"]) == (bound, chunk, k)
    ]


_COLOURS = ("#0b4f6c", "#01887d", "#7a9e1f", "#d98e04", "#b3261e")


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Three panels, one line for each bound, dashed without residues. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "ciwrap", "font.size": 9}
    from matplotlib import pyplot

    panels = (
        ("share marked, %", lambda one: 100 * one["marked_share"]),
        ("marked for nothing, %", lambda one: 100 * one["false_share"]),
        ("throughput, GB/s", lambda one: one["bytes_per_second"] / 1e9),
    )
    figure, axes = pyplot.subplots(1, len(panels), figsize=(12, 4), layout="constrained")
    kib = [chunk // 1024 for chunk in CHUNKS]
    for axis, (title, value) in zip(axes, panels, strict=True):
        for bound, colour in zip(BOUNDS, _COLOURS, strict=True):
            for k in LEVELS:
                values = [value(_rows(rows, bound, chunk, k)[0]) for chunk in CHUNKS]
                label = f"bound {bound:g}" if k > 1 else None
                style = "-" if k > 1 else "--"
                axis.plot(kib, values, style, marker=".", color=colour, label=label)
        axis.set_title(title)
        axis.set_xlabel("chunk, KiB")
        axis.set_xscale("log", base=2)
        axis.set_xticks(kib, [str(one) for one in kib])
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_yscale("log")
    axes[-1].set_yticks((2, 5, 10, 20, 50, 100), ("2", "5", "10", "20", "50", "100"))
    axes[-1].minorticks_off()
    axes[0].plot([], [], "-", color="#666", label="relative to residues")
    axes[0].plot([], [], "--", color="#666", label="plain trees")
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower center", ncols=len(BOUNDS) + 2, frameon=False)
    figure.savefig(target, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--mib", type=float, default=28.0, help="of each variable")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        rows = run(folder, options.mib)
    finally:
        shutil.rmtree(folder)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.svg:
        draw(rows, options.svg)
    sys.stdout.write(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
