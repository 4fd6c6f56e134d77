"""Ranks that hold the same numbers in another way: found where they do, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import examples

from ciwrap.explain.moved import other_decomposition
from ciwrap.model import ErrorBound
from ciwrap.model.variable_result import Cause

Parts = list[np.ndarray]


def blocks(whole: np.ndarray, rows: int, columns: int) -> Parts:
    """As MPI deals out a grid of ranks, the second axis counted through first."""
    lines = np.array_split(whole, rows, axis=0)
    return [part for line in lines for part in np.array_split(line, columns, axis=1)]


def particles(seed: int, ranks: int) -> Parts:
    """The same particles on ranks of their own, in the order in which they came there."""
    rows = np.random.default_rng(7).normal(size=(600, 3))
    random = np.random.default_rng(seed)
    owner = random.integers(0, ranks, len(rows))
    return [random.permutation(rows[owner == rank]) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [(4, 4), (2, 8), (1, 3)], ids=str)
def test_particles_on_other_ranks_are_found(ranks: tuple[int, int]) -> None:
    found = other_decomposition(particles(1, ranks[0]), particles(2, ranks[1]), None)
    assert found is not None
    assert (found.cause, found.words, found.values) == (Cause.ACROSS_RANKS, "rows", ranks)
    assert (found.held_count, found.differing_count) == (1800, 1800)
    assert found.remedy == "across_ranks: true"


def test_a_rank_may_hold_no_rows() -> None:
    """The keys of its rows were of another type, and nothing could be put beside them."""
    full = particles(1, 2)
    moved = [np.concatenate(full[::-1]), full[0][:0]]
    found = other_decomposition(full, moved, None)
    assert found is not None
    assert (found.words, found.held_count, found.differing_count) == ("rows", 1800, 1800)


@pytest.mark.parametrize("noise", [0.0, 1e-9])
@pytest.mark.parametrize(
    ("one", "other"),
    [((4, 1), (1, 4)), ((2, 2), (4, 1)), ((2, 3), (3, 2)), ((1, 6), (2, 2))],
    ids=str,
)
def test_a_field_cut_into_other_blocks_is_found(
    one: tuple[int, int], other: tuple[int, int], noise: float
) -> None:
    random = np.random.default_rng(3)
    whole = random.normal(size=(37, 29, 4))
    near = whole + noise * random.uniform(-1, 1, whole.shape)
    found = other_decomposition(
        blocks(whole, *one), blocks(near, *other), ErrorBound(2e-9) if noise else None
    )
    assert found is not None
    assert (found.cause, found.words, found.held_count) == (
        Cause.ACROSS_RANKS,
        "array",
        whole.size,
    )


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_slabs_of_another_height_are_found(noise: float) -> None:
    random = np.random.default_rng(4)
    whole = random.normal(size=(50, 6))
    near = whole + noise * random.uniform(-1, 1, whole.shape)
    found = other_decomposition(np.array_split(whole, 5), np.array_split(near, 3), ErrorBound(2e-9))
    assert found is not None
    assert (found.cause, found.held_count) == (Cause.ACROSS_RANKS, whole.size)


def flipped(part: np.ndarray) -> np.ndarray:
    """One face has the wrong sign, as at a wall of one rank."""
    part = part.copy()
    part[..., -1] *= -1
    return part


def other_difference(seed: int) -> tuple[Parts, Parts]:
    """Parts of which no other cutting makes the same array."""
    random = np.random.default_rng(seed)
    whole = random.normal(size=(24, 12) if seed % 2 else (24,))
    ours = np.array_split(whole, random.choice([2, 3, 4, 6]))
    count = len(ours)
    kinds = (
        lambda: [part + 1e-3 * random.normal(size=part.shape) for part in ours],
        lambda: [random.permutation(part) for part in ours],  # each rank has its own still
        lambda: [-part for part in ours],
        lambda: [ours[0], *(part + 1 for part in ours[1:])],
        lambda: list(np.array_split(random.normal(size=whole.shape), count)),
        lambda: list(np.array_split(whole + 0.5, count % 4 + 2)),
        lambda: [part * np.nan for part in ours],
        lambda: [np.zeros_like(part) for part in ours],
        lambda: [np.where(random.random(part.shape) < 0.02, part + 1, part) for part in ours],
        lambda: [*ours[:-1], flipped(ours[-1])],
        lambda: ours[:-1],  # rows are missing
        lambda: [*ours[:-1], ours[-1][:-1]],
    )
    return ours, list(kinds[seed % len(kinds)]())


def test_nothing_is_claimed_of_other_differences() -> None:
    claimed = {}
    for seed in range(examples(500)):
        found = other_decomposition(*other_difference(seed), ErrorBound(1e-6))
        if found is not None:
            claimed[seed] = found
    assert claimed == {}


def test_equal_numbers_say_nothing_of_their_ranks() -> None:
    ones = [np.ones((4, 3)), np.ones((6, 3))]
    assert other_decomposition(ones, ones[::-1], None) is None
    assert other_decomposition([np.ones(())], [np.ones(())], None) is None
