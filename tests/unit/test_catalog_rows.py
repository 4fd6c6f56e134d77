"""Rows of several ranks as one variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.arrays.values import Values
from ciwrap.base.errors import AlignmentError
from ciwrap.formats.rows import AlignedValues, RowOrder

if TYPE_CHECKING:
    from ciwrap.arrays.values import Labels


class Rows(Values):
    """Two rows of a rank."""

    dtype = "<f8"
    shape = (2,)

    def __init__(self, **labels: str) -> None:
        self.labels: Labels = tuple(sorted(labels.items()))

    def read(self, first_element: int, count: int) -> Any:
        return np.arange(2.0)[first_element : first_element + count]


ORDER = RowOrder("id", np.arange(4), np.array([3, 0, 2, 1]), (2, 2))


def test_rows_of_ranks_in_the_order_of_their_ids() -> None:
    values = AlignedValues([Rows(units="K"), Rows(units="K")], ORDER)
    assert values.read(0, 4).tolist() == [1.0, 0.0, 0.0, 1.0]
    assert values.labels == (("units", "K"),)


@pytest.mark.parametrize(
    ("other", "told"), [({"units": "C"}, "units 'C' on another"), ({}, "no labels on another")]
)
def test_rows_of_ranks_that_mean_something_else(other: dict[str, str], told: str) -> None:
    """The labels of the first rank are those of the whole, so another rank's would go unseen."""
    with pytest.raises(AlignmentError, match=f"has units 'K' on one rank, {told}"):
        AlignedValues([Rows(units="K"), Rows(**other)], ORDER)
