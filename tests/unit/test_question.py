"""What trees leave open of a variable, and what is made of the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from result_fields import said

from ciwrap import _core
from ciwrap.base.errors import CorruptFileError
from ciwrap.check.findings import Suspects, matched_by_digests
from ciwrap.model import ErrorBound, Evidence, VariableResult, Verdict
from ciwrap.runs.questions import PendingComparison, Streamed

BOUND = ErrorBound(1e-3)
ERROR = CorruptFileError("is cut off", file="a.npy", variable="x", remedy="write it anew")
VALUES = np.arange(1000.0)  # chunks of 512 elements
EXACT = _core.TreeParameters("<i8")
PLAIN = _core.TreeParameters("<f8", atol=1e-3)


def compared(parameters: _core.TreeParameters, golden: Any, new: Any, *leaves: int) -> Any:
    comparer = _core.ElementComparer(parameters)
    for leaf in leaves:
        piece = slice(512 * leaf, 512 * (leaf + 1))
        comparer.update(golden[piece].tobytes(), new[piece].tobytes(), first_element=512 * leaf)
    return comparer.finish()


def question(
    leaves: list[int] | None, suspects: list[int] | None, **more: Any
) -> PendingComparison:
    asked = None if leaves is None else np.array(leaves, np.int64)
    told = None if suspects is None else Suspects(np.array(suspects, np.int64), 2)
    begin = VariableResult("x", Verdict.NOT_COMPARABLE, reason="it was not compared")
    return PendingComparison(begin, more.get("parameters", PLAIN), (10, 100), asked, told)


def moved_at(*places: int, by: float = 1.0) -> np.ndarray:
    new = VALUES.copy()
    new[list(places)] += by
    return new


def read_of(golden: np.ndarray, new: np.ndarray) -> Any:
    return lambda flats: (golden[list(flats)], new[list(flats)])


def test_elements_of_suspect_chunks_give_exact_counts() -> None:
    new = moved_at(600, 999)
    asked = question([1], [1])
    assert asked.byte_count == 8000
    result = asked.finish(compared(PLAIN, VALUES, new, 1), read_of(VALUES, new))
    assert result.verdict is Verdict.DIFFER
    assert (result.evidence, result.byte_count) == (Evidence.DATA, 8000)
    assert (result.reason, result.bound, result.element_count) == (None, BOUND, 1000)
    assert (result.differing_count, result.first_index) == (2, (6, 0))
    assert [one.index for one in result.first_differences] == [(6, 0), (9, 99)]
    assert (result.chunk_count, result.suspect_chunks) == (2, 1)
    assert (result.suspect_range_count, len(result.suspect_ranges)) == (1, 1)
    # A largest difference beyond the bound lies among the elements compared ...
    assert (result.max_abs_difference, result.max_abs_index) == (1.0, (6, 0))
    assert result.max_bound_share == pytest.approx(1000)
    # ... but one of a number next to zero may be a larger part of it, ...
    assert (result.max_rel_difference, result.max_rel_index) == (None, None)
    # ... and means would be those of a part.
    assert (result.mean_abs_difference, result.mean_rel_difference) == (None, None)
    assert (result.bound_share_histogram, result.max_drift_share) == (None, None)
    assert (result.nan_mismatch_count, result.inf_mismatch_count) == (0, 0)


def test_suspect_chunks_within_the_bound_are_a_match_and_tell_no_maximum() -> None:
    new = moved_at(600, by=1e-4)
    result = question([1], [1]).finish(compared(PLAIN, VALUES, new, 1), read_of(VALUES, new))
    assert (result.verdict, result.differing_count) == (Verdict.MATCH, 0)
    assert (result.max_abs_difference, result.max_abs_index) == (None, None)
    assert (result.max_rel_difference, result.max_bound_share) == (None, None)
    assert (result.first_index, result.first_differences) == (None, ())


def test_all_elements_give_means_and_histogram() -> None:
    new = moved_at(600, by=1e-4)
    new[7] = np.nan
    new[8] = np.inf
    result = question(None, None).finish(compared(PLAIN, VALUES, new, 0, 1), read_of(VALUES, new))
    assert (result.verdict, result.differing_count) == (Verdict.DIFFER, 2)
    assert (result.nan_mismatch_count, result.inf_mismatch_count) == (1, 1)
    assert result.mean_abs_difference == pytest.approx(1e-4 / 998)
    assert result.mean_rel_difference == pytest.approx(1e-4 / 600 / 997)
    assert result.bound_share_histogram is not None
    assert sum(result.bound_share_histogram) == 1000
    assert result.max_drift_share == np.inf
    assert (result.chunk_count, result.suspect_chunks) == (None, None)
    assert (result.suspect_ranges, result.suspect_range_count) == ((), None)


def test_whole_numbers_that_match_differ_by_nothing_at_all() -> None:
    whole = np.arange(1000)
    asked = question([1], [], parameters=EXACT)
    result = asked.finish(compared(EXACT, whole, whole, 1), read_of(whole, whole))
    assert (result.verdict, result.max_abs_difference) == (Verdict.MATCH, 0.0)
    assert (result.max_abs_index, result.max_rel_index) == ((5, 12), (5, 12))


def test_trees_that_contradict_the_data_make_nothing_of_it() -> None:
    """Elements differ in a chunk whose digests agree; of the suspect ones they say nothing."""
    new = moved_at(3, 600)
    whole = compared(PLAIN, VALUES, new, 0, 1)
    told = question(None, [1]).finish(whole, read_of(VALUES, new))
    assert told.verdict is Verdict.NOT_COMPARABLE
    assert str(told.reason).startswith("its captured trees contradict its data: ")
    assert str(told.reason).endswith("--rebuild, or compare with --no-captures")
    assert question(None, [0, 1]).finish(whole, read_of(VALUES, new)).differing_count == 2
    # Digests of whole numbers differ, and no element does.
    values = np.arange(1000)
    same = compared(EXACT, values, values, 0)
    told = question([0], [0], parameters=EXACT).finish(same, read_of(values, values))
    assert told.verdict is Verdict.NOT_COMPARABLE
    # What was not compared contradicts nothing.
    one = compared(EXACT, values, values + (values == 600), 1)
    told = question([1], [1], parameters=EXACT).finish(one, read_of(values, values))
    assert told.differing_count == 1
    told = question([1], [0, 1], parameters=EXACT).finish(one, read_of(values, values))
    assert told.differing_count == 1


def test_what_the_stream_found() -> None:
    new = moved_at(600, 999)
    values = (VALUES[[600, 999]].tobytes(), new[[600, 999]].tobytes())
    found = Streamed(compared(PLAIN, VALUES, new, 1), first_values=values)
    result = question([1], [1]).finish_streamed(found)
    assert [(one.golden, one.new) for one in result.first_differences] == [
        ("600.0", "601.0"),
        ("999.0", "1000.0"),
    ]
    failed = question([1], [1]).finish_streamed(Streamed(None, ERROR))
    assert (failed.verdict, failed.reason) == (
        Verdict.NOT_COMPARABLE,
        "a.npy: is cut off; write it anew",
    )


@pytest.mark.parametrize("parameters", [EXACT, PLAIN])
@pytest.mark.parametrize("levels", [None, 15])
def test_two_roots_that_match(parameters: _core.TreeParameters, levels: int | None) -> None:
    begin = VariableResult(
        "x", Verdict.NOT_COMPARABLE, reason="it was not compared", residue_levels=levels
    )
    assert said(matched_by_digests(begin, parameters, 2, 1000)) == {
        "name": "x",
        "verdict": Verdict.MATCH,
        "bound": ErrorBound() if parameters is EXACT else BOUND,
        "evidence": Evidence.TREE if levels is None else Evidence.RESIDUES,
        "element_count": 1000,
        "differing_count": 0,
        "chunk_count": 2,
        "suspect_chunks": 0,
        **({"max_abs_difference": 0.0} if parameters is EXACT else {}),
        **({"residue_levels": levels} if levels else {}),
    }
