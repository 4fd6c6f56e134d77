"""Which variables of two sides are compared, and what becomes of the others."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from ciwrap.compare.law import begun, not_comparable

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from ciwrap.arrays.values import Signature
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.errors import CiwrapError
    from ciwrap.model import VariableId, VariableResult


class Held(Protocol):
    """What one side holds: variables by identity, and the files they come from."""

    @property
    def identities(self) -> AbstractSet[VariableId]: ...
    def signature(self, identity: VariableId) -> Signature: ...
    def path_of(self, identity: VariableId) -> str | None: ...
    def fault_of(self, identity: VariableId) -> CiwrapError | None: ...


class Nothing:
    """A side that holds no variable."""

    identities: frozenset[VariableId] = frozenset()

    def signature(self, identity: VariableId) -> Signature:
        raise KeyError(identity)

    def path_of(self, identity: VariableId) -> str | None:
        raise KeyError(identity)

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
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
            alone = begun(identity, reference.signature(identity), None)
            outcome.missing.append(_with_fault(alone, reference))
        else:
            path = new.path_of(identity)
            alone = begun(identity, None, new.signature(identity), source_path=path)
            outcome.extra.append(_with_fault(alone, new))
    return both


def _with_fault(alone: VariableResult, side: Held) -> VariableResult:
    """The result, with the reason why nothing can be read of the variable where it is, if so."""
    fault = side.fault_of(alone.id)
    return alone if fault is None else not_comparable(alone, fault)
