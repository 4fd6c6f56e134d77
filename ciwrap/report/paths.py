"""Results without the paths of the machine they were made on."""

from __future__ import annotations

import operator
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ciwrap.model import RunResult
from ciwrap.model.repeat_result import RepeatResult
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result", RunResult, RepeatResult)

_ABSOLUTE = re.compile(r"(?<![\w/.:~$\u2026-])/(?:[^\s/'\"`:;,()\[\]<>|]+/)+[^\s'\"`:;,()\[\]<>|]*")
_PATH_FIELDS = ("golden_path", "source_path", "file", "working_dir", "folder")
# Of records within records.
_NESTED_FIELDS = ("checks", "variables", "messages", "command", "runs")
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
    """The record with its paths shortened; the same one if none is. Large results have millions of
    fields, so each costs as little as can be.
    """
    changes: dict[str, Any] = {}
    paths, texts, nested = _plan(type(item))
    for name in paths:
        value = getattr(item, name)
        if value and "/" in value and (new := shorten(value, is_path=True)) != value:
            changes[name] = new
    for name in texts:
        value = getattr(item, name)
        if not isinstance(value, str) or "/" not in value:
            continue
        if (new := shorten(value, is_path=False)) != value:
            changes[name] = new
    for name in nested:
        value = getattr(item, name)
        if isinstance(value, tuple):
            parts = tuple([_rewritten(part, shorten) for part in value])
            if any(map(operator.is_not, parts, value)):
                changes[name] = parts
        elif isinstance(value, Struct) and (one := _rewritten(value, shorten)) is not value:
            changes[name] = one
    return replace(item, **changes) if changes else item


_Plan = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_plans: dict[Any, _Plan] = {}


def _plan(kind: Any) -> _Plan:
    """The fields of a record that are paths, that are texts, and that are records themselves."""
    known = _plans.get(kind)
    if known is None:
        found = (_PATH_FIELDS, _TEXT_FIELDS, _NESTED_FIELDS)
        paths, texts, nested = (
            tuple(name for name in kind.__struct_fields__ if name in some) for some in found
        )
        known = _plans[kind] = paths, texts, nested
    return known
