"""What is measured of repeated runs, against plain NumPy over all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.formats.catalog import Rules
from ciwrap.formats.find_outputs import find_in
from ciwrap.golden.trees import Resources
from ciwrap.model import ErrorBound, VariableSettings
from ciwrap.studies.repeat.measure import Measurer, RunOutputs
from ciwrap.studies.repeat.summary import names_that_vary, summarise

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 5
SERIAL = Resources(backend="serial", threads=1)


def measured(folder: Path, bound: ErrorBound) -> Measurer:
    rules = Rules(lambda identity, dtype: VariableSettings(bound=bound), lambda identity: False)
    measurer = Measurer("runs", rules, resources=SERIAL)
    for number in range(1, RUNS + 1):
        run = folder / f"run_{number}"
        assert measurer.add(number, RunOutputs(run, find_in(run))) is None
    measurer.look_for_zeros(names_that_vary(measurer.measured))
    return measurer


def write_runs(folder: Path, seed: int, dtype: str) -> np.ndarray:
    """Two iterations and two ranks of one variable: shape (runs, iterations, ranks, elements).

    Some runs are copies of others, in whole or of one rank, so that classes have something to tell.
    """
    generator = np.random.default_rng(seed)
    length = int(generator.integers(1, 3000))
    reference = generator.uniform(-2, 2, (2, 2, length))
    runs = np.stack(
        [reference + 10.0 ** generator.integers(-9, -2) * generator.normal(size=reference.shape)
         * (generator.random(reference.shape) < 0.5) for _ in range(RUNS)]
    ).astype(dtype)  # fmt: skip
    for target in range(1, RUNS):
        source = int(generator.integers(0, target))
        if generator.random() < 0.3:
            runs[target] = runs[source]
        elif generator.random() < 0.5:
            runs[target, 0] = runs[source, 0]
    for number, run in enumerate(runs, 1):
        for iteration, rank in np.ndindex(2, 2):
            path = folder / f"run_{number}/iter_{10 * iteration}/rank_{rank}/x.npy"
            path.parent.mkdir(parents=True)
            np.save(path, run[iteration, rank])
    return runs


def classes_of(values: np.ndarray) -> tuple[int, ...]:
    """Equal numbers for equal values, counted from 1 in the order of the runs."""
    seen: list[np.ndarray] = []
    found = []
    for one in values:
        same = [n for n, other in enumerate(seen, 1) if np.array_equal(one, other)]
        if not same:
            seen.append(one)
        found.append(same[0] if same else len(seen))
    return tuple(found)


@pytest.mark.parametrize("bound", [ErrorBound(), ErrorBound(atol=1e-6), ErrorBound(rtol=1e-3)])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f8"])
@pytest.mark.parametrize("seed", range(6))
def test_measures_are_those_of_numpy(
    tmp_path: Path, seed: int, dtype: str, bound: ErrorBound
) -> None:
    runs = write_runs(tmp_path, seed, dtype)
    (one,) = summarise("runs", measured(tmp_path, bound).measured, range(1, RUNS + 1))
    wide = runs.astype(np.float64)
    differences = np.abs(wide[1:] - wide[0])
    assert one.classes == classes_of(runs)
    assert one.distinct_results == len(set(classes_of(runs)))
    assert one.max_abs == differences.max()
    if differences.max() == 0:
        return
    nonzero = np.broadcast_to(wide[0] != 0, differences.shape)
    relative = differences[nonzero] / np.abs(np.broadcast_to(wide[0], differences.shape)[nonzero])
    assert one.max_rel == pytest.approx(relative.max(), rel=1e-12)
    shares = (runs[1:] != runs[0]).mean(axis=-1)
    assert one.varying_share == pytest.approx(shares.max(), abs=1e-12)
    for position, row in enumerate(one.by_iteration):
        here = differences[:, position]
        assert row.iteration == 10 * position
        assert row.distinct_results == len(set(classes_of(runs[:, position])))
        assert row.max_abs == here.max()
        sizes = np.sqrt(np.mean(here**2, axis=(1, 2)))
        assert row.typical == pytest.approx(np.median(sizes), rel=1e-9, abs=1e-300)
