"""Names of variables in files of Exodus, which are NetCDF: `nod/u` in place of `vals_nod_var1`.

Source: Schoof and Yarberry, "EXODUS II: A Finite Element Data Model", SAND92-2137, "Results Data".
`name_KIND_var` holds the names of the variables `vals_KIND_varN`, where N counts from 1; those of a
block or set end with its number, `vals_elem_var2eb1`. `vals_glo_var` has all of its kind in it.
"""

from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import CiwrapError
from ciwrap.formats.entries import Entry, shifted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NAMES = re.compile(r"name_([a-z]+)_var")
_VALUES = re.compile(r"vals_([a-z]+)_var(\d*)([a-z]+\d+)?")


def with_names(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of a file, the variables of Exodus by their names. Where names are not plain or
    not unique, all stays as it is.
    """
    names: dict[str, list[str]] = {}
    for entry in entries:
        kind = _NAMES.fullmatch(entry.info.name)
        if kind is not None and len(entry.info.shape) == 1 and entry.info.dtype[1] == "S":
            with contextlib.suppress(CiwrapError):  # which its comparison reports
                names[kind[1]] = _texts(entry)
    if not names:
        return list(entries)
    named = [one for entry in entries for one in _named(entry, names)]
    is_plain = all(name and name.isprintable() for known in names.values() for name in known)
    is_unique = len({one.info.name for one in named}) == len(named)
    return named if is_plain and is_unique else list(entries)


def _texts(entry: Entry) -> list[str]:
    found = entry.read(0, entry.info.element_count).tolist()
    return [one.decode("utf-8", "surrogateescape").strip() for one in found]


def _named(entry: Entry, names: Mapping[str, list[str]]) -> Iterator[Entry]:
    """The entry by its name; all that are in it, if it holds all of a kind at one iteration."""
    info = entry.info
    base = info.called or info.name
    found = _VALUES.fullmatch(base)
    known = names.get(found[1], []) if found else []
    if found is None or info.fault is not None:
        yield entry
    elif found[2] and 1 <= int(found[2]) <= len(known):
        name = "/".join(filter(None, (found[1], known[int(found[2]) - 1], found[3])))
        yield _renamed(entry, base, name)
    elif not found[2] and info.iteration is not None and info.shape[:1] == (len(known),):
        for number, name in enumerate(known):
            yield _renamed(_row(entry, number), base, f"{found[1]}/{name}")
    else:
        yield entry


def _renamed(entry: Entry, base: str, name: str) -> Entry:
    info = entry.info
    called = None if info.called is None else name
    return Entry(replace(info, name=name + info.name[len(base) :], called=called), entry.read)


def _row(entry: Entry, number: int) -> Entry:
    """One row of an entry's first axis."""
    info, shape = entry.info, entry.info.shape[1:]
    first, region = number * math.prod(shape), info.region
    if region is not None:
        count = math.prod(shape) * info.item_bytes
        region = FileRegion(region.path, region.offset + number * count, count)
    return Entry(replace(info, shape=shape, region=region), shifted(entry.read, first))
