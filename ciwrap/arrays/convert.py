"""Values of another dtype, where the configuration allows that: converted exactly or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import Values
from ciwrap.errors import DtypeMismatchError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBERS = frozenset("biufc")


class _Changed(Values):
    """Values of another dtype, in all else as they were."""

    def __init__(self, values: Values, dtype: str) -> None:
        self._values = values
        self.dtype = dtype
        self.shape = values.shape
        self.labels = values.labels

    @property
    def masked_count(self) -> int:
        return self._values.masked_count


class ConvertedValues(_Changed):
    """Values as another dtype holds them; reading raises DtypeMismatchError for any it cannot
    hold.
    """

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        elements = self._values.read(first_element, count)
        return convert_exactly(elements, self._values.dtype, self.dtype, first_element)


class RoundedValues(_Changed):
    """Values of float32 or float64, in either byte order, as float32: rounded to nearest.

    Reading raises DtypeMismatchError for a finite one that would become infinite.
    """

    def __init__(self, values: Values, dtype: str = "<f4") -> None:
        super().__init__(values, dtype)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        elements = self._values.read(first_element, count)
        with np.errstate(over="ignore"):
            rounded: NDArray[Any] = elements.astype(self.dtype)
        lost = np.isinf(rounded) & ~np.isinf(elements)
        if lost.any():
            position = int(np.flatnonzero(lost)[0])
            raise DtypeMismatchError(
                f"element {first_element + position} = {elements[position]!s} is beyond the range"
                " of float32",
                remedy="compare both sides in one precision",
            )
        return rounded


def is_mixed_precision(one: str, other: str) -> bool:
    """Whether one dtype is float32 and the other float64."""
    return {one[1:], other[1:]} == {"f4", "f8"}


def is_bfloat16(dtype: str) -> bool:
    return dtype[1:] == "bf2"


def widen_bfloat16(elements: NDArray[Any]) -> NDArray[np.float32]:
    """The bits of bfloat16 values, in any byte order, as float32."""
    wide = elements.astype(np.uint32) << np.uint32(16)
    floats: NDArray[np.float32] = wide.view(np.float32)
    return floats


def convert_exactly(
    elements: NDArray[Any], from_dtype: str, to_dtype: str, first_element: int = 0
) -> NDArray[Any]:
    """Converts numbers to `to_dtype`. Raises DtypeMismatchError for one that it cannot hold."""
    plain = widen_bfloat16(elements) if is_bfloat16(from_dtype) else elements
    target = np.dtype(np.float32) if is_bfloat16(to_dtype) else np.dtype(to_dtype)
    kinds = (plain.dtype.kind, target.kind)
    if not (kinds[0] in _NUMBERS and kinds[1] in _NUMBERS) and kinds not in (
        ("S", "S"),
        ("U", "U"),
    ):
        raise DtypeMismatchError(f"{from_dtype} values have no exact form as {to_dtype}")
    with np.errstate(all="ignore"):
        converted = _cast(plain, target)
        back = _cast(converted, plain.dtype)
        lost = _differ(back, plain)
        if kinds[0] in "iu" and kinds[1] in "iu":
            # -1 goes to the largest unsigned number and back: only its sign tells.
            lost |= (plain < 0) != (converted < 0)
        # What a float beyond an integer's range becomes may look the same on the way back.
        if kinds[0] in "fc" and kinds[1] in "iu":
            lost |= _beyond(plain, target)
        if kinds[0] in "iu" and kinds[1] in "fc":
            lost |= _beyond(converted, plain.dtype)
        if is_bfloat16(to_dtype):
            bits = np.ascontiguousarray(converted).view(np.uint32)
            lost |= ((bits & np.uint32(0xFFFF)) != 0) & (converted == converted)
            # A NaN whose payload lies in the lower half must stay a NaN.
            bits = np.where(converted == converted, bits, np.uint32(0x7FC00000))
            converted = (bits >> np.uint32(16)).astype(to_dtype[0] + "u2")
    if lost.any():
        position = int(np.flatnonzero(lost)[0])
        raise DtypeMismatchError(
            f"element {first_element + position} = {elements[position]!s} ({from_dtype}) has no"
            f" exact form as {to_dtype}"
        )
    return np.ascontiguousarray(converted)


def _beyond(numbers: NDArray[Any], integers: np.dtype[Any]) -> NDArray[np.bool_]:
    """Which floats, or real parts, lie outside the range of an integer type; NaN does."""
    limits = np.iinfo(integers)
    wide = numbers.real.astype(np.float64)
    inside: NDArray[np.bool_] = (wide >= float(limits.min)) & (wide < float(limits.max + 1))
    return ~inside


def _differ(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements are not the same, NaN being the same as NaN; complex ones part by part."""
    if ours.dtype.kind == "c":
        return _differ(ours.real, theirs.real) | _differ(ours.imag, theirs.imag)
    differ: NDArray[np.bool_] = (ours != theirs) & ~((ours != ours) & (theirs != theirs))
    return differ


def _cast(elements: NDArray[Any], target: np.dtype[Any]) -> NDArray[Any]:
    if elements.dtype.kind == "c" and target.kind != "c":
        # The imaginary part would be dropped silently; what has one does not come back equal.
        elements = elements.real
    return elements.astype(target)


def as_doubles(elements: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Numbers of any dtype as doubles, rounded where they do not fit; complex ones as two each."""
    if is_bfloat16(dtype):
        elements = widen_bfloat16(elements)
    if elements.dtype.kind == "c":
        elements = elements.view(elements.real.dtype)
    return elements.astype(np.float64)
