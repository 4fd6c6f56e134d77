"""NumPy's .npy files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import CorruptFileError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import FileRegion, Reader, Source, VariableInfo
from ciwrap.readers.files import InputFile
from ciwrap.readers.npy_array import NpyArray
from ciwrap.readers.npy_format import read_header

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray


class NpyReader(Reader):
    """One array per file, named after the file; a record array gives one variable per field."""

    name: ClassVar[str] = "npy"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["npy"].suffixes
    names_inside: ClassVar[bool] = False

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        self.check_options(options or {}, path)
        return NpySource(path, name or path.stem)


class NpySource(Source):
    """An open .npy file. Raises as `Reader.open` does."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._file = InputFile(path)
        with closed_on_error(self.close):
            self._open(name)

    def _open(self, name: str) -> None:
        position = 0

        def take(count: int) -> bytes:
            nonlocal position
            data = self._file.read_some(position, count)
            position += len(data)
            return data

        header = read_header(take, name=name, file=self.path)
        expected = header.data_offset + header.data_bytes
        if self._file.byte_count != expected:
            what = "is truncated" if self._file.byte_count < expected else "has bytes left over"
            raise CorruptFileError(
                f"{what}: it has {self._file.byte_count} bytes, its header says {expected}",
                file=self.path,
                remedy="write it again",
            )
        self._array = NpyArray(
            header, lambda offset, count: self._file.read_at(header.data_offset + offset, count)
        )
        region = None
        if header.is_plain and not header.fortran_order:
            region = FileRegion(str(self.path), header.data_offset, header.data_bytes)
        self.variables = self._array.infos(region)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        return self._array.read(self.variables.index(info), first_element, count)

    def close(self) -> None:
        self._file.close()


__all__ = ["NpyReader", "VariableInfo"]
