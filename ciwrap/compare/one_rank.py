"""Whether a variable differs on one of several ranks alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.details import MOST_EXPLANATIONS, Cause, Explanation
from ciwrap.model import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.model import VariableResult

# Of two ranks, one is half of all.
_FEWEST_RANKS = 3


def with_one_rank(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; the first of a variable that differs on one rank alone is told so."""
    by_name: dict[str, list[int]] = {}
    for at, one in enumerate(results):
        if one.rank is not None:
            by_name.setdefault(one.name, []).append(at)
    found = list(results)
    for places in by_name.values():
        ranks = {results[at].rank for at in places}
        bad = [at for at in places if results[at].verdict.is_alarm]
        hit = {results[at].rank for at in bad}
        if len(ranks) < _FEWEST_RANKS or len(hit) != 1:
            continue
        # Of what is only suspect, or could not be compared, nobody knows on which rank it differs.
        known = {results[at].verdict for at in places}
        if known != {Verdict.MATCH, Verdict.DIFFER}:
            continue
        at = min(bad, key=lambda one: results[one].id.sort_key)
        (rank,) = hit
        count = results[at].differing_count or results[at].element_count or 0
        told = Explanation(
            Cause.ONE_RANK, count, count, values=(float(rank or 0), float(len(ranks)))
        )
        causes = (*results[at].explanations[: MOST_EXPLANATIONS - 1], told)
        found[at] = replace(results[at], explanations=causes)
    return found
