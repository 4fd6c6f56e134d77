"""XML files of VTK, written as other programs write them: in any encoding, whole or in pieces."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ENCODINGS = ("ascii", "base64", "raw", "packed")
GRIDS = {
    "vti": "ImageData", "vtr": "RectilinearGrid", "vts": "StructuredGrid",
    "vtu": "UnstructuredGrid", "vtp": "PolyData",
}  # fmt: skip
_TYPES = {"f8": "Float64", "f4": "Float32", "i8": "Int64", "i4": "Int32", "u1": "UInt8"}
EXTENT = (0, 3, 0, 2, 0, 0)
Arrays = "Mapping[str, NDArray[Any]]"


class XmlFile:
    """Collects the pieces of one file. encoding: one of ENCODINGS ("raw": appended;
    "packed": base64 of zlib)."""

    def __init__(self, kind: str, encoding: str = "ascii", whole: Sequence[int] = ()) -> None:
        self.kind = kind
        self._encoding = encoding
        self._whole = whole
        self._pieces = ""
        self._appended = b""

    def array(self, name: str, values: NDArray[Any]) -> str:
        values = np.asarray(values)
        width = values.shape[1] if values.ndim > 1 else 1
        head = f'type="{_TYPES[values.dtype.str[1:]]}" Name="{name}" NumberOfComponents="{width}"'
        data = np.uint64(values.nbytes).tobytes() + values.tobytes()
        if self._encoding == "packed":
            block = zlib.compress(values.tobytes())
            sizes = [1, values.nbytes, 0, len(block)] if values.nbytes else [0]
            parts = (np.array(sizes, "u8").tobytes(), block if values.nbytes else b"")
            text = "".join(base64.b64encode(part).decode() for part in parts)
            return f'<DataArray {head} format="binary">{text}</DataArray>'
        if self._encoding == "raw":
            offset = len(self._appended)
            self._appended += data
            return f'<DataArray {head} format="appended" offset="{offset}"/>'
        if self._encoding == "base64":
            text = base64.b64encode(data).decode()
            return f'<DataArray {head} format="binary">{text}</DataArray>'
        text = " ".join(map(repr, values.reshape(-1).tolist()))
        return f'<DataArray {head} format="ascii">{text}</DataArray>'

    def structured(self, extent: Sequence[int], points: Arrays, cells: Arrays) -> None:
        """Adds a piece of a structured grid; its coordinates are its indices."""
        axes = [np.arange(a, b + 1.0) for a, b in zip(extent[::2], extent[1::2], strict=True)]
        where = ""
        if self.kind == "vtr":
            named = zip("xyz", axes, strict=True)
            where = f"<Coordinates>{''.join(self.array(n, v) for n, v in named)}</Coordinates>"
        if self.kind == "vts":
            z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
            place = np.stack([x, y, z], axis=-1).reshape(-1, 3)
            where = f"<Points>{self.array('Points', place)}</Points>"
        self._piece(f'Extent="{" ".join(map(str, extent))}"', points, cells, where)

    def scattered(self, points: Arrays, cells: Arrays, count: int) -> None:
        """Adds a piece of so many single points, each of them a cell."""
        each = np.arange(count)
        inner = self.array("connectivity", each) + self.array("offsets", each + 1)
        where = f"<Points>{self.array('Points', np.ones((count, 3)))}</Points>"
        if self.kind == "vtu":
            inner += self.array("types", np.ones(count, "u1"))
            where += f"<Cells>{inner}</Cells>"
            head = f'NumberOfPoints="{count}" NumberOfCells="{count}"'
        else:
            where += f"<Verts>{inner}</Verts>"
            head = f'NumberOfPoints="{count}" NumberOfVerts="{count}"'
        self._piece(head, points, cells, where)

    def mesh(self, arrays: Arrays) -> None:
        """Adds a piece of triangles. arrays: by the names that ciwrap gives them; the points of the
        cells have the shape (cells, 3).
        """
        cells, points = arrays["cells/connectivity"], arrays["points"]
        inner = self.array("connectivity", cells.reshape(-1))
        inner += self.array("offsets", 3 * np.arange(1, len(cells) + 1))
        inner += self.array("types", np.full(len(cells), 5, "u1"))
        where = f"<Points>{self.array('Points', points)}</Points><Cells>{inner}</Cells>"
        over = {
            place: {
                name.removeprefix(f"{place}/"): values
                for name, values in arrays.items()
                if name.startswith(f"{place}/")
            }
            for place in ("point_data", "cell_data")
        }
        head = f'NumberOfPoints="{len(points)}" NumberOfCells="{len(cells)}"'
        self._piece(head, over["point_data"], over["cell_data"], where)

    def _piece(self, head: str, points: Arrays, cells: Arrays, where: str) -> None:
        over_points = "".join(self.array(*one) for one in points.items())
        over_cells = "".join(self.array(*one) for one in cells.items())
        data = f"<PointData>{over_points}</PointData><CellData>{over_cells}</CellData>"
        self._pieces += f"<Piece {head}>{data}{where}</Piece>\n"

    def text(self) -> str:
        grid = GRIDS[self.kind]
        extent = f' WholeExtent="{" ".join(map(str, self._whole))}"' if len(self._whole) else ""
        if self.kind == "vti":
            extent += ' Origin="0 0 0" Spacing="1 1 1"'
        head = f'type="{grid}" version="1.0" byte_order="LittleEndian" header_type="UInt64"'
        head += ' compressor="vtkZLibDataCompressor"' if self._encoding == "packed" else ""
        return f"<VTKFile {head}>\n<{grid}{extent}>\n{self._pieces}</{grid}>\n"

    def write(self, path: Path) -> Path:
        data = self.text().encode()
        if self._appended:
            data += b'<AppendedData encoding="raw">_' + self._appended + b"</AppendedData>\n"
        path.write_bytes(data + b"</VTKFile>\n")
        return path


def over_points(extent: Sequence[int], start: float = 0.0) -> NDArray[Any]:
    """Numbers for the points of an extent."""
    lengths = [b - a + 1 for a, b in zip(extent[::2], extent[1::2], strict=True)]
    return np.arange(start, start + np.prod(lengths))


def over_cells(extent: Sequence[int], start: float = 0.5) -> NDArray[Any]:
    """Numbers for the cells of an extent."""
    lengths = [max(1, b - a) for a, b in zip(extent[::2], extent[1::2], strict=True)]
    return np.arange(start, start + np.prod(lengths))


def parallel(path: Path, whole: Sequence[int], pieces: Mapping[str, Sequence[int]]) -> Path:
    """The file that names the pieces of a parallel one, each with an array t over points."""
    kind = path.suffix.removeprefix(".p")
    grid = f"P{GRIDS[kind]}"
    head = f' WholeExtent="{" ".join(map(str, whole))}"' if len(whole) else ""
    inner = '<PPointData><PDataArray type="Float64" Name="t"/></PPointData>'
    coordinate = '<PDataArray type="Float64" Name="{}"/>'
    if kind == "vti":
        head += ' Origin="0 0 0" Spacing="1 1 1"'
    elif kind == "vtr":
        inner += f"<PCoordinates>{''.join(map(coordinate.format, 'xyz'))}</PCoordinates>"
    else:
        inner += '<PPoints><PDataArray type="Float64" NumberOfComponents="3"/></PPoints>'
    for source, extent in pieces.items():
        where = f'Extent="{" ".join(map(str, extent))}" ' if len(extent) else ""
        inner += f'<Piece {where}Source="{source}"/>\n'
    path.write_text(
        f'<VTKFile type="{grid}" version="1.0" byte_order="LittleEndian"><{grid} GhostLevel="0"'
        f"{head}>{inner}</{grid}></VTKFile>"
    )
    return path


def piece(path: Path, start: float, extent: Any = EXTENT, whole: Any = EXTENT) -> str:
    """A file with an array t over points that counts from `start`. Returns its name."""
    file = XmlFile("vti", "raw", whole)
    file.structured(extent, {"t": over_points(extent, start)}, {})
    return file.write(path).name


def series(path: Path, named: Iterable[tuple[str, str]]) -> Path:
    """A series: the attributes of each file and its name."""
    inner = "".join(f'<DataSet {attributes} file="{name}"/>\n' for attributes, name in named)
    path.write_text(f'<VTKFile type="Collection"><Collection>{inner}</Collection></VTKFile>')
    return path


def blocks(path: Path, inner: str) -> Path:
    grid = "vtkMultiBlockDataSet"
    path.write_text(f'<VTKFile type="{grid}" version="1.0"><{grid}>{inner}</{grid}></VTKFile>')
    return path
