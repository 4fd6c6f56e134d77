"""What `ciwrap init` starts from: the outputs that are named, or those that are found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.config.starter import FoundFile, FoundVariable, Starter, make_starter
from ciwrap.errors import OutputMissingError
from ciwrap.readers.survey import MAX_FILES, is_text, survey
from ciwrap.report.text import plural, safe_text
from ciwrap.structs import replace

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
    starter = make_starter(found)
    return replace(starter, text=starter.text + _comment(left_out)), left_out


def _comment(left_out: Sequence[str]) -> str:
    """What is not compared, where whoever reads the configuration sees it."""
    lines = ["", "# Not compared so far:", *(f"#   {safe_text(one)}" for one in left_out)]
    return "\n".join([*lines, ""]) if left_out else ""


def _left_out(result: Survey) -> list[str]:
    # Prose and lists have the suffixes of tables, too.
    lines = [f"{path}: {why}" for path, why in result.skipped if not is_text(path)]
    if len(lines) > _MOST_NAMED:
        lines[_MOST_NAMED:] = [f"and {len(lines) - _MOST_NAMED} more files"]
    lines += _unknown(result)
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
    """A file, its variables under the names that rules know them by in every iteration."""
    return FoundFile(
        path, tuple(FoundVariable(v.called or v.name, v.dtype, v.shape) for v in variables)
    )


def _unknown(result: Survey) -> list[str]:
    """Of files that no reader knows, those beside what was found."""
    counts = Counter(
        path.suffix or "without a suffix"
        for path in result.unknown
        if any(path.parent == one.path.parent for one in result.candidates)
    )
    if not counts:
        return []
    total = sum(counts.values())
    named = [f"{suffix} ({count})" for suffix, count in counts.most_common(_MOST_NAMED)]
    more = [f"and {len(counts) - _MOST_NAMED} more kinds"] if len(counts) > _MOST_NAMED else []
    kinds = ", ".join([*named, *more])
    text = (
        f"{plural(total, 'file')} of which no reader knows suffix or content: {kinds};"
        " `ciwrap init --logs` proposes values of logs, 'format' names the reader of other files"
    )
    return [text]
