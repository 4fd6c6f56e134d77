"""Attributes: which of them belong to a variable's identity, and all of them as small variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.errors import ConfigError
from ciwrap.late import numpy as np
from ciwrap.readers.labels import labels_of, plain_name
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ciwrap.readers.base import Labels
    from ciwrap.readers.entries import Listing
    from ciwrap.readers.history import Place
    from ciwrap.readers.packed import Packing

# What numbers mean: a variable with another one of these is another variable.
MEANING = (
    *("_FillValue", "_Unsigned", "add_offset", "calendar", "flag_masks", "flag_meanings"),
    *("flag_values", "missing_value", "positive", "scale_factor", "unitDimension", "unitSI"),
    *("units", "valid_max", "valid_min", "valid_range"),
)
# The values of an unpacked variable already tell of these.
PACKING = ("_FillValue", "add_offset", "missing_value", "scale_factor")
# These are as stored, so that they say something else of each packing.
LIMITS = ("valid_max", "valid_min", "valid_range")
# And of this one their type.
TYPE = ("_Unsigned",)


class AttributeRule(Struct, frozen=True):
    """names: attributes that are labels of their variable. has_all: whether every attribute, also
    those of groups and of the file, is a variable `path@name` besides.
    """

    names: tuple[str, ...] = MEANING
    has_all: bool = False

    @staticmethod
    def of(options: Mapping[str, Any], path: Path) -> AttributeRule:
        """The rule that the option `attributes` gives: true, false, or a list of names.

        Raises ConfigError for anything else.
        """
        given = options.get("attributes", list(MEANING))
        if isinstance(given, bool):
            return AttributeRule(MEANING, has_all=True) if given else AttributeRule(())
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
            raise ConfigError(
                "must be true, false or a list of names", file=path, key="options.attributes"
            )
        return AttributeRule(tuple(given))

    def labels(
        self,
        dimensions: Sequence[str | None] | None,
        attributes: Mapping[str, Any],
        packing: Packing | None = None,
    ) -> Labels:
        """The labels of a variable. attributes: all that it has; only those that count are read.

        packing: how its values are unpacked, if they are. Raises UnsupportedDtypeError for
        an attribute that is neither number nor text.
        """
        names = self.names
        if packing is not None and names == MEANING:
            told = (*PACKING, *LIMITS, *TYPE) if packing.is_scaled else TYPE
            names = tuple(name for name in names if name not in told)
        return labels_of(
            dimensions, {name: attributes[name] for name in names if name in attributes}
        )


def add_attributes(
    listing: Listing,
    attributes: Mapping[str, Any],
    path: tuple[str, ...],
    place: Callable[[tuple[str, ...], str], Place],
) -> None:
    """Lists attributes as small variables `path@name`."""
    above, last = path[:-1], path[-1] if path else ""
    for name in attributes:
        called = f"{last}@{plain_name(name)}"
        key = "/".join([*above, called])
        facts = place(above, called).facts
        with listing.one(key, **facts):
            value = attributes[name]
            if getattr(value, "shape", ()) is None:  # a null dataspace
                value = np.empty(0, value.dtype)
            array = np.asarray(value)
            if array.dtype.hasobject and not all(
                isinstance(one, (str, bytes)) for one in array.reshape(-1).tolist()
            ):
                listing.add_fault(key, "is an attribute that is neither number nor text", **facts)
            else:
                listing.add_array(key, array, **facts)
