"""Runs to measure whole histories with: particles in space, and other versions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ITERATIONS, RANKS = 10, 2
NAMES = ("x", "y", "z", "vx", "vy", "vz", "phi")
ATOL = 1e-3
CHUNK_BYTES = 64 * 1024


def elements_of(gib: float) -> int:
    """How many each variable has in a run of so many GiB."""
    return int(gib * (1 << 30)) // (ITERATIONS * RANKS * len(NAMES) * 4)


def files_of(run: Path) -> list[Path]:
    return sorted(run.rglob("*.npy"))


def write_first(run: Path, elements: int) -> None:
    """Positions in a box of 256, velocities of some hundreds, a potential: particles in space."""
    for iteration in range(ITERATIONS):
        for rank in range(RANKS):
            rng = np.random.default_rng([iteration, rank])
            folder = run / f"iter_{iteration:03d}" / f"rank_{rank}"
            folder.mkdir(parents=True)
            for name in NAMES:
                values = rng.random(elements, dtype=np.float32)
                scale = 256 if name in "xyz" else 600 if name != "phi" else 20
                values -= 0 if name in "xyz" else 0.5
                np.save(folder / f"{name}.npy", values * np.float32(scale))


def write_second(first: Path, second: Path, change: Callable[[np.ndarray, Any], None]) -> None:
    for number, path in enumerate(files_of(first)):
        values = np.load(path)
        change(values, np.random.default_rng(number))
        target = second / path.relative_to(first)
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, values)


def equal(values: np.ndarray, _: Any) -> None:
    pass


def one_percent_of_chunks(values: np.ndarray, rng: Any) -> None:
    per_chunk = CHUNK_BYTES // 4
    chunks = rng.choice(values.size // per_chunk, max(1, values.size // per_chunk // 100), False)
    values[chunks * per_chunk + rng.integers(0, per_chunk, chunks.size)] += 1


def noise(values: np.ndarray, rng: Any) -> None:
    moved = rng.random(values.size, dtype=np.float32)
    moved -= 0.5
    values += moved * np.float32(0.2 * ATOL)


def everything(values: np.ndarray, _: Any) -> None:
    values += np.float32(0.5)
