"""Variables that hold each other's numbers, as the columns of a table that were exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.explain.difference import CLEAR
from ciwrap.model import Verdict
from ciwrap.model.variable_result import MOST_EXPLANATIONS, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap.model import VariableId, VariableResult

    # Compares a variable's new numbers with another variable of the reference.
    Judge = Callable[[VariableResult, VariableId], VariableResult]

_MOVED = (Verdict.DIFFER, Verdict.UNDECIDED)
# One or two numbers are those of another variable by chance.
_FEWEST_ELEMENTS = 3
# What is looked at: checkpoints, variables of one, and bytes of both sides that are read for it.
_MOST_CHECKPOINTS, _MOST_VARIABLES, _MOST_BYTES = 4, 12, 64 << 20


def say_swapped(results: list[VariableResult], judge: Judge) -> None:
    """Says in the list of the variables of the first checkpoint that hold each other's numbers, all
    of them within the bound, whose numbers they hold.
    """
    checkpoints: dict[object, list[int]] = {}
    for at in sorted(range(len(results)), key=lambda at: results[at].id.time_key):
        one = results[at]
        is_plain = one.text is None and one.aligned_by is None and one.mask is None
        if (
            one.verdict in _MOVED
            and is_plain
            and _count(one) >= _FEWEST_ELEMENTS
            and _is_clear(one)
        ):
            kind = (one.iteration, one.rank, one.dtype, one.shape)
            checkpoints.setdefault(kind, []).append(at)
    several = [places for places in checkpoints.values() if len(places) > 1]
    for places in several[:_MOST_CHECKPOINTS]:
        some = [results[at] for at in places[:_MOST_VARIABLES]]
        cycles = _cycles(_sources(some, judge))
        for at in places[: len(some)]:
            source, length = cycles.get(results[at].name, ("", 0))
            if length:
                results[at] = _told(results[at], source, length)
        if cycles:
            return


def _count(one: VariableResult) -> int:
    """How many elements differ, or may, where digests alone were compared."""
    return (one.element_count or 0) if one.differing_count is None else one.differing_count


def _is_clear(one: VariableResult) -> bool:
    """Whether its numbers moved by more than a bound that may fit by chance."""
    return one.bound is None or one.bound.is_exact or one.known_share > CLEAR


def _sources(some: Sequence[VariableResult], judge: Judge) -> dict[str, str]:
    """Whose numbers each variable holds, as far as it holds those of another one."""
    left = _MOST_BYTES
    found: dict[str, str] = {}
    for mine in some:
        # Exchanged ones differ by the same at most, so that one is tried first.
        free = [one for one in some if one is not mine and one.name not in found.values()]
        others = [one for one in free if _may_hold(mine, one)]
        for other in sorted(others, key=lambda one: _apart(mine, one)):
            left -= 2 * (mine.byte_count or 0)
            if left < 0:
                return found
            if judge(mine, other.id).verdict is Verdict.MATCH:
                found[mine.name] = other.name
                break
    return found


def _may_hold(mine: VariableResult, other: VariableResult) -> bool:
    """Whether the first number that is known of both lets one hold the other's: nothing is read for
    most of those that do not. True where no number is known of both.
    """
    known = {one.index: one.golden for one in other.first_differences}
    for one in mine.first_differences:
        golden = known.get(one.index)
        if golden is None or one.new == golden:
            continue
        try:
            apart, own = (abs(complex(one.new) - complex(text)) for text in (golden, one.golden))
        except ValueError:  # flags and texts
            return False
        if not apart < own / 2:
            return False
    return True


def _apart(one: VariableResult, other: VariableResult) -> float:
    return abs((one.max_abs_difference or 0.0) - (other.max_abs_difference or 0.0))


def _cycles(sources: dict[str, str]) -> dict[str, tuple[str, int]]:
    """The source of each variable that is part of a cycle, and how many it is of."""
    found: dict[str, tuple[str, int]] = {}
    for start in sources:
        path = [start]
        while (at := sources.get(path[-1])) is not None and at not in path:
            path.append(at)
        if at == start:
            found[start] = (sources[start], len(path))
    return found


def _told(one: VariableResult, source: str, length: int) -> VariableResult:
    count = _count(one)
    told = Explanation(Cause.SWAPPED, count, count, values=(float(length),), words=source)
    # What else was found of its numbers is what the other's are beside its own.
    kept = [cause for cause in one.explanations if cause.cause is Cause.ONE_RANK]
    return replace(one, explanations=(told, *kept)[:MOST_EXPLANATIONS])
