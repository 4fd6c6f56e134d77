"""Values that are several arrays, taken apart: whatever a test or a program has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.frames import parts_of_frame, zone_of
from ciwrap.arrays.intake import computed
from ciwrap.arrays.lists import is_one_array
from ciwrap.arrays.objects import (
    TYPE,
    array_of_object,
    array_of_objects,
    fields_of_object,
    is_nothing,
)
from ciwrap.arrays.part import Part
from ciwrap.arrays.single import refuse_carried, unit_of
from ciwrap.arrays.split import is_long_double, is_sparse, long_double, mask_of, masked, sparse
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.late import numpy as np
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Part", "parts_of"]

_QUICK = frozenset({float, int, bool, complex})
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
    if kind in _QUICK or (
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
    if type(value) in _QUICK:
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
