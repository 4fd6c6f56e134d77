"""Chaos is told from noise, and its rate is that of the literature. Seeds are stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ciwrap.statistics.change_points import Growth, classify

RUNS = 5


def median_sizes(histories: np.ndarray) -> np.ndarray:
    """D(i) of runs, shape (runs, iterations, elements); the first run is the reference."""
    differences = np.sqrt(np.mean((histories[1:] - histories[0]) ** 2, axis=2))
    return np.median(differences, axis=0)


def classified(histories: np.ndarray, every: float = 1.0) -> Growth:
    sizes = median_sizes(histories)
    return classify(every * np.arange(sizes.size), sizes, float(np.std(histories[0])))


def logistic_runs(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0.1, 0.9, 200)
    x = x + 1e-14 * generator.normal(size=(RUNS, 200))
    found = [x]
    for _ in range(60):
        x = 4 * x * (1 - x)
        found.append(x)
    return np.stack(found, axis=1)


def lorenz_runs(
    forcing: float, starts: int, *, steps: int, size: float, before: int = 2000
) -> np.ndarray:
    """Lorenz-96 with 40 variables, fourth order Runge-Kutta, steps of 0.01.

    before: steps until the runs part. size: of the perturbations that tell them apart. Shape
    (starts, runs, checkpoints, variables), a checkpoint each 0.2 time units. Seeds 0, 1, ...
    """
    generators = [np.random.default_rng(seed) for seed in range(starts)]

    def rate(x: np.ndarray) -> np.ndarray:
        return (np.roll(x, -1, -1) - np.roll(x, 2, -1)) * np.roll(x, 1, -1) - x + forcing

    def step(x: np.ndarray) -> np.ndarray:
        one = rate(x)
        two = rate(x + 0.005 * one)
        three = rate(x + 0.005 * two)
        return x + 0.01 / 6 * (one + 2 * two + 2 * three + rate(x + 0.01 * three))

    x = np.stack([forcing + one.normal(size=40) for one in generators])
    for _ in range(before):
        x = step(x)
    noise = np.stack([one.normal(size=(RUNS, 40)) for one in generators])
    runs = x[:, None] + size * noise
    found = [runs]
    for number in range(1, steps + 1):
        runs = step(runs)
        if number % 20 == 0:
            found.append(runs)
    return np.stack(found, axis=2)


@pytest.mark.parametrize("seed", range(5))
def test_the_rate_of_the_logistic_map_is_the_logarithm_of_2(seed: int) -> None:
    found = classified(logistic_runs(seed))
    assert found.kind == "growing"
    assert found.rate == pytest.approx(math.log(2), rel=0.03)


def test_the_horizon_of_the_logistic_map_is_where_differences_reach_the_bound() -> None:
    histories = logistic_runs(1)
    found = classified(histories)
    sizes = median_sizes(histories)
    horizon = found.horizon(1e-6)
    assert horizon is not None
    assert abs(horizon - np.flatnonzero(sizes > 1e-6)[0]) <= 2


def test_the_rate_of_lorenz_96_is_that_of_the_literature() -> None:
    """1.7 for 40 variables and a forcing of 8. Single starts tell from 1.29 to 2.35; the mean over
    20 of them, seeds 0 to 19, is 1.68.
    """
    found = [classified(one, 0.2) for one in lorenz_runs(8.0, 20, steps=2400, size=1e-14)]
    assert {one.kind for one in found} == {"growing"}
    assert 1.5 <= np.mean([one.rate for one in found]) <= 2.0


@pytest.mark.parametrize("forcing", [4.0, 0.5])
def test_calm_lorenz_96_is_not_chaotic(forcing: float) -> None:
    """After 200 time units: earlier, differences still do grow on the way to the calm orbit."""
    for one in lorenz_runs(forcing, 10, steps=1200, size=1e-10, before=20_000):
        found = classified(one, 0.2)
        assert found.kind != "growing"
        assert found.rate is None
        assert found.horizon(1e-6) is None


@pytest.mark.parametrize("seed", range(10))
def test_a_random_walk_is_not_chaotic(seed: int) -> None:
    generator = np.random.default_rng(seed)
    steps = 1e-7 * generator.normal(size=(RUNS, 60, 100))
    assert classified(1 + np.cumsum(steps, axis=1)).kind == "noise"


def test_a_rare_outlier_is_not_chaotic() -> None:
    """600 numbers with 30 checkpoints: one checkpoint late in a history is no growth."""
    grown = 0
    for seed in range(600):
        generator = np.random.default_rng(seed)
        histories = 1 + 1e-12 * generator.normal(size=(2, 30, 1))
        histories[generator.random(histories.shape) < 0.05] += 1e-3
        sizes = median_sizes(histories)
        grown += classify(np.arange(30), sizes, 1.0).kind == "growing"
    assert grown <= 3


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_growth_that_comes_out_of_noise_is_found(share: float) -> None:
    """Differences as large as the last digit at first, until what grows below them is larger."""
    place = np.linspace(0, 1, 40)
    logs = 24 * np.maximum((place - share) / (1 - share), 0) - 32
    logs += 0.3 * np.random.default_rng(1).normal(size=40)
    assert classify(np.arange(40), np.exp(logs), 1.0).kind == "growing"


def test_equal_runs_are_deterministic() -> None:
    assert classified(np.ones((RUNS, 20, 10))).kind == "deterministic"


def test_few_checkpoints_do_not_settle_it() -> None:
    found = classify(np.arange(4), np.array([1e-9, 1e-7, 1e-5, 1e-3]), 1.0)
    assert found == Growth("noise", is_settled=False)


def test_what_is_saturated_from_the_start_does_not_grow() -> None:
    generator = np.random.default_rng(3)
    assert classify(np.arange(50), 1 + 0.01 * generator.normal(size=50), 1.0).kind == "noise"
