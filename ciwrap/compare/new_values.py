"""What a new run holds in suspect chunks, told without the golden's data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.compare.parts import suspect_pieces
from ciwrap.compare.shares import as_numbers
from ciwrap.late import numpy as np
from ciwrap.model import NewValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values

# Elements that are looked at: a second or so.
MOST_ELEMENTS = 1 << 22


def new_values_of(
    parameters: _core.TreeParameters, new: Values, leaves: NDArray[np.int64]
) -> NewValues | None:
    """Counts and extremes of the new numbers in suspect chunks; None for strings and where that
    would be too much to read. Raises CiwrapError for values that cannot be read.
    """
    pieces = list(suspect_pieces(parameters, new, leaves))
    if sum(count for _, count in pieces) > MOST_ELEMENTS or parameters.dtype[1] in "SU":
        return None
    parts = [_numbers(parameters, new, first, count) for first, count in pieces]
    numbers = np.concatenate(parts)
    finite = numbers[np.isfinite(numbers)]
    with np.errstate(all="ignore"):  # the sum of huge numbers
        mean = float(np.mean(finite)) if finite.size else None
    return NewValues(
        number_count=int(numbers.size),
        nan_count=int(np.count_nonzero(np.isnan(numbers))),
        infinity_count=int(np.count_nonzero(np.isinf(numbers))),
        least=float(finite.min()) if finite.size else None,
        greatest=float(finite.max()) if finite.size else None,
        mean=mean,
    )


def _numbers(
    parameters: _core.TreeParameters, new: Values, first: int, count: int
) -> NDArray[np.float64]:
    found = as_numbers(new.read(first, count).reshape(-1), parameters.dtype)
    assert found is not None, "strings were left out"
    if found.dtype.kind == "c":
        found = np.stack((found.real, found.imag))
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return found.astype(np.float64).reshape(-1)
