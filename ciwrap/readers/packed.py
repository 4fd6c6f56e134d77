"""Numbers packed into integers by the CF conventions (scale_factor, add_offset), and integers that
are unsigned by the NetCDF conventions (_Unsigned), where a format has signed ones alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.errors import UnsupportedDtypeError
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


class Packing(Struct, frozen=True):
    """value = raw * scale + offset; raw numbers in `missing` become NaN.

    dtype: of the values, that of the attributes; float64 where that would make one number of two.
    as_unsigned: what the stored bytes are instead, if they are not what they are stored as.
    is_scaled: if not, the values are the raw numbers, and none becomes NaN.
    """

    scale: float
    offset: float
    missing: tuple[Any, ...]
    dtype: np.dtype[Any]
    as_unsigned: np.dtype[Any] | None = None
    is_scaled: bool = True

    @staticmethod
    def of(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> Packing | None:
        """The packing that a variable's attributes tell of; None if it is not packed.

        Two files may hold the same raw numbers and other values, so raw numbers must not be
        compared where there is one. Raises ValueError for attributes that are no single numbers.
        """
        given = {
            key: attributes[key] for key in ("scale_factor", "add_offset") if key in attributes
        }
        unsigned = _unsigned(attributes, dtype)
        if not given and unsigned is not None:
            return Packing(1.0, 0.0, (), unsigned, unsigned, is_scaled=False)
        if not given or dtype.kind not in "iuf":
            return None
        scale = _number(given.get("scale_factor", 1.0), "scale_factor")
        offset = _number(given.get("add_offset", 0.0), "add_offset")
        kinds = [np.asarray(value).dtype for value in given.values()]
        wide = np.result_type(np.float32, *kinds)
        missing = tuple(
            one
            for key in ("_FillValue", "missing_value")
            if key in attributes
            for one in np.asarray(attributes[key]).reshape(-1).tolist()
        )
        # What the stored type cannot hold, such as 1e20 beside short integers, no element is.
        held = tuple(one for one in missing if _is_held(one, dtype))
        is_short = wide == np.float32 and dtype.itemsize <= 2
        if is_short and dtype.kind in "iu":
            most = abs(scale) * (1 << 8 * dtype.itemsize) + abs(offset)
            is_short = _keeps_apart(scale, most, np.dtype(np.float32))
        target = np.dtype(np.float32 if is_short else np.float64)
        return Packing(scale, offset, held, target, unsigned)

    def reader(
        self, read: Callable[[int, int], NDArray[Any]]
    ) -> Callable[[int, int], NDArray[Any]]:
        def unpack(first: int, count: int) -> NDArray[Any]:
            stored = read(first, count)
            raw = stored if self.as_unsigned is None else stored.view(self.as_unsigned)
            if not self.is_scaled:
                return raw
            with np.errstate(all="ignore"):
                values = raw.astype(np.float64) * self.scale + self.offset
                found = values.astype(self.dtype)
            if self.missing:
                is_missing = np.isin(stored, np.array(self.missing, dtype=stored.dtype))
                found[is_missing] = np.nan
                raw = raw[~is_missing]
            self._check_kept_apart(raw)
            return found

        return unpack

    def _check_kept_apart(self, raw: NDArray[Any]) -> None:
        """Raises UnsupportedDtypeError if two of the raw numbers may have become one value."""
        if raw.dtype.kind not in "iu" or raw.size == 0:
            return
        most = max(abs(int(raw.min())), abs(int(raw.max()))) * abs(self.scale) + abs(self.offset)
        if not _keeps_apart(self.scale, most, self.dtype):
            raise UnsupportedDtypeError(
                f"holds integers that unpacking (scale {self.scale:g}, offset {self.offset:g})"
                f" would not keep apart in {self.dtype}"
            )


def _unsigned(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The type that the attribute _Unsigned (NetCDF Users Guide) gives to signed integers."""
    if dtype.kind != "i" or str(attributes.get("_Unsigned", "")).lower() != "true":
        return None
    return np.dtype(f"{dtype.str[0]}u{dtype.itemsize}")


def _keeps_apart(scale: float, most: float, dtype: np.dtype[Any]) -> bool:
    """Whether values a scale apart stay different numbers of that dtype, rounded at each step.

    most: what none of them nor of the sums before them exceeds.
    """
    with np.errstate(all="ignore"):
        return bool(abs(scale) > 2 * np.spacing(dtype.type(most)))


def _is_held(value: Any, dtype: np.dtype[Any]) -> bool:
    if not isinstance(value, (int, float)):
        raise ValueError("its attribute _FillValue or missing_value is not a number")
    with np.errstate(all="ignore"):
        cast = np.asarray(value).astype(dtype)
    return bool(cast == value) or dtype.kind == "f"


def _number(value: Any, name: str) -> float:
    found = np.asarray(value).reshape(-1)
    if found.size != 1 or found.dtype.kind not in "iuf" or not math.isfinite(found[0]):
        raise ValueError(f"its attribute {name} is not a single number that is finite")
    if name == "scale_factor" and found[0] == 0:
        raise ValueError("its attribute scale_factor is 0, which makes all of its numbers equal")
    return float(found[0])
