"""What `ciwrap init` starts from: the outputs that are named, or those that are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.config.starter import FoundFile, FoundVariable, Starter, make_starter
from ciwrap.errors import OutputMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.readers.base import VariableInfo

__all__ = ["Starter", "starter_for"]


def starter_for(root: Path, outputs: Sequence[str]) -> Starter:
    """A starter for the given outputs, or for whatever can be read below root.

    Raises OutputMissingError if there is nothing, and the errors of reading what was named: a
    configuration for files that cannot be read helps nobody.
    """
    found = _named(root, outputs) if outputs else _surveyed(root)
    if not found:
        raise OutputMissingError(
            "there is nothing here or below that ciwrap can read",
            file=root.absolute(),
            remedy="run the program first, or name its outputs: ciwrap init out/*.csv",
        )
    return make_starter(found)


def _named(root: Path, outputs: Sequence[str]) -> list[FoundFile]:
    from ciwrap.compare.outputs import Catalog
    from ciwrap.readers import find_outputs

    found = find_outputs(root, outputs)
    with Catalog(found) as catalog:
        if catalog.errors:
            raise catalog.errors[0]
    files: list[FoundFile] = []
    for file in found.files:
        with file.open() as source:
            files.append(_found(file.path.relative_to(root).as_posix(), source.variables))
    return files


def _surveyed(root: Path) -> list[FoundFile]:
    from ciwrap.readers.survey import survey

    return [_found(one.path.as_posix(), one.variables) for one in survey(root).candidates]


def _found(path: str, variables: Sequence[VariableInfo]) -> FoundFile:
    return FoundFile(path, tuple(FoundVariable(v.name, v.dtype, v.shape) for v in variables))
