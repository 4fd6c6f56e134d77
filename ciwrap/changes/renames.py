"""Checks that have only another name now: their goldens are the same, to the root."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ciwrap.changes.state import State
    from ciwrap.golden.places import Place


class Renames(Struct, frozen=True):
    """goldens: where they lie now -> where they lay. checks: of the configuration, new name -> old.

    Goldens of one root hold the same variables, made with the same bounds. Two that share a root
    are told apart by nothing, so neither is taken for the other one under a new name.
    """

    goldens: Mapping[Place, Place]
    checks: Mapping[str, str]

    @classmethod
    def between(cls, old: State, new: State) -> Renames:
        gone, fresh = _only_in(old, new), _only_in(new, old)
        pairs = {
            place: gone[key]
            for key, place in fresh.items()
            if key in gone and (place.name in new.checks) == (gone[key].name in old.checks)
        }
        checks = {
            place.name: before.name
            for place, before in pairs.items()
            if place.name in new.checks and _is_whole(place.name, before.name, pairs, old, new)
        }
        goldens = {
            place: before
            for place, before in pairs.items()
            if place.name not in new.checks or checks.get(place.name) == before.name
        }
        return cls(goldens, checks)


def _only_in(state: State, other: State) -> dict[tuple[str, str | None, str], Place]:
    """Goldens that the other state does not have, by root, kind of machine, and, for checks of the
    configuration, folder; only those that are alone with it.
    """
    found = []
    for place, manifest in state.manifests.items():
        is_gone = place not in other.manifests and place.name not in other.checks
        if is_gone and manifest is not None:
            folder = place.folder if place.name in state.checks else ""
            found.append(((manifest.binary.root, place.variant, folder), place))
    counts = Counter(key for key, _ in found)
    return {key: place for key, place in found if counts[key] == 1}


def _is_whole(name: str, before: str, pairs: Mapping[Place, Place], old: State, new: State) -> bool:
    """Whether all goldens of a check, of every platform, went from the old name to the new one."""
    went = {one for one in pairs.items() if one[0].name == name or one[1].name == before}
    return (
        all((place.name, past.name) == (name, before) for place, past in went)
        and {place for place, _ in went} == _named(new.manifests, name)
        and {past for _, past in went} == _named(old.manifests, before)
    )


def _named(places: Iterable[Place], name: str) -> set[Place]:
    return {place for place in places if place.name == name}
