"""Raw binary files, described by the configuration or by a sidecar file."""

from __future__ import annotations

import codecs
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import parse_dtype, storage_dtype
from ciwrap.base.documents import DocumentError, load_json
from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, UnreadFileError
from ciwrap.base.yaml_documents import load_yaml
from ciwrap.formats.entries import Entry, filled_in, lengths_of, opened, stored_entry
from ciwrap.formats.reader import (
    CheckedReader,
    InputFile,
    Source,
    first_bytes,
    guarded,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_SIDECAR_BYTES = 1 << 20


class RawReader(CheckedReader):
    """One array per file, named after the file.

    dtype, shape, offset and byte_order come from `options:` in ciwrap.yaml, or else from a sidecar
    beside the file: `x.bin.yaml` or `x.bin.json`, a mapping with the same keys.
    """

    name: ClassVar[str] = "raw"
    names_inside: ClassVar[bool] = False
    option_names: ClassVar[tuple[str, ...]] = ("dtype", "shape", "offset", "byte_order")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        if options:
            return opened(path, partial(_entries, name, options, path))
        # Whether the file is there comes before the question of what describes it.
        InputFile(path).close()
        for sidecar in self.companions(path):
            if sidecar.is_file():
                options = _read_sidecar(sidecar)
                self.check_options(options, sidecar)
                return opened(path, partial(_entries, name, options, sidecar))
        raise UnreadFileError(
            "nothing says which dtype and shape it has",
            remedy="give 'options' with dtype and shape, or write a description beside it"
            " (NAME.yaml)",
        )

    def companions(self, path: Path) -> tuple[Path, ...]:
        return (Path(f"{path}.yaml"), Path(f"{path}.json"))


def _entries(
    name: str, options: Mapping[str, Any], described_in: Path, file: InputFile
) -> list[Entry]:
    """The array as it is described. Raises ConfigError, CorruptFileError."""
    with guarded(described_in):
        dtype = _dtype(options)
        offset = _offset(options.get("offset", 0))
        lengths = lengths_of(options.get("shape", [-1]), "shape")
    item = storage_dtype(dtype).itemsize
    rest = file.byte_count - offset
    shape = filled_in(lengths, rest, item)
    if shape is None:
        asked = "x".join("n" if length == -1 else str(length) for length in lengths) or "one"
        raise CorruptFileError(
            f"has {file.byte_count} bytes, which is not {offset} and {asked} values of {item}"
            " bytes",
            remedy=f"is the program still writing it, or is {described_in.name} wrong?",
        )
    return [stored_entry(file, name, dtype, shape, offset)]


def _dtype(options: Mapping[str, Any]) -> str:
    text, order = options.get("dtype"), options.get("byte_order")
    if not isinstance(text, str):
        raise ConfigError("is required, as text such as float32", key="dtype")
    if order not in (None, "little", "big"):
        raise ConfigError("must be little or big", key="byte_order")
    try:
        return parse_dtype(text, big_endian=None if order is None else order == "big")
    except CiwrapError as error:
        raise ConfigError(error.message, key="dtype") from error


def _offset(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ConfigError("must be a whole number from 0", key="offset")
    return value


def _read_sidecar(path: Path) -> dict[str, Any]:
    data = first_bytes(path, _MAX_SIDECAR_BYTES + 1)
    if len(data) > _MAX_SIDECAR_BYTES:
        raise CorruptFileError("is too large for a description", file=path)
    try:
        load = load_json if path.suffix == ".json" else load_yaml
        value = load(data.removeprefix(codecs.BOM_UTF8))
    except DocumentError as error:
        raise ConfigError(f"is not a description: {error}", file=path) from error
    if not isinstance(value, dict):
        raise ConfigError("must hold a mapping with dtype and shape", file=path)
    return value
