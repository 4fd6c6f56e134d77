"""What differences have in common over the iterations of a history: growth, and what stopped."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.late import numpy as np
from ciwrap.model import Verdict
from ciwrap.model.variable_result import MOST_EXPLANATIONS, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.model import VariableId, VariableResult

# Of fewer numbers in a row, chance makes growth too often.
_FEWEST_POINTS = 6
# How many times larger the last one is than the first, and how far one lies off the curve at most,
# as a share of what the curve spans.
_LEAST_GROWTH = 3.0
_MOST_OFF = 0.1
# A longer curve is as good as the best if it is so many times further off at most, or so little.
_AS_GOOD, _GOOD = 2.0, 0.03
# What says how large a difference is, and nothing of where it comes from.
_SIZES = (
    Cause.WIDER_BOUND,
    Cause.NEAR_ZERO,
    Cause.LESS_PRECISE,
    Cause.CONSTANT_OFFSET,
    Cause.CONSTANT_FACTOR,
)


def with_growth(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; the first of a variable whose differences grow over the iterations says so."""
    by_name: dict[str, list[int]] = {}
    for at, one in enumerate(results):
        if one.iteration is not None:
            by_name.setdefault(one.name, []).append(at)
    found = list(results)
    for places in by_name.values():
        bad = [at for at in places if results[at].verdict.is_alarm]
        some = [results[at] for at in places]
        told = (_growth(some) or _rise(some)) if bad else None
        if told is None:
            continue
        at = min(bad, key=lambda one: results[one].id.sort_key)
        # A bound that is somewhat wider would be outgrown as well.
        others = [one for one in results[at].explanations if one.cause is not Cause.WIDER_BOUND]
        first = [one for one in others if one.cause not in _SIZES]
        last = [one for one in others if one.cause in _SIZES]
        causes = (*first, told, *last)[:MOST_EXPLANATIONS]
        found[at] = replace(results[at], explanations=causes)
    return found


def _growth(results: Sequence[VariableResult]) -> Explanation | None:
    """results: of one variable, in all iterations and on all ranks. None unless it is known of each
    by how much it differs.
    """
    if all(one.verdict is not Verdict.DIFFER for one in results):
        return None
    is_exact = any(one.bound is None or one.bound.is_exact for one in results)
    largest: dict[int, float] = {}
    for one in results:
        size = one.max_abs_difference if is_exact else one.max_bound_share
        if one.iteration is None or size is None or not math.isfinite(size):
            return None
        largest[one.iteration] = max(size, largest.get(one.iteration, 0.0))
    iterations = np.array(sorted(largest), dtype=np.float64)
    sizes = np.array([largest[int(at)] for at in iterations])
    curves = [
        (start, *curve)
        for start in range(iterations.size - _FEWEST_POINTS + 1)
        if (curve := _curve(iterations[start:], sizes[start:], is_exact=is_exact)) is not None
    ]
    if not curves:
        return None
    # What lies before the start is noise, and further off the curve than what follows.
    best = min(off for *_, off in curves)
    start, words, rate, _ = next(one for one in curves if one[-1] <= max(_AS_GOOD * best, _GOOD))
    beyond = min(one.id.sort_key for one in results if one.verdict is Verdict.DIFFER)[0]
    return Explanation(
        Cause.GROWS,
        int(iterations.size) - start,
        int(np.count_nonzero(sizes)),
        values=(float(iterations[start]), rate, float(beyond)),
        words=words,
    )


# By so much of the bound a share has to be known to have risen, and in so many iterations of those
# that match.
_LEAST_RISE, _FEWEST_WITHIN = 0.1, 3


def _rise(results: Sequence[VariableResult]) -> Explanation | None:
    """Of a golden without data: what is known of each iteration lies between two shares. They rise
    for sure, through one in between, until a chunk may differ, and never fall.

    results: as for `_growth`.
    """
    shares: dict[int, tuple[float, float]] = {}
    beyond = min((one.iteration or 0 for one in results if one.verdict.is_alarm), default=0)
    for one in results:
        if one.iteration is None or one.verdict is Verdict.NOT_COMPARABLE:
            return None
        if one.iteration < beyond:
            if one.used_interval is None or one.max_bound_share is not None:
                return None
            low, high = shares.get(one.iteration, (0.0, 0.0))
            least, most = one.used_interval
            shares[one.iteration] = max(low, least), max(high, most)
    iterations = sorted(shares)
    if len(shares) < _FEWEST_WITHIN:
        return None
    highest = 0.0
    for at in iterations:
        if shares[at][1] < highest:
            return None
        highest = max(highest, shares[at][0])
    start, middle = iterations[0], max(iterations, key=lambda at: (shares[at][0], -at))
    most, least = shares[start][1], shares[middle][0]
    if least < most + _LEAST_RISE:
        return None
    values = (float(start), most, float(middle), least, float(beyond))
    count = len(iterations)
    return Explanation(Cause.GROWS, count, count, values=values, words="rises")


def _curve(
    iterations: NDArray[np.float64], sizes: NDArray[np.float64], *, is_exact: bool
) -> tuple[str, float, float] | None:
    """What grows along a curve, and the rate: the iterations in which it doubles, or by how much it
    grows in each of them; and how far a point is off. None if it grows along none.
    """
    is_growing = sizes[0] > 0 and bool(np.all(np.diff(sizes) > 0))
    if not is_growing or sizes[-1] < _LEAST_GROWTH * sizes[0]:
        return None
    straight, off = _line(iterations, sizes)
    bent, bent_off = _line(iterations, np.log(sizes))
    if min(off, bent_off) > _MOST_OFF:
        return None
    if bent_off < off:
        return "exponential", math.log(2) / bent, bent_off
    return ("difference" if is_exact else "share"), straight, off


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """The slope of the line of least squares, and how far a point is off, as a share of the span
    of y.
    """
    slope, height = np.polyfit(x, y, 1)
    off = np.max(np.abs(slope * x + height - y))
    return float(slope), float(off / np.ptp(y))


class _Stop(Struct, frozen=True):
    """subject: what stopped; '' for all of the run. first: the first iteration without it; None if
    it was never there. gone: what is missing of it.
    """

    subject: str
    first: int | None
    gone: frozenset[VariableId]


def with_stopped(
    results: Sequence[VariableResult],
    gone: Collection[VariableId],
    extra: Collection[VariableId],
) -> list[VariableResult]:
    """The results; the first of those that are missing says what was not written any more, where a
    rank, a variable or the whole run ends.

    gone: variables of the reference that the other side does not have. extra: the other way round.
    """
    lost = frozenset(gone)
    every = frozenset(one.id for one in results) - frozenset(extra)
    causes = {told.cause for one in results for told in one.explanations}
    # What is dealt out among fewer ranks is there.
    if not lost or not lost < every or Cause.ACROSS_RANKS in causes:
        return list(results)
    stops = [
        *(_Stop("", first, lost) for first in _ends(every, lost)),
        *_stops(every, lost, attrgetter("rank"), _ranks_text),
        *_stops(every, lost, attrgetter("name"), ", ".join),
    ]
    told = max(stops, key=lambda one: len(one.gone), default=None)
    if told is None:
        return list(results)
    values = () if told.first is None else (float(told.first),)
    cause = Explanation(Cause.STOPPED, len(told.gone), len(lost), values=values, words=told.subject)
    first = min(told.gone, key=attrgetter("sort_key"))
    return [replace(one, explanations=(cause,)) if one.id == first else one for one in results]


def _stops(
    every: frozenset[VariableId],
    gone: frozenset[VariableId],
    kind_of: Callable[[VariableId], Any],
    words: Callable[[list[Any]], str],
) -> Iterator[_Stop]:
    """The ranks, or the variables, that end; those together that end in the same iteration.

    kind_of: the rank, or the name, of a variable; what has none does not count.
    """
    every_by, gone_by = _by(every, kind_of), _by(gone, kind_of)
    ends: dict[int | None, list[Any]] = {}
    for kind in sorted(gone_by):
        if len(every_by) > 1 and len(every_by[kind]) > 1:
            for first in _ends(every_by[kind], gone_by[kind]):
                ends.setdefault(first, []).append(kind)
    for first, kinds in ends.items():
        yield _Stop(words(kinds), first, frozenset().union(*(gone_by[kind] for kind in kinds)))


def _by(
    some: frozenset[VariableId], kind_of: Callable[[VariableId], Any]
) -> dict[Any, frozenset[VariableId]]:
    kinds = {kind_of(one) for one in some} - {None}
    return {kind: frozenset(one for one in some if kind_of(one) == kind) for kind in kinds}


def _ends(every: frozenset[VariableId], gone: frozenset[VariableId]) -> Iterator[int | None]:
    """The iteration from which on all is missing; None if it is missing everywhere; nothing if
    some of it is there in between.
    """
    if gone == every:
        yield None
        return
    iterations = [one.iteration for one in gone if one.iteration is not None]
    first = min(iterations, default=0)
    rest = {one for one in every if one.iteration is not None and one.iteration >= first}
    if rest == gone:
        yield first


def _ranks_text(ranks: list[int]) -> str:
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
