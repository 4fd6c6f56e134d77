"""The table of bounds that the recording library reads."""

from __future__ import annotations

import pytest

from ciwrap.errors import UsageError
from ciwrap.model import SettingsLayer
from ciwrap.native.bounds_table import bounds_table

ROUNDED = (1 << 53) + 1


@pytest.mark.parametrize("value", [ROUNDED, -ROUNDED, (1 << 63) - 1, (1 << 64) - 1])
def test_a_fill_value_that_a_double_rounds_is_refused(value: int) -> None:
    """2^53 would be the fill value in the place of 2^53 + 1."""
    with pytest.raises(UsageError, match=f"the fill value {value} of '\\*' is a whole number"):
        bounds_table(None, SettingsLayer.of({"fill_values": (value,)}))


@pytest.mark.parametrize("value", [1 << 53, -(1 << 62), -9999, 1e20])
def test_a_fill_value_that_a_double_holds_is_in_the_table(value: float) -> None:
    table = bounds_table(None, SettingsLayer.of({"fill_values": (value,)}))
    assert table is not None
    (line,) = table.splitlines()[1:]
    assert float(line.split("\t")[5]) == value
