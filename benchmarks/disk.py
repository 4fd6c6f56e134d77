"""The disk that is measured on: its cache emptied, the bytes that came from it, its bandwidth."""

from __future__ import annotations

import mmap
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCK = 4 << 20


def settle_to_disk(folder: Path) -> None:
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def fill_cache(folder: Path) -> None:
    """Reads all files through the page cache; ours are read past it, and leave nothing there."""
    buffer = bytearray(_BLOCK)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def disk_bytes() -> int:
    text = Path("/proc/self/io").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("read_bytes")).split()[1])


def _aligned_reader(path: Path) -> int:
    """Reads a file past the cache, one block after the other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        buffer = mmap.mmap(-1, _BLOCK)  # page-aligned
        at = 0
        while count := os.preadv(descriptor, [buffer], at):
            at += count
            if count % 4096:
                break
        return at
    finally:
        os.close(descriptor)


def bandwidth(paths: Iterable[Path]) -> float:
    """Bytes a second of reading whole files past the cache, four at a time; a GiB of them."""
    files, total = [], 0
    for path in paths:
        files.append(path)
        total += path.stat().st_size
        if total >= 1 << 30:
            break
    started = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(_aligned_reader, files))
    return total / (time.perf_counter() - started)
