"""Rows in the order of their ids, and values gathered in an order of rows."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import IO, TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from ciwrap.arrays.values import Values
from ciwrap.base.errors import AlignmentError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels

# Rows of a variable up to this size are sorted in memory, of larger ones in a temporary file.
_MEMORY_BYTES = 256 << 20
_STEP_ROWS_BYTES = 8 << 20
_FEW_IDS = 5
_KEPT_ORDERS = 4


class RowOrder(Struct, frozen=True):
    """Rows of one checkpoint by id.

    ids: ascending. rows: where each of them is among the rows of all parts (ranks) in turn.
    counts: how many rows each part has. dropped: rows left out since their id comes again.
    is_matched: whether this is the order of another side's rows, whose numbers are the ids.
    """

    name: str
    ids: NDArray[Any]
    rows: NDArray[np.int64]
    counts: tuple[int, ...]
    dropped: int = 0
    is_matched: bool = False

    def notes(self, duplicates: str) -> list[str]:
        """A warning if rows are left out. duplicates: which one of each id counts."""
        if not self.dropped:
            return []
        where = f"rows whose ids come more than once in {self.name!r}"
        return [f"{where} are left out, but for the {duplicates} one of each"]

    def put_in_order(self, parts: Sequence[Values]) -> Values:
        """A variable in this order. parts: its values, one for each rank. Raises AlignmentError."""
        return AlignedValues(parts, self)

    def refuse_other_ids(self, golden: NDArray[Any], sides: tuple[str, str]) -> None:
        """Raises AlignmentError naming the first few ids that only one side has.

        golden: the other side's ids, ascending. sides: where these are, and where ours are.
        """
        new = self.ids
        if golden.size == new.size and bool(np.all(golden == new)):
            return
        lost, extra = np.setdiff1d(golden, new), np.setdiff1d(new, golden)
        parts = [
            f"{ids.size} only {where} ({_listed(ids)})"
            for ids, where in zip((lost, extra), sides, strict=True)
            if ids.size
        ]
        raise AlignmentError(
            f"the rows cannot be paired by {self.name!r}: of the ids, {', '.join(parts)}"
        )


class LastFew:
    """What was made for the last few checkpoints, by key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def find(self, key: Any, make: Callable[[], _Made]) -> _Made:
        found: _Made | None = self._kept.pop(key, None)
        if found is None:
            while len(self._kept) >= _KEPT_ORDERS:
                self._kept.popitem(last=False)
            found = make()
        self._kept[key] = found
        return found

    def clear(self) -> None:
        self._kept.clear()


_Made = TypeVar("_Made")


def order_by_ids(name: str, parts: Sequence[Values], duplicates: str) -> RowOrder:
    """The order by the id variable `name`, whose values the parts are, one for each rank.

    Raises AlignmentError for ids that are no plain list of whole numbers or texts, or not unique.
    """
    arrays = []
    for part in parts:
        array = part.read(0, part.element_count)
        if array.dtype.kind not in "iuSU" or math.prod(part.shape[1:]) != 1 or not part.shape:
            raise AlignmentError(
                f"the id variable {name!r} has dtype {part.dtype} and shape {part.shape}; ids are"
                " one whole number or text for each row"
            )
        arrays.append(array)
    ids = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    if ids.dtype.kind == "f":  # what signed and unsigned 64-bit numbers become together
        raise AlignmentError(f"the id variable {name!r} has several dtypes")
    ids = ids.astype(ids.dtype.newbyteorder("="))
    rows = np.argsort(ids, kind="stable").astype(np.int64)
    ordered = ids[rows]
    again = ordered[1:] == ordered[:-1]
    dropped = int(np.count_nonzero(again))
    if dropped and duplicates == "error":
        twice = ordered[1:][again][0]
        raise AlignmentError(
            f"the id {twice!s} comes more than once in {name!r}",
            remedy="say with 'duplicates: first' or 'last' which row counts",
        )
    if dropped:
        first = np.concatenate(([True], ~again))
        last = np.concatenate((~again, [True]))
        keep = first if duplicates == "first" else last
        rows, ordered = rows[keep], ordered[keep]
    counts = tuple(part.shape[0] for part in parts)
    return RowOrder(name, ordered, rows, counts, dropped)


class AlignedValues(Values):
    """Rows of one or more parts, in the order of their ids.

    They are gathered on first use: in memory, or in a temporary file as large as the variable.
    Raises AlignmentError for parts whose rows are not those of the ids.
    """

    def __init__(self, parts: Sequence[Values], order: RowOrder) -> None:
        first = parts[0]
        for part, count in zip(parts, order.counts, strict=True):
            if not part.shape or part.shape[0] != count:
                raise AlignmentError(
                    f"has shape {part.shape}, but {order.name!r} has {count} rows",
                    remedy="set 'align_by' under 'variables' only for those that have rows, or"
                    " 'align_by: none' for this one",
                )
            if part.dtype != first.dtype or part.shape[1:] != first.shape[1:]:
                raise AlignmentError(
                    f"is {first.dtype} with rows of shape {first.shape[1:]} on one rank,"
                    f" {part.dtype} with {part.shape[1:]} on another"
                )
            if part.labels != first.labels:
                raise AlignmentError(
                    f"has {_labels_text(first.labels)} on one rank,"
                    f" {_labels_text(part.labels)} on another"
                )
        self.order = order
        self.dtype = first.dtype
        self.labels = first.labels
        self.is_written = first.is_written
        self.shape = (order.rows.size, *first.shape[1:])
        self._parts = parts
        self._per_row = math.prod(first.shape[1:])
        self._gathered: NDArray[Any] | None = None
        self._file: IO[bytes] | None = None

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        if self._gathered is None:
            self._gathered = self._gather()
        return np.array(self._gathered[first_element : first_element + count])

    def _gather(self) -> NDArray[Any]:
        """All rows in order: every part is read once, from front to back."""
        target = np.full(sum(self.order.counts), -1, dtype=np.int64)
        target[self.order.rows] = np.arange(self.order.rows.size)
        dtype = self._parts[0].read(0, 0).dtype
        gathered = self._room(dtype)
        start = 0
        rows_at_once = max(1, _STEP_ROWS_BYTES // max(1, self._per_row * self.item_bytes))
        for part, count in zip(self._parts, self.order.counts, strict=True):
            for row in range(0, count, rows_at_once):
                rows = min(rows_at_once, count - row)
                values = part.read(row * self._per_row, rows * self._per_row)
                where = target[start + row : start + row + rows]
                kept = where >= 0
                gathered[where[kept]] = values.reshape(rows, self._per_row)[kept]
            start += count
        return gathered.reshape(-1)

    def _room(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        import tempfile

        shape = (self.order.rows.size, self._per_row)
        if self.byte_count <= _MEMORY_BYTES:
            return np.empty(shape, dtype=dtype)
        # Its own, unlinked file: nobody else can cut it off.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the values
        kept: NDArray[Any] = np.memmap(self._file, dtype=dtype, mode="w+", shape=shape)
        return kept


def _labels_text(labels: Labels) -> str:
    """What the file of a rank says of a variable besides its numbers."""
    return ", ".join(f"{key} {text!r}" for key, text in labels) or "no labels"


def _listed(ids: NDArray[Any]) -> str:
    shown = ", ".join(str(one) for one in ids[:_FEW_IDS].tolist())
    return shown + (", ..." if ids.size > _FEW_IDS else "")
