"""Outcomes as plain JSON: on their way from a worker, and in a journal. No code is read from it."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from ciwrap.compare.outcome import Outcome, WrongAnswerError
from ciwrap.documents import DocumentError, to_plain, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CiwrapError, ConfigError, NotComparableError, all_errors

_Record = TypeVar("_Record", bound=msgspec.Struct)
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


class Answer(msgspec.Struct, frozen=True):
    """What a worker says of a unit: an outcome, or the error that ends the command.

    asked: what it was asked, in its own words: answers go ways that are not ours.
    """

    asked: str
    outcome: Outcome | None = None
    error: CiwrapError | None = None


def to_text(record: msgspec.Struct) -> bytes:
    """A record as one line of JSON, without the line's end."""
    plain = to_plain(record, {}, {CiwrapError: ErrorRecord.of})
    return json.dumps(plain, separators=(",", ":")).encode()


def from_text(text: bytes, kind: type[_Record]) -> _Record:
    """The record that `to_text` wrote. Raises DocumentError."""
    plain = load_json(text, most_values=_MOST_VALUES)
    return to_record(plain, kind, {CiwrapError: _to_error})


def _to_error(plain: object) -> CiwrapError:
    return to_record(plain, ErrorRecord).error()


def answer_of(text: object, asked: str) -> Outcome:
    """The outcome in a worker's answer. Raises the error that it holds instead; WrongAnswerError
    for what is no answer, or one to another question.
    """
    if not isinstance(text, bytes):
        raise WrongAnswerError(f"the worker's answer is of the type {type(text).__name__}")
    try:
        answer = from_text(text, Answer)
    except DocumentError as error:
        raise WrongAnswerError(f"the worker's answer cannot be read: {error}") from None
    if answer.asked != asked:
        raise WrongAnswerError("the executor gave the answer to another question")
    if answer.error is not None:
        raise answer.error
    if answer.outcome is None:
        raise WrongAnswerError("the worker's answer says nothing")
    return answer.outcome
