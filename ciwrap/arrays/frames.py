"""Data frames, tables and labelled arrays as their columns, indices and coordinates.

They are known by what their types offer, so none of their libraries is loaded here. The arrays
they give may be masked, sparse or objects; `containers` takes those further apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.objects import TYPE
from ciwrap.arrays.part import Part
from ciwrap.arrays.single import missing, unit_text
from ciwrap.errors import DuplicateVariableError, UnsupportedDtypeError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


def parts_of_frame(value: Any, name: str, prefix: str) -> Iterator[Part] | None:
    """The arrays of a frame, table, dataset or index; None for values of other kinds."""
    kind = type(value)
    if hasattr(kind, "colnames"):
        return _table(value, name)
    if hasattr(kind, "iloc"):
        return _frame(value, name, prefix)
    if hasattr(kind, "data_vars"):
        return _dataset(value, prefix)
    if hasattr(kind, "coords"):
        return _data_array(value, name, prefix)
    if hasattr(kind, "columns") and hasattr(kind, "formats"):
        return _records_of_fits(value, name)
    if kind.__name__ == "FITS_record":
        raise _row_of_table(value, name)
    if hasattr(kind, "column_names"):
        return _plain_columns(value, value.column_names, name, prefix)
    if hasattr(kind, "get_columns"):
        return _plain_columns(value, value.columns, name, prefix)
    if hasattr(kind, "to_numpy") and hasattr(kind, "get_level_values"):
        return _index(value, name)
    if _is_of_pandas(value):
        return iter((_column(value, name, (), left_out=False),))
    if all(hasattr(kind, one) for one in ("jd1", "jd2", "scale")):
        return _time(Part(name, value))
    return None


def _is_of_pandas(array: Any) -> bool:
    """Whether this is an array of pandas' own, with categories, a time zone or missing elements."""
    return hasattr(type(array), "isna") and hasattr(type(array), "to_numpy")


def _plain_columns(value: Any, columns: Any, name: str, prefix: str) -> Iterator[Part]:
    _refuse_twice(columns, name)
    return (
        Part(f"{prefix}{one}", _texts_or_itself(value[one]), labels=zone_of(value[one]))
        for one in columns
    )


def zone_of(column: Any) -> tuple[tuple[str, str], ...]:
    """The time zone of a column (Arrow's, Polars') as a label: NumPy's times have none."""
    kind = getattr(column, "type", getattr(column, "dtype", None))
    zone = getattr(kind, "tz", getattr(kind, "time_zone", None))
    return () if zone is None else (("time_zone", str(zone)),)


def _texts_or_itself(column: Any) -> Any:
    """A column of text (Arrow's, Polars') as an array of objects, in which None is missing."""
    found = column.to_numpy() if hasattr(column, "to_numpy") else column
    is_text = isinstance(found, np.ndarray) and found.dtype.hasobject
    return found if is_text and all(isinstance(one, (str, type(None))) for one in found) else column


def _refuse_twice(columns: Any, name: str) -> None:
    twice = [str(one) for one, count in Counter(map(_label, columns)).items() if count > 1]
    if twice:
        raise DuplicateVariableError(
            f"two columns are called {twice[0]!r}",
            variable=name,
            remedy="rename one of them, or give the columns as a mapping",
        )


def _label(column: Any) -> str:
    """A column's name; that of several levels is joined by '/'."""
    return "/".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _frame(value: Any, name: str, prefix: str) -> Iterator[Part]:
    """pandas' DataFrame or Series; their index is part of what is checked."""
    index = list(_index(value.index, f"{prefix}index"))
    dims = tuple(one for part in index for one in part.dims)
    has_more = bool(getattr(value, "attrs", None))
    if hasattr(value, "columns"):
        _refuse_twice([*value.columns, *(["index"] if len(index) == 1 else [])], name)
        for column in value.columns:
            yield _column(value[column], f"{prefix}{_label(column)}", dims, left_out=has_more)
    else:
        yield _column(value, name, dims, left_out=has_more)
    yield from index


def _column(values: Any, name: str, dims: tuple[str | None, ...], *, left_out: bool) -> Part:
    plain, labels = _plain(values)
    return Part(name, plain, dims, left_out=left_out, labels=labels)


def _plain(values: Any) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """Values of pandas' own types as NumPy has them, and labels for what NumPy cannot say."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not hasattr(values, "isna"):
        return values.to_numpy(), ()
    if hasattr(dtype, "categories"):
        labels = [(TYPE, "ordered category" if dtype.ordered else "category")]
        labels.append(("categories", " ".join(repr(str(one)) for one in dtype.categories)))
        return _with_mask(values), tuple(labels)
    if hasattr(dtype, "tz"):
        times = getattr(values, "dt", values).tz_convert("UTC")
        times = getattr(times, "dt", times).tz_localize(None)
        return times.to_numpy(), (("time_zone", str(dtype.tz)),)
    if hasattr(dtype, "freq") or hasattr(dtype, "subtype"):
        return values.astype(str).to_numpy(dtype=object), ((TYPE, str(dtype)),)
    return _with_mask(values), ()


def _with_mask(values: Any) -> Any:
    """As NumPy's masked array, if some elements are missing that the type has no number for."""
    is_missing = np.asarray(values.isna(), dtype=np.bool_)
    kind = getattr(values.dtype, "numpy_dtype", None)
    if not isinstance(kind, np.dtype) or kind.hasobject:
        return values.to_numpy(dtype=object)
    if not is_missing.any():
        return values.to_numpy()
    filled = values.to_numpy(dtype=kind, na_value=kind.type())
    return np.ma.MaskedArray(filled, mask=is_missing)


def _index(index: Any, name: str) -> Iterator[Part]:
    """The values of an index; one of several levels is a part for each (`index/0`)."""
    if getattr(index, "nlevels", 1) > 1:
        for number in range(index.nlevels):
            yield from _index(index.get_level_values(number), f"{name}/{number}")
        return
    values, labels = _plain(index)
    label = getattr(index, "name", None)
    dims = () if label is None else (str(label),)
    yield Part(name, values, dims, labels=labels, is_exact=_counts(values))


def _counts(values: Any) -> bool:
    """Whether these are integers, which say where something stands, and not how much it is."""
    return getattr(getattr(values, "dtype", None), "kind", "") in ("i", "u")


def _table(value: Any, name: str) -> Iterator[Part]:
    """astropy's Table; a row of it is refused, since it has lost the units of its columns."""
    if not hasattr(value, "itercols"):
        raise _row_of_table(value, name)
    for column in value.colnames:
        part = Part(f"{name}.{column}", value[column], left_out=bool(value.meta))
        yield from _time(part) if hasattr(value[column], "jd1") else (part,)


def _row_of_table(value: Any, name: str) -> UnsupportedDtypeError:
    return UnsupportedDtypeError(
        f"a {type(value).__name__} of a table comes without units and masks",
        variable=name,
        remedy="give a part of the table: table[2:3]",
    )


def _records_of_fits(value: Any, name: str) -> Iterator[Part]:
    """The data of a table in astropy's `fits`: its array has numbers before they are scaled, and
    of an array in a column only where it lies.
    """
    for column in value.columns:
        unit = None if column.unit is None else unit_text(column.unit)
        yield Part(f"{name}.{column.name}", value[column.name], unit=unit)


def _time(part: Part) -> Iterator[Part]:
    """astropy's Time or TimeDelta as the two numbers that it is kept in, which are exact."""
    value = part.value
    # A TimeDelta, which converts to units, has the same halves and scales.
    kind = "duration" if hasattr(type(value), "to") else "time"
    left_out = part.left_out or getattr(value, "location", None) is not None
    labels = ((TYPE, kind), ("scale", str(value.scale)))
    if np.any(getattr(value, "mask", False)):
        yield Part(part.name, value, fault=missing(value, part.name))
        return
    for half in ("jd1", "jd2"):
        numbers = np.asarray(getattr(value, half))
        yield Part(f"{part.name}.{half}", numbers, left_out=left_out, labels=labels, is_exact=True)


def _dataset(value: Any, prefix: str) -> Iterator[Part]:
    """xarray's Dataset or DataTree."""
    has_more = bool(value.attrs)
    for key, inner in value.data_vars.items():
        yield _variable(inner, f"{prefix}{key}", left_out=has_more)
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
    indexes = getattr(value, "indexes", {})
    for key, inner in value.coords.items():
        # Its levels are coordinates too.
        if getattr(indexes.get(key), "nlevels", 1) == 1 or inner.data.dtype != np.dtype(object):
            yield _variable(inner, f"{prefix}coords/{key}", is_exact=_counts(inner.data))


def _variable(value: Any, name: str, *, left_out: bool = False, is_exact: bool = False) -> Part:
    """One variable of xarray: `data` is what it wraps, a quantity say, which `values` would strip.

    Text is kept as Python's objects there.
    """
    unit = value.attrs.get("units")
    data, labels = _plain(value.data) if _is_of_pandas(value.data) else (value.data, ())
    return Part(
        name,
        data,
        tuple(map(str, value.dims)),
        None if unit is None else unit_text(unit),
        left_out or any(key != "units" for key in value.attrs),
        labels=labels,
        is_exact=is_exact,
    )
