"""Outcomes as plain JSON: on their way from a worker, and in a journal. No code is read from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.captures.index import CheckpointKey
from ciwrap.compare.outcome import Outcome, PartSums, WrongAnswerError
from ciwrap.documents import DocumentError, to_plain, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CiwrapError, ConfigError, NotComparableError, all_errors
from ciwrap.model import VariableId, VariableResult

if TYPE_CHECKING:
    from collections.abc import Mapping

# A unit is some 10,000 checkpoints at most, with any number of variables.
_MOST_VALUES = 1 << 30


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error, by the slug of its class."""

    slug: str
    message: str
    file: str | None = None
    variable: str | None = None
    remedy: str | None = None
    line: int | None = None
    column: int | None = None
    key: str | None = None
    suggestion: str | None = None

    @classmethod
    def of(cls, error: CiwrapError) -> ErrorRecord:
        more = {}
        if isinstance(error, ConfigError):
            more = {name: getattr(error, name) for name in ("line", "column", "key", "suggestion")}
        return cls(error.slug, error.message, error.file, error.variable, error.remedy, **more)

    def error(self) -> CiwrapError:
        kind = all_errors().get(self.slug, NotComparableError)
        if issubclass(kind, ConfigError):
            return kind(
                self.message,
                file=self.file,
                line=self.line,
                column=self.column,
                key=self.key,
                suggestion=self.suggestion,
                remedy=self.remedy,
            )
        return kind(self.message, file=self.file, variable=self.variable, remedy=self.remedy)


class OutcomeRecord(msgspec.Struct, frozen=True):
    """The fields of `Outcome`, by name."""

    results: tuple[VariableResult, ...] = ()
    missing: tuple[VariableResult, ...] = ()
    extra: tuple[VariableResult, ...] = ()
    ignored: tuple[VariableId, ...] = ()
    left_out: tuple[VariableId, ...] = ()
    uncommon: int = 0
    errors: tuple[ErrorRecord, ...] = ()
    notes: tuple[str, ...] = ()
    stale: tuple[tuple[str, CheckpointKey, str], ...] = ()
    unused: tuple[str, ...] = ()
    lost: tuple[tuple[CheckpointKey, str], ...] = ()
    sums: tuple[PartSums, ...] = ()
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    engine: str | None = None
    ended_by: str | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> OutcomeRecord:
        said: dict[str, Any] = {}
        for name in cls.__struct_fields__:
            value = getattr(outcome, name)
            said[name] = tuple(value) if isinstance(value, list) else value
        said["errors"] = tuple(ErrorRecord.of(error) for error in outcome.errors)
        return cls(**said)

    def outcome(self) -> Outcome:
        said: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            said[name] = list(value) if isinstance(value, tuple) else value
        said["errors"] = [record.error() for record in self.errors]
        return Outcome(**said)


class Answer(msgspec.Struct, frozen=True):
    """What a worker says of a unit: an outcome, or the error that ends the command.

    asked: what it was asked, in its own words: answers go ways that are not ours.
    """

    asked: str
    outcome: OutcomeRecord | None = None
    error: ErrorRecord | None = None


_ALWAYS: Mapping[type, frozenset[str]] = {}


def to_text(record: msgspec.Struct) -> bytes:
    """A record as one line of JSON, without the line's end."""
    return json.dumps(to_plain(record, _ALWAYS), separators=(",", ":")).encode()


def answer_of(text: object, asked: str) -> Outcome:
    """The outcome in a worker's answer. Raises the error that it holds instead; WrongAnswerError
    for what is no answer, or one to another question.
    """
    if not isinstance(text, bytes):
        raise WrongAnswerError(f"the worker's answer is of the type {type(text).__name__}")
    try:
        answer = to_record(load_json(text, most_values=_MOST_VALUES), Answer)
    except DocumentError as error:
        raise WrongAnswerError(f"the worker's answer cannot be read: {error}") from None
    if answer.asked != asked:
        raise WrongAnswerError("the executor gave the answer to another question")
    if answer.error is not None:
        raise answer.error.error()
    if answer.outcome is None:
        raise WrongAnswerError("the worker's answer says nothing")
    return answer.outcome.outcome()
