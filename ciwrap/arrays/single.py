"""One array out of whatever a caller has, with nothing lost on the way, or an error.

NumPy drops much in silence when it makes an array: units, masks, what a subclass carries, the
difference of large integers. Here it is kept, or the value is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import dtype_text, fields_of, native
from ciwrap.arrays.intake import take_over
from ciwrap.arrays.lists import array_of_list
from ciwrap.arrays.objects import own_attributes
from ciwrap.errors import CiwrapError, UnsupportedDtypeError, UsageError
from ciwrap.late import numpy as np
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

# What NumPy's own subclasses keep besides: where a memmap lies, what a matrix is about to do.
_OF_NUMPY = frozenset({"_mmap", "filename", "mode", "offset", "_getitem"})
# What astropy's and unyt's quantities and columns have; of it the unit counts.
_OF_QUANTITY = frozenset({"unit", "units", "info", "name", "description", "indices"})
_NO_UNIT = frozenset({"", "dimensionless"})
_QUICK = frozenset({np.ndarray, float, int, bool, complex})


class OneArray(Struct, frozen=True):
    """An array, and what else says which numbers they are.

    array: a NumPy array, or values that NumPy has no type for, or that lie on a device. unit: as
    text; None without one. dims: names of the dimensions, () without any. left_out: whether the
    value has further attributes, which are not compared. labels: what else belongs to its identity.
    """

    array: NDArray[Any] | Values
    unit: str | None = None
    dims: tuple[str | None, ...] = ()
    left_out: bool = False
    labels: tuple[tuple[str, str], ...] = ()


def one_array(value: Any, name: str | None = None) -> OneArray:
    """The value as an array, without a copy if that can be.

    name: for errors. Raises UnsupportedDtypeError for what has no defined comparison or would lose
    something, UsageError for text and for lists whose parts have different shapes, and the errors
    of `take_over`.
    """
    if type(value) in _QUICK:
        return _made(take_over(value, name), value, name)
    if isinstance(value, (str, bytes, os.PathLike)):
        raise UsageError(
            f"{name!r} is text or a path" if name else "it is text or a path",
            remedy="check files one by one or by their folder; numpy.array(...) for text",
        )
    if isinstance(value, (list, tuple)):
        return _made(array_of_list(value, name, _plain_part), value, name)
    if isinstance(value, (Mapping, set, frozenset)) or _has_several(value):
        raise _undefined(value, name)
    _refuse_missing(value, name)
    if getattr(value, "uncertainty", None) is not None:  # astropy's NDData
        raise UnsupportedDtypeError(
            f"{_kind_of(value)} has uncertainties, which would be lost",
            variable=name,
            remedy="give its data and its uncertainty.array as two arrays",
        )
    unit = unit_of(value)
    dims = _dims_of(value)
    attributes = _attributes_of(value)
    if unit is None and "units" in attributes:
        unit = unit_text(attributes["units"])
    numbers = value
    if hasattr(value, "units") and not isinstance(value, np.ndarray):
        numbers = getattr(value, "magnitude", value)  # pint's; its `__array__` drops the unit
    if isinstance(numbers, np.ndarray):
        numbers = _without_subclass(numbers, name)
    elif numbers is not value:
        inner = one_array(numbers, name)
        return replace(inner, unit=unit, dims=inner.dims or dims, left_out=bool(attributes))
    try:
        taken = take_over(numbers, name)
    except CiwrapError:
        raise
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{repr(name) if name else 'it'} is not an array: {error}", remedy="give it as one"
        ) from error
    if isinstance(taken, np.ndarray) and type(taken) is not np.ndarray:
        _refuse_missing(taken, name)  # what an `__array__` gave
        taken = _without_subclass(taken, name)
    left_out = any(key != "units" for key in attributes)
    return replace(_made(taken, value, name), unit=unit, dims=dims, left_out=left_out)


def _made(taken: NDArray[Any] | Values, value: Any, name: str | None) -> OneArray:
    """What was taken over, checked; dates and durations as text, which no bound is meant for."""
    if isinstance(taken, np.ndarray) and taken.dtype.kind in "mM":
        # NumPy writes dates of the other byte order as if they were of this one.
        times = taken.astype(native(taken.dtype), copy=False)
        return OneArray(_time_text(times), labels=(("type", str(times.dtype)),))
    return OneArray(_checked(taken, value, name))


def _time_text(times: NDArray[Any]) -> NDArray[Any]:
    """In ASCII: as ISO 8601 to the unit of the dtype, durations as their number of units."""
    if times.dtype.kind == "M":
        return np.asarray(np.datetime_as_string(times)).astype("S")  # of one time it makes a text
    numbers = times.astype(np.int64).astype("S21")
    return np.where(np.isnat(times), np.bytes_(b"NaT"), numbers)


_UNIT_KEYS = ("unit", "units")


def _has_unit(value: Any) -> bool:
    return any(hasattr(value, key) for key in _UNIT_KEYS)


def unit_of(value: Any) -> str | None:
    """The unit of a quantity (astropy, pint, unyt, netCDF4) as text; None if it has none."""
    for key in _UNIT_KEYS:
        unit = getattr(value, key, None)
        if unit is not None and not callable(unit):
            return unit_text(unit)
    return None


def unit_text(unit: Any) -> str | None:
    """None for what has no dimension."""
    text = unit.decode(errors="backslashreplace") if isinstance(unit, bytes) else str(unit)
    text = f"{text.strip()}{_rest_of_scale(unit)}"
    return None if text in _NO_UNIT else text


def _rest_of_scale(unit: Any) -> str:
    """The factor of a unit of astropy, of which its text has six digits, if it has more."""
    scale = getattr(unit, "scale", None)
    is_whole = not isinstance(scale, float) or float(f"{scale:g}") == scale
    return "" if is_whole else f" (x {scale!r})"


def _dims_of(value: Any) -> tuple[str | None, ...]:
    """Names of the dimensions, as xarray, h5py and netCDF4 give them."""
    found = getattr(value, "dims", None)
    if found is None and hasattr(value, "ncattrs"):
        found = value.dimensions
    if found is None or callable(found) or isinstance(value, np.ndarray):
        return ()
    names = [one if isinstance(one, str) else getattr(one, "label", None) for one in found]
    return tuple(names) if any(names) else ()


def _attributes_of(value: Any) -> Mapping[str, Any]:
    attributes = getattr(value, "attrs", None)
    return attributes if isinstance(attributes, Mapping) else {}


def _refuse_missing(value: Any, name: str | None) -> None:
    """Raises for a value some of whose elements are marked as missing beside the values."""
    if isinstance(value, np.ma.MaskedArray):
        mask: Any = np.ma.getmaskarray(value)
    else:
        mask = getattr(value, "mask", None)
    has_mask = isinstance(mask, (np.ndarray, np.bool_)) and bool(truth_values(mask).any())
    has_masks = isinstance(getattr(value, "masks", None), Mapping) and len(value.masks) > 0
    nulls = getattr(value, "null_count", 0)
    if has_mask or has_masks or (nulls() if callable(nulls) else nulls):
        raise missing(value, name)


def truth_values(mask: NDArray[Any] | np.bool_) -> NDArray[np.bool_]:
    """The values of a mask, those of each field for one of records, in one dimension."""
    values: NDArray[np.bool_] = np.ascontiguousarray(mask).reshape(-1).view(np.bool_)
    return values


def missing(value: Any, name: str | None) -> UnsupportedDtypeError:
    return UnsupportedDtypeError(
        f"{_kind_of(value)} has masked or missing elements, and NumPy would show what lies behind"
        " them",
        variable=name,
        remedy="give values and mask as two arrays, or use .filled(...)",
    )


def _without_subclass(array: NDArray[Any], name: str | None) -> NDArray[Any]:
    """The same elements as a plain array. Raises what `refuse_carried` raises."""
    if type(array) is np.ndarray:
        return array
    refuse_carried(array, name)
    return np.asarray(array)


def refuse_carried(array: NDArray[Any], name: str | None) -> None:
    """Raises UnsupportedDtypeError for an array of a subclass that has attributes of its own,
    besides those that are known: of a mask, a unit, or where the elements lie.
    """
    known: Iterable[str] = ()
    if isinstance(array, (np.memmap, np.matrix)):
        known = _OF_NUMPY
    elif isinstance(array, np.ma.MaskedArray):
        known = vars(np.ma.masked)
    own = {key: one for key, one in own_attributes(array).items() if one is not None}
    carried = own.keys() - known
    if _has_unit(array) or hasattr(array, "unmasked"):
        # How libraries keep a unit is their business.
        carried = {one for one in carried - _OF_QUANTITY if not one.startswith("_")}
    if carried:
        raise UnsupportedDtypeError(
            f"{_kind_of(array)} carries {', '.join(sorted(carried))}, which would be lost",
            variable=name,
            remedy="give numpy.asarray(...) of it, and what else counts as arrays of their own",
        )


def _plain_part(value: Any, name: str | None) -> NDArray[Any]:
    """An array that is an item of a list, where there is no room for more than its elements."""
    found = one_array(value, name)
    if found.unit is not None or found.dims or not isinstance(found.array, np.ndarray):
        what = "a unit" if found.unit else "names of its dimensions" if found.dims else "its type"
        raise UnsupportedDtypeError(
            f"a list of {type(value).__name__}: {what} would be lost",
            variable=name,
            remedy="give the whole as one array, or each part by its name",
        )
    return found.array


def _checked(taken: NDArray[Any] | Values, value: Any, name: str | None) -> NDArray[Any] | Values:
    if not isinstance(taken, np.ndarray):
        return taken
    if taken.dtype.hasobject:
        raise _undefined(value, name)
    try:
        if taken.dtype.names is None:
            dtype_text(taken.dtype, variable=name)
        else:
            fields_of(name or "array", taken.dtype)
    except UnsupportedDtypeError as error:
        raise UnsupportedDtypeError(
            error.message, variable=error.variable, remedy="convert it to numbers or text"
        ) from None
    return taken


def _has_several(value: Any) -> bool:
    """Whether it is more than one array; those are taken apart in `containers`."""
    frames = ("iloc", "data_vars", "coords", "colnames", "column_names", "get_columns")
    lazy_frame = "collect_schema"  # of Polars
    return any(hasattr(type(value), key) for key in (*frames, lazy_frame))


def _kind_of(value: Any) -> str:
    return f"an array of type {type(value).__name__}"


def _undefined(value: Any, name: str | None) -> UnsupportedDtypeError:
    kind = type(value).__name__
    if isinstance(value, int):
        what = "an integer beyond 64 bits"
    elif hasattr(value, "__len__") and not isinstance(value, (Mapping, set, frozenset)):
        what = f"{kind} of Python objects"
    else:
        what = f"a value of type {kind}"
    return UnsupportedDtypeError(
        f"{what} has no defined comparison",
        variable=name,
        remedy=_REMEDIES.get(type(value), "give numbers, or a mapping or list of them")
        if what.startswith("a value")
        else "give numbers; for fixed-width text numpy.array(values, dtype=str)",
    )


_REMEDIES = {
    type(None): "put it into a mapping, where None is compared: {'x': None}",
    set: "give a sorted list",
    frozenset: "give a sorted list",
}
