"""Two runs on a terminal: what diverges first, then one line for each variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import Verdict
from ciwrap.report.console import Text
from ciwrap.report.findings import beyond_text
from ciwrap.report.text import safe_name, short_number
from ciwrap.report.where import where_text
from ciwrap.report.wording import variable_is_exact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CheckResult, VariableResult


def is_over_checkpoints(check: CheckResult) -> bool:
    """Whether some variable is there more than once, so that it can be told of in one line."""
    return len({one.name for one in check.variables}) < len(check.variables)


def differing_lines(check: CheckResult) -> Iterator[tuple[str, Text]]:
    """A line for each name whose numbers differ anywhere: name and words, the first to diverge
    first.
    """
    groups: dict[str, list[VariableResult]] = {}
    for one in sorted(check.variables, key=lambda one: one.id.sort_key):
        groups.setdefault(one.name, []).append(one)
    differing = {
        name: [one for one in group if one.verdict is Verdict.DIFFER]
        for name, group in groups.items()
    }
    for name in sorted(
        (name for name, bad in differing.items() if bad),
        key=lambda name: differing[name][0].id.sort_key,
    ):
        yield name, Text(_words(groups[name], differing[name]))


def _words(group: list[VariableResult], bad: list[VariableResult]) -> str:
    where = where_text([one for one in group if one.verdict is not Verdict.NOT_COMPARABLE])
    where = where or _place(bad[0])
    parts = [where] if where else []
    counts = [one.differing_count for one in bad]
    if None not in counts:
        total = sum(one.compared_elements for one in bad)
        there = "there " if where else ""
        parts.append(f"{there}{sum(filter(None, counts)):,} of {total:,} elements differ")
    return "; ".join([*parts, *_how_much(bad)])


def _how_much(bad: list[VariableResult]) -> Iterator[str]:
    """The largest difference, and where it is."""
    shares = [one for one in bad if one.max_bound_share is not None and not variable_is_exact(one)]
    if shares:
        worst = max(shares, key=lambda one: one.max_bound_share or 0.0)
        yield f"up to {beyond_text(worst.max_bound_share or 0.0)}{_in_brackets(worst)}"
        return
    sized = [one for one in bad if one.max_abs_difference]
    if sized:
        worst = max(sized, key=lambda one: one.max_abs_difference or 0.0)
        yield (
            f"largest |difference| {short_number(worst.max_abs_difference or 0.0)}"
            f"{_in_brackets(worst)}"
        )


def _place(variable: VariableResult) -> str:
    """`iter 3 / rank 1`; nothing for a variable that is there once."""
    if variable.iteration is None and variable.rank is None:
        return ""
    return safe_name(variable.id.text).removesuffix(f" / {safe_name(variable.name)}")


def _in_brackets(variable: VariableResult) -> str:
    place = _place(variable)
    return f" ({place})" if place else ""
