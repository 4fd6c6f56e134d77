"""Outputs with damage in them: read from the real files, changed on the way, never written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.readers.base import Source
from ciwrap.readers.layout import OutputFile
from ciwrap.structs import Struct, field, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Change(Struct, frozen=True):
    """What happens to one variable of a file. element: (flat index, value there). unit: in place
    of the one the file says.
    """

    element: tuple[int, Any] | None = None
    is_lost: bool = False
    unit: str | None = None


class DamagedFile(OutputFile, frozen=True):
    """An output some of whose variables are changed on their way. changes: by name in the file."""

    changes: Mapping[str, Change] = field(default_factory=dict)

    def open(self) -> Source:
        """Opens the file as it is; raises as `OutputFile.open` does."""
        return DamagedSource(OutputFile.open(self), self.changes)


def damaged(file: OutputFile, changes: Mapping[str, Change]) -> OutputFile:
    """That file, whose variables are changed while it is read; by their names in the file."""
    return DamagedFile(
        **{name: getattr(file, name) for name in OutputFile.__struct_fields__}, changes=changes
    )


class DamagedSource(Source):
    """An open file with changes; nothing of it is read but through here."""

    def __init__(self, source: Source, changes: Mapping[str, Change]) -> None:
        self._source = source
        self._changes = changes
        self.path = source.path
        infos = []
        for info in source.variables:
            change = changes.get(info.name, Change())
            if change.is_lost:
                continue
            if change.unit is not None:
                labels = {**dict(info.labels), "units": change.unit}
                info = replace(info, labels=tuple(sorted(labels.items())))
            infos.append(info if change.element is None else replace(info, region=None))
        self.variables = tuple(infos)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.info(name)
        elements = self._source.read(name, first_element, count)
        change = self._changes.get(name, Change())
        if change.element is None:
            return elements
        index, value = change.element
        if first_element <= index < first_element + count:
            elements = np.array(elements)
            elements[index - first_element] = value
        return elements

    def close(self) -> None:
        self._source.close()
