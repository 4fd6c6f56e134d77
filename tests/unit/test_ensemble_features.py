"""Features of a run's variables, against NumPy over whole arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.base.errors import NotComparableError
from ciwrap.project.config import load_text
from ciwrap.studies.ensemble import FeatureChoice, features_of

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.project.settings import Check

EVERYTHING = ("mean", "std", "lag")


def check_of(folder: Path, more: str = "") -> Check:
    outputs = '"out/iter_{iteration:d}/{name}.npy"'
    text = f"checks: {{fields: {{outputs: {outputs}{more}}}}}\n"
    return load_text(text, folder / "ciwrap.yaml").checks[0]


def save(folder: Path, iteration: int, name: str, array: np.ndarray) -> None:
    path = folder / f"out/iter_{iteration}/{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def blocks_of(flat: np.ndarray, count: int) -> list[np.ndarray]:
    """Element e of n belongs to block e * count // n."""
    return [flat[np.arange(flat.size) * count // flat.size == block] for block in range(count)]


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i4", "<c16"])
@pytest.mark.parametrize(("size", "count"), [(7, 1), (10, 3), (1001, 8), (700_001, 3)])
def test_features_are_those_of_whole_arrays(
    tmp_path: Path, dtype: str, size: int, count: int
) -> None:
    """Of two checkpoints together; the largest array is read in several slabs."""
    generator = np.random.default_rng(size)
    arrays = [(100 + 3 * generator.normal(size=size)).astype(dtype) for _ in range(2)]
    for iteration, array in enumerate(arrays):
        save(tmp_path, iteration, "x", array)
    found = features_of(check_of(tmp_path), FeatureChoice(EVERYTHING, count)).values
    parts = []
    for array in arrays:
        plain = array.view(array.real.dtype) if dtype == "<c16" else array
        parts.append(blocks_of(plain.astype(np.float64), count))
    for block in range(count):
        both = np.concatenate([part[block] for part in parts])
        products = np.concatenate([part[block][1:] * part[block][:-1] for part in parts])
        suffix = f", block {block + 1} of {count}" if count > 1 else ""
        assert found[f"x mean{suffix}"] == pytest.approx(both.mean(), rel=1e-12)
        assert found[f"x std{suffix}"] == pytest.approx(both.std(), rel=1e-9)
        assert found[f"x lag{suffix}"] == pytest.approx(products.mean(), rel=1e-12)
    assert len(found) == 3 * count


def test_a_small_scatter_about_a_large_mean_is_not_lost(tmp_path: Path) -> None:
    array = 1e9 + np.random.default_rng(1).normal(size=700_001)
    save(tmp_path, 0, "x", array)
    found = features_of(check_of(tmp_path), FeatureChoice(("std",))).values
    assert found["x std"] == pytest.approx(array.std(), rel=1e-6)


def test_what_has_no_features(tmp_path: Path) -> None:
    save(tmp_path, 5, "x", np.arange(3.0))
    save(tmp_path, 5, "flags", np.ones(3, bool))
    save(tmp_path, 5, "words", np.array(["a", "b"]))
    save(tmp_path, 5, "left_out", np.ones(3))
    save(tmp_path, 1, "early", np.ones(3))
    save(tmp_path, 1, "x", np.full(3, 99.0))
    choice = FeatureChoice(("mean",), from_iteration=2)
    assert features_of(check_of(tmp_path, ", ignore: [left_out]"), choice).values == {"x mean": 1.0}
    with pytest.raises(NotComparableError, match="no numbers"):
        features_of(check_of(tmp_path), FeatureChoice(from_iteration=9))


def test_fewer_elements_than_blocks(tmp_path: Path) -> None:
    save(tmp_path, 0, "x", np.arange(2.0))
    found = features_of(check_of(tmp_path), FeatureChoice(EVERYTHING, 5)).values
    assert {name: value for name, value in found.items() if "mean" in name} == {
        "x mean, block 1 of 5": 0.0,
        "x mean, block 3 of 5": 1.0,
    }


def test_values_that_are_not_finite_are_told_of(tmp_path: Path) -> None:
    save(tmp_path, 0, "x", np.array([1.0, np.nan]))
    with pytest.raises(NotComparableError, match="x mean is not finite"):
        features_of(check_of(tmp_path), FeatureChoice())
