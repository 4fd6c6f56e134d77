"""How long a checkpoint holds a program up: the CPU time of its thread, as multiples of a memcpy of
the same bytes, the best of some runs of both in turn.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ciwrap.recording.native import include_folder, library_path

# Arguments: rows, columns, repeats, layout (plain, ghosts, strided, transposed). Prints the seconds
# of a memcpy and of a checkpoint.
SOURCE = r"""
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ciwrap/record.h>
#ifndef REAL
#define REAL double
#define TYPE "f8"
#endif
static double now(void) {
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec + 1e-9 * spent.tv_nsec;
}
int main(int count, char** words) {
    long rows = atol(words[1]), columns = atol(words[2]), repeats = atol(words[3]), i, n;
    const char* layout = words[4];
    long ghosts = strcmp(layout, "ghosts") ? 0 : 2, step = strcmp(layout, "strided") ? 1 : 2;
    long row = step * columns + 2 * ghosts, size = (rows + 2 * ghosts) * row;
    REAL* data = malloc(size * sizeof(REAL));
    REAL* copy = malloc(rows * columns * sizeof(REAL));
    double best[2] = {1e9, 1e9};
    ciwrap_run* run = ciwrap_open("in place", 0, 1);
    ciwrap_array told = {sizeof told, CIWRAP_HOST, "t", TYPE, data + ghosts * row + ghosts, 2, 0,
                         {rows, columns}, {row, step}, 1e-6, -1};
    (void)count;
    if (!strcmp(layout, "transposed")) {
        told.strides[0] = 1;
        told.strides[1] = rows;
    }
    for (i = 0; i < size; ++i) data[i] = (REAL)sin(1e-3 * i);
    ciwrap_add(run, &told);
    ciwrap_checkpoint(run, 0, CIWRAP_IN_PLACE); /* memory is touched for the first time */
    for (n = 1; n <= repeats; ++n) {
        double begun = now(), copied;
        memcpy(copy, data, rows * columns * sizeof(REAL));
        copied = now();
        __asm__ volatile("" : : "r"(copy) : "memory");
        if (n > 1 && copied - begun < best[0]) best[0] = copied - begun;
        begun = now();
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        copied = now();
        if (copied - begun < best[1]) best[1] = copied - begun;
    }
    printf("%.9f %.9f\n", best[0], best[1]);
    return ciwrap_close(run) ? 1 : 0;
}
"""
# Prints the nanoseconds that a call takes of a program that is not recorded, loop and all.
OFF_SOURCE = r"""
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <ciwrap/record.h>
int main(void) {
    struct timespec begun, ended;
    long n, calls = 50000000;
    ciwrap_run* run = ciwrap_open("off", 0, 1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    for (n = 0; n < calls; ++n) {
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        __asm__ volatile("" : "+r"(run) : : "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    printf("%.3f\n", (1e9 * (double)(ended.tv_sec - begun.tv_sec) +
                      (double)(ended.tv_nsec - begun.tv_nsec)) / calls);
    return 0;
}
"""
RESIDUES = "ciwrap-bounds 3\n*\t*\t-\t-\t-\t-\t15\n"
TYPES: tuple[tuple[str, list[str]], ...] = (
    ("float64", []),
    ("float32", ["-DREAL=float", '-DTYPE="f4"']),
)
LAYOUTS = ("plain", "ghosts", "strided", "transposed")


def run(*, rows: int, columns: int, repeats: int) -> dict[str, Any]:
    """Ratios for arrays of rows x columns numbers: by type, layout and what is recorded."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {"rows": [], "why": "there is no C compiler"}
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(SOURCE)
        (folder / "bounds.txt").write_text(RESIDUES)
        off = _nanoseconds_off(compiler, folder)
        for dtype, more in TYPES:
            words = [compiler, "-O2", *more, f"-I{include_folder()}", "main.c", "-o", dtype]
            subprocess.run([*words, "-lm", "-ldl"], cwd=folder, check=True)
            for layout in LAYOUTS if dtype == "float64" else LAYOUTS[:1]:
                size = [str(rows), str(columns), str(repeats + 1), layout]
                for way, env in _ways(folder).items():
                    copied, hashed = _seconds([str(folder / dtype), *size], folder, env)
                    ratio = hashed / copied
                    found.append({"dtype": dtype, "layout": layout, "way": way, "ratio": ratio})
    return {
        "array_rows": rows,
        "array_columns": columns,
        "repeats": repeats,
        "nanoseconds_off": off,
        "rows": found,
    }


def beside(
    library: str, include: str, *, rows: int, columns: int, repeats: int, turns: int
) -> list[dict[str, Any]]:
    """How many times as long a checkpoint takes as with another library, both in turn; the least of
    each. include: the folder of that one's headers.
    """
    compiler = shutil.which("cc")
    assert compiler is not None, "there is no C compiler"
    least: dict[tuple[str, str, str], float] = {}
    libraries = {"this": str(library_path()), "other": library}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(SOURCE)
        (folder / "bounds.txt").write_text(RESIDUES)
        for dtype, more in TYPES:
            words = [compiler, "-O2", *more, f"-I{include}", "main.c", "-o", dtype]
            subprocess.run([*words, "-lm", "-ldl"], cwd=folder, check=True)
            size = [str(rows), str(columns), str(repeats + 1), "plain"]
            for turn in range(turns):
                for which in sorted(libraries, reverse=turn % 2 == 1):
                    for way, env in _ways(folder).items():
                        own = {**env, "CIWRAP_RECORD_LIBRARY": libraries[which]}
                        copied, hashed = _seconds([str(folder / dtype), *size], folder, own)
                        key = (dtype, way, which)
                        least[key] = min(least.get(key, hashed / copied), hashed / copied)
    return [
        {"dtype": dtype, "way": way, "ratio": ratio / least[dtype, way, "other"], "memcpys": ratio}
        for (dtype, way, which), ratio in least.items()
        if which == "this"
    ]


def _nanoseconds_off(compiler: str, folder: Path) -> float:
    (folder / "off.c").write_text(OFF_SOURCE)
    words = [compiler, "-O2", f"-I{include_folder()}", "off.c", "-o", "off", "-ldl"]
    subprocess.run(words, cwd=folder, check=True)
    env = {name: text for name, text in os.environ.items() if not name.startswith("CIWRAP_")}
    done = subprocess.run([folder / "off"], env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _ways(folder: Path) -> dict[str, dict[str, str]]:
    """What is recorded; the run with residues is what the last one is held against."""
    fine = {"CIWRAP_RECORD_BOUNDS": str(folder / "bounds.txt")}
    return {
        "digests": {},
        "residues": {**fine, "TARGET": "reference"},
        "against a run": {"CIWRAP_RECORD_AGAINST": str(folder / "reference")},
    }


def _seconds(words: list[str], folder: Path, env: dict[str, str]) -> tuple[float, float]:
    target = folder / env.get("TARGET", "run")
    shutil.rmtree(target, ignore_errors=True)
    own = {"CIWRAP_RECORD_LIBRARY": str(library_path()), "CIWRAP_RECORD_BOUNDS": ""}
    told = {**os.environ, **own, **env, "CIWRAP_RECORD": str(target)}
    done = subprocess.run(words, env=told, check=True, capture_output=True, text=True)
    copied, hashed = done.stdout.split()
    return float(copied), float(hashed)


def table(result: dict[str, Any]) -> list[list[str]]:
    lines = [["", "digests", "with residues", "against a run"]]
    by_array: dict[tuple[str, str], list[str]] = {}
    for row in result["rows"]:
        key = (row["dtype"], row["layout"])
        by_array.setdefault(key, []).append(f"{row['ratio']:.2f}")
    lines += [[f"{dtype}, {layout}", *some] for (dtype, layout), some in by_array.items()]
    if result["rows"]:
        off = f"{result['nanoseconds_off']:.2f} ns"
        lines.append(["a call where nothing is recorded", off, "", ""])
    return lines
