"""What `ciwrap trend` found, as a job summary in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.markdown import escaped
from ciwrap.report.text import plural
from ciwrap.trend.wording import (
    bars,
    change_lines,
    share_percent,
    slope_words,
    walk_words,
)

if TYPE_CHECKING:
    from ciwrap.trend.document import TrendDocument

_MOST = 20


def trend_summary(document: TrendDocument) -> str:
    """GitHub-flavoured Markdown: warnings first, then the variables that use most."""
    count = plural(len(document.warnings), "warning") if document.warnings else "nothing to warn of"
    lines = [f"## ciwrap trend: {count} in {plural(document.results, 'result')}"]
    lines += [""] if document.warnings else []
    lines += [f"- {escaped(warning, 600)}" for warning in document.warnings[:_MOST]]
    if len(document.warnings) > _MOST:
        lines.append(f"- ... and {len(document.warnings) - _MOST} more")
    if document.shares:
        lines += ["", "| variable | share of the bound | most | | tenths of the bound, by result |"]
        lines += ["|---|---|---|---|---|"]
    lines += [
        f"| {escaped(f'{one.check}: {one.variable}')} | {share_percent(one.newest)}"
        f"{' (last known)' if one.is_lost else ''}"
        f" | {share_percent(max(point.share for point in one.points))} | {slope_words(one)}"
        f" | `{bars(one)}` |"
        for one in document.shares[:_MOST]
    ]
    rest = len(document.shares) - _MOST
    if rest > 0:
        lines += ["", f"... and {plural(rest, 'more variable')} with no larger share."]
    for one in document.times[:_MOST]:
        lines += ["", f"{escaped(one.command)} on {escaped(one.cpu)}:", ""]
        lines += [f"- {escaped(line)}" for line in change_lines(one)]
    lines += [""] if document.goldens else []
    lines += [f"- {escaped(walk_words(walk), 600)}" for walk in document.goldens[:_MOST]]
    return "\n".join(lines).rstrip() + "\n"
