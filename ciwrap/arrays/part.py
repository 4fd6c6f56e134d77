"""One array of a value that may be several, before it is converted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.single import missing, one_array

if TYPE_CHECKING:
    from ciwrap.arrays.single import OneArray

    Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One array of a value, not converted yet.

    dims, unit, left_out, labels: as in OneArray, where they are known from elsewhere than the
    array. has_missing: whether some elements are missing that the array has numbers for. is_exact:
    whether these numbers say what belongs together (an index), so that no general bound is meant
    for them.
    """

    name: str
    value: Any
    dims: tuple[str | None, ...] = ()
    unit: str | None = None
    left_out: bool = False
    has_missing: bool = False
    labels: Labels = ()
    is_exact: bool = False

    def convert(self) -> OneArray:
        """Raises what `one_array` raises."""
        if self.has_missing:
            raise missing(self.value, self.name)
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
