"""What a comparison has found so far; becomes a CheckResult."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ciwrap.compare.variable import Compared, not_comparable, reason_of
from ciwrap.errors import CiwrapError, VariableExtraError, VariableMissingError
from ciwrap.model import CheckResult, Message, MessageLevel, VariableResult, Verdict

if TYPE_CHECKING:
    from ciwrap.model import VariableId


# Variables of one check whose samples and maps are kept in memory.
MOST_DETAILED_NAMES = 200


def _size(result: VariableResult) -> tuple[float, int]:
    """How bad it is: by the share of the bound, then by the count."""
    count = result.differing_count
    return result.max_bound_share or 0.0, count or result.differing_count_at_most or 0


def message_of(error: CiwrapError, level: MessageLevel = MessageLevel.ERROR) -> Message:
    return Message(level, str(error), slug=error.slug, file=error.file, variable=error.variable)


def failed_check(name: str, error: CiwrapError, golden_path: str | None = None) -> CheckResult:
    """A check that could not even begin."""
    return CheckResult(
        name, Verdict.NOT_COMPARABLE, messages=(message_of(error),), golden_path=golden_path
    )


class Tally:
    """Collects results. strict_variables: whether a variable on one side only is a result of its
    own (not comparable) or a warning.

    Any error told of with `fail` makes the whole not comparable: something was not compared.
    """

    def __init__(self, *, strict_variables: bool) -> None:
        self._started = time.monotonic()
        self._strict_variables = strict_variables
        self._messages: list[Message] = []
        self._results: list[VariableResult] = []
        self._detailed: dict[str, list[int]] = {}
        self._missing: list[VariableId] = []
        self._extra: list[VariableId] = []
        self._engine: str | None = None
        self._bytes_read = 0
        self._has_failed = False

    def fail(self, error: CiwrapError) -> None:
        self._has_failed = True
        self._messages.append(message_of(error))

    def warn(self, text: str) -> None:
        self._messages.append(Message(MessageLevel.WARNING, text))

    def add(self, compared: Compared, byte_count: int) -> None:
        self._results.append(compared.result)
        self._keep_details(len(self._results) - 1)
        self._engine = compared.engine or self._engine
        self._bytes_read += byte_count

    def _keep_details(self, position: int) -> None:
        """Lets each variable keep the details of its first and of its worst checkpoint."""
        result = self._results[position]
        if result.details is None:
            return
        kept = self._detailed.get(result.name)
        if kept is None:
            if len(self._detailed) < MOST_DETAILED_NAMES:
                self._detailed[result.name] = [position]
            else:
                self._results[position] = replace(result, details=None)
            return
        dropped = position
        if _size(result) > _size(self._results[kept[-1]]):
            dropped = kept.pop() if len(kept) > 1 else -1
            kept.append(position)
        if dropped >= 0:
            self._results[dropped] = replace(self._results[dropped], details=None)

    def add_result(self, result: VariableResult) -> None:
        self._results.append(result)

    def missing(self, identity: VariableId, where: str, remedy: str, **facts: Any) -> None:
        """A variable that only the golden side has; `where` it is not, and other facts of the
        result.
        """
        self._missing.append(identity)
        text = where + (" that could be read" if self._has_failed else "")
        self._one_sided(VariableMissingError(text, remedy=remedy), identity, facts)

    def extra(self, identity: VariableId, where: str, remedy: str, **facts: Any) -> None:
        """A variable that only the new side has."""
        self._extra.append(identity)
        self._one_sided(VariableExtraError(where, remedy=remedy), identity, facts)

    def _one_sided(self, error: CiwrapError, identity: VariableId, facts: dict[str, Any]) -> None:
        if self._strict_variables:
            self._results.append(not_comparable(identity, reason_of(error), **facts))
        else:
            error.variable = identity.text
            self._messages.append(message_of(error, MessageLevel.WARNING))

    def result(self, name: str, ignored: list[VariableId], **facts: Any) -> CheckResult:
        """The check's result; nothing compared at all is not comparable."""
        verdict = Verdict.worst(result.verdict for result in self._results)
        if self._has_failed:
            verdict = Verdict.NOT_COMPARABLE
        elif not self._results:
            self._messages.append(
                Message(
                    MessageLevel.ERROR,
                    "nothing was compared: no variable is on both sides and not ignored",
                )
            )
        return CheckResult(
            name=name,
            verdict=verdict,
            variables=tuple(self._results),
            missing_variables=tuple(self._missing),
            extra_variables=tuple(self._extra),
            ignored_variables=tuple(ignored),
            messages=tuple(self._messages),
            engine=self._engine,
            seconds=time.monotonic() - self._started,
            bytes_read=self._bytes_read,
            **facts,
        )
