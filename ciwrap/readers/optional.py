"""Libraries that only some formats need, loaded when a file of that format is opened."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ciwrap.errors import ReaderPluginError, one_line

if TYPE_CHECKING:
    import os

# What is read with which packages, and the extra of ciwrap that brings them.
NEEDED = {
    "hdf5": ("hdf5", ("h5py",)),
    "netcdf 4": ("netcdf", ("h5py", "h5netcdf")),
    "zarr": ("zarr", ("zarr",)),
    "parquet": ("parquet", ("pyarrow",)),
    "gromacs": ("md", ("MDAnalysis",)),
    "fits": ("fits", ("astropy",)),
    "vtk packed by LZ4": ("vtk", ("lz4",)),
    "mat 5": ("scipy", ("scipy",)),
    "torch": ("torch", ("torch",)),
    "adios2": ("adios2", ("adios2",)),
    "regular expressions in logs": ("log", ("re2",)),
}
# Packages that are installed under another name than they are imported by.
_DISTRIBUTIONS = {"re2": "google-re2"}


def lacking() -> dict[str, str]:
    """What cannot be read for want of a package, and the extra that brings it; loads none."""
    return {
        what: extra
        for what, (extra, packages) in NEEDED.items()
        if any(find_spec(package) is None for package in packages)
    }


def library(name: str, extra: str, *, file: str | os.PathLike[str]) -> Any:
    """The module of that name, out of the extra `ciwrap[extra]`.

    Raises ReaderPluginError if it is not installed or cannot be loaded.
    """
    package = name.split(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != package:
            problem = f"{package} is installed, but what it needs is not: {one_line(error)}"
        else:
            problem = f"is read with {package}, which is not installed"
        raise ReaderPluginError(
            problem, file=file, remedy=f"pip install 'ciwrap[{extra}]'"
        ) from error
    except (ImportError, OSError) as error:
        raise ReaderPluginError(
            f"{name} cannot be loaded: {one_line(error)}",
            file=file,
            remedy=f"pip install --force-reinstall {_DISTRIBUTIONS.get(package, package)}",
        ) from error
