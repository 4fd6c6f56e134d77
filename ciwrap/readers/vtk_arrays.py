"""The arrays of VTK's data objects, by name, as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.entries import array_of_texts
from ciwrap.readers.labels import labels_of, names_as_text
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.readers.base import Labels
    from ciwrap.readers.vtk_library import VtkLibrary

    # A text says why an array is not compared.
    Found = dict[str, "Array | str"]

# Data objects all of which is compared.
_KINDS = (
    *("vtkImageData", "vtkRectilinearGrid", "vtkStructuredGrid"),
    *("vtkPolyData", "vtkUnstructuredGrid", "vtkTable"),
)
_POLYHEDRON = 42
_NO_TURN = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
# What a block is called; beside its arrays, each of which is in a section.
BLOCK_NAME = "name"


class Array(Struct, frozen=True):
    """The numbers or texts of an array, and what the file says that they are."""

    values: NDArray[Any]
    labels: Labels = ()


def collect(vtk: VtkLibrary, item: Any, prefix: str, found: Found) -> None:
    """Adds all arrays of a data object, and of the blocks in it, to `found`."""
    if item is None:
        return
    if isinstance(item, vtk.model.vtkMultiBlockDataSet):
        key = vtk.model.vtkCompositeDataSet.NAME()
        for number in range(item.GetNumberOfBlocks()):
            within = f"{prefix}{number}/"
            if item.HasMetaData(number) and item.GetMetaData(number).Has(key):
                called = item.GetMetaData(number).Get(key)
                found[f"{within}{BLOCK_NAME}"] = Array(array_of_texts([called]).reshape(()))
            collect(vtk, item.GetBlock(number), within, found)
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
    if item.GetClassName() != "vtkDataObject" and not any(map(item.IsA, _KINDS)):
        # What it is made of, a graph's edges say, is in none of these arrays.
        found[f"{prefix}geometry"] = f"is a {item.GetClassName()}, which is not compared"
    _geometry(vtk, item, prefix, found)


def _geometry(vtk: VtkLibrary, item: Any, prefix: str, found: Found) -> None:
    model = vtk.model
    if isinstance(item, model.vtkImageData):
        found[f"{prefix}origin"] = Array(np.array(item.GetOrigin()))
        found[f"{prefix}spacing"] = Array(np.array(item.GetSpacing()))
        found[f"{prefix}extent"] = Array(np.array(item.GetExtent(), dtype="<i8"))
        matrix = item.GetDirectionMatrix()
        turn = [[matrix.GetElement(row, column) for column in range(3)] for row in range(3)]
        if turn != _NO_TURN:
            found[f"{prefix}direction"] = Array(np.array(turn))
    elif isinstance(item, model.vtkRectilinearGrid):
        for axis in "XYZ":
            array = getattr(item, f"Get{axis}Coordinates")()
            if array is not None:
                _put(vtk, found, f"{prefix}{axis.lower()}", array)
    elif isinstance(item, model.vtkPointSet) and item.GetPoints() is not None:
        _put(vtk, found, f"{prefix}points", item.GetPoints().GetData())
    if isinstance(item, model.vtkStructuredGrid):
        found[f"{prefix}extent"] = Array(np.array(item.GetExtent(), dtype="<i8"))
    if isinstance(item, model.vtkUnstructuredGrid) and item.GetNumberOfCells():
        cells = item.GetCells()
        _put(vtk, found, f"{prefix}cells/connectivity", cells.GetConnectivityArray())
        _put(vtk, found, f"{prefix}cells/offsets", cells.GetOffsetsArray())
        types = [item.GetCellType(n) for n in range(item.GetNumberOfCells())]
        found[f"{prefix}cells/types"] = Array(np.array(types, dtype="|u1"))
        if _POLYHEDRON in types:
            found[f"{prefix}cells/faces"] = Array(_faces(vtk, item, types))
    if isinstance(item, model.vtkPolyData):
        for kind in ("Verts", "Lines", "Polys", "Strips"):
            cells = getattr(item, f"Get{kind}")()
            if cells is not None and cells.GetNumberOfCells():
                path = f"{prefix}{kind.lower()}"
                _put(vtk, found, f"{path}/connectivity", cells.GetConnectivityArray())
                _put(vtk, found, f"{path}/offsets", cells.GetOffsetsArray())


def _faces(vtk: VtkLibrary, grid: Any, types: list[int]) -> NDArray[np.int64]:
    """The faces of all polyhedra: how many, and of each how many points and which."""
    found: list[int] = []
    for number, kind in enumerate(types):
        if kind == _POLYHEDRON:
            stream = vtk.core.vtkIdList()
            grid.GetFaceStream(number, stream)
            found += [stream.GetId(at) for at in range(stream.GetNumberOfIds())]
    return np.array(found, dtype="<i8")


def _put(vtk: VtkLibrary, found: Found, name: str, array: Any) -> None:
    if name in found:
        raise CorruptFileError(f"has two arrays named {ascii(name)[:60]}")
    if isinstance(array, vtk.core.vtkStringArray):
        # VTK gives the bytes of what is not UTF-8.
        values = [array.GetValue(n) for n in range(array.GetNumberOfValues())]
        texts = [
            one if isinstance(one, str) else one.decode("utf-8", "surrogateescape")
            for one in values
        ]
        count = array.GetNumberOfComponents()
        whole = array_of_texts(texts)
        shaped = whole if count == 1 else whole.reshape(-1, count)
        found[name] = Array(shaped, _labels(vtk, array))
        return
    if not isinstance(array, vtk.core.vtkDataArray):
        found[name] = f"is a {array.GetClassName()}, which is not compared"
        return
    found[name] = Array(np.array(vtk.to_numpy(array)), _labels(vtk, array))
    table = array.GetLookupTable()  # of legacy files: the colours of its numbers
    if table is not None:
        _put(vtk, found, f"{name}/lookup_table", table.GetTable())


def _labels(vtk: VtkLibrary, array: Any) -> Labels:
    """The unit of an array and the names of its components."""
    told: dict[str, str] = {}
    information, unit = array.GetInformation(), vtk.core.vtkDataArray.UNITS_LABEL()
    if information.Has(unit):
        told["units"] = information.Get(unit)
    labels = labels_of(None, told)
    if array.HasAComponentName():
        names = [array.GetComponentName(n) for n in range(array.GetNumberOfComponents())]
        labels = tuple(sorted((*labels, ("components", names_as_text(names)))))
    return labels
