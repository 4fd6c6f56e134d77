"""Files that are compared by a digest of all of their bytes, as are those that no reader knows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import UNREAD_LABEL, Labels
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import Entry, EntrySource
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo
from ciwrap.formats.source_files import checksum_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class BytesReader(CheckedReader):
    """One text per file, named after the file: a digest of its bytes, in hexadecimal."""

    name: ClassVar[str] = "bytes"
    names_inside: ClassVar[bool] = False
    labels: ClassVar[Labels] = ()

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        InputFile(path).close()  # raises for what cannot be read
        info = VariableInfo(name, "|S32", (), labels=self.labels)
        return EntrySource(path, [Entry(info, partial(_digest, path))])


class UnknownReader(BytesReader):
    """Of files that nobody has said the format of. Equal bytes are equal, whatever they mean; other
    bytes say nothing about the numbers in them, so they are not comparable.
    """

    labels: ClassVar[Labels] = (UNREAD_LABEL,)


def _digest(path: Path, _first: int, _count: int) -> NDArray[Any]:
    return np.array([checksum_of(path).hex()], dtype="|S32")
