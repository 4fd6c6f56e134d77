"""The versioned JSON document of a result (docs/reference/result-schema.md), and back again.

The document holds every field of `ciwrap.model.RunResult` under its own name. Fields at their
default (unknown, empty) are left out, but for those that every reader of a document asks for.
Numbers that JSON lacks are the strings "nan", "inf" and "-inf". Large results list the variables
that matter most and count the rest. Several results (shards of one run) can be merged into one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ciwrap.base.documents import (
    DocumentError,
    load_json,
    to_plain,
    to_record,
)
from ciwrap.base.errors import InvalidResultError, UnreadableFileError, WriteFailedError
from ciwrap.base.files import write_atomically
from ciwrap.model import (
    CheckResult,
    Coverage,
    DifferingElement,
    Divergence,
    DivergenceKind,
    ErrorBound,
    Message,
    MessageLevel,
    RunResult,
    Unlisted,
    VariableId,
    VariableResult,
    Verdict,
    worst_of,
)
from ciwrap.model.repeat_result import RepeatedRun, RepeatedVariable, RepeatResult
from ciwrap.model.results import MOST_WHOLE, brief
from ciwrap.model.variable_result import (
    HistoryFacts,
)
from ciwrap.report.lead import groups_of
from ciwrap.report.text import relative_to
from ciwrap.report.where import by_name

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


class CheckHead(msgspec.Struct, frozen=True):
    """What a document says of a check beside its fields; worked out of them, never read back.

    first_divergence: the earliest variable that does not match. first_numeric_divergence: the
    earliest one whose numbers differ.
    """

    coverage: Coverage
    first_divergence: DivergenceFacts | None = None
    first_numeric_divergence: DivergenceFacts | None = None


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


def digest_of(document: dict[str, Any]) -> str:
    """Of all but the document's own `digest`, to tell damage."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()


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


Detail = Literal["summary", "differing", "all"]
# Some 1.5 kB each.
MOST_LISTED = 10_000


def with_detail(run: RunResult, detail: Detail) -> RunResult:
    """The result with the variables that its document is to list.

    `all`: every one. `differing`: of checks with more than `MOST_WHOLE` those that do not match,
    the first `MOST_LISTED` by iteration, rank and name; all but the first and the worst of each
    name without histograms and ranges, and with one differing element. `summary`: only what
    diverged first. What is left out is counted, and a note tells of it.
    """
    if detail == "all":
        return run
    return replace(run, checks=tuple(_reduced(check, detail) for check in run.checks))


def _reduced(check: CheckResult, detail: Detail) -> CheckResult:
    if detail == "summary":
        listed = _first(check)
    elif len(check.variables) <= MOST_WHOLE:
        return check
    else:
        bad = [one for one in check.variables if one.verdict is not Verdict.MATCH]
        kept = {one.id for one in _first(check)}
        shown = bad[:MOST_LISTED]
        # Of each name the first and the worst one keep all that they say.
        for some in by_name(shown).values():
            kept |= {some[0].id, worst_of(some).id}
        listed = [one if one.id in kept else brief(one) for one in shown]
        kept.difference_update(one.id for one in listed)
        listed += [one for one in _first(check) if one.id in kept]
    ids = {one.id for one in listed}
    left_out = [one for one in check.variables if one.id not in ids]
    if not left_out:
        return check
    counts = f"{len(listed):,} of {len(check.variables):,} variables are listed"
    note = Message(MessageLevel.NOTE, f"{counts} (--json-detail {detail}); the others are counted")
    return replace(
        check,
        variables=tuple(listed),
        messages=(*check.messages, note),
        unlisted=_counted(check, left_out),
        history=None if check.history is None else _points_of(check.history, ids),
    )


def _first(check: CheckResult) -> list[VariableResult]:
    """What diverged first, and the first of which numbers did."""
    found = (check.first_divergence, check.first_numeric_divergence)
    variables = {one.variable.id: one.variable for one in found if one is not None}
    return list(variables.values())


def _counted(check: CheckResult, left_out: Sequence[VariableResult]) -> Unlisted:
    counts = Counter(one.verdict for one in left_out)
    shares = [one.max_drift_share for one in left_out] + [one.max_bound_share for one in left_out]
    share = max((known for known in shares if known is not None), default=None)
    named = {one.value: counts[one] for one in Verdict.worst_first()}
    return Unlisted(**named, max_drift_share=share, coverage=check.coverage)


def _points_of(history: HistoryFacts, listed: set[VariableId]) -> HistoryFacts:
    """The history with the points of listed variables alone."""
    named = {identity.name for identity in listed}
    timelines = []
    for one in history.timelines:
        if one.name in named:
            points = [p for p in one.points if VariableId(one.name, p.iteration, p.rank) in listed]
            timelines.append(replace(one, points=tuple(points)))
    return replace(history, timelines=tuple(timelines))


# Each some tens of kilobytes at most.
MOST_DETAILED = 120
# Of so many also the numbers that a page shows on request, each a hundred kilobytes at most.
MOST_VIEWS = 8


def trimmed(run: RunResult) -> RunResult:
    """The result with details for at most `MOST_DETAILED` variables, of the worst for the first
    and the worst checkpoint; everything else is as it was.
    """
    if not any(variable.details for check in run.checks for variable in check.variables):
        return run
    kept: set[tuple[int, VariableId]] = set()
    viewed: set[tuple[int, VariableId]] = set()
    for group in groups_of(run):
        wanted = {(id(group.check), one.id) for one in (group.first, group.worst) if one.details}
        if len(kept) + len(wanted) > MOST_DETAILED:
            break
        kept |= wanted
        if len(viewed) < MOST_VIEWS:
            viewed.add((id(group.check), group.first.id))

    def trimmed_one(check: CheckResult, one: VariableResult) -> VariableResult:
        if one.details is None:
            return one
        if (id(check), one.id) not in kept:
            return replace(one, details=None)
        if one.details.view is None or (id(check), one.id) in viewed:
            return one
        return replace(one, details=replace(one.details, view=None))

    checks = (
        replace(check, variables=tuple(trimmed_one(check, one) for one in check.variables))
        for check in run.checks
    )
    return replace(run, checks=tuple(checks))


def for_others(run: RunResult) -> RunResult:
    """The result `trimmed`, and without a folder of this machine: what leaves it names none."""
    return relative_to(trimmed(run), Path.cwd())


def merge_results(results: Sequence[RunResult], labels: Sequence[str] = ()) -> RunResult:
    """One result with the checks of all, in order; the verdict is the worst.

    labels: what to call each result (default: 1, 2, ...). Checks of the same name are told apart by
    the label of their result, and each keeps its own environment where they are not all the same.
    A single result stays as it is; the same call twice gives the same. Raises ValueError without
    results, or with labels that do not fit them.
    """
    if not results:
        raise ValueError("there is no result to merge")
    names = list(labels) or [str(position) for position in range(1, len(results) + 1)]
    if len(names) != len(results):
        raise ValueError(f"{len(results)} results, but {len(names)} labels")
    if len(results) == 1:
        return results[0]
    uses = Counter(check.name for result in results for check in result.checks)
    same_environment = all(result.environment == results[0].environment for result in results)
    kinds = {result.kind for result in results}
    commands = [result.command for result in results]
    return RunResult(
        # Worse than the worst check where a result came to no verdict at all.
        verdict=Verdict.worst(result.verdict for result in results),
        checks=tuple(
            _labelled(check, result, name if uses[check.name] > 1 else None, same_environment)
            for result, name in zip(results, names, strict=True)
            for check in result.checks
        ),
        kind=kinds.pop() if len(kinds) == 1 else "check",
        messages=tuple(
            replace(message, text=f"{name}: {message.text}")
            for result, name in zip(results, names, strict=True)
            for message in result.messages
        ),
        command=next((one for one in commands if one is not None and one.exit_code != 0), None),
        environment=results[0].environment if same_environment else {},
        ciwrap_version=results[0].ciwrap_version,
        started_at=min(result.started_at for result in results),
        seconds=sum(result.seconds for result in results),
        project=results[0].project if len({one.project for one in results}) == 1 else "",
    )


def _labelled(
    check: CheckResult, result: RunResult, name: str | None, same_environment: bool
) -> CheckResult:
    label = check.label
    if name is not None:
        label = f"{name}, {label}" if label else name
    environment = check.environment
    if not environment and not same_environment:
        environment = dict(result.environment)
    return replace(check, label=label, environment=environment)
