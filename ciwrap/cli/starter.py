"""What `ciwrap init` starts from: the outputs that are named, or those that are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.config.starter import FoundFile, FoundVariable, Starter, make_starter
from ciwrap.errors import OutputMissingError
from ciwrap.readers.survey import MAX_FILES, is_text, survey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.readers.base import VariableInfo
    from ciwrap.readers.survey import Survey

_MOST_NAMED = 5

__all__ = ["Starter", "starter_for"]


def starter_for(root: Path, outputs: Sequence[str]) -> tuple[Starter, list[str]]:
    """A starter for the given outputs, or for whatever can be read below root; and, in words, what
    was left out.

    Raises OutputMissingError if there is nothing, and the errors of reading what was named: a
    configuration for files that cannot be read helps nobody.
    """
    if outputs:
        return make_starter(_named(root, outputs)), []
    result = survey(root)
    left_out = _left_out(result)
    if not result.candidates:
        more = f" ({left_out[0]})" if left_out else ""
        raise OutputMissingError(
            f"there is nothing here or below that ciwrap can read{more}",
            file=root.absolute(),
            remedy="run the program first, or name its outputs: ciwrap init out/*.csv",
        )
    found = (_found(one.path.as_posix(), one.variables) for one in result.candidates)
    return make_starter(found), left_out


def _left_out(result: Survey) -> list[str]:
    # Prose and lists have the suffixes of tables, too.
    lines = [f"{path}: {why}" for path, why in result.skipped if not is_text(path)]
    if len(lines) > _MOST_NAMED:
        lines[_MOST_NAMED:] = [f"and {len(lines) - _MOST_NAMED} more files"]
    if not result.is_complete:
        lines.append(f"whatever comes after the first {MAX_FILES:,} files")
    return lines


def _named(root: Path, outputs: Sequence[str]) -> list[FoundFile]:
    from ciwrap.catalog.catalog import Catalog
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


def _found(path: str, variables: Sequence[VariableInfo]) -> FoundFile:
    return FoundFile(path, tuple(FoundVariable(v.name, v.dtype, v.shape) for v in variables))
