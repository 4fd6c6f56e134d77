"""From what a comparison has found to the result of a check."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from ciwrap.compare.law import message_of, not_comparable, says_why
from ciwrap.errors import CiwrapError, NotComparableError, VariableExtraError, VariableMissingError
from ciwrap.model import (
    CheckResult,
    Message,
    MessageLevel,
    StrictVariables,
    VariableId,
    VariableResult,
    Verdict,
    severity,
)
from ciwrap.model.coverage import grouped_plural
from ciwrap.model.rules import number_text
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.fit import Wording
    from ciwrap.compare.outcome import Outcome
    from ciwrap.compare.work import Explainer


# Variables of one check whose samples and maps are kept in memory.
MOST_DETAILED_NAMES = 200


def _with_known_masks(results: list[VariableResult]) -> list[VariableResult]:
    """The results; where masks differ, nobody says how many elements both sides masked.

    An element that one side alone masks is compared, as zero, and may be among those that differ.
    """
    other = {one.id for one in results if one.verdict is not Verdict.MATCH}
    return [
        replace(one, masked_count=None)
        if one.mask is not None and VariableId(one.mask, one.iteration, one.rank) in other
        else one
        for one in results
    ]


def check_result(
    name: str,
    outcome: Outcome,
    rules: Rules,
    wording: Wording,
    *,
    messages: Iterable[str] = (),
    explain: Callable[[], Explainer] | None = None,
) -> CheckResult:
    """The check's result of all that was found. messages: warnings besides. explain: as of `Work`.

    What could not be read makes the whole not comparable, and so does nothing compared at all.
    """
    unused = [f"a capture is not used: {text}" for text in dict.fromkeys(outcome.unused)]
    of_texts = [one for one in outcome.results if one.text is not None or one.series is not None]
    notes = dict.fromkeys([*outcome.notes, *(_encoding_notes(of_texts) if of_texts else ())])
    warnings = (*messages, *notes, *unused)
    told = [Message(MessageLevel.WARNING, text) for text in warnings]
    if outcome.errors:
        from ciwrap.compare.grouped_errors import grouped_messages

        told += grouped_messages(outcome.errors)
    if of_texts:
        told += [Message(MessageLevel.WARNING, text) for text in _too_fine(of_texts)]
    results, left_out = list(outcome.results), set(outcome.left_out)
    if outcome.missing or outcome.extra:
        for found in (outcome.missing, outcome.extra):
            # Whatever units they were found in.
            found.sort(key=attrgetter("id.sort_key"))
        left_out |= _add_one_sided(outcome, rules.strict_variables, wording, results, told)
    verdict = Verdict.worst(result.verdict for result in results)
    if outcome.errors:
        verdict = Verdict.NOT_COMPARABLE
    elif not results:
        text = "nothing was compared: no variable is on both sides and not ignored"
        told.append(Message(MessageLevel.ERROR, text))
    if verdict is not Verdict.MATCH:
        results = _with_known_masks(results)
        if explain is not None:
            results = explain().together(results)
    results.sort(key=attrgetter("id.sort_key"))
    if verdict is not Verdict.MATCH:
        results = fewer_details(results)
    return CheckResult(
        name=name,
        verdict=verdict,
        variables=tuple(results),
        missing_variables=tuple(one.id for one in outcome.missing),
        extra_variables=tuple(one.id for one in outcome.extra),
        messages=tuple(told),
        ignored_variables=tuple(sorted(outcome.ignored)),
        uncommon=outcome.uncommon,
        left_out_variables=tuple(sorted(left_out)),
        engine=outcome.engine,
        bytes_read=outcome.capture_bytes_read + outcome.data_bytes_read,
    )


def _too_fine(results: Iterable[VariableResult]) -> Iterator[str]:
    """Of bounds that no two different printed numbers can meet."""
    for result in results:
        if result.series is not None and result.series.is_too_fine and result.bound is not None:
            bound = result.bound.rtol or result.bound.atol
            digits = grouped_plural(result.series.printed_digits or 0, "printed digit")
            yield (
                f"{result.name}: the bound {number_text(bound)} is finer than the {digits}, so only"
                " equal numbers match"
            )


def _add_one_sided(
    outcome: Outcome,
    strict: StrictVariables,
    wording: Wording,
    results: list[VariableResult],
    told: list[Message],
) -> set[VariableId]:
    """Adds what one side alone has: results (not comparable) where that is refused, else messages.

    Returns the variables of the reference that are gone, and of which only a warning tells.
    """
    let_go = set()
    here, there = wording.sides
    gone = f"is {here}, but not {there}", wording.if_missing
    new = f"is {there}, but not {here}", wording.if_extra
    if outcome.errors:
        gone = _as_far_as_read(gone[0])
        new = _as_far_as_read(new[0]) if wording.is_read_twice else new
    for result in outcome.missing:
        error = _error_of(result, VariableMissingError(gone[0], remedy=gone[1]))
        if strict.refuses_missing:
            results.append(not_comparable(result, error))
        else:
            let_go.add(result.id)
            told.append(_about(result, error, MessageLevel.WARNING))
    is_allowed = strict is StrictVariables.ALLOW_NEW
    for result in outcome.extra:
        error = _error_of(result, VariableExtraError(new[0], remedy=new[1]))
        if strict.refuses_extra:
            results.append(not_comparable(result, error))
        else:
            level = MessageLevel.NOTE if is_allowed else MessageLevel.WARNING
            told.append(_about(result, error, level))
    return let_go


def _error_of(result: VariableResult, alone: CiwrapError) -> CiwrapError:
    """What is told of a variable that one side alone has: why nothing can be read of it, if so."""
    return NotComparableError(str(result.reason)) if says_why(result) else alone


def _as_far_as_read(where: str) -> tuple[str, str]:
    """What is said of a variable, and its remedy, where a file that may hold it is an error."""
    return f"{where}, as far as files could be read", "first fix what the errors name"


def _about(result: VariableResult, error: CiwrapError, level: MessageLevel) -> Message:
    error.variable = result.id.text
    return message_of(error, level)


def fewer_details(results: Iterable[VariableResult]) -> list[VariableResult]:
    """The results, in their order, with the details that a DetailKeeper keeps."""
    keeper = DetailKeeper([])
    for result in results:
        keeper.add(result)
    return keeper.results


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
        if severity(result) > severity(self.results[kept[-1]]):
            dropped = kept.pop() if len(kept) > 1 else -1
            kept.append(position)
        if dropped >= 0:
            self._drop(dropped)

    def _drop(self, position: int) -> None:
        self.results[position] = replace(self.results[position], details=None)


def _encoding_notes(results: Iterable[VariableResult]) -> list[str]:
    """A warning for texts that are no UTF-8; [] if there are none."""
    names = [one.id.text for one in results if one.text is not None and one.text.not_utf8]
    if not names:
        return []
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return [f"{names[0]}{more}: is not UTF-8 and was read as Latin-1"]
