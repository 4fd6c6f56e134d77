"""One array of a value, and what else says which numbers they are: its name, unit and labels.

NumPy drops masks, attributes and the difference of large integers in silence; here an array that
would lose something is refused.
"""

from __future__ import annotations

import array as arrays_of_python
import os
import types
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.handover import named_bfloat16
from ciwrap.arrays.single import TYPE, array_of_list, own_attributes
from ciwrap.arrays.values import Values, dtype_text, fields_of, native
from ciwrap.base.errors import CiwrapError, UnsupportedDtypeError, UsageError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Labels = tuple[tuple[str, str], ...]

DTYPE = "dtype"  # the label of a type of elements that NumPy does not have
MASKED = ("missing", "masked")
NUMBER_TYPES = frozenset({float, int, bool, complex})
_WRITTEN_TYPES = frozenset({float, int, list, tuple})
# What NumPy's own subclasses keep besides: where a memmap lies, what a matrix is about to do.
_OF_NUMPY = frozenset({"_mmap", "filename", "mode", "offset", "_getitem"})
_BUFFERS = (memoryview, bytearray, arrays_of_python.array)


class OneArray(Struct, frozen=True):
    """An array, and what else says which numbers they are.

    array: a NumPy array, or values that NumPy has no type for, or that lie on a device. unit: as
    text; None without one. dims: names of the dimensions, () without any. left_out: whether the
    value has further attributes, which are not compared. labels: what else belongs to its identity.
    is_written: whether they are numbers of Python, of which 0 and 0.0 are one.
    """

    array: NDArray[Any] | Values
    unit: str | None = None
    dims: tuple[str | None, ...] = ()
    left_out: bool = False
    labels: Labels = ()
    is_written: bool = False


class Part(Struct, frozen=True):
    """One array of a value, not converted yet.

    value: a plain array, number or list; while a value is taken apart, whatever it is made of.
    dims, unit, left_out, labels: as in OneArray. fault: why it cannot be converted, if that is
    known already. is_exact: whether these numbers say what belongs together (an index), so that no
    general bound is meant for them.
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
            dims=self.dims,
            unit=self.unit,
            left_out=self.left_out,
            labels=(*found.labels, *self.labels),
        )

    def beside(self, name: str, value: Any, *, is_exact: bool = True) -> Part:
        """Another array that belongs to the same value, called `self.name` and this name."""
        return Part(f"{self.name}.{name}", value, left_out=self.left_out, is_exact=is_exact)

    def labelled(self, *labels: tuple[str, str]) -> Part:
        return replace(self, labels=(*self.labels, *labels)) if labels else self

    def within(self, whole: Part) -> Part:
        """This part of a value, with what is known of the whole of it."""
        return replace(
            self,
            dims=whole.dims or self.dims,
            unit=self.unit or whole.unit,
            left_out=whole.left_out or self.left_out,
            labels=(*whole.labels, *self.labels),
            is_exact=whole.is_exact or self.is_exact,
        )


def one_array(value: Any, name: str | None = None) -> OneArray:
    """The value as an array, without a copy if that can be.

    name: for errors. Raises UnsupportedDtypeError for what has no defined comparison or would lose
    something, UsageError for text and for lists whose parts have different shapes.
    """
    if type(value) is np.ndarray:
        return _made(named_bfloat16(value), value, name)
    if type(value) in NUMBER_TYPES:
        return _made(np.asarray(value), value, name)
    if isinstance(value, Values):
        return OneArray(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        raise UsageError(
            f"{name!r} is text or a path" if name else "it is text or a path",
            remedy="check files one by one or by their folder; {'x': value} for text",
        )
    if isinstance(value, (list, tuple)):
        return _made(array_of_list(value, name, _plain_part), value, name)
    if isinstance(value, np.ndarray):
        if is_any_masked(value):
            raise missing(value, name)
        refuse_carried(value, name)
        return _made(named_bfloat16(np.asarray(value)), value, name)
    if isinstance(value, (float, int, complex)) and not isinstance(value, np.generic):
        refuse_carried(value, name)
        return _made(np.asarray(value), value, name)
    if isinstance(value, (np.generic, range, *_BUFFERS)) or _is_of_ctypes(value):
        return _made(named_bfloat16(np.asarray(value)), value, name)
    raise undefined(value, name)


def _is_of_ctypes(value: Any) -> bool:
    return any(
        (one.__module__, one.__name__) == ("_ctypes", "Array") for one in type(value).__mro__
    )


def _made(taken: NDArray[Any] | Values, value: Any, name: str | None) -> OneArray:
    """What was taken over, checked; dates and durations as text, which no bound is meant for."""
    if isinstance(taken, np.ndarray) and taken.dtype.kind in "mM":
        # NumPy writes dates of the other byte order as if they were of this one.
        times = taken.astype(native(taken.dtype), copy=False)
        return OneArray(_time_text(times), labels=((TYPE, str(times.dtype)),))
    return OneArray(_checked(taken, value, name), is_written=type(value) in _WRITTEN_TYPES)


def _time_text(times: NDArray[Any]) -> NDArray[Any]:
    """In ASCII: as ISO 8601 to the unit of the dtype, durations as their number of units."""
    if times.dtype.kind == "M":
        return np.asarray(np.datetime_as_string(times)).astype("S")  # of one time it makes a text
    numbers = times.astype(np.int64).astype("S21")
    return np.where(np.isnat(times), np.bytes_(b"NaT"), numbers)


def _checked(taken: NDArray[Any] | Values, value: Any, name: str | None) -> NDArray[Any] | Values:
    if not isinstance(taken, np.ndarray):
        return taken
    if taken.dtype.hasobject:
        raise undefined(value, name)
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


def _plain_part(value: Any, name: str | None) -> NDArray[Any]:
    """An array that is an item of a list, where there is no room for more than its elements."""
    found = one_array(value, name).array
    assert isinstance(found, np.ndarray)
    return found


def truth_values(mask: NDArray[Any] | np.bool_) -> NDArray[np.bool_]:
    """The values of a mask, those of each field for one of records, in one dimension."""
    values: NDArray[np.bool_] = np.ascontiguousarray(mask).reshape(-1).view(np.bool_)
    return values


def is_any_masked(value: Any) -> bool:
    return isinstance(value, np.ma.MaskedArray) and bool(
        truth_values(np.ma.getmaskarray(value)).any()
    )


def refuse_carried(value: Any, name: str | None, known: Iterable[str] = ()) -> None:
    """Raises UnsupportedDtypeError for a value of a class derived from one of Python's or NumPy's
    that has attributes of its own.

    known: names of those that count elsewhere.
    """
    own = {key: one for key, one in own_attributes(value).items() if one is not None}
    carried = own.keys() - set(known)
    if isinstance(value, (np.memmap, np.matrix)):
        carried -= _OF_NUMPY
    elif isinstance(value, np.ma.MaskedArray):
        carried -= vars(np.ma.masked).keys()
    if carried:
        plain = next(one for one in type(value).__mro__ if one.__module__ in _PLAIN)
        how = (
            f"{plain.__name__}(...)"
            if plain.__module__ in ("builtins", "collections")
            else "numpy.asarray(...)"
        )
        raise UnsupportedDtypeError(
            f"a value of type {type(value).__name__} carries {', '.join(sorted(carried))}, which"
            " would be lost",
            variable=name,
            remedy=f"give {how} of it, and what else counts by names of its own",
        )


_PLAIN = frozenset({"builtins", "numpy", "numpy.ma", "numpy.ma.core", "collections"})


def missing(value: Any, name: str | None) -> UnsupportedDtypeError:
    return UnsupportedDtypeError(
        f"an array of type {type(value).__name__} has masked or missing values, and NumPy would"
        " show what lies behind them",
        variable=name,
        remedy="give values and mask as two arrays, or use .filled(...)",
    )


def undefined(value: Any, name: str | None) -> UnsupportedDtypeError:
    """The error for a value that nobody can take apart, with the way out."""
    kind = type(value).__name__
    if isinstance(value, int):
        what, remedy = "an integer beyond 64 bits", _AS_TEXT
    elif isinstance(value, (list, tuple, np.ndarray)):
        what, remedy = f"{kind} of Python objects", _AS_TEXT
    else:
        what, remedy = f"a value of type {kind}", _REMEDIES.get(type(value), _TEACH)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            remedy = "give numbers, or a mapping or list of them"
        elif type(value).__module__ == "builtins" and remedy is _TEACH:
            remedy = "give list(...) of it"
    return UnsupportedDtypeError(f"{what} has no defined comparison", variable=name, remedy=remedy)


_AS_TEXT = "give numbers; for fixed-width text numpy.array(values, dtype=str)"
_TEACH = (
    "give what counts of it as a mapping, or teach its class: ciwrap.register_type, or a method"
    " __ciwrap__"
)
_REMEDIES = {
    type(None): "put it into a mapping, where None is compared: {'x': None}",
    set: "give a sorted list",
    frozenset: "give a sorted list",
    object: "give numbers, or a mapping or list of them",
}
