"""Simple hypotheses on what differs, each held against all differing elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.compare.explain.bits import one_bit
from ciwrap.compare.explain.bounds import by_bound
from ciwrap.compare.explain.places import MOVES, at_faces, in_a_stripe, moved_places
from ciwrap.compare.explain.values import by_value
from ciwrap.details import MOST_EXPLANATIONS

if TYPE_CHECKING:
    from ciwrap.compare.explain.difference import Difference
    from ciwrap.details import Explanation

# One or two elements have something in common by chance.
_FEWEST = 3


def explain(difference: Difference) -> tuple[Explanation, ...]:
    """What the differing elements have in common, the most telling first; at most a few."""
    found: list[Explanation] = []
    if difference.count >= _FEWEST:
        found += _one_kind(moved_places(difference), by_value(difference))
        if not found or found[0].cause not in MOVES:
            found += at_faces(difference) or in_a_stripe(difference)
    elif (flipped := one_bit(difference)) is not None:
        found.append(flipped)
    found += by_bound(difference)
    return tuple(found[:MOST_EXPLANATIONS])


def _one_kind(moves: list[Explanation], values: list[Explanation]) -> list[Explanation]:
    """Those that hold on more elements: a number that stands elsewhere needs no word on what it was
    turned into. Of numbers with a slope, 2 more is two rows further, but for the ends.
    """
    held = [max((one.held_count for one in kind), default=0) for kind in (moves, values)]
    return moves if held[0] > held[1] else values
