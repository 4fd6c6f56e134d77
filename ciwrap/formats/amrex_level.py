"""The boxes of one level of a plotfile of AMReX, and the values on them."""

from __future__ import annotations

import math
import re
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import FlatReader, Listing
from ciwrap.formats.reader import InputFile, as_elements, guarded, labels_of, whole_file
from ciwrap.formats.words import numbers_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.formats.entries import Lengths

_BOX = r"\(\([-\d,]+\) \([-\d,]+\) \([-\d,]+\)\)"
_WORD = re.compile(rf"{_BOX}|\S+")
_IEEE = "64 11 52 0 1 12 0 1023|32 8 23 0 1 9 0 127"
# The order of the bytes of a number, the box that is stored, and how many fields.
_FAB = re.compile(rf"FAB \(\(\d, \((?:{_IEEE})\)\),\(\d, \(([\d ]+)\)\)\)({_BOX}) (\d+)\n")
_FAB_BYTES = 512
_DTYPES = {"8 7 6 5 4 3 2 1": "<f8", "1 2 3 4 5 6 7 8": ">f8", "4 3 2 1": "<f4", "1 2 3 4": ">f4"}


class Words:
    """The words of a header, of which a box is one. Raises CorruptFileError."""

    def __init__(self, text: str) -> None:
        self._words = iter(_WORD.findall(text))

    def take(self, count: int = 1) -> list[str]:
        found = list(islice(self._words, count))
        if len(found) != count:
            raise CorruptFileError("ends too early")
        return found

    def whole(self) -> int:
        return int(numbers_in([self.take()[0].strip("()")], "<i8")[0])

    def end(self) -> None:
        if next(self._words, None) is not None:
            raise CorruptFileError("has more after its end")


def corners(box: str) -> NDArray[np.int64]:
    """The first and the last index along z, y and x, 0 where there is no such axis."""
    first, last, _ = ([*map(int, part.split(",")[::-1])] for part in re.findall(r"[-\d,]+", box))
    return np.array([[0] * (3 - len(one)) + one for one in (first, last)], "<i8")


class Level:
    """The boxes of a level, and where their values lie; arrays of their corners have the shape
    boxes x 2 x 3. file: the header of its data.
    """

    def __init__(self, file: Path, fields: list[str], axes: int) -> None:
        words = Words(whole_file(file).decode("utf-8", "backslashreplace"))
        if words.whole() != 1:
            raise UnsupportedFormatError("is not of version 1", remedy="set vismf.headerversion=1")
        words.take()
        components = words.whole()
        words.take()  # how far values lie around the boxes, as each of them says
        count = words.whole()
        words.take()
        self._boxes = np.array([corners(box) for box in words.take(count)])
        words.take(2)
        places = [words.take(3) for _ in range(count)]
        words.take(2 * (1 + count))  # the least and the largest values
        words.end()
        if components != len(fields) or not count:
            raise CorruptFileError("has other fields than the plotfile, or no box")
        self._fields, self._axes = fields, axes
        self._low = self._boxes[:, 0].min(axis=0)
        self._places = [(file.parent / Path(name).name, int(offset)) for _, name, offset in places]
        self._stored = np.empty_like(self._boxes)
        self._dtype = np.dtype("V1")  # until a box is found
        ends: dict[Path, int] = {}
        for number in sorted(range(count), key=self._places.__getitem__):
            path, offset = self._places[number]
            with guarded(path):
                ends[path] = self._find(number, path, offset, ends.get(path, 0))
        for path, end in ends.items():
            if InputFile(path).byte_count != end:
                raise CorruptFileError(f"does not end at byte {end}", file=path)

    def _find(self, number: int, path: Path, offset: int, end: int) -> int:
        """Finds the values of a box, which begin where those before it end, and where they end."""
        head = _FAB.match(InputFile(path).read_some(offset, _FAB_BYTES).decode("latin-1"))
        if head is None or offset != end or int(head[3]) != len(self._fields):
            what = f"has no box of {len(self._fields)} fields at byte {offset}"
            raise CorruptFileError(what)
        self._stored[number] = first, last = corners(head[2])
        dtype = np.dtype(_DTYPES.get(head[1], "V1"))
        around = (self._boxes[number] - (first, last)) * ((1,), (-1,))
        if dtype.kind == "V" or self._dtype not in (dtype, "V1") or around.min() < 0:
            raise CorruptFileError(f"has another box, or type of numbers, at byte {offset}")
        self._dtype = dtype
        begin = offset + head.end()
        self._places[number] = path, begin
        return begin + int(np.prod(last - first + 1)) * len(self._fields) * dtype.itemsize

    def add_to(self, listing: Listing, name: str) -> None:
        high = self._boxes[:, 1].max(axis=0)
        shape = tuple((high - self._low + 1).tolist())
        count = int(np.prod(self._boxes[:, 1] - self._boxes[:, 0] + 1, axis=1).sum())
        listing.add_array(f"{name}/extent", np.array([self._low, high]))
        axes = slice(3 - self._axes, None)
        facts: dict[str, Any] = {"labels": labels_of(("z", "y", "x")[axes])}
        facts["stored_bytes"] = count * self._dtype.itemsize
        if count != math.prod(shape):
            reader = FlatReader(shape, np.dtype(bool), partial(self._box, None))
            listing.add(f"{name}/covered", np.dtype(bool), shape[axes], reader.read, **facts)
        for number, field in enumerate(self._fields):
            reader = FlatReader(shape, self._dtype, partial(self._box, number))
            listing.add(f"{name}/{field}", self._dtype, shape[axes], reader.read, **facts)

    def _box(self, field: int | None, start: Lengths, lengths: Lengths) -> NDArray[Any]:
        """The values of a field in a part of the level; None: whether there are any."""
        first = self._low + start
        lows = np.maximum(self._boxes[:, 0], first)
        highs = np.minimum(self._boxes[:, 1], first + lengths - 1)
        is_covered = np.zeros(lengths, bool)
        values = np.full(lengths, np.nan, self._dtype)
        for number in np.flatnonzero((lows <= highs).all(axis=1)).tolist():
            ends = zip(lows[number] - first, highs[number] - first, strict=True)
            place = tuple(slice(begin, end + 1) for begin, end in ends)
            if is_covered[place].any():
                raise CorruptFileError("is on boxes that overlap")
            is_covered[place] = True
            if field is not None:
                values[place] = self._values(number, field, lows[number], highs[number])
        return is_covered if field is None else values

    def _values(self, number: int, field: int, low: Any, high: Any) -> NDArray[Any]:
        """The values of a field between two corners within one of the boxes."""
        path, begin = self._places[number]
        first, last = self._stored[number]
        planes, rows, width = (last - first + 1).tolist()
        (z, y, x), (depth, height, columns) = (low - first).tolist(), (high - low + 1).tolist()
        begin += self._dtype.itemsize * width * (rows * (planes * field + z) + y)
        lines = rows * np.arange(depth)[:, None] + np.arange(height)
        data = InputFile(path).read_at(begin, self._dtype.itemsize * width * int(lines[-1, -1] + 1))
        found = as_elements(data, self._dtype.str).reshape(-1, width)[lines]
        return np.asarray(found[..., x : x + columns])
