"""The versioned JSON document of a result (docs/reference/result-schema.md), and back again.

The document holds every field of `ciwrap.model.RunResult` under its own name. Fields at their
default (unknown, empty) are left out, but for those that every reader of a document asks for.
Numbers that JSON lacks are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ciwrap.documents import DocumentError, DocumentHead, to_plain, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import InvalidResultError, UnreadableFileError, WriteFailedError
from ciwrap.files import write_atomically
from ciwrap.model import (
    CheckResult,
    Coverage,
    DifferingElement,
    Divergence,
    DivergenceKind,
    ErrorBound,
    RunResult,
    VariableResult,
)
from ciwrap.model.repeat_result import RepeatedRun, RepeatedVariable, RepeatResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA_VERSION = 1
# A variable takes some 1300 bytes and 70 values, so this is room for 100,000 of them.
MOST_BYTES = 128 << 20
MOST_VALUES = 8_000_000

# Present in every document even where they are null or zero.
ALWAYS: Mapping[type, frozenset[str]] = {
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
    Coverage: frozenset(Coverage.__struct_fields__),
    ErrorBound: frozenset({"atol", "rtol", "ulps"}),
    RunResult: frozenset(
        {"verdict", "checks", "kind", "messages", "environment", "ciwrap_version", "seconds"}
    ),
    RepeatResult: frozenset(
        {"headline", "exit_code", "reference", "seed", "runs", "variables", "factors", "messages"}
    ),
    RepeatedRun: frozenset({"number", "seed", "exit_code"}),
    RepeatedVariable: frozenset(
        {"check", "name", "kind", "classes", "distinct_results", "max_abs", "suggested_bound"}
    ),
}


class DivergenceFacts(msgspec.Struct, frozen=True):
    """A variable of one checkpoint that does not match; by iteration, rank and name.

    kind: missing is on the golden side only, extra on the new side only. element: the first one
    that differs; absent where no values are known.
    """

    kind: DivergenceKind
    name: str
    iteration: int | None
    rank: int | None
    reason: str | None = None
    element: DifferingElement | None = None


class CoverageWords(msgspec.Struct, frozen=True):
    """text: all of it in one line."""

    text: str


class CheckHead(msgspec.Struct, frozen=True):
    """What a document says of a check beside its fields; worked out of them, never read back.

    first_divergence: the earliest variable that does not match. first_numeric_divergence: the
    earliest one whose numbers differ.
    """

    coverage: Coverage
    first_divergence: DivergenceFacts | None = None
    first_numeric_divergence: DivergenceFacts | None = None


class VerdictCounts(msgspec.Struct, frozen=True):
    """Variables by verdict."""

    match: int
    suspect: int
    differ: int
    not_comparable: int


class RunHead(DocumentHead, frozen=True):
    """What a document says of a run beside its fields. Only schema_version is read back.

    exit_code: of the process. coverage: of all checks together.
    """

    exit_code: Literal[0, 1, 2, 3]
    verdict_counts: VerdictCounts
    coverage: Coverage


class RepeatHead(DocumentHead, frozen=True):
    """What the document of repeated runs says beside their fields."""

    kind: Literal["repeat"]


# Records whose fields stand beside those of the result, in the same object.
BESIDE: Mapping[type, type] = {
    CheckResult: CheckHead,
    Coverage: CoverageWords,
    RunResult: RunHead,
    RepeatResult: RepeatHead,
}


class _Version(msgspec.Struct):
    schema_version: int


def to_document(result: RunResult, *, exit_code: int | None = None) -> dict[str, Any]:
    """The result as plain JSON values.

    exit_code: what the process ends with, where it is not the verdict's own (a usage error).
    """
    body = plain(result)
    head: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": body.pop("kind"),
        "verdict": body.pop("verdict"),
        "exit_code": int(result.verdict.exit_code if exit_code is None else exit_code),
        "verdict_counts": {one.value: count for one, count in result.verdict_counts.items()},
    }
    for check, encoded in zip(result.checks, body["checks"], strict=True):
        if check.unlisted is not None:
            encoded["unlisted"]["coverage"] = _coverage(check.unlisted.coverage)
    head["coverage"] = _coverage(result.coverage)
    body["checks"] = [_check(*pair) for pair in zip(result.checks, body["checks"], strict=True)]
    return {**head, **body}


def repeat_document(result: RepeatResult) -> dict[str, Any]:
    """What repeated runs came to, as plain JSON values."""
    return {"schema_version": SCHEMA_VERSION, "kind": "repeat", **plain(result)}


def _check(check: CheckResult, encoded: dict[str, Any]) -> dict[str, Any]:
    """A check's fields, and what is worked out of them."""
    first = {name: encoded.pop(name) for name in ("name", "verdict")}
    divergences = (check.first_divergence, check.first_numeric_divergence)
    head = CheckHead(check.coverage, *map(_divergence, divergences))
    return {**first, **plain(head), "coverage": _coverage(head.coverage), **encoded}


def _divergence(divergence: Divergence | None) -> DivergenceFacts | None:
    if divergence is None:
        return None
    variable = divergence.variable
    place = variable.name, variable.iteration, variable.rank
    return DivergenceFacts(divergence.kind, *place, variable.reason, divergence.element)


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {"text": coverage.text, **plain(coverage)}


def plain(value: Any) -> Any:
    """Any tree of records, enums, tuples and numbers as strict JSON values."""
    return to_plain(value, ALWAYS)


def from_document(document: object) -> RunResult:
    """The result a document was made of. Raises DocumentError for anything malformed.

    Checks types strictly: a document may come from somebody else's workflow.
    """
    version = to_record(document, _Version).schema_version
    if version != SCHEMA_VERSION:
        raise DocumentError(f"has schema version {version}, this ciwrap reads {SCHEMA_VERSION}")
    return to_record(document, RunResult)


@contextlib.contextmanager
def reading_result(path: Path, of: str) -> Iterator[None]:
    """Turns what goes wrong with a JSON result into errors that name the file.

    of: the commands whose results are taken, as `check or run`. Raises UnreadableFileError,
    InvalidResultError.
    """
    try:
        yield
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    except DocumentError as error:
        raise InvalidResultError(
            f"is not a result of {of}: {error}",
            file=path,
            remedy="give a file that one of these commands wrote with --json",
        ) from error


def load_document(path: Path) -> Any:
    """A document's plain values. Raises OSError, DocumentError."""
    with path.open("rb") as stream:
        return parse_document(stream.read(MOST_BYTES + 1))


def parse_document(data: bytes) -> Any:
    """The plain values of a document's bytes. Raises DocumentError."""
    if len(data) > MOST_BYTES:
        raise DocumentError(f"is larger than {MOST_BYTES >> 20} MiB")
    return load_json(data, most_values=MOST_VALUES)


def document_text(document: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN), readable, ending in a line break."""
    # With an indent json itself takes ten times as long.
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    try:
        return msgspec.json.format(compact, indent=1) + "\n"
    except msgspec.DecodeError:  # of paths that are no UTF-8, which msgspec knows no text for
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
            with contextlib.suppress(BrokenPipeError):  # as stdout: a reader may leave
                path.write_text(text, encoding="utf-8")
            return
        place = Path(os.path.realpath(path))
        if place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        write_atomically(place, text)
    except OSError as error:
        raise WriteFailedError(
            f"{what} could not be written: {error.strerror or error}", file=path
        ) from error
