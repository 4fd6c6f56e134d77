"""As far as both of two runs go: iterations that one of them does not reach are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model.coverage import grouped_plural

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableResult


def leave_out_uncommon(
    outcome: Outcome, in_paths: tuple[Container[int | None], Container[int | None]]
) -> list[str]:
    """Counts as ignored what one run has before the other begins or after it ends, and says so.

    An iteration that is lacking in between stays missing. Where the runs have no iteration between
    them in common, nothing is left out. in_paths: the iterations that the paths of each run tell;
    those of them that nobody came to compare count, too.
    """
    ours, theirs = (
        _iterations((*outcome.results, *alone))
        | {key[0] for key, _ in outcome.lost if key[0] is not None and key[0] in told}
        for alone, told in zip((outcome.missing, outcome.extra), in_paths, strict=True)
    )
    if not ours or not theirs:
        return []
    first, last = max(min(ours), min(theirs)), min(max(ours), max(theirs))
    if first > last:
        return []

    def is_within(one: VariableResult) -> bool:
        return one.iteration is None or first <= one.iteration <= last

    gone = [one.id for one in outcome.missing if not is_within(one)]
    new = [one.id for one in outcome.extra if not is_within(one)]
    outcome.missing = [one for one in outcome.missing if is_within(one)]
    outcome.extra = [one for one in outcome.extra if is_within(one)]
    outcome.ignored += gone + new
    outcome.uncommon += len(gone) + len(new)
    outcome.left_out += gone
    if not gone and not new:
        return []
    text = (
        f"left out is what lies beyond iterations {first} to {last}, as far as both runs go"
        f" (--common): {grouped_plural(len(gone), 'variable')} of the first run,"
        f" {grouped_plural(len(new), 'variable')} of the second"
    )
    return [text]


def leave_out_after(outcome: Outcome, ended_in: int) -> list[str]:
    """Counts as ignored what the new run lacks since it was ended in an iteration, and says so.

    Of its processes one may have come less far than the one that diverged.
    """
    last: dict[int | None, int] = {}
    for one in (*outcome.results, *outcome.extra):
        if one.iteration is not None:
            last[one.rank] = max(last.get(one.rank, -1), one.iteration)

    def is_after(one: VariableResult) -> bool:
        reached = min(ended_in - 1, last.get(one.rank, -1))
        return one.iteration is not None and one.iteration > reached

    gone = [one.id for one in outcome.missing if is_after(one)]
    outcome.missing = [one for one in outcome.missing if not is_after(one)]
    outcome.ignored += gone
    outcome.uncommon += len(gone)
    outcome.left_out += gone
    if not gone:
        return []
    text = (
        f"the second run was ended since it diverged in iteration {ended_in}; left out:"
        f" {grouped_plural(len(gone), 'variable')} that it did not come to"
    )
    return [text]


def _iterations(results: Iterable[VariableResult]) -> set[int]:
    return {one.iteration for one in results if one.iteration is not None}
