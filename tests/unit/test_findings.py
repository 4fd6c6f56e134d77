"""What is found of one variable where the golden's data are not at hand."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.check.findings import Suspects, judged_by_digests, with_solved
from ciwrap.check.solve import Solved
from ciwrap.model import Details, Evidence, VariableResult, Verdict
from ciwrap.model.variable_result import MovedElement

UNDECIDED = VariableResult(
    "x",
    verdict=Verdict.UNDECIDED,
    element_count=100,
    suspect_chunks=2,
    differing_count_at_most=20,
    max_drift_share=0.3,
    drift_share_from=0.25,
    drift_share_to=0.35,
    details=Details(),
)


BEFORE = VariableResult("x", verdict=Verdict.NOT_COMPARABLE, reason="nobody has looked")


def moved(
    index: int, share: tuple[float, float] | None = None, *, is_beyond: bool | None = False
) -> MovedElement:
    low, high = share or (None, None)
    return MovedElement((index,), "1.0", share_from=low, share_to=high, is_beyond=is_beyond)


def test_nothing_solved_says_nothing() -> None:
    assert with_solved(UNDECIDED, Solved(0, ())) is UNDECIDED


@pytest.mark.parametrize(
    ("shares", "low", "high"),
    [
        ([(0.5, 0.75)], 0.5, 0.75),
        ([(0.125, 0.25)], 0.25, 0.35),  # what matched used more
        ([(0.5, 0.75), (0.25, 0.875)], 0.5, 0.875),
        ([None], 0.25, 0.35),
    ],
)
def test_all_solved_and_all_within_is_a_match(
    shares: list[tuple[float, float] | None], low: float, high: float
) -> None:
    elements = tuple(moved(n, share) for n, share in enumerate(shares))
    found = with_solved(UNDECIDED, Solved(2, elements))
    assert found == replace(
        UNDECIDED,
        verdict=Verdict.MATCH,
        solved_chunks=2,
        moved_elements=elements,
        differing_count=0,
        differing_count_at_least=0,
        differing_count_at_most=0,
        max_drift_share=(low + high) / 2,
        drift_share_from=low,
        drift_share_to=high,
        details=None,
    )


def test_nothing_known_of_what_matched_adds_no_share() -> None:
    unknown = replace(UNDECIDED, max_drift_share=None, drift_share_from=None, drift_share_to=None)
    found = with_solved(unknown, Solved(2, (moved(3, (0.5, 0.75)),)))
    assert (found.drift_share_from, found.drift_share_to) == (0.5, 0.75)


def test_one_chunk_that_is_not_solved_keeps_a_variable_from_matching() -> None:
    found = with_solved(UNDECIDED, Solved(1, (moved(3, (0.5, 0.75)),)))
    assert found == replace(
        UNDECIDED,
        solved_chunks=1,
        moved_elements=(moved(3, (0.5, 0.75)),),
        differing_count_at_least=0,
    )


def test_one_element_that_is_open_keeps_a_variable_from_matching() -> None:
    elements = (moved(3, (0.5, 0.75)), moved(4, (0.9, 1.1), is_beyond=None))
    found = with_solved(UNDECIDED, Solved(2, elements))
    assert found.verdict is Verdict.UNDECIDED
    assert found.differing_count is None
    assert (found.differing_count_at_least, found.differing_count_at_most) == (0, 1)
    assert found.details == Details()


@pytest.mark.parametrize("chunks", [1, 2])
def test_one_element_beyond_its_bound_differs(chunks: int) -> None:
    # Both parts of a complex number; one of them is open.
    beyond, part = moved(4, (1.5, 1.6), is_beyond=True), moved(4, (0.9, 1.1), is_beyond=None)
    elements = (moved(3, (0.5, 0.75)), beyond, part)
    found = with_solved(UNDECIDED, Solved(chunks, elements))
    assert found.verdict is Verdict.DIFFER
    assert found.differing_count_at_least == 1
    assert found.differing_count == (1 if chunks == 2 else None)
    assert found.differing_count_at_most == (1 if chunks == 2 else 20)


def test_more_was_known_to_differ_than_is_solved() -> None:
    found = with_solved(
        replace(UNDECIDED, differing_count_at_least=3),
        Solved(1, (moved(4, (1.5, 1.6), is_beyond=True),)),
    )
    assert found.differing_count_at_least == 3


@pytest.mark.parametrize(
    ("atol", "levels", "suspects", "verdict", "evidence", "words"),
    [
        (1e-3, 1, 0, Verdict.MATCH, Evidence.TREE, None),
        (1e-3, 1, 1, Verdict.NOT_COMPARABLE, Evidence.TREE, "1 of 4 blocks is open"),
        (1e-3, 1, 2, Verdict.NOT_COMPARABLE, Evidence.TREE, "2 of 4 blocks are open"),
        (0.0, 1, 1, Verdict.DIFFER, Evidence.TREE, None),
        (1e-3, 15, 0, Verdict.MATCH, Evidence.RESIDUES, None),
        (1e-3, 15, 1, Verdict.UNDECIDED, Evidence.RESIDUES, None),
    ],
)
def test_digests_alone(
    atol: float, levels: int, suspects: int, verdict: Verdict, evidence: Evidence, words: str | None
) -> None:
    parameters = _core.TreeParameters(
        "<f8", atol=atol, residue_levels=levels, chunk_bytes=4096, equal_nan=True
    )
    before = replace(BEFORE, shape=(2048,), residue_levels=levels if levels > 1 else None)
    some = Suspects(np.arange(suspects, dtype=np.int64), 4)
    found = judged_by_digests(before, parameters, parameters, some)
    assert (found.verdict, found.evidence) == (verdict, evidence)
    if words is None:
        assert found.reason is None
    else:
        assert found.reason == f"{words}, whether within the bound or beyond it: data needed"
    assert found.suspect_chunks == suspects
    assert found.differing_count_at_least == (
        None if not suspects or verdict is Verdict.NOT_COMPARABLE else int(atol == 0)
    )
    assert found.differing_count == (None if suspects else 0)


def test_of_a_single_chunk_it_is_said_alone() -> None:
    parameters = _core.TreeParameters("<f8", atol=1e-3, chunk_bytes=4096)
    one = Suspects(np.zeros(1, dtype=np.int64), 1)
    found = judged_by_digests(replace(BEFORE, shape=(4,)), parameters, parameters, one)
    assert str(found.reason).startswith("1 of 1 block is open")
