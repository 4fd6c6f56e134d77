"""What is said of iterations and ranks is what the map shows: words make the map again."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tiers import examples

from ciwrap.model import (
    CheckResult,
    DifferingElement,
    ErrorBound,
    Evidence,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import ChunkRange, HistoryFacts, MovedElement
from ciwrap.report.lead import group_of
from ciwrap.report.terminal import alarm_lines
from ciwrap.report.top import top_of_page
from ciwrap.report.view import row_of
from ciwrap.report.where import divergence_lines, extent_words, where_listed, where_text
from ciwrap.report.words import headline

ITERATIONS, RANKS = 5, 4
PLACES = [(i, r) for i in range(ITERATIONS) for r in range(RANKS)]


def results_of(bad: set[tuple[int, int]]) -> list[VariableResult]:
    return [
        VariableResult(
            "x",
            Verdict.DIFFER if (i, r) in bad else Verdict.MATCH,
            iteration=i,
            rank=r,
            differing_count=int((i, r) in bad),
        )
        for i, r in PLACES
    ]


def words_of(bad: set[tuple[int, int]]) -> str:
    return where_text(results_of(bad))


def ranks_in(text: str) -> set[int]:
    if f"all {RANKS} ranks" in text:
        return set(range(RANKS))
    found = re.search(r"ranks? (\d+(?: to \d+)?(?:, \d+(?: to \d+)?)*)", text)
    assert found is not None, text
    ends = [[int(end) for end in part.split(" to ")] for part in found[1].split(", ")]
    return {rank for part in ends for rank in range(part[0], part[-1] + 1)}


def map_of(text: str) -> set[tuple[int, int]] | None:
    """All that the sentence says to be beyond the bound; None if it only counts."""
    if text.startswith(("in all", "in both")):
        return {(i, r) for i, r in PLACES if r in ranks_in(text)}
    only = re.match(r"in iteration (\d+) only, ", text)
    if only is not None:
        return {(i, r) for i, r in PLACES if i == int(only[1]) and r in ranks_in(text)}
    steady = re.match(r"from iteration (\d+) on, ", text)
    if steady is not None:
        return {(i, r) for i, r in PLACES if i >= int(steady[1]) and r in ranks_in(text)}
    if not text.startswith("from iteration") or "spreading" in text:
        return None
    found: set[tuple[int, int]] = set()
    for stage in re.split(r", (?=from)", text):
        first = re.match(r"from (?:iteration )?(\d+) ", stage)
        assert first is not None, stage
        found |= {(i, r) for i, r in PLACES if i >= int(first[1]) and r in ranks_in(stage)}
    return found


@given(st.lists(st.integers(0, ITERATIONS), min_size=RANKS, max_size=RANKS))
@settings(max_examples=examples(200), deadline=None)
def test_of_ranks_that_begin_one_after_the_other(begin: list[int]) -> None:
    bad = {(i, r) for i, r in PLACES if i >= begin[r]}
    assume(bad)
    text = words_of(bad)
    said = map_of(text)
    assert said == bad if said is not None else "spreading" in text


@given(st.sets(st.sampled_from(PLACES), min_size=1))
@settings(max_examples=examples(300), deadline=None)
def test_of_any_map(bad: set[tuple[int, int]]) -> None:
    text = words_of(bad)
    said = map_of(text)
    if said is not None:
        assert said == bad
        return
    hit = sorted({i for i, _ in bad})
    if "spreading" in text:
        return
    counted = re.match(r"in (\d+) of (\d+) iterations, first in (\d+)", text)
    assert counted is not None, text
    assert [int(one) for one in counted.groups()] == [len(hit), ITERATIONS, hit[0]]
    if "in all" in text:
        assert f"on {len({r for _, r in bad})} of {RANKS} ranks in all" in text
        first = re.search(r"first in \d+ on (.*);", text)
        assert first is not None
        assert ranks_in(first[1]) == {r for i, r in bad if i == hit[0]}
    else:
        assert ranks_in(text) == {r for _, r in bad}


@given(st.sets(st.sampled_from(PLACES), min_size=1), st.sets(st.sampled_from(PLACES), min_size=1))
@settings(max_examples=examples(200), deadline=None)
def test_what_was_not_compared_can_refute_nothing(
    bad: set[tuple[int, int]], lost: set[tuple[int, int]]
) -> None:
    """A comparison that was ended tells of least numbers, whatever became of the rest."""
    left = [one for one in results_of(bad) if (one.iteration, one.rank) not in lost]
    assume(any(one.verdict is Verdict.DIFFER for one in left))
    facts = HistoryFacts(not_compared_checkpoints=len(lost))
    check = CheckResult("c", Verdict.NOT_COMPARABLE, tuple(left), history=facts)
    words = where_listed(check, left)
    seen = {(one.iteration, one.rank) for one in left if one.verdict is Verdict.DIFFER}
    hit, ranks = {i for i, _ in seen}, {r for _, r in seen}
    said = [f"in {len(hit)} iterations, first in {min(hit)}"] if len(hit) > 1 else []
    assert words == ", ".join([*said, *([f"on {len(ranks)} ranks"] if len(ranks) > 1 else [])])
    found = re.search(r"at (\d+) of (\d+) compared iterations", extent_words(check))
    if found is not None:
        assert [*map(int, found.groups())] == [len(hit), len({one.iteration for one in left})]


def test_the_title_of_two_runs_counts_each_verdict() -> None:
    """ "NOT COMPARABLE  3 of 4 variables" was said where one of these is, and all differ."""
    verdicts = {
        "a": (Verdict.DIFFER, Verdict.MATCH),
        "b": (Verdict.NOT_COMPARABLE, Verdict.DIFFER),
        "c": (Verdict.MATCH, Verdict.DIFFER),
        "d": (Verdict.MATCH, Verdict.MATCH),
    }

    count = {Verdict.MATCH: 0, Verdict.DIFFER: 1, Verdict.NOT_COMPARABLE: None}

    def title(names: str, verdict: Verdict) -> str:
        found = [
            VariableResult(name, one, at, element_count=9, differing_count=count[one], reason="r")
            for name in names
            for at, one in enumerate(verdicts[name], 1)
        ]
        return extent_words(CheckResult("c", verdict, tuple(found)))

    assert title("abcd", Verdict.NOT_COMPARABLE) == (
        "3 of 4 variables do not match (1 not comparable, 3 differ), at 2 of 2 iterations"
    )
    assert title("acd", Verdict.DIFFER) == "2 of 3 variables, at 2 of 2 iterations"
    assert title("ad", Verdict.NOT_COMPARABLE) == (
        "not everything could be compared; differ: 1 of 2 variables, at 1 of 2 iterations"
    )


def _ranks_of(*verdicts: Verdict) -> list[VariableResult]:
    return [
        VariableResult(
            "x",
            verdict,
            iteration=at,
            element_count=9,
            differing_count=int(verdict is Verdict.DIFFER),
            reason="another shape",
        )
        for at, verdict in enumerate(verdicts)
    ]


def test_a_checkpoint_that_was_not_compared_is_none_in_which_numbers_differ() -> None:
    """ "in all 2 iterations" was said of a variable that is there in three."""
    results = _ranks_of(Verdict.DIFFER, Verdict.NOT_COMPARABLE, Verdict.DIFFER)
    check = CheckResult("c", Verdict.NOT_COMPARABLE, tuple(results))
    assert where_listed(check, results) == "in all 3 iterations"
    assert where_listed(check, results, alarms_only=True) == ("in 2 of 3 iterations, first in 0")
    (line,) = alarm_lines(check)
    assert line[2].startswith("in 2 of 3 iterations, first in 0; 2 of 18 values")
    run = RunResult(Verdict.NOT_COMPARABLE, (check,))
    facts = dict(top_of_page(run).facts)
    assert facts["Where"].startswith("In 2 of 3 iterations, first in 0")


def test_two_of_two_iterations_are_both() -> None:
    results = _ranks_of(Verdict.DIFFER, Verdict.DIFFER)
    assert where_text(results) == "in both iterations"


@pytest.mark.parametrize(("count", "words"), [(1, "1 of 1 block may differ"), (4, "4 blocks may")])
def test_chunks_are_counted_in_plain_english(count: int, words: str) -> None:
    one = VariableResult(
        "x",
        Verdict.UNDECIDED,
        iteration=0,
        evidence=Evidence.TREE,
        element_count=9 * count,
        chunk_count=count,
        suspect_chunks=count,
        differing_count_at_most=9 * count,
    )
    other = VariableResult("x", Verdict.MATCH, iteration=1, element_count=9, differing_count=0)
    check = CheckResult("c", Verdict.UNDECIDED, (one, other))
    (line,) = alarm_lines(check)
    assert words in line[2]
    row = row_of(0, group_of(check, "x", (one,)), ())
    assert row.count == ("1 of 1 block" if count == 1 else "4 of 4 blocks")
    proven = replace(one, verdict=Verdict.DIFFER, differing_count_at_least=count)
    verb = "block differs: from 1 to" if count == 1 else "blocks differ: from 4 to"
    assert verb in headline(proven)
    single = replace(proven, element_count=count, differing_count_at_most=count)
    verb = "at least 1 of 1 value differs" if count == 1 else "at least 4 of 4 values differ"
    assert verb in headline(single)


def test_what_digests_tell_of_the_first_divergence_stands_beside_it() -> None:
    by_digests = VariableResult(
        "u",
        Verdict.UNDECIDED,
        iteration=0,
        shape=(40, 30),
        element_count=1200,
        chunk_count=4,
        suspect_chunks=1,
        suspect_ranges=(ChunkRange(300, 599, (10, 0), (19, 29)),),
        suspect_range_count=1,
        differing_count_at_most=300,
        bound=ErrorBound(1e-3),
    )
    moved = MovedElement((3, 17), "1.3", "1.0", "1.001", share_from=0.9, share_to=1.1)
    between = "(golden between 1 and 1.001, new 1.3)"
    cases = (
        (by_digests, ": undecided, in values [10:20, :]"),
        (
            replace(by_digests, moved_elements=(moved,)),
            f": undecided, [3, 17] moved by 0.9 to 1.1 x the bound {between}",
        ),
        (
            replace(by_digests, verdict=Verdict.DIFFER, least_share=14.37),
            ": in values [10:20, :], by at least 14.3 x the bound",
        ),
        (replace(by_digests, verdict=Verdict.DIFFER, suspect_ranges=()), ""),
    )
    other = VariableResult("u", Verdict.MATCH, iteration=1, element_count=1, differing_count=0)
    for one, said in cases:
        check = CheckResult("c", one.verdict, (one, other))
        (_, _, more, _), *_ = divergence_lines(check)
        assert more == said


def test_a_single_number_has_no_index() -> None:
    """ "first divergence: iter 0 / u []: -1.0 and -1.5" """
    told = DifferingElement((), "-1.0", "-1.5", 0.5, 500.0)
    one = VariableResult(
        "u",
        Verdict.DIFFER,
        iteration=0,
        element_count=1,
        differing_count=1,
        first_index=(),
        first_differences=(told,),
        bound=ErrorBound(1e-3),
    )
    other = VariableResult("u", Verdict.MATCH, iteration=1, element_count=1, differing_count=0)
    check = CheckResult("c", Verdict.DIFFER, (one, other))
    ((_, _, more, lines),) = divergence_lines(check)
    assert (more, lines[-1]) == ("", "golden -1.0, new -1.5, 500 x the bound")
