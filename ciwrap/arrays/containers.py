"""Values that are several arrays: mappings, xarray's datasets, data frames and tables.

They are known by what their types offer, so none of their libraries is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.arrays.single import missing, one_array, unit_text
from ciwrap.errors import UnsupportedDtypeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.arrays.single import OneArray

_QUICK = frozenset({np.ndarray, float, int, bool, complex, list, tuple})


@dataclass(frozen=True, slots=True)
class Part:
    """One array of a value, not converted yet.

    dims, unit, left_out: as in OneArray, where they are known from elsewhere than the array.
    has_missing: whether some elements are missing that the array has numbers for.
    """

    name: str
    value: Any
    dims: tuple[str | None, ...] = ()
    unit: str | None = None
    left_out: bool = False
    has_missing: bool = False

    def convert(self) -> OneArray:
        """Raises what `one_array` raises."""
        if self.has_missing:
            raise missing(self.value, self.name)
        found = one_array(self.value, self.name)
        if not (self.dims or self.unit or self.left_out):
            return found
        return replace(
            found,
            dims=self.dims or found.dims,
            unit=found.unit or self.unit,
            left_out=self.left_out or found.left_out,
        )


def parts_of(value: Any, name: str, prefix: str = "") -> Iterator[Part]:
    """The arrays that a value is made of; the value itself under `name` if it is no container.

    prefix: of the names of the others. A mapping gives a part for each key ("a/b" for mappings in
    mappings), a dataset its variables and "coords/x", a series or frame its values or columns and
    "index", a table of astropy "NAME.COLUMN". Raises UsageError for an empty mapping,
    UnsupportedDtypeError for containers that cannot be taken apart.
    """
    kind = type(value)
    if kind in _QUICK:
        yield Part(name, value)
    elif hasattr(kind, "colnames"):
        yield from _table(value, name)
    elif hasattr(kind, "iloc"):
        yield from _frame(value, name, prefix)
    elif hasattr(kind, "data_vars"):
        yield from _dataset(value, prefix)
    elif hasattr(kind, "coords"):
        yield from _data_array(value, name, prefix)
    elif hasattr(kind, "column_names"):
        yield from (Part(f"{prefix}{one}", value[one]) for one in value.column_names)
    elif hasattr(kind, "get_columns"):
        yield from (Part(f"{prefix}{one}", value[one]) for one in value.columns)
    elif hasattr(kind, "to_numpy") and hasattr(kind, "get_level_values"):
        yield _index(value, name)
    elif isinstance(value, Mapping):
        yield from _mapping(value, name, prefix)
    else:
        yield Part(name, value)


def _mapping(value: Mapping[Any, Any], name: str, prefix: str) -> Iterator[Part]:
    if not value:
        what = f"{name!r} is an empty mapping: it" if prefix else "an empty mapping"
        raise UsageError(f"{what} holds nothing to check")
    for key, inner in value.items():
        yield from parts_of(inner, f"{prefix}{key}", f"{prefix}{key}/")


def _dataset(value: Any, prefix: str) -> Iterator[Part]:
    """xarray's Dataset or DataTree."""
    has_more = bool(value.attrs)
    for key, inner in value.data_vars.items():
        yield replace(_variable(inner, f"{prefix}{key}"), left_out=has_more or _has_more(inner))
    yield from _coordinates(value, prefix)
    for key, inner in getattr(value, "children", {}).items():
        yield from _dataset(inner, f"{prefix}{key}/")


def _data_array(value: Any, name: str, prefix: str) -> Iterator[Part]:
    if not isinstance(value.coords, Mapping):
        raise UnsupportedDtypeError(
            f"a value of type {type(value).__name__} has coordinates that ciwrap cannot read",
            variable=name,
            remedy="give its values and its coordinates as arrays, each by its name",
        )
    yield _variable(value, name)
    yield from _coordinates(value, prefix)


def _coordinates(value: Any, prefix: str) -> Iterator[Part]:
    for key, inner in value.coords.items():
        yield _variable(inner, f"{prefix}coords/{key}")


def _variable(value: Any, name: str) -> Part:
    """One variable of xarray: `data` is what it wraps, a quantity say, which `values` would strip.

    Text is kept as Python's objects there.
    """
    unit = value.attrs.get("units")
    return Part(
        name,
        _text(value.data),
        tuple(map(str, value.dims)),
        None if unit is None else unit_text(unit),
        _has_more(value),
    )


def _has_more(value: Any) -> bool:
    return any(key != "units" for key in value.attrs)


def _frame(value: Any, name: str, prefix: str) -> Iterator[Part]:
    """pandas' DataFrame or Series; their index is part of what is checked."""
    index = _index(value.index, f"{prefix}index")
    has_more = bool(getattr(value, "attrs", None))
    if hasattr(value, "columns"):
        for column in value.columns:
            yield _column(value[column], f"{prefix}{column}", index, has_more)
    else:
        yield _column(value, name, index, has_more)
    yield index


def _column(values: Any, name: str, index: Part, has_more: bool) -> Part:
    dtype = getattr(values, "dtype", None)
    # pandas' own types say beside the numbers which of them are missing.
    is_own = dtype is not None and not isinstance(dtype, np.dtype) and hasattr(values, "isna")
    return Part(
        name,
        values.to_numpy(),
        index.dims,
        left_out=has_more,
        has_missing=is_own and bool(np.any(values.isna())),
    )


def _index(index: Any, name: str) -> Part:
    label = getattr(index, "name", None)
    return Part(name, _text(index.to_numpy()), () if label is None else (str(label),))


def _text(values: Any) -> Any:
    """Python's texts in an array of objects as a list, which may become fixed-width text."""
    if isinstance(values, np.ndarray) and values.dtype.hasobject and values.size:
        found: list[Any] = values.tolist()
        if values.ndim == 1 and all(type(one) is str for one in found):
            return found
    return values


def _table(value: Any, name: str) -> Iterator[Part]:
    """astropy's Table; a row of it is refused, since it has lost the units of its columns."""
    if not hasattr(value, "itercols"):
        raise UnsupportedDtypeError(
            f"a {type(value).__name__} of a table comes without units and masks",
            variable=name,
            remedy="give a part of the table: table[2:3]",
        )
    for column in value.colnames:
        yield Part(f"{name}.{column}", value[column], left_out=bool(value.meta))
