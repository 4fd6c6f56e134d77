"""Changes of goldens and their variables: what they hold, and how it is judged."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ciwrap.changes.document import Change
from ciwrap.changes.judged import Judged, judged, judgement_changes
from ciwrap.changes.of_checks import renamed
from ciwrap.config import name_matches
from ciwrap.model.variable_settings import MASK_LABEL
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ciwrap.changes.state import State
    from ciwrap.config import Check
    from ciwrap.golden.manifest import Acceptance, Manifest, VariableRow
    from ciwrap.golden.places import Place
    from ciwrap.model import VariableId


class Sides(Struct, frozen=True):
    """One golden before and now, with the checks that judge it; None for what is not there."""

    name: str
    old: Manifest | None
    new: Manifest | None
    old_check: Check | None
    new_check: Check | None

    @property
    def both_say_labels(self) -> bool:
        sides = (self.old, self.new)
        return all(one is not None and one.says_labels for one in sides)

    @property
    def says_labels_no_more(self) -> bool:
        is_said_before = self.old is not None and self.old.says_labels
        return is_said_before and self.new is not None and not self.new.says_labels


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
            yield renamed(name, name_of(past, old, new), _log_words(sides)), None
        else:
            yield from ((change, None) for change in _whole(place, sides, old, new))
        if sides.says_labels_no_more:
            yield _without_labels(name), None
        yield from _variables(sides)


def _without_labels(name: str) -> Change:
    text = "the manifest no longer says units and dimension names, so they are not compared"
    return Change(name, None, "strict", text, wider=True)


def _counting(state: State, place: Place) -> Manifest | None:
    """The manifest that counts there; the common one's without one for this kind of machine."""
    common = place.for_variant(None)
    return state.manifests.get(place if place in state.manifests else common)


def _log_words(sides: Sides) -> str:
    """What to say of a renamed golden's log, which a test run begins anew."""
    old, new = ((() if one is None else one.accepted) for one in (sides.old, sides.new))
    return "" if new[: len(old)] == old else ", and its log begins anew"


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
        yield _replaced(name, sides.old, sides.new)
    elif sides.old.accepted != sides.new.accepted:
        text = "the log of its golden is another one, though the golden is the same"
        yield Change(name, None, "values", text, wider=False)


def loses_configuration(old: State, new: State) -> bool:
    """Whether there is none any more, which is told of all checks at once."""
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


def _replaced(name: str, old: Manifest, new: Manifest) -> Change:
    fresh = new.accepted[len(old.accepted) :]
    if new.accepted[: len(old.accepted)] != old.accepted:
        text = "golden replaced, and its log does not continue"
        return _accepted(name, text, new.accepted, replaced=True)
    if not fresh:
        text = "golden replaced, and nobody is named who accepted it"
        return _accepted(name, text, (), replaced=True)
    before = {row.identity: row.root for row in old.variables}
    moved = sum(before.get(row.identity, row.root) != row.root for row in new.variables)
    both = sum(row.identity in before for row in new.variables)
    text = f"golden replaced: {moved} of {both} variables have other digests"
    return _accepted(name, text, fresh, replaced=True)


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
    was_ignored, is_ignored = (
        _is_ignored(check, identity) for check in (sides.old_check, sides.new_check)
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
    sides_judged: tuple[Judged, Judged] = (
        judged(old, sides.old_check, identity),
        judged(new, sides.new_check, identity),
    )
    for what, text, wider in judgement_changes(*sides_judged):
        yield Change(sides.name, name, what, text, wider=wider)


def _is_ignored(check: Check | None, identity: VariableId) -> bool:
    """By name: what lies beyond the last iteration is told of as one."""
    return check is not None and any(name_matches(one, identity) for one in check.ignore)


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
    if not sides.both_say_labels:
        return
    is_configured = sides.old_check is not None and sides.new_check is not None
    for key in sorted({*old.labels, *new.labels}):
        was, now = old.labels.get(key), new.labels.get(key)
        if was != now and not (is_configured and key == MASK_LABEL):
            yield f"{key}: {was or 'none'} -> {now or 'none'}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"
