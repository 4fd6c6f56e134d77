"""Plotfiles of AMReX: a folder with fields on the boxes of nested levels.

Sources: AMReX's documentation, "IO"; `WriteGenericPlotfileHeader` and `VisMF::Header` of AMReX.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.amrex_level import Level, Words, corners
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.reader import CheckedReader, Source, guarded, not_there, whole_file
from ciwrap.formats.words import numbers_in

if TYPE_CHECKING:
    from pathlib import Path

_DATA = re.compile(r"Level_\d+/[\w-]+")
# Who ran what and when.
_OF_THE_RUN = re.compile(r"\w*job_info|WarpXHeader")


class AmrexReader(CheckedReader):
    """Every field of a level, `Level_0/density`, with the axes z, y, x, on the smallest box around
    all boxes of the level: how it is divided is no difference. What none of them covers is NaN, and
    `Level_1/covered` false. Particles, and whatever else lies in the folder, are not read.
    """

    name: ClassVar[str] = "amrex"
    is_folder: ClassVar[bool] = True

    def is_output(self, path: Path) -> bool:
        return (path / "Header").is_file()

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        listing = Listing(path)
        if not path.exists():
            raise not_there(path)
        names = {one.name for one in path.iterdir()}
        if "Header" not in names:
            raise CorruptFileError("holds no Header")
        with guarded(path / "Header"):
            levels = _list_plotfile(path, listing)
        for one in sorted(names - {"Header", *levels}):
            if not _OF_THE_RUN.fullmatch(one):
                listing.add_fault(one, "is in a plotfile, but is not one of its fields")
        return EntrySource(path, listing.entries)


def _list_plotfile(path: Path, listing: Listing) -> list[str]:
    """Lists all that the header tells of, and gives the names of the levels."""
    _, count, rest = whole_file(path / "Header").decode("utf-8", "backslashreplace").split("\n", 2)
    *fields, rest = rest.split("\n", int(count))
    words = Words(rest)
    axes = words.whole()
    if len(fields) != int(count) or axes not in (1, 2, 3):
        raise CorruptFileError(
            "does not name as many fields as it says, or has other than 1 to 3 axes"
        )
    listing.add_array("time", numbers_in(words.take())[0])
    levels = [f"Level_{number}" for number in range(words.whole() + 1)]
    listing.add_array("low", numbers_in(words.take(axes)))
    listing.add_array("high", numbers_in(words.take(axes)))
    while not (first := words.take()[0]).startswith("(("):
        pass  # ratios, also of levels that are not there; the domains tell them as well
    domains = [first, *words.take(len(levels) - 1)]
    listing.add_array("steps", numbers_in(words.take(len(levels)), "<i8"))
    sizes = [numbers_in(words.take(axes)) for _ in levels]
    listing.add_array("coordinates", np.array(words.whole()))
    words.take()
    for level, domain, size in zip(levels, domains, sizes, strict=True):
        words.take()
        words.take(2 + 2 * axes * words.whole())  # time and step again, and where its boxes lie
        (name,) = words.take()
        if not _DATA.fullmatch(name) or not name.startswith(f"{level}/"):
            raise CorruptFileError(f"names {name[:40]!a} as the data of {level}")
        listing.add_array(f"{level}/domain", corners(domain))
        listing.add_array(f"{level}/cell_size", size)
        with guarded(path / f"{name}_H"):
            Level(path / f"{name}_H", fields, axes).add_to(listing, level)
    words.end()
    return levels
