"""Two runs on a terminal: what diverges first, then one line for each variable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.model import Verdict
from ciwrap.model.coverage import grouped_plural
from ciwrap.report.console import Text
from ciwrap.report.findings import beyond_text
from ciwrap.report.sizes import variable_is_exact, without_share_text
from ciwrap.report.text import rounded_down, safe_name, share_text, size_text
from ciwrap.report.where import where_listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CheckResult, VariableResult


def is_over_checkpoints(check: CheckResult) -> bool:
    """Whether some variable is there more than once, so that it can be told of in one line."""
    return len({one.name for one in check.variables}) < len(check.variables)


def is_of_runs(check: CheckResult) -> bool:
    """Whether two runs of several checkpoints were compared."""
    return check.history is not None and is_over_checkpoints(check)


def alarm_lines(check: CheckResult) -> Iterator[tuple[Verdict, str, Text]]:
    """A line for each name that differs or is suspect anywhere: verdict, name and words, the first
    to diverge first.
    """
    groups: dict[str, list[VariableResult]] = {}
    for one in sorted(check.variables, key=lambda one: one.id.sort_key):
        groups.setdefault(one.name, []).append(one)
    alarms = {
        name: [one for one in group if one.verdict.is_alarm] for name, group in groups.items()
    }
    for name in sorted(
        (name for name, bad in alarms.items() if bad),
        key=lambda name: alarms[name][0].id.sort_key,
    ):
        bad = alarms[name]
        verdict = Verdict.worst(one.verdict for one in bad)
        where = where_listed(check, groups[name], alarms_only=True)
        yield verdict, name, Text(_words(where, bad))


def _words(where: str, bad: list[VariableResult]) -> str:
    """where: when and on which ranks, '' for one checkpoint."""
    where = where or _place(bad[0])
    parts = [where] if where else []
    there = " there" if where else ""
    total = sum(one.compared_elements for one in bad)
    least, most = (sum(counts) for counts in zip(*map(_differing, bad), strict=True))
    if least == most:
        verb = "differs" if least == 1 else "differ"
        parts.append(f"{least:,} of {grouped_plural(total, 'element')} {verb}{there}")
    elif least:
        parts.append(f"from {least:,} to {most:,} of {total:,} elements differ{there}")
    else:
        suspect = sum(one.suspect_chunks or 0 for one in bad)
        chunks = sum(one.chunk_count or 0 for one in bad)
        verb = "is" if suspect == 1 else "are"
        parts.append(f"{suspect:,} of {grouped_plural(chunks, 'chunk')} {verb} suspect{there}")
    return "; ".join([*parts, *_how_much(bad)])


def _differing(variable: VariableResult) -> tuple[int, int]:
    """How many elements differ, at least and at most."""
    if variable.differing_count is not None:
        return variable.differing_count, variable.differing_count
    return variable.differing_count_at_least or 0, variable.differing_count_at_most or 0


def _how_much(bad: list[VariableResult]) -> Iterator[str]:
    """The largest difference, and where it is."""
    shares = [one for one in bad if one.max_bound_share is not None and not variable_is_exact(one)]
    if shares:
        worst = max(shares, key=lambda one: one.max_bound_share or 0.0)
        share = worst.max_bound_share or 0.0
        if math.isinf(share):
            yield f"{without_share_text(worst)}{_in_brackets(worst)}"
        else:
            yield f"up to {beyond_text(share)}{_in_brackets(worst)}"
        return
    sized = [one for one in bad if one.max_abs_difference]
    if sized:
        worst = max(sized, key=lambda one: one.max_abs_difference or 0.0)
        yield (
            f"largest |difference| {size_text(worst.max_abs_difference or 0.0)}"
            f"{_in_brackets(worst)}"
        )
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
