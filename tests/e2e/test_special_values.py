"""Circles, fill values and two precisions, through the command line.

Each case is laid out as a real program writes it; what must be found is known beforehand.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from e2e.paired_runs import ATOL, BOX, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st

from ciwrap.check.other_bounds import Circle
from ciwrap.model import ErrorBound, VariableSettings


def test_periodic_wrap(case: Any) -> None:
    it = case("    variables: {x: {atol: 1e-3, period: 10}, angle: {atol: 1e-3, period: 360}}\n")
    draw = np.random.default_rng(9)
    for dtype in ("<f4", "<f8"):
        x = draw.uniform(0, BOX, (300, 3)).astype(dtype)
        x[0] = [0.0001, 9.9999, 5]
        noise = draw.normal(size=x.shape) * 2e-4
        noise[0] = [-2e-4, 2e-4, 0]
        y = ((x + noise) % BOX).astype(dtype)
        y[7, 2] = (x[7, 2] + 0.25) % BOX
        it.save("a", "x.npy", x)
        it.save("b", "x.npy", y)
        it.save("a", "angle.npy", np.array([0.0, 359.9999, 180.0]))
        it.save("b", "angle.npy", np.array([359.9999, 0.0, 180.0005]))
        found = it.compare(1)
        truth = wrapped(x.astype("f8"), y.astype("f8")) > ATOL
        assert found["x"]["differing_count"] == truth.sum() == 1
        assert found["x"]["first_index"] == [7, 2]
        assert found["x"]["period"] == [10]
        assert found["x"]["max_abs_difference"] == pytest.approx(0.25, abs=1e-5)
        assert found["angle"]["verdict"] == "match"
        # A golden with its data can do the same; one without cannot, and says so.
        it.accept("a")
        it.use("b")
        assert it.check(1)["x"]["differing_count"] == 1


def test_a_golden_without_data_and_a_period(case: Any, capsys: pytest.CaptureFixture[str]) -> None:
    it = case("    period: 10\n    evidence: residues\n")
    it.save("a", "x.npy", np.linspace(0, 9, 50))
    it.accept("a", code=3)
    assert "modulo a period" in capsys.readouterr().err
    case("    evidence: residues\n")
    it.accept("a")
    case("    period: 10\n    evidence: residues\n")
    assert "keeps its residues alone" in it.check(3)["x"]["reason"]


@pytest.mark.parametrize(
    ("keys", "array", "words"),
    [
        ("{period: 10, rtol: 1e-3}", np.ones(3), "give 'atol' alone"),
        ("{period: 10, atol: 5}", np.ones(3), "nothing could differ"),
        ("{period: [1, 2], atol: 0.1}", np.ones((4, 3)), "2 periods"),
        ("{period: 10, atol: 0.1}", np.ones(3, complex), "dtype <c16"),
        ("{period: 10}", np.arange(3), "dtype <i8"),
    ],
)
def test_periods_without_meaning(case: Any, keys: str, array: Any, words: str) -> None:
    it = case(f"    variables: {{x: {keys}}}\n")
    it.save("a", "x.npy", array)
    it.save("b", "x.npy", array)
    assert words in it.compare(3)["x"]["reason"]


@given(
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.floats(0.1, 50),
    st.floats(0, 1),
    st.booleans(),
)
@settings(deadline=None)
def test_circles_are_decided_exactly(
    golden: float, new: float, period: float, share: float, on_the_bound: bool
) -> None:
    """Against exact fractions, also where the difference is the bound itself."""
    raw = Fraction(new) - Fraction(golden)
    truth = abs(raw - round(raw / Fraction(period)) * Fraction(period))
    atol = float(truth) if on_the_bound else share * period / 4
    if atol >= period / 2:
        return
    circle = Circle("<f8", (1,), VariableSettings(bound=ErrorBound(atol), period=(period,)))
    base, moved = circle.differences(np.array([golden]), np.array([new]), 0)
    assert base[0] == 0
    assert (abs(moved[0]) <= atol) == (truth <= Fraction(atol))


def test_fill_values_of_two_precisions(case: Any) -> None:
    """-1e18 is another number in float32: 9.99999984306749e17 apart from it is 1.6e10."""
    keys = "    fill_values: [-1e18]\n    mixed_precision: true\n"
    values = np.linspace(0, 1, 100)
    values[[3, 50]] = -1e18
    it = case(keys)
    it.save("a", "ssh.npy", values.astype("<f4"))
    it.save("b", "ssh.npy", values)
    assert it.compare(0)["ssh"]["verdict"] == "match"
    values[50] = 0.5
    it.save("b", "ssh.npy", values)
    found = it.compare(1)["ssh"]
    assert (found["differing_count"], found["missing_mismatch_count"]) == (1, 1)
    assert found["has_fill_values"]


def test_mixed_precision_is_only_taken_when_asked_for(case: Any) -> None:
    values = np.random.default_rng(1).normal(size=200)
    for keys, code in (("", 3), ("    mixed_precision: true\n    atol: 0\n", 0)):
        it = case(keys)
        it.save("a", "x.npy", values.astype("<f4"))
        it.save("b", "x.npy", values)
        found = it.compare(code)["x"]
        said = "dtype float32 (<f4) in A, float64 (<f8) in B"
        assert code == 0 or said in found["reason"]
    # By the bound of the coarser: one step of float32 is a difference.
    values[5] = np.nextafter(np.float32(values[5]), np.float32(9))
    it.save("b", "x.npy", values)
    assert it.compare(1)["x"]["differing_count"] == 1


def test_mixed_precision_and_goldens(case: Any) -> None:
    values = np.random.default_rng(1).normal(size=200)
    keys = "    mixed_precision: true\n    evidence: {}\n"
    for evidence in ("data", "residues"):
        it = case(keys.format(evidence))
        it.save("a", "x.npy", values.astype("<f4"))
        it.save("b", "x.npy", values)
        it.accept("a")
        it.use("b")
        assert it.check(0)["x"]["verdict"] == "match"
        it.accept("b")
        it.use("a")
        found = it.check(0 if evidence == "data" else 3)["x"]
        assert evidence == "data" or "float64" in found["reason"]
