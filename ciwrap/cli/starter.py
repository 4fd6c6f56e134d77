"""What `ciwrap init` starts from: the outputs that are named, or those that are found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.config.starter import FoundFile, FoundVariable, Starter, make_starter, quoted
from ciwrap.errors import OutputMissingError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.registry import is_output_folder
from ciwrap.readers.survey import MAX_FILES, Survey, is_text, survey
from ciwrap.report.text import plural, safe_text
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.readers.base import VariableInfo

_MOST_NAMED = 5

__all__ = ["Starter", "starter_for"]


def starter_for(root: Path, outputs: Sequence[str]) -> tuple[Starter, list[str]]:
    """A starter for the given outputs, or for whatever can be read below root or below the folders
    among them; and, in words, what was left out.

    Raises OutputMissingError if there is nothing, and the errors of reading files that were named:
    a configuration for files that cannot be read helps nobody.
    """
    folders = [one for one in outputs if _is_looked_through(root / one)]
    named = [one for one in outputs if one not in folders]
    files = _named(root, named) if named else []
    result = _looked_through(root, folders if outputs else ["."])
    left_out = _left_out(result)
    files += [_found(one.path.as_posix(), one.variables) for one in result.candidates]
    if not files:
        more = f" ({left_out[0]})" if left_out else ""
        raise OutputMissingError(
            f"there is nothing here or below that ciwrap can read{more}",
            file=(root / folders[0] if folders else root).absolute(),
            remedy="run the program first, or name its outputs: ciwrap init out/*.csv",
        )
    starter = make_starter(files)
    text = starter.text + _comment(left_out) + _stubs(root, result)
    return replace(starter, text=text), left_out


def _is_looked_through(path: Path) -> bool:
    return path.is_dir() and not path.is_absolute() and not is_output_folder(path)


def _looked_through(root: Path, folders: Sequence[str]) -> Survey:
    """What lies below the folders, under its path from root."""
    found = Survey((), ())
    for folder in folders:
        one = survey(root / folder)
        found = Survey(
            (*found.candidates, *(replace(c, path=folder / c.path) for c in one.candidates)),
            (*found.skipped, *((folder / path, why) for path, why in one.skipped)),
            (*found.unknown, *(folder / path for path in one.unknown)),
            found.is_complete and one.is_complete,
        )
    return found


def _comment(left_out: Sequence[str]) -> str:
    """What is not compared, where whoever reads the configuration sees it."""
    lines = ["", "# Not compared so far:", *(f"#   {safe_text(one)}" for one in left_out)]
    return "\n".join([*lines, ""]) if left_out else ""


def _stubs(root: Path, result: Survey) -> str:
    """Checks of raw numbers to fill in and to make part of `checks`."""
    lines = []
    for path, _ in result.skipped:
        if path.suffix.lower() not in OWN_FORMATS["raw"].suffixes:
            continue
        size = _byte_count(root / path)
        scalar = next((one for one in (8, 4) if size and size % one == 0), None)
        if scalar is None:
            continue
        options = f"options: {{dtype: f{scalar}, shape: [{size // scalar}]}}"
        lines.append(f"  # {quoted(path.stem)}: {{outputs: {quoted(path.as_posix())}, {options}}}")
    if not lines:
        return ""
    head = "\n  # Raw numbers, if these are their types and shapes:\n"
    return head + "\n".join(lines[:_MOST_NAMED]) + "\n"


def _byte_count(path: Path) -> int:
    """0 for what is no file, such as a link to what is not there; what was left out names it."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


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
