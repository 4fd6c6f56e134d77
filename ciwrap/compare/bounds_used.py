"""Which bounds two runs are compared by, and what is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.bounds import NONE_GIVEN, Bounds, rules_with
from ciwrap.late import numpy as np
from ciwrap.model import Message, MessageLevel, Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import CheckResult, VariableResult


def rules_between(rules: Rules, golden: Side, new: Side) -> Rules:
    """The rules with the bounds that are asked for, or else with those of a capture as a whole.

    The first run's counts before the second's, and one for which a bound was asked for before one
    that compares exactly because nobody said anything. Whether captured trees still describe the
    files plays no part.
    """
    if rules.bounds_are_given:
        return rules
    headers = [(one.header, f"{name}'s capture") for one, name in ((golden, "A"), (new, "B"))]
    known = [(header, whose) for header, whose in headers if header is not None]
    if not known:
        return replace(rules, bounds_from=NONE_GIVEN)
    asked = [one for one in known if one[0].origin != NONE_GIVEN]
    if not asked:
        return replace(rules, bounds_from=NONE_GIVEN)
    header, whose = asked[0]
    return rules_with(rules, Bounds.of_header(header), whose)


def with_bound_notes(check: CheckResult, rules: Rules) -> CheckResult:
    """The result, saying where its bounds are from, and when that may explain all differences."""
    notes: tuple[Message, ...] = ()
    if rules.bounds_from == NONE_GIVEN and check.verdict is not Verdict.MATCH:
        notes = tuple(_notes(check))
    return replace(check, bounds_from=rules.bounds_from, messages=(*check.messages, *notes))


def _notes(check: CheckResult) -> Iterator[Message]:
    differing = [one for one in check.variables if one.verdict is Verdict.DIFFER]
    if differing and all(_is_tiny(one) for one in differing):
        largest = max(one.max_rel_difference or 0.0 for one in differing)
        yield Message(
            MessageLevel.NOTE,
            "compared exactly, since no bound was given; all differences are tiny (at most"
            f" {largest:.2g} of the values): if they are rounding, give --atol or --rtol",
        )


def _is_tiny(one: VariableResult) -> bool:
    """Whether numbers differ by less than half of the digits that their type holds."""
    if one.dtype is None or one.dtype[1:2] not in ("f", "c") or one.max_rel_difference is None:
        return False
    has_special = one.nan_mismatch_count or one.inf_mismatch_count or one.missing_mismatch_count
    return not has_special and one.max_rel_difference < np.finfo(one.dtype).eps ** 0.5
