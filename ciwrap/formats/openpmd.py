"""What the openPMD standard keeps in attributes alone: times, and components that are the same
everywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.formats.entries import Listing
    from ciwrap.formats.reader import AttributeRule

# The attributes of a component that is no dataset.
CONSTANT = {"shape", "value"}
# Those of an iteration that say when it is.
TIMES = ("time", "dt", "timeUnitSI")
_ITERATION = re.compile(r"/?data(?:/\d+)?")


def add_constant(
    listing: Listing, name: str, attributes: Mapping[str, Any], rule: AttributeRule, **facts: Any
) -> None:
    """Lists a component all of whose elements have one value. attributes: its attributes."""
    lengths = " ".join(map(str, np.atleast_1d(attributes["shape"]).tolist()))
    labels = {**dict(rule.labels(None, attributes)), "shape": lengths}
    listing.add_array(name, attributes["value"], labels=tuple(sorted(labels.items())), **facts)


def add_openpmd(listing: Listing, known: Mapping[str, Any], rule: AttributeRule) -> None:
    """Lists times and constant components of a file whose attributes are named by their paths.

    known: all of its attributes. A file that is not of openPMD has none of these.
    """
    if "/openPMD" not in known and "openPMD" not in known:
        return
    for name in known:
        above, _, last = name.rpartition("/")
        if last in TIMES and _ITERATION.fullmatch(above):
            with listing.one(name):
                listing.add_array(name, known[name])
        elif last == "value" and f"{above}/shape" in known:
            with listing.one(above):
                # What scales a quantity may stand at what holds its components.
                told = {
                    one: known[f"{path}/{one}"]
                    for path in (above.rpartition("/")[0], above)
                    for one in (*rule.names, *CONSTANT)
                    if f"{path}/{one}" in known
                }
                add_constant(listing, above, told, rule)
