"""Significant digits, against the package of the paper's authors. Seeds are stated."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import significantdigits as oracle
from scipy import stats

from ciwrap.base.errors import NotAvailableError
from ciwrap.statistics.factors import bits_of_spread, common_bits

SEED = 34


def normal_bits(z: np.ndarray, probability: float = 0.95, confidence: float = 0.95) -> np.ndarray:
    return bits_of_spread(z.std(axis=0, ddof=1), len(z), probability, confidence)


def values(runs: int, noise: float) -> np.ndarray:
    """Runs of 50 values around 3, which vary by that share of themselves."""
    generator = np.random.default_rng(SEED)
    reference = generator.uniform(2, 4, 50)
    return np.concatenate(
        [reference[None], reference * (1 + noise * generator.normal(size=(runs, 50)))]
    )


@pytest.mark.parametrize("runs", [3, 10, 30])
@pytest.mark.parametrize("noise", [1e-3, 1e-9])
def test_normal_bits_are_those_of_the_oracle(runs: int, noise: float) -> None:
    found = values(runs, noise)
    ours = normal_bits(found[1:] / found[0] - 1, 0.95, 0.95)
    theirs = oracle.significant_digits(
        found[1:], reference=found[0], axis=0, method="cnh", error="relative",
        probability=0.95, confidence=0.95,
    )  # fmt: skip
    # The oracle divides the sum of squares by n, where chi-squared with n - 1 degrees wants n - 1.
    assert ours + 0.5 * math.log2(runs / (runs - 1)) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("runs", [3, 30])
def test_common_bits_are_those_of_the_oracle(runs: int) -> None:
    found = values(runs, 1e-6)
    theirs = oracle.significant_digits(
        found[1:], reference=found[0], axis=0, method="general", error="relative"
    )
    assert common_bits(found[1:] / found[0] - 1).tolist() == theirs.tolist()


def test_normal_bits_hold_as_often_as_they_say() -> None:
    """Of 2000 elements, 95 % of those judged at 95 % confidence keep their bits in a later run."""
    generator = np.random.default_rng(SEED)
    z = 1e-8 * generator.normal(size=(10, 2000))
    bits = normal_bits(z, 0.95, 0.95)
    later = np.abs(1e-8 * generator.normal(size=(400, 2000)))
    share = np.mean(later <= 2.0**-bits, axis=0)
    assert np.mean(share >= 0.95) == pytest.approx(0.975, abs=0.015)


def test_what_never_varies_has_all_bits() -> None:
    assert normal_bits(np.zeros((5, 2))).tolist() == [53, 53]
    assert common_bits(np.zeros((5, 2))).tolist() == [53, 53]


def test_what_is_all_noise_has_none() -> None:
    assert common_bits(np.array([[3.0], [-2.0]])).tolist() == [0]
    assert normal_bits(np.array([[3.0], [-2.0]])).tolist() == [0]


def test_scipy_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(NotAvailableError) as caught:
        normal_bits(np.ones((3, 2)))
    assert str(caught.value) == (
        "the number of significant digits needs SciPy, which is not installed; pip install scipy"
    )


def test_normal_bits_are_those_shared_with_the_mean() -> None:
    """Coverage at the stated confidence, with few runs and many. Seed 8."""
    generator = np.random.default_rng(8)
    for runs in (3, 5, 10, 30):
        values = generator.normal(size=(runs, 4000))
        # Against the first run, which is where z comes from: its offset is in no deviation.
        bits = normal_bits(1e-6 * (values[1:] - values[0]))
        reach = 1e6 * 2.0**-bits
        holds = 2 * stats.norm.cdf(reach) - 1 >= 0.95
        assert holds.mean() >= 0.95
