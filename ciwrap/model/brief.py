"""Results of thousands of variables that do not match: a few say all, the others little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model.variable_result import worst_of
from ciwrap.model.verdict import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.model.rules import VariableId
    from ciwrap.model.variable_result import VariableResult

# Of up to so many variables that do not match, each says all that is known of it.
MOST_WHOLE = 1000


def brief(one: VariableResult) -> VariableResult:
    """The result without histograms, ranges and samples, and with one differing element."""
    return replace(
        one,
        first_differences=one.first_differences[:1],
        suspect_ranges=(),
        bound_share_histogram=None,
        drift_histogram=None,
        details=None,
    )


def with_brief_ones(results: Iterable[VariableResult]) -> list[VariableResult]:
    """The results, as `BriefResults` would leave them."""
    found = list(results)
    BriefResults(found).catch_up()
    return found


class BriefResults:
    """Keeps a growing list of results small: of more than `MOST_WHOLE` that do not match, all but
    the first and the worst of each name become brief, and of more names than half of that, those of
    the first names in the alphabet.

    Which ones these are does not depend on the order in which they come, nor on how often and
    over which parts of the list this is done. Results are only added at the end.
    """

    def __init__(self, results: list[VariableResult]) -> None:
        self._results = results
        self._seen = 0
        self._bad_count = 0
        self._whole: set[int] = set()  # places of results that do not match and say all
        self._best: dict[str, tuple[int, int]] = {}  # of each name, places of first and worst

    def catch_up(self) -> None:
        """Looks at what was added since the last call."""
        for at in range(self._seen, len(self._results)):
            one = self._results[at]
            if one.verdict is not Verdict.MATCH:
                self._bad_count += 1
                self._whole.add(at)
                first, worst = self._best.get(one.name, (at, at))
                self._best[one.name] = (self._earlier(first, at), self._worse(worst, at))
        self._seen = len(self._results)
        if self._bad_count <= MOST_WHOLE:
            return
        names = sorted(self._best)[: MOST_WHOLE // 2]
        kept = {at for name in names for at in self._best[name]}
        for at in self._whole - kept:
            self._results[at] = brief(self._results[at])
        self._whole &= kept

    def _earlier(self, one: int, other: int) -> int:
        return min(one, other, key=lambda at: self._results[at].id.sort_key)

    def _worse(self, one: int, other: int) -> int:
        worst = worst_of((self._results[one], self._results[other]))
        return one if worst is self._results[one] else other

    @property
    def whole_ones(self) -> set[VariableId] | None:
        """What does not match and says all; None if everything does."""
        if self._bad_count <= MOST_WHOLE:
            return None
        return {self._results[at].id for at in self._whole}
