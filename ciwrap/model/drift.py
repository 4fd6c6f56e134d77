"""What a drift in steps of residues says of the share of the bound that was used up."""

from __future__ import annotations


def step_interval(step: int, residue_levels: int, guaranteed_share: float) -> tuple[float, float]:
    """The least and the greatest share of the bound of a number that drifted by so many steps.

    Both sides are rounded to steps, so a drift of k steps is one of more than k - 1 and of less
    than k + 1 of them. Under a bound with rtol the steps are even on a logarithmic scale; on the
    scale of the bound itself they lie within the same ends, since the greatest share is convex and
    the least one concave in the number of steps (docs/explanation/residues.md).
    """
    half = (residue_levels - 1) // 2
    least = guaranteed_share * max(step - 1, 0) / half
    return least, (step + 1) / (half + 1)


def share_interval(
    max_share: float, residue_levels: int, guaranteed_share: float
) -> tuple[float, float]:
    """As `step_interval`, of a largest drift that is given as steps / (h + 1)."""
    half = (residue_levels - 1) // 2
    return step_interval(round(max_share * (half + 1)), residue_levels, guaranteed_share)
