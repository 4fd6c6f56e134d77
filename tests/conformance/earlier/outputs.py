"""The outputs that the earlier goldens were made of. Run as a script: `outputs.py FOLDER [SHIFT]`.

Every value is exact in binary floating point or a single division, so they are the same anywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np


def arrays(iteration: int, rank: int, shift: float = 0.0) -> dict[str, Any]:
    n = np.arange(600.0).reshape(20, 30) / 7 + iteration + rank / 4 + shift
    missing = n.copy()
    missing[3, 4] = -999.0
    odd = n.astype("<f4").copy()
    odd[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    return {
        "temperature": n,
        "pressure": n.astype("<f4"),
        "velocity": n.astype(">f8"),
        "half": (n / 8).astype("<f2"),
        "field": n + 1j * (n + 1),
        "missing": missing,
        "odd": odd,
        "ids": np.arange(600, dtype="<i4") + iteration + round(shift),
        "counts": np.arange(300, dtype="<u8") * 3 + rank,
        "levels": np.arange(200, dtype="i1") // 2,
        "flags": np.arange(100) % 3 == 0,
        "names": np.array([b"ab", b"c", b"def"]),
        "time": np.array(iteration / 8 + shift),
        "empty": np.zeros((0, 3)),
    }


def write(folder: Path, shift: float = 0.0) -> None:
    for iteration in (10, 20):
        for rank in (0, 1):
            here = folder / f"iter_{iteration}" / f"rank_{rank}"
            here.mkdir(parents=True, exist_ok=True)
            for name, array in arrays(iteration, rank, shift).items():
                np.save(here / f"{name}.npy", array)


if __name__ == "__main__":
    write(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
