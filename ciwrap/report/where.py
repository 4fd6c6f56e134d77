"""When and on which ranks a variable does not match, in words, and as a timeline on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ciwrap.model import CheckResult, Divergence, DivergenceKind, VariableResult, Verdict
from ciwrap.model.variable_result import PointState, Timeline, TimelinePoint, Trend
from ciwrap.report.text import counts_words, index_text, name_in_text, plural, safe_name
from ciwrap.report.words import element_share_text, sides_of, variable_is_exact

_MOST_RANKS = 6
_MOST_STAGES = 3


def by_name(results: Iterable[VariableResult]) -> dict[str, list[VariableResult]]:
    """The results of each variable, in the order in which they come."""
    found: dict[str, list[VariableResult]] = {}
    for one in results:
        found.setdefault(one.name, []).append(one)
    return found


def where_listed(
    check: CheckResult, results: Sequence[VariableResult], *, alarms_only: bool = False
) -> str:
    """As `where_text`; of a check that does not list what matches, or that was not compared to its
    end, nothing is said of how many there are.
    """
    if check.unlisted is None and not _has_ended_early(check):
        return where_text(results, alarms_only=alarms_only)
    bad = _bad(results, alarms_only=alarms_only)
    hit, ranks = _iterations(bad), _ranks(bad)
    words = [f"in {len(hit)} iterations, first in {hit[0]}"] if len(hit) > 1 else []
    words += [f"on {len(ranks)} ranks"] if len(ranks) > 1 else []
    return ", ".join(words)


def _has_ended_early(check: CheckResult) -> bool:
    return check.history is not None and check.history.not_compared_checkpoints > 0


def where_text(results: Sequence[VariableResult], *, alarms_only: bool = False) -> str:
    """Of one variable over iterations and ranks: `from iteration 2 on rank 3, from 4 on all 8
    ranks`; nothing if it matches, or if there is one checkpoint only.

    alarms_only: tell where numbers differ or may differ. What was not compared is then counted
    among all checkpoints, as one where that is not known.
    """
    bad = _bad(results, alarms_only=alarms_only)
    if len(results) < 2 or not bad:
        return ""
    iterations, hit, ranks = _iterations(results), _iterations(bad), _ranks(results)
    ranks_at: dict[int, set[int]] = {iteration: set() for iteration in hit}
    for one in bad:
        if one.iteration is not None and one.rank is not None:
            ranks_at[one.iteration].add(one.rank)
    if len(ranks) > 1 and len(set(map(frozenset, ranks_at.values()))) > 1:
        return _growing(results, ranks_at, iterations, ranks)
    words, hit_ranks = [_when(iterations, hit)], _ranks(bad)
    if len(ranks) > 1 and hit_ranks:
        words.append(f"{_on_these(ranks, hit_ranks)}{' only' if len(hit_ranks) == 1 else ''}")
    return ", ".join(word for word in words if word)


def _bad(results: Sequence[VariableResult], *, alarms_only: bool) -> list[VariableResult]:
    return [
        one
        for one in results
        if (one.verdict.is_alarm if alarms_only else one.verdict is not Verdict.MATCH)
    ]


def extent_words(check: CheckResult) -> str:
    """`3 of 7 variables, at 140 of 200 iterations, on 64 of 64 ranks`: of what does not match.

    Where something else makes the check not comparable, a file that was not read, the words say
    what became of the variables.
    """
    bad = [one for one in check.variables if one.verdict is not Verdict.MATCH]
    names = {one.name for one in check.variables}
    if not bad:
        each = "the variable" if len(names) == 1 else f"all {len(names):,} variables"
        match = "matches" if len(names) == 1 else "match"
        return f"{each} that could be compared {match}, and not everything could be"
    compared = "compared " if _has_ended_early(check) else ""
    verdicts = _verdicts_of_names(bad)
    bad_count = len(by_name(bad))
    parts = [f"{bad_count:,} of {plural(len(names), 'variable')}"]
    if len(verdicts) > 1:
        match = "does not match" if bad_count == 1 else "do not match"
        parts[0] += f" {match} ({counts_words(verdicts)})"
    for preposition, noun, of in (("at", "iteration", _iterations), ("on", "rank", _ranks)):
        every, hit = of(check.variables), of(bad)
        if len(every) > 1 and hit:
            parts.append(f"{preposition} {len(hit):,} of {plural(len(every), compared + noun)}")
    words = ", ".join(parts)
    if all(one.verdict is not check.verdict for one in bad):
        which = f"{next(iter(verdicts)).words}: " if len(verdicts) == 1 else ""
        return f"not everything could be compared; {which}{words}"
    return words


def _verdicts_of_names(bad: Sequence[VariableResult]) -> Counter[Verdict]:
    """How many names have each verdict, the worst of a name. What differs is counted apart from
    what was not compared: a difference that was found elsewhere is not hidden by that.
    """
    found: Counter[Verdict] = Counter()
    for some in by_name(bad).values():
        for is_alarm in (True, False):
            of_kind = [one.verdict for one in some if one.verdict.is_alarm is is_alarm]
            if of_kind:
                found[Verdict.worst(of_kind)] += 1
    return found


def _iterations(results: Iterable[VariableResult]) -> list[int]:
    return sorted({one.iteration for one in results if one.iteration is not None})


def _ranks(results: Iterable[VariableResult]) -> list[int]:
    return sorted({one.rank for one in results if one.rank is not None})


def _when(iterations: Sequence[int], hit: Sequence[int]) -> str:
    if not hit:
        return ""
    if len(hit) == 1:
        return f"in iteration {hit[0]} only" if len(iterations) > 1 else ""
    if hit == iterations:
        return "in both iterations" if len(hit) == 2 else f"in all {len(hit)} iterations"
    if hit == [iteration for iteration in iterations if iteration >= hit[0]]:
        return f"from iteration {hit[0]} on"
    return f"in {len(hit)} of {len(iterations)} iterations, first in {hit[0]}"


def _rank_list(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    parts: list[str] = []
    at = 0
    while at < len(ranks):
        end = at
        while end + 1 < len(ranks) and ranks[end + 1] == ranks[end] + 1:
            end += 1
        # Two neighbours are no range.
        whole = [f"{ranks[at]} to {ranks[end]}"] if end - at > 1 else map(str, ranks[at : end + 1])
        parts += whole
        at = end + 1
    said = ", ".join(parts[:_MOST_RANKS])
    return f"ranks {said} and more" if len(parts) > _MOST_RANKS else f"ranks {said}"


def _growing(
    results: Sequence[VariableResult],
    ranks_at: dict[int, set[int]],
    iterations: Sequence[int],
    ranks: Sequence[int],
) -> str:
    """Where other ranks are hit in other iterations."""
    hit = sorted(ranks_at)
    first = hit[0]
    after = [one for one in iterations if one >= first]
    known_at: dict[int, set[int]] = {}
    for one in results:
        if one.iteration is not None and one.rank is not None:
            known_at.setdefault(one.iteration, set()).add(one.rank)
    begun: set[int] = set()
    stages: list[tuple[int, list[int]]] = []
    for iteration in after:
        now = ranks_at.get(iteration, set())
        if not begun & known_at.get(iteration, set()) <= now:
            # Some rank matches again: its beginning would say too much.
            everywhere = sorted(set().union(*ranks_at.values()))
            return (
                f"in {len(hit)} of {len(iterations)} iterations, first in {first} on"
                f" {_rank_list(sorted(ranks_at[first]))}; on {len(everywhere)} of"
                f" {len(ranks)} ranks in all"
            )
        if now - begun:
            begun |= now
            stages.append((iteration, sorted(begun)))
    said = [
        f"from {'iteration ' if number == 0 else ''}{iteration} {_on_these(ranks, hit_ranks)}"
        for number, (iteration, hit_ranks) in enumerate(stages)
    ]
    if len(said) > _MOST_STAGES:
        said = [said[0], "spreading", said[-1]]
    return ", ".join(said)


def _on_these(ranks: Sequence[int], hit: Sequence[int]) -> str:
    if len(hit) == len(ranks):
        return "on both ranks" if len(ranks) == 2 else f"on all {len(ranks)} ranks"
    return f"on {_rank_list(hit)}"


_MARKS = {
    PointState.MATCH: ".",
    PointState.WITHIN: "~",
    PointState.UNDECIDED: "!",
    PointState.BEYOND: "#",
    PointState.NOT_COMPARED: "?",
    PointState.FIRST_ONLY: "A",
    PointState.SECOND_ONLY: "B",
}
_LEGEND = {
    ".": ". match",
    "~": "~ within the bound",
    "!": "! undecided",
    "#": "# beyond",
    "?": "? not compared",
    "A": "A only in A",
    "B": "B only in B",
}
_WORDS = {
    Trend.FROM_THE_START: "from the start",
    Trend.JUMPS: "jumps",
    Trend.GROWS: "grows",
    Trend.STEADY: "steady",
    Trend.COMES_AND_GOES: "comes and goes",
}
_WORST = (
    PointState.MATCH,
    PointState.WITHIN,
    PointState.FIRST_ONLY,
    PointState.SECOND_ONLY,
    PointState.UNDECIDED,
    PointState.BEYOND,
    PointState.NOT_COMPARED,
)
_MOST_MARKS = 60
_MOST_LINES = 12
_MOST_NAMES = 8


def divergence_lines(check: CheckResult) -> Iterator[tuple[str, str, str, list[str]]]:
    """The first divergence of a history, and beside it the first one of numbers if that is
    another: what it is called, the variable, what is known of it beside numbers, and lines: what
    its elements have in common, then the first of them.
    """
    if not check.is_history:
        return
    from ciwrap.report.cause_words import cause_lines

    first, numeric = check.first_divergence, check.first_numeric_divergence
    numeric = None if numeric == first else numeric
    for what, one in (("first difference", first), ("first difference of numbers", numeric)):
        if one is not None:
            variable = one.variable
            sides = sides_of(check, variable)
            lines = list(cause_lines(variable, sides))
            said = divergence_text(one, sides)
            is_known = one.kind is DivergenceKind.DIFFER and one.element is not None
            if is_known:
                lines.append(said.strip())
            kind = "" if is_known else said
            yield what, safe_name(variable.id.text), kind, lines


def together_text(check: CheckResult) -> str:
    """The other variables that do not match where the first divergence is; '' if all others do."""
    first = check.first_divergence
    if first is None or not check.is_history:
        return ""
    others = [name for name in check.first_names if name != first.variable.name]
    if not others:
        return ""
    said = ", ".join(name_in_text(name, 60) for name in others[:_MOST_NAMES])
    more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
    iteration = first.variable.iteration
    where = "" if iteration is None else f" in iteration {iteration}"
    return f"also not matching{where}: {said}{more}"


def divergence_text(divergence: Divergence, sides: tuple[str, str]) -> str:
    """` [5, 7]: golden 1.0, new 1.5, 500 x the bound`, or `: not comparable`; where no values are
    known, what digests tell of them: `: undecided, in values [0:512]`.
    """
    if not divergence.kind.is_alarm:
        return f": {divergence.kind.words}"
    element = divergence.element
    if element is None:
        from ciwrap.report.digest_words import moved_place

        is_open = divergence.kind is DivergenceKind.UNDECIDED
        said = (divergence.kind.words if is_open else "", moved_place(divergence.variable))
        known = ", ".join(text for text in said if text)
        return f": {known}" if known else ""
    where = f" {index_text(element.index)}:" if element.index else ""
    golden, new = safe_name(element.golden), safe_name(element.new)
    text = f"{where} {sides[0]} {golden}, {sides[1]} {new}"
    if variable_is_exact(divergence.variable):
        return f"{text}, compared exactly"
    if element.bound_share is not None:
        text += f", {element_share_text(divergence.variable, element)}"
    return text


def timelines_of(check: CheckResult) -> tuple[Timeline, ...]:
    """Of two runs what was found of their histories; of a check, what its results say."""
    if check.history is not None:
        return check.history.timelines
    if not check.is_history:
        return ()
    ordered = sorted(check.variables, key=lambda one: one.id.sort_key)
    named = by_name(one for one in ordered if one.iteration is not None)
    return tuple(
        Timeline(name, tuple(TimelinePoint(one.iteration, one.rank, _state(one)) for one in some))
        for name, some in sorted(named.items())
    )


def _state(variable: VariableResult) -> PointState:
    if variable.verdict is Verdict.MATCH:
        share = variable.max_bound_share
        share = variable.max_drift_share if share is None else share
        return PointState.WITHIN if share else PointState.MATCH
    return {
        Verdict.UNDECIDED: PointState.UNDECIDED,
        Verdict.DIFFER: PointState.BEYOND,
    }.get(variable.verdict, PointState.NOT_COMPARED)


def timeline_lines(timelines: Sequence[Timeline]) -> Iterator[str]:
    """Of the variables that do not match everywhere."""
    told = [
        one
        for one in timelines
        if any(point.state not in (PointState.MATCH, PointState.WITHIN) for point in one.points)
    ]
    if not told:
        return
    numbers = {point.iteration for one in timelines for point in one.points}
    iterations = sorted(number for number in numbers if number is not None)
    if not iterations:
        return
    step = -(-len(iterations) // _MOST_MARKS)
    marks = [_marks(one, iterations, step) for one in told[:_MOST_LINES]]
    legend = [words for mark, words in _LEGEND.items() if any(mark in one for one in marks)]
    yield f"over iterations {iterations[0]} to {iterations[-1]} ({', '.join(legend)})"
    if step > 1:
        yield f"each mark is the worst of {step} iterations"
    width = max(len(safe_name(one.name, 30)) for one in told[:_MOST_LINES])
    for one, drawn in zip(told, marks, strict=False):
        line = f"{safe_name(one.name, 30):{width}}  {drawn}"
        if one.trend is not None:
            line += f"  {_trend_words(one)}"
        yield line.rstrip()
    if len(told) > _MOST_LINES:
        yield f"... and {len(told) - _MOST_LINES} more variables"


def _trend_words(timeline: Timeline) -> str:
    """`jumps between 30 and 600`: iterations may lie far apart, and some may not be compared."""
    assert timeline.trend is not None
    words = _WORDS[timeline.trend]
    compared = (PointState.MATCH, PointState.WITHIN)
    placed = [(one.iteration, one.state) for one in timeline.points if one.iteration is not None]
    beyond = [number for number, state in placed if state is PointState.BEYOND]
    first = min(beyond, default=0)
    before = [number for number, state in placed if state in compared and number < first]
    if timeline.trend is not Trend.JUMPS or not before:
        return words
    return f"{words} between {max(before)} and {first}"


def _marks(timeline: Timeline, iterations: Sequence[int], step: int) -> str:
    """The worst rank of each iteration; of many iterations, the worst of each of their groups; a
    blank where the variable is not there at all.

    iterations: of all variables, so that marks of one iteration stand below one another.
    """
    states: dict[int | None, list[PointState]] = {}
    for point in timeline.points:
        states.setdefault(point.iteration, []).append(point.state)
    found = ""
    for at in range(0, len(iterations), step):
        some = [one for number in iterations[at : at + step] for one in states.get(number, ())]
        found += _MARKS[max(some, key=_WORST.index)] if some else " "
    return found
