"""The list of goldens that the last test runs found to be used by no test.

Only a test run can know, and only of the tests as they were; the list is how `ciwrap prune` gets to
know both.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CorruptFileError, FileLimitError, UnreadableFileError
from ciwrap.files import read_regular, write_atomically, writing
from ciwrap.golden.manifest import Root
from ciwrap.golden.places import Place
from ciwrap.work_folder import WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from pathlib import Path

LIST_NAME = "unused.json"
LIST_VERSION = 2
_MOST_BYTES = 16 << 20


class UnusedGolden(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """folder, name: its place. root: of the golden when it was found to be unused; None: it could
    not be read.
    """

    folder: str
    name: str
    root: Root | None

    @property
    def place(self) -> Place:
        return Place(self.folder, self.name)


class ProjectState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tests were like: two of one project are equal only if its tests use the same goldens.

    folder: the project's. golden_dir: relative to it. commit: None without git. digest: of the
    files that decide which tests there are and what they check.
    """

    folder: str
    golden_dir: str
    commit: str | None
    digest: str


class UnusedList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """state: of the project when its tests ran; of any other nothing is known."""

    format: int = LIST_VERSION
    state: ProjectState
    unused: tuple[UnusedGolden, ...]


def list_path(root: Path) -> Path:
    return root / WORK_DIR / LIST_NAME


def read_unused(root: Path) -> UnusedList | None:
    """The list; None without one. Raises CorruptFileError."""
    path = list_path(root)
    try:
        data = read_regular(path, _MOST_BYTES)
        return to_versioned_record(load_json(data), UnusedList, LIST_VERSION)
    except FileNotFoundError:
        return None
    except (DocumentError, FileLimitError, UnreadableFileError) as error:
        raise CorruptFileError(
            f"is not a list of unused goldens: {error}",
            file=path,
            remedy="delete it, run the tests",
        ) from None


def write_unused(root: Path, found: UnusedList) -> None:
    """Replaces the list. Raises WriteFailedError."""
    path = list_path(root)
    document = msgspec.to_builtins(found)
    with writing(path):
        keep_out_of_git(path.parent)
        write_atomically(path, json.dumps(document, indent=1) + "\n")
