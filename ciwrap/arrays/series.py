"""What is known of values that were found one by one in a text: their steps, and their places."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The label of what stands before the first step of a log.
NO_STEP = -1


class PlaceInText(Struct, frozen=True):
    """Where a number stands. line, column: from 1, of its first byte. text: as it is printed."""

    line: int
    column: int
    text: str
    byte_count: int = 0


class SeriesFacts(ABC):
    """What a text says of a variable's elements besides their values.

    steps: the label of each, None where they are only counted. steps_name: what the variable is
    called that holds them, by a source as in its file, by values as in the check. step_size: what
    one step adds to its values. printed_digits: significant digits of the number that is printed
    with the most. printed_exponent: the smallest unit that is printed is 10 to this; None if that
    is not known.
    """

    steps: NDArray[np.int64] | None
    steps_name: str | None = None
    step_size: float = 1.0
    printed_digits: int
    printed_exponent: int | None

    @abstractmethod
    def place(self, element: int) -> PlaceInText | None:
        """Where an element stands; None if that is not known."""


class StoredSteps(SeriesFacts):
    """Steps alone: of a golden, or of the rows of a table."""

    printed_digits = 0
    printed_exponent = None

    def __init__(self, steps: NDArray[np.int64] | None) -> None:
        self.steps = steps

    def place(self, element: int) -> PlaceInText | None:  # noqa: ARG002 - it keeps steps only
        return None
