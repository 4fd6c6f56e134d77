"""VTK's modules, and its errors as exceptions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError, one_line
from ciwrap.readers.entries import guarded
from ciwrap.readers.files import check_is_file, whole_file
from ciwrap.readers.optional import library
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

# suffix: (module, class)
READERS = {
    ".vtk": ("vtkIOLegacy", "vtkGenericDataObjectReader"),
    ".vti": ("vtkIOXML", "vtkXMLImageDataReader"),
    ".vtp": ("vtkIOXML", "vtkXMLPolyDataReader"),
    ".vtr": ("vtkIOXML", "vtkXMLRectilinearGridReader"),
    ".vts": ("vtkIOXML", "vtkXMLStructuredGridReader"),
    ".vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"),
    ".pvti": ("vtkIOXML", "vtkXMLPImageDataReader"),
    ".pvtp": ("vtkIOXML", "vtkXMLPPolyDataReader"),
    ".pvtr": ("vtkIOXML", "vtkXMLPRectilinearGridReader"),
    ".pvts": ("vtkIOXML", "vtkXMLPStructuredGridReader"),
    ".pvtu": ("vtkIOXML", "vtkXMLPUnstructuredGridReader"),
    ".xdmf": ("vtkIOXdmf2", "vtkXdmfReader"),
    ".xmf": ("vtkIOXdmf2", "vtkXdmfReader"),
}
# VTK names the object that complains by its class and address, which changes from run to run.
_ADDRESS = re.compile(r" ?\(?0x[0-9a-fA-F]+\)?")
# It says on a line of its own where in its source it complains.
_WHERE = re.compile(r"(?:ERROR|(?:Generic )?Warning): In ")
# What is no XML may follow appended data unseen, since VTK's parser stops where these begin.
_END = re.compile(rb"</VTKFile\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)
_END_BYTES = 4096
_BEGIN = b"<VTKFile"
_MOST_LEVELS = 100
_ARRAY_KINDS = ("Scalars", "Vectors", "Tensors", "Normals", "TCoords", "ColorScalars", "Fields")


class VtkLibrary:
    """VTK's modules, loaded before the process that reads is split off.

    Raises ReaderPluginError if one is not installed. path: of the file, for messages. parts: the
    files that are read with it.
    """

    def __init__(self, path: Path, parts: Iterable[Path] = ()) -> None:
        kinds = [READERS.get(one.suffix.lower(), READERS[".vti"]) for one in (path, *parts)]
        self._path = path
        self._modules = {
            name: library(f"vtkmodules.{name}", "vtk", file=path)
            for name in {
                *(module for module, _ in kinds),
                "vtkIOLegacy",
                "vtkIOXML",
                "vtkIOXMLParser",
            }
        }
        self.core = library("vtkmodules.vtkCommonCore", "vtk", file=path)
        self.model = library("vtkmodules.vtkCommonDataModel", "vtk", file=path)
        self.execution = library("vtkmodules.vtkCommonExecutionModel", "vtk", file=path)
        self.to_numpy = library("vtkmodules.util.numpy_support", "vtk", file=path).vtk_to_numpy

    def reader(self, path: Path) -> Any:
        """VTK's reader for the file, by its suffix; that of legacy files for any other suffix."""
        module, kind = READERS.get(path.suffix.lower(), READERS[".vtk"])
        reader = getattr(self._modules[module], kind)()
        reader.SetFileName(str(path))
        # Legacy readers leave out all but the first array of a kind unless told otherwise.
        for array_kind in _ARRAY_KINDS:
            switch = getattr(reader, f"ReadAll{array_kind}On", None)
            if switch is not None:
                switch()
        return reader

    def xml(self, path: Path) -> Element:
        """The outermost element of one of VTK's XML files. Raises CorruptFileError.

        VTK's parser knows where appended data begin, which may be raw and no XML.
        """
        check_is_file(path)
        parser = self._modules["vtkIOXMLParser"].vtkXMLDataParser()
        parser.SetFileName(str(path))
        self.checked(parser.Parse, path)
        root = parser.GetRootElement()
        if root is None:
            raise CorruptFileError("is not XML of VTK", file=path)
        if root.GetName() == "VTKFile":
            _check_end(path)
        return _element(root, 0, path)

    def checked(self, work: Callable[[], Any], path: Path | None = None) -> Any:
        """Does some work; VTK writes its errors to a window, which is looked at here.

        path: of the file that is read, if it is not the one that was opened. Raises
        CorruptFileError.
        """
        # The window is enough; VTK would also write everything to stderr.
        self.core.vtkLogger.SetStderrVerbosity(self.core.vtkLogger.VERBOSITY_OFF)
        before = self.core.vtkOutputWindow.GetInstance()
        window = self.core.vtkStringOutputWindow()
        self.core.vtkOutputWindow.SetInstance(window)
        try:
            with guarded(path or self._path):
                found = work()
            text = window.GetOutput() or ""
        finally:
            self.core.vtkOutputWindow.SetInstance(before)
        if text.strip():
            lines = [line for line in text.splitlines() if line.strip()]
            told = next((line for line in lines if not _WHERE.match(line)), lines[0])
            raise CorruptFileError(
                f"cannot be read: {one_line(_ADDRESS.sub('', told))[:200]}",
                file=path or self._path,
                remedy="is it whole, and has the program finished writing it?",
            )
        return found


def _check_end(path: Path) -> None:
    data = whole_file(path)
    begins_again = data.find(_BEGIN, data.find(_BEGIN) + 1) >= 0
    if begins_again or not _END.search(data[-_END_BYTES:]):
        raise CorruptFileError(
            "begins once more behind its end" if begins_again else "does not end with </VTKFile>",
            file=path,
            remedy="is it whole, and has nothing else been written to its end?",
        )


class Element(Struct, frozen=True):
    """An XML element without its text."""

    name: str
    attributes: Mapping[str, str]
    inner: tuple[Element, ...]

    def all(self, name: str) -> list[Element]:
        """The elements of that name in it."""
        return [one for one in self.inner if one.name == name]


def _element(item: Any, depth: int, path: Path) -> Element:
    if depth > _MOST_LEVELS:
        raise CorruptFileError("nests its elements too deeply", file=path)
    attributes = {
        str(item.GetAttributeName(number)): str(item.GetAttributeValue(number))
        for number in range(item.GetNumberOfAttributes())
    }
    nested = (item.GetNestedElement(number) for number in range(item.GetNumberOfNestedElements()))
    inner = tuple(_element(one, depth + 1, path) for one in nested)
    return Element(str(item.GetName()), attributes, inner)
