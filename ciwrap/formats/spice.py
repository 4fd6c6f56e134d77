"""Rawfiles of SPICE3, ngspice and Xyce: plots one after the other, as text or in doubles.

Source: "SPICE3 User's Manual", "Rawfile format", and "ngspice User's Manual", `write`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.reader import CheckedReader, Source, whole_file
from ciwrap.formats.words import numbers_in, telling_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

_PASSED_OVER = ("title", "date", "command", "option")
_HEAD = ("plotname", "flags", "no. variables", "no. points", "dimensions")
_FLAGS = {"real", "complex", "padded"}
_NEXT_PLOT = re.compile(rb"^Title:", re.MULTILINE | re.IGNORECASE)


class Plot(Struct, frozen=True):
    """The head of a plot. vectors: name, type and lengths of each; None: all points are its."""

    called: str
    is_complex: bool
    points: int
    lengths: tuple[int, ...]
    vectors: tuple[tuple[str, str, tuple[int, ...] | None], ...]


class SpiceReader(CheckedReader):
    """Every vector of every plot, `Transient Analysis/v(out)`, with its type as a label; plots of
    one name are counted, `Transient Analysis[1]/v(out)`. The file is held in memory.

    The frequencies of a complex plot are real: programs leave their imaginary parts unset.
    """

    name: ClassVar[str] = "spice"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        raw = _Rawfile(bytes(whole_file(path)))
        found: list[tuple[Plot, NDArray[Any]]] = []
        with telling_line(raw.data, lambda: max(0, raw.at - 1)):
            while raw.has_more() or not found:
                plot = raw.head()
                found.append((plot, raw.table(plot)))
        listing = Listing(path)
        often = Counter(plot.called for plot, _ in found)
        counts: Counter[str] = Counter()
        for plot, table in found:
            number = f"[{counts[plot.called]}]" if often[plot.called] > 1 else ""
            counts[plot.called] += 1
            _list(listing, plot, table, plot.called + number)
        return EntrySource(path, listing.entries)


def _list(listing: Listing, plot: Plot, table: NDArray[Any], name: str) -> None:
    """Adds the vectors of a plot. table: points x vectors."""
    for column, (called, kind, lengths) in zip(table.T, plot.vectors, strict=True):
        is_real = plot.is_complex and kind == "frequency"
        values = column.real if is_real else column
        shape = plot.lengths if lengths is None else lengths
        listing.add(
            f"{name}/{called}",
            values.dtype,
            shape,
            _reader(values),
            labels=(("type", kind),),
        )


def _reader(values: NDArray[Any]) -> Callable[[int, int], NDArray[Any]]:
    return lambda first, count: np.ascontiguousarray(values[first : first + count])


class _Rawfile:
    """A file while it is read: `at` goes through its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self._is_binary = False

    def has_more(self) -> bool:
        return bool(self.data[self.at :].strip(b"\r\n \t"))

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise CorruptFileError("ends within the head of a plot")
        line, self.at = self.data[self.at : end], end + 1
        return line.decode("utf-8", "backslashreplace").strip()

    def head(self) -> Plot:
        """The lines up to the values. Raises CorruptFileError."""
        head: dict[str, str] = {}
        vectors: list[tuple[str, str, tuple[int, ...] | None]] = []
        while (line := self._line()).lower() not in ("values:", "binary:"):
            key, colon, rest = line.partition(":")
            key, rest = key.strip().lower(), rest.strip()
            if not line or (colon and key in _PASSED_OVER):
                continue
            if colon and key in _HEAD and key not in head:
                head[key] = rest
            elif colon and key == "variables" and not vectors:
                count = _whole(head, "no. variables")
                first = [rest] if rest else []
                lines = [*first, *(self._line() for _ in range(count - len(first)))]
                vectors = [_vector(text, number) for number, text in enumerate(lines)]
            else:
                raise CorruptFileError(f"has a line that is not known: {line[:60]!a}")
        self._is_binary = line.lower() == "binary:"
        flags = {*head.get("flags", "").split()}
        if len(flags & {"real", "complex"}) != 1 or flags - _FLAGS:
            raise CorruptFileError(f"has the flags {head.get('flags')!r}, which are not read")
        points = _whole(head, "no. points")
        lengths = _lengths(head["dimensions"]) if "dimensions" in head else (points,)
        most = [math.prod(one) for _, _, one in vectors if one is not None]
        if not vectors or not head.get("plotname") or math.prod(lengths) != points:
            raise CorruptFileError("has a plot without a name or vectors, or of other dimensions")
        if most and max(most) > points:
            raise CorruptFileError(f"has vectors of {max(most)} elements and {points} points")
        return Plot(head["plotname"], "complex" in flags, points, lengths, tuple(vectors))

    def table(self, plot: Plot) -> NDArray[Any]:
        """The values of a plot, points x vectors. Raises CorruptFileError."""
        dtype = np.dtype("<c16" if plot.is_complex else "<f8")
        shape = (plot.points, len(plot.vectors))
        if self._is_binary:
            start, self.at = self.at, self.at + math.prod(shape) * dtype.itemsize
            if self.at > len(self.data):
                raise CorruptFileError(f"ends within the values of {plot.called!r}")
            return np.frombuffer(self.data, dtype, math.prod(shape), start).reshape(shape)
        following = _NEXT_PLOT.search(self.data, self.at)
        end = following.start() if following else len(self.data)
        if self.data[end - 1 : end] != b"\n":
            raise CorruptFileError("has no line break at its end, as of a file cut off")
        words = self.data[self.at : end].decode("ascii", "replace").split()
        rows = np.array(words, dtype=object)
        if rows.size != plot.points * (shape[1] + 1):
            raise CorruptFileError(f"does not hold {plot.points} points of {shape[1]} values")
        rows = rows.reshape(plot.points, shape[1] + 1)
        if [*map(str, range(plot.points))] != rows[:, 0].tolist():
            raise CorruptFileError("has points that are not numbered from 0 on")
        cells = rows[:, 1:].reshape(-1).tolist()
        if plot.is_complex:
            cells = [part for cell in cells for part in cell.split(",")]
        values = numbers_in(cells)
        if values.size != math.prod(shape) * (1 + plot.is_complex):
            raise CorruptFileError("has complex values that are not of two numbers")
        self.at = end
        return values.view(dtype).reshape(shape)


def _vector(text: str, number: int) -> tuple[str, str, tuple[int, ...] | None]:
    """Name, type and lengths out of a line; how it is plotted (grid, color, ...) does not count."""
    words = text.split()
    if len(words) < 3 or words[0] != str(number) or not all("=" in word for word in words[3:]):
        raise CorruptFileError(f"has {text[:60]!a} where variable {number} is expected")
    parameters = dict(word.split("=", 1) for word in words[3:])
    lengths = _lengths(parameters["dims"]) if "dims" in parameters else None
    return words[1], words[2], lengths


def _lengths(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 16 for word in words):
        raise CorruptFileError(f"has the dimensions {text[:40]!r}")
    return tuple(int(word) for word in words)


def _whole(head: dict[str, str], key: str) -> int:
    if not head.get(key, "").isdecimal():
        raise CorruptFileError(f"does not say {key.capitalize()!r}")
    return int(numbers_in([head[key]], "<i8")[0])
