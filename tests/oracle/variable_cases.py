"""Variables with settings of their own, drawn at random: what a golden holds, and what a later run.

Nothing in here imports ciwrap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .one_variable import Asked, Told, judge

ROWS = 12
FLOATS = ("f2", "f4", "f8")
WHOLE = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
OTHERS = ("c8", "c16", "bf2", "?", "S5", "U4")
SHAPES = ((), (1,), (37,), (5, 9), (ROWS, 3), (2, 3, 4), (0,), (3, 0), (150,))


@dataclass
class Case:
    """One variable. golden, new: in the order of ids, if they are aligned."""

    name: str
    golden: Any
    new: Any
    asked: Asked
    said: dict[str, Any]
    masks: tuple[Any, Any] | None
    is_aligned: bool

    @property
    def told(self) -> Told | None:
        return judge(self.golden, self.new, self.asked, self.masks)


def draw(rng: np.random.Generator, name: str, *, is_relaxed: bool = False) -> Case:
    kind = str(rng.choice([*FLOATS, *FLOATS, *WHOLE, *OTHERS]))
    asked, said = draw_settings(rng, kind)
    asked = replace(asked, is_strict=not is_relaxed)
    is_aligned = rng.random() < 0.15
    shape = (
        (ROWS, 3) if is_aligned or asked_components(asked) else SHAPES[rng.integers(len(SHAPES))]
    )
    golden = draw_golden(rng, kind, shape, asked)
    new = move(rng, golden, kind, asked)
    masks = None
    if rng.random() < 0.25 and golden.size and kind != "bf2":
        mask = rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
        other = mask ^ (rng.random(shape) < 0.1) if rng.random() < 0.2 else mask
        masks = (mask, other)
    if masks is not None:
        said["mask"] = f"mask_{name}"
    if asked.mixed_precision and rng.random() < 0.7:
        other = "f8" if kind == "f4" else "f4"
        with np.errstate(all="ignore"):
            if rng.random() < 0.5:
                golden = golden.astype(other)
            else:
                new = new.astype(other)
    elif golden.dtype.kind in "iufc" and kind != "bf2":
        order = rng.random()
        if order < 0.25:
            golden = golden.astype(golden.dtype.newbyteorder(">"))
        if order < 0.22 or order > 0.99:
            new = new.astype(new.dtype.newbyteorder(">"))
        if is_relaxed and kind != "f2" and rng.random() < 0.2:
            with np.errstate(all="ignore"):
                others = ["c8", "c16"] if kind[0] == "c" else ["f8", "f4", "i8", "i4", "u8", "c16"]
                new = new.astype(str(rng.choice(others)))
    if golden.ndim > 1 and rng.random() < 0.3:
        new = np.asfortranarray(new)
    return Case(name, golden, new, asked, said, masks, is_aligned)


def asked_components(asked: Asked) -> bool:
    return isinstance(asked.period, tuple) and len(asked.period) > 1


def draw_settings(rng: np.random.Generator, kind: str) -> tuple[Asked, dict[str, Any]]:
    """What is asked of a variable of a kind, and the same as ciwrap.yaml says it."""
    is_real, is_whole = kind in FLOATS, kind in WHOLE
    asked: dict[str, Any] = {}
    bounds = ["exact", "atol", "atol", "atol", "rtol", "mixed", "ulps"]
    match str(rng.choice(bounds)):
        case "atol":
            large = 1e18 if is_whole else 1e30
            asked["atol"] = float(
                rng.choice([0.25, 0.3, 0.1, 1.0, 3.5, 1e-3, 1e-300, 5e-324, large])
            )
        case "rtol":
            asked["rtol"] = float(rng.choice([0.125, 1e-3, 1e-7, 2.0]))
        case "mixed":
            asked["atol"] = float(rng.choice([0.25, 1e-3, 1e-12]))
            asked["rtol"] = float(rng.choice([0.125, 1e-3, 0.5]))
        case "ulps":
            asked["ulps"] = int(rng.choice([1, 3, 40]))
    said = dict(asked)
    if (is_real or is_whole) and not asked.get("ulps") and rng.random() < 0.3:
        asked["combine"] = said["combine"] = str(rng.choice(["both", "either"]))
    can_turn = kind in (*FLOATS, "i4", "u2") and not {"rtol", "ulps", "combine"} & asked.keys()
    if can_turn and rng.random() < 0.5 and asked.get("atol", 0) < 0.4:
        period = [(3.0,), (1.0, 0.0, 2.5), (360.0,)][rng.integers(3)]
        asked["period"] = period if len(period) > 1 else period[0]
        said["period"] = list(period) if len(period) > 1 else period[0]
    if rng.random() < 0.4:
        asked["equal_nan"] = said["equal_nan"] = bool(rng.random() < 0.5)
    if rng.random() < 0.4 and kind not in ("?", "S5", "U4"):
        fills = [(-1.0,), (0.0,), (-999.0, 0.1), (1e20, -2.0), (math.nan, 3.0)][rng.integers(5)]
        if kind == "bf2":
            fills = (-1.0, 2.0)
        asked["fill_values"] = fills
        said["fill_values"] = ["nan" if one != one else one for one in fills]
    if kind in ("f4", "f8") and rng.random() < 0.3:
        asked["mixed_precision"] = said["mixed_precision"] = True
    said["chunk_bytes"] = int(rng.choice([64, 128, 4096]))
    said["residue_levels"] = int(rng.choice([1, 3, 15, 255]))
    return Asked(**asked, is_bfloat16=kind == "bf2"), said


def draw_golden(rng: np.random.Generator, kind: str, shape: Any, asked: Asked) -> Any:
    count = math.prod(shape)
    if kind == "?":
        return (rng.random(count) < 0.5).reshape(shape)
    if kind in ("S5", "U4"):
        return rng.choice(["", "a", "ab", "abc"], count).astype(kind).reshape(shape)
    if kind == "bf2":
        return rng.integers(0, 1 << 16, count).astype("u2").reshape(shape)
    if kind in WHOLE:
        limits = np.iinfo(kind)
        small = rng.integers(max(limits.min, -10), 11, count).astype(kind)
        ends = rng.choice(np.array([limits.min, limits.max], kind), count)
        return np.where(rng.random(count) < 0.9, small, ends).astype(kind).reshape(shape)
    if kind in ("c8", "c16"):
        part = {"c8": "f4", "c16": "f8"}[kind]
        found = np.empty(shape, kind)
        found.real, found.imag = (draw_golden(rng, part, shape, asked) for _ in "ri")
        return found
    values = rng.normal(size=count) * 10.0 ** rng.integers(-3, 4)
    finite = np.finfo(kind)
    odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0]
    odd += [float(finite.max), float(finite.smallest_subnormal), *asked.fill_values]
    with np.errstate(all="ignore"):
        found = np.where(rng.random(count) < 0.1, rng.choice(odd, count), values).astype(kind)
    return found.reshape(shape)


def move(rng: np.random.Generator, golden: Any, kind: str, asked: Asked) -> Any:
    """New values: most as they were, some at the bound or a step from it, some odd."""
    share = rng.choice([0.0, 0.02, 0.3, 1.0, 1.0])
    is_gentle = rng.random() < 0.65
    chosen = rng.random(golden.shape) < share
    if kind in ("c8", "c16"):
        part = {"c8": "f4", "c16": "f8"}[kind]
        found = golden.copy()
        found.real = move(rng, golden.real.astype(part), part, asked)
        return found
    if kind in ("?", "S5", "U4", "bf2"):
        moved = draw_golden(rng, kind, golden.shape, asked)
        if kind == "bf2" and is_gentle:
            moved = golden + rng.integers(0, 2, golden.shape).astype("u2")
        return np.where(chosen, moved, golden).astype(golden.dtype)
    if kind in WHOLE:
        step = rng.integers(
            0, max(2, min(5, int(min(asked.atol, 10)) + (not is_gentle) * 2)), golden.shape
        )
        with np.errstate(all="ignore"):
            return np.where(chosen, golden + step.astype(kind), golden).astype(kind)
    with np.errstate(all="ignore"):
        wide = golden.astype("f8")
        size = np.abs(wide)
        bound = asked.atol + asked.rtol * size
        if asked.combine != "sum":
            join = np.minimum if asked.combine == "both" else np.maximum
            bound = join(asked.atol, asked.rtol * size)
        factor = rng.choice(
            [0.3, 0.5, 0.8] if is_gentle else [0.5, 1.0, 1.0, 1.01, 3.0], golden.shape
        )
        sign = rng.choice([-1.0, 1.0], golden.shape)
        moved = (wide + sign * factor * bound).astype(kind)
        if asked.ulps or not (asked.atol or asked.rtol):
            moved = golden
            for _ in range(int(rng.integers(0, asked.ulps + 1 + (not is_gentle)))):
                moved = np.nextafter(moved, golden.dtype.type(9))
        if not is_gentle:
            nudged = np.nextafter(moved, (sign * np.inf).astype(kind))
            moved = np.where(rng.random(golden.shape) < 0.4, nudged, moved)
            odd = rng.choice([math.nan, math.inf, -math.inf, 0.0, *asked.fill_values], golden.shape)
            moved = np.where(rng.random(golden.shape) < 0.1, odd.astype(kind), moved)
        if asked.period:
            periods = np.resize(np.asarray(asked.period, "f8"), golden.shape or (1,))
            turns = rng.integers(-2, 3, golden.shape)
            moved = (moved.astype("f8") + turns * periods.reshape(golden.shape)).astype(kind)
    return np.where(chosen, moved, golden).astype(kind)
