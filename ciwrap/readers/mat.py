"""MAT-files of MATLAB and Octave: version 5 by SciPy, version 7.3 as the HDF5 file that it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.apart import SourceApart, bytes_below
from ciwrap.readers.base import Reader, Source
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile
from ciwrap.readers.optional import library
from ciwrap.readers.registry import reader_named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_HEAD_BYTES = 128
_MOST_DEPTH = 32


class MatReader(Reader):
    """Variables by name; fields of structures as `s.field`, cells as `c.0`, texts row by row.
    Version 5 is held in memory, by a process of its own: SciPy crashes on some damage.
    """

    name: ClassVar[str] = "mat"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["mat"].suffixes

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - the file names its variables
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        self.check_options(options or {}, path)
        file = InputFile(path)
        head = file.read_some(0, _HEAD_BYTES)
        file.close()
        if not head:
            raise CorruptFileError("is empty", file=path, remedy="is the program still writing it?")
        if head.startswith((b"MATLAB 7.3 MAT-file", b"\x89HDF\r\n")):
            return reader_named("hdf5").open(path)
        # A version and a mark of the byte order end the head of version 5.
        if head[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise UnsupportedFormatError(
                "is no MAT-file of version 5 or 7.3",
                file=path,
                remedy="save it with '-v7' or '-v7.3'",
            )
        _library(path)
        return SourceApart(path, partial(_open, path), bytes_below(path))


def _library(path: Path) -> Any:
    return library("scipy.io", "scipy", file=path)


def _open(path: Path) -> EntrySource:
    listing = Listing(path)
    with guarded(path):
        values = _library(path).loadmat(str(path), verify_compressed_data_integrity=True)
        for called, value in values.items():
            if not called.startswith("__"):
                _add(listing, called, value, 0)
    if not listing.entries:
        raise CorruptFileError("holds no variables", file=path)
    return EntrySource(path, listing.entries)


def _add(listing: Listing, called: str, value: Any, depth: int) -> None:
    if hasattr(value, "tocsc"):  # a sparse matrix
        columns = value.tocsc()
        for part in ("data", "indices", "indptr"):
            listing.add_array(f"{called}.{part}", getattr(columns, part))
        listing.add_array(f"{called}.shape", np.array(columns.shape))
        return
    array = np.asarray(value)
    if depth > _MOST_DEPTH:
        listing.add_fault(called, "is nested too deeply")
    elif type(value).__name__ in ("MatlabFunction", "MatlabOpaque"):
        listing.add_fault(called, "is a function or an object of MATLAB, which is not compared")
    elif array.dtype.names is not None:
        for number, record in enumerate(array.reshape(-1)):
            within = called if array.size == 1 else f"{called}.{number}"
            for field in array.dtype.names:
                _add(listing, f"{within}.{field}", record[field], depth + 1)
    elif array.dtype.hasobject:
        for number, cell in enumerate(array.reshape(-1)):
            _add(listing, f"{called}.{number}", cell, depth + 1)
    else:
        with listing.one(called):
            listing.add_array(called, array)
