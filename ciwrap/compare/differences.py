"""Every differing element as a line of a CSV file or a row of a Parquet file, as it is found."""

from __future__ import annotations

import csv
import os
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.convert import is_bfloat16, widen_bfloat16
from ciwrap.arrays.shown import element_texts
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.parts import suspect_pieces
from ciwrap.errors import CiwrapError, NotAvailableError, UsageError, WriteFailedError, escape
from ciwrap.late import numpy as np
from ciwrap.readers.base import as_elements

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.compare.circle import Circle
    from ciwrap.model import VariableId

COLUMNS = ("iteration", "rank", "variable", "index", "golden", "new", "difference", "id")
SUFFIXES = (".csv", ".parquet")
_ROWS_AT_ONCE = 1 << 16


class DifferenceList:
    """A list of differences under way; whole and in its place once closed without an error.

    The kind of file is told by the suffix. Columns: iteration and rank (empty where there is none),
    variable, index in the variable's own dimensions ("3 7"), both values as texts that read back
    exactly, new - golden (empty where that has no meaning), and the id of the row where rows are
    aligned (the index then counts rows in the order of ids). Raises UsageError for another
    suffix, NotAvailableError without pyarrow, WriteFailedError.
    """

    def __init__(self, path: Path) -> None:
        import tempfile

        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"{path.name}: a list of differences is written as .csv or .parquet",
                remedy="give such a name",
            )
        self.path = path
        self.count = 0
        self._lock = threading.Lock()
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
            self._temporary = Path(name)
            os.close(descriptor)
            is_csv = path.suffix.lower() == ".csv"
            self._sheet: _Csv | _Parquet = (_Csv if is_csv else _Parquet)(self._temporary)
        except OSError as error:
            raise _failed(path, error) from error
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise

    def add(
        self,
        identity: VariableId,
        shape: tuple[int, ...],
        dtype: str,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
        ids: NDArray[Any] | None = None,
    ) -> None:
        """Elements by flat index; both sides' bytes back to back. Raises WriteFailedError.

        ids: of the rows, where these are aligned. May be called from several threads.
        """
        ours = as_elements(golden.tobytes(), dtype)
        theirs = as_elements(new.tobytes(), dtype)
        for first in range(0, indices.size, _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            columns = _columns(shape, dtype, indices[some], ours[some], theirs[some])
            rows = [None] * len(columns[0]) if ids is None else ids[columns[0][:, 0]].tolist()
            try:
                with self._lock:
                    self._sheet.add(identity, *columns, rows)
                    self.count += len(columns[0])
            except OSError as error:
                raise _failed(self.path, error) from error

    def add_values(
        self,
        identity: VariableId,
        parameters: _core.TreeParameters,
        golden: Values,
        new: Values,
        circle: Circle | None = None,
        ids: NDArray[Any] | None = None,
        leaves: NDArray[np.int64] | None = None,
    ) -> None:
        """Lists what differs between two variables that no stream went through.

        leaves: the chunks to look at, ascending; None: all. A variable that is compared in parts is
        listed by each of them, which must not list what is another's. circle: for a variable with
        a period, whose own values are listed all the same. ids: of the rows, where these are
        aligned.
        """
        for first, count in suspect_pieces(parameters, golden, leaves):
            ours = np.ascontiguousarray(golden.read(first, count)).reshape(-1)
            theirs = np.ascontiguousarray(new.read(first, count)).reshape(-1)
            compared = (ours, theirs) if circle is None else circle.differences(ours, theirs, first)
            try:
                found = _core.compare_arrays(
                    parameters, *map(as_bytes, compared), max_indices=count
                )
            except CiwrapError as error:
                error.blame(variable=identity.text)
                raise
            if found.indices.size:
                self.add(
                    identity,
                    golden.shape,
                    golden.dtype,
                    found.indices + first,
                    as_bytes(ours[found.indices]),
                    as_bytes(theirs[found.indices]),
                    ids,
                )

    def __enter__(self) -> DifferenceList:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._sheet.close()
            if kind is None:
                mask = os.umask(0)
                os.umask(mask)
                self._temporary.chmod(0o666 & ~mask)
                self._temporary.replace(self.path)
        except OSError as failure:
            raise _failed(self.path, failure) from failure
        finally:
            self._temporary.unlink(missing_ok=True)


def is_list(path: Path) -> bool:
    """Whether a file is a list of differences of ours, by its columns. Raises OSError."""
    if not path.is_file():
        return False
    if path.suffix.lower() == ".csv":
        header = (",".join(COLUMNS) + "\n").encode()
        with path.open("rb") as stream:
            return stream.read(len(header)) == header
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    try:
        return tuple(pq.read_schema(path).names) == COLUMNS
    except pa.ArrowInvalid:
        return False


def _failed(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"the list of differences cannot be written: {error.strerror or error}", file=path
    )


def _columns(
    shape: tuple[int, ...],
    dtype: str,
    indices: NDArray[np.int64],
    golden: NDArray[Any],
    new: NDArray[Any],
) -> tuple[NDArray[np.int64], list[str], list[str], list[float | None]]:
    """Indices as (count, dimensions), both values as texts, and their differences."""
    positions = (
        np.stack(np.unravel_index(indices, shape), axis=1)
        if shape
        else np.empty((indices.size, 0), dtype=np.int64)
    )
    if is_bfloat16(dtype):
        golden, new = widen_bfloat16(golden), widen_bfloat16(new)
    differences: list[float | None] = [None] * int(indices.size)
    if golden.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            wide = np.longdouble if golden.dtype.kind in "iu" else np.float64
            moved = (new.astype(wide) - golden.astype(wide)).astype(np.float64)
        differences = [float(one) if np.isfinite(one) else None for one in moved]
    return positions, element_texts(golden), element_texts(new), differences


class _Csv:
    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._stream, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(
        self,
        identity: VariableId,
        positions: NDArray[np.int64],
        golden: list[str],
        new: list[str],
        differences: list[float | None],
        ids: list[int | None],
    ) -> None:
        name = escape(identity.name)
        self._writer.writerows(
            [identity.iteration, identity.rank, name, " ".join(map(str, index)), *rest]
            for index, *rest in zip(positions.tolist(), golden, new, differences, ids, strict=True)
        )

    def close(self) -> None:
        self._stream.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        try:
            pa: Any = import_module("pyarrow")
            pq: Any = import_module("pyarrow.parquet")
        except ImportError as error:
            raise NotAvailableError(
                "Parquet needs pyarrow", remedy="pip install pyarrow, or write .csv"
            ) from error
        self._pa = pa
        types = (pa.int64(), pa.int64(), pa.string(), pa.list_(pa.int64()), pa.string())
        self._schema = pa.schema(
            list(zip(COLUMNS, (*types, pa.string(), pa.float64(), pa.int64()), strict=True))
        )
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def add(
        self,
        identity: VariableId,
        positions: NDArray[np.int64],
        golden: list[str],
        new: list[str],
        differences: list[float | None],
        ids: list[int | None],
    ) -> None:
        count = len(golden)
        columns = [
            [identity.iteration] * count,
            [identity.rank] * count,
            [identity.name] * count,
            positions.tolist(),
            golden,
            new,
            differences,
            ids,
        ]
        arrays = [
            self._pa.array(column, type=item.type)
            for column, item in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
