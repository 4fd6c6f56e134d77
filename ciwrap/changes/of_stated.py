"""Changes of what a configuration says itself, of variables that no golden tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.changes.document import Change
from ciwrap.changes.judged import judged_by_configuration, judgement_changes
from ciwrap.config import name_matches
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from ciwrap.config import Check
    from ciwrap.config.settings import Expectation


def stated_changes(
    old: Check, new: Check, old_held: AbstractSet[VariableId], new_held: AbstractSet[VariableId]
) -> Iterator[Change]:
    """What is said of values in place of a golden, and of names that no golden holds.

    old_held, new_held: what goldens of the check hold.
    """
    yield from _expectations(old, new, old_held)
    stated = [name for name in old.expected if name in new.expected]
    yield from _ignored(old, new, old_held, new_held, stated)
    if not stated:
        return
    # A file's path may stand before its values' names: a pattern stands for the names it may mean.
    known = set(map(VariableId, stated))
    names = {one.name for one in old_held | new_held}
    patterns = dict.fromkeys(rule.pattern for rule in (*old.rules, *new.rules))
    unknown = [one for one in patterns if one not in names and not _matches_any(one, known)]
    for name in (*stated, *unknown):
        before, after = (judged_by_configuration(one, name) for one in (old, new))
        for what, text, wider in judgement_changes(before, after):
            if what != "bound" or not _is_range(name, old, new):
                yield Change(new.name, name, what, text, wider=wider)
    orders = [[rule.pattern for rule in one.rules if rule.pattern in unknown] for one in (old, new)]
    if sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]:
        text = f"order of 'variables': {', '.join(orders[0])} -> {', '.join(orders[1])}"
        yield Change(new.name, None, "bound", text, wider=None)


def _is_range(name: str, *checks: Check) -> bool:
    """Whether a check states a range for a name, which is its own bound."""
    said = [one.expected.get(name) for one in checks]
    return any(one is not None and one.values is None for one in said)


def _expectations(old: Check, new: Check, old_held: AbstractSet[VariableId]) -> Iterator[Change]:
    for name in dict.fromkeys((*old.expected, *new.expected)):
        was, now = old.expected.get(name), new.expected.get(name)
        if was != now:
            words = "is gone" if now is None else "is new" if was is None else "is another one"
            text = f"what the configuration says of its values {words}"
            if was is None and any(_is_of(new, name, one) for one in old_held):
                text += ", and no golden counts for them"
                wider = now is None or not now.is_each
            else:
                wider = now is None or (was is not None and _allows_more(was, now))
            yield Change(new.name, name, "variable", text, wider=wider)


def _is_of(check: Check, name: str, variable: VariableId) -> bool:
    """Whether what the check says of a name is said of a variable, too."""
    said = check.expectation_of(variable)
    return said is not None and said is check.expected[name]


def _allows_more(was: Expectation, now: Expectation) -> bool:
    """Whether numbers may be allowed that were not before: of a range and a number either may. One
    number allows any count of matches, and a list asks for as many as it has.
    """
    if was.values is None or now.values is None:
        return was.values is not now.values or now.low < was.low or now.high > was.high
    return was.is_each and (not now.is_each or len(now.values) < len(was.values))


def _ignored(
    old: Check,
    new: Check,
    old_held: AbstractSet[VariableId],
    new_held: AbstractSet[VariableId],
    stated: list[str],
) -> Iterator[Change]:
    """What is ignored now; goldens tell of what they hold."""
    for pattern in new.ignore:
        if pattern in old.ignore:
            continue
        names = [
            name
            for name in stated
            if name_matches(pattern, VariableId(name)) and not old.is_ignored(VariableId(name))
        ]
        for name in names:
            yield Change(new.name, name, "ignore", "is ignored now", wider=True)
        if not names and not _matches_any(pattern, old_held | new_held):
            text = "is ignored now; no golden holds anything of that name"
            # What needs no golden may have a name that only the outputs tell.
            wider = None if stated or new.ensemble or not old_held else False
            yield Change(new.name, pattern, "ignore", text, wider=wider)


def _matches_any(pattern: str, variables: AbstractSet[VariableId]) -> bool:
    return any(name_matches(pattern, one) for one in variables)
