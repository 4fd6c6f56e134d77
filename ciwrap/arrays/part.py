"""One array of a value that may be several, before it is converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.arrays.single import one_array
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from ciwrap.arrays.single import OneArray
    from ciwrap.errors import CiwrapError

    Labels = tuple[tuple[str, str], ...]


class Part(Struct, frozen=True):
    """One array of a value, not converted yet.

    dims, unit, left_out, labels: as in OneArray, where they are known from elsewhere than the
    array. fault: why it cannot be converted, if that is known already. is_exact: whether these
    numbers say what belongs together (an index), so that no general bound is meant for them.
    """

    name: str
    value: Any
    dims: tuple[str | None, ...] = ()
    unit: str | None = None
    left_out: bool = False
    fault: CiwrapError | None = None
    labels: Labels = ()
    is_exact: bool = False

    def convert(self) -> OneArray:
        """Raises what `one_array` raises, and the fault."""
        if self.fault is not None:
            raise self.fault
        found = one_array(self.value, self.name)
        if not (self.dims or self.unit or self.left_out or self.labels):
            return found
        return replace(
            found,
            dims=self.dims or found.dims,
            unit=found.unit or self.unit,
            left_out=self.left_out or found.left_out,
            labels=(*found.labels, *self.labels),
        )

    def beside(self, name: str, value: Any, *, is_exact: bool = True) -> Part:
        """Another array that belongs to the same value, called `self.name` and this name."""
        return Part(f"{self.name}.{name}", value, left_out=self.left_out, is_exact=is_exact)
