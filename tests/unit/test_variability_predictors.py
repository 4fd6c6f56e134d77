"""Predictors of maps against formulae written out here, SciPy, and surfaces that they must find."""

from __future__ import annotations

import numpy as np
import pytest

from ciwrap.base.errors import NotAvailableError

pytest.importorskip("scipy", reason="SciPy is not installed")

from scipy import interpolate, stats

from ciwrap.studies.variability.predictors import (
    PREDICTORS,
    Kernel,
    fit_process,
    fit_splines,
    likeliest_kernel,
    shepard,
    triangulate,
)
from ciwrap.studies.variability.runs import are_inside, axis_of, is_inside, merged_levels, space_of

GENERATOR = np.random.default_rng(3)
POINTS = GENERATOR.random((60, 2))
PLACES = GENERATOR.random((40, 2)) * 0.6 + 0.2
KERNEL = Kernel((0.3, 0.8), 1.4, 0.01)


def matern(one, other, kernel):
    """The covariance of smoothness 5/2, element by element."""
    found = np.empty((len(one), len(other)))
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            r = np.sqrt(5 * sum(((a - b) / np.array(kernel.lengths)) ** 2))
            found[i, j] = kernel.signal * (1 + r + r**2 / 3) * np.exp(-r)
    return found


def test_the_process_is_the_textbooks() -> None:
    heights = np.sin(5 * POINTS[:, 0]) + POINTS[:, 1]
    process = fit_process(POINTS, heights, KERNEL)
    inner = matern(POINTS, POINTS, KERNEL) + KERNEL.nugget * np.eye(len(POINTS))
    across = matern(PLACES, POINTS, KERNEL)
    scaled = (heights - heights.mean()) / heights.std()
    expected = heights.mean() + heights.std() * across @ np.linalg.solve(inner, scaled)
    assert process.heights(PLACES) == pytest.approx(expected, rel=1e-8)
    known = np.einsum("ij,ji->i", across, np.linalg.solve(inner, across.T))
    variances = heights.var() * (KERNEL.signal - known)
    assert process.variances(PLACES) == pytest.approx(variances, rel=1e-5, abs=1e-9)
    assert process.shares(PLACES) @ scaled == pytest.approx(
        (expected - heights.mean()) / heights.std(), rel=1e-6
    )


def test_no_kernel_nearby_is_likelier() -> None:
    """Against SciPy's density of all points at once."""
    heights = np.sin(5 * POINTS[:, 0]) + 0.1 * GENERATOR.normal(size=len(POINTS))
    scaled = (heights - heights.mean()) / heights.std()

    def likelihood(kernel: Kernel) -> float:
        covariance = matern(POINTS, POINTS, kernel) + kernel.nugget * np.eye(len(POINTS))
        return float(stats.multivariate_normal(cov=covariance).logpdf(scaled))

    best = likeliest_kernel(POINTS, scaled)
    for factor in (0.8, 1.25):
        for field in ("signal", "nugget"):
            other = Kernel(best.lengths, best.signal, best.nugget)
            values = {name: getattr(other, name) for name in ("lengths", "signal", "nugget")}
            values[field] *= factor
            assert likelihood(Kernel(**values)) < likelihood(best) + 0.01, field
        moved = Kernel((best.lengths[0] * factor, best.lengths[1]), best.signal, best.nugget)
        assert likelihood(moved) < likelihood(best) + 0.01
    # The second axis says nothing, and its length is long.
    assert best.lengths[1] > 5 * best.lengths[0]


def test_a_triangulation_is_scipys_inside_and_the_nearest_point_outside() -> None:
    heights = GENERATOR.random(len(POINTS))
    found = triangulate(POINTS, heights)
    expected = interpolate.LinearNDInterpolator(POINTS, heights)(PLACES)
    inside = np.isfinite(expected)
    assert inside.sum() > 30
    assert found(PLACES)[inside] == pytest.approx(expected[inside])
    square = np.array([[0, 0], [1, 0], [0, 1], [1, 1.0]])
    plane = triangulate(square, square @ [1.0, 10.0])
    assert plane(np.array([[2.0, 0.6], [0.4, -3.0], [-1.0, -1.0]])) == pytest.approx([11, 0, 0])
    assert plane(np.array([[1.0, 0.5], [0.5, 0.0]])) == pytest.approx([6.0, 0.5])
    line = triangulate(np.array([[2.0], [1.0], [4.0]]), np.array([20.0, 10.0, 40.0]))
    assert line(np.array([[3.0], [9.0]])) == pytest.approx([30.0, 40.0])


def test_what_cannot_be_triangulated_says_why() -> None:
    flat = np.column_stack([np.arange(8.0), 2 * np.arange(8.0)])
    with pytest.raises(NotAvailableError, match="lie in a plane"):
        triangulate(flat, np.ones(8))
    with pytest.raises(NotAvailableError, match="6 parameters"):
        triangulate(np.ones((8, 6)), np.ones(8))


def test_shepard_goes_through_the_points_and_finds_planes() -> None:
    heights = 3 + POINTS @ [2.0, -5.0]
    found = shepard(POINTS, heights)
    assert found(POINTS) == pytest.approx(heights)
    assert found(PLACES) == pytest.approx(3 + PLACES @ [2.0, -5.0], abs=1e-9)
    far = np.array([[50.0, 50.0]])
    nearest = np.argmin(np.sum((POINTS - far) ** 2, axis=1))
    assert found(far) == pytest.approx([heights[nearest]])


def test_splines_find_hinges_and_a_product() -> None:
    grid = np.array([(a, b) for a in np.linspace(0, 1, 11) for b in np.linspace(0, 1, 11)])

    def surface(at):
        return 1 + 4 * np.maximum(0, at[:, 0] - 0.5) * np.maximum(0, 0.3 - at[:, 1]) + at[:, 1]

    found = fit_splines(grid, surface(grid))
    assert found(PLACES) == pytest.approx(surface(PLACES), abs=1e-6)
    assert 2 <= len(found.terms) <= 8
    noise = fit_splines(grid, GENERATOR.normal(size=len(grid)))
    assert len(noise.terms) < 12


def test_inside_is_between_and_not_merely_within_the_limits() -> None:
    triangle = np.array([[0, 0], [1, 0], [0, 1.0]])
    assert is_inside(triangle, np.array([0.3, 0.3]))
    assert is_inside(triangle, np.array([0.5, 0.5]))
    assert not is_inside(triangle, np.array([0.8, 0.8]))


def test_every_predictor_does_better_than_none() -> None:
    generator = np.random.default_rng(1)
    points = generator.random((150, 2)) * [60, 3] + [4, 0]
    sigma = np.exp(0.05 * points[:, 0] + 0.3 * points[:, 1])
    places = space_of(("a", "b"), points).places(points)
    known, unseen = np.arange(120), np.arange(120, 150)

    def error(name: str) -> float:
        predict = PREDICTORS[name](places[known], sigma[known])
        return float(np.mean(np.abs(predict(places[unseen]) / sigma[unseen] - 1)))

    errors = {name: error(name) for name in PREDICTORS}
    assert min(errors, key=errors.__getitem__) == "Gaussian process"
    assert errors["Gaussian process"] < 0.02
    # A straight line through sigma itself is off most where sigma is small.
    others = set(PREDICTORS) - {"constant", "linear regression"}
    assert all(errors[name] < 0.5 * errors["constant"] for name in others), errors


def test_parameters_that_span_much_count_by_their_logarithm() -> None:
    axis = axis_of("size", np.array([4.0, 64.0, 1024.0]))
    assert axis.is_log
    assert axis.unit(np.array([4.0, 64.0, 1024.0])) == pytest.approx([0, 0.5, 1])
    assert axis.value(0.5) == pytest.approx(64)
    plain = axis_of("x", np.array([0.0, 100.0]))
    assert not plain.is_log
    assert plain.value(0.25) == 25
    assert not axis_of("f", np.array([1.2, 3.5])).is_log


@pytest.mark.parametrize(
    ("levels", "merged"),
    [
        ([1.2, 1.8, 2.4, 3.0, 3.001], [(3.0, 3.001)]),
        ([1.0, 2.0, 3.0, 4.0], []),
        ([4, 16, 64, 256, 16384], []),  # far apart in powers, though not in steps
        ([1.0, 1.001, 1.002, 2.0, 3.0, 4.0, 5.0], [(1.0, 1.001, 1.002)]),
        ([1.0, 2.0], []),
        (np.random.default_rng(1).random(300).tolist(), []),  # drawn at random: all are near
    ],
)
def test_levels_that_are_nearly_the_same_are_merged(levels, merged) -> None:
    values = np.array(levels, dtype=float)
    count = 1 if len(levels) > 100 else 3
    assert merged_levels(axis_of("x", values), np.tile(values, count)) == merged


@pytest.mark.parametrize("shape", ["cloud", "plane", "line"])
def test_what_is_inside_the_hull_is_a_mean_of_what_was_measured(shape: str) -> None:
    generator = np.random.default_rng(4)
    unit = generator.random((30, 3))
    if shape != "cloud":
        unit[:, 2] = unit[:, 0] + unit[:, 1]
    if shape == "line":
        unit[:, 1:] = unit[:, :1]
    weights = generator.dirichlet(np.ones(30), 20)
    places = np.vstack([weights @ unit, generator.random((20, 3)) * 1.5 - 0.25, unit[:5]])
    by_program = [is_inside(unit, place) for place in places]
    assert are_inside(unit, places).tolist() == by_program
    assert any(by_program)
    assert not all(by_program)
