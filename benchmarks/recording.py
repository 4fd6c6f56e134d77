"""What recording costs a solver: heat conduction in C, with and without a journal, run in turn.

The solver's own time and that of the library's thread are told as CPU time of the whole process, so
that a busy machine changes ratios little; memory is the largest resident set of the process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from ciwrap.recording.native import include_folder, library_path

# A plate of n x n float64 in double buffers; a checkpoint every `every` steps.
SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#include <ciwrap/record.h>
int main(int argc, char** argv) {
    int n = atoi(argv[1]), steps = atoi(argv[2]), every = atoi(argv[3]), i, j, step;
    size_t row = (size_t)n + 2;
    double* now = calloc(row * row, sizeof(double));
    double* next = calloc(row * row, sizeof(double));
    ciwrap_run* run = ciwrap_open("heat", 0, 1);
    ciwrap_array plate = {sizeof plate, CIWRAP_HOST, "t", "f8", now + row + 1, 2, 0,
                          {n, n}, {n + 2, 1}, 1e-9, -1};
    int64_t id = ciwrap_add(run, &plate);
    (void)argc;
    for (i = 0; i < n + 2; ++i)
        for (j = 0; j < n + 2; ++j)
            now[i * row + j] = next[i * row + j] = sin(0.01 * i) * cos(0.02 * j);
    for (step = 1; step <= steps; ++step) {
        for (i = 1; i <= n; ++i)
            for (j = 1; j <= n; ++j) {
                const double* at = now + i * row + j;
                double sum = at[-1] + at[1] + at[-(long)row] + at[row];
                next[i * row + j] = *at + 0.2 * (sum - 4 * *at);
            }
        double* swap = now;
        now = next;
        next = swap;
        ciwrap_move(run, id, now + row + 1);
        if (step % every == 0)
            ciwrap_checkpoint(run, step, CIWRAP_IN_PLACE);
    }
    return ciwrap_close(run) ? 1 : 0;
}
"""
RESIDUES = "ciwrap-bounds 3\n*\t*\t-\t-\t-\t-\t15\n"


def run(*, size: int, steps: int, every: int, repeats: int) -> dict[str, Any]:
    """CPU seconds of each way of running, `repeats` times in turn. size: of the plate, squared."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {"rows": [], "why": "there is no C compiler"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "heat.c").write_text(SOURCE)
        (folder / "bounds.txt").write_text(RESIDUES)
        words = [compiler, "-O2", f"-I{include_folder()}", "heat.c", "-o", "heat", "-lm", "-ldl"]
        subprocess.run(words, cwd=folder, check=True)
        ways = _ways(folder)
        arguments = [str(size), str(steps), str(every)]
        _run(folder, arguments, ways["with residues"], "reference")
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        peaks: dict[str, list[int]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, env in ways.items():
                spent, peak = _run(folder, arguments, env, "run")
                seconds[way].append(spent)
                peaks[way].append(peak)
        written = sum(one.stat().st_size for one in (folder / "reference").rglob("*.cwr"))
    base, lowest = median(seconds["not recorded"]), median(peaks["not recorded"])
    checkpoints = steps // every
    data = 8 * size * size * checkpoints
    return {
        "size": size,
        "steps": steps,
        "checkpoints": checkpoints,
        "data_bytes": data,
        "journal_bytes_with_residues": written,
        "repeats": repeats,
        "rows": [
            {
                "way": way,
                "cpu_seconds": some,
                "overhead": median(some) / base - 1,
                "seconds_per_gib": (median(some) - base) / (data / (1 << 30)),
                "bytes_more": int(median(peaks[way]) - lowest),
            }
            for way, some in seconds.items()
        ],
    }


def _ways(folder: Path) -> dict[str, dict[str, str]]:
    record = {
        "CIWRAP_RECORD": str(folder / "run"),
        "CIWRAP_RECORD_LIBRARY": str(library_path()),
        "CIWRAP_RECORD_BOUNDS": "",
    }
    residues = {**record, "CIWRAP_RECORD_BOUNDS": str(folder / "bounds.txt")}
    against = {**record, "CIWRAP_RECORD_AGAINST": str(folder / "reference")}
    return {
        "not recorded": {},
        "digests alone": record,
        "with residues": residues,
        "against a run": against,
    }


def _run(folder: Path, arguments: list[str], env: dict[str, str], name: str) -> tuple[float, int]:
    """CPU seconds of one run of the solver, all of its threads, and its largest resident set."""
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    told = {**os.environ, **env}
    if env:
        told["CIWRAP_RECORD"] = str(target)
    process = subprocess.Popen([folder / "heat", *arguments], env=told)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, "heat")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def table(result: dict[str, Any]) -> list[list[str]]:
    lines = [
        [
            "",
            "CPU s, median",
            "least to greatest",
            "overhead",
            "CPU s for a GiB recorded",
            "MiB more",
        ]
    ]
    for row in result["rows"]:
        some = row["cpu_seconds"]
        lines.append(
            [
                row["way"],
                f"{median(some):.2f}",
                f"{min(some):.2f} to {max(some):.2f}",
                f"{100 * row['overhead']:+.1f} %",
                f"{row['seconds_per_gib']:.2f}",
                f"{row['bytes_more'] / (1 << 20):.1f}",
            ]
        )
    return lines
