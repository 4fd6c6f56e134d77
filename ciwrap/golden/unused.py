"""The list of goldens that the last whole test run found to be used by no test.

Only a test run can know; the list is how `ciwrap prune` gets to know.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError, UnreadableFileError, WriteFailedError
from ciwrap.golden.files import read_regular, write_text
from ciwrap.golden.paths import staged
from ciwrap.golden.pending import WORK_DIR, keep_out_of_git
from ciwrap.golden.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIST_NAME = "unused.json"
LIST_VERSION = 1
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, order=True)
class UnusedGolden:
    """folder, name: its place. root: of the golden when it was found to be unused."""

    folder: str
    name: str
    root: str | None

    @property
    def place(self) -> Place:
        return Place(self.folder, self.name)


def list_path(root: Path) -> Path:
    return root / WORK_DIR / LIST_NAME


def read_unused(root: Path) -> list[UnusedGolden]:
    """The list; empty without one. Raises CorruptFileError."""
    path = list_path(root)
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        if document["format"] != LIST_VERSION:
            raise ValueError("it is of another version")
        found = [
            UnusedGolden(str(one["folder"]), str(one["name"]), one["root"])
            for one in document["unused"]
        ]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, RecursionError, UnreadableFileError) as error:
        raise CorruptFileError(
            f"is no list of unused goldens: {error}", file=path, remedy="delete it, run the tests"
        ) from None
    return found


def write_unused(root: Path, unused: Iterable[UnusedGolden]) -> None:
    """Replaces the list; none is written where there is nothing to say. Raises WriteFailedError."""
    path = list_path(root)
    found = sorted(unused)
    if not found and not path.exists():
        return
    document = {"format": LIST_VERSION, "unused": [asdict(one) for one in found]}
    try:
        keep_out_of_git(path.parent)
        write_text(staged(path), json.dumps(document, indent=1) + "\n")
        staged(path).replace(path)
    except OSError as error:
        raise WriteFailedError(
            f"could not be written: {error.strerror or error}", file=path
        ) from error
