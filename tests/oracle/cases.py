"""The cases every suite runs over: dtypes x bounds x residue levels x special values."""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tiers import IS_FULL

from .cell_codes import Plan, make_plan
from .contract import Bound

LEVELS = (1, 3, 5, 15, 255)
FLOAT_DTYPES = (
    "<f2",
    ">f2",
    "<bf2",
    ">bf2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c8",
    "<c16",
    ">c16",
)
INTEGER_DTYPES = (
    "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8",
    "|u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8",
)  # fmt: skip
EXACT_DTYPES = ("|b1", "|S5", "<U3", ">U3")


@dataclass(frozen=True)
class Case:
    """One set of parameters, in the words of ciwrap's TreeParameters."""

    dtype: str
    residue_levels: int = 1
    bound: dict[str, Any] = field(default_factory=dict)
    special: dict[str, Any] = field(default_factory=dict)
    chunk_bytes: int = 4096

    @property
    def keywords(self) -> dict[str, Any]:
        return {
            **self.bound,
            **self.special,
            "residue_levels": self.residue_levels,
            "chunk_bytes": self.chunk_bytes,
        }

    def plan(self) -> Plan:
        return make_plan(self.dtype, **self.keywords)

    def contract(self) -> Bound:
        return Bound(**self.bound, **self.special)

    def rng(self, salt: int = 0) -> np.random.Generator:
        """The same numbers for the same case on every machine."""
        return np.random.default_rng([zlib.crc32(repr(self).encode()), salt])

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in {**self.bound, **self.special}.items()]
        return " ".join([self.dtype, f"k={self.residue_levels}", *words])


FLOAT_BOUNDS: dict[str, list[dict[str, Any]]] = {
    "exact": [{}],
    "absolute": [{"atol": 1e-3}, {"atol": 2.0**-10}, {"atol": 1e-30}, {"atol": 1e6}],
    "relative": [
        {"rtol": 1e-3},
        {"rtol": 2.0**-20},
        {"rtol": 1e-9},
        {"rtol": 0.5},
        {"rtol": 100.0},
    ],
    "mixed": [
        {"atol": 1e-5, "rtol": 1e-3},
        {"atol": 1.0, "rtol": 1e-6},
        {"atol": 1e-8, "rtol": 1e-12},
        {"atol": 1e-3, "rtol": 2.0},
    ],
    "ulps": [{"ulps": 1}, {"ulps": 4}, {"ulps": 1000}],
}
INTEGER_BOUNDS: list[dict[str, Any]] = [
    {}, {"atol": 0.5}, {"atol": 1.0}, {"atol": 3.7}, {"atol": 1000.0}, {"atol": 2.0**40},
]  # fmt: skip

FLOAT_SPECIALS: list[dict[str, Any]] = [
    {},
    {"equal_nan": False},
    {"fill_values": (-1.0, 0.0)},
    {"fill_values": (math.nan,), "equal_nan": False},
    {"fill_values": (2.0, math.nan)},
]
INTEGER_SPECIALS: list[dict[str, Any]] = [{}, {"fill_values": (7, 0)}]


def all_cases(*, every_special: bool = False) -> list[Case]:
    """Every dtype x bound x level; special values in turn, or each of them if asked for."""
    cases: list[Case] = []
    turn = 0

    def add(dtype: str, k: int, bound: dict[str, Any], specials: list[dict[str, Any]]) -> None:
        nonlocal turn
        chosen = specials if every_special else [specials[turn % len(specials)]]
        turn += 1
        cases.extend(Case(dtype, k, bound, special) for special in chosen)

    for dtype in FLOAT_DTYPES:
        for kind, bounds in FLOAT_BOUNDS.items():
            for bound in bounds:
                for k in LEVELS if kind != "exact" else (1,):
                    add(dtype, k, bound, FLOAT_SPECIALS)
    for dtype in INTEGER_DTYPES:
        for bound in INTEGER_BOUNDS:
            for k in LEVELS if bound.get("atol", 0) >= 1 else (1,):
                add(dtype, k, bound, INTEGER_SPECIALS)
    for dtype in EXACT_DTYPES:
        add(dtype, 1, {}, [{}])
    return cases


def cases_of_tier() -> list[Case]:
    """All cases in the full tier. The quick one tries each dtype with each bound, and of its levels
    each third: others for the next bound, and for the next dtype.
    """
    if IS_FULL:
        return all_cases()
    found: list[Case] = []
    by_bound = itertools.groupby(all_cases(), lambda case: (case.dtype, case.bound))
    for number, (_, group) in enumerate(by_bound):
        cases = list(group)
        first = (number + number // len(INTEGER_BOUNDS)) % 3
        found += cases[first::3] if len(cases) > 1 else cases
    return found
