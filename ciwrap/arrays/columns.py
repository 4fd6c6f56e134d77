"""Columns of pandas, Arrow and Polars as arrays of NumPy: what the library's type says and NumPy's
cannot is a part beside them, or a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ciwrap.arrays.part import DTYPE, Part
from ciwrap.arrays.single import TYPE
from ciwrap.base.errors import UnsupportedDtypeError
from ciwrap.base.late import numpy as np

_ONE_LEVEL_DOWN = "give its values by names of their own, or as text"


def _unknown(name: str, what: str) -> UnsupportedDtypeError:
    return UnsupportedDtypeError(
        f"a column of type {what} has no defined comparison", variable=name, remedy=_ONE_LEVEL_DOWN
    )


def pandas_column(values: Any, name: str) -> Iterator[Part]:
    """The parts of a Series, an index of one level or an array of pandas' own."""
    dtype = values.dtype
    if isinstance(dtype, np.dtype) or type(dtype).__name__ in ("NumpyEADtype", "PandasDtype"):
        yield Part(name, values.to_numpy())
        return
    kind = type(dtype).__name__ if _is_of_pandas(dtype) else ""
    array = getattr(values, "array", values)
    label = (DTYPE, str(dtype))
    if kind == "CategoricalDtype":
        order = (TYPE, "ordered category" if dtype.ordered else "category")
        said = " ".join(map(repr, dtype.categories.tolist()))
        plain = _categories(values)
        yield Part(name, plain, labels=(order, ("categories", said)))
    elif kind == "DatetimeTZDtype":
        times = getattr(values, "dt", values).tz_convert("UTC")
        times = getattr(times, "dt", times).tz_localize(None)
        yield Part(name, times.to_numpy(), labels=(("time_zone", str(dtype.tz)),))
    elif kind == "PeriodDtype":
        yield Part(name, values.astype(str).to_numpy(dtype=object), labels=((TYPE, str(dtype)),))
    elif kind == "IntervalDtype":
        for end in ("left", "right"):
            for part in pandas_column(getattr(array, end), f"{name}.{end}"):
                yield part.labelled(label)
    elif kind == "SparseDtype":
        yield Part(name, np.asarray(array), labels=(label,))
    elif kind == "ArrowDtype":
        for part in arrow_column(array.__arrow_array__(), name):
            yield part.labelled(label)
    elif kind == "StringDtype":
        yield Part(name, values.to_numpy(dtype=object))
    elif isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and kind:
        yield Part(name, _nullable(values), labels=(label,))
    else:
        raise _unknown(name, str(dtype))


def _is_of_pandas(dtype: Any) -> bool:
    return type(dtype).__module__.partition(".")[0] == "pandas"


def _categories(values: Any) -> Any:
    """The elements of a categorical column, which are missing where none is chosen."""
    kind = values.dtype.categories.dtype
    is_missing = np.asarray(values.isna(), dtype=np.bool_)
    is_number = isinstance(kind, np.dtype) and kind.kind in "biufc"
    if not is_number:
        return values.to_numpy(dtype=object)
    if not is_missing.any():
        return values.to_numpy()
    return _spread(values[~is_missing].to_numpy().astype(kind), is_missing)


def _nullable(values: Any) -> Any:
    """As NumPy's masked array, if some elements are missing."""
    is_missing = np.asarray(values.isna(), dtype=np.bool_)
    kind = values.dtype.numpy_dtype
    if not is_missing.any():
        return values.to_numpy(dtype=kind)
    return np.ma.MaskedArray(values.to_numpy(dtype=kind, na_value=kind.type()), mask=is_missing)


def arrow_column(values: Any, name: str) -> Iterator[Part]:
    """The parts of an Array or ChunkedArray: numbers with their nulls as a mask, structs field by
    field, lists as their values and lengths.
    """
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    kind, of = values.type, arrow.types
    label = (DTYPE, str(kind))
    is_null = _plain(values.is_null())
    if of.is_dictionary(kind):
        said = "ordered dictionary" if kind.ordered else "dictionary"
        for part in arrow_column(values.cast(kind.value_type), name):
            yield part.labelled((TYPE, said))
    elif of.is_struct(kind):
        for number in range(kind.num_fields):
            field = compute.struct_field(values, [number])
            yield from arrow_column(field, f"{name}.{kind.field(number).name}")
        yield from _mask_of_whole(name, is_null, label)
    elif of.is_list(kind) or of.is_large_list(kind) or of.is_fixed_size_list(kind):
        yield from arrow_column(compute.list_flatten(values), f"{name}.values")
        lengths = compute.fill_null(compute.list_value_length(values), 0)
        yield Part(f"{name}.lengths", _plain(lengths), labels=((TYPE, "list"),), is_exact=True)
        yield from _mask_of_whole(name, is_null, label)
    elif of.is_time(kind):
        numbers = values.cast(arrow.int64() if kind.bit_width == 64 else arrow.int32())
        plain = np.ma.MaskedArray(_plain(compute.fill_null(numbers, 0)), mask=is_null)
        yield Part(name, plain, labels=(label,), is_exact=True)
    elif of.is_temporal(kind) and not of.is_interval(kind):
        zone = () if getattr(kind, "tz", None) is None else (("time_zone", str(kind.tz)),)
        yield Part(name, _plain(values), labels=zone)
    elif of.is_boolean(kind) or of.is_integer(kind) or of.is_floating(kind):
        yield Part(name, _spread(_plain(values.drop_null()), is_null))
    elif of.is_null(kind):
        yield Part(name, np.ma.MaskedArray(np.zeros(len(values)), mask=is_null), labels=(label,))
    elif _is_text(kind, of):
        yield Part(name, _objects(values.to_pylist()))
    elif of.is_decimal(kind):
        yield Part(name, _objects(values.to_pylist()), labels=(label,))
    else:
        raise _unknown(name, str(kind))


def _is_text(kind: Any, of: Any) -> bool:
    tests = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary")
    more = ("is_binary_view", "is_fixed_size_binary")
    return any(getattr(of, one)(kind) for one in (*tests, *more) if hasattr(of, one))


def _plain(values: Any) -> Any:
    """NumPy's array; of a ChunkedArray it is one anyway."""
    return values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False)


def _spread(some: Any, is_null: Any) -> Any:
    """The numbers that are there, each at its place. With nulls among them, both libraries would
    make floats of integers, which rounds them.
    """
    if not is_null.any():
        return some
    plain = np.zeros(len(is_null), dtype=some.dtype)
    plain[~is_null] = some
    return np.ma.MaskedArray(plain, mask=is_null)


def _objects(items: list[Any]) -> Any:
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found


def _mask_of_whole(name: str, is_null: Any, label: tuple[str, str]) -> Iterator[Part]:
    """Which structs or lists are missing as a whole, if any are."""
    if is_null.any():
        yield Part(f"{name}.mask", is_null, labels=(label,), is_exact=True)


def polars_column(values: Any, name: str) -> Iterator[Part]:
    """The parts of a Series of Polars, as those of an Arrow array."""
    dtype = values.dtype
    kind = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    label = (DTYPE, str(dtype))
    is_null = values.is_null().to_numpy()
    if kind == "Struct":
        for field in values.struct.fields:
            yield from polars_column(values.struct.field(field), f"{name}.{field}")
        yield from _mask_of_whole(name, is_null, label)
    elif kind in ("List", "Array"):
        space = values.list if kind == "List" else values.arr
        lengths = (space.len() if kind == "List" else space.to_list().list.len()).fill_null(0)
        some = values.filter(lengths > 0).explode()
        yield from polars_column(some, f"{name}.values")
        yield Part(
            f"{name}.lengths", lengths.to_numpy(), labels=((TYPE, kind.lower()),), is_exact=True
        )
        yield from _mask_of_whole(name, is_null, label)
    elif kind in ("Datetime", "Date", "Duration"):
        zone = getattr(dtype, "time_zone", None)
        labels = () if zone is None else (("time_zone", str(zone)),)
        yield Part(name, values.to_numpy(), labels=labels)
    elif kind == "Time":
        numbers = values.to_physical().fill_null(0).to_numpy()
        yield Part(name, np.ma.MaskedArray(numbers, mask=is_null), labels=(label,), is_exact=True)
    elif kind in ("Categorical", "Enum"):
        yield Part(name, _objects(values.to_list()), labels=(label,))
    elif kind in ("String", "Utf8", "Binary"):
        yield Part(name, _objects(values.to_list()))
    elif kind == "Decimal":
        yield Part(name, _objects(values.to_list()), labels=(label,))
    elif kind == "Null":
        yield Part(name, np.ma.MaskedArray(np.zeros(len(values)), mask=is_null), labels=(label,))
    elif kind == "Boolean" or (dtype.is_numeric() and "128" not in kind):
        yield Part(name, _spread(values.drop_nulls().to_numpy(), is_null))
    else:
        raise _unknown(name, str(dtype))
