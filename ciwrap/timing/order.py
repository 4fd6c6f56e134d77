"""In which order the two runs of each pair take place."""

from __future__ import annotations

import random


def pair_order(pairs: int, seed: int) -> tuple[bool, ...]:
    """Whether A runs first, for each pair: in half of them, in random order.

    With an odd number of pairs chance says which side is first once more.
    """
    generator = random.Random(seed)
    order = [position % 2 == 0 for position in range(pairs)]
    if pairs % 2 and generator.random() < 0.5:
        order = [not a_first for a_first in order]
    generator.shuffle(order)
    return tuple(order)
