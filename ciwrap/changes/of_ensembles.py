"""Changes of ensembles: which there are, what they look at, and how much they let runs vary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.changes.document import Change
from ciwrap.changes.of_goldens import loses_configuration, name_of
from ciwrap.late import numpy as np
from ciwrap.model import VariableId
from ciwrap.statistics.ensemble import chance_of_spread
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.changes.state import State
    from ciwrap.config import Check
    from ciwrap.ensemble.golden import EnsembleGolden
    from ciwrap.golden.places import Place

_LEAST_TOLD = 1.1
_MOST_NAMES = 3
_LEAST_TO_VARY = 2


def ensemble_changes(old: State, new: State) -> Iterator[Change]:
    """What became of each ensemble."""
    for place in sorted({*old.ensembles, *new.ensembles}):
        name = name_of(place, old, new)
        before, after = old.ensembles.get(place), new.ensembles.get(place)
        if before is not None and after is not None:
            if before != after:
                yield from _replaced(name, before, after)
        elif after is not None:
            is_there = place in old.ensembles
            text = "in the place of one that could not be read" if is_there else "a first ensemble"
            made = _made(name, f"{text}: {_size(after)}", after)
            yield replace(made, wider=None) if is_there else made
        elif place in new.ensembles:
            if before is not None:
                yield Change(name, None, "check", "its ensemble cannot be read", wider=False)
        elif not _is_told(place, old, new):
            yield Change(name, None, "check", "its ensemble is gone", wider=True)
        golden = before or after
        was, now = old.checks.get(place.name), new.checks.get(place.name)
        if golden is not None and was is not None and now is not None:
            yield from _settings(name, golden, was, now)


def _settings(name: str, golden: EnsembleGolden, old: Check, new: Check) -> Iterator[Change]:
    """What of its variables has no part in features, by the configuration."""
    for variable in sorted(map(VariableId, golden.variables)):
        ignored = [one.is_ignored(variable) for one in (old, new)]
        if ignored[0] != ignored[1]:
            text = f"is {'ignored now' if ignored[1] else 'no longer ignored'}"
            yield Change(name, variable.name, "ignore", text, wider=ignored[1])
        was, now = (one.settings_for(variable) for one in (old, new))
        if was.mask != now.mask:
            text = f"mask: {was.mask or 'none'} -> {now.mask or 'none'}"
            yield Change(name, variable.name, "variable", text, wider=now.mask is not None)
        if was.fill_values != now.fill_values:
            words = [", ".join(map(str, one.fill_values)) or "none" for one in (was, now)]
            wider = bool({*now.fill_values} - {*was.fill_values})
            text = f"fill values, which have no part in it: {words[0]} -> {words[1]}"
            yield Change(name, variable.name, "variable", text, wider=wider)


def _is_told(place: Place, old: State, new: State) -> bool:
    """Whether the check is gone with its ensemble, or all of the configuration."""
    is_gone = place.name in old.checks and place.name not in new.checks
    return is_gone or loses_configuration(old, new)


def _made(name: str, text: str, golden: EnsembleGolden, *, replaced: bool = False) -> Change:
    return Change(
        check=name,
        variable=None,
        what="values",
        text=text,
        wider=False,
        replaced=replaced,
        who=golden.who or None,
        why=golden.why or None,
    )


def _size(golden: EnsembleGolden) -> str:
    return f"{len(golden.members)} members, {len(golden.features)} features each"


def _replaced(name: str, old: EnsembleGolden, new: EnsembleGolden) -> Iterator[Change]:
    kept = len({*old.members} & {*new.members}) if old.features == new.features else 0
    text = f"ensemble replaced: {len(old.members)} -> {len(new.members)} members, {kept} of them"
    yield _made(name, f"{text} as they were", new, replaced=True)
    if old.rate != new.rate:
        text = f"rate of false alarms: {old.rate:g} -> {new.rate:g}"
        yield Change(name, None, "bound", text, wider=new.rate < old.rate)
    if _count(new) < _count(old):
        text = f"fewer members that differ, so more goes by: {_count(old)} -> {_count(new)}"
        yield Change(name, None, "evidence", text, wider=True)
    before, after = old.from_iteration or 0, new.from_iteration or 0
    if before != after:
        text = f"looks at iterations from {before} -> from {after}"
        yield Change(name, None, "ignore", text, wider=after > before)
    if old.blocks != new.blocks:
        text = f"blocks of each variable: {old.blocks} -> {new.blocks}"
        yield Change(name, None, "evidence", text, wider=new.blocks < old.blocks)
    if old.statistics != new.statistics:
        text = f"statistics: {', '.join(old.statistics)} -> {', '.join(new.statistics)}"
        lost = {*old.statistics} - {*new.statistics}
        yield Change(name, None, "evidence", text, wider=bool(lost))
    yield from _features(name, old, new)


def _features(name: str, old: EnsembleGolden, new: EnsembleGolden) -> Iterator[Change]:
    """Features that are looked at no more, and those that may vary more, or elsewhere."""
    if (old.blocks, old.statistics) == (new.blocks, new.statistics):
        lost = [one for one in old.features if one not in new.features]
        if lost:
            text = f"looked at no more: {_names(lost)}"
            yield Change(name, None, "variable", text, wider=True)
    before, after = _distributions(old), _distributions(new)
    both = [one for one in before if one in after]
    spreads = {one: _over(after[one].deviation, before[one].deviation) for one in both}
    varied = _most(spreads, _LEAST_TOLD)
    if varied:
        limit = chance_of_spread(_count(old), _count(new), len(both))
        is_more = max(spreads.values()) > limit
        chance = "more than by chance" if is_more else "as it may be by chance"
        text = f"standard deviation among members, {chance}: {varied} times what it was"
        yield Change(name, None, "bound", text, wider=is_more)
    moves = {
        one: _over(abs(after[one].mean - before[one].mean), before[one].deviation) for one in both
    }
    moved = _most(moves, 1.0)
    if moved:
        text = f"their means moved by more than runs vary: {moved} standard deviations"
        yield Change(name, None, "values", text, wider=False)


class _Distribution(Struct, frozen=True):
    """Of one feature among members."""

    mean: float
    deviation: float


def _distributions(golden: EnsembleGolden) -> dict[str, _Distribution]:
    """Of each feature; none where there are too few members to vary."""
    if _count(golden) < _LEAST_TO_VARY:
        return {}
    rows = np.array(list({*golden.members}))
    found = zip(rows.mean(axis=0), rows.std(axis=0, ddof=1), strict=True)
    return {
        name: _Distribution(float(mean), float(deviation))
        for name, (mean, deviation) in zip(golden.features, found, strict=True)
    }


def _count(golden: EnsembleGolden) -> int:
    """How many members differ from each other; the others count for nothing."""
    return len({*golden.members})


def _over(number: float, other: float) -> float:
    if other == 0:
        return math.inf if number else 0.0
    return number / other


def _most(found: dict[str, float], least: float) -> str:
    """The features of which it is at least so much, the largest first; '' for none."""
    large = sorted((name for name in found if found[name] >= least), key=lambda one: -found[one])
    return _names([f"{name} {found[name]:.3g}" for name in large])


def _names(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more
