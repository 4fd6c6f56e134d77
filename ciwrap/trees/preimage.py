"""Which values a cell's code stands for: the inverse of docs/reference/cell-codes.md, by bisection.

Codes and residues taken together grow with the value, so the least and the greatest value that a
pair of them stands for are found by halving the range of all values of the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# Two codes of what is not rounded, above the lowest integer of the code's width (section 4).
_MISSING, _ZERO = 1, 2


def scalar_parameters(parameters: _core.TreeParameters) -> _core.TreeParameters:
    """The same bound for one scalar: a part of a complex number is a float of half the bytes."""
    dtype = parameters.dtype
    if dtype[1] == "c":
        dtype = f"{dtype[0]}f{int(dtype[2:]) // 2}"
    return _core.TreeParameters(
        dtype,
        atol=parameters.atol,
        rtol=parameters.rtol,
        ulps=parameters.ulps,
        residue_levels=parameters.requested_residue_levels,
        equal_nan=parameters.equal_nan,
        fill_values=parameters.fill_values,
    )


class Preimage(Struct, frozen=True):
    """The values that a code and a residue stand for: all of the type from the first to the last.

    values: the two ends, in the type's storage dtype. missing: it is a fill value, and the ends are
    the first one of these.
    """

    values: NDArray[Any]
    is_missing: bool = False


class Cells:
    """Goes from codes to values, for the parameters of one scalar. Not for bytes and text."""

    def __init__(self, parameters: _core.TreeParameters) -> None:
        self.parameters = parameters
        # Fill values have a code of their own, in the middle of all others.
        self._plain = _core.TreeParameters(
            parameters.dtype,
            atol=parameters.atol,
            rtol=parameters.rtol,
            ulps=parameters.ulps,
            residue_levels=parameters.requested_residue_levels,
        )
        self._storage = np.dtype(storage_dtype(parameters.dtype))
        self._bits = 8 * parameters.scalar_bytes
        self._letter = parameters.dtype[1]
        self._is_float = self._letter in "fb" and parameters.dtype[1:] != "b1"
        self._infinity = {"f2": 0x7C00, "bf2": 0x7F80, "f4": 0x7F800000, "f8": 0x7FF0 << 48}.get(
            parameters.dtype[1:], 0
        )

    @property
    def is_whole_number(self) -> bool:
        return not self._is_float

    def stored(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Bytes as scalars of the type."""
        return np.frombuffer(data.tobytes(), dtype=self._storage)

    def values_of(self, code: int, residue: int) -> Preimage:
        """What a golden's code and residue stand for. Raises ValueError if no value has them."""
        lowest = -(1 << (8 * self.parameters.code_bytes - 1))
        if self.parameters.kind == "exact":
            mask = (1 << self._bits) - 1
            bits = np.array([code & mask] * 2, dtype=f"<u{self._bits // 8}")
            values = self._stored(bits)
            return Preimage(values, is_missing=self._is_first_fill(values[0]))
        if self._is_float and code == lowest:
            return Preimage(self._of_images([self._infinity + 1] * 2))
        if code == lowest + _MISSING and self.parameters.fill_values:
            first = self.parameters.fill_values[0]
            return Preimage(np.array([first, first]).astype(self._storage), is_missing=True)
        if self.parameters.kind == "relative" and code == lowest + _ZERO:
            return Preimage(self._of_images([0, 0]))
        if (
            self.parameters.kind == "steps"
            and self._is_float
            and code in (-lowest - 1, -lowest - 2)
        ):
            return Preimage(
                self._of_images([self._infinity * (1 if code == -lowest - 1 else -1)] * 2)
            )
        return self._between(code, residue)

    def _is_first_fill(self, value: Any) -> bool:
        """Whether a value is what every fill value is, where numbers are not rounded."""
        fills = self.parameters.fill_values
        if not fills:
            return False
        first = np.array(fills[0]).astype(self._storage)
        return bool(value == first or (value != value and first != first))

    def turning_points(self, ends: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """The ends of a range of values, and zero and the new value where they lie between."""
        least, greatest = (self._place(one) for one in ends)
        if least is None or greatest is None:
            return ends
        inside = [0, self._place(new[0])]
        places = [one for one in inside if one is not None and least < one < greatest]
        return self._of_images([least, greatest, *places])

    def _place(self, value: Any) -> int | None:
        """The place of a number in the type's order; None for NaN."""
        stored = np.array([value], dtype=self._storage).tobytes()
        bits = int.from_bytes(stored, "big" if self.parameters.dtype[0] == ">" else "little")
        sign = 1 << (self._bits - 1)
        if self._is_float:
            magnitude = bits & (sign - 1)
            if magnitude > self._infinity:
                return None
            return -magnitude if bits & sign else magnitude
        return bits if self._letter == "u" else (bits ^ sign) - sign

    def _between(self, code: int, residue: int) -> Preimage:
        wanted = (code, residue)
        first = self._first(lambda key: key >= wanted)
        past = self._first(lambda key: key > wanted)
        if first is None or first == past:
            raise ValueError(f"no value has the code {code} and the residue {residue}")
        last = self._range()[1] if past is None else past - 1
        return Preimage(self._of_images([first, last]))

    def _range(self) -> tuple[int, int]:
        """The least and the greatest number, as places among all numbers of the type."""
        if self._is_float:
            # Infinities break the order under a ULP bound, and have their own codes there.
            most = self._infinity - (self.parameters.kind == "steps")
            return -most, most
        half = 1 << (self._bits - 1)
        return (0, 2 * half - 1) if self._letter == "u" else (-half, half - 1)

    def _first(self, holds: Callable[[tuple[int, int]], bool]) -> int | None:
        low, high = self._range()
        if not holds(self._key(high)):
            return None
        while low < high:
            middle = (low + high) // 2
            if holds(self._key(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _key(self, place: int) -> tuple[int, int]:
        codes, residues = _core.cell_codes(self._plain, self._of_images([place]).tobytes())
        code = int(codes[0])
        if self._plain.kind == "relative" and code == -(1 << 63) + _ZERO:
            return 0, 0
        return code, 0 if residues is None else int(residues[0])

    def _of_images(self, places: list[int]) -> NDArray[Any]:
        """The numbers at these places of the type's order; -0 is no place."""
        sign = 1 << (self._bits - 1)
        if self._is_float:
            places = [place if place >= 0 else -place | sign for place in places]
        mask = (1 << self._bits) - 1
        return self._stored(np.array([one & mask for one in places], dtype=f"<u{self._bits // 8}"))

    def _stored(self, bits: NDArray[Any]) -> NDArray[Any]:
        if self.parameters.dtype[0] == ">":
            bits = bits.byteswap()
        return np.frombuffer(bits.tobytes(), dtype=self._storage)
