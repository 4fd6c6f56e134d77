"""Looks through a project for files that could be outputs, for `ciwrap init`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CiwrapError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.choice import Choice
from ciwrap.readers.files import InputFile
from ciwrap.readers.registry import is_output_folder
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from ciwrap.readers.base import Reader, VariableInfo

MAX_FILES = 2000
MAX_TEXT_BYTES = 64 << 20
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "venv", "env", "dist"}
_TEXT_SUFFIXES = set(OWN_FORMATS["text"].suffixes)


class Candidate(Struct, frozen=True):
    """A file that a reader can open. path: relative to the folder looked through."""

    path: Path
    variables: tuple[VariableInfo, ...]


class Survey(Struct, frozen=True):
    """What was found. skipped: files of a known format that could not be opened, and why. unknown:
    files that neither their suffix nor their first bytes say how to read.

    is_complete: false if there were more than MAX_FILES files to look at.
    """

    candidates: tuple[Candidate, ...]
    skipped: tuple[tuple[Path, str], ...]
    unknown: tuple[Path, ...] = ()
    is_complete: bool = True


def survey(folder: Path, *, leave_out: tuple[str, ...] = ("golden",)) -> Survey:
    """Opens every file below the folder that a reader knows by suffix or content; hidden ones,
    virtual environments and the folders named in leave_out are passed over, and so are text files
    without a column of numbers.
    """
    found: list[Candidate] = []
    skipped: list[tuple[Path, str]] = []
    unknown: list[Path] = []
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and name not in leave_out
            and not _is_there(Path(here, name, "pyvenv.cfg"))
        )
        stores = [name for name in folders if is_output_folder(Path(here, name))]
        folders[:] = [name for name in folders if name not in stores]
        for name in sorted([*files, *stores]):
            path = Path(here, name)
            if name.startswith("."):
                continue
            count += 1
            if count > MAX_FILES:
                return Survey(tuple(found), tuple(skipped), tuple(unknown), is_complete=False)
            relative = path.relative_to(folder)
            chosen = Choice().of(path, name)
            if chosen is None:
                unknown.append(relative)
                continue
            if "{" in relative.as_posix():
                skipped.append((relative, "a path with a brace in it cannot be an output"))
                continue
            try:
                variables = _variables(path, chosen.reader)
            except CiwrapError as error:
                why = f"{error.message}; {error.remedy}" if error.remedy else error.message
                skipped.append((relative, why))
                continue
            if variables:
                found.append(Candidate(relative, variables))
    return Survey(tuple(found), tuple(skipped), tuple(unknown))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False  # of a folder that nobody lets us look into


def is_text(path: Path) -> bool:
    """Whether a file has the suffix of a text table, which prose has, too."""
    return path.suffix.lower() in _TEXT_SUFFIXES


def _variables(path: Path, reader: Reader) -> tuple[VariableInfo, ...]:
    """The file's variables; none for prose and lists that happen to have a table's suffix."""
    if is_text(path) and _byte_count(path) > MAX_TEXT_BYTES:
        return ()
    with reader.open(path) as source:
        if is_text(path) and not any(
            info.dtype[1] in "if" and info.shape[0] for info in source.variables
        ):
            return ()
        return source.variables


def _byte_count(path: Path) -> int:
    """Raises as `InputFile` does."""
    file = InputFile(path)
    file.close()
    return file.byte_count
