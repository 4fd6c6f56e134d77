"""What a value is made of, array by array: containers, objects of fields, and arrays that no plain
array holds whole.

One rule: a value is taken apart only by somebody who knows its type (Python's and NumPy's here,
those of libraries in `libraries`, others as they were taught in `taught`); what its type carries is
compared, a label, or counted. A value of an unknown type is refused by name, whatever it offers.
Masked and sparse arrays and long doubles become several arrays (`x` and `x.mask`, `x.low`).
"""

from __future__ import annotations

import types
from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap.arrays.handover import take_over
from ciwrap.arrays.libraries import HANDED_OVER, computed, named, taker_of
from ciwrap.arrays.part import (
    DTYPE,
    MASKED,
    NUMBER_TYPES,
    Part,
    is_any_masked,
    missing,
    refuse_carried,
)
from ciwrap.arrays.single import (
    TYPE,
    array_of_object,
    array_of_objects,
    fields_of_object,
    is_nothing,
    is_one_array,
    kind_of_object,
)
from ciwrap.arrays.taught import ARRAY, how_taught
from ciwrap.arrays.values import native
from ciwrap.base.errors import CiwrapError, UnsupportedDtypeError, UsageError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

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
    deeply, UnsupportedDtypeError for values of types that are not known.
    """
    kind = type(value)
    if kind in NUMBER_TYPES or (
        kind is np.ndarray and value.dtype.kind in _PLAIN_KINDS and value.dtype.itemsize <= 8
    ):
        yield Part(name, value)
        return
    yield from _taken(Part(name, value), prefix)


def _taken(part: Part, prefix: str) -> Iterator[Part]:
    """The parts of a part's value, whatever it is."""
    how = how_taught(part.value)
    if how is not None:
        yield from _as_taught(part, how, prefix)
        return
    value = computed(part.value)
    take = taker_of(type(value))
    if take is not None:
        for one in take(value, part.name, prefix):
            yield from _or_fault(one.within(part))
        return
    fields = _items_of(value, part.name)
    if fields is not None:
        items, has_more = fields
        part = replace(part, left_out=part.left_out or has_more)
        for one in _mapping(items, part.name, prefix):
            yield one.within(part)
    elif isinstance(value, (list, tuple, deque)):
        refuse_carried(value, part.name)
        yield from _sequence(list(value), replace(part, value=value), prefix)
    elif isinstance(value, np.ndarray):
        yield from _array(replace(part, value=value), prefix)
    elif kind_of_object(value) not in (None, "str", "bytes"):
        yield from _inner(value, part.name)
    else:
        yield from _long_or_not(replace(part, value=value))


def _or_fault(part: Part) -> Iterator[Part]:
    """The parts of one part of a library's value; what is wrong with it matters if it counts."""
    if part.fault is not None:
        yield part
        return
    try:
        found = array_of_object(part.value, part.name)  # text is text there, as in a container
        if found is None:
            parts = list(_taken(part, f"{part.name}/"))
        else:
            parts = [replace(part, value=found[0]).labelled(*found[1])]
    except CiwrapError as error:
        parts = [replace(part, value=None, fault=error)]
    yield from parts


def _as_taught(part: Part, how: Any, prefix: str) -> Iterator[Part]:
    """The parts of what somebody has said is to be compared."""
    if how == ARRAY:
        yield from _taken(replace(part, value=take_over(part.value, part.name)), prefix)
        return
    said = how(part.value)
    if type(said) is type(part.value):
        raise UsageError(
            f"what {type(said).__name__} is to be compared by is one of the same class",
            remedy="return a mapping or an array",
        )
    if isinstance(said, (str, bytes)):
        yield from (one.within(part) for one in _inner(said, part.name))
    else:
        yield from _taken(replace(part, value=said), prefix)


def _items_of(value: Any, name: str) -> tuple[Mapping[Any, Any], bool] | None:
    """What a mapping holds, or an object of fields, and whether it carries more; else None."""
    if isinstance(value, (dict, types.MappingProxyType)):
        refuse_carried(value, name)
        return value, False
    return fields_of_object(value)


def _mapping(items: Mapping[Any, Any], name: str, prefix: str) -> Iterator[Part]:
    if not items:
        if not prefix:
            raise UsageError("an empty mapping holds nothing to check")
        yield Part(name, np.asarray(False), labels=((TYPE, "empty mapping"),))
        return
    for key, inner in items.items():
        text, labels = named(key, prefix)
        for one in _inner(inner, text):
            yield one.labelled(*labels)


def _inner(value: Any, name: str) -> Iterator[Part]:
    """What stands in a container: there, text is text, and nothing is something."""
    if type(value) in NUMBER_TYPES:
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
        return
    try:
        # All of them first: what is ignored may be whatever it likes.
        parts = list(parts_of(value, name, f"{name}/"))
    except CiwrapError as error:
        parts = [Part(name, None, fault=error)]
    # A table without columns holds no array, and is something all the same.
    yield from parts or _mapping({}, name, f"{name}/")


def _sequence(values: list[Any], part: Part, prefix: str) -> Iterator[Part]:
    """A list as one array if it is one, else item by item."""
    values = _handed_over(values, part.name)
    if is_one_array(values):
        yield replace(part, value=values)
        return
    found = array_of_objects(values, part.name)
    if found is not None:
        yield replace(part, value=found[0]).labelled(*found[1])
        return
    if len(values) > _MOST_ITEMS:
        raise UsageError(
            f"{part.name!r} is a list of {len(values)} values that are not one array; more than"
            f" {_MOST_ITEMS} are not taken apart",
            remedy="give arrays, each by its name",
        )
    for number, inner in enumerate(values):
        for one in _inner(inner, f"{prefix}{number}"):
            yield one.within(part)


def _handed_over(values: list[Any], name: str) -> list[Any]:
    """The items, those that a library's array is no more than as arrays of NumPy."""
    takers = {kind: taker_of(kind) for kind in set(map(type, values))}
    if not any(taker in HANDED_OVER for taker in takers.values()):
        return values
    found = []
    for one in values:
        take = takers[type(one)]
        plain = next(take(one, name, "")) if take is not None and take in HANDED_OVER else None
        is_plain = plain is not None and isinstance(plain.value, np.ndarray) and not plain.dims
        found.append(plain.value if plain is not None and is_plain else one)
    return found


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
    yield replace(part, value=high).labelled(*label)
    yield part.beside("low", low, is_exact=False)


def _array(part: Part, prefix: str) -> Iterator[Part]:
    """An array of NumPy or of a class derived from it, and its mask where something is masked."""
    value = part.value
    if isinstance(value, np.ma.MaskedArray):
        refuse_carried(value, part.name)
        mask: NDArray[Any] = np.ma.getmaskarray(value)
        if mask.dtype.names is not None and is_any_masked(value):
            raise missing(value, part.name)
        if mask.dtype.names is None and mask.any():
            plain: NDArray[Any] = np.array(np.ma.getdata(value), subok=False)
            plain[mask] = np.zeros((), dtype=plain.dtype)
            yield from _objects(replace(part, value=plain).labelled(MASKED), prefix)
            yield part.beside("mask", mask)
            return
    elif type(value) is not np.ndarray:
        refuse_carried(value, part.name)
    yield from _objects(replace(part, value=np.asarray(value)), prefix)


def _long_or_not(part: Part) -> Iterator[Part]:
    yield from long_double(part) if is_long_double(part.value) else (part,)


def _objects(part: Part, prefix: str) -> Iterator[Part]:
    """An array of Python's objects as text, or as the list that it is."""
    value = part.value
    if value.dtype.kind == "T":  # texts of any length
        value = value.astype(object)
    if value.dtype.kind != "O":
        yield from _long_or_not(part)
        return
    if value.size == 0:
        # A list would tell of the first axes alone.
        yield replace(part, value=np.empty(value.shape))
        return
    if value.ndim == 0:
        # As a list of items, a mapping would be its keys alone.
        for one in _inner(value.item(), part.name):
            yield one.within(part)
        return
    flat = value.reshape(-1).tolist()
    is_missing = np.array([is_nothing(one) or one is np.nan for one in flat], dtype=np.bool_)
    rest = [one for one, gone in zip(flat, is_missing, strict=True) if not gone]
    found = array_of_objects(rest, part.name) if rest else None
    if found is None or found[0].ndim != 1:
        yield from _sequence(value.tolist(), part.labelled((DTYPE, "object")), prefix)
        return
    texts = np.zeros(len(flat), dtype=found[0].dtype)
    texts[~is_missing] = found[0]
    whole = replace(part, value=texts.reshape(value.shape)).labelled(*found[1])
    if is_missing.any():
        yield whole.labelled(MASKED)
        yield part.beside("mask", is_missing.reshape(value.shape))
    else:
        yield whole
