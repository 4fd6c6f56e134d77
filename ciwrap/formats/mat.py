"""MAT-files of MATLAB and Octave: version 5 by SciPy, version 7.3 as the HDF5 file that it is."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ciwrap.base.errors import CorruptFileError, DuplicateVariableError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.apart import SourceApart, bytes_below, limit_memory
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.find_outputs import reader_named
from ciwrap.formats.reader import MEANING, CheckedReader, Source, first_bytes, guarded, library
from ciwrap.model.settings import OWN_FORMATS

_HEAD_BYTES = 128
_MOST_DEPTH = 32
# What tells the class of a variable of version 7.3, of a sparse matrix how many rows it has, and
# of numbers that they are the lengths of an array without elements.
_MEANING = (*MEANING, "MATLAB_class", "MATLAB_empty", "MATLAB_int_decode", "MATLAB_sparse")
# What SciPy puts beside the variables.
_OF_THE_FILE = frozenset({"__header__", "__version__", "__globals__"})


class MatReader(CheckedReader):
    """Variables by name; fields of structures as `s.field`, cells as `c.0` and how they lie as
    `c.shape`, texts row by row. Version 5 is held in memory, by a process of its own: SciPy crashes
    on some damage.
    """

    name: ClassVar[str] = "mat"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["mat"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        head = first_bytes(path, _HEAD_BYTES)
        if not head:
            raise CorruptFileError("is empty", file=path, remedy="is the program still writing it?")
        if head.startswith((b"MATLAB 7.3 MAT-file", b"\x89HDF\r\n")):
            return reader_named("hdf5").open(path, options={"attributes": _MEANING})
        # A version and a mark of the byte order end the head of version 5.
        if head[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise UnsupportedFormatError(
                "is not a MAT-file of version 5 or 7.3",
                file=path,
                remedy="save it with '-v7' or '-v7.3'",
            )
        _library(path)
        return SourceApart(path, partial(_open, path), bytes_below(path))


def _library(path: Path) -> Any:
    return library("scipy.io", file=path)


def _open(path: Path) -> EntrySource:
    listing = Listing(path)
    with guarded(path):
        limit_memory(path)
        shown, stored = _loaded(path)
        for called, value in shown.items():
            if called not in _OF_THE_FILE:
                _add(listing, called, value, stored[called], 0)
    if not listing.entries:
        raise CorruptFileError("holds no variables", file=path)
    return EntrySource(path, listing.entries)


def _loaded(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """All values in the classes that MATLAB shows, and in the types that they are stored in.

    MATLAB stores doubles as bytes where all of them are small whole numbers. SciPy drops imaginary
    parts when it makes classes of them, so complex values are to be taken as they are stored.
    Raises DuplicateVariableError for a name that comes twice, of which SciPy has the last variable.
    """

    def load(*, in_classes: bool) -> dict[str, Any]:
        found: dict[str, Any] = _library(path).loadmat(
            str(path), mat_dtype=in_classes, verify_compressed_data_integrity=True
        )
        return found

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        shown = load(in_classes=True)
    twice = [one for one in told if str(one.message).startswith("Duplicate variable name")]
    if twice:
        raise DuplicateVariableError(str(twice[0].message).partition(" in stream")[0], file=path)
    return shown, load(in_classes=False)


def _add(listing: Listing, called: str, value: Any, stored: Any, depth: int) -> None:
    if hasattr(value, "tocsc"):  # a sparse matrix
        columns = stored.tocsc()
        for part in ("data", "indices", "indptr"):
            listing.add_array(f"{called}.{part}", getattr(columns, part))
        _add_shape(listing, called, columns.shape)
        return
    if isinstance(value, str):  # in place of a variable that SciPy cannot read
        listing.add_fault(called, value)
        return
    array, kept = np.asarray(value), np.asarray(stored)
    if depth > _MOST_DEPTH:
        listing.add_fault(called, "is nested too deeply")
    elif type(value).__name__ in ("MatlabFunction", "MatlabOpaque"):
        listing.add_fault(called, "is a function or an object of MATLAB, which is not compared")
    elif value is None:
        # Without a variable nobody would see that the structure is there.
        listing.add_array(f"{called}.", np.empty(0, dtype="|b1"))
    elif array.dtype.names is not None:
        if array.size != 1:
            _add_shape(listing, called, array.shape)
        if array.size == 0:
            # No element tells of them.
            listing.add_array(f"{called}.fields", " ".join(sorted(array.dtype.names)))
        for number, (record, bare) in enumerate(
            zip(array.reshape(-1), kept.reshape(-1), strict=True)
        ):
            within = called if array.size == 1 else f"{called}.{number}"
            for field in array.dtype.names:
                _add(listing, f"{within}.{field}", record[field], bare[field], depth + 1)
    elif array.dtype.hasobject:
        _add_shape(listing, called, array.shape)
        for number, (cell, bare) in enumerate(
            zip(array.reshape(-1), kept.reshape(-1), strict=True)
        ):
            _add(listing, f"{called}.{number}", cell, bare, depth + 1)
    else:
        with listing.one(called):
            listing.add_array(called, kept if kept.dtype.kind == "c" else array)


def _add_shape(listing: Listing, called: str, shape: tuple[int, ...]) -> None:
    """How the parts of a variable lie, as a text: a bound for numbers says nothing of lengths."""
    listing.add_array(f"{called}.shape", "x".join(map(str, shape)))
