"""Both sides of a variable that differs, as hypotheses look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.details import Explanation
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.details import Cause

# What a hypothesis says has to stand out of what the bound leaves open by this factor.
CLEAR = 8.0
# Of the differing elements, so many at least have to be as it says.
MOST_OF_THEM = 0.95


class Difference(Struct, frozen=True, dict=True):
    """A variable that differs. golden, new: all of it, in its shape, as numbers of the machine's
    byte order. positions: of the differing elements, ascending, in C order.
    """

    golden: NDArray[Any]
    new: NDArray[Any]
    positions: NDArray[np.int64]
    parameters: _core.TreeParameters

    @property
    def count(self) -> int:
        return int(self.positions.size)

    @property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Golden and new of the differing elements, as float64 or complex128."""
        wide = np.complex128 if self.golden.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return (
                self.golden.reshape(-1)[self.positions].astype(wide),
                self.new.reshape(-1)[self.positions].astype(wide),
            )

    def slack(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """What the bound leaves open around values: its width, or some steps of their type."""
        one = self.parameters
        with np.errstate(all="ignore"):
            size = np.abs(values).astype(np.float64)
            steps = 4 * self.spacing(values)
            if one.ulps:
                is_whole = self.golden.dtype.kind in "iu"
                return one.ulps * np.maximum(steps / 4, 1.0 if is_whole else 0.0)
            if one.kind == "exact":
                return steps
            found: NDArray[np.float64] = np.maximum(one.atol + one.rtol * size, steps)
            return found

    def spacing(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """How far apart numbers of their type are at values; 0 of whole numbers."""
        kind = self.golden.real.dtype
        with np.errstate(all="ignore"):
            size = np.abs(values)
            if kind.kind != "f":
                return np.zeros(size.shape)
            found: NDArray[np.float64] = np.spacing(size.astype(kind)).astype(np.float64)
        return found

    def is_most(self, held: NDArray[np.bool_]) -> bool:
        """Whether a hypothesis holds on so many of the elements it speaks of that it is told."""
        return bool(held.size) and int(np.count_nonzero(held)) >= MOST_OF_THEM * held.size


def whole_or_short(value: float) -> str:
    """A number as people write it into a configuration."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def told(difference: Difference, cause: Cause, held: NDArray[np.bool_]) -> Explanation | None:
    """An explanation, if it holds on so many elements that it is told."""
    if not difference.is_most(held):
        return None
    return Explanation(cause, int(np.count_nonzero(held)), difference.count)
