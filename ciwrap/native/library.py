"""Where the recording library and its headers lie, in a wheel or in a source tree."""

from __future__ import annotations

import sys
from pathlib import Path

from ciwrap.errors import NotAvailableError

_SOURCE = Path(__file__).parents[2] / "csrc" / "record"
LIBRARY_NAME = f"libciwrap_record.{'dylib' if sys.platform == 'darwin' else 'so'}"


def library_path() -> Path:
    """The recording library. Raises NotAvailableError."""
    path = Path(__file__).parent / LIBRARY_NAME
    if not path.is_file():
        raise NotAvailableError(
            "was not built with this installation of ciwrap",
            file=path,
            remedy="build the target ciwrap_record (CONTRIBUTING.md), or install a wheel",
        )
    return path


def include_folder() -> Path:
    """The folder that a compiler is given with -I: it holds ciwrap/record.h."""
    own = Path(__file__).parent / "include"
    return own if own.is_dir() else _SOURCE / "include"


def fortran_folder() -> Path:
    """The folder of ciwrap_record.f90 and its half in C."""
    own = include_folder() / "fortran"
    return own if own.is_dir() else _SOURCE / "fortran"
