"""The array of a .npy, wherever its bytes come from, as one variable per field."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import extract
from ciwrap.late import numpy as np
from ciwrap.readers.base import FileRegion, VariableInfo
from ciwrap.readers.fortran import FortranOrder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.readers.npy_format import NpyHeader


class NpyArray:
    """Reads elements of the array's variables. read_at(offset, count) gives bytes of what holds the
    data, which begin at `start` there.
    """

    def __init__(
        self, header: NpyHeader, read_at: Callable[[int, int], bytes | bytearray], start: int = 0
    ) -> None:
        self._header = header
        self._read_at = read_at
        self._start = start
        self._fortran = None
        if header.fortran_order:
            self._fortran = FortranOrder(
                header.shape,
                header.stored_dtype,
                lambda offset, count: read_at(start + offset, count),
            )

    def infos(self, path: Path, start: int | None) -> tuple[VariableInfo, ...]:
        """One per field. start: where the array's bytes begin in the file; None if it is packed."""
        header, region = self._header, None
        if start is not None and header.dtype.names is None and not header.fortran_order:
            region = FileRegion(str(path), start, header.data_bytes)
        return tuple(
            VariableInfo(field.name, field.dtype, (*header.shape, *field.inner_shape), region)
            for field in header.fields
        )

    def read(self, field_number: int, first: int, count: int) -> NDArray[Any]:
        """Elements of one variable, counted in C order of its own shape."""
        field = self._header.fields[field_number]
        per_record = math.prod(field.inner_shape)
        if count == 0 or per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first, per_record)
        record_count = (within + count + per_record - 1) // per_record
        if self._fortran is not None:
            records = self._fortran.read(record, record_count)
        else:
            item = self._header.dtype.itemsize
            data = self._read_at(self._start + record * item, record_count * item)
            records = np.frombuffer(data, self._header.stored_dtype)
        values: NDArray[Any] = extract(records, self._header.dtype, field)
        return values[within : within + count]
