"""Where damage is planted: in an element of each variable where it has a meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.errors import CiwrapError
from ciwrap.late import numpy as np
from ciwrap.model import VariableId
from ciwrap.selftest.document import Damage
from ciwrap.selftest.plants import Change
from ciwrap.selftest.values import beyond, flipped, sound
from ciwrap.structs import Struct
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.model import ErrorBound, VariableSettings
    from ciwrap.readers.base import VariableInfo
    from ciwrap.readers.layout import OutputFile

_UNIT = "units"


class Target(Struct):
    """One variable of one file, and what can be planted in it.

    is_helper: whether others are ordered or masked by it. bound: that it is compared by. not_tried:
    what cannot be planted, and why.
    """

    file: OutputFile
    info: VariableInfo
    identity: VariableId
    settings: VariableSettings
    is_helper: bool
    bound: ErrorBound
    changes: dict[Damage, Change]
    not_tried: list[str]


def find_targets(check: Check, files: tuple[OutputFile, ...], catalog: Catalog) -> list[Target]:
    """Every variable of the outputs. catalog: of the same files, rows as they are.

    Raises the errors of reading, and UsageError.
    """
    found = []
    for file in files:
        with file.open() as source:
            for info in source.variables:
                if info.fault is not None:
                    continue  # the configuration ignores it, or it could not have been captured
                identity = file.variable_id(info)
                settings = check.settings_for(identity, info.dtype)
                parameters = tree_parameters(info.dtype, settings, variable=identity.text)
                target = Target(file, info, identity, settings, False, bound_of(parameters), {}, [])
                _plan(target, catalog)
                found.append(target)
    helpers = {
        (name, one.identity.iteration)
        for one in found
        for name in (one.settings.mask, one.settings.align_by)
        if name is not None
    }
    for one in found:
        one.is_helper = (one.identity.name, one.identity.iteration) in helpers
    return found


def _plan(target: Target, catalog: Catalog) -> None:
    info = target.info
    target.changes[Damage.LOST] = Change(is_lost=True)
    unit = dict(info.labels).get(_UNIT)
    if unit is not None:
        target.changes[Damage.UNIT] = Change(unit=f"{unit} * 1000")
    if info.dtype[1:] == "bf2":
        target.not_tried.append(f"{target.identity.text}: no values of type bfloat16 are planted")
        return
    values = catalog.values(target.identity)
    mask = _mask_of(target, catalog)
    for damage, index, value in _elements(target, values, mask):
        target.changes.setdefault(damage, Change(element=(index, value)))
    if Damage.BEYOND not in target.changes:
        what = "element" if mask is None else "element outside its mask"
        target.not_tried.append(
            f"{target.identity.text}: no {what} has a value beyond its bound"
            if info.element_count
            else f"{target.identity.text}: it has no elements"
        )


def _mask_of(target: Target, catalog: Catalog) -> Values | None:
    """The mask, as far as it is there; comparing tells of one that is not."""
    if target.settings.mask is None:
        return None
    identity = target.identity
    try:
        return catalog.values(VariableId(target.settings.mask, identity.iteration, identity.rank))
    except (CiwrapError, KeyError):
        return None


def _elements(
    target: Target, values: Values, mask: Values | None
) -> Iterator[tuple[Damage, int, Any]]:
    """Damages with where and what, until there is one of each that the variable can have."""
    kind = target.info.dtype[1]
    wanted = {Damage.BEYOND}
    wanted |= {Damage.NAN} if kind in "fc" else set()
    wanted |= {Damage.SIGN} if kind in "fci" else set()
    wanted |= {Damage.MASKED} if mask is not None else set()
    for first, slab in values.slabs():
        fits = sound(slab, target.settings.fill_values)
        hidden = (
            np.zeros(slab.shape, dtype=bool)
            if mask is None
            else mask.read(first, slab.size).astype(bool)
        )
        for damage in sorted(wanted):
            place = fits & (hidden if damage is Damage.MASKED else ~hidden)
            found = _element(damage, slab, place, target.bound)
            if found is not None:
                wanted.discard(damage)
                yield damage, first + found[0], found[1]
        if not wanted:
            return


def _element(
    damage: Damage, slab: NDArray[Any], place: NDArray[np.bool_], bound: ErrorBound
) -> tuple[int, Any] | None:
    indices = np.flatnonzero(place)
    if damage is Damage.SIGN:
        # The largest: where even its sign does not matter, none does.
        sizes = np.abs(slab[indices])
        indices = indices[sizes > 0][np.argsort(sizes[sizes > 0])[-1:]]
    # The middle first, and some others, for one may be too large to have anything beyond it.
    for index in [*indices[indices.size // 2 :][:5], *indices[:5]]:
        value: Any
        if damage is Damage.NAN:
            value = slab.dtype.type(np.nan)
        elif damage is Damage.SIGN:
            value = flipped(slab[index])
        else:
            value = beyond(slab[index], bound)
        if value is not None:
            return int(index), value
    return None
