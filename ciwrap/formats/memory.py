"""Arrays in memory as a source of variables, so that they are compared as files are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import dtype_text
from ciwrap.base.errors import CiwrapError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import Entry, EntrySource, Listing
from ciwrap.formats.find_outputs import MEMORY, FoundOutputs, OutputFile
from ciwrap.formats.reader import Reader, Source, VariableInfo, labels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.part import OneArray
    from ciwrap.arrays.values import Labels
    from ciwrap.formats.entries import ReadFlat


def found_arrays(arrays: Mapping[str, OneArray | CiwrapError]) -> FoundOutputs:
    """Arrays by name, as if they had been found in a file; they are neither copied nor kept.

    An error instead of an array: why there is none; it can be ignored, but not read.
    """
    return FoundOutputs((OutputFile(str(MEMORY), ArrayReader(arrays)),))


class ArrayReader(Reader):
    """Opens the arrays it was given; a structured one is a variable for each field."""

    name = "memory"
    suffixes = ()

    def __init__(self, arrays: Mapping[str, OneArray | CiwrapError]) -> None:
        self._arrays = arrays

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        listing = Listing(path)
        for called, found in self._arrays.items():
            if isinstance(found, CiwrapError):
                listing.add_fault(called, found.message)
                continue
            array, labels = found.array, labels_in(found)
            if not isinstance(array, np.ndarray):
                info = VariableInfo(
                    called, array.dtype, array.shape, device=array.device, labels=labels
                )
                listing.put(Entry(info, array.read))
                continue
            flat = np.ascontiguousarray(array).reshape(-1)
            if array.dtype.names is not None:
                listing.add(called, array.dtype, array.shape, _piece_of(flat), labels=labels)
                continue
            dtype = dtype_text(array.dtype, variable=called)
            written = found.is_written
            info = VariableInfo(called, dtype, array.shape, labels=labels, is_written=written)
            listing.put(Entry(info, _piece_of(flat)))
        return EntrySource(path, listing.entries)


def _piece_of(flat: NDArray[Any]) -> ReadFlat:
    return lambda first, count: flat[first : first + count]


def labels_in(found: OneArray) -> Labels:
    """The labels of an array in memory, as a file's variable would have them."""
    units = {} if found.unit is None else {"units": found.unit}
    labels: dict[str, str] = {}
    for key, text in found.labels:  # a list of categories in a column may say a thing twice
        labels[key] = f"{labels[key]}, {text}" if key in labels else text
    return labels_of(found.dims, {**labels, **units})
