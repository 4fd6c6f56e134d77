"""A run's values, copied into memory: what a test computes is gone before it runs again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.readers.base import Reader, Source, VariableInfo
from ciwrap.readers.layout import FoundOutputs, OutputFile
from ciwrap.repeat.measure import RunOutputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ciwrap.catalog.catalog import Catalog
    from ciwrap.model import VariableId


def held_run(name: str, catalog: Catalog, is_ignored: Callable[[VariableId], bool]) -> RunOutputs:
    """A copy of all variables that count, as the outputs of a run of that name.

    Raises the errors that kept files of the catalog from being opened, and those of reading.
    """
    if catalog.errors:
        raise catalog.errors[0]
    infos, arrays = [], {}
    for identity in catalog.entries:
        if is_ignored(identity):
            continue
        values = catalog.values(identity)
        slabs = [slab.reshape(-1) for _, slab in values.slabs()]
        arrays[identity.text] = np.concatenate(slabs) if slabs else values.read(0, 0)
        infos.append(
            VariableInfo(
                identity.text,
                values.dtype,
                tuple(values.shape),
                called=identity.name,
                iteration=identity.iteration,
                rank=identity.rank,
                labels=values.labels,
            )
        )
    place = Path(name)
    return RunOutputs(place, FoundOutputs((OutputFile(place, _HeldReader(infos, arrays)),)))


class _HeldReader(Reader):
    """Opens the variables it was given."""

    name = "memory"
    suffixes = ()

    def __init__(self, infos: list[VariableInfo], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._infos = tuple(infos)
        self._arrays = arrays

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - the variables have names
        options: Mapping[str, Any] | None = None,  # noqa: ARG002 - there are none
    ) -> Source:
        return _HeldSource(path, self._infos, self._arrays)


class _HeldSource(Source):
    def __init__(
        self, path: Path, infos: tuple[VariableInfo, ...], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        self.path = path
        self.variables = infos
        self._arrays = arrays

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        return self._arrays[name][first_element : first_element + count]
