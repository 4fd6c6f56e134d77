"""Measures how much the time to write and read a small file varies, by threads, size and record.

    python -m benchmarks.variability_io docs/benchmarks/io-times.csv

4 numbers of threads x 5 sizes x 4 records = 80 configurations, each run 30 times. All 2400 runs are
in one random order, so that a slow minute meets all configurations alike. That is some ten seconds.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path

THREADS = (1, 2, 4, 8)
SIZES = (16, 64, 256, 1024, 4096)  # KiB in all
RECORDS = (1, 4, 16, 64)  # KiB per call
REPEATS = 30
SEED = 1


def transfer(folder: Path, number: int, size: int, record: int) -> None:
    """One thread's share: writes a file record by record, reads it back, and removes it."""
    data = bytes(record << 10)
    path = folder / str(number)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        for _ in range(max(1, size // record)):
            os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        while os.read(descriptor, record << 10):
            pass
    finally:
        os.close(descriptor)
        path.unlink()


def seconds_of(folder: Path, threads: int, size: int, record: int) -> float:
    """One run: all threads begin together, and the last one to end counts."""
    share = max(record, size // threads)
    workers = [
        threading.Thread(target=transfer, args=(folder, number, share, record))
        for number in range(threads)
    ]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    runs = list(product(THREADS, SIZES, RECORDS)) * options.repeats
    random.Random(SEED).shuffle(runs)
    with tempfile.TemporaryDirectory() as name:
        for run in runs[:50]:  # not counted: the first ones pay for what is loaded
            seconds_of(Path(name), *run)
        rows = [(*run, f"{seconds_of(Path(name), *run):.3e}") for run in runs]
    rows.sort(key=lambda row: row[:3])
    with options.table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("threads", "size_kib", "record_kib", "seconds"))
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
