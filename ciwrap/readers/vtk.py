"""VTK's XML and legacy files and XDMF, through VTK's own readers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ciwrap.errors import CorruptFileError, one_line
from ciwrap.readers.apart import SourceApart, bytes_below
from ciwrap.readers.base import Reader, Source
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile
from ciwrap.readers.hdf5 import check_is_file
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

# suffix: (module, class)
_READERS = {
    ".vtk": ("vtkIOLegacy", "vtkGenericDataObjectReader"),
    ".vti": ("vtkIOXML", "vtkXMLImageDataReader"),
    ".vtp": ("vtkIOXML", "vtkXMLPolyDataReader"),
    ".vtr": ("vtkIOXML", "vtkXMLRectilinearGridReader"),
    ".vts": ("vtkIOXML", "vtkXMLStructuredGridReader"),
    ".vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"),
    ".vtm": ("vtkIOXML", "vtkXMLMultiBlockDataReader"),
    ".pvti": ("vtkIOXML", "vtkXMLPImageDataReader"),
    ".pvtp": ("vtkIOXML", "vtkXMLPPolyDataReader"),
    ".pvtr": ("vtkIOXML", "vtkXMLPRectilinearGridReader"),
    ".pvts": ("vtkIOXML", "vtkXMLPStructuredGridReader"),
    ".pvtu": ("vtkIOXML", "vtkXMLPUnstructuredGridReader"),
    ".xdmf": ("vtkIOXdmf2", "vtkXdmfReader"),
    ".xmf": ("vtkIOXdmf2", "vtkXdmfReader"),
}
_MAX_INDEX_BYTES = 1 << 20
_PIECES = re.compile(rb'(?:Source|file)\s*=\s*"([^"<>|:*?]{1,500})"')
_HEAVY = re.compile(rb"([^\s<>:\"]{1,500}\.(?:h5|hdf5|hdf|bin|raw))\s*[:<]")


class VtkReader(Reader):
    """Points, cells, and the arrays over them: `point_data/NAME`, `cell_data/NAME`,
    `field_data/NAME`. Time steps of XDMF are iterations. A time step is held in memory.
    """

    name: ClassVar[str] = "vtk"
    suffixes: ClassVar[tuple[str, ...]] = tuple(_READERS)

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - arrays have names
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        self.check_options(options or {}, path)
        check_is_file(path)
        module, kind = _READERS.get(path.suffix.lower(), _READERS[".vtk"])
        vtk = _Vtk(path, module, kind)
        size = bytes_below(path, *self.companions(path))
        return SourceApart(path, lambda: _source(vtk, path), size)

    def companions(self, path: Path) -> tuple[Path, ...]:
        """The pieces of a parallel file, the heavy data of an XDMF file."""
        suffix = path.suffix.lower()
        if suffix not in (".xdmf", ".xmf", ".vtm") and not suffix.startswith(".pvt"):
            return ()
        if not path.is_file():
            return ()
        file = InputFile(path)
        start = file.read_some(0, _MAX_INDEX_BYTES)
        file.close()
        pattern = _HEAVY if suffix in (".xdmf", ".xmf") else _PIECES
        names = {found.decode("utf-8", "replace") for found in pattern.findall(start)}
        return tuple(path.parent / name for name in sorted(names))


class _Vtk:
    """VTK's modules, and a reader that tells of errors by raising them."""

    def __init__(self, path: Path, module: str, kind: str) -> None:
        self._path = path
        self._make = getattr(library(f"vtkmodules.{module}", "vtk", file=path), kind)
        self.core = library("vtkmodules.vtkCommonCore", "vtk", file=path)
        self.model = library("vtkmodules.vtkCommonDataModel", "vtk", file=path)
        self.execution = library("vtkmodules.vtkCommonExecutionModel", "vtk", file=path)
        self.to_numpy = library("vtkmodules.util.numpy_support", "vtk", file=path).vtk_to_numpy

    def reader(self) -> Any:
        reader = self._make()
        reader.SetFileName(str(self._path))
        # Legacy readers leave out all but the first array of a kind unless told otherwise.
        for kind in (
            "Scalars",
            "Vectors",
            "Tensors",
            "Normals",
            "TCoords",
            "ColorScalars",
            "Fields",
        ):
            switch = getattr(reader, f"ReadAll{kind}On", None)
            if switch is not None:
                switch()
        return reader

    def checked(self, work: Callable[[], Any]) -> Any:
        """Does some work; VTK writes its errors to a window, which is looked at here."""
        # The window is enough; VTK would also write everything to stderr.
        self.core.vtkLogger.SetStderrVerbosity(self.core.vtkLogger.VERBOSITY_OFF)
        before = self.core.vtkOutputWindow.GetInstance()
        window = self.core.vtkStringOutputWindow()
        self.core.vtkOutputWindow.SetInstance(window)
        try:
            with guarded(self._path):
                found = work()
            text = window.GetOutput() or ""
        finally:
            self.core.vtkOutputWindow.SetInstance(before)
        if text.strip():
            lines = [line for line in text.splitlines() if line.strip()]
            told = next((line for line in lines if "ERROR" not in line.split("In ")[0]), lines[0])
            raise CorruptFileError(
                f"cannot be read: {one_line(told)[:200]}",
                file=self._path,
                remedy="is it whole, and has the program finished writing it?",
            )
        return found


def _source(vtk: _Vtk, path: Path) -> Source:
    steps = _Steps(vtk)
    listing = Listing(path)
    for number, time in enumerate(steps.times or [None]):
        where = None if time is None else number
        for name, array in steps.arrays(number).items():
            key = name if where is None else f"{name}[{number}]"
            listing.add(
                key,
                array.dtype,
                array.shape,
                steps.reader(number, name),
                called=name,
                iteration=where,
            )
    if not listing.entries:
        raise CorruptFileError("holds no data", file=path)
    return EntrySource(path, listing.entries)


class _Steps:
    """The arrays of the time step that was read last."""

    def __init__(self, vtk: _Vtk) -> None:
        self._vtk = vtk
        self._reader = vtk.reader()
        vtk.checked(self._reader.UpdateInformation)
        information = self._reader.GetOutputInformation(0)
        key = vtk.execution.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        self.times: list[float] = []
        if information.Has(key):
            # A single time is no history; legacy readers make one up.
            times = [information.Get(key, n) for n in range(information.Length(key))]
            self.times = times if len(times) > 1 else []
        self._number = -1
        self._arrays: dict[str, NDArray[Any]] = {}

    def arrays(self, number: int) -> dict[str, NDArray[Any]]:
        if number != self._number:
            if self.times:
                self._vtk.checked(lambda: self._reader.UpdateTimeStep(self.times[number]))
            else:
                self._vtk.checked(self._reader.Update)
            found: dict[str, NDArray[Any]] = {}
            _collect(self._vtk, self._reader.GetOutputDataObject(0), "", found)
            self._arrays, self._number = found, number
        return self._arrays

    def reader(self, number: int, name: str) -> Callable[[int, int], NDArray[Any]]:
        def read(first: int, count: int) -> NDArray[Any]:
            flat = self.arrays(number)[name].reshape(-1)
            return np.array(flat[first : first + count])

        return read


def _collect(vtk: _Vtk, item: Any, prefix: str, found: dict[str, NDArray[Any]]) -> None:
    """All arrays of a data object, by name."""
    if item is None:
        return
    if isinstance(item, vtk.model.vtkMultiBlockDataSet):
        for number in range(item.GetNumberOfBlocks()):
            _collect(vtk, item.GetBlock(number), f"{prefix}{number}/", found)
        return
    for title, data in (
        ("point_data", getattr(item, "GetPointData", None)),
        ("cell_data", getattr(item, "GetCellData", None)),
        ("row_data", getattr(item, "GetRowData", None)),
        ("field_data", getattr(item, "GetFieldData", None)),
    ):
        if data is None:
            continue
        arrays = data()
        for number in range(arrays.GetNumberOfArrays()):
            array = arrays.GetAbstractArray(number)
            name = array.GetName() or f"array_{number}"
            _put(vtk, found, f"{prefix}{title}/{name}", array)
    _geometry(vtk, item, prefix, found)


def _geometry(vtk: _Vtk, item: Any, prefix: str, found: dict[str, NDArray[Any]]) -> None:
    model = vtk.model
    if isinstance(item, model.vtkImageData):
        found[f"{prefix}origin"] = np.array(item.GetOrigin())
        found[f"{prefix}spacing"] = np.array(item.GetSpacing())
        found[f"{prefix}extent"] = np.array(item.GetExtent(), dtype="<i8")
    elif isinstance(item, model.vtkRectilinearGrid):
        for axis in "XYZ":
            array = getattr(item, f"Get{axis}Coordinates")()
            if array is not None:
                _put(vtk, found, f"{prefix}{axis.lower()}", array)
    elif isinstance(item, model.vtkPointSet) and item.GetPoints() is not None:
        _put(vtk, found, f"{prefix}points", item.GetPoints().GetData())
    if isinstance(item, model.vtkUnstructuredGrid) and item.GetNumberOfCells():
        cells = item.GetCells()
        _put(vtk, found, f"{prefix}cells/connectivity", cells.GetConnectivityArray())
        _put(vtk, found, f"{prefix}cells/offsets", cells.GetOffsetsArray())
        types = [item.GetCellType(n) for n in range(item.GetNumberOfCells())]
        found[f"{prefix}cells/types"] = np.array(types, dtype="|u1")
    if isinstance(item, model.vtkPolyData):
        for kind in ("Verts", "Lines", "Polys", "Strips"):
            cells = getattr(item, f"Get{kind}")()
            if cells is not None and cells.GetNumberOfCells():
                path = f"{prefix}{kind.lower()}"
                _put(vtk, found, f"{path}/connectivity", cells.GetConnectivityArray())
                _put(vtk, found, f"{path}/offsets", cells.GetOffsetsArray())


def _put(vtk: _Vtk, found: dict[str, NDArray[Any]], name: str, array: Any) -> None:
    if name in found:
        raise CorruptFileError(f"has two arrays named {ascii(name)[:60]}")
    if isinstance(array, vtk.core.vtkStringArray):
        texts = [array.GetValue(n) for n in range(array.GetNumberOfValues())]
        width = max(16, *(-(-len(text) // 16) * 16 for text in texts)) if texts else 16
        found[name] = np.array(texts, dtype=f"<U{width}")
        return
    if not isinstance(array, vtk.core.vtkDataArray):
        raise CorruptFileError(f"{ascii(name)[:60]} is a {array.GetClassName()}, not compared")
    values = vtk.to_numpy(array)
    found[name] = np.array(values)
