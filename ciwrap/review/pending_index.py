"""pending.json: all pending goldens of a folder in one list, for other programs.

It is made anew from what lies there whenever that has changed, so it is never the only one to know
something.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CorruptFileError
from ciwrap.files import read_regular
from ciwrap.golden.manifest import Count, PendingKind, Root

if TYPE_CHECKING:
    from pathlib import Path

INDEX_NAME = "pending.json"
INDEX_VERSION = 1
MOST_INDEX_BYTES = 16 << 20


class PendingEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pending golden. file: its binary, below the folder of pending.json."""

    check: str
    kind: PendingKind
    golden_path: str
    file: str
    variant: str | None
    root: Root
    base_root: Root | None
    bytes: Count
    created: str
    commit: str | None


class PendingIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What pending.json says. golden_dir: the golden folder, relative to the project's."""

    format: int = INDEX_VERSION
    golden_dir: str
    checks: tuple[PendingEntry, ...]


def index_text(index: PendingIndex) -> str:
    return json.dumps(msgspec.to_builtins(index), indent=1) + "\n"


def read_index(folder: Path) -> PendingIndex | None:
    """The index in a folder of pending goldens; None without one.

    Raises CorruptFileError for one that is damaged, UnreadableFileError.
    """
    path = folder / INDEX_NAME
    try:
        data = read_regular(path, MOST_INDEX_BYTES)
        return to_versioned_record(load_json(data), PendingIndex, INDEX_VERSION)
    except FileNotFoundError:
        return None
    except DocumentError as error:
        raise CorruptFileError(
            f"is not a list of pending goldens: {error}",
            file=path,
            remedy="delete it, and run the tests again",
        ) from None
