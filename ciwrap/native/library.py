"""Where the recording library and its headers lie, in a wheel or in a source tree."""

from __future__ import annotations

import sys
from pathlib import Path

from ciwrap.errors import NotAvailableError

_SOURCE = Path(__file__).parents[2] / "csrc" / "record"
_SUFFIX = "dylib" if sys.platform == "darwin" else "so"
LIBRARY_NAME = f"libciwrap_record.{_SUFFIX}"
_KOKKOS_NAME = f"libciwrap_kokkos.{_SUFFIX}"


def library_path() -> Path:
    """The recording library. Raises NotAvailableError."""
    return _library(LIBRARY_NAME)


def kokkos_path() -> Path:
    """What KOKKOS_TOOLS_LIBS has to name. Raises NotAvailableError."""
    return _library(_KOKKOS_NAME)


def _library(name: str) -> Path:
    path = Path(__file__).parent / name
    if not path.is_file():
        target = name.removeprefix("lib").partition(".")[0]
        raise NotAvailableError(
            "was not built with this installation of ciwrap",
            file=path,
            remedy=f"build the target {target} (CONTRIBUTING.md), or install a wheel",
        )
    return path


def include_folder() -> Path:
    """The folder that a compiler is given with -I: it holds ciwrap/record.h."""
    return _folder("include")


def fortran_folder() -> Path:
    """The folder of ciwrap_record.f90 and its half in C."""
    return _folder("fortran")


def cmake_folder() -> Path:
    """What `find_package(ciwrap-record)` is given as ciwrap-record_DIR."""
    return _folder("cmake")


def pkg_config_folder() -> Path:
    """What PKG_CONFIG_PATH has to hold for `pkg-config ciwrap-record`."""
    return _folder("pkgconfig")


def _folder(name: str) -> Path:
    """Raises NotAvailableError for an installation that left it out."""
    folders = (Path(__file__).parent / name, _SOURCE / name)
    found = next((one for one in folders if one.is_dir()), None)
    if found is None:
        raise NotAvailableError(
            "was not installed with ciwrap", file=folders[0], remedy="install a wheel of ciwrap"
        )
    return found
