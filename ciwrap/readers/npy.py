"""NumPy's .npy files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import CorruptFileError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, Source, VariableInfo
from ciwrap.readers.files import InputFile

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class NpyReader(CheckedReader):
    """One array per file, named after the file; a record array gives one variable per field."""

    name: ClassVar[str] = "npy"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["npy"].suffixes
    names_inside: ClassVar[bool] = False

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return NpySource(path, name)


class NpySource(Source):
    """An open .npy file. Raises as `Reader.open` does."""

    def __init__(self, path: Path, name: str) -> None:
        # A reader is asked what it is called where no file is opened.
        from ciwrap.readers.npy_array import NpyArray
        from ciwrap.readers.npy_format import MAX_HEAD_BYTES, read_header

        self.path = path
        self._file = InputFile(path)
        with closed_on_error(self.close):
            head = self._file.read_at(0, min(MAX_HEAD_BYTES, self._file.byte_count))
            header = read_header(io.BytesIO(head).read, name=name, file=path)
            expected = header.data_offset + header.data_bytes
            if self._file.byte_count != expected:
                raise self._other_size(expected)
        self._array = NpyArray(header, self._file.read_at, header.data_offset)
        self.variables = self._array.infos(path, header.data_offset)

    def _other_size(self, expected: int) -> CorruptFileError:
        what = "is truncated" if self._file.byte_count < expected else "has bytes left over"
        return CorruptFileError(
            f"{what}: it has {self._file.byte_count} bytes, its header says {expected}",
            file=self.path,
            remedy="write it again",
        )

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        return self._array.read(self.variables.index(info), first_element, count)

    def close(self) -> None:
        self._file.close()


__all__ = ["NpyReader", "VariableInfo"]
