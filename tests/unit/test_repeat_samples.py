"""What is kept of each run: a bounded sample, and how it moves."""

from __future__ import annotations

import numpy as np
import pytest

from ciwrap.arrays.values import ArrayValues
from ciwrap.statistics.factors import bits_of_spread, common_bits
from ciwrap.studies.repeat.measure import Movement, Spread, has_zeros, read_sample, sample_size


@pytest.mark.parametrize("variables", [0, 1, 48, 10_000, 10**7])
def test_the_sample_of_everything_is_bounded(variables: int) -> None:
    size = sample_size(variables)
    assert 256 <= size <= 16_384
    assert size * variables <= max(1 << 21, 256 * variables)


def test_small_variables_are_sampled_whole() -> None:
    array = np.arange(12.0).reshape(3, 4)
    sample = read_sample(ArrayValues(array), 100)
    assert sample is not None
    assert sample.tolist() == array.reshape(-1).tolist()


def test_large_ones_at_even_steps_from_end_to_end() -> None:
    array = np.arange(1_000_000, dtype=np.int32)
    sample = read_sample(ArrayValues(array), 1024)
    assert sample is not None
    assert sample.size == 1024
    assert (sample[0], sample[-1]) == (0, 999_999)
    assert np.diff(sample[::64]).min() > 60_000


@pytest.mark.parametrize("array", [np.array(["a", "b"]), np.array([True, False]), np.array([b"x"])])
def test_what_is_no_number_has_no_sample(array: np.ndarray) -> None:
    assert read_sample(ArrayValues(array), 100) is None


def test_complex_numbers_are_two_each() -> None:
    sample = read_sample(ArrayValues(np.array([1 + 2j, 3 - 4j])), 100)
    assert sample is not None
    assert sample.tolist() == [1, 2, 3, -4]


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2"])
def test_zeros_are_found_anywhere(dtype: str) -> None:
    array = np.ones(3_000_000, dtype=dtype)
    assert not has_zeros(ArrayValues(array))
    array[-1] = 0
    assert has_zeros(ArrayValues(array))


def test_bfloat16_is_read_as_the_numbers_it_holds() -> None:
    bits = (np.array([1.5, -2.0, 0.0], dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    values = ArrayValues(bits, "<bf2")
    sample = read_sample(values, 10)
    assert sample is not None
    assert sample.tolist() == [1.5, -2.0, 0.0]
    assert has_zeros(values)
    assert has_zeros(ArrayValues(np.array([0x3FC0, 0x8000], dtype=np.uint16), "<bf2"))  # -0.0
    assert not has_zeros(ArrayValues(bits[:2], "<bf2"))


def test_zeros_are_found_in_parts_of_complex_numbers_and_with_a_sign() -> None:
    assert has_zeros(ArrayValues(np.array([1 + 2j, 3 + 0j])))
    assert not has_zeros(ArrayValues(np.array([1 + 2j, 3 - 4j])))
    assert has_zeros(ArrayValues(np.array([1.0, -0.0])))


def test_movement_adds_up_as_numpy_does_over_all_runs() -> None:
    """Seed 4: what is kept run by run is what all runs together give."""
    generator = np.random.default_rng(4)
    reference = generator.uniform(1, 2, 50)
    runs = reference * (1 + 1e-6 * generator.normal(size=(7, 50)))
    movement = Movement(reference)
    for number, run in enumerate(runs, 2):
        movement.add(number, run)
    z = (runs - reference) / reference
    assert movement.relative_spread == pytest.approx(z.std(axis=0, ddof=1), rel=1e-9)
    assert movement.largest_relative == pytest.approx(np.abs(z).max(axis=0), rel=1e-12)
    assert movement.norms[3] == pytest.approx(np.linalg.norm(runs[1] - reference), rel=1e-12)


def test_movement_on_a_circle_takes_the_short_way() -> None:
    movement = Movement(np.array([0.1, 5.0]), period=10.0)
    movement.add(2, np.array([9.9, 5.5]))
    assert movement.norms[2] == pytest.approx(np.hypot(0.2, 0.5))


def test_values_that_are_no_numbers_move_nothing() -> None:
    movement = Movement(np.array([np.nan, np.inf, 0.0, 2.0]))
    movement.add(2, np.array([np.nan, np.inf, 0.5, 2.0]))
    movement.add(3, None)
    assert movement.norms == {2: 0.5, 3: 0.0}
    assert movement.largest_relative.tolist() == [0.0, 1e150]  # of both that are finite


@pytest.mark.filterwarnings("error")
def test_no_scale_hides_a_movement() -> None:
    """Differences that no double holds counted as none, and all digits were said to be common."""
    reference = np.array([1e308, 1e200, 1e-170, 5e-324, 2.0])
    movement = Movement(reference)
    movement.add(2, np.array([-1e308, -1e200, 3e-170, 1e300, 2.0]))
    movement.add(3, reference)
    assert movement.norms[2] == np.inf
    assert movement.largest_relative.tolist() == [1e150, 2.0, pytest.approx(2.0), 1e150, 0.0]
    assert np.isfinite(movement.relative_spread).all()
    small = Movement(reference[2:3])
    small.add(2, np.array([3e-170]))
    assert small.norms[2] == pytest.approx(2e-170)
    Spread().add(np.array([1e308, -1e308]))


@pytest.mark.parametrize("mean", [0.0, 5.0, -1e6])
def test_the_spread_of_several_checkpoints_is_that_of_all_values(mean: float) -> None:
    values = mean + np.random.default_rng(5).normal(size=(3, 1000))
    spread = Spread()
    for part in values:
        spread.add(part)
    assert spread.deviation == pytest.approx(values.std(), rel=1e-3)


def test_a_constant_spreads_as_far_as_it_is_large() -> None:
    spread = Spread()
    spread.add(np.full(100, -3.0))
    assert spread.deviation == pytest.approx(3.0)
    assert spread.magnitude == 3.0


def test_nothing_spreads_nothing() -> None:
    spread = Spread()
    spread.add(np.array([np.nan, np.inf]))
    assert (spread.deviation, spread.magnitude, spread.nan_count) == (0.0, None, 1)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200, 1e300])
def test_a_spread_whose_square_is_no_double(scale: float) -> None:
    """In parts, as checkpoints are, and against NumPy at a scale of 1. Seed 5."""
    parts = [np.random.default_rng(5).normal(mean, 1.0, 500) for mean in (0.0, 2.0, 2.0)]
    spread = Spread()
    for part in parts:
        spread.add(part * scale)
    expected = float(np.concatenate(parts).std())
    assert spread.deviation / scale == pytest.approx(expected, rel=1e-12)


def test_what_is_0_in_the_reference_and_moves_has_no_digit_in_common() -> None:
    """What is 0 in every run, or no number in the reference, tells nothing of digits."""
    movement = Movement(np.array([0.0, 0.0, 1.0, np.nan, np.inf]))
    for run, moved in ((2, 0.0), (3, 1e-3), (4, 0.0)):
        movement.add(run, np.array([moved, 0.0, 1 + 2.0**-20, 5.0, np.inf]))
    assert movement.largest_relative.tolist() == [2.0**-20, 1e150]
    assert common_bits(movement.largest_relative[None, :]).tolist() == [20, 0]
    assert movement.relative_spread[1] > 1
    assert bits_of_spread(movement.relative_spread, movement.runs)[1] == 0


@pytest.mark.filterwarnings("error")
def test_the_spread_of_the_largest_doubles_is_theirs() -> None:
    """A sum of theirs is no double: the spread was infinite, and so no run far from another."""
    generator = np.random.default_rng(6)
    parts = [1e308 * generator.uniform(0.5, 1.7, 5000) for _ in range(3)]
    spread = Spread()
    for part in (*parts, -parts[0]):
        spread.add(part)
    everything = np.concatenate([*parts, -parts[0]]) / 1e308
    assert spread.deviation / 1e308 == pytest.approx(everything.std(), rel=1e-12)
    assert spread.mean / 1e308 == pytest.approx(everything.mean(), rel=1e-12)
    assert spread.magnitude is not None
    assert spread.magnitude / 1e308 == pytest.approx(np.median(np.abs(everything)), rel=0.01)
