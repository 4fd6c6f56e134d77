"""Growth, what stopped, swapped variables, one face, one value: where planted, nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace
from tiers import examples

from ciwrap import api
from ciwrap.explain.over_time import with_growth, with_stopped
from ciwrap.explain.swapped import say_swapped
from ciwrap.model import ErrorBound, Evidence, VariableId, VariableResult, Verdict
from ciwrap.model.variable_result import Cause, Explanation
from ciwrap.report.cause_words import cause_words
from ciwrap.report.place_words import box_words

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDES = ("golden", "new")


def point(iteration: int, size: float, *, atol: float, rank: int | None = None) -> VariableResult:
    """One array of which one element moved by this."""
    is_beyond = size > atol
    return VariableResult(
        "u",
        Verdict.DIFFER if is_beyond else Verdict.MATCH,
        iteration=iteration,
        rank=rank,
        evidence=Evidence.DATA,
        bound=ErrorBound(atol),
        element_count=10,
        differing_count=int(is_beyond),
        max_abs_difference=size,
        max_bound_share=size / atol if atol else None,
    )


def grown(iterations: Sequence[int], sizes: Sequence[float], atol: float) -> Explanation | None:
    pairs = zip(iterations, sizes, strict=True)
    found = with_growth([point(at, float(size), atol=atol) for at, size in pairs])
    told = [(one, cause) for one in found for cause in one.explanations]
    assert len(told) <= 1
    if not told:
        return None
    ((one, cause),) = told
    first = next(at for at, size in zip(iterations, sizes, strict=True) if size > atol)
    assert (one.iteration, cause.cause) == (first, Cause.GROWS)
    return cause


@pytest.mark.parametrize("seed", range(20))
def test_growth_is_found_with_its_start_and_its_rate(seed: int) -> None:
    """NumPy's own fit of the planted points is the judge of the rate."""
    random = np.random.default_rng(seed)
    count, step = int(random.integers(9, 40)), int(random.integers(1, 50))
    iterations = step * np.arange(1, count + 1)
    start = int(random.integers(0, count - 7))
    after = np.arange(count - start)
    if is_bent := bool(seed % 2):
        curve = 1e-8 * np.exp(random.uniform(0.3, 1.5) * after)
    else:
        curve = 1e-8 * (1 + random.uniform(0.5, 3.0) * after)
    sizes = np.concatenate([random.uniform(0, 1e-12, start), curve])
    sizes *= random.uniform(0.99, 1.01, count)
    atol = float(np.sqrt(sizes[start] * sizes[-1]))
    told = grown(iterations.tolist(), sizes.tolist(), atol)
    assert told is not None
    began, rate, beyond = told.values
    assert told.words == ("exponential" if is_bent else "share")
    assert beyond == iterations[np.argmax(sizes > atol)]
    # Noise may look like the first point of a curve, or the first point like noise.
    assert abs(began - iterations[start]) <= 2 * step
    some = iterations >= began
    if is_bent:
        wanted = np.log(2) / np.polyfit(iterations[some], np.log(sizes[some]), 1)[0]
    else:
        wanted = np.polyfit(iterations[some], sizes[some] / atol, 1)[0]
    assert rate == pytest.approx(wanted, rel=1e-6)
    assert told.held_count == int(some.sum())
    assert told.differing_count == int(np.count_nonzero(sizes))
    words = cause_words(told, SIDES, "x")
    assert f"from iteration {began:.0f} on" in words
    assert f"exceeds the bound from iteration {beyond:.0f} on" in words


def test_no_growth_is_seen_in_random_differences() -> None:
    claimed = {}
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        count = int(random.integers(2, 30))
        kinds = (
            10 ** random.uniform(-9, -3, count),
            random.uniform(0, 1e-5, count),
            np.where(np.arange(count) < count // 2, 1e-9, 1e-4) * random.random(count),
            np.abs(random.normal(size=count)) * 1e-6,
            np.full(count, 2e-6),
        )
        sizes = kinds[seed % 5]
        found = grown(list(range(count)), sizes.tolist(), float(random.choice([0.0, 1e-6])))
        if found is not None:
            claimed[seed] = (sizes, found)
    assert claimed == {}


def test_growth_is_more_than_a_little_and_never_goes_back() -> None:
    little = 1e-6 * (1 + 0.1 * np.arange(12))
    assert grown(range(12), little.tolist(), 5e-7) is None
    back = 1e-7 * 2.0 ** np.arange(12)
    back[[6, 7]] = back[[7, 6]]
    assert grown(range(12), back.tolist(), 1e-6) is None


def test_growth_stands_behind_what_explains_it_and_before_a_wider_bound() -> None:
    def causes(*told: Cause) -> list[Cause]:
        some = [point(at, 1e-7 * 2.0**at, atol=1e-6) for at in range(12)]
        explanations = tuple(Explanation(cause, 1, 1, values=(1.0,)) for cause in told)
        some[4] = replace(some[4], explanations=explanations)
        return [one.cause for one in with_growth(some)[4].explanations]

    assert causes() == [Cause.GROWS]
    assert causes(Cause.WIDER_BOUND) == [Cause.GROWS]
    assert causes(Cause.SIGN_FLIPPED) == [Cause.SIGN_FLIPPED, Cause.GROWS]
    assert causes(Cause.CONSTANT_FACTOR) == [Cause.GROWS, Cause.CONSTANT_FACTOR]


def test_growth_needs_every_number() -> None:
    some = [point(at, 1e-7 * 2.0**at, atol=1e-6) for at in range(12)]
    assert any(one.explanations for one in with_growth(some))
    lost = replace(some[7], verdict=Verdict.NOT_COMPARABLE, max_bound_share=None, reason="gone")
    undecided = replace(some[5], verdict=Verdict.UNDECIDED, max_bound_share=None)
    for hidden in (lost, undecided):
        others = [hidden if one.iteration == hidden.iteration else one for one in some]
        assert not any(one.explanations for one in with_growth(others))


def every(names: str, iterations: Sequence[int], ranks: Sequence[int]) -> set[VariableId]:
    return {VariableId(name, at, rank) for name in names for at in iterations for rank in ranks}


def stopped(golden: set[VariableId], gone: set[VariableId]) -> str:
    results = [
        VariableResult(
            one.name, Verdict.NOT_COMPARABLE, iteration=one.iteration, rank=one.rank, reason="gone"
        )
        if one in gone
        else VariableResult(
            one.name,
            Verdict.MATCH,
            iteration=one.iteration,
            rank=one.rank,
            element_count=3,
            differing_count=0,
        )
        for one in golden
    ]
    found = with_stopped(results, gone, ())
    told = [(one.id, cause) for one in found for cause in one.explanations]
    assert len(told) <= 1
    if not told:
        return ""
    ((identity, cause),) = told
    assert cause.differing_count == len(gone)
    assert identity in gone
    return cause_words(cause, SIDES, "x")


def test_what_stopped_is_named() -> None:
    golden = every("huv", range(10, 60, 10), range(3))
    cases = {
        "rank 2 wrote nothing from iteration 40 on (6 arrays)": every("huv", (40, 50), (2,)),
        "ranks 0 and 2 wrote nothing from iteration 50 on (6 arrays)": every("huv", (50,), (0, 2)),
        "u was not written from iteration 20 on (12 arrays)": every(
            "u", range(20, 60, 10), range(3)
        ),
        "h, v were not written (30 arrays)": every("hv", range(10, 60, 10), range(3)),
        "nothing was written from iteration 30 on (27 arrays)": every(
            "huv", (30, 40, 50), range(3)
        ),
    }
    for words, gone in cases.items():
        assert stopped(golden, gone) == words
    # One of them is lost besides, so that the rest of it is told with its count.
    gone = every("huv", (40, 50), (2,)) | {VariableId("v", 10, 0)}
    assert stopped(golden, gone).endswith("from iteration 40 on (6 of 7 missing arrays)")
    # Of two that end, the one that explains more.
    gone = every("huv", (40, 50), (2,)) | every("huv", (50,), (0,))
    assert stopped(golden, gone).startswith("rank 2 wrote nothing from iteration 40 on (6 of 9 ")
    assert stopped(golden, {VariableId("v", 20, 1)}) == ""
    assert stopped(golden, set()) == ""
    assert stopped(golden, golden) == ""


def test_what_is_missing_at_random_stopped_nowhere() -> None:
    """What is told is so: all of the rank or variable is gone from there on."""
    golden = every("huv", range(6), range(4))
    ordered = sorted(golden, key=lambda one: one.sort_key)
    told = 0
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        share = random.uniform(0.05, 0.6)
        gone = {one for one in ordered if random.random() < share}
        words = stopped(golden, gone)
        told += bool(words)
        if words.startswith("rank "):
            rank, at = int(words[5]), words.partition("iteration ")[2]
            rest = {one for one in golden if one.rank == rank and one.iteration >= int(at[0])}
            assert rest <= gone
    assert told <= 0.2 * examples(500)


def swapped(golden: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> dict[str, str]:
    """Which variable holds which other one's numbers, as is told; NumPy compares."""

    def result(name: str, reference: str) -> VariableResult:
        moved = np.abs(new[name] - golden[reference])
        count = int(np.count_nonzero(moved > 1e-6))
        return VariableResult(
            name,
            Verdict.DIFFER if count else Verdict.MATCH,
            dtype="<f8",
            shape=new[name].shape,
            element_count=new[name].size,
            differing_count=count,
            max_abs_difference=float(moved.max()),
            byte_count=new[name].nbytes,
        )

    results = [result(name, name) for name in golden]
    say_swapped(results, lambda one, other: result(one.name, other.name))
    found = {}
    for one in results:
        for cause in one.explanations:
            assert cause.cause is Cause.SWAPPED
            assert cause.held_count == cause.differing_count == one.differing_count
            found[one.name] = cause.words or ""
    return found


@pytest.mark.parametrize("length", [2, 3, 5])
def test_variables_in_each_others_place_are_named(length: int) -> None:
    random = np.random.default_rng(length)
    golden = {name: random.normal(size=30) for name in "abcdef"}
    new = {name: values + random.uniform(-1e-9, 1e-9, 30) for name, values in golden.items()}
    names = list("abcdef")[-length:]
    sources = dict(zip(names, names[1:] + names[:1], strict=True))
    noisy = {name: new[source] for name, source in sources.items()}
    changed = {"a": new["a"] + random.normal(size=30)}
    assert swapped(golden, {**new, **changed, **noisy}) == sources
    # A copy is no exchange: nobody knows where the other's numbers are.
    assert swapped(golden, {**new, "b": new["c"]}) == {}
    assert swapped(golden, {**new, "b": new["c"], "c": new["c"] + 1}) == {}


def test_no_variables_are_called_swapped_at_random() -> None:
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        golden = {name: random.integers(0, 3, 12) * 1.0 for name in "abcd"}
        new = {name: values.copy() for name, values in golden.items()}
        for values in new.values():
            at = random.choice(12, int(random.integers(1, 9)), replace=False)
            values[at] = random.integers(0, 3, at.size)
        for name, source in swapped(golden, new).items():
            assert np.array_equal(new[name], golden[source])


def found_in(golden: np.ndarray, new: np.ndarray) -> tuple[list[str], str]:
    result = api.compare_arrays(golden, new, atol=1e-6)
    told = [one for one in result.explanations if one.cause is not Cause.WIDER_BOUND]
    return [cause_words(one, SIDES, "x") for one in told], box_words(result)


@pytest.mark.parametrize(
    ("shape", "where", "cause", "place"),
    [
        ((40, 50), np.s_[:, -1], "all in the last column, at the boundary of axis 1", "in [:, 49]"),
        ((40, 50), np.s_[:2], "all in the first 2 rows, at the boundary of axis 0", "in [0:2, :]"),
        (
            (20, 30, 40),
            np.s_[..., -1],
            "all in the last plane of axis 2, at the boundary of axis 2",
            "in [:, :, 39]",
        ),
        ((40, 50), np.s_[:, 17], "", "all in column 17, [:, 17]"),
        ((40, 50), np.s_[20], "", "all in row 20, [20, :]"),
        ((6, 7), np.s_[:, -1], "", "all in the last column, [:, 6]"),
        ((20, 30, 40), np.s_[:, 9], "", "all in plane 9 of axis 1, [:, 9, :]"),
    ],
)
def test_one_row_column_or_face_is_named(
    shape: tuple[int, ...], where: Any, cause: str, place: str
) -> None:
    random = np.random.default_rng(1)
    golden = random.normal(size=shape)
    new = golden.copy()
    new[where] += random.normal(size=new[where].shape)
    causes, said = found_in(golden, new)
    assert causes == ([cause] if cause else [])
    assert said == place


def test_a_round_number_that_was_added_to_one_value_is_told() -> None:
    for seed in range(examples(200)):
        random = np.random.default_rng(seed)
        golden = random.uniform(270, 300, 1000)
        new = golden.copy()
        at = random.choice(1000, 1 + seed % 2, replace=False)
        added = float(random.choice([1.0, 0.5, -0.25, 273.15, 100.0, 1e-3]))
        new[at] += added
        is_short = added != 273.15  # five digits are no round number
        words = [cause for cause in found_in(golden, new)[0] if "=" in cause]
        assert bool(words) == is_short
        assert all(f"new = golden {'-' if added < 0 else '+'} " in one for one in words)


def test_no_round_number_is_seen_in_a_random_difference() -> None:
    for seed in range(examples(500)):
        random = np.random.default_rng(seed)
        kind = ("f8", "f4")[seed % 2]
        # Of float32, three digits of a difference are often next to what rounding leaves.
        golden = (random.normal(3, 100, 200), random.uniform(100, 500, 200))[seed % 2].astype(kind)
        if seed % 3 == 0:
            golden = np.round(golden, 1)  # of round numbers every difference is
        new = golden.copy()
        moved = (10 ** random.uniform(-3, 3), random.uniform(0.1, 1))[seed % 2]
        new[random.integers(200)] += np.dtype(kind).type(moved)
        if seed % 3 == 0:
            new = np.round(new, 1)
        assert not any("+" in one or "- " in one for one in found_in(golden, new)[0])


def test_three_digits_that_are_all_a_type_has_are_no_round_number() -> None:
    """Of float32, a difference between 0.1 and 1 is next to three digits in one of 25 cases."""
    for seed in range(400):
        random = np.random.default_rng(seed)
        golden = random.uniform(100, 500, 50).astype("f4")
        new = golden.copy()
        new[7] += np.float32(random.uniform(0.1, 1))
        assert not any("new = golden" in one for one in found_in(golden, new)[0])


def share_point(
    iteration: int, least: float, most: float, *, rank: int | None = None
) -> VariableResult:
    """One array of a golden without data: a change between two shares, or undecided beyond 1."""
    is_open = most > 1
    return VariableResult(
        "u",
        Verdict.UNDECIDED if is_open else Verdict.MATCH,
        iteration=iteration,
        rank=rank,
        evidence=Evidence.RESIDUES,
        bound=ErrorBound(1e-6),
        element_count=10,
        differing_count=None if is_open else 0,
        suspect_chunks=int(is_open),
        chunk_count=1,
        max_drift_share=None if is_open else most,
        drift_share_from=None if is_open else least,
        drift_share_to=None if is_open else most,
    )


RISE = [(0.0, 0.125), (0.125, 0.25), (0.25, 0.5), (0.5, 0.75), (0.9, 2.0), (0.9, 2.0)]


def rise_of(shares: Sequence[tuple[float, float]]) -> list[tuple[int | None, str]]:
    found = with_growth([share_point(10 * at, *one) for at, one in enumerate(shares)])
    return [
        (one.iteration, cause_words(cause, SIDES, "u"))
        for one in found
        for cause in one.explanations
    ]


def test_a_rise_is_told_where_nobody_knows_the_sizes() -> None:
    (told,) = rise_of(RISE)
    words = (
        "the difference grows: at most 12.5 % of the bound in iteration 0, more than 50 % in"
        " iteration 30, and the blocks may differ from iteration 40 on"
    )
    assert told == (40, words)


@pytest.mark.parametrize(
    "shares",
    [
        [(0.0, 0.125)] * 4 + [(0.9, 2.0)] * 2,  # a jump
        [RISE[0], RISE[3], RISE[0], RISE[3], *RISE[4:]],  # up and down
        [(0.0, 0.9)] * 4 + [(0.9, 2.0)] * 2,  # nothing is known
        RISE[2:],  # too few
        [(0.0, 0.125), (0.0, 0.2), (0.1, 0.3), (0.15, 0.4), (0.9, 2.0)],  # hardly a rise
    ],
)
def test_no_rise_is_claimed_that_may_be_none(shares: list[tuple[float, float]]) -> None:
    assert rise_of(shares) == []
