"""Whether the chunks of a Zarr array are whole.

numcodecs' decoder of blosc takes a chunk that was cut off and reads on in whatever memory holds
(https://github.com/zarr-developers/numcodecs/issues/228, open). What it would accept is looked at
here first. Its other decoders refuse such chunks themselves.
"""

from __future__ import annotations

import itertools
import math
import struct
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError, UnsupportedDtypeError
from ciwrap.readers.files import InputFile
from ciwrap.readers.zarr_places import ChunkNames, check_is_missing
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Codecs = tuple["Mapping[str, Any]", ...]

_BLOSC_HEADER_BYTES = 16
_SHARD = "sharding_indexed"
# Where a chunk begins in its shard, and how many bytes it has.
_INDEX_ENTRY = struct.Struct("<QQ")
_NO_CHUNK = (2**64 - 1, 2**64 - 1)
_CRC_BYTES = 4


class ChunkCheck:
    """Looks at the chunk files that a box touches, once each."""

    def __init__(self, folder: Path, array: Any) -> None:
        self._folder = folder / array.path if array.path else folder
        self._names = ChunkNames(array)
        described = array.metadata.to_dict()
        self._codecs = _codecs_of(described)
        self._chunk = _lengths(described.get("chunk_grid")) or tuple(array.chunks)
        self._looks_inside = _uses_blosc(self._codecs)
        self._done: set[Path] = set()

    def look(self, start: tuple[int, ...], lengths: tuple[int, ...]) -> None:
        """Raises CorruptFileError for a chunk that ends too early, and for what stands in the place
        of one.
        """
        if 0 in lengths:
            return
        for path in self._paths(start, lengths):
            if path in self._done:
                continue
            if not path.is_file():
                check_is_missing(self._folder, path)
                continue
            if not self._looks_inside:
                continue
            file = InputFile(path)
            try:
                stretch = _Stretch(file, 0, file.byte_count)
                if not _is_whole(stretch, self._codecs, math.prod(self._chunk)):
                    raise CorruptFileError("a chunk is cut off", file=path)
            finally:
                file.close()
            self._done.add(path)

    def _paths(self, start: tuple[int, ...], lengths: tuple[int, ...]) -> Iterator[Path]:
        ranges = [
            range(at // chunk, (at + length - 1) // chunk + 1)
            for at, length, chunk in zip(start, lengths, self._chunk, strict=True)
        ]
        for index in itertools.product(*ranges):
            yield self._folder / self._names.of(index)


def _codecs_of(described: Mapping[str, Any]) -> Codecs:
    """What chunks were packed with, in this order; format 2 tells it in two places."""
    if described.get("zarr_format") != 2:
        return tuple(described.get("codecs") or ())
    packed = [*(described.get("filters") or ()), described.get("compressor")]
    return tuple(one for one in packed if one)


def _name(codec: Mapping[str, Any]) -> str:
    return str(codec.get("name") or codec.get("id")).rpartition(".")[2]


def _lengths(described: Mapping[str, Any] | None) -> tuple[int, ...]:
    return tuple((described or {}).get("configuration", {}).get("chunk_shape") or ())


def _inner(codec: Mapping[str, Any]) -> Codecs:
    """The codecs of the chunks within a shard."""
    return tuple(codec["configuration"].get("codecs") or ())


def _uses_blosc(codecs: Codecs) -> bool:
    """Whether blosc is what chunks, or those within shards, were packed with last."""
    if not codecs:
        return False
    last = codecs[-1]
    return _name(last) == "blosc" or (_name(last) == _SHARD and _uses_blosc(_inner(last)))


class _Stretch(Struct, frozen=True):
    """A part of a file: a chunk."""

    file: InputFile
    begin: int
    byte_count: int

    def part(self, begin: int, byte_count: int) -> _Stretch | None:
        """A part of it; None if it ends before."""
        if begin + byte_count > self.byte_count:
            return None
        return _Stretch(self.file, self.begin + begin, byte_count)

    def read(self) -> bytes:
        return bytes(self.file.read_at(self.begin, self.byte_count))


def _is_whole(chunk: _Stretch, codecs: Codecs, elements: int) -> bool:
    """Whether a chunk of so many elements is as long as it says."""
    if _name(codecs[-1]) == _SHARD:
        return _is_whole_shard(chunk, codecs[-1], elements)
    header = chunk.part(0, _BLOSC_HEADER_BYTES)
    if header is None:
        return False
    return int.from_bytes(header.read()[12:16], "little") <= chunk.byte_count


def _is_whole_shard(shard: _Stretch, codec: Mapping[str, Any], elements: int) -> bool:
    """Whether the shard's index is there, and every chunk that it tells of is whole."""
    settings = codec["configuration"]
    per_chunk = math.prod(settings["chunk_shape"])
    packed = settings.get("index_codecs") or ()
    kinds = [_name(one) for one in packed]
    is_big = any((one.get("configuration") or {}).get("endian") == "big" for one in packed)
    if is_big or kinds not in (["bytes"], ["bytes", "crc32c"]):
        raise UnsupportedDtypeError("has shards with an index of a kind that is not read")
    count = elements // per_chunk
    size = _INDEX_ENTRY.size * count + (_CRC_BYTES if "crc32c" in kinds else 0)
    at_start = settings.get("index_location") == "start"
    index = shard.part(0 if at_start else max(0, shard.byte_count - size), size)
    if index is None:
        return False
    for begin, byte_count in _INDEX_ENTRY.iter_unpack(index.read()[: _INDEX_ENTRY.size * count]):
        if (begin, byte_count) == _NO_CHUNK:
            continue
        chunk = shard.part(begin, byte_count)
        if chunk is None or not _is_whole(chunk, _inner(codec), per_chunk):
            return False
    return True
