"""Parquet (pyarrow). A column is a variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import Labels
from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import MAX_TEXTS, EntrySource, Listing
from ciwrap.formats.reader import (
    AttributeRule,
    CheckedReader,
    Source,
    check_is_file,
    guarded,
    library,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ParquetReader(CheckedReader):
    """Every column is a variable. One with nulls also gives `NAME.is_null`, so that a null is no
    zero and no NaN; times count in their own units as whole numbers, and a label tells their type.
    """

    name: ClassVar[str] = "parquet"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        _libraries(path)  # once, and not in the process of each file
        # Arrow ends the process on some damaged files.
        return SourceApart(path, partial(_source, path), bytes_below(path))


def _libraries(path: Path) -> tuple[Any, Any]:
    return library("pyarrow", file=path), library("pyarrow.parquet", file=path)


def _source(path: Path) -> Source:
    arrow, parquet = _libraries(path)
    with guarded(path):
        file = parquet.ParquetFile(str(path), memory_map=False)
        listing = Listing(path)
        with closed_on_error(file.close):
            _list(arrow, file, listing)
    return EntrySource(path, listing.entries, file.close)


def _list(arrow: Any, file: Any, listing: Listing) -> None:
    rows = int(file.metadata.num_rows)
    for column in file.schema_arrow:
        groups = _Groups(arrow, file, column.name)
        kind = column.type
        inner = 1
        if arrow.types.is_fixed_size_list(kind):
            inner, kind = kind.list_size, kind.value_type
        shape = (rows,) if inner == 1 and kind is column.type else (rows, inner)
        if arrow.types.is_dictionary(kind):
            kind = kind.value_type
        labels = _labels(arrow, column, kind)
        if _is_text(arrow, kind) and len(shape) == 1:
            _texts(groups, column.name, rows, listing, labels)
            continue
        dtype = _dtype_of_column(arrow, kind)
        if dtype is None:
            listing.add_fault(column.name, f"is of type {column.type}, which is not compared")
            continue
        if groups.has_nulls():
            if len(shape) > 1:
                listing.add_fault(column.name, "holds lists with nulls, which are not compared")
                continue
            listing.add(f"{column.name}.is_null", np.dtype(bool), shape, groups.reader(None, 1))
        listing.add(column.name, dtype, shape, groups.reader(dtype, inner), labels=labels)


def _labels(arrow: Any, column: Any, kind: Any) -> Labels:
    """What the metadata of a column say that its numbers mean, and the type of times."""
    told = {
        name.decode("utf-8", "backslashreplace"): text
        for name, text in (column.metadata or {}).items()
    }
    labels = AttributeRule().labels(None, told)
    if arrow.types.is_temporal(kind):
        # The numbers of times do not tell in which unit, and from when, they count.
        labels = tuple(sorted((*labels, ("type", str(kind)))))
    return labels


def _texts(groups: _Groups, name: str, rows: int, listing: Listing, labels: Labels) -> None:
    if rows > MAX_TEXTS:
        listing.add_fault(name, f"holds more than {MAX_TEXTS} texts of any length")
        return
    texts = [one for group in groups.all() for one in group.to_pylist()]
    if any(one is None for one in texts):
        listing.add_array(f"{name}.is_null", np.array([one is None for one in texts]))
    with listing.one(name):
        filled = ["" if one is None else one for one in texts]
        listing.add_array(name, np.array(filled, dtype=object), labels=labels)


def _is_text(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _dtype_of_column(arrow: Any, kind: Any) -> np.dtype[Any] | None:
    types = arrow.types
    if types.is_boolean(kind):
        return np.dtype(bool)
    # Not by to_pandas_dtype, for which Arrow before 18 asks for pandas.
    if types.is_integer(kind):
        sign = "i" if types.is_signed_integer(kind) else "u"
        return np.dtype(f"<{sign}{kind.bit_width // 8}")
    if types.is_floating(kind):
        return np.dtype(f"<f{kind.bit_width // 8}")
    long = (types.is_timestamp, types.is_duration, types.is_time64, types.is_date64)
    if any(is_of(kind) for is_of in long):
        return np.dtype("<i8")
    if types.is_date32(kind) or types.is_time32(kind):
        return np.dtype("<i4")
    return None


class _Groups:
    """A column, one row group at a time."""

    def __init__(self, arrow: Any, file: Any, column: str) -> None:
        self._arrow = arrow
        self._file = file
        self._column = column
        counts = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
        self._firsts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._kept: tuple[int, Any] | None = None

    def group(self, number: int) -> Any:
        if self._kept is None or self._kept[0] != number:
            self._kept = None
            table = self._file.read_row_group(number, columns=[self._column], use_threads=False)
            column = table.column(self._column).combine_chunks()
            if self._arrow.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            self._kept = (number, column)
        return self._kept[1]

    def all(self) -> list[Any]:
        return [self.group(number) for number in range(len(self._firsts) - 1)]

    def has_nulls(self) -> bool:
        """By the file's statistics; where they are missing, by looking."""
        metadata = self._file.metadata
        names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
        for group in range(metadata.num_row_groups):
            if self._column in names:
                chunk = metadata.row_group(group).column(names.index(self._column))
                if chunk.statistics is not None and chunk.statistics.null_count is not None:
                    if chunk.statistics.null_count:
                        return True
                    continue
            column = self.group(group)
            flat = column.flatten() if hasattr(column, "flatten") and len(column) else column
            if column.null_count or (not isinstance(flat, list) and flat.null_count):
                return True
        return False

    def reader(self, dtype: np.dtype[Any] | None, inner: int) -> Callable[[int, int], NDArray[Any]]:
        """Reads values, nulls as 0; or, where dtype is None, which values are null."""

        def read(first: int, count: int) -> NDArray[Any]:
            found = np.empty(count, dtype=bool if dtype is None else dtype)
            done = 0
            while done < count:
                row, within = divmod(first + done, inner)
                number = int(np.searchsorted(self._firsts, row, side="right")) - 1
                values = self._values(number, dtype)
                begin = (row - int(self._firsts[number])) * inner + within
                piece = values[begin : begin + count - done]
                found[done : done + piece.size] = piece
                done += piece.size
            return found

        return read

    def _values(self, number: int, dtype: np.dtype[Any] | None) -> NDArray[Any]:
        column = self.group(number)
        if dtype is None:
            return np.asarray(column.is_null())
        if self._arrow.types.is_fixed_size_list(column.type):
            column = column.flatten()
        kind = column.type
        if kind.num_fields == 0 and not self._arrow.types.is_primitive(kind):
            raise CorruptFileError(f"holds {kind}", variable=self._column)
        if dtype.kind == "i" and not self._arrow.types.is_integer(kind):
            column = column.view(
                self._arrow.int64() if dtype.itemsize == 8 else self._arrow.int32()
            )
        if column.null_count:
            column = column.fill_null(False if dtype.kind == "b" else 0)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.size != math.prod(values.shape):
            raise CorruptFileError("holds nested values", variable=self._column)
        return values
