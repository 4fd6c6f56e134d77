"""Measures one comparison of two runs by one and two MPI processes, beside the same without MPI.

    python -m benchmarks.mpi_scaling --folder /scratch [--gib 1] [--repeats 5] [--json FILE]

Two runs of 10 iterations and 2 ranks, seven float32 variables each, that differ by noise within the
bound; no captures, so that all data of both are read. Every process has one thread. The ways take
turns; each is timed with a cold page cache (POSIX_FADV_DONTNEED on every file) and with a warm one:
from the start of the command to its end, and what the report says the comparison took. Needs
--gib x 2 of disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import disk, history_runs, measure


def command(run: Path, target: Path) -> list[str]:
    options = [f"--atol={history_runs.ATOL}", "--no-captures", "--threads=1", "--json", str(target)]
    first, second = str(run / "A"), str(run / "B")
    return [sys.executable, "-m", "ciwrap", "compare", first, second, *options]


def ways(run: Path, target: Path, mpiexec: list[str], sizes: list[int]) -> dict[str, list[str]]:
    plain = command(run, target)
    found = {"without MPI": plain}
    for size in sizes:
        found[f"{size} MPI processes"] = [*mpiexec, "-n", str(size), *plain, "--executor", "mpi"]
    return found


def timed(arguments: list[str], target: Path) -> tuple[float, float]:
    """Seconds of the command, and seconds of the comparison in it."""
    target.unlink(missing_ok=True)
    started = time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return seconds, json.loads(target.read_text())["checks"][0]["seconds"]


def measure_all(
    run: Path, mpiexec: list[str], sizes: list[int], repeats: int
) -> list[dict[str, Any]]:
    target = run / "result.json"
    every_way = ways(run, target, mpiexec, sizes)
    seconds: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(repeats + 1):
        for name, arguments in every_way.items():
            for cache in ("cold", "warm"):
                disk.settle_to_disk(run) if cache == "cold" else disk.fill_cache(run)
                whole, inner = timed(arguments, target)
                if number:  # the first round fills caches of programs and libraries
                    seconds.setdefault((name, cache), []).append((whole, inner))
    data_bytes = sum(path.stat().st_size for path in run.rglob("*.npy"))
    rows = []
    for (name, cache), times in seconds.items():
        medians = [statistics.median(column) for column in zip(*times, strict=True)]
        rows.append(
            {
                "way": name,
                "cache": cache,
                "command_seconds": medians[0],
                "comparison_seconds": medians[1],
                "all_seconds": times,
                "gib_per_second": data_bytes / medians[1] / 2**30,
            }
        )
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """Ratios are to one MPI process with the same cache."""
    base = {r["cache"]: r["comparison_seconds"] for r in rows if r["way"].startswith("1 MPI")}
    lines = [
        "| way | page cache | command, s | comparison, s | GiB/s | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row["cache"]):
        ratio = base.get(row["cache"], float("nan")) / row["comparison_seconds"]
        lines.append(
            f"| {row['way']} | {row['cache']} | {row['command_seconds']:.2f}"
            f" | {row['comparison_seconds']:.2f} | {row['gib_per_second']:.2f} | {ratio:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where there is room")
    parser.add_argument("--gib", type=float, default=1.0, help="of each run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--mpiexec", default=str(Path(sys.executable).parent / "mpiexec"), help="with its options"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    run = options.folder / "mpi-scaling"
    shutil.rmtree(run, ignore_errors=True)
    elements = history_runs.elements_of(options.gib)
    try:
        history_runs.write_first(run / "A", elements)
        history_runs.write_second(run / "A", run / "B", history_runs.noise)
        rows = measure_all(run, options.mpiexec.split(), options.processes, options.repeats)
    finally:
        shutil.rmtree(run, ignore_errors=True)
    print(markdown(rows), end="")
    if options.json is not None:
        document = {"machine": measure.machine(), "gib": options.gib, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
