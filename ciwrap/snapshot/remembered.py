"""What was found out about files, remembered from call to call: to hash a large library takes a
tenth of a second, and it hardly ever changes.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json

FORMAT_VERSION = 1
_MOST_BYTES = 8 << 20
_MOST_ENTRIES = 5_000


class _Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    answers: dict[str, str | None]


class Remembered:
    """Answers by key, in a file of the user's cache folder.

    A file that is missing, damaged or not to be written does no harm: what it held is found out
    again. Keys hold all that tells whether a file is still the same.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_folder() / "objects.json"
        self._answers: dict[str, str | None] | None = None
        self._is_new = False

    def get(self, key: str) -> tuple[str | None] | None:
        """The answer, in a tuple of its own; None if there is none."""
        answers = self._loaded()
        return (answers[key],) if key in answers else None

    def put(self, key: str, answer: str | None) -> None:
        self._loaded()[key] = answer
        self._is_new = True

    def keep(self) -> None:
        """Writes what is new."""
        if not self._is_new or self._answers is None:
            return
        newest = dict(list(self._answers.items())[-_MOST_ENTRIES:])
        text = json.dumps({"format": FORMAT_VERSION, "answers": newest})
        staged = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            staged.write_text(text, encoding="utf-8")
            staged.replace(self._path)
        self._is_new = False

    def _loaded(self) -> dict[str, str | None]:
        if self._answers is None:
            self._answers = self._read()
        return self._answers

    def _read(self) -> dict[str, str | None]:
        try:
            with self._path.open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                return {}
            return dict(to_versioned_record(load_json(data), _Memory, FORMAT_VERSION).answers)
        except (OSError, DocumentError):
            return {}


def cache_folder() -> Path:
    """Where programs of this user keep what they can find out again (XDG base directories)."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given.startswith("/"):
        return Path(given) / "ciwrap"
    try:
        return Path.home() / ".cache" / "ciwrap"
    except RuntimeError:  # no home folder
        return Path(os.devnull) / "ciwrap"
