"""Checkpoint files of VELOC: a count, then the id and size of each region, then the regions."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ciwrap.arrays.values import parse_dtype, storage_dtype
from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, FileLimitError
from ciwrap.formats.entries import (
    MAX_VARIABLES,
    Entry,
    Listing,
    filled_in,
    lengths_of,
    opened,
    stored_entry,
)
from ciwrap.formats.reader import CheckedReader, InputFile, Source

_COUNT = struct.Struct("<Q")
_REGION = struct.Struct("<iQ")


class VelocReader(CheckedReader):
    """Every region is a variable, `region_ID` or as `regions` in the options calls it.

    The file says only how many bytes a region has; its dtype and shape come from the options.
    """

    name: ClassVar[str] = "veloc"
    option_names: ClassVar[tuple[str, ...]] = ("regions",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        regions = options.get("regions") or {}
        if not isinstance(regions, dict):
            raise ConfigError("must be a mapping of ids", key="options.regions")
        described = {str(key): value for key, value in regions.items()}
        return opened(path, partial(_entries, described))


def _entries(regions: dict[str, Any], file: InputFile) -> list[Entry]:
    count = _COUNT.unpack(bytes(file.read_at(0, _COUNT.size)))[0]
    offset = _COUNT.size + count * _REGION.size
    if count > MAX_VARIABLES:
        raise FileLimitError(f"claims {count} regions")
    headers = bytes(file.read_at(_COUNT.size, count * _REGION.size))
    listing = Listing(file.path)
    for number, byte_count in _REGION.iter_unpack(headers):
        if offset + byte_count > file.byte_count:
            raise CorruptFileError(
                f"is truncated: region {number} ends at byte {offset + byte_count}, the file has"
                f" {file.byte_count}"
            )
        name, dtype, shape = _described(number, regions.get(str(number)))
        if dtype is None:
            listing.add_fault(
                name, f"nothing says which dtype it has; give 'regions: {{{number}: ...}}'"
            )
        else:
            item = storage_dtype(dtype).itemsize
            given = lengths_of(shape, f"options.regions.{number}.shape")
            lengths = filled_in(given, byte_count, item)
            if lengths is None:
                raise CorruptFileError(
                    f"region {number} has {byte_count} bytes, which is not {list(given)} values of"
                    f" {item}",
                    remedy="is the program still writing it, or are 'regions' wrong?",
                )
            listing.put(stored_entry(file, name, dtype, lengths, offset))
        offset += byte_count
    if offset != file.byte_count:
        raise CorruptFileError(f"has bytes left over: {file.byte_count}, its header says {offset}")
    return listing.entries


def _described(number: int, given: Any) -> tuple[str, str | None, Any]:
    """(name, dtype, shape) of a region, as the options have it."""
    key = f"options.regions.{number}"
    if given is None:
        return f"region_{number}", None, None
    if isinstance(given, str):
        given = {"dtype": given}
    if not isinstance(given, dict) or set(given) - {"name", "dtype", "shape"}:
        raise ConfigError("must hold dtype, and may hold name and shape", key=key)
    name, dtype = given.get("name") or f"region_{number}", given.get("dtype")
    if not isinstance(dtype, str) or not isinstance(name, str):
        raise ConfigError("its dtype and name must be text", key=key)
    try:
        return name, parse_dtype(dtype), given.get("shape", -1)
    except CiwrapError as error:
        raise ConfigError(error.message, key=f"{key}.dtype") from error
