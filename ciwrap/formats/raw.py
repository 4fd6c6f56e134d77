"""Raw binary files, described by the configuration or by a sidecar file."""

from __future__ import annotations

import codecs
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import FileRegion, parse_dtype, storage_dtype
from ciwrap.base.documents import DocumentError, load_json
from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, UnreadFileError
from ciwrap.base.processes import closed_on_error
from ciwrap.base.yaml_documents import load_yaml
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo, as_elements
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_MAX_SIDECAR_BYTES = 1 << 20
_MAX_DIMENSIONS = 32


class RawReader(CheckedReader):
    """One array per file, named after the file.

    dtype, shape, offset and byte_order come from `options:` in ciwrap.yaml, or else from a sidecar
    beside the file: `x.bin.yaml` or `x.bin.json`, a mapping with the same keys.
    """

    name: ClassVar[str] = "raw"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["raw"].suffixes
    names_inside: ClassVar[bool] = False
    option_names: ClassVar[tuple[str, ...]] = ("dtype", "shape", "offset", "byte_order")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        if options:
            return RawSource(path, name, options, path)
        # Whether the file is there comes before the question of what describes it.
        InputFile(path).close()
        for sidecar in self.companions(path):
            if sidecar.is_file():
                options = _read_sidecar(sidecar)
                self.check_options(options, sidecar)
                return RawSource(path, name, options, sidecar)
        raise UnreadFileError(
            "nothing says which dtype and shape it has",
            remedy="give 'options' with dtype and shape, or write a description beside it"
            " (NAME.yaml)",
        )

    def companions(self, path: Path) -> tuple[Path, ...]:
        return (Path(f"{path}.yaml"), Path(f"{path}.json"))


class RawSource(Source):
    """An open raw file. Raises ConfigError if its description (from `described_in`) is wrong."""

    def __init__(
        self, path: Path, name: str, options: Mapping[str, Any], described_in: Path
    ) -> None:
        self.path = path
        dtype = _dtype(options, described_in)
        offset = _whole(options.get("offset", 0), "offset", described_in, 0)
        self._file = InputFile(path)
        with closed_on_error(self.close):
            shape = self._shape(options.get("shape", [-1]), dtype, offset, described_in)
        region = FileRegion(str(path), offset, math.prod(shape) * storage_dtype(dtype).itemsize)
        self._offset = offset
        self.variables = (VariableInfo(name, dtype, shape, region),)

    def _shape(self, given: Any, dtype: str, offset: int, described_in: Path) -> tuple[int, ...]:
        lengths = given if isinstance(given, (list, tuple)) else [given]
        shape = [_whole(length, "shape", described_in, -1) for length in lengths]
        if shape.count(-1) > 1 or len(shape) > _MAX_DIMENSIONS:
            raise ConfigError(
                "may have one -1 and 32 lengths at most", file=described_in, key="shape"
            )
        item = storage_dtype(dtype).itemsize
        rest = self._file.byte_count - offset
        known = math.prod(length for length in shape if length != -1) * item
        if -1 in shape and known > 0 and rest >= 0 and rest % known == 0:
            shape[shape.index(-1)] = rest // known
        elif -1 in shape or known != rest:
            asked = "x".join("n" if length == -1 else str(length) for length in shape) or "one"
            raise CorruptFileError(
                f"has {self._file.byte_count} bytes, which is not {offset} and {asked} values of"
                f" {item} bytes",
                remedy=f"is the program still writing it, or is {described_in.name} wrong?",
            )
        return tuple(shape)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        item = info.item_bytes
        data = self._file.read_at(self._offset + first_element * item, count * item)
        return as_elements(data, info.dtype)

    def close(self) -> None:
        self._file.close()


def _dtype(options: Mapping[str, Any], described_in: Path) -> str:
    text, order = options.get("dtype"), options.get("byte_order")
    if not isinstance(text, str):
        raise ConfigError("is required, as text such as float32", file=described_in, key="dtype")
    if order not in (None, "little", "big"):
        raise ConfigError("must be little or big", file=described_in, key="byte_order")
    try:
        return parse_dtype(text, big_endian=None if order is None else order == "big")
    except CiwrapError as error:
        raise ConfigError(error.message, file=described_in, key="dtype") from error


def _whole(value: Any, key: str, described_in: Path, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 1 << 62:
        raise ConfigError(
            f"must hold whole numbers from {low}, not {_shown(value)}", file=described_in, key=key
        )
    return value


def _read_sidecar(path: Path) -> dict[str, Any]:
    file = InputFile(path)
    try:
        data = file.read_some(0, _MAX_SIDECAR_BYTES + 1)
    finally:
        file.close()
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


def _shown(value: Any) -> str:
    # A list or mapping out of YAML may unfold without end.
    plain = isinstance(value, (bool, int, float, str))
    return ascii(value)[:40] if plain else f"a {type(value).__name__}"
