"""Files that are compared by a digest of all of their bytes, as are those that no reader knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import UNREAD_LABEL, Labels
from ciwrap.base.late import numpy as np
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo
from ciwrap.formats.source_files import checksum_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class BytesReader(CheckedReader):
    """One text per file, named after the file: a digest of its bytes, in hexadecimal."""

    name: ClassVar[str] = "bytes"
    suffixes: ClassVar[tuple[str, ...]] = ()
    names_inside: ClassVar[bool] = False
    labels: ClassVar[Labels] = ()

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return BytesSource(path, name, self.labels)


class UnknownReader(BytesReader):
    """Of files that nobody has said the format of. Equal bytes are equal, whatever they mean; other
    bytes say nothing about the numbers in them, so they are not comparable.
    """

    labels: ClassVar[Labels] = (UNREAD_LABEL,)


class BytesSource(Source):
    """A file that is read once its digest is asked for."""

    def __init__(self, path: Path, name: str, labels: Labels) -> None:
        self.path = path
        InputFile(path).close()  # raises for what cannot be read
        self.variables = (VariableInfo(name, "|S32", (), labels=labels),)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        return np.array([checksum_of(self.path).hex()] * count, dtype="|S32")
