"""Writing a journal as the recording library does (docs/reference/recording-format.md)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures import journal as format_
from ciwrap.closing import Closing
from ciwrap.errors import WriteFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.captures.index import MadeWith


class JournalWriter(Closing):
    """The journal of one process, from its beginning on. Raises WriteFailedError.

    program: its name. made_at: seconds since 1970.
    """

    def __init__(
        self, path: Path, rank: int, ranks: int, *, program: str, made_by: str, made_at: int = 0
    ) -> None:
        self._path = path
        self._count = 0
        self._points = {"": 0}
        self._variables: dict[tuple[str, MadeWith], int] = {}
        self._records = 0  # of the checkpoint
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")
        except OSError as error:
            raise WriteFailedError(error.strerror or str(error), file=path) from error
        head = struct.pack("<8sIIQQ16x", format_.MAGIC, format_.VERSION, 0, rank, ranks)
        self._write(head + _core.xxh3_128(head))
        payload = _text(program) + _text(made_by) + struct.pack("<QI", made_at, 1)
        self._record(format_.ATTEMPT, payload)

    def tree(
        self,
        iteration: int,
        point: str,
        variable: tuple[str, MadeWith],
        shape: Iterable[int],
        trees: Iterable[tuple[int, bytes]],
    ) -> None:
        """Adds trees of a variable to the checkpoint that is being written.

        variable: its name, and what its trees were made with. trees: kind, digests and residues.
        """
        place = (iteration, self._point(point), self._variable(*variable))
        extents = tuple(shape)
        for kind, body in trees:
            head = struct.pack(f"<II{len(extents)}Q", kind, len(extents), *extents)
            self._record(format_.TREE, head + body, place)
            self._records += 1

    def complete(self, iteration: int, point: str) -> None:
        """Ends a checkpoint."""
        payload = struct.pack("<I", self._records)
        self._record(format_.COMPLETE, payload, (iteration, self._points[point], 0))
        self._records = 0

    def end(self) -> None:
        self._record(format_.END, bytes(8 * format_.END_NUMBERS))

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise WriteFailedError(error.strerror or str(error), file=self._path) from error

    def _point(self, name: str) -> int:
        if name not in self._points:
            self._points[name] = len(self._points)
            self._record(format_.POINT, _text(name), (0, self._points[name], 0))
        return self._points[name]

    def _variable(self, name: str, made: MadeWith) -> int:
        key = (name, made)
        if key not in self._variables:
            self._variables[key] = len(self._variables)
            payload = _text(name) + _text(made.dtype)
            payload += struct.pack("<ddQ", made.atol, made.rtol, made.ulps)
            numbers = (made.residue_levels, made.arity, made.chunk_bytes, made.equal_nan)
            payload += struct.pack("<IIQI", *numbers) + struct.pack("<I", len(made.fill_values))
            payload += b"".join(_fill_bits(made.dtype, one) for one in made.fill_values)
            self._record(format_.VARIABLE, payload, (0, 0, self._variables[key]))
        return self._variables[key]

    def _record(self, kind: int, payload: bytes, place: tuple[int, int, int] = (0, 0, 0)) -> None:
        head = struct.pack(
            "<IIQqIIQQ", format_.RECORD_MAGIC, kind, len(payload), *place, 0, self._count
        )
        body = head + payload + bytes(-len(payload) % 8)
        self._write(body + _core.xxh3_128(body))
        self._count += 1

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise WriteFailedError(error.strerror or str(error), file=self._path) from error


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


def _fill_bits(dtype: str, value: float) -> bytes:
    """The bits of one scalar, little-endian, as 8 bytes."""
    import numpy as np

    if dtype[1:] == "bf2":
        return np.array([value], "<f4").tobytes()[2:].ljust(8, b"\0")
    kind = dtype[1]
    size = int(dtype[2:]) // (2 if kind == "c" else 1)
    stored = np.array([value]).astype(f"<{'f' if kind == 'c' else kind}{size}")
    return stored.tobytes().ljust(8, b"\0")
