"""All changes in what is checked, those that check less, or may, first; and their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.late import numpy as np
from ciwrap.golden.manifest import Acceptance, Manifest, VariableRow
from ciwrap.golden.places import Place
from ciwrap.model import VariableId
from ciwrap.model.results import names_text
from ciwrap.model.settings import MASK_LABEL, SCALE_LABEL
from ciwrap.project.settings import Check, name_matches
from ciwrap.report.markdown import escaped
from ciwrap.report.text import percent_text, plural, safe_name
from ciwrap.statistics.factors import chance_of_spread
from ciwrap.studies.changes.of_checks import check_changes, configuration_changes, renamed
from ciwrap.studies.changes.state import (
    Change,
    Lines,
    Renames,
    State,
    judged,
    judgement_changes,
)
from ciwrap.studies.ensemble import EnsembleGolden


class Sides(Struct, frozen=True):
    """One golden before and now, with the checks that judge it; None for what is not there."""

    name: str
    old: Manifest | None
    new: Manifest | None
    old_check: Check | None
    new_check: Check | None


def golden_changes(
    old: State, new: State, renames: Mapping[Place, Place]
) -> Iterator[tuple[Change, VariableId | None]]:
    """What became of each golden. With it, the variable it concerns, for the line that says so.

    renames: where goldens lie now -> where they lay.
    """
    for place in sorted({*old.manifests, *new.manifests}.difference(renames.values())):
        past = renames.get(place, place)
        name = name_of(place, old, new)
        before, after = _counting(old, past), _counting(new, place)
        sides = Sides(name, before, after, old.checks.get(past.name), new.checks.get(place.name))
        if place in renames and sides.new_check is None:
            # A test run begins the log of a renamed golden anew.
            past_log, log = (() if one is None else one.accepted for one in (before, after))
            words = "" if log[: len(past_log)] == past_log else ", and its log begins anew"
            yield renamed(name, name_of(past, old, new), words), None
        else:
            yield from ((change, None) for change in _whole(place, sides, old, new))
        if before is not None and before.says_labels and after and not after.says_labels:
            text = "the manifest no longer says units and dimension names, so they are not compared"
            yield Change(name, None, "strict", text, wider=True), None
        yield from _variables(sides)


def _counting(state: State, place: Place) -> Manifest | None:
    """The manifest that counts there; the common one's without one for this kind of machine."""
    common = place.for_variant(None)
    return state.manifests.get(place if place in state.manifests else common)


def name_of(place: Place, old: State, new: State) -> str:
    """What people call the check; a golden of another platform by its folder, too."""
    if place.name in new.checks or place.name in old.checks:
        return f"{place.folder}/{place.name}" if place.folder else place.name
    return place.check


def _whole(place: Place, sides: Sides, old: State, new: State) -> Iterator[Change]:
    """The golden as one: made, gone, replaced."""
    name = sides.name
    if place.variant is not None and (place in old.manifests) is not (place in new.manifests):
        yield from _of_one_kind(place, sides, new)
    elif place in new.manifests and sides.new is None:
        text = "the manifest of its golden cannot be read"
        yield Change(name, None, "check", text, wider=False)
    elif sides.new is None:
        is_told = sides.old_check is not None and sides.new_check is None
        if not (is_told or loses_configuration(old, new)):
            yield _gone(name, sides.old)
    elif sides.old is None:
        is_first = place not in old.manifests
        text = "a golden in the place of one whose manifest could not be read"
        made = _accepted(name, "a first golden" if is_first else text, sides.new.accepted)
        yield made if is_first else replace(made, wider=None)
    elif sides.old.binary.root != sides.new.binary.root:
        yield _replaced_golden(name, sides.old, sides.new)
    elif sides.old.accepted != sides.new.accepted:
        text = "the log of its golden is another one, though the golden is the same"
        yield Change(name, None, "values", text, wider=False)


def loses_configuration(old: State, new: State) -> bool:
    """Whether there is none any more, which is reported of all checks at once."""
    return old.config_name is not None and new.config_name is None


def _gone(name: str, old: Manifest | None) -> Change:
    text = "its golden is gone"
    if old is None:
        text = "what lay there before could not be read, and is gone"
    wider = None if old is None else True
    return Change(name, None, "check", text, wider=wider)


def _of_one_kind(place: Place, sides: Sides, new: State) -> Iterator[Change]:
    """A golden of one kind of machine that is new, or gone; there the common one counted, or counts
    now, if there is one.
    """
    is_new = place in new.manifests
    if is_new and sides.new is not None:
        text = f"a golden for {place.variant} alone"
        if sides.old is not None:
            text += ", where the common one counted"
        yield _accepted(sides.name, text, sides.new.accepted)
    else:
        what = "cannot be read" if is_new else "is gone"
        more = "; the common one counts" if sides.new is not None else ""
        text = f"the golden for {place.variant} {what}{more}"
        wider = not is_new and sides.new is None
        yield Change(sides.name, None, "check", text, wider=wider)


def _replaced_golden(name: str, old: Manifest, new: Manifest) -> Change:
    fresh = new.accepted[len(old.accepted) :]
    if new.accepted[: len(old.accepted)] != old.accepted:
        text = "golden replaced, and its log does not continue"
        return _accepted(name, text, new.accepted, replaced=True)
    if not fresh:
        text = "golden replaced, and nobody is named who accepted it"
        return _accepted(name, text, (), replaced=True)
    before = {row.identity: row.root for row in old.variables}
    moved = [row for row in new.variables if before.get(row.identity, row.root) != row.root]
    both = sum(row.identity in before for row in new.variables)
    text = f"golden replaced: {len(moved)} of {both} variables have other digests"
    names = tuple(dict.fromkeys(row.identity.name for row in moved))
    if names:
        text += f": {names_text([safe_name(one) for one in names], _MOST_NAMES)}"
    return replace(_accepted(name, text, fresh, replaced=True), moved=names)


def _accepted(
    name: str, text: str, entries: tuple[Acceptance, ...], *, replaced: bool = False
) -> Change:
    """A change that the log tells of. Of several acceptances all are named, and the largest share
    counts."""
    shares = [entry.largest_bound_share for entry in entries if entry.old_root is not None]
    known = [share for share in shares if share is not None]
    who = [entry.who if entry.actor is None else f"{entry.actor} (CI)" for entry in entries]
    return Change(
        check=name,
        variable=None,
        what="values",
        text=text,
        wider=False,
        replaced=replaced,
        who="; ".join(dict.fromkeys(who)) or None,
        why="; ".join(dict.fromkeys(entry.why for entry in entries)) or None,
        share=max(known) if known and len(known) == len(shares) else None,
    )


def _variables(sides: Sides) -> Iterator[tuple[Change, VariableId | None]]:
    """What became of each variable that the golden held, and of those that it holds now."""
    # Without a golden the configuration still says how these would be judged.
    old, new = sides.old or sides.new, sides.new or sides.old
    if old is None or new is None:
        return
    before, after = ({row.identity: row for row in one.variables} for one in (old, new))
    for identity in sorted({*before, *after}):
        rows = before.get(identity), after.get(identity)
        for change in _variable(sides, identity, *rows):
            yield change, identity


def _variable(
    sides: Sides, identity: VariableId, old: VariableRow | None, new: VariableRow | None
) -> Iterator[Change]:
    name = identity.name
    # By name: what lies beyond the last iteration is told of as one.
    was_ignored, is_ignored = (
        check is not None and any(name_matches(one, identity) for one in check.ignore)
        for check in (sides.old_check, sides.new_check)
    )
    if is_ignored and not was_ignored and old is not None:
        yield Change(sides.name, name, "ignore", "is ignored now", wider=True)
    elif was_ignored and not is_ignored:
        yield Change(sides.name, name, "ignore", "is no longer ignored", wider=False)
    elif old is None:
        yield Change(sides.name, name, "variable", "a new variable of the golden", wider=False)
    elif new is None:
        yield Change(sides.name, name, "variable", "is gone from the golden", wider=True)
    if old is None or new is None or is_ignored:
        return
    yield from _described(sides, old, new)
    was = judged(old, sides.old_check, identity)
    now = judged(new, sides.new_check, identity)
    for what, text, wider in judgement_changes(was, now):
        yield Change(sides.name, name, what, text, wider=wider)


def _described(sides: Sides, old: VariableRow, new: VariableRow) -> Iterator[Change]:
    if old.dtype != new.dtype:
        text = f"type {old.dtype} -> {new.dtype}"
        yield Change(sides.name, new.name, "variable", text, wider=False)
    if old.shape != new.shape:
        text = f"shape {_shape(old.shape)} -> {_shape(new.shape)}"
        wider = prod(new.shape) < prod(old.shape)
        yield Change(sides.name, new.name, "variable", text, wider=wider)
    for text in _labels(sides, old, new):
        yield Change(sides.name, new.name, "variable", text, wider=False)


def _labels(sides: Sides, old: VariableRow, new: VariableRow) -> Iterator[str]:
    """Which labels are others, in words. The configuration tells of a mask better, if there is
    one.
    """
    if not all(one is not None and one.says_labels for one in (sides.old, sides.new)):
        return
    is_configured = sides.old_check is not None and sides.new_check is not None
    for key in sorted({*old.labels, *new.labels} - {SCALE_LABEL}):
        was, now = old.labels.get(key), new.labels.get(key)
        if was != now and not (is_configured and key == MASK_LABEL):
            yield f"{key}: {was or 'none'} -> {now or 'none'}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"


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
                yield from _replaced_ensemble(name, before, after)
        elif after is not None:
            is_there = place in old.ensembles
            text = "in the place of one that could not be read" if is_there else "a first ensemble"
            made = _made(name, f"{text}: {_size(after)}", after)
            yield replace(made, wider=None) if is_there else made
        elif place in new.ensembles:
            if before is not None:
                yield Change(name, None, "check", "its ensemble cannot be read", wider=False)
        # That the check is gone with its ensemble is told of it, or of all of the configuration.
        elif not (
            (place.name in old.checks and place.name not in new.checks)
            or loses_configuration(old, new)
        ):
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


def _replaced_ensemble(name: str, old: EnsembleGolden, new: EnsembleGolden) -> Iterator[Change]:
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
            text = f"looked at no more: {names_text(lost, _MOST_NAMES)}"
            yield Change(name, None, "variable", text, wider=True)
    before, after = _distributions(old), _distributions(new)
    both = [one for one in before if one in after]
    spreads = {one: _over(after[one][1], before[one][1]) for one in both}
    varied = _most(spreads, _LEAST_TOLD)
    if varied:
        limit = chance_of_spread(_count(old), _count(new), len(both))
        is_more = max(spreads.values()) > limit
        chance = "more than by chance" if is_more else "as it may be by chance"
        text = f"standard deviation among members, {chance}: {varied} times what it was"
        yield Change(name, None, "bound", text, wider=is_more)
    moves = {one: _over(abs(after[one][0] - before[one][0]), before[one][1]) for one in both}
    moved = _most(moves, 1.0)
    if moved:
        text = f"their means moved by more than runs vary: {moved} standard deviations"
        yield Change(name, None, "values", text, wider=False)


def _distributions(golden: EnsembleGolden) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each feature among members; none where there are too few
    members to vary.
    """
    if _count(golden) < _LEAST_TO_VARY:
        return {}
    rows = np.array(list({*golden.members}))
    means, deviations = rows.mean(axis=0).tolist(), rows.std(axis=0, ddof=1).tolist()
    return dict(zip(golden.features, zip(means, deviations, strict=True), strict=True))


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
    return names_text([f"{name} {found[name]:.3g}" for name in large], _MOST_NAMES)


# Which keys of the configuration say what a change is of.
_KEYS = {
    "bound": (
        *("atol", "rtol", "ulps", "combine", "equal_nan", "fill_values"),
        *("period", "mixed_precision", "up_to_sign"),
    ),
    "evidence": ("evidence", "data_budget_bytes", "residues_budget_bytes"),
    "variable": ("mask", "align_by"),
}
_OF_CHECK = {"ignore": ("ignore", "until_iteration"), "strict": ("strict",), "values": ()}
_ORDER = (True, None, False)


def find_changes(old: State, new: State) -> tuple[Change, ...]:
    """What is checked otherwise in the new state: one change for all checkpoints of a variable."""
    renames = Renames.between(old, new)
    of_checks = (*configuration_changes(old, new), *check_changes(old, new, renames.checks))
    told: list[tuple[Change, VariableId | None]] = [(one, None) for one in of_checks]
    told += golden_changes(old, new, renames.goldens)
    told += [(one, None) for one in ensemble_changes(old, new)]
    # Of a change in several checkpoints the first one says where it stands.
    firsts = dict(reversed(told))
    counts = Counter(change for change, _ in told)
    lines = Lines(new)
    known = {*old.checks, *new.checks}
    found = [
        replace(change, count=counts[change], **_where(lines, change, firsts[change], known))
        for change in counts
    ]
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.wider)))


def _where(
    lines: Lines, change: Change, identity: VariableId | None, known: set[str]
) -> dict[str, str | int | None]:
    """The file and line of a change; none for checks of tests, which no configuration names."""
    check = change.check
    # A golden of another platform is named by its folder, too.
    name = check if check is None or check in known else check.rpartition("/")[2]
    if lines.state.config is None or (name is not None and name not in known):
        return {}
    line = (
        1
        if name is None or name not in lines.state.checks
        else _line(lines, change, identity, name)
    )
    return {"file": lines.state.config_name, "line": line}


def _line(lines: Lines, change: Change, identity: VariableId | None, name: str) -> int | None:
    """Where the configuration says it now; where its check begins, if nothing says it any more."""
    if identity is not None and change.what in _KEYS:
        return lines.of_variable(name, identity, _KEYS[change.what])
    return lines.of_check(name, *_OF_CHECK.get(change.what, (change.text.partition(":")[0],)))


MOST_ROWS = 100
_LONGEST = 300
WIDER = "WIDER"
UNSURE = "?"
# Changes whose words say what they are of.
_SPEAKING = ("variable", "check", "ignore", "values")


def title(changes: Sequence[Change]) -> str:
    """`2 changes in what is checked, 1 of them checks less`."""
    if not changes:
        return "nothing has changed in what configuration and goldens check"
    text = f"{plural(len(changes), 'change')} in what is checked"
    less = sum(change.wider is True for change in changes)
    if less:
        text += f", {less} of them {'checks' if less == 1 else 'check'} less"
    unsure = sum(change.wider is None for change in changes)
    return f"{text}, {unsure} of them may check less" if unsure else text


def mark_of(change: Change) -> str:
    """What stands before a change that checks less, or may; '' otherwise."""
    return {True: WIDER, None: UNSURE, False: ""}[change.wider]


def line_of(change: Change) -> str:
    """`mesh: temperature: bound atol=1e-9 rtol=0 -> atol=10 rtol=0`."""
    parts = [one for one in (change.check, change.variable) if one is not None]
    what = "" if change.what in _SPEAKING else f"{change.what}: "
    return safe_name(": ".join([*parts, what + change.text + _more(change)]), _LONGEST * 2)


def _more(change: Change) -> str:
    """What else is known: of how many checkpoints, who and why, by how much."""
    parts = [] if change.count == 1 else [f"{change.count} checkpoints"]
    if change.share is not None:
        parts.append(_moved_by(change.share))
    elif change.who is not None and change.replaced:
        parts.append("how far they moved is not kept")
    if change.who is not None:
        parts.append(f"accepted by {change.who}")
    if change.why is not None:
        parts.append(f"because: {change.why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _moved_by(share: float) -> str:
    """By how many of the old bounds numbers moved at most: `by at most 3.2 times the old bounds`.
    No number of bounds of 0 is enough, and a number that became NaN has no distance.
    """
    if math.isinf(share):
        return "by more than any multiple of the old bounds"
    how = f"{percent_text(share)} of" if share <= 1 else f"{share:.3g} times"
    return f"by at most {how} the old bounds"


def markdown_table(changes: Sequence[Change]) -> str:
    """The changes for a job summary or a comment, less checks first; '' if there are none."""
    if not changes:
        return ""
    lines = [f"### What is checked: {title(changes)}", ""]
    lines += ["| | check | variable | change |", "|---|---|---|---|"]
    lines += list(_rows(changes[:MOST_ROWS]))
    if len(changes) > MOST_ROWS:
        lines += ["", f"+{len(changes) - MOST_ROWS} more"]
    return "\n".join(lines) + "\n"


def _rows(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        mark = mark_of(change) and f"**{mark_of(change)}**"
        names = [escaped(one or "", 80) for one in (change.check, change.variable)]
        text = escaped(f"{change.what}: {change.text}{_more(change)}", _LONGEST)
        yield f"| {mark} | {names[0]} | {names[1]} | {text} |"
