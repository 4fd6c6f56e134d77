"""The file formats that ciwrap reads by itself, each stated once; and the version of its maps.

Nothing is imported to look a format up: the configuration knows the names, the search for outputs
the suffixes, and `readers.registry` loads a reader when a file asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class OwnFormat(NamedTuple):
    """reader: where its class is, MODULE:CLASS. suffixes: lower case, with the dot."""

    reader: str
    suffixes: tuple[str, ...]


# By the name that `format:` in ciwrap.yaml gives. The order is that of messages and documents.
OWN_FORMATS = {
    "npy": OwnFormat("ciwrap.readers.npy:NpyReader", (".npy",)),
    "npz": OwnFormat("ciwrap.readers.npz:NpzReader", (".npz",)),
    "raw": OwnFormat("ciwrap.readers.raw:RawReader", (".bin", ".raw")),
    "text": OwnFormat("ciwrap.readers.text:TextReader", (".csv", ".tsv", ".txt", ".dat")),
    "tokens": OwnFormat("ciwrap.readers.tokens:TokensReader", ()),
    "hdf5": OwnFormat("ciwrap.readers.hdf5:Hdf5Reader", (".h5", ".hdf5", ".he5", ".hdf")),
    "netcdf": OwnFormat("ciwrap.readers.netcdf:NetcdfReader", (".nc", ".nc4", ".cdf", ".netcdf")),
    "zarr": OwnFormat("ciwrap.readers.zarr_store:ZarrReader", (".zarr",)),
    "parquet": OwnFormat("ciwrap.readers.parquet:ParquetReader", (".parquet", ".pq")),
    "safetensors": OwnFormat("ciwrap.readers.safetensors:SafetensorsReader", (".safetensors",)),
    "dcd": OwnFormat("ciwrap.readers.dcd:DcdReader", (".dcd",)),
    "gromacs": OwnFormat("ciwrap.readers.gromacs:GromacsReader", (".trr", ".xtc")),
    "fits": OwnFormat("ciwrap.readers.fits:FitsReader", (".fits", ".fit", ".fts")),
    "vtk": OwnFormat(
        "ciwrap.readers.vtk:VtkReader",
        (
            *(".vtk", ".vti", ".vtp", ".vtr", ".vts", ".vtu"),
            *(".pvti", ".pvtp", ".pvtr", ".pvts", ".pvtu", ".xdmf", ".xmf", ".vtm", ".pvd"),
        ),
    ),
    "adios2": OwnFormat("ciwrap.readers.adios2:Adios2Reader", (".bp", ".bp4", ".bp5")),
    "fortran": OwnFormat("ciwrap.readers.fortran_file:FortranReader", ()),
    "xyz": OwnFormat("ciwrap.readers.xyz:XyzReader", (".xyz", ".extxyz")),
    "lammps": OwnFormat("ciwrap.readers.lammps_dump:LammpsReader", (".lammpstrj",)),
    "cube": OwnFormat("ciwrap.readers.cube:CubeReader", (".cube", ".cub")),
    "json": OwnFormat("ciwrap.readers.values_file:JsonReader", ()),
    "toml": OwnFormat("ciwrap.readers.values_file:TomlReader", ()),
    "yaml": OwnFormat("ciwrap.readers.values_file:YamlReader", ()),
    "mat": OwnFormat("ciwrap.readers.mat:MatReader", (".mat",)),
    "torch": OwnFormat("ciwrap.readers.pickles:TorchReader", (".pt", ".pth")),
    "pickle": OwnFormat("ciwrap.readers.pickles:PickleReader", (".pkl", ".pickle", ".joblib")),
    "log": OwnFormat("ciwrap.readers.log:LogReader", ()),
    "veloc": OwnFormat("ciwrap.readers.veloc:VelocReader", (".veloc",)),
}


class FormatRule(Struct, frozen=True):
    """`*.e` is read by netcdf. options: of the reader; None for those of the check."""

    glob: str
    reader: str
    options: Mapping[str, Any] | None = None


# The newest version of the file that `ciwrap variability fit` writes and the others read.
VARIABILITY_MAP_VERSION = 1
