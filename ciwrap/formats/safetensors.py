"""safetensors files: a JSON header with offsets, then the tensors one after another."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

from ciwrap.arrays.values import storage_dtype
from ciwrap.base.errors import CorruptFileError, FileLimitError
from ciwrap.formats.entries import Entry, Listing, opened, stored_entry
from ciwrap.formats.reader import CheckedReader, InputFile, Source

_MAX_HEADER_BYTES = 100 << 20  # as the format's own library has it
_DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "I32": "<i4",
    "U32": "<u4", "I64": "<i8", "U64": "<u8", "F16": "<f2", "BF16": "<bf2", "F32": "<f4",
    "F64": "<f8", "C64": "<c8",
}  # fmt: skip


class SafetensorsReader(CheckedReader):
    """Every tensor is a variable; each lies in one stretch of the file."""

    name: ClassVar[str] = "safetensors"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, _entries)


def _entries(file: InputFile) -> list[Entry]:
    start = 8 + int.from_bytes(file.read_at(0, 8), "little")
    if start > _MAX_HEADER_BYTES:
        raise FileLimitError(f"claims a header of {start} bytes")
    try:
        header = json.loads(bytes(file.read_at(8, start - 8)).decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"its header is not JSON: {str(error)[:100]}") from None
    if not isinstance(header, dict):
        raise CorruptFileError("its header is not a mapping")
    listing = Listing(file.path)
    stretches: list[tuple[int, int]] = []
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, begin, end = _described(name, tensor)
        stretches.append((begin, end))
        known = _DTYPES.get(dtype)
        if known is None:
            listing.add_fault(name, f"is of type {dtype[:20]}, which has no defined comparison")
            continue
        if math.prod(shape) * storage_dtype(known).itemsize != end - begin:
            raise CorruptFileError(
                f"its offsets do not hold {dtype} of shape {shape}", variable=name
            )
        listing.put(stored_entry(file, name, known, shape, start + begin))
    at = 0
    for begin, end in sorted(stretches):
        if begin != at:
            raise CorruptFileError("its tensors overlap or leave a gap")
        at = end
    if start + at != file.byte_count:
        what = "is truncated" if file.byte_count < start + at else "has bytes left over"
        raise CorruptFileError(
            f"{what}: it has {file.byte_count} bytes, its header says {start + at}"
        )
    return listing.entries


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _described(name: str, tensor: Any) -> tuple[str, tuple[int, ...], int, int]:
    """(dtype, shape, begin, end) of a tensor's entry."""
    try:
        dtype, shape, (begin, end) = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
        whole = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        whole, dtype = [None], ""
    if not isinstance(dtype, str) or not all(type(n) is int and n >= 0 for n in whole):
        raise CorruptFileError("is described wrongly", variable=name)
    return dtype, tuple(shape), begin, end
