"""Arrays of any library, taken over without loss: on the host or on a GPU, by protocol.

NumPy drops units, masks, attributes and the difference of large integers in silence; here they are
kept, or the value is refused. Masked and sparse arrays, long doubles, data frames and labelled
arrays become several arrays (`x` and `x.mask`, `x.row`, `x.col` or `x.low`). Types are recognized
by what they offer, so none of their libraries is loaded here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.single import (
    TYPE,
    array_of_list,
    array_of_object,
    array_of_objects,
    fields_of_object,
    is_nothing,
    is_one_array,
    own_attributes,
)
from ciwrap.arrays.values import (
    ArrayValues,
    DeviceValues,
    HeldOnDevice,
    dtype_text,
    fields_of,
    native,
)
from ciwrap.base.errors import (
    CiwrapError,
    DeviceArrayError,
    DuplicateVariableError,
    UnsupportedDtypeError,
    UsageError,
)
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

# As DLPack numbers devices.
_HOST = (1, 3, 11)  # plain; locked for CUDA; locked for ROCm
_CUDA = (2, 13)  # a device's own memory; managed
_KINDS = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
# As CUDA numbers streams: the one that all others wait for.
_LEGACY_STREAM = 1
_TO_HOST = "copy it over (CuPy: .get(), PyTorch: .cpu(), JAX: jax.device_get)"


def take_over(array: Any, name: str | None = None) -> NDArray[Any] | Values:
    """The array without a copy, if that can be.

    A NumPy array as it is, a view for what NumPy knows, else values with a dtype of their own:
    bfloat16, or an array on a GPU, which stays there. Raises UnsupportedDtypeError for what cannot
    be taken over, DeviceArrayError for a device that this build does not compute on.
    """
    array = computed(array)
    if isinstance(array, np.ndarray):
        return _named_bfloat16(array)
    device = _device_of(array, name)
    if device is not None and device[0] in _CUDA:
        return _from_dlpack_on_cuda(array, device, name)
    if device is not None and device[0] not in _HOST:
        kind = _KINDS.get(device[0], f"kind {device[0]}")
        raise DeviceArrayError(
            f"the array lies on a device that is not supported ({kind})",
            variable=name,
            remedy=_TO_HOST,
        )
    if device is None:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            return _from_cuda_interface(array, interface, name)
    return _on_host(array, name, has_dlpack=device is not None)


def computed(value: Any) -> Any:
    """What a lazy collection of Dask comes to; any other value as it is.

    Its own `__array__` would drop the masks of masked chunks. A value of xarray, which has
    dimensions, stays: the arrays that it wraps are computed.
    """
    kind = type(value)
    if not hasattr(kind, "__dask_graph__") or hasattr(kind, "dims"):
        return value
    # A quantity of pint has it, whatever it is one of; None says that this is not lazy.
    return value if value.__dask_graph__() is None else value.compute()


def device_backend() -> str:
    """The core's backend for arrays on CUDA devices. Raises DeviceArrayError if there is none."""
    cuda = next(one for one in _core.backends() if one["name"] == "cuda")
    if not cuda["usable"]:
        raise DeviceArrayError(
            f"the array lies on a GPU, and ciwrap computes on the host here (cuda:"
            f" {cuda['reason']})",
            remedy=f"{_TO_HOST}, or build with CUDA (docs/how-to/gpu.md)",
        )
    return "cuda"


def _device_of(array: Any, name: str | None) -> tuple[int, int] | None:
    """DLPack's kind and number of the device; None for what does not speak DLPack."""
    if not (hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")):
        return None
    try:
        kind, number = array.__dlpack_device__()
        return int(kind), int(number)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DeviceArrayError(
            f"the array does not say where it lies: {error}", variable=name, remedy=_TO_HOST
        ) from error


def _on_host(array: Any, name: str | None, *, has_dlpack: bool) -> NDArray[Any] | Values:
    # A masked array stays one: what it says about its elements must not be lost unseen.
    if not has_dlpack:
        return _named_bfloat16(np.asanyarray(array))
    if hasattr(array, "__array__"):
        try:
            return _named_bfloat16(np.asanyarray(array))
        except (RuntimeError, TypeError):
            pass  # a type NumPy does not have, or a reason that DLPack gives too
    try:
        held = _core.DeviceArray.from_dlpack(array.__dlpack__())
        view = held.host_view()
    except CiwrapError as error:
        raise UnsupportedDtypeError(
            error.message, variable=name, remedy="give it as a type that NumPy knows"
        ) from error
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UnsupportedDtypeError(
            f"the array cannot be taken over from DLPack: {error}",
            variable=name,
            remedy="copy it to the host as a type NumPy knows",
        ) from error
    return ArrayValues(view, held.dtype) if held.dtype[1:] == "bf2" else view


def _named_bfloat16(array: NDArray[Any]) -> NDArray[Any] | Values:
    """ml_dtypes gives NumPy a bfloat16 of two untyped bytes, in either byte order."""
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.name == "bfloat16":
        order = array.dtype.str[:1]
        return ArrayValues(array.view(f"{order}u2"), f"{order}bf2")
    return array


def _from_dlpack_on_cuda(array: Any, device: tuple[int, int], name: str | None) -> Values:
    backend = _backend(name)
    try:
        try:
            capsule = array.__dlpack__(stream=_LEGACY_STREAM, max_version=(1, 0))
        except TypeError:  # a library older than versions
            capsule = array.__dlpack__(stream=_LEGACY_STREAM)
        held = _core.DeviceArray.from_dlpack(capsule, stream=_LEGACY_STREAM)
    except CiwrapError as error:
        raise UnsupportedDtypeError(error.message, variable=name, remedy=_TO_HOST) from error
    except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DeviceArrayError(
            f"the array on CUDA device {device[1]} cannot be taken over from DLPack: {error}",
            variable=name,
            remedy=_TO_HOST,
        ) from error
    return DeviceValues(HeldOnDevice(held, backend))


def _from_cuda_interface(array: Any, interface: Mapping[str, Any], name: str | None) -> Values:
    backend = _backend(name)
    try:
        address = interface["data"][0]
        shape = [int(length) for length in interface["shape"]]
        strides = interface.get("strides")
        typestr = str(interface["typestr"])
        version = int(interface.get("version", 0))
        stream = interface.get("stream")
        if stream is None:
            # Before version 3 nobody said; from then on None means that nothing is to be waited for
            stream = 0 if version >= 3 else _LEGACY_STREAM
        elif stream == 0:
            raise ValueError("stream 0 is ambiguous")
        if interface.get("mask") is not None:
            raise ValueError("it has a mask")
        held = _core.DeviceArray.from_address(
            int(address or 0),
            shape,
            None if strides is None else [int(stride) for stride in strides],
            dtype_text(np.dtype(typestr), variable=name),
            stream=int(stream),
            owner=array,
        )
    except UsageError as error:
        raise UnsupportedDtypeError(error.message, variable=name, remedy=_TO_HOST) from error
    except (IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UnsupportedDtypeError):
            raise
        raise DeviceArrayError(
            f"the array's __cuda_array_interface__ cannot be followed: {error}",
            variable=name,
            remedy=_TO_HOST,
        ) from error
    return DeviceValues(HeldOnDevice(held, backend))


def _backend(name: str | None) -> str:
    try:
        return device_backend()
    except DeviceArrayError as error:
        raise DeviceArrayError(error.message, variable=name, remedy=error.remedy) from None


# What NumPy's own subclasses keep besides: where a memmap lies, what a matrix is about to do.
_OF_NUMPY = frozenset({"_mmap", "filename", "mode", "offset", "_getitem"})
# What astropy's and unyt's quantities and columns have; of it the unit counts.
_OF_QUANTITY = frozenset({"unit", "units", "info", "name", "description", "indices"})
_NO_UNIT = frozenset({"", "dimensionless"})
_NUMBER_TYPES = frozenset({float, int, bool, complex})
_ARRAY_TYPES = _NUMBER_TYPES | {np.ndarray}


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
    if type(value) in _ARRAY_TYPES:
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
    attributes = getattr(value, "attrs", None)
    attributes = attributes if isinstance(attributes, Mapping) else {}
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
    text = text.strip()
    scale = getattr(unit, "scale", None)
    if isinstance(scale, float) and float(f"{scale:g}") != scale:
        # The factor of a unit of astropy, of which its text has six digits.
        text = f"{text} (x {scale!r})"
    return None if text in _NO_UNIT else text


def _dims_of(value: Any) -> tuple[str | None, ...]:
    """Names of the dimensions, as xarray, h5py and netCDF4 give them."""
    found = getattr(value, "dims", None)
    if found is None and hasattr(value, "ncattrs"):
        found = value.dimensions
    if found is None or callable(found) or isinstance(value, np.ndarray):
        return ()
    names = [one if isinstance(one, str) else getattr(one, "label", None) for one in found]
    return tuple(names) if any(names) else ()


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
    if any(hasattr(array, key) for key in (*_UNIT_KEYS, "unmasked")):
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


if TYPE_CHECKING:
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


_LONG = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def is_long_double(array: Any) -> bool:
    """Whether the elements are wider than float64, or complex ones of such parts."""
    dtype = getattr(array, "dtype", None)
    return (
        isinstance(array, (np.ndarray, np.generic))
        and isinstance(dtype, np.dtype)
        and dtype.kind in _LONG
        and dtype.itemsize > _LONG[dtype.kind].itemsize
    )


def long_double(part: Part) -> Iterator[Part]:
    """`x`, rounded to float64, and `x.low`, what that leaves; together they are exact.

    Raises UnsupportedDtypeError for numbers that two floats do not hold.
    """
    unit = unit_of(part.value)
    values: NDArray[Any] = np.asarray(part.value)
    narrow = _LONG[values.dtype.kind]
    with np.errstate(all="ignore"):
        high = values.astype(narrow)
        rest = np.where(np.isfinite(values), values - high, 0)
        low = rest.astype(narrow)
        is_lost = bool(np.any(np.isfinite(values) & (high.astype(values.dtype) + low != values)))
    if is_lost:
        raise UnsupportedDtypeError(
            f"{values.dtype} holds numbers that two numbers of type {narrow} cannot hold",
            variable=part.name,
            remedy=f"give x.astype('{narrow}') if these will do",
        )
    label = ((TYPE, str(native(values.dtype))),)
    yield replace(part, value=high, labels=(*part.labels, *label), unit=part.unit or unit)
    yield part.beside("low", low, is_exact=False)


def mask_of(value: Any, name: str) -> NDArray[np.bool_] | None:
    """The mask of an array that has one (NumPy's, astropy's); None if nothing is masked.

    Raises UnsupportedDtypeError for records of which something is masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        mask: Any = np.ma.getmaskarray(value)
        if mask.dtype.names is not None:
            if truth_values(mask).any():
                raise missing(value, name)
            return None
    elif isinstance(value, np.ndarray) and hasattr(value, "unmasked"):
        mask = getattr(value, "mask", None)
    else:
        return None
    # A mask of astropy's records is a structured array; what has one is refused.
    found: NDArray[np.bool_] = np.asarray(mask)
    return found if found.dtype == np.bool_ and found.any() else None


def masked(part: Part, mask: NDArray[np.bool_]) -> Iterator[Part]:
    """`x` with zeros (empty texts) in the place of masked elements, and `x.mask`. Raises what
    `refuse_carried` raises.
    """
    value = part.value
    unit = unit_of(value)
    refuse_carried(value, part.name)
    if isinstance(value, np.ma.MaskedArray):
        plain: NDArray[Any] = np.array(np.ma.getdata(value), subok=False)
    else:
        plain = np.array(value.unmasked, subok=False)
    plain[mask] = np.zeros((), dtype=plain.dtype)
    label = (("missing", "masked"),)
    yield replace(part, value=plain, labels=(*part.labels, *label), unit=part.unit or unit)
    yield part.beside("mask", mask)


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse array or matrix of SciPy, in any of its formats."""
    return hasattr(value, "tocoo") and hasattr(value, "nnz")


def sparse(part: Part) -> Iterator[Part]:
    """`x` with the elements that are stored, and where they stand (`x.row`, `x.col`).

    They are sorted, and those of one place are added up, so the format makes no difference.
    """
    stored = part.value.tocoo(copy=True)
    stored.sum_duplicates()
    places = getattr(stored, "coords", None) or (stored.row, stored.col)
    order = np.lexsort(tuple(reversed(places)))
    shape = " ".join(map(str, stored.shape))
    labels = (*part.labels, (TYPE, "sparse"), ("shape", shape))
    yield replace(part, value=stored.data[order], labels=labels)
    names = ("row", "col") if len(places) == 2 else [f"index{i}" for i in range(len(places))]
    for name, place in zip(names, places, strict=True):
        yield part.beside(name, np.asarray(place, dtype=np.int64)[order])


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
        # Of its array the numbers are not scaled yet, and of an array in a column it has the place.
        return (
            Part(f"{name}.{one.name}", value[one.name], unit=unit_of(one)) for one in value.columns
        )
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


_PLAIN_KINDS = frozenset("biufSU")
_MOST_ITEMS = 1000
_MOST_LEVELS = 64


def parts_of(value: Any, name: str, prefix: str = "") -> Iterator[Part]:
    """The arrays that a value is made of; the value itself under `name` if it is no container.

    prefix: of the names of the others. A mapping gives a part for each key ("a/b" for mappings in
    mappings), an object of fields one for each, a list whose items are not one array one for each
    ("0", "1"), a dataset its variables and "coords/x", a series or frame its values or columns and
    "index", a table of astropy "NAME.COLUMN"; a masked, sparse or long double array has parts
    beside it ("NAME.mask"). Raises UsageError for an empty mapping or one that is nested too
    deeply, UnsupportedDtypeError for containers that cannot be taken apart.
    """
    kind = type(value)
    if kind in _NUMBER_TYPES or (
        kind is np.ndarray and value.dtype.kind in _PLAIN_KINDS and value.dtype.itemsize <= 8
    ):
        yield Part(name, value)
        return
    value = computed(value)
    if is_sparse(value):
        # One of SciPy's is a mapping, too.
        yield from _expanded(Part(name, value), prefix)
        return
    found = parts_of_frame(value, name, prefix)
    if found is not None:
        for part in found:
            yield from _expanded(part)
        return
    fields = value if isinstance(value, Mapping) else fields_of_object(value)
    if fields is not None:
        yield from _mapping(fields, name, prefix)
    elif isinstance(value, (list, tuple)):
        yield from _sequence(value, Part(name, value), prefix)
    else:
        yield from _expanded(Part(name, value, labels=zone_of(value)), prefix)


def _mapping(value: Mapping[Any, Any], name: str, prefix: str) -> Iterator[Part]:
    if not value:
        what = f"{name!r} is an empty mapping: it" if prefix else "an empty mapping"
        raise UsageError(f"{what} holds nothing to check")
    for key, inner in value.items():
        yield from _inner(inner, f"{prefix}{key}")


def _inner(value: Any, name: str) -> Iterator[Part]:
    """What stands in a container: there, text is text, and nothing is something."""
    if type(value) in _NUMBER_TYPES:
        yield Part(name, value)
        return
    if name.count("/") > _MOST_LEVELS:
        raise UsageError(
            f"a value is nested deeper than {_MOST_LEVELS} levels",
            remedy="compare its parts one by one, each by its name",
        )
    found = array_of_object(value, name)
    if found is not None:
        yield Part(name, found[0], labels=found[1])
    elif isinstance(value, Mapping) and not is_sparse(value) and not value:
        yield _empty(name)
    else:
        try:
            # All of them first: what is ignored may be whatever it likes.
            parts = list(parts_of(value, name, f"{name}/"))
        except CiwrapError as error:
            parts = [Part(name, None, fault=error)]
        # A table without columns holds no array, and is something all the same.
        yield from parts or (_empty(name),)


def _empty(name: str) -> Part:
    return Part(name, np.asarray(False), labels=((TYPE, "empty mapping"),))


def _sequence(values: Sequence[Any], part: Part, prefix: str) -> Iterator[Part]:
    """A list as one array if it is one, else item by item."""
    if is_one_array(values):
        yield replace(part, value=values)
        return
    found = array_of_objects(list(values), part.name)
    if found is not None:
        yield replace(part, value=found[0], labels=(*part.labels, *found[1]))
        return
    if len(values) > _MOST_ITEMS:
        raise UsageError(
            f"{part.name!r} is a list of {len(values)} values that are not one array; more than"
            f" {_MOST_ITEMS} are not taken apart",
            remedy="give arrays, each by its name",
        )
    for number, inner in enumerate(values):
        for one in _inner(inner, f"{prefix}{number}"):
            yield _of_the_whole(one, part)


def _of_the_whole(one: Part, whole: Part) -> Part:
    """A part of what an array holds, with what is known of the array."""
    return replace(
        one,
        dims=whole.dims or one.dims,
        unit=one.unit or whole.unit,
        left_out=whole.left_out or one.left_out,
        labels=(*whole.labels, *one.labels),
    )


def _expanded(part: Part, prefix: str | None = None) -> Iterator[Part]:
    """The parts of an array that no plain array holds whole; the part itself if one does."""
    value = computed(part.value)
    part = part if value is part.value else replace(part, value=value)
    if is_sparse(value):
        for one in sparse(part):
            yield from _long_or_not(one)
        return
    mask = mask_of(value, part.name)
    if mask is not None:
        for one in masked(part, mask):
            yield from _objects(one, prefix)
        return
    if isinstance(value, np.ma.MaskedArray) and type(value) is np.ma.MaskedArray:
        refuse_carried(value, part.name)
        part = replace(part, value=np.asarray(value), unit=part.unit or unit_of(value))
    yield from _objects(part, prefix)


def _long_or_not(part: Part) -> Iterator[Part]:
    yield from long_double(part) if is_long_double(part.value) else (part,)


def _objects(part: Part, prefix: str | None) -> Iterator[Part]:
    """An array of Python's objects as text, or as the list that it is."""
    value = part.value
    if not (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
        yield from _long_or_not(part)
        return
    if value.size == 0:
        # A list would tell of the first axes alone.
        yield replace(part, value=np.empty(value.shape))
        return
    if value.ndim == 0:
        # As a list of items, a mapping would be its keys alone.
        for one in _inner(value.item(), part.name):
            yield _of_the_whole(one, part)
        return
    flat = value.reshape(-1).tolist()
    is_missing = np.array([is_nothing(one) or one is np.nan for one in flat], dtype=np.bool_)
    rest = [one for one, gone in zip(flat, is_missing, strict=True) if not gone]
    found = array_of_objects(rest, part.name) if rest else None
    if found is None or found[0].ndim != 1:
        yield from _sequence(value.tolist(), part, f"{part.name}/" if prefix is None else prefix)
        return
    texts = np.zeros(len(flat), dtype=found[0].dtype)
    texts[~is_missing] = found[0]
    whole = replace(part, value=texts.reshape(value.shape), labels=(*part.labels, *found[1]))
    if is_missing.any():
        whole = replace(whole, labels=(*whole.labels, ("missing", "masked")))
        yield whole
        yield part.beside("mask", is_missing.reshape(value.shape))
    else:
        yield whole
