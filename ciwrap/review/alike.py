"""Which changes look alike, so that one decision may be meant for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.review.accept_document import change_word
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ciwrap.review.golden_change import GoldenChange, VariableChange


def likeness(change: GoldenChange) -> Hashable:
    """Equal for changes that look alike: to the same variables, of the same kinds, with the same
    bounds, and moved by the same power of ten of them; with the same warnings.
    """
    variables = tuple(_variable(one) for one in change.changes)
    return change.status, change.old.problem is None, change.warnings, variables


def _variable(change: VariableChange) -> Hashable:
    rows = (change.old, change.new)
    told: tuple[Hashable, ...] = tuple(None if row is None else row.bound for row in rows)
    if change_word(change) == "redefined":
        # It matters in what: other evidence is not another shape.
        told = tuple(None if row is None else replace(row, root="") for row in rows)
    return change.identity, change_word(change), told, _magnitude(change.used_share)


def _magnitude(share: float | None) -> float | None:
    if share is None or not share > 0 or math.isinf(share):
        return share
    return math.floor(math.log10(share))
