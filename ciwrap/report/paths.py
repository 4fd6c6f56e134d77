"""Results without the paths of the machine they were made on."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ciwrap.model import CheckResult, CommandOutcome, Message, RunResult, VariableResult
from ciwrap.model.repeat_result import RepeatedRun, RepeatedVariable, RepeatResult
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result", RunResult, RepeatResult)

_ABSOLUTE = re.compile(r"(?<![\w/.:~$\u2026-])/(?:[^\s/'\"`:;,()\[\]<>|]+/)+[^\s'\"`:;,()\[\]<>|]*")
_PATH_FIELDS = ("golden_path", "source_path", "file", "working_dir", "folder")
_TEXT_FIELDS = ("text", "reason", "command", "output_tail", "name", "problem", "headline")
# What everybody has, and nobody hides.
_PUBLIC = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/etc/", "/dev/", "/proc/")


def relative_to(run: _Result, base: Path) -> _Result:
    """The result with all paths below `base` as seen from there."""
    prefix = f"{base}/"

    def shorten(text: str, *, is_path: bool) -> str:
        if is_path and text == str(base):
            return "."
        return text.replace(prefix, "") if prefix != "//" else text

    found: _Result = _rewritten(run, shorten)
    return found


def portable(run: _Result) -> _Result:
    """The result with absolute paths cut to their last two parts: `.../run/x.npy`."""

    def shorten(text: str, *, is_path: bool) -> str:
        if is_path:
            return _short(text) if text.startswith("/") else text
        return portable_text(text)

    found: _Result = _rewritten(run, shorten)
    return found


def portable_text(text: str) -> str:
    """The text with absolute paths cut to their last two parts."""
    return _ABSOLUTE.sub(lambda match: _short(match[0]), text)


def _short(path: str) -> str:
    if path.startswith(_PUBLIC):
        return path
    parts = [part for part in PurePosixPath(path).parts if part != "/"]
    return "/".join(("...", *parts[-2:])) if parts else path


def _rewritten(item: Any, shorten: Callable[..., str]) -> Any:
    changes: dict[str, Any] = {}
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if isinstance(value, str) and name in _PATH_FIELDS:
            new: Any = shorten(value, is_path=True)
        elif isinstance(value, str) and name in _TEXT_FIELDS:
            new = shorten(value, is_path=False)
        elif isinstance(value, tuple) and value and isinstance(value[0], _NESTED):
            new = tuple(_rewritten(part, shorten) for part in value)
        elif isinstance(value, _NESTED):
            new = _rewritten(value, shorten)
        else:
            continue
        if new != value:
            changes[name] = new
    return replace(item, **changes) if changes else item


_NESTED = (
    *(CheckResult, VariableResult, Message, CommandOutcome),
    *(RepeatedRun, RepeatedVariable),
)
