"""The chart of an ensemble's verdict names each feature, however long the variable's name is."""

from __future__ import annotations

import re

import pytest

from ciwrap.model import Shift
from ciwrap.report.charts import shift_bars


def labels_of(*features: str) -> list[str]:
    bars = str(shift_bars([Shift(feature, 3.0) for feature in features]))
    return re.findall(r'text-anchor="end"[^>]*>([^<]*)</text>', bars)


@pytest.mark.parametrize(
    "name", ["x", "temperature", "potential_temperature_at_the_surface", "a b"]
)
@pytest.mark.parametrize("blocks", [1, 4, 128])
def test_features_of_one_variable_are_told_apart(name: str, blocks: int) -> None:
    features = [
        f"{name} {statistic}" + (f", block {number} of {blocks}" if blocks > 1 else "")
        for statistic in ("mean", "std", "lag")
        for number in range(1, min(4, blocks) + 1)
    ]
    labels = labels_of(*features)
    assert len(set(labels)) == len(labels) == len(features)
    assert all(len(label) <= 34 for label in labels)
    if len(features[0]) <= 34:
        assert labels == features
