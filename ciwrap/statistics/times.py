"""Run times as all statistics take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def as_times(values: ArrayLike) -> NDArray[np.float64]:
    """The values as doubles, along one axis. Raises UsageError without one, or unless all of them
    are finite and above 0.
    """
    times = np.asarray(values, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or not np.all(np.isfinite(times) & (times > 0)):
        raise UsageError("measurements must be finite numbers above 0")
    return times
