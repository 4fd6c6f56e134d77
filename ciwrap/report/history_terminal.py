"""Two runs on a terminal: what diverges first, then one line for each variable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.model import Verdict, worst_of
from ciwrap.report.findings import beyond_text
from ciwrap.report.sizes import variable_is_exact, without_share_text
from ciwrap.report.text import plural, rounded_down, safe_name, share_text, size_text
from ciwrap.report.where import by_name, where_listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CheckResult, VariableResult


def is_over_checkpoints(check: CheckResult) -> bool:
    """Whether some variable is there more than once, so that it can be told of in one line."""
    return len({one.name for one in check.variables}) < len(check.variables)


def is_of_runs(check: CheckResult) -> bool:
    """Whether two runs of several checkpoints were compared."""
    return check.history is not None and is_over_checkpoints(check)


def alarm_lines(check: CheckResult) -> Iterator[tuple[Verdict, str, str]]:
    """A line for each name that differs or is suspect anywhere: verdict, name and words, the first
    to diverge first.
    """
    ordered = sorted(check.variables, key=lambda one: one.id.sort_key)
    groups = by_name(ordered)
    for name, bad in by_name(one for one in ordered if one.verdict.is_alarm).items():
        verdict = Verdict.worst(one.verdict for one in bad)
        where = where_listed(check, groups[name], alarms_only=True)
        yield verdict, name, _words(where, bad)


def _words(where: str, bad: list[VariableResult]) -> str:
    """where: when and on which ranks, '' for one checkpoint."""
    where = where or _place(bad[0])
    parts = [where] if where else []
    there = " there" if where else ""
    total = sum(one.compared_elements for one in bad)
    least, most = (sum(counts) for counts in zip(*map(_differing, bad), strict=True))
    if least == most:
        verb = "differs" if least == 1 else "differ"
        parts.append(f"{least:,} of {plural(total, 'element')} {verb}{there}")
    elif least:
        parts.append(f"from {least:,} to {most:,} of {total:,} elements differ{there}")
    else:
        suspect = sum(one.suspect_chunks or 0 for one in bad)
        chunks = sum(one.chunk_count or 0 for one in bad)
        verb = "is" if suspect == 1 else "are"
        parts.append(f"{suspect:,} of {plural(chunks, 'chunk')} {verb} suspect{there}")
    return "; ".join([*parts, *_how_much(bad)])


def _differing(variable: VariableResult) -> tuple[int, int]:
    """How many elements differ, at least and at most."""
    if variable.differing_count is not None:
        return variable.differing_count, variable.differing_count
    return variable.differing_count_at_least or 0, variable.differing_count_at_most or 0


def _how_much(bad: list[VariableResult]) -> Iterator[str]:
    """The largest difference, and where it is."""
    worst = worst_of(bad)
    share, size = worst.max_bound_share, worst.max_abs_difference
    if share is not None and not variable_is_exact(worst):
        words = without_share_text(worst) if math.isinf(share) else f"up to {beyond_text(share)}"
        yield f"{words}{_in_brackets(worst)}"
        return
    if size:
        yield f"largest |difference| {size_text(size)}{_in_brackets(worst)}"
        return
    # Told by residues: at least so much.
    moved = [m.share_from for one in bad for m in one.moved_elements if m.share_from]
    least = min((one.guaranteed_share or 0.0 for one in bad), default=0.0)
    if moved:
        yield f"an element moved by more than {share_text(rounded_down(max(moved)))}"
    elif least:
        how_far = share_text(rounded_down(least))
        yield f"in each, an element moved by more than {how_far}, or is not a number on one side"


def _place(variable: VariableResult) -> str:
    """`iter 3 / rank 1`; nothing for a variable that is there once."""
    if variable.iteration is None and variable.rank is None:
        return ""
    return safe_name(variable.id.text).removesuffix(f" / {safe_name(variable.name)}")


def _in_brackets(variable: VariableResult) -> str:
    place = _place(variable)
    return f" ({place})" if place else ""
