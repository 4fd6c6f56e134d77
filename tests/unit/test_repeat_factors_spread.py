"""What factors do to the spread of runs: of runs that were compared with the reference alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ciwrap.model.repeat_result import Behaviour, RepeatedVariable
from ciwrap.project.settings import FactorSettings, LevelSettings
from ciwrap.studies.repeat import result
from ciwrap.studies.repeat.run import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from ciwrap.model.repeat_result import FactorFinding

PLAN = make_plan(
    12,
    [FactorSettings("threads", LevelSettings({"A": "1"}), LevelSettings({"A": "2"}))],
    design="full",
    seed=1,
)


def found(
    sizes: Mapping[int, float | None], monkeypatch: pytest.MonkeyPatch, *, first: bool = True
) -> FactorFinding:
    """The finding of 12 runs that all differ; `first`: the first of them is the reference."""
    numbers = [run.number for run in PLAN.runs]
    monkeypatch.setattr(result, "power", lambda cells, seed: float(len(cells)))
    variable = RepeatedVariable("c", "x", Behaviour.NOISE, tuple(numbers), len(numbers))
    (only,) = result._findings_of(PLAN, variable, sizes, numbers[1:] if first else numbers)
    return only


def test_the_reference_has_no_distance_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(2).normal(size=13)
    sizes = {run.number: float(1e-6 * np.exp(0.1 * noise[run.number])) for run in PLAN.runs[1:]}
    without = found(sizes, monkeypatch)
    assert without.power == 11
    # Whatever its own distance were: it is no measurement.
    assert found({**sizes, 1: 5.0}, monkeypatch) == without
    # Against a golden it is a run like any other.
    assert found({**sizes, 1: 5.0}, monkeypatch, first=False).power == 12


def test_of_unknown_distances_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[int, float | None] = {run.number: 1e-6 * run.number for run in PLAN.runs[1:]}
    on = next(run.number for run in PLAN.runs if run.cell == (True,))
    one = found({**sizes, on: None}, monkeypatch)
    assert (one.p, one.power, one.max_abs) == (None, None, None)
    assert found(sizes, monkeypatch).max_abs == max(
        sizes[run.number] or 0 for run in PLAN.runs if run.cell == (True,)
    )


def test_what_is_on_or_off_has_no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A five-fold spread of it, which "would have been found in 38 %", there cannot be."""
    sizes: dict[int, float | None] = {run.number: float(run.number % 2) for run in PLAN.runs[1:]}
    one = found(sizes, monkeypatch)
    assert (one.p, one.power, one.spread_effect) == (None, None, None)
    assert one.repeat_differing > 0
