"""Values of libraries: whose types are known, and the arrays that each of them is made of.

A type is known by its name, so none of the libraries is loaded for a value of another one. What a
type carries besides its elements is a part or a label here, or is counted (`left_out`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ciwrap.arrays.columns import arrow_column, pandas_column, polars_column
from ciwrap.arrays.handover import take_over
from ciwrap.arrays.part import Part, missing, refuse_carried
from ciwrap.arrays.single import TYPE, kind_of_object, library_name, text_of_object
from ciwrap.base.errors import DuplicateVariableError, UnsupportedDtypeError
from ciwrap.base.late import numpy as np

# Value, its name, and what the names of its parts begin with; to its parts.
Taker = Callable[[Any, str, str], Iterator[Part]]


def taker_of(kind: type) -> Taker | None:
    """What takes objects of the class apart; None for one that is not known."""
    found = _KNOWN.get(library_name(kind))
    if found is None and kind.__module__ == "pyarrow.lib":
        is_array = any(one.__name__ in ("Array", "ChunkedArray") for one in kind.__mro__)
        return _arrow_array if is_array else None
    return found


def computed(value: Any) -> Any:
    """What a lazy collection of Dask comes to; any other value as it is."""
    return value.compute() if library_name(type(value)) in _LAZY else value


def named(key: Any, prefix: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The name of what a mapping or frame calls `key`, and a label for what that text cannot tell:
    1 from '1', 'a/b' and ('a', 'b') from {'a': {'b': ...}}.
    Raises UnsupportedDtypeError for a key without a text.
    """
    if type(key) is str and "/" not in key:
        return f"{prefix}{key}", ()
    text, kind = _text_of_key(key, prefix)
    return f"{prefix}{text}", (("keys", f"{prefix}{text}: {kind}"),)


def _text_of_key(key: Any, prefix: str) -> tuple[str, str]:
    """The text of a key, and its kind."""
    if isinstance(key, tuple):
        found = [_text_of_key(one, prefix) for one in key]
        return "/".join(text for text, _ in found), f"({', '.join(kind for _, kind in found)})"
    if key is None or isinstance(key, (bool, int, float, np.integer, np.floating, np.bool_)):
        plain = key.item() if isinstance(key, np.generic) else key
        return str(plain), type(plain).__name__
    kind = kind_of_object(key)
    if kind is None:
        raise UnsupportedDtypeError(
            f"a key of type {type(key).__name__} has no name",
            variable=prefix.rstrip("/") or None,
            remedy="give a mapping whose keys are text or numbers",
        )
    return str(text_of_object(key, None)), kind


def _elements(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """Arrays that are no more than their elements."""
    yield Part(name, take_over(value, name))


def _tensor(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """PyTorch's; `names` are those of its dimensions. Its gradient is another tensor."""
    if str(value.layout) != "torch.strided" or value.is_quantized:
        raise UnsupportedDtypeError(
            "a tensor that is sparse or quantized is not one array",
            variable=name,
            remedy="give value.to_dense(), or value.dequantize()",
        )
    dims = tuple(value.names)
    plain = value.detach().rename(None) if any(dims) else value.detach()
    plain = plain.resolve_conj().resolve_neg()
    yield Part(name, take_over(plain, name), dims if any(dims) else ())


def sparse(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """`x` with the elements that are stored, and where they stand (`x.row`, `x.col`): of SciPy, and
    of the library sparse, whose other elements need not be zero.

    They are sorted, and those of one place are added up, so the format makes no difference.
    """
    labels = [(TYPE, "sparse"), ("shape", " ".join(map(str, value.shape)))]
    if hasattr(value, "fill_value"):
        stored = value.asformat("coo")
        places = tuple(stored.coords)
        labels.append(("elsewhere", repr(stored.fill_value.item())))
    else:
        stored = value.tocoo(copy=True)
        stored.sum_duplicates()
        places = getattr(stored, "coords", None) or (stored.row, stored.col)
    order = np.lexsort(tuple(reversed(places)))
    part = Part(name, stored.data[order], labels=tuple(labels))
    yield part
    names = ("row", "col") if len(places) == 2 else [f"index{i}" for i in range(len(places))]
    for one, place in zip(names, places, strict=True):
        yield part.beside(one, np.asarray(place, dtype=np.int64)[order])


_NO_UNIT = frozenset({"", "dimensionless"})
# What astropy's and unyt's arrays keep; of it the unit, the mask and the wrap angle count.
_OF_QUANTITY = frozenset(
    {"unit", "_unit", "units", "name", "_name", "info", "description", "meta", "_meta", "_format"}
    | {"indices", "_indices", "_parent_table", "parent_table", "_wrap_angle", "_mask", "_base"}
)


def unit_text(unit: Any) -> str | None:
    """None for what has no dimension."""
    text = unit.decode(errors="backslashreplace") if isinstance(unit, bytes) else str(unit)
    text = text.strip()
    scale = getattr(unit, "scale", None)
    if isinstance(scale, float) and float(f"{scale:g}") != scale:
        # The factor of a unit of astropy, of which its text has six digits.
        text = f"{text} (x {scale!r})"
    return None if text in _NO_UNIT else text


def _of_astropy(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """Quantities and columns, masked or not."""
    refuse_carried(value, name, _OF_QUANTITY)
    unit = getattr(value, "unit", None)
    if isinstance(value, np.ma.MaskedArray):
        plain: Any = np.ma.MaskedArray(np.asarray(value.data), mask=np.ma.getmaskarray(value))
    elif hasattr(value, "unmasked"):
        plain = np.ma.MaskedArray(np.asarray(value.unmasked), mask=np.asarray(value.mask))
    else:
        plain = np.asarray(value)
    wrap = getattr(value, "wrap_angle", None)
    labels = () if wrap is None else (("wrap_angle", str(wrap)),)
    yield Part(
        name,
        plain,
        unit=None if unit is None else unit_text(unit),
        left_out=bool(getattr(value, "meta", None)),
        labels=labels,
    )


def _of_unyt(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    refuse_carried(value, name, _OF_QUANTITY)
    unit = unit_text(value.units)
    base = f"{value.units.base_value!r} {value.units.get_base_equivalent()}"
    # What a simulation's own units are (`code_length`), its registry says.
    labels = (("base_units", base),) if "code_" in str(unit) else ()
    yield Part(name, np.asarray(value), unit=unit, labels=labels)


def _of_pint(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    yield Part(name, value.magnitude, unit=unit_text(value.units))


def _frame(value: Any, name: str, prefix: str) -> Iterator[Part]:
    """pandas' DataFrame or Series; their index is part of what is checked."""
    index = list(_index(value.index, f"{prefix}index", ""))
    dims = tuple(one for part in index for one in part.dims)
    whole = Part(name, None, dims, left_out=bool(value.attrs))
    if hasattr(value, "columns"):
        _refuse_twice([*value.columns, *(["index"] if len(index) == 1 else [])], name)
        for column in value.columns:
            text, labels = named(column, prefix)
            for part in pandas_column(value[column], text):
                yield part.labelled(*labels).within(whole)
    else:
        for part in pandas_column(value, name):
            yield part.within(whole)
    yield from index


def _refuse_twice(columns: Any, name: str) -> None:
    texts = Counter(named(one, "")[0] for one in columns)
    twice = [text for text, count in texts.items() if count > 1]
    if twice:
        raise DuplicateVariableError(
            f"two columns are called {twice[0]!r}",
            variable=name,
            remedy="rename one of them, or give the columns as a mapping",
        )


def _index(index: Any, name: str, _prefix: str) -> Iterator[Part]:
    """The values of an index; one of several levels is a part for each (`index/0`)."""
    if index.nlevels > 1:
        for number in range(index.nlevels):
            yield from _index(index.get_level_values(number), f"{name}/{number}", "")
        return
    dims = () if index.name is None else (str(index.name),)
    for part in pandas_column(index, name):
        yield replace(part, dims=dims, is_exact=part.is_exact or _counts(part.value))


def _counts(values: Any) -> bool:
    """Whether these are integers, which say where something stands, and not how much it is."""
    return getattr(getattr(values, "dtype", None), "kind", "") in ("i", "u")


def _extension_array(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    yield from pandas_column(value, name)


def _arrow_array(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    yield from arrow_column(value, name)


def _arrow_table(value: Any, name: str, prefix: str) -> Iterator[Part]:
    _refuse_twice(value.column_names, name)
    whole = Part(name, None, left_out=bool(value.schema.metadata))
    for number, column in enumerate(value.column_names):
        for part in arrow_column(value.column(number), f"{prefix}{column}"):
            yield part.within(whole)


def _polars_frame(value: Any, _name: str, prefix: str) -> Iterator[Part]:
    for column in value.get_columns():
        yield from polars_column(column, f"{prefix}{column.name}")


def _polars_series(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    yield from polars_column(value, name)


def _table(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """astropy's Table."""
    for column in value.colnames:
        yield Part(f"{name}.{column}", value[column], left_out=bool(value.meta))


def _records_of_fits(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """Of its array the numbers are not scaled yet, and of an array in a column it has the place."""
    for one in value.columns:
        column = value[one.name]
        plain = np.asarray(column) if column.dtype.hasobject else column
        unit = None if one.unit is None else unit_text(one.unit)
        yield Part(f"{name}.{one.name}", plain, unit=unit)


def _row_of_table(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    raise UnsupportedDtypeError(
        f"a {type(value).__name__} of a table comes without units and masks",
        variable=name,
        remedy="give a part of the table: table[2:3]",
    )


def _time(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """astropy's Time or TimeDelta as the two numbers that it is kept in, which are exact."""
    kind = "duration" if type(value).__name__ == "TimeDelta" else "time"
    labels = ((TYPE, kind), ("scale", str(value.scale)))
    if np.any(value.mask):
        yield Part(name, value, fault=missing(value, name))
        return
    for half in ("jd1", "jd2"):
        numbers = np.asarray(getattr(value, half))
        yield Part(f"{name}.{half}", numbers, labels=labels, is_exact=True)
    location = getattr(value, "location", None)
    if location is not None:
        for axis in "xyz":
            numbers = np.asarray(getattr(location, axis).to_value("m"))
            yield Part(f"{name}.location.{axis}", numbers, unit="m", is_exact=True)


def _dataset(value: Any, name: str, prefix: str) -> Iterator[Part]:
    """xarray's Dataset or DataTree."""
    whole = Part(name, None, left_out=bool(value.attrs))
    for key, inner in value.data_vars.items():
        text, labels = named(key, prefix)
        yield _variable(inner, text).labelled(*labels).within(whole)
    yield from _coordinates(value, prefix)
    for key, inner in getattr(value, "children", {}).items():
        yield from _dataset(inner, name, f"{prefix}{key}/")


def _data_array(value: Any, name: str, prefix: str) -> Iterator[Part]:
    yield _variable(value, name)
    yield from _coordinates(value, prefix)


def _coordinates(value: Any, prefix: str) -> Iterator[Part]:
    indexes = getattr(value, "indexes", {})
    for key, inner in value.coords.items():
        # Its levels are coordinates too.
        if getattr(indexes.get(key), "nlevels", 1) == 1 or inner.data.dtype != np.dtype(object):
            text, labels = named(key, f"{prefix}coords/")
            yield replace(_variable(inner, text), is_exact=_counts(inner.data)).labelled(*labels)


def _variable(value: Any, name: str) -> Part:
    """One variable of xarray: `data` is what it wraps, a quantity say; `values` would strip it."""
    return _with_attributes(Part(name, value.data, tuple(map(str, value.dims))), value.attrs)


def _one_variable(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    yield _variable(value, name)


def _with_attributes(part: Part, attributes: Mapping[str, Any], *known: str) -> Part:
    """The part with the unit that they name. known: of those that need no comparison."""
    unit = attributes.get("units")
    return replace(
        part,
        unit=None if unit is None else unit_text(unit),
        left_out=any(key not in ("units", *known) for key in attributes),
    )


_SCALES_OF_HDF5 = ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS")


def _of_hdf5(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    dims = tuple(one.label or None for one in value.dims)
    part = Part(name, value[()], dims if any(dims) else ())
    yield _with_attributes(part, value.attrs, *_SCALES_OF_HDF5)


def _of_netcdf(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """A variable of an open file, of netCDF4 or h5netcdf."""
    if hasattr(value, "ncattrs"):
        attributes: Mapping[str, Any] = {one: value.getncattr(one) for one in value.ncattrs()}
    else:
        attributes = value.attrs
    part = Part(name, value[...], tuple(value.dimensions))
    yield _with_attributes(part, attributes, "_FillValue")


def _of_zarr(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    # Zarr before version 3 has no names of dimensions.
    dims = getattr(getattr(value, "metadata", None), "dimension_names", None) or ()
    yield _with_attributes(Part(name, value[...], tuple(dims)), dict(value.attrs))


def _series_of_numpy(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """A polynomial: its coefficients, and what they are coefficients of."""
    symbol = value.variable if isinstance(value, np.poly1d) else value.symbol
    labels = ((TYPE, type(value).__name__), ("variable", symbol))
    part = Part(name, np.asarray(value.coef), labels=labels)
    yield part
    for one in ("domain", "window"):
        if hasattr(value, one):
            yield part.beside(one, np.asarray(getattr(value, one)), is_exact=False)


def _image(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """PIL's: what its pixels mean is its mode's and its palette's business."""
    part = Part(name, np.asarray(value), left_out=bool(value.info), labels=(("mode", value.mode),))
    yield part
    palette = value.getpalette(None) if value.mode in ("P", "PA") else None
    if palette is not None:
        yield part.beside("palette", np.asarray(palette))


def _with_uncertainty(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    """astropy's NDData: its data, mask and uncertainty (`x.uncertainty`)."""
    plain = np.asarray(value.data)
    if value.mask is not None:
        plain = np.ma.MaskedArray(plain, mask=np.broadcast_to(value.mask, plain.shape))
    others = (value.meta, *(getattr(value, one, None) for one in ("wcs", "psf", "flags")))
    unit = None if value.unit is None else unit_text(value.unit)
    has_more = any(one is not None and one != {} for one in others)
    part = Part(name, plain, unit=unit, left_out=has_more)
    yield part
    if value.uncertainty is not None:
        kind = (TYPE, str(value.uncertainty.uncertainty_type))
        numbers = np.asarray(value.uncertainty.array)
        yield part.beside("uncertainty", numbers, is_exact=False).labelled(kind)


def _lazy_frame(value: Any, name: str, _prefix: str) -> Iterator[Part]:
    raise UnsupportedDtypeError(
        f"a value of type {type(value).__name__} has no numbers yet",
        variable=name,
        remedy="give value.collect()",
    )


# Of these one array is all that there is.
HANDED_OVER = (_elements, _tensor)
_LAZY = frozenset(
    {"dask.Array", "dask.DataFrame", "dask.Series", "dask.Index", "dask.Scalar", "dask.Bag"}
    | {"dask.Delayed", "dask.DelayedLeaf", "dask.Item"}
    | {f"dask_expr.{one}" for one in ("DataFrame", "Series", "Index", "Scalar")}
)


def _all(taker: Taker, library: str, names: str) -> dict[str, Taker]:
    return {f"{library}.{name}": taker for name in names.split()}


_KNOWN: dict[str, Taker] = {
    **_all(_frame, "pandas", "DataFrame Series"),
    **_all(_index, "pandas", "Index RangeIndex MultiIndex DatetimeIndex TimedeltaIndex"),
    **_all(_index, "pandas", "PeriodIndex IntervalIndex CategoricalIndex"),
    **_all(_extension_array, "pandas", "IntegerArray FloatingArray BooleanArray StringArray"),
    **_all(_extension_array, "pandas", "Categorical SparseArray IntervalArray PeriodArray"),
    **_all(_extension_array, "pandas", "DatetimeArray TimedeltaArray NumpyExtensionArray"),
    **_all(_extension_array, "pandas", "ArrowExtensionArray ArrowStringArray PandasArray"),
    **_all(_extension_array, "pandas", "ArrowStringArrayNumpySemantics StringArrayNumpySemantics"),
    **_all(_arrow_table, "pyarrow", "Table RecordBatch"),
    **_all(_polars_frame, "polars", "DataFrame"),
    **_all(_polars_series, "polars", "Series"),
    **_all(_lazy_frame, "polars", "LazyFrame"),
    **_all(_dataset, "xarray", "Dataset DataTree"),
    **_all(_data_array, "xarray", "DataArray"),
    **_all(_one_variable, "xarray", "Variable IndexVariable"),
    **_all(_of_zarr, "zarr", "Array"),
    **_all(_of_hdf5, "h5py", "Dataset"),
    **_all(_of_netcdf, "netCDF4", "Variable"),
    **_all(_of_netcdf, "h5netcdf", "Variable"),
    **_all(_of_pint, "pint", "Quantity"),
    **_all(_of_unyt, "unyt", "unyt_array unyt_quantity"),
    **_all(_of_astropy, "astropy", "Quantity Angle Latitude Longitude Distance Magnitude Dex"),
    **_all(_of_astropy, "astropy", "Decibel Column MaskedColumn MaskedNDArray MaskedQuantity"),
    **_all(_of_astropy, "astropy", "MaskedAngle MaskedLatitude MaskedLongitude MaskedDistance"),
    **_all(_table, "astropy", "Table QTable"),
    **_all(_records_of_fits, "astropy", "FITS_rec"),
    **_all(_row_of_table, "astropy", "Row FITS_record"),
    **_all(_time, "astropy", "Time TimeDelta"),
    **_all(_with_uncertainty, "astropy", "NDData NDDataArray CCDData NDDataRef"),
    **_all(sparse, "scipy", " ".join(
        f"{one}_{kind}" for one in ("csr", "csc", "coo", "dok", "lil", "dia", "bsr")
        for kind in ("array", "matrix")
    )),
    **_all(sparse, "sparse", "COO GCXS DOK"),
    **_all(_series_of_numpy, "numpy", "poly1d Polynomial Chebyshev Legendre Laguerre Hermite"),
    **_all(_series_of_numpy, "numpy", "HermiteE"),
    **_all(_image, "PIL", "Image"),
    **_all(_tensor, "torch", "Tensor Parameter"),
    **_all(_elements, "cupy", "ndarray"),
    **_all(_elements, "jax", "ArrayImpl Array"),
    **_all(_elements, "jaxlib", "ArrayImpl"),
    **_all(_elements, "numba", "DeviceNDArray MappedNDArray ManagedNDArray"),
    **_all(_elements, "tensorflow", "EagerTensor"),
    **_all(_elements, "mlx", "array"),
    **_all(_elements, "dpctl", "usm_ndarray"),
    **_all(_elements, "dpnp", "dpnp_array"),
    **_all(_elements, "warp", "array"),
}  # fmt: skip
