"""Arrays in memory as a source of variables, so that they are compared as files are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ciwrap.arrays.dtypes import dtype_text, extract, fields_of
from ciwrap.errors import UnsupportedDtypeError
from ciwrap.readers.base import Reader, Source, VariableInfo
from ciwrap.readers.layout import FoundOutputs, OutputFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.dtypes import Field

MEMORY = Path("<memory>")


class HeldArray(Protocol):
    """An array that NumPy has no type for, or that lies elsewhere (`ciwrap.arrays.values.Values`).

    device: as in VariableInfo.
    """

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def device(self) -> Any: ...
    def read(self, first_element: int, count: int) -> NDArray[Any]: ...


def found_arrays(arrays: Mapping[str, NDArray[Any] | HeldArray]) -> FoundOutputs:
    """Arrays by name, as if they had been found in a file; they are neither copied nor kept."""
    return FoundOutputs((OutputFile(MEMORY, ArrayReader(arrays)),))


class ArrayReader(Reader):
    """Opens the arrays it was given; a structured one is a variable for each field."""

    name = "memory"
    suffixes = ()

    def __init__(self, arrays: Mapping[str, NDArray[Any] | HeldArray]) -> None:
        self._arrays = arrays

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - the arrays have names
        options: Mapping[str, Any] | None = None,  # noqa: ARG002 - there are none
    ) -> Source:
        return ArraySource(path, self._arrays)


class ArraySource(Source):
    def __init__(self, path: Path, arrays: Mapping[str, NDArray[Any] | HeldArray]) -> None:
        self.path = path
        self._parts: dict[str, tuple[NDArray[Any], Field | None]] = {}
        self._held: dict[str, HeldArray] = {}
        infos = []
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                infos.append(VariableInfo(name, array.dtype, array.shape, device=array.device))
                self._held[name] = array
                continue
            if isinstance(array, np.ma.MaskedArray):
                raise UnsupportedDtypeError(
                    "a masked array has two kinds of missing",
                    variable=name,
                    remedy="use .filled(...)",
                )
            if array.dtype.names is None:
                dtype = dtype_text(array.dtype, variable=name)
                infos.append(VariableInfo(name, dtype, array.shape))
                self._parts[name] = (np.ascontiguousarray(array).reshape(-1), None)
                continue
            flat = np.ascontiguousarray(array).reshape(-1)
            for field in fields_of(name, array.dtype):
                shape = (*array.shape, *field.inner_shape)
                infos.append(VariableInfo(field.name, field.dtype, shape))
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
