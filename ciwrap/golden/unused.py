"""The list of goldens that the last whole test run found to be used by no test.

Only a test run can know; the list is how `ciwrap prune` gets to know.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CorruptFileError, FileLimitError, UnreadableFileError, WriteFailedError
from ciwrap.golden.files import read_regular, write_text
from ciwrap.golden.manifest import Root
from ciwrap.golden.paths import staged
from ciwrap.golden.places import Place
from ciwrap.golden.work_folder import WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIST_NAME = "unused.json"
LIST_VERSION = 1
_MOST_BYTES = 16 << 20


class UnusedGolden(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """folder, name: its place. root: of the golden when it was found to be unused."""

    folder: str
    name: str
    root: Root | None

    @property
    def place(self) -> Place:
        return Place(self.folder, self.name)


class _UnusedList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int = LIST_VERSION
    unused: tuple[UnusedGolden, ...]


def list_path(root: Path) -> Path:
    return root / WORK_DIR / LIST_NAME


def read_unused(root: Path) -> list[UnusedGolden]:
    """The list; empty without one. Raises CorruptFileError."""
    path = list_path(root)
    try:
        data = read_regular(path, _MOST_BYTES)
        found = to_versioned_record(load_json(data), _UnusedList, LIST_VERSION)
    except FileNotFoundError:
        return []
    except (DocumentError, FileLimitError, UnreadableFileError) as error:
        raise CorruptFileError(
            f"is no list of unused goldens: {error}", file=path, remedy="delete it, run the tests"
        ) from None
    return list(found.unused)


def write_unused(root: Path, unused: Iterable[UnusedGolden]) -> None:
    """Replaces the list; none is written where there is nothing to say. Raises WriteFailedError."""
    path = list_path(root)
    found = sorted(unused)
    if not found and not path.exists():
        return
    document = msgspec.to_builtins(_UnusedList(unused=tuple(found)))
    try:
        keep_out_of_git(path.parent)
        write_text(staged(path), json.dumps(document, indent=1) + "\n")
        staged(path).replace(path)
    except OSError as error:
        raise WriteFailedError(
            f"could not be written: {error.strerror or error}", file=path
        ) from error
