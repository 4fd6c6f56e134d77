"""What a comparison has found so far; becomes a CheckResult."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ciwrap.compare.law import message_of, not_comparable
from ciwrap.errors import CiwrapError, VariableExtraError, VariableMissingError
from ciwrap.model import (
    CheckResult,
    Message,
    MessageLevel,
    StrictVariables,
    VariableResult,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId


# Variables of one check whose samples and maps are kept in memory.
MOST_DETAILED_NAMES = 200


def _size(result: VariableResult) -> tuple[float, int]:
    """How bad it is: by the share of the bound, then by the count."""
    count = result.differing_count
    return result.max_bound_share or 0.0, count or result.differing_count_at_most or 0


@dataclass(frozen=True, slots=True)
class OneSided:
    """How a variable that one side alone has is spoken of, and what to do about it."""

    missing: tuple[str, str]
    extra: tuple[str, str]


RUNS = OneSided(
    ("is on the first side only", "write it in both runs"),
    ("is on the second side only", "write it in both runs"),
)
GOLDEN = OneSided(
    (
        "is in the golden, but not in the outputs",
        "let the program write it; if it is gone for good, accept the new outputs",
    ),
    (
        "is in the outputs, but not in the golden",
        "accept the new outputs, or name it under 'ignore'",
    ),
)


def check_result(
    name: str,
    outcome: Outcome,
    rules: Rules,
    one_sided: OneSided,
    *,
    messages: Iterable[str] = (),
) -> CheckResult:
    """The check's result of all that was found. messages: warnings besides."""
    tally = Tally(strict_variables=rules.strict_variables)
    for text in messages:
        tally.warn(text)
    for note in dict.fromkeys(outcome.notes):
        tally.warn(note)
    for text in dict.fromkeys(outcome.unused):
        tally.warn(f"a capture is not used: {text}")
    for error in outcome.errors:
        tally.fail(error)
    for result in outcome.missing:
        tally.missing(result, *one_sided.missing)
    for result in outcome.extra:
        tally.extra(result, *one_sided.extra)
    for result in outcome.results:
        tally.add(result)
    return replace(
        tally.result(name),
        ignored_variables=tuple(sorted(outcome.ignored)),
        left_out_variables=tuple(sorted({*outcome.left_out, *tally.let_go})),
        engine=outcome.engine,
        bytes_read=outcome.capture_bytes_read + outcome.data_bytes_read,
    )


class Tally:
    """Collects results. strict_variables: which variables on one side only are results of their own
    (not comparable); the others are only told of.

    Any error told of with `fail` makes the whole not comparable: something was not compared.
    let_go: variables of the reference that are gone, and of which only a warning tells.
    """

    def __init__(self, *, strict_variables: StrictVariables) -> None:
        self._strict_variables = strict_variables
        self._messages: list[Message] = []
        self._results: list[VariableResult] = []
        self._missing: list[VariableId] = []
        self._extra: list[VariableId] = []
        self._has_failed = False
        self.let_go: list[VariableId] = []

    def fail(self, error: CiwrapError) -> None:
        self._has_failed = True
        self._messages.append(message_of(error))

    def warn(self, text: str) -> None:
        self._messages.append(Message(MessageLevel.WARNING, text))

    def add(self, result: VariableResult) -> None:
        self._results.append(result)

    def missing(self, result: VariableResult, where: str, remedy: str) -> None:
        """A variable that only the reference has; `where` it is not."""
        self._missing.append(result.id)
        text = where + (" that could be read" if self._has_failed else "")
        error = VariableMissingError(text, remedy=remedy)
        if self._strict_variables.refuses_missing:
            self._results.append(not_comparable(result, error))
            return
        self.let_go.append(result.id)
        self._say(error, result, MessageLevel.WARNING)

    def extra(self, result: VariableResult, where: str, remedy: str) -> None:
        """A variable that only the new side has."""
        self._extra.append(result.id)
        error = VariableExtraError(where, remedy=remedy)
        if self._strict_variables.refuses_extra:
            self._results.append(not_comparable(result, error))
            return
        is_allowed = self._strict_variables is StrictVariables.ALLOW_NEW
        self._say(error, result, MessageLevel.NOTE if is_allowed else MessageLevel.WARNING)

    def _say(self, error: CiwrapError, result: VariableResult, level: MessageLevel) -> None:
        error.variable = result.id.text
        self._messages.append(message_of(error, level))

    def result(self, name: str) -> CheckResult:
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
        keeper = DetailKeeper([])
        for result in sorted(self._results, key=lambda one: one.id.sort_key):
            keeper.add(result)
        return CheckResult(
            name=name,
            verdict=verdict,
            variables=tuple(keeper.results),
            missing_variables=tuple(self._missing),
            extra_variables=tuple(self._extra),
            messages=tuple(self._messages),
        )


class DetailKeeper:
    """Adds results to a list, and lets each variable keep the details of its first checkpoint and
    of its worst one: what reports draw stays bounded, however many differ.
    """

    def __init__(self, results: list[VariableResult]) -> None:
        self.results = results
        self._detailed: dict[str, list[int]] = {}

    def add(self, result: VariableResult) -> None:
        position = len(self.results)
        self.results.append(result)
        if result.details is None:
            return
        kept = self._detailed.get(result.name)
        if kept is None:
            if len(self._detailed) < MOST_DETAILED_NAMES:
                self._detailed[result.name] = [position]
            else:
                self._drop(position)
            return
        dropped = position
        if _size(result) > _size(self.results[kept[-1]]):
            dropped = kept.pop() if len(kept) > 1 else -1
            kept.append(position)
        if dropped >= 0:
            self._drop(dropped)

    def _drop(self, position: int) -> None:
        self.results[position] = replace(self.results[position], details=None)
