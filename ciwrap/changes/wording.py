"""Changes in words: lines for the terminal and annotations, a table for summaries."""

from __future__ import annotations

from math import isinf
from typing import TYPE_CHECKING

from ciwrap.report.markdown import escaped
from ciwrap.report.text import percent_text, plural, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.changes.document import Change

MOST_ROWS = 100
_LONGEST = 300
WIDER = "WIDER"
UNSURE = "?"
# Changes whose words say what they are of.
_SPEAKING = ("variable", "check", "ignore", "values")


def title(changes: Sequence[Change]) -> str:
    """`2 changes in what is checked, 1 of them checks less`."""
    if not changes:
        return "nothing has changed in what configuration and goldens check"
    text = f"{plural(len(changes), 'change')} in what is checked"
    less = sum(change.wider is True for change in changes)
    if less:
        text += f", {less} of them {'checks' if less == 1 else 'check'} less"
    unsure = sum(change.wider is None for change in changes)
    return f"{text}, {unsure} of them may check less" if unsure else text


def mark_of(change: Change) -> str:
    """What stands before a change that checks less, or may; '' otherwise."""
    return {True: WIDER, None: UNSURE, False: ""}[change.wider]


def line_of(change: Change) -> str:
    """`mesh: temperature: bound atol=1e-9 rtol=0 -> atol=10 rtol=0`."""
    parts = [one for one in (change.check, change.variable) if one is not None]
    what = "" if change.what in _SPEAKING else f"{change.what}: "
    return safe_name(": ".join([*parts, what + change.text + _more(change)]), _LONGEST * 2)


def _more(change: Change) -> str:
    """What else is known: of how many checkpoints, who and why, by how much."""
    parts = [] if change.count == 1 else [f"{change.count} checkpoints"]
    if change.share is not None:
        parts.append(_moved_by(change.share))
    elif change.who is not None and change.replaced:
        parts.append("how far they moved is not kept")
    if change.who is not None:
        parts.append(f"accepted by {change.who}")
    if change.why is not None:
        parts.append(f"because: {change.why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _moved_by(share: float) -> str:
    """By how many of the old bounds numbers moved at most: `by at most 3.2 times the old bounds`.
    No number of bounds of 0 is enough, and a number that became NaN has no distance.
    """
    if isinf(share):
        return "by more than any multiple of the old bounds"
    how = f"{percent_text(share)} of" if share <= 1 else f"{share:.3g} times"
    return f"by at most {how} the old bounds"


def markdown_table(changes: Sequence[Change]) -> str:
    """The changes for a job summary or a comment, less checks first; '' if there are none."""
    if not changes:
        return ""
    lines = [f"### What is checked: {title(changes)}", ""]
    lines += ["| | check | variable | change |", "|---|---|---|---|"]
    lines += list(_rows(changes[:MOST_ROWS]))
    if len(changes) > MOST_ROWS:
        lines += ["", f"+{len(changes) - MOST_ROWS} more"]
    return "\n".join(lines) + "\n"


def _rows(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        mark = mark_of(change) and f"**{mark_of(change)}**"
        names = [escaped(one or "", 80) for one in (change.check, change.variable)]
        text = escaped(f"{change.what}: {change.text}{_more(change)}", _LONGEST)
        yield f"| {mark} | {names[0]} | {names[1]} | {text} |"
