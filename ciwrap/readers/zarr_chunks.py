"""Whether packed chunks of a Zarr array are whole.

numcodecs' decoder of blosc takes a chunk that was cut off and reads on in whatever memory holds
(https://github.com/zarr-developers/numcodecs/issues/228, open). What it would accept is looked at
here first. Its other decoders refuse such chunks themselves.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.readers.files import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOSC_HEADER_BYTES = 16


class ChunkCheck:
    """Looks at the chunk files that a box touches, once each."""

    def __init__(self, folder: Path, array: Any) -> None:
        self._folder = folder / array.path if array.path else folder
        self._array = array
        self._is_blosc = _is_blosc(array)
        self._done: set[Path] = set()

    def look(self, start: tuple[int, ...], lengths: tuple[int, ...]) -> None:
        """Raises CorruptFileError for a chunk that ends too early."""
        if not self._is_blosc or 0 in lengths:
            return
        for path in self._paths(start, lengths):
            if path in self._done or not path.is_file():
                continue
            file = InputFile(path)
            try:
                if not _is_whole(file):
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


def _is_blosc(array: Any) -> bool:
    """Whether blosc is what the chunks were packed with last."""
    described = array.metadata.to_dict()
    if described.get("zarr_format") == 2:
        name = (described.get("compressor") or {}).get("id")
    else:
        codecs = described.get("codecs") or [{}]
        name = codecs[-1].get("name")
    return str(name).rpartition(".")[2] == "blosc"


def _is_whole(file: InputFile) -> bool:
    header = file.read_some(0, _BLOSC_HEADER_BYTES)
    if len(header) < _BLOSC_HEADER_BYTES:
        return False
    return int.from_bytes(header[12:16], "little") <= file.byte_count
