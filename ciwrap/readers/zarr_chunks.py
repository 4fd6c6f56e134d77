"""Whether packed chunks of a Zarr array are whole.

Some decoders hand out what happens to be in memory where a chunk was cut off, without a word
(numcodecs' zstd and blosc). What they would accept is looked at here first.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.readers.files import InputFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOSC_HEADER_BYTES = 16
_FRAME_HEADER_BYTES = 18


class ChunkCheck:
    """Looks at the chunk files that a box touches, once each."""

    def __init__(self, folder: Path, array: Any) -> None:
        self._folder = folder / array.path if array.path else folder
        self._array = array
        self._is_whole = _checker(array)
        self._done: set[Path] = set()

    def look(self, start: tuple[int, ...], lengths: tuple[int, ...]) -> None:
        """Raises CorruptFileError for a chunk that ends too early."""
        if self._is_whole is None or 0 in lengths:
            return
        for path in self._paths(start, lengths):
            if path in self._done or not path.is_file():
                continue
            file = InputFile(path)
            try:
                if not self._is_whole(file):
                    raise CorruptFileError("a chunk is cut off", file=path)
            finally:
                file.close()
            self._done.add(path)

    def _paths(self, start: tuple[int, ...], lengths: tuple[int, ...]) -> Iterator[Path]:
        chunks = tuple(self._array.chunks)
        ranges = [
            range(at // chunk, (at + length - 1) // chunk + 1)
            for at, length, chunk in zip(start, lengths, chunks, strict=True)
        ]
        for index in itertools.product(*ranges):
            yield self._folder / chunk_key(self._array, index)


def chunk_key(array: Any, index: tuple[int, ...]) -> str:
    """The name of a chunk's file below the array's folder."""
    described = array.metadata.to_dict()
    if described.get("zarr_format") == 2:
        return str(described.get("dimension_separator", ".")).join(map(str, index)) or "0"
    encoding = described.get("chunk_key_encoding") or {}
    given = (encoding.get("configuration") or {}).get("separator")
    if encoding.get("name") == "v2":
        return (given or ".").join(map(str, index)) or "0"
    return (given or "/").join(["c", *map(str, index)])


def _checker(array: Any) -> Callable[[InputFile], bool] | None:
    """The check for what the chunks were packed with last."""
    described = array.metadata.to_dict()
    if described.get("zarr_format") == 2:
        name = (described.get("compressor") or {}).get("id")
    else:
        codecs = described.get("codecs") or [{}]
        name = codecs[-1].get("name")
    return {"zstd": _is_whole_zstd, "blosc": _is_whole_blosc}.get(str(name).rpartition(".")[2])


def _is_whole_blosc(file: InputFile) -> bool:
    header = file.read_some(0, _BLOSC_HEADER_BYTES)
    if len(header) < _BLOSC_HEADER_BYTES:
        return False
    return int.from_bytes(header[12:16], "little") <= file.byte_count


def _is_whole_zstd(file: InputFile) -> bool:
    """Follows the blocks of every frame to its end, without unpacking them."""
    at = 0
    while at < file.byte_count:
        header = file.read_some(at, _FRAME_HEADER_BYTES)
        if header[:4] != _ZSTD_MAGIC or len(header) < 6:
            return False
        flags = header[4]
        is_single = bool(flags & 0x20)
        size_bytes = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
        at += 5 + (not is_single) + (0, 1, 2, 4)[flags & 3] + size_bytes
        is_last = False
        while not is_last:
            block = file.read_some(at, 3)
            if len(block) < 3:
                return False
            value = int.from_bytes(block, "little")
            is_last = bool(value & 1)
            kind = value >> 1 & 3
            at += 3 + (1 if kind == 1 else value >> 3)
        at += 4 if flags & 4 else 0
    return at == file.byte_count and at > 0
