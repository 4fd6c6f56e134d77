"""Readers: one small class per file format, found by suffix or by name."""

from __future__ import annotations

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.readers.base import FileRegion, Reader, Source, VariableInfo
from ciwrap.readers.layout import (
    FoundOutputs,
    OutputFile,
    find_in,
    find_outputs,
    refuse_duplicates,
    variables_of,
)
from ciwrap.readers.registry import reader_for, reader_named, reader_names

__all__ = [
    "FileRegion",
    "FoundOutputs",
    "OutputFile",
    "Reader",
    "Source",
    "VariableInfo",
    "find_in",
    "find_outputs",
    "reader_for",
    "reader_named",
    "reader_names",
    "refuse_duplicates",
    "storage_dtype",
    "variables_of",
]
