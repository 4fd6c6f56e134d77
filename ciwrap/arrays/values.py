"""One variable's values as a stream, wherever they lie; their dtypes, and conversions of these.

Dtypes are array-protocol strings, and "<bf2" for bfloat16, whose bytes travel as unsigned 16-bit
integers (`storage_dtype`). A conversion is exact, or it is an error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ciwrap.base.errors import (
    CorruptFileError,
    DtypeMismatchError,
    DuplicateVariableError,
    MaskError,
    PickledArrayError,
    UnsupportedDtypeError,
)
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.model import ErrorBound

_FLOATS = {2, 4, 8}
_COMPLEXES = {8, 16}
# Of the common dtypes, without NumPy.
_ORDERS = frozenset("<>|")
_ITEM_BYTES = {
    **{f"{kind}{size}": size for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"f{size}": size for size in sorted(_FLOATS)},
    **{f"c{size}": size for size in sorted(_COMPLEXES)},
    "b1": 1,
    "bf2": 2,
}
_IGNORE = "leave it out with 'ignore' in ciwrap.yaml, or write it as another type"


@lru_cache(maxsize=256)
def storage_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype in which arrays of this dtype are handed over."""
    if dtype[1:] == "bf2":
        return np.dtype(dtype[0] + "u2")
    return np.dtype(dtype)


def item_bytes(dtype: str) -> int:
    """How many bytes an element takes. Raises TypeError for what is not a dtype."""
    if dtype[:1] in _ORDERS and dtype[1:] in _ITEM_BYTES:
        return _ITEM_BYTES[dtype[1:]]
    return storage_dtype(dtype).itemsize


def dtype_text(
    dtype: np.dtype[Any], *, file: str | os.PathLike[str] | None = None, variable: str | None = None
) -> str:
    """The array-protocol string of a dtype that can be compared.

    Raises PickledArrayError for object arrays and UnsupportedDtypeError for other kinds without a
    defined comparison: dates, durations, long double, untyped bytes, strings of width 0.
    """
    kind, size = dtype.kind, dtype.itemsize
    if dtype.hasobject:
        raise PickledArrayError(
            "holds Python objects; unpickling them could run code, so they are refused",
            file=file,
            variable=variable,
            remedy="write numbers or fixed-width strings",
        )
    if (
        kind in "biu"
        or (kind == "f" and size in _FLOATS)
        or (kind == "c" and size in _COMPLEXES)
        or (kind in "SU" and size > 0)
    ):
        return str(dtype.str)
    if kind in "SU":
        what = "strings of width 0 have nothing to compare"
    elif kind == "V" and dtype.names is None:
        what = f"untyped bytes ({dtype.str}) have no defined comparison"
    else:
        what = f"values of type {dtype} have no defined comparison"
    raise UnsupportedDtypeError(what, file=file, variable=variable, remedy=_IGNORE)


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in this machine's byte order, in which NumPy has a name for it: float128."""
    return dtype.newbyteorder("=")


class Field(Struct, frozen=True):
    """One plain variable within a (structured) element.

    name: the variable's own name, with the field names after dots. inner_shape: of a subarray
    field. byte_offset: of the field in the element.
    """

    name: str
    dtype: str
    inner_shape: tuple[int, ...]
    byte_offset: int


def fields_of(
    name: str, dtype: np.dtype[Any], *, file: str | os.PathLike[str] | None = None
) -> list[Field]:
    """The variables that an array of this dtype holds: itself, or one per (nested) field.

    Raises UnsupportedDtypeError, PickledArrayError, DuplicateVariableError.
    """
    found: list[Field] = []
    _collect(name, dtype, (), 0, found, file)
    if not found:
        raise UnsupportedDtypeError("a record without fields", file=file, variable=name)
    names = [field.name for field in found]
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DuplicateVariableError("two fields share this name", file=file, variable=twice)
    return found


def _collect(
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    offset: int,
    found: list[Field],
    file: str | os.PathLike[str] | None,
) -> None:
    if dtype.subdtype is not None:
        base, inner = dtype.subdtype
        if base.names is not None and inner:
            raise UnsupportedDtypeError(
                "an array of records within a record has no defined comparison",
                file=file,
                variable=name,
                remedy=_IGNORE,
            )
        _collect(name, base, shape + inner, offset, found, file)
    elif dtype.names is not None and dtype.fields is not None:
        for field_name in dtype.names:
            entry = dtype.fields[field_name]
            _collect(f"{name}.{field_name}", entry[0], shape, offset + entry[1], found, file)
    else:
        text = dtype_text(dtype, file=file, variable=name)
        found.append(Field(name, text, shape, offset))


def extract(elements: np.ndarray[Any, Any], dtype: np.dtype[Any], field: Field) -> Any:
    """The field's values of a one-dimensional array of elements, one-dimensional and contiguous.

    Records are elements of as many plain bytes as `dtype` has.
    """
    if dtype.names is None:
        return elements
    inner = storage_dtype(field.dtype)
    view = np.ndarray(
        (elements.size, *field.inner_shape),
        dtype=inner,
        buffer=elements.view(np.uint8),
        offset=field.byte_offset,
        strides=(dtype.itemsize, *_c_strides(field.inner_shape, inner.itemsize)),
    )
    return np.ascontiguousarray(view).reshape(-1)


def _c_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    strides: list[int] = []
    step = item_bytes
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


_NAMES = {
    "half": "f2",
    "float": "f8",
    "single": "f4",
    "double": "f8",
    "bfloat16": "bf2",
    "bf2": "bf2",
    "bool": "b1",
    "int": "i8",
    "byte": "i1",
}


def parse_dtype(text: str, *, big_endian: bool | None = None) -> str:
    """The dtype that a person wrote: "float32", "f4", ">i8", "bfloat16", "S12".

    big_endian: the byte order where the text has none (None: little). Raises CorruptFileError if
    the text is not a dtype or contradicts big_endian, UnsupportedDtypeError if it cannot be
    compared.
    """
    body = text.strip()
    order = body[:1] if body[:1] in "<>" else ""
    body = body[1:] if body[:1] in "<>|=" else body
    if order and big_endian is not None and (order == ">") != big_endian:
        raise CorruptFileError(f"dtype {text!r} contradicts its byte_order")
    order = order or (">" if big_endian else "<")
    body = _NAMES.get(body, body)
    if body == "bf2":
        return f"{order}bf2"
    try:
        dtype = np.dtype(body)
    except (TypeError, ValueError, SyntaxError) as error:
        raise CorruptFileError(f"{text!r} is not a dtype") from error
    if dtype.names is not None or dtype.subdtype is not None:
        raise UnsupportedDtypeError(f"dtype {text!r} must be a plain one")
    return dtype_text(dtype.newbyteorder(">" if order == ">" else "<"))


DEFAULT_SLAB_BYTES = 4 << 20
_MEND_MASK = "fix 'mask', or have the program write truth values of the variable's shape"


class FileRegion(Struct, frozen=True):
    """Where a variable's bytes lie in a file, back to back in C order."""

    path: str
    offset: int
    byte_count: int


Labels = tuple[tuple[str, str], ...]
# The label of a text that is compared token by token; its bytes are no elements by themselves.
TEXT_LABEL = ("compared", "token by token")
# The label of numbers in a text of which the last one ends where the file does, without a line
# break: digits of it may be missing.
CUT_LABEL = ("text ends", "with its last number")
# The label of the digest of a file that no reader knows: other bytes say nothing of its numbers.
UNREAD_LABEL = ("read by", "no reader")
# What `ignore` may name, as the core has it (`_core.ignored_text_sets`).
TEXT_SETS = ("dates", "times", "paths", "hosts", "pids", "memory")


class SectionPlace(Struct, frozen=True):
    """A place that is left out in a section of a text alone: in the lines from one that the
    template `start` matches up to one that `end` does (None: to the end). place: as in
    `ignore_places`, without words if need be; '' for all of these lines.
    """

    place: str
    start: str
    end: str | None = None

    def __str__(self) -> str:
        where = f"{self.start} ... {self.end or ''}".rstrip()
        return f"{self.place} in {where}" if self.place else where


class TextRules(Struct, frozen=True):
    """What is left out when a text is compared token by token.

    ignore: names of sets of words and numbers, of `TEXT_SETS`. ignore_lines: whole
    lines; `*` stands for any text. ignore_places: lines with `{}` for a number that is left out,
    and `#` for any other. sections: such places in parts of the text.
    """

    ignore: tuple[str, ...] = ()
    ignore_lines: tuple[str, ...] = ()
    ignore_places: tuple[str, ...] = ()
    sections: tuple[SectionPlace, ...] = ()


class Shaped:
    """What has a dtype and a shape, whether or not any of its values are at hand."""

    __slots__ = ()
    dtype: str
    shape: tuple[int, ...]
    labels: Labels

    @property
    def signature(self) -> Signature:
        return Signature(self.dtype, tuple(self.shape), self.labels)

    @property
    def element_count(self) -> int:
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        return item_bytes(self.dtype)

    @property
    def byte_count(self) -> int:
        return self.element_count * self.item_bytes

    @property
    def is_text(self) -> bool:
        """Whether this is a text that is compared token by token."""
        return TEXT_LABEL in self.labels


class Signature(Shaped, Struct, frozen=True):
    """What a variable is, whatever its values: two that are compared have one signature.

    dtype, shape: as in `Values`. labels: what its file says of it besides, as (key, text) pairs in
    the order of the keys, such as ("dims", "x y") and ("units", "m"); () where it says nothing.
    """

    dtype: str
    shape: tuple[int, ...]
    labels: Labels = ()


class HeldOnDevice(Shaped):
    """An array in a device's memory, and the core's backend that computes there."""

    def __init__(self, array: _core.DeviceArray, backend: str) -> None:
        self.array = array
        self.backend = backend
        self.dtype = array.dtype
        self.shape = tuple(array.shape)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        """A copy of some elements on the host. Raises NotAvailableError."""
        copied = self.array.read(first_element, count, backend=self.backend)
        is_bfloat16 = self.dtype[1:] == "bf2"
        return copied.view("<u2" if is_bfloat16 else self.dtype)


class Values(Shaped, ABC):
    """dtype: array-protocol string with byte order, or "<bf2". shape: () for a single number.

    labels: as in `Signature`. device: the array on a device that these values are; `read` then
    copies. is_written: whether they are numbers written out, of which 0 and 0.0 are one.
    flipped_count: how many vectors of it are here with the other sign; None where signs count.
    """

    labels: Labels = ()
    is_written: bool = False
    flipped_count: int | None = None
    device: HeldOnDevice | None = None

    @property
    def masked_count(self) -> int:
        """How many elements a mask has taken out."""
        return 0

    @property
    def mask(self) -> Values | None:
        """Which elements a mask has taken out, as booleans; None where there is no mask."""
        return None

    @property
    def text(self) -> TextRules | None:
        """How the bytes are compared if they are a text; None if they are elements."""
        return None

    @property
    def series(self) -> SeriesFacts | None:
        """Steps and places of the elements, where they were found one by one in a text."""
        return None

    @property
    def region(self) -> FileRegion | None:
        """Where the bytes lie as they are; None if they have to be read through `read`."""
        return None

    @abstractmethod
    def read(self, first_element: int, count: int) -> NDArray[Any]:
        """`count` elements in C order from `first_element` on:

        a contiguous array of shape (count,).
        """

    def slabs(self, slab_bytes: int = DEFAULT_SLAB_BYTES) -> Iterator[tuple[int, NDArray[Any]]]:
        """All values in order: (index of the first element, elements)."""
        step = max(1, slab_bytes // max(1, self.item_bytes))
        for first in range(0, self.element_count, step):
            yield first, self.read(first, min(step, self.element_count - first))

    def array(self) -> NDArray[Any]:
        """All values in their shape."""
        return self.read(0, self.element_count).reshape(self.shape)

    def read_all(self) -> bytes:
        return b"".join(slab.tobytes() for _, slab in self.slabs())


class ArrayValues(Values):
    """An array in memory; copied only if it is not C-contiguous. dtype: as for `Values`."""

    def __init__(self, array: NDArray[Any], dtype: str | None = None) -> None:
        self.dtype = array.dtype.str if dtype is None else dtype
        self.shape = array.shape
        self._flat = np.ascontiguousarray(array).reshape(-1)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._flat[first_element : first_element + count]


class DeviceValues(Values):
    """An array in a device's memory, which stays there; `read` copies what it is asked for."""

    def __init__(self, held: HeldOnDevice) -> None:
        self._held = held
        self.dtype = held.dtype
        self.shape = held.shape
        self.device = held

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._held.read(first_element, count)


class MaskedValues(Values):
    """Values that are zero (or empty) where a boolean variable of the same shape is true.

    Raises MaskError if the mask is of another type or shape.
    """

    def __init__(self, values: Values, mask: Values, mask_name: str) -> None:
        if mask.dtype != "|b1":
            raise MaskError(
                f"the mask {mask_name!r} must be boolean, it is {mask.dtype}", remedy=_MEND_MASK
            )
        if mask.shape != values.shape:
            raise MaskError(
                f"the mask {mask_name!r} has shape {mask.shape}, the variable has {values.shape}",
                remedy=_MEND_MASK,
            )
        self._values = values
        self._mask = mask
        self.dtype = values.dtype
        self.shape = values.shape
        self.labels = values.labels
        self.is_written = values.is_written
        self._masked_count: int | None = None

    @property
    def masked_count(self) -> int:
        """Reads the mask, once."""
        if self._masked_count is None:
            counts = (int(np.count_nonzero(slab)) for _, slab in self._mask.slabs())
            self._masked_count = sum(counts)
        return self._masked_count

    @property
    def mask(self) -> Values | None:
        return self._mask

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        elements: NDArray[Any] = self._values.read(first_element, count).copy()
        elements[self._mask.read(first_element, count)] = np.zeros((), dtype=elements.dtype)
        return elements


def as_bytes(elements: NDArray[Any]) -> NDArray[np.uint8]:
    """A contiguous array's bytes without a copy: one format for the core, whatever the dtype."""
    if elements.size == 0:
        return np.empty(0, dtype=np.uint8)
    flat: NDArray[np.uint8] = elements.reshape(-1).view(np.uint8)
    return flat


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
                f"value {first_element + position} = {elements[position]!s} is beyond the range"
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
            f"value {first_element + position} = {elements[position]!s} ({from_dtype}) has no"
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


def slack_of(golden: NDArray[Any], bound: ErrorBound, combine: str = "sum") -> NDArray[np.float64]:
    """How far floating-point numbers may be from each golden one, about as the core decides it."""
    size = np.abs(golden)
    if bound.ulps:
        return np.asarray(np.spacing(size), dtype=np.float64) * bound.ulps
    relative = np.asarray(size, dtype=np.float64) * bound.rtol
    if combine == "sum":
        return relative + bound.atol
    pick = np.minimum if combine == "both" else np.maximum
    return np.asarray(pick(relative, bound.atol), dtype=np.float64)


# The label of what stands before the first step of a log.
NO_STEP = -1


class PlaceInText(Struct, frozen=True):
    """Where a number stands. line, column: from 1, of its first byte. text: as it is printed."""

    line: int
    column: int
    text: str
    byte_count: int = 0


class SeriesFacts(ABC):
    """What a text says of a variable's elements besides their values.

    steps: the label of each, None where they are only counted. steps_name: what the variable is
    called that holds them, by a source as in its file, by values as in the check. step_size: what
    one step adds to its values. printed_digits: significant digits of the number that is printed
    with the most. printed_exponent: the smallest unit that is printed is 10 to this; None if that
    is not known.
    """

    steps: NDArray[np.int64] | None
    steps_name: str | None = None
    step_size: float = 1.0
    printed_digits: int
    printed_exponent: int | None

    @abstractmethod
    def place(self, element: int) -> PlaceInText | None:
        """Where an element stands; None if that is not known."""


class StoredSteps(SeriesFacts):
    """Steps alone: of a golden, or of the rows of a table."""

    printed_digits = 0
    printed_exponent = None

    def __init__(self, steps: NDArray[np.int64] | None) -> None:
        self.steps = steps

    def place(self, element: int) -> PlaceInText | None:  # noqa: ARG002 - it keeps steps only
        return None


_LAST_CHARACTER = 0x10FFFF


def element_texts(elements: NDArray[Any]) -> list[str]:
    """Each element as text that reads back exactly."""
    if elements.dtype.kind in "SU":
        return text_literals(elements)
    return [str(one) for one in elements]


def text_literals(texts: NDArray[Any]) -> list[str]:
    """Fixed-width texts or bytes as Python writes them: `'ab'`, `b'ab'`.

    What a damaged file holds need not be characters; NumPy cannot even take such an element out of
    its array. A number that is no character is shown as `\\U00110000`.
    """
    if texts.dtype.kind == "U":
        order = texts.dtype.str[:1]
        numbers = np.ascontiguousarray(texts).reshape(-1).view(f"{order}u4")
        if numbers.size and int(numbers.max()) > _LAST_CHARACTER:
            return [_literal(one) for one in numbers.reshape(texts.size, -1)]
    return [repr(one) for one in texts.tolist()]


def _literal(numbers: NDArray[Any]) -> str:
    ends = np.flatnonzero(numbers)
    used = numbers[: int(ends[-1]) + 1 if ends.size else 0].tolist()
    return "'" + "".join(map(_character, used)) + "'"


def _character(number: int) -> str:
    return f"\\U{number:08x}" if number > _LAST_CHARACTER else repr(chr(number))[1:-1]
