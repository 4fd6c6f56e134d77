"""Where a user waits: `ciwrap` beside what else would be run for the same, in one table.

    python -m benchmarks.peers [--rounds 5] [--only TEXT] [--iterations 300 600 1200] [--quick]

Each line is a process of its own, in turns with its peer; medians of processor time (user and
system, children too) and of wall time, and the medians of the ratios within a round: above 1,
ciwrap is ahead. What is not installed is left out. Then by which power of the number of iterations
processor time and memory of a comparison grow, of runs of many small files.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.growth import exponent
from benchmarks.measure import machine
from benchmarks.used import Used, in_turns, median_ratio, used

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEED = 20261129
CIWRAP = (sys.executable, "-m", "ciwrap")
COMPARE = (*CIWRAP, "compare")


def _python(code: str, *names: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *names)


class Case(NamedTuple):
    """prepare: writes the inputs of a size into a folder. words: what is measured there. peers: the
    commands beside it. before: commands that prepare, too. needs: modules or programs of the peers.
    """

    name: str
    size: int
    prepare: Callable[[Path, int], None]
    words: tuple[str, ...]
    peers: dict[str, tuple[str, ...]]
    before: tuple[tuple[str, ...], ...] = ()


# --- inputs ---------------------------------------------------------------------------------------


def _noise(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values, and others that differ from them within the bound."""
    random = np.random.default_rng(SEED)
    values = random.standard_normal(count)
    return values, values + random.uniform(-1e-7, 1e-7, count)


def npy(folder: Path, size: int) -> None:
    for name, values in zip("ab", _noise(size // 8), strict=True):
        np.save(folder / f"{name}.npy", values)


def _hdf5(folder: Path, size: int, **how: Any) -> None:
    import h5py

    for name, values in zip("ab", _noise(size // 8), strict=True):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file.create_dataset("x", data=values, **how)


def contiguous(folder: Path, size: int) -> None:
    _hdf5(folder, size)


def chunked(folder: Path, size: int) -> None:
    _hdf5(folder, size, chunks=(1 << 13,), compression="gzip", compression_opts=1)


def shuffled(folder: Path, size: int) -> None:
    _hdf5(folder, size, chunks=(1 << 16,), compression="gzip", compression_opts=1, shuffle=True)


def table(folder: Path, rows: int) -> None:
    values = np.random.default_rng(SEED).standard_normal((rows, 8))
    for name, factor in (("a", 1.0), ("b", 1 + 1e-9)):
        path = folder / f"{name}.csv"
        np.savetxt(path, values * factor, "%.16e", ",", header="a,b,c,d,e,f,g,h", comments="")


def many_files(folder: Path, iterations: int) -> None:
    for run in "AB":
        for iteration in range(iterations):
            place = folder / run / f"iter_{iteration:04}"
            place.mkdir(parents=True)
            for name in "abcd":
                np.save(place / f"{name}.npy", np.random.default_rng(iteration).normal(size=1000))


def one_array(folder: Path, elements: int) -> None:
    np.save(folder / "one.npy", np.linspace(0, 1, elements))
    (folder / "ciwrap.yaml").write_text("checks:\n  one:\n    outputs: one.npy\n    atol: 1e-6\n")


def nothing(folder: Path, _: int) -> None:
    """What starts and ends needs no input."""


def netcdf(folder: Path, variables: int) -> None:
    import h5netcdf

    values = np.linspace(0, 1, 50)
    for name in "ab":
        with h5netcdf.File(folder / f"{name}.nc", "w") as file:
            file.dimensions = {"x": 50}
            for number in range(variables):
                file.create_variable(f"v{number}", ("x",), data=values + number)


def ranks(folder: Path, iterations: int) -> None:
    """Two runs of 32 ranks and 5 variables of 200 values, a file each."""
    for iteration in range(iterations):
        values = np.random.default_rng(iteration).normal(size=(160, 200))
        place = folder / "A" / f"iter_{iteration:04}"
        for rank in range(32):
            inner = place / f"rank_{rank}"
            inner.mkdir(parents=True)
            for number, name in enumerate("abcde"):
                np.save(inner / f"{name}.npy", values[5 * rank + number])
    shutil.copytree(folder / "A", folder / "B")


# --- peers ----------------------------------------------------------------------------------------

_ALLCLOSE = "import sys; import numpy as np; from pathlib import Path; a, b = sys.argv[1:]; "
NUMPY = _ALLCLOSE + "assert np.allclose(np.load(a), np.load(b), rtol=0, atol=1e-6)"
NUMPY_BLOCKS = (
    _ALLCLOSE + "a, b = np.load(a, 'r'), np.load(b, 'r'); n = 1 << 17\n"
    "assert all(np.allclose(a[i:i+n], b[i:i+n], rtol=0, atol=1e-6) for i in range(0, a.size, n))"
)
NUMPY_FILES = _ALLCLOSE + (
    "assert all(np.allclose(np.load(one), np.load(Path(b, one.relative_to(a))), rtol=0, atol=1e-6)"
    " for one in sorted(Path(a).rglob('*.npy')))"
)
PANDAS = _ALLCLOSE + (
    "import pandas; assert np.allclose(pandas.read_csv(a), pandas.read_csv(b), rtol=1e-6)"
)
PYARROW = _ALLCLOSE + (
    "from pyarrow import csv; a, b = csv.read_csv(a), csv.read_csv(b)\n"
    "assert all(np.allclose(a[n], b[n], rtol=1e-6) for n in a.column_names)"
)
NETCDF4 = _ALLCLOSE + (
    "from netCDF4 import Dataset; a, b = Dataset(a), Dataset(b)\n"
    "assert all(np.allclose(one[:], b[n][:], rtol=0, atol=1e-6) for n, one in a.variables.items())"
)
# The least that can be done of two captured runs: a look at every file, and a digest of each
# capture.
LEAST = _ALLCLOSE + (
    "import hashlib, os\n"
    "for run in (a, b):\n"
    "    hashlib.sha256(Path(run, '.ciwrap.tree').read_bytes())\n"
    "    for folder, _, names in os.walk(run):\n"
    "        for name in names: os.stat(os.path.join(folder, name))"
)
IMPORT_NUMPY = {"import numpy": _python("import numpy")}
ATOL = ("--atol", "1e-6")
H5DIFF = {"h5diff": ("h5diff", "--delta=1e-6", "a.h5", "b.h5")}
CSV = ("a.csv", "b.csv")
CASES = (
    Case(
        "`.npy`, 256 MiB",
        256 << 20,
        npy,
        (*COMPARE, "a.npy", "b.npy", *ATOL),
        {
            "NumPy": _python(NUMPY, "a.npy", "b.npy"),
            "NumPy, by blocks": _python(NUMPY_BLOCKS, "a.npy", "b.npy"),
        },
    ),
    Case(
        "HDF5, contiguous, 128 MiB",
        128 << 20,
        contiguous,
        (*COMPARE, "a.h5", "b.h5", *ATOL),
        H5DIFF,
    ),
    Case("HDF5, gzip-1, 64 MiB", 64 << 20, chunked, (*COMPARE, "a.h5", "b.h5", *ATOL), H5DIFF),
    Case(
        "HDF5, shuffle and gzip-1, 64 MiB",
        64 << 20,
        shuffled,
        (*COMPARE, "a.h5", "b.h5", *ATOL),
        H5DIFF,
    ),
    Case(
        "CSV, 92 MB, 8 columns",
        500_000,
        table,
        (*COMPARE, *CSV, "--rtol", "1e-6"),
        {"pandas": _python(PANDAS, *CSV), "pyarrow": _python(PYARROW, *CSV)},
    ),
    Case(
        "the same as tokens",
        500_000,
        table,
        (*COMPARE, *CSV, "--rtol", "1e-6", "--format", "*.csv=tokens"),
        {"pandas": _python(PANDAS, *CSV)},
    ),
    Case(
        "2,000 `.npy` of 8 KB in 500 iterations",
        500,
        many_files,
        (*COMPARE, "A", "B", *ATOL),
        {"NumPy, a loop over files": _python(NUMPY_FILES, "A", "B")},
    ),
    Case(
        "the same, two captured runs",
        500,
        many_files,
        (*COMPARE, "A", "B"),
        {"stat and two digests": _python(LEAST, "A", "B")},
        ((*CIWRAP, "capture", "A", *ATOL), (*CIWRAP, "capture", "B", *ATOL)),
    ),
    Case(
        "`check` of one array of 20,000",
        20_000,
        one_array,
        (*CIWRAP, "check"),
        IMPORT_NUMPY,
        ((*CIWRAP, "accept", "--reason", "to measure"),),
    ),
    Case("`--version`", 0, nothing, (*CIWRAP, "--version"), {"python -c pass": _python("pass")}),
    Case(
        "NetCDF-4, 2,000 variables",
        2000,
        netcdf,
        (*COMPARE, "a.nc", "b.nc", *ATOL),
        {"netCDF4": _python(NETCDF4, "a.nc", "b.nc")},
    ),
)
GROWING = (300, 600, 1200)


# --- measuring ------------------------------------------------------------------------------------


def measure(case: Case, folder: Path, *, rounds: int, quick: bool) -> dict[str, Any]:
    case.prepare(folder, case.size // 64 if quick else case.size)
    for words in case.before:
        used(words, cwd=folder)
    commands = {"ciwrap": case.words}
    commands |= {name: words for name, words in case.peers.items() if _is_there(name, words)}
    found = in_turns(commands, cwd=folder, rounds=rounds)
    return {
        "case": case.name,
        "rows": [_row(name, ones, found["ciwrap"]) for name, ones in found.items()],
    }


def _row(name: str, found: list[Used], ours: list[Used]) -> dict[str, Any]:
    return {
        "command": name,
        "cpu_seconds": statistics.median(one.cpu_seconds for one in found),
        "wall_seconds": statistics.median(one.seconds for one in found),
        "peak_bytes": max(one.peak for one in found),
        "cpu_ratio": median_ratio(found, ours, "cpu_seconds"),
        "wall_ratio": median_ratio(found, ours, "seconds"),
    }


def _is_there(name: str, words: tuple[str, ...]) -> bool:
    if words[0] != sys.executable:
        return shutil.which(words[0]) is not None
    module = name.partition(",")[0]
    return module not in ("pandas", "pyarrow", "netCDF4") or find_spec(module) is not None


def growth(folder: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Processor time and memory of comparing runs of so many iterations, captured and not."""
    rows: dict[str, list[Used]] = {"compare": [], "compare, captured": []}
    for size in (8, *sizes):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            place = Path(name)
            ranks(place, size)
            rows["compare"].append(used((*COMPARE, "A", "B", *ATOL), cwd=place))
            for run in "AB":
                used((*CIWRAP, "capture", run, *ATOL), cwd=place)
            rows["compare, captured"].append(used((*COMPARE, "A", "B"), cwd=place))
    return {
        "sizes": [*sizes],
        "rows": [
            {
                "command": name,
                "cpu_seconds": [one.cpu_seconds for one in found[1:]],
                "peak_bytes": [one.peak for one in found[1:]],
                "time_exponent": exponent([8, *sizes], [one.cpu_seconds for one in found]),
                # Of the whole of it: what a user has to have.
                "memory_exponent": float(
                    np.log(found[-1].peak / found[1].peak) / np.log(sizes[-1] / sizes[0])
                ),
            }
            for name, found in rows.items()
        ],
    }


def case_lines(result: dict[str, Any]) -> list[str]:
    ours = result["rows"][0]
    return [
        f"| {result['case']} | {ours['wall_seconds']:.2f} | {ours['cpu_seconds']:.2f}"
        f" | {ours['peak_bytes'] >> 20} | {one['command']} | {one['wall_seconds']:.2f}"
        f" | {one['cpu_seconds']:.2f} | {one['peak_bytes'] >> 20}"
        f" | {one['wall_ratio']:.2f} | {one['cpu_ratio']:.2f} |"
        for one in result["rows"][1:]
    ]


def growth_lines(result: dict[str, Any]) -> list[str]:
    sizes = ", ".join(map(str, result["sizes"]))
    lines = [
        f"| command, of {sizes} iterations | CPU s | MiB | power of time | power of memory |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        times = ", ".join(f"{one:.1f}" for one in row["cpu_seconds"])
        peaks = ", ".join(str(one >> 20) for one in row["peak_bytes"])
        time = row["time_exponent"]
        shown = "lost in noise" if time is None else f"{time:.2f}"
        lines.append(
            f"| {row['command']} | {times} | {peaks} | {shown} | {row['memory_exponent']:.2f} |"
        )
    return lines


HEAD = (
    "| work | wall s | CPU s | MiB | beside | wall s | CPU s | MiB | wall ratio | CPU ratio |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their name")
    parser.add_argument("--quick", action="store_true", help="small sizes; the numbers mean little")
    parser.add_argument(
        "--iterations", type=int, nargs=3, default=GROWING, metavar="N", help="of growing runs"
    )
    parser.add_argument("--folder", type=Path, default=None, help="where to write the inputs")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles its modules
    document: dict[str, Any] = {"machine": machine(), "rows": []}
    print("\n".join(HEAD), flush=True)
    for case in CASES:
        if options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            found = measure(case, Path(name), rounds=options.rounds, quick=options.quick)
        document["rows"].append(found)
        print("\n".join(case_lines(found)), flush=True)
    if options.only in "growth":
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            sizes = [one // 25 for one in GROWING] if options.quick else options.iterations
            document["growth"] = growth(Path(name), sizes)
        print("\n" + "\n".join(growth_lines(document["growth"])))
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
