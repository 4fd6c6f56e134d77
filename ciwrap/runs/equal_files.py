"""Files of two runs that cannot be read, but hold the same bytes: whatever they mean is equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.base.errors import CiwrapError
from ciwrap.check.judge import compare_values
from ciwrap.formats.find_outputs import kind_of
from ciwrap.formats.reader import SourceValues
from ciwrap.formats.source_files import relative_path
from ciwrap.formats.whole_file import UnknownReader
from ciwrap.model import VariableId, VariableSettings, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.formats.find_outputs import OutputFile
    from ciwrap.model import VariableResult
    from ciwrap.runs.sides import Variables


def take_equal_files(ours: Variables, theirs: Variables) -> Iterator[tuple[VariableResult, str]]:
    """Results of the files that neither side could open and that are equal byte for byte, as are
    those that they are read with, and what is to be said of each. Their errors are taken out of
    both sides.
    """
    there = _unopened(theirs)
    for name, (file, error) in _unopened(ours).items():
        other = there.get(name)
        result = None if other is None else _result(ours, name or file.path.name, file, other[0])
        if other is None or result is None:
            continue
        ours.errors.remove(error)
        theirs.errors.remove(other[1])
        why = f"{error.message}; {error.remedy}" if error.remedy else error.message
        yield result, f"compared by its bytes alone ({kind_of(file.path)}): {why}"


def _unopened(side: Variables) -> dict[str, tuple[OutputFile, CiwrapError]]:
    """The files of a side of which there is nothing but one error, by their paths in the run; '' if
    it is that file.
    """
    errors: dict[str, list[CiwrapError]] = {}
    for error in side.errors:
        if error.file is not None:
            errors.setdefault(str(error.file), []).append(error)
    opened = {entry.file.path for entry in side.catalog.entries.values()}
    found = {}
    for file in side.run.groups[side.look.key]:
        told = errors.get(str(file.path), [])
        if len(told) == 1 and file.path not in opened:
            name = "" if file.path == side.run.path else relative_path(side.run.path, file.path)
            found[name] = (file, told[0])
    return found


def _result(
    ours: Variables, name: str, file: OutputFile, other: OutputFile
) -> VariableResult | None:
    """A match, if two files hold the same bytes, and so do those that they are read with."""
    paths, others = map(_with_companions, (file, other))
    if len(paths) != len(others):
        return None
    results = []
    for path, new in reversed([*zip(paths, others, strict=True)]):
        try:
            result = _compared(VariableId(name, *ours.look.key), path, new)
        except CiwrapError:  # a folder, or what nobody may read
            return None
        if result.verdict is not Verdict.MATCH:
            return None
        results.append(result)
    return results[-1]


def _compared(identity: VariableId, path: Path, new: Path) -> VariableResult:
    reader, settings = UnknownReader(), VariableSettings()
    with reader.open(path, name=identity.name) as one, reader.open(new, name=identity.name) as two:
        ours, theirs = (SourceValues(side, side.variables[0], str) for side in (one, two))
        return compare_values(ours, theirs, settings, identity, source_path=str(new))


def _with_companions(file: OutputFile) -> list[Path]:
    beside = sorted(path for path in file.companions if path.exists())
    return [file.path, *beside]
