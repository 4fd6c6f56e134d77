"""What factors do to runs that differ anyway: of runs that were compared with the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ciwrap.model import VariableId
from ciwrap.model.repeat_result import Behaviour, RepeatedVariable
from ciwrap.project.settings import FactorSettings, LevelSettings
from ciwrap.studies.repeat import factors
from ciwrap.studies.repeat.measure import Measured, Slot
from ciwrap.studies.repeat.page import factor_words
from ciwrap.studies.repeat.run import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from ciwrap.model.repeat_result import FactorFinding

PLAN = make_plan(
    12,
    [FactorSettings("threads", LevelSettings({"A": "1"}), LevelSettings({"A": "2"}))],
    design="full",
    seed=1,
)
NUMBERS = [run.number for run in PLAN.runs]
ON = [run.number for run in PLAN.runs if run.cell == (True,)]


class Stub:
    """Of a measurer, what findings ask for."""

    name = "c"

    def __init__(self, compared: Sequence[int]) -> None:
        self.measured = Measured({VariableId("x"): Slot()}, compared=list(compared))


def found(
    sizes: Mapping[int, float | None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: bool = True,
    classes: Sequence[int] = NUMBERS,
) -> FactorFinding:
    """The finding of 12 runs; `first`: the first of them is the reference."""
    monkeypatch.setattr(factors, "largest_by_run", lambda measured, name: sizes)
    variable = RepeatedVariable("c", "x", Behaviour.NOISE, tuple(classes), len({*classes}))
    stub = Stub(NUMBERS[1:] if first else NUMBERS)
    (only,) = factors.factor_findings(PLAN, [stub], [variable])  # type: ignore[list-item]
    return only


def test_the_reference_has_no_distance_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(2).normal(size=13)
    sizes = {number: float(1e-6 * np.exp(0.1 * noise[number])) for number in NUMBERS[1:]}
    without = found(sizes, monkeypatch)
    # Whatever its own distance were: it is no measurement.
    assert found({**sizes, 1: 5.0}, monkeypatch) == without
    # Against a golden it is a run like any other.
    assert found({**sizes, 1: 5.0}, monkeypatch, first=False).p != without.p


def test_a_factor_that_switches_noise_on_is_told_by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [number if number in ON else 1 for number in NUMBERS]
    one = found({number: 1e-9 * number for number in ON}, monkeypatch, classes=classes)
    assert one.acts
    assert one.effect == 1
    assert (one.off_differing, one.off_pairs, one.on_differing, one.on_pairs) == (0, 15, 15, 15)
    assert "off: 0 of 15 pairs differ, on: 15 of 15 pairs differ" in factor_words(one)


def test_where_no_number_tells_runs_are_equal_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A golden without data: how far runs are from it is unknown, and that they differ is not."""
    classes = [number if number in ON else 1 for number in NUMBERS]
    one = found(dict.fromkeys(ON), monkeypatch, classes=classes)
    assert one.acts
    assert one.max_abs is None


def test_every_variable_has_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few distances of their own, as those of rounded numbers."""
    sizes: dict[int, float | None] = {number: float(number % 2) for number in NUMBERS[1:]}
    one = found(sizes, monkeypatch)
    assert one.p is not None
    assert not one.acts
    words = factor_words(one)
    assert words.startswith("no effect on x found (p = ")
    assert "so many runs find a five-fold spread in" in words
