"""Peak memory of comparisons that grow: in the size of files, in variables, in checkpoints.

    python -m benchmarks.memory             at full size: 142 GiB of sparse files, 89,600 variables
    python -m benchmarks.memory --quick     the same at small sizes, to see that it works

Peaks are those of the command's own process and its children, by benchmarks/used.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.used import used

_ATOL = 1e-6


class Row(NamedTuple):
    work: str
    exit_code: int
    peak_mb: int
    json_mb: float | None = None


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes; the numbers mean little")
    parser.add_argument("--large-gib", type=float, default=64, help="the file for workers")
    options = parser.parse_args()
    quick, large_gib = options.quick, options.large_gib
    print("| work | exit code | peak MB | JSON MB |\n|---|---|---|---|")
    rows = [
        *(_files(gib / 64 if quick else gib) for gib in (1, 2, 4)),
        _files(1.0625 if quick else large_gib, "--executor=process", "--threads=1"),
        _datasets(40 if quick else 4000),
        *_history(*((4, 3) if quick else (200, 64)), differs_everywhere=False),
        *_history(*((4, 3) if quick else (200, 64)), differs_everywhere=True),
    ]
    return max(row.exit_code > 1 for row in rows)


def _measured(work: str, folder: Path, *arguments: str) -> Row:
    pair = ("a", "b") if (folder / "a").is_dir() else _pair(folder)
    words = [sys.executable, "-m", "ciwrap", "compare", *pair, f"--atol={_ATOL}", *arguments]
    done = used(words, cwd=folder, code=None)
    document = folder / "o.json"
    size = document.stat().st_size / 1e6 if document.exists() else None
    row = Row(work, done.exit_code, done.peak >> 20, size)
    told = "" if size is None else f"{size:.1f}"
    print(f"| {work} | {row.exit_code} | {row.peak_mb} | {told} |", flush=True)
    return row


def _pair(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.stem in ("a", "b"))


def _files(gib: float, *arguments: str) -> Row:
    """Two files of zeros, which take no disk. With workers, the peak is that of the largest."""
    with tempfile.TemporaryDirectory() as name:
        folder, shape = Path(name), (int(gib * (1 << 27)),)
        for stem in "ab":
            np.lib.format.open_memmap(folder / f"{stem}.npy", "w+", "f8", shape)
        words = " ".join([f"two .npy files of {gib:g} GiB", *arguments])
        return _measured(words, folder, *arguments)


def _datasets(count: int) -> Row:
    """Small compressed datasets of two HDF5 files, of which one differs."""
    import h5py

    with tempfile.TemporaryDirectory() as name:
        for stem in "ab":
            with h5py.File(Path(name) / f"{stem}.h5", "w") as file:
                for number in range(count):
                    values = np.arange(200.0) + (stem == "b" and number == 7)
                    file.create_dataset(f"v{number}", data=values, chunks=True, compression="gzip")
        return _measured(f"{count:,} datasets of 200 values in one HDF5 file", Path(name))


def _history(iterations: int, ranks: int, *, differs_everywhere: bool) -> list[Row]:
    """Runs of seven variables; all differ, or three of them on one rank in eight from the middle
    on.
    """
    names = "rho u v w p e t"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for run in "ab":
            for iteration in range(iterations):
                for rank in range(ranks):
                    path = folder / run / f"iter_{iteration}" / f"rank_{rank}.npz"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    moved = run == "b" and iteration >= iterations // 2
                    np.savez(
                        path,
                        **{
                            one: np.arange(16.0)
                            + (run == "b" if differs_everywhere else moved and at < 3)
                            * (differs_everywhere or rank % 8 == 0)
                            * (at + 1)
                            for at, one in enumerate(names.split())
                        },
                    )
        which = "all differ" if differs_everywhere else "few differ"
        work = f"{iterations} iterations x {ranks} ranks x 7 variables, {which}"
        layout = "--layout=iter_{iteration:d}/rank_{rank:d}.npz"
        return [
            _measured(f"{work}, {words}", folder, layout, *more)
            for words, more in (
                ("no JSON", ()),
                *(
                    (f"--json-detail {detail}", ("--json=o.json", f"--json-detail={detail}"))
                    for detail in (
                        "summary",
                        "differing",
                        *(() if differs_everywhere else ("all",)),
                    )
                ),
            )
        ]


if __name__ == "__main__":
    sys.exit(main())
