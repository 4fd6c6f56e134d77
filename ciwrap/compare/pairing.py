"""Which variables of two sides are compared, and what becomes of the others."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from ciwrap.compare.law import begun

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from ciwrap.arrays.values import Signature
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId


class Held(Protocol):
    """What one side holds: variables by identity, and the files they come from."""

    @property
    def identities(self) -> AbstractSet[VariableId]: ...
    def signature(self, identity: VariableId) -> Signature: ...
    def path_of(self, identity: VariableId) -> str | None: ...


class Nothing:
    """A side that holds no variable."""

    identities: frozenset[VariableId] = frozenset()

    def signature(self, identity: VariableId) -> Signature:
        raise KeyError(identity)

    def path_of(self, identity: VariableId) -> str | None:
        raise KeyError(identity)


def pair_up(outcome: Outcome, rules: Rules, reference: Held, new: Held) -> list[VariableId]:
    """The variables that both sides hold and that are to be compared, in order.

    The outcome gets those that are ignored, those of them that the reference holds as left out, and
    those that one side alone has.
    """
    both = []
    # By the key: comparing one with another takes as long, and sets come in no order.
    either = {*reference.identities, *new.identities}
    for identity in sorted(either, key=attrgetter("sort_key")):
        is_ours, is_theirs = identity in reference.identities, identity in new.identities
        if rules.is_ignored(identity):
            outcome.ignored.append(identity)
            if is_ours:
                outcome.left_out.append(identity)
        elif is_ours and is_theirs:
            both.append(identity)
        elif is_ours:
            outcome.missing.append(begun(identity, reference.signature(identity), None))
        else:
            path = new.path_of(identity)
            outcome.extra.append(begun(identity, None, new.signature(identity), source_path=path))
    return both
