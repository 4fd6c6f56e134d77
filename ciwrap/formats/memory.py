"""Arrays in memory as a source of variables, so that they are compared as files are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import dtype_text, extract, fields_of
from ciwrap.base.errors import CiwrapError
from ciwrap.base.late import numpy as np
from ciwrap.formats.find_outputs import MEMORY, FoundOutputs, OutputFile
from ciwrap.formats.reader import Reader, Source, VariableInfo, labels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.part import OneArray
    from ciwrap.arrays.values import Field, Labels, Values


def found_arrays(arrays: Mapping[str, OneArray | CiwrapError]) -> FoundOutputs:
    """Arrays by name, as if they had been found in a file; they are neither copied nor kept.

    An error instead of an array: why there is none; it can be ignored, but not read.
    """
    return FoundOutputs((OutputFile(MEMORY, ArrayReader(arrays)),))


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
        return ArraySource(path, self._arrays)


class ArraySource(Source):
    def __init__(self, path: Path, arrays: Mapping[str, OneArray | CiwrapError]) -> None:
        self.path = path
        self._parts: dict[str, tuple[NDArray[Any], Field | None]] = {}
        self._held: dict[str, Values] = {}
        infos = []
        for name, found in arrays.items():
            if isinstance(found, CiwrapError):
                infos.append(VariableInfo(name, "|b1", (), fault=found.message))
                continue
            array, labels = found.array, labels_in(found)
            if not isinstance(array, np.ndarray):
                infos.append(
                    VariableInfo(name, array.dtype, array.shape, device=array.device, labels=labels)
                )
                self._held[name] = array
                continue
            flat = np.ascontiguousarray(array).reshape(-1)
            if array.dtype.names is None:
                dtype = dtype_text(array.dtype, variable=name)
                written = found.is_written
                infos.append(
                    VariableInfo(name, dtype, array.shape, labels=labels, is_written=written)
                )
                self._parts[name] = (flat, None)
                continue
            for field in fields_of(name, array.dtype):
                shape = (*array.shape, *field.inner_shape)
                infos.append(VariableInfo(field.name, field.dtype, shape, labels=labels))
                self._parts[field.name] = (flat, field)
        self.variables = tuple(infos)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        if name in self._held:
            return self._held[name].read(first_element, count)
        flat, field = self._parts[name]
        if field is None:
            return flat[first_element : first_element + count]
        per_record = math.prod(field.inner_shape)
        if count == 0 or per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first_element, per_record)
        end = record + (within + count + per_record - 1) // per_record
        values: NDArray[Any] = extract(flat[record:end], flat.dtype, field)
        return values[within : within + count]


def labels_in(found: OneArray) -> Labels:
    """The labels of an array in memory, as a file's variable would have them."""
    units = {} if found.unit is None else {"units": found.unit}
    labels: dict[str, str] = {}
    for key, text in found.labels:  # a list of categories in a column may say a thing twice
        labels[key] = f"{labels[key]}, {text}" if key in labels else text
    return labels_of(found.dims, {**labels, **units})
