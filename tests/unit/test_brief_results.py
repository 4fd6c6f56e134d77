"""Of thousands of variables that do not match a few say all: always the same ones."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from ciwrap.model import ChunkRange, DifferingElement, VariableResult, Verdict
from ciwrap.model.results import MOST_WHOLE, BriefResults, with_brief_ones

ELEMENTS = tuple(DifferingElement((at,), "0.0", "1.0") for at in range(3))
RANGES = (ChunkRange(0, 1, (0,), (1,), 1),)


def bad(name: str, iteration: int, share: float, verdict: Verdict) -> VariableResult:
    return VariableResult(
        name,
        verdict,
        iteration=iteration,
        reason="lost" if verdict is Verdict.NOT_COMPARABLE else None,
        max_bound_share=share,
        first_differences=ELEMENTS,
        suspect_ranges=RANGES,
        bound_share_histogram=(1, 2),
    )


def some(count: int, names: int, dice: random.Random) -> list[VariableResult]:
    """Every fourth one matches; some are as bad as others."""
    verdicts = [Verdict.DIFFER, Verdict.UNDECIDED, Verdict.NOT_COMPARABLE]
    found = [
        bad(f"n{at % names}", at // names, float(dice.randrange(40)), dice.choice(verdicts))
        for at in range(count)
    ]
    return [
        replace(one, verdict=Verdict.MATCH, reason=None, differing_count=0) if at % 4 == 0 else one
        for at, one in enumerate(found)
    ]


def whole(results: list[VariableResult]) -> set[VariableResult]:
    return {one.id for one in results if len(one.first_differences) > 1}


def expected(results: list[VariableResult], names: int) -> set[VariableResult]:
    """First and worst by sorting everything."""
    kept = {one.id for one in results if one.verdict is Verdict.MATCH}
    wrong = [one for one in results if one.verdict is not Verdict.MATCH]
    for name in sorted({one.name for one in wrong})[:names]:
        mine = sorted((one for one in wrong if one.name == name), key=lambda one: one.iteration)
        kept.add(mine[0].id)
        alarms = [one for one in mine if one.verdict.is_alarm] or mine
        worst = max(alarms, key=lambda one: (one.verdict.severity, one.max_bound_share))
        kept.add(worst.id)
    return kept


@pytest.mark.parametrize("names", [1, 7, 40, MOST_WHOLE])
def test_the_first_and_the_worst_of_each_name_say_all(names: int) -> None:
    dice = random.Random(names)
    results = some(4 * MOST_WHOLE, names, dice)
    assert whole(with_brief_ones(results)) == expected(results, MOST_WHOLE // 2)
    for one, short in zip(results, with_brief_ones(results), strict=True):
        assert replace(short, **LISTS) == replace(one, **LISTS), "nothing else is lost"


LISTS = {"first_differences": (), "suspect_ranges": (), "bound_share_histogram": None}


def test_neither_order_nor_steps_matter() -> None:
    dice = random.Random(5)
    results = some(3 * MOST_WHOLE, 9, dice)
    at_once = {one.id: one for one in with_brief_ones(results)}
    for _ in range(5):
        dice.shuffle(results)
        growing: list[VariableResult] = []
        keeper = BriefResults(growing)
        for first in range(0, len(results), 700):
            # What came from elsewhere has been shortened there.
            growing += with_brief_ones(results[first : first + 700])
            keeper.catch_up()
        assert {one.id: one for one in growing} == at_once
        assert keeper.whole_ones == {
            one.id for one in growing if len(one.first_differences) > 1
        } - {one.id for one in growing if one.verdict is Verdict.MATCH}


def test_up_to_so_many_say_all() -> None:
    results = [bad("x", at, 1.0, Verdict.DIFFER) for at in range(MOST_WHOLE)]
    keeper = BriefResults(results)
    keeper.catch_up()
    assert keeper.whole_ones is None
    assert all(one.suspect_ranges for one in results)
    results.append(bad("x", MOST_WHOLE, 2.0, Verdict.DIFFER))
    keeper.catch_up()
    assert {one.iteration for one in results if one.suspect_ranges} == {0, MOST_WHOLE}
