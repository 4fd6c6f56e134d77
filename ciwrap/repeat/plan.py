"""Which runs are made, in which order, with which factors on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ciwrap.config.settings import FactorSettings, LevelSettings
from ciwrap.errors import UsageError
from ciwrap.model.forms import nearest
from ciwrap.running.cores import all_cores_but_one
from ciwrap.snapshot.machine import usable_cpus
from ciwrap.statistics.factors import LEAST_RUNS_PER_CELL, cells_of
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.config import CommandSettings
    from ciwrap.statistics.factors import Cell, Design

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
_SEED_STEP = 1_000_003  # seeds of runs lie apart, for programs that add a rank to theirs


class PlannedRun(Struct, frozen=True):
    """A run to make. number: from 1, in the order of running. cell: which factors are on."""

    number: int
    seed: int
    cell: Cell = ()


class Plan(Struct, frozen=True):
    """All runs. seed: of their order, and of their seeds."""

    runs: tuple[PlannedRun, ...]
    factors: tuple[FactorSettings, ...]
    design: Design
    seed: int

    def states(self, run: PlannedRun) -> dict[str, str]:
        """ "on" or "off" by factor."""
        return {
            factor.name: "on" if is_on else "off"
            for factor, is_on in zip(self.factors, run.cell, strict=True)
        }

    def command(self, settings: CommandSettings, run: PlannedRun) -> CommandSettings:
        """The command of one run, as its factors have it."""
        for factor, is_on in zip(self.factors, run.cell, strict=True):
            level = factor.on if is_on else factor.off
            settings = replace(
                settings,
                words=settings.words if level.words is None else level.words,
                env={**settings.env, **level.env},
                cores=all_cores_but_one() if level.reserves_core else settings.cores,
            )
        return settings


def make_plan(count: int, factors: Sequence[FactorSettings], design: Design, seed: int) -> Plan:
    """A plan of at least `count` runs: every cell of the design equally often, at least twice.

    The order is random within blocks that hold each cell once, so that what drifts over time is
    spread over all cells. The first run has all factors off: others are compared with it. Raises
    UsageError.
    """
    if count < LEAST_RUNS_PER_CELL:
        raise UsageError(f"{count} runs: at least {LEAST_RUNS_PER_CELL} are needed")
    try:
        cells = cells_of(design, len(factors)) if factors else [()]
    except ValueError as error:
        raise UsageError(str(error), remedy="choose another 'design'") from None
    blocks = max(LEAST_RUNS_PER_CELL, -(-count // len(cells)))
    order = random.Random(seed)
    chosen: list[Cell] = []
    for block in range(blocks):
        mixed = cells[1:] if block == 0 else list(cells)
        order.shuffle(mixed)
        chosen += [cells[0], *mixed] if block == 0 else mixed
    runs = tuple(
        PlannedRun(number, (seed + _SEED_STEP * number) % (1 << 31), cell)
        for number, cell in enumerate(chosen, 1)
    )
    return Plan(runs, tuple(factors), design, seed)


def find_factors(
    names: Sequence[str], configured: Sequence[FactorSettings]
) -> tuple[FactorSettings, ...]:
    """The factors that `--vary` names: of the configuration, built in (`threads`, `hash-seed`,
    `reserve-core`), or a variable with both of its values (`OMP_NUM_THREADS=1,8`).

    Raises UsageError.
    """
    known = {factor.name: factor for factor in (*_built_in(), *configured)}
    found: dict[str, FactorSettings] = {}
    for name in names:
        factor = known.get(name) or _variable(name)
        if factor is None:
            near = nearest(name, list(known))
            raise UsageError(
                f"there is no factor {name!r} (known: {', '.join(known)})",
                remedy=f"did you mean {near!r}?" if near else "or write VARIABLE=OFF,ON",
            )
        if factor.off == factor.on:
            raise UsageError(f"the factor {name!r} is the same off and on")
        if found.setdefault(factor.name, factor) != factor:
            raise UsageError(f"the factor {factor.name!r} is given twice, with other values")
    return tuple(found.values())


def _variable(text: str) -> FactorSettings | None:
    name, sign, values = text.partition("=")
    off, comma, on = values.partition(",")
    if not (name and sign and comma):
        return None
    if "," in on:
        raise UsageError(
            f"the factor {text!r} has {values.count(',') + 1} values, and a factor has two",
            remedy=f"--vary {name}=OFF,ON; a value that has a comma is given under 'factors' in"
            " ciwrap.yaml",
        )
    return FactorSettings(name, LevelSettings({name: off}), LevelSettings({name: on}))


def _built_in() -> tuple[FactorSettings, ...]:
    threads = str(max(2, usable_cpus()))
    return (
        FactorSettings(
            "threads",
            LevelSettings(dict.fromkeys(_THREAD_VARIABLES, "1")),
            LevelSettings(dict.fromkeys(_THREAD_VARIABLES, threads)),
        ),
        FactorSettings(
            "hash-seed",
            LevelSettings({"PYTHONHASHSEED": "0"}),
            LevelSettings({"PYTHONHASHSEED": "1"}),
        ),
        FactorSettings("reserve-core", LevelSettings(), LevelSettings(reserves_core=True)),
    )
