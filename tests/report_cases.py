"""Cases in which a page once said what was not so, or said it badly; all are real comparisons.

Each function makes a folder with `result.json` and `report.html` in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from report_scenarios import ciwrap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Values = Mapping[str, np.ndarray]

WRITE = ("--json", "result.json", "--report", "report.html")


def save(folder: Path, values: Values) -> None:
    for name, array in values.items():
        target = folder / f"{name}.npy"
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, array)


def compared(folder: Path, golden: Values, new: Values, *bounds: str, code: int = 1) -> None:
    """Two folders of arrays, compared with each other."""
    save(folder / "a", golden)
    save(folder / "b", new)
    ciwrap(folder, "compare", "a", "b", *bounds, *WRITE, codes=(code,))


def checked(folder: Path, settings: str, golden: Values, new: Values, code: int = 1) -> None:
    """One check of all arrays against a golden of the earlier ones."""
    save(folder / "out", golden)
    (folder / "ciwrap.yaml").write_text(
        f"version: 1\nchecks:\n  all: {{outputs: out, {settings}}}\n", encoding="utf-8"
    )
    ciwrap(folder, "accept")
    save(folder / "out", new)
    ciwrap(folder, "check", *WRITE, codes=(code,))


def drift(folder: Path) -> None:
    """A fifth of the bound is used, known from residues to within one step."""
    x = np.random.default_rng(0).uniform(0, 100, 60_000)
    moved = x + np.random.default_rng(1).uniform(-0.2, 0.2, x.size)
    checked(folder, "atol: 1, evidence: residues", {"x": x}, {"x": moved}, 0)


def undecided(folder: Path) -> None:
    """Nothing is beyond its bound, and neither a tree nor residues can tell."""
    x = np.random.default_rng(0).uniform(0, 100, 60_000)
    noise = np.random.default_rng(1).uniform(-0.2, 0.2, x.size)
    for name in ("x", "y"):
        save(folder, {name: x})
    (folder / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  t: {outputs: x.npy, atol: 1, evidence: tree}\n"
        "  r: {outputs: y.npy, atol: 1, evidence: residues}\n",
        encoding="utf-8",
    )
    ciwrap(folder, "accept")
    save(folder, {"x": x + noise, "y": x + 0.95})
    ciwrap(folder, "check", *WRITE, codes=(1, 3))


def pictures(folder: Path) -> None:
    """A spike in a long line, a fill value, a block of NaN, a phase, scattered differences."""
    random = np.random.default_rng(0)
    line = np.sin(np.arange(100_000) / 1e4)
    spike = line.copy()
    spike[5000] += 0.5
    fill = random.normal(0, 1e-5, (80, 80))
    fill[:20] = -1e18
    filled = fill.copy()
    filled[50:] += 1e-5
    whole = random.random((100, 100))
    lost = whole.copy()
    lost[10:20, 5:30] = np.nan
    phase = np.exp(1j * np.linspace(0, 6, 500))
    sparse = random.random((800, 800))
    noise = np.where(random.random(sparse.shape) < 0.05, 1e-3, 0)
    golden = {"spike": line, "fill": fill, "nan": whole, "phase": phase, "sparse": sparse}
    new = {
        "spike": spike,
        "fill": filled,
        "nan": lost,
        "phase": phase * np.exp(0.3j),
        "sparse": sparse + noise,
    }
    compared(folder, golden, new, "--atol", "1e-6")


def lost_numbers(folder: Path) -> None:
    """NaN in a block of columns, judged by residues."""
    x = np.random.default_rng(0).random((256, 256))
    lost = x.copy()
    lost[100:120, 50:90] = np.nan
    checked(folder, "atol: 1e-6, evidence: residues", {"x": x}, {"x": lost})


def no_golden(folder: Path) -> None:
    """A check whose output was never written, and which has no golden."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  x: {outputs: nothere.npy}\n", encoding="utf-8"
    )
    ciwrap(folder, "check", *WRITE, codes=(3,))


def unreadable(folder: Path) -> None:
    """A file that is cut off beside two arrays that differ."""
    random = np.random.default_rng(0)
    golden = {name: random.random((40, 40)) for name in ("u", "v", "cut")}
    save(folder / "a", golden)
    save(folder / "b", {name: one + 1e-3 for name, one in golden.items()})
    cut = folder / "b" / "cut.npy"
    cut.write_bytes(cut.read_bytes()[:100])
    ciwrap(folder, "compare", "a", "b", "--atol", "1e-6", *WRITE, codes=(3,))


def growing_patch(folder: Path) -> None:
    """A defect that grows over twelve iterations of two ranks, and a variable beside it."""
    for side in ("a", "b"):
        random = np.random.default_rng(2)
        for iteration in range(1, 13):
            for rank in range(2):
                u, w = random.random((30, 40)), random.random(200)
                if side == "b" and iteration >= 5:
                    u[10:14, 20:30] += 1e-5 * 2.0 ** (iteration - 5)
                place = f"iter_{iteration:04d}/rank_{rank}"
                save(folder / side, {f"{place}/u": u, f"{place}/w": w})
    ciwrap(folder, "compare", "a", "b", "--atol", "1e-6", *WRITE, codes=(1,))


def long_run(folder: Path) -> None:
    """200 iterations of 64 ranks, small arrays, from iteration 120 on a patch of ranks."""
    x = np.random.default_rng(3).random(8)
    for iteration in range(200):
        for rank in range(64):
            bad = iteration >= 120 and 21 <= rank < 60
            place = f"iter_{iteration:04d}/rank_{rank:02d}/x"
            save(folder / "a", {place: x})
            save(folder / "b", {place: x + 1e-3 * bad})
    ciwrap(folder, "compare", "a", "b", "--atol", "1e-6", *WRITE, codes=(1,))


def same_reason(folder: Path) -> None:
    """Eight arrays of another dtype, one that is gone, one of another shape."""
    random = np.random.default_rng(0)
    golden = {f"field_{number}": random.random((20, 20)) for number in range(10)}
    new = {name: one.astype("<f4") for name, one in golden.items()}
    del new["field_8"]
    new["field_9"] = golden["field_9"][:-1]
    compared(folder, golden, new, "--atol", "1e-6", code=3)


def orders(folder: Path) -> None:
    """Rows in another order beside their id, a jump of one box length, numbers next to zero."""
    random = np.random.default_rng(4)
    identity = np.arange(300)
    order = random.permutation(300)
    position = random.uniform(0, 12.5, (300, 3))
    jumped = position + 12.5 * (random.random(position.shape) < 0.05)
    wave = np.sin(np.linspace(0, 20 * np.pi, 3000))
    wave[::100] *= 1e-12
    golden = {"id": identity, "velocity": random.normal(size=(300, 3)), "position": position}
    new = {"id": identity[order], "velocity": golden["velocity"][order], "position": jumped}
    moved = wave + random.uniform(-1e-16, 1e-16, wave.size)
    compared(folder, golden | {"wave": wave}, new | {"wave": moved}, "--rtol", "1e-9")


def small(folder: Path) -> None:
    """Scalars, flags, integers, texts and an empty array."""
    golden = {
        "energy": np.float64(1.25),
        "flags": np.arange(40) % 3 == 0,
        "counts": np.arange(30),
        "labels": np.array(["inlet", "outlet", "wall"]),
        "empty": np.zeros(0),
    }
    new = dict(golden)
    new["energy"] = np.float64(1.2500001)
    new["flags"] = np.where(np.arange(40) == 7, ~golden["flags"], golden["flags"])
    new["counts"] = golden["counts"] + (golden["counts"] > 20)
    new["labels"] = np.array(["inlet", "outlet", "walls"])
    compared(folder, golden, new, "--atol", "1e-9")


CASES: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        drift,
        undecided,
        pictures,
        lost_numbers,
        no_golden,
        unreadable,
        growing_patch,
        long_run,
        same_reason,
        orders,
        small,
    )
}


def make(name: str, folder: Path) -> Path:
    """The page of a case."""
    folder.mkdir(parents=True, exist_ok=True)
    CASES[name](folder)
    return folder / "report.html"
