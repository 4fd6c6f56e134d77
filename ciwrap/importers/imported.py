"""What importing tests comes to: files to write, and what was not carried over."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from ciwrap.errors import UsageError, WriteFailedError
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

_FIELD = re.compile(r"\{[^{}]*\}")
MOST_BYTES = 16 << 20


class LeftOut(Struct):
    """Something that was not carried over, and why."""

    what: str
    reason: str


class Imported(Struct):
    """files: by their path relative to the folder that they go to. test_count: tests that were
    found; carried_count: those of which everything was carried over, or all but what is in notes.
    """

    files: dict[str, str] = field(default_factory=dict)
    test_count: int = 0
    carried_count: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason was given, the most frequent first."""
        counts: dict[str, int] = {}
        for one in self.left_out:
            counts[one.reason] = counts.get(one.reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: -pair[1]))

    def write(self, folder: Path) -> None:
        """Writes all files. Raises UsageError if one already exists, WriteFailedError."""
        for name in self.files:
            if (folder / name).exists():
                raise UsageError(
                    "already exists", file=folder / name, remedy="remove it, or give --output"
                )
        for name, text in self.files.items():
            path = folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise WriteFailedError(
                    f"could not be written: {error.strerror or error}", file=path
                ) from error


def yaml_text(head: str, document: dict[str, Any]) -> str:
    """A document under a comment."""
    body = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return f"{comment}{body}"


def read_text(path: Path) -> str:
    """The text of a file that somebody else wrote. Raises UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(data) > MOST_BYTES:
        raise UsageError("is larger than 16 MiB", file=path)
    return data.decode("utf-8", "replace")


def bound_of(said: Any) -> float | None:
    """A tolerance; None for what is none. YAML reads `1e-4` as text."""
    if isinstance(said, bool):
        return None
    try:
        bound = float(said)
    except (TypeError, ValueError, OverflowError):
        return None
    return bound if math.isfinite(bound) and bound >= 0 else None


def is_path(text: Any) -> bool:
    """Whether `outputs` takes it as it is: what stands in braces there is a field of a template."""
    return isinstance(text, str) and text != "" and not _FIELD.search(text)


def free_name(name: str, used: Container[str]) -> str:
    """The name, numbered where it is used already."""
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}_{number}"
    return free


def template_of(text: str) -> str:
    """A text as a template that means it literally."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    return f"{{*}}{escaped}" if escaped.startswith("^") else escaped
