"""Which bounds two runs are compared by, and what is told of them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ciwrap.captures.bounds import NONE_GIVEN, Bounds, rules_with
from ciwrap.captures.index import IGNORED, IN_AN_ORDER, IN_ANOTHER_WAY, key_order
from ciwrap.captures.index_codec import read_checkpoint
from ciwrap.errors import CorruptCaptureError
from ciwrap.late import numpy as np
from ciwrap.model import Message, MessageLevel, VariableSettings, Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.index import CapturedVariable
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import CheckResult, VariableId, VariableResult

# Of a capture's origin.
_OF_CHECK = "check "
_MOST_NAMES = 3


def rules_between(rules: Rules, golden: Run, new: Run) -> Rules:
    """The rules as they hold for two runs: with the bounds that are asked for, or else with those
    of a capture as a whole.

    The first run's counts before the second's, and one for which a bound was asked for before one
    that compares exactly because nobody said anything. Whether captured trees still describe the
    files plays no part.
    """
    for side in (golden, new):
        if side.capture is not None and side.capture.repeated:
            rules = replace(rules, is_ignored=_ignored_in(side.capture, rules.is_ignored))
    if rules.bounds_are_given:
        return rules
    known = _captured_bounds(golden, new)
    return replace(rules, bounds_from=NONE_GIVEN) if known is None else rules_with(rules, *known)


def _ignored_in(
    capture: CaptureFile, is_ignored: Callable[[VariableId], bool]
) -> Callable[[VariableId], bool]:
    return lambda identity: capture.leaves_out(identity, is_ignored)


def _captured_bounds(golden: Run, new: Run) -> tuple[Bounds, str] | None:
    """The bounds of the first capture for which some were asked for, and what they are called."""
    for side, name in ((golden, "A"), (new, "B")):
        if side.header is not None and side.header.origin != NONE_GIVEN:
            return Bounds.of_header(side.header), f"{name}'s capture"
    return None


def with_bound_notes(
    check: CheckResult, rules: Rules, golden: Run, new: Run, unused: Iterable[str] = ()
) -> CheckResult:
    """The result, saying where its bounds are from, and when that may explain all differences.

    unused: as of `unused_settings`.
    """
    notes = [Message(MessageLevel.NOTE, text) for text in unused]
    known = _captured_bounds(golden, new)
    if known is not None and known[1] == rules.bounds_from:
        notes += _without_bound(check, *known)
    if rules.bounds_from == NONE_GIVEN and check.verdict is not Verdict.MATCH:
        notes += _notes(check)
    return replace(check, bounds_from=rules.bounds_from, messages=(*check.messages, *notes))


def _without_bound(check: CheckResult, bounds: Bounds, whose: str) -> Iterator[Message]:
    """Of what the capture whose bounds hold says nothing, as where paths are read otherwise."""
    plain = VariableSettings()
    names = {
        one.name
        for one in check.variables
        if one.verdict is not Verdict.NOT_COMPARABLE
        and one.text is None
        and one.dtype is not None
        and bounds.settings_for(plain, one.id, one.golden_dtype or one.dtype) is None
    }
    if names:
        text = f"{whose} has no bound for {_listed(names)}: compared exactly"
        yield Message(MessageLevel.NOTE, text)


def unused_settings(rules: Rules, sides: Iterable[tuple[str, Run]]) -> Iterator[str]:
    """Of each side whose capture was made with a check: which settings of that do not count, since
    a capture holds bounds alone. sides: with what they are called.
    """
    if rules.bounds_from.startswith(_OF_CHECK):
        return  # a check is given, and says itself what counts
    for called, side in sides:
        if side.header is None or not side.header.origin.startswith(_OF_CHECK):
            continue
        variables = list(_captured_ends(side))
        beyond = {
            one.identity.name
            for one in variables
            if (one.reason or "").startswith((IN_AN_ORDER, IN_ANOTHER_WAY))
            and rules.settings_for(one.identity, one.dtype).has_own_trees
        }
        ignored = {
            one.identity.name
            for one in variables
            if one.reason == IGNORED and not rules.is_ignored(one.identity)
        }
        said = [f"mask, period, combine and align_by of {_listed(beyond)}"] if beyond else []
        said += [f"ignore of {_listed(ignored)}"] if ignored else []
        if said:
            yield (
                f"{called}'s capture was made with {side.header.origin} and holds nothing but"
                f" bounds of it, so this does not count: {'; '.join(said)} (give --check)"
            )


def _captured_ends(side: Run) -> Iterator[CapturedVariable]:
    """The variables of the first captured checkpoint and of the last."""
    if side.capture is None or side.index is None:
        return
    keys = sorted(side.index.checkpoints, key=key_order)
    for key in dict.fromkeys((*keys[:1], *keys[-1:])):
        with suppress(CorruptCaptureError):  # of which the comparison tells
            yield from read_checkpoint(side.capture, side.index.checkpoints[key]).variables


def _listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more


def _notes(check: CheckResult) -> Iterator[Message]:
    differing = [one for one in check.variables if one.verdict is Verdict.DIFFER]
    if differing and all(_is_tiny(one) for one in differing):
        largest = max(one.max_rel_difference or 0.0 for one in differing)
        yield Message(
            MessageLevel.NOTE,
            "compared exactly, since no bound was given; differences of what is not 0 on the first"
            f" side are tiny (at most {largest:.2g} of it): if they are rounding, give --atol or"
            " --rtol",
        )


def _is_tiny(one: VariableResult) -> bool:
    """Whether numbers differ by less than half of the digits that their type holds, as far as the
    reference is not 0.
    """
    if one.dtype is None or one.dtype[1:2] not in ("f", "c") or not one.max_rel_difference:
        return False
    has_special = one.nan_mismatch_count or one.inf_mismatch_count or one.missing_mismatch_count
    digits = float(np.finfo(one.dtype).eps)
    return not has_special and one.max_rel_difference < digits**0.5
