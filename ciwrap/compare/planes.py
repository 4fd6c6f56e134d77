"""What pictures and views have in common: a plane of an array, its cells and its scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.details import IndexBox

# A scale that leaves out a hundredth of the values at each end, if they are this much further away.
_FAR = 10.0
# Of so few values none is left out.
_FEW = 500
# So often at least a value stands in an array that stands for something else.
_FEWEST_FILLED = 3


class Cells(Struct, frozen=True):
    """The element that stands for each cell of a plane, the one of the largest share.

    at: rows and columns of these elements. tops, lefts: where cells begin, the end after the last.
    """

    at: tuple[NDArray[np.int64], NDArray[np.int64]]
    tops: NDArray[np.int64]
    lefts: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.tops) - 1, len(self.lefts) - 1

    @property
    def most_elements(self) -> int:
        """How many elements a cell is of, at most."""
        return int(np.diff(self.tops).max() * np.diff(self.lefts).max())


class Scale(Struct, frozen=True):
    """low, high: what is drawn lies between these. least, greatest: all finite values do."""

    low: float
    high: float
    least: float
    greatest: float

    @property
    def is_cut(self) -> bool:
        return self.least < self.low or self.greatest > self.high

    def levels(self, values: NDArray[np.float64], most: int) -> NDArray[np.uint16]:
        """0 for low to `most` for high, what lies off the scale at its ends; most + 1 for what is
        not finite.
        """
        # Halved first: the span of two huge numbers overflows.
        low, span = self.low / 2, self.high / 2 - self.low / 2
        with np.errstate(all="ignore"):
            scaled = (values / 2 - low) / span * most if span > 0 else np.zeros(values.shape)
            levels = np.where(np.isfinite(values), np.clip(np.rint(scaled), 0, most), most + 1)
        return levels.astype("<u2")


def scale_of(*sides: NDArray[np.float64]) -> Scale | None:
    """The scale of all values together; None if none is finite. It leaves out a hundredth at each
    end if these are far away, and a value that stands apart from all others.
    """
    finite = np.concatenate([side[np.isfinite(side)] for side in sides])
    if finite.size == 0:
        return None
    return Scale(*_robust_scale(finite), float(finite.min()), float(finite.max()))


def value_apart(values: NDArray[np.float64]) -> tuple[float, int] | None:
    """The value that stands in several elements, far beyond all others, as a fill value does, and
    in how many; None if there is none.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    value = float(finite[np.argmax(np.abs(finite))])
    count = int(np.count_nonzero(finite == value))
    others = np.abs(finite[finite != value])
    if count < _FEWEST_FILLED or not others.size or abs(value) < 1e3 * float(others.max()):
        return None
    return value, count


def _robust_scale(finite: NDArray[np.float64]) -> tuple[float, float]:
    """The least and greatest value; without a hundredth at each end if these are far away."""
    least, greatest = float(finite.min()), float(finite.max())
    if finite.size < _FEW:
        return least, greatest
    # Of a sample, and halved: the span of two huge numbers overflows.
    low, high = (float(one) for one in np.quantile(finite / 2, (0.01, 0.99)) * 2)
    if high > low and greatest / 2 - least / 2 > _FAR * (high / 2 - low / 2):
        return low, high
    common, counts = np.unique(finite, return_counts=True)
    # One value that stands in many elements and far away from all others: a fill value.
    far = common[np.argmax(counts)]
    others = finite[finite != far]
    if others.size:
        low, high = float(others.min()), float(others.max())
        if greatest / 2 - least / 2 > _FAR * (high / 2 - low / 2) and high > low:
            return low, high
    return least, greatest


def plane_axes(
    shape: tuple[int, ...], wide: list[int], box: IndexBox | None
) -> tuple[int | None, int]:
    """The two axes along which the differing elements spread most; the last ones if unknown."""
    if len(wide) == 1:
        return None, wide[0]

    def spread(axis: int) -> tuple[float, int]:
        if box is None or box.last_index[axis] == box.first_index[axis]:
            return (0.0, axis)
        return ((box.last_index[axis] - box.first_index[axis] + 1) / shape[axis], axis)

    row, column = sorted(sorted(wide, key=spread)[-2:])
    return row, column


def worst_cells(shares: NDArray[np.float64], most: tuple[int, int]) -> Cells:
    """The cells of a plane, each with the place of its first largest share (NaN is the largest);
    most: rows and columns at most.
    """
    rows, columns = (min(pair) for pair in zip(shares.shape, most, strict=True))
    tops = np.arange(rows + 1) * shares.shape[0] // rows
    lefts = np.arange(columns + 1) * shares.shape[1] // columns
    best = np.empty((rows, shares.shape[1]), np.int64)
    for i in range(rows):
        best[i] = tops[i] + shares[tops[i] : tops[i + 1]].argmax(axis=0)
    largest = np.take_along_axis(shares, best, axis=0)
    peaks = np.repeat(np.maximum.reduceat(largest, lefts[:-1], axis=1), np.diff(lefts), axis=1)
    places = np.where((largest == peaks) | np.isnan(largest), np.arange(shares.shape[1]), lefts[-1])
    across = np.minimum.reduceat(places, lefts[:-1], axis=1)
    down = np.take_along_axis(best, across, axis=1)
    return Cells((down, across), tops, lefts)


def drawable(values: NDArray[Any], part: str) -> NDArray[np.float64]:
    """The values as doubles, or this part of complex ones."""
    if values.dtype.kind == "c":
        values = values.imag if part == "imaginary" else values.real
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64)
