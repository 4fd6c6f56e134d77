"""The versioned JSON document of a result (docs/reference/result-schema.md), and back again.

The document holds every field of `ciwrap.model.RunResult` under its own name. Fields at their
default (unknown, empty) are left out, but for those that every reader of a document asks for.
Numbers that JSON lacks are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import json
import math
import os
import stat
import sys
import tempfile
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from ciwrap import details, model, timeline
from ciwrap.errors import WriteFailedError
from ciwrap.model import CheckResult, Coverage, Divergence, ErrorBound, RunResult, VariableResult

SCHEMA_VERSION = 1

# Present in every document even where they are null.
_ALWAYS: Mapping[type, frozenset[str]] = {
    VariableResult: frozenset(
        {
            "name",
            "iteration",
            "rank",
            "verdict",
            "evidence",
            "element_count",
            "differing_count",
            "max_abs_difference",
            "first_index",
            "suspect_chunks",
            "max_drift_share",
        }
    ),
    CheckResult: frozenset({"name", "verdict", "variables", "messages", "golden_path"}),
    ErrorBound: frozenset({"atol", "rtol", "ulps"}),
    RunResult: frozenset(
        {"verdict", "checks", "kind", "messages", "environment", "ciwrap_version", "seconds"}
    ),
}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class DocumentError(ValueError):
    """A document that is not one of ours, in one line."""


def to_document(result: RunResult, *, exit_code: int | None = None) -> dict[str, Any]:
    """The result as plain JSON values.

    exit_code: what the process ends with, where it is not the verdict's own (a usage error).
    """
    body = _encode(result)
    assert isinstance(body, dict)
    head: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": body.pop("kind"),
        "verdict": body.pop("verdict"),
        "exit_code": int(result.exit_code if exit_code is None else exit_code),
        "verdict_counts": {
            verdict.value: count for verdict, count in result.verdict_counts.items()
        },
        "coverage": _coverage(result.coverage),
    }
    body["checks"] = [
        _check(check, encoded) for check, encoded in zip(result.checks, body["checks"], strict=True)
    ]
    return {**head, **body}


def _check(check: CheckResult, encoded: dict[str, Any]) -> dict[str, Any]:
    """A check's fields, and what is worked out of them."""
    first = {name: encoded.pop(name) for name in ("name", "verdict")}
    derived = {"coverage": _coverage(check.coverage)}
    for key, divergence in (
        ("first_divergence", check.first_divergence),
        ("first_numeric_divergence", check.first_numeric_divergence),
    ):
        if divergence is not None:
            derived[key] = _divergence(divergence)
    return {**first, **derived, **encoded}


def _divergence(divergence: Divergence) -> dict[str, Any]:
    variable, element = divergence.variable, divergence.element
    found: dict[str, Any] = {
        "kind": divergence.kind.value,
        "name": variable.name,
        "iteration": variable.iteration,
        "rank": variable.rank,
    }
    if variable.reason is not None:
        found["reason"] = variable.reason
    if element is not None:
        found["element"] = _encode(element)
    return found


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {"text": coverage.text, **asdict(coverage)}


def from_document(document: object) -> RunResult:
    """The result a document was made of. Raises DocumentError for anything malformed.

    Checks types strictly: a document may come from somebody else's workflow.
    """
    if not isinstance(document, dict):
        raise DocumentError("the document must be a JSON object")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        has = "no schema version" if version is None else f"schema version {version!r}"
        raise DocumentError(f"the document has {has}, this ciwrap reads {SCHEMA_VERSION}")
    derived = ("schema_version", "exit_code", "verdict_counts", "coverage")
    body = {key: value for key, value in document.items() if key not in derived}
    result: RunResult = _decode(RunResult, body, "document")
    return result


def plain(value: Any) -> Any:
    """Any tree of dataclasses, enums, tuples and numbers as strict JSON values."""
    return _encode(value)


def _encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        always = _ALWAYS.get(type(value), frozenset())
        encoded: dict[str, Any] = {}
        for item in fields(value):
            content = getattr(value, item.name)
            if item.name not in always and _is_default(item, content):
                continue
            encoded[item.name] = _encode(content)
        return encoded
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"{type(value).__name__} has no form in a document")


def _is_default(item: Field[Any], content: Any) -> bool:
    if item.default_factory is not MISSING:
        return bool(content == item.default_factory())
    return bool(content == item.default)


@cache
def _hints(kind: type) -> dict[str, Any]:
    scope = {**vars(typing), **vars(details), **vars(timeline), **vars(model), "Mapping": Mapping}
    return typing.get_type_hints(kind, globalns=scope)


def _decode(kind: Any, value: Any, where: str) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise DocumentError(f"{where} must be a list")
        item_kind = get_args(kind)[0]
        return tuple(_decode(item_kind, item, f"{where}[{n}]") for n, item in enumerate(value))
    if origin is Mapping:
        return _decode_mapping(value, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise DocumentError(f"{where} cannot be {value!r}") from None
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, value, where)
    if kind is float:
        return _decode_float(value, where)
    if kind is int and isinstance(value, bool):
        raise DocumentError(f"{where} must be int, not bool")
    if not isinstance(value, kind):
        raise DocumentError(f"{where} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _decode_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    (kind,) = [kind for kind in kinds if kind is not type(None)]
    return _decode(kind, value, where)


def _decode_mapping(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise DocumentError(f"{where} must be an object of strings")
    return value


def _decode_float(value: Any, where: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DocumentError(f"{where} must be a number")
    return float(value)


def _decode_dataclass(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise DocumentError(f"{where} must be an object")
    hints = _hints(kind)
    arguments = {}
    for key, item in value.items():
        # Fields that a later release added are passed over.
        if key in hints:
            arguments[key] = _decode(hints[key], item, f"{where}.{key}")
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise DocumentError(f"{where}: {error}") from None


def document_text(document: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN), readable, ending in a line break."""
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def write_document(document: Mapping[str, Any], target: str) -> None:
    """Writes to a file atomically, or to stdout if target is `-`. Raises WriteFailedError."""
    write_text(document_text(document), target, "the JSON result")


def write_text(text: str, target: str, what: str) -> None:
    """Writes to a file atomically, or to stdout if target is `-`. Raises WriteFailedError, which
    names `what`.

    A target that is there and no regular file (`/dev/stdout`, a pipe) is written to directly.
    """
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(target)
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            if path.is_dir():
                raise IsADirectoryError(None, "it is a folder")
            path.write_text(text, encoding="utf-8")
            return
        _replace_file(path, text)
    except OSError as error:
        raise WriteFailedError(
            f"{what} could not be written: {error.strerror or error}", file=path
        ) from error


def _replace_file(path: Path, text: str) -> None:
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_new_file_mode())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_file_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
