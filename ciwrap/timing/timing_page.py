"""The page of `ciwrap time`: the verdict, the change with its interval, and the times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ciwrap.report.page import environment_rows, page_head, render_page
from ciwrap.report.text import capital, plural, safe_name
from ciwrap.statistics.pairs import TimingVerdict
from ciwrap.timing import wording
from ciwrap.timing.charts import MOST_DOTS, change_plot, sorted_plot, times_plot

if TYPE_CHECKING:
    from ciwrap.timing.document import TimingDocument


def render_timing_html(document: TimingDocument) -> str:
    """The page of a timing, self-contained as that of a comparison is."""
    found = document.comparison
    page = SimpleNamespace(
        title=capital(wording.headline(found)),
        lead=tuple(f"{capital(text)}." for text in wording.explanation(found)),
        hue=_hue(document),
        pairs=plural(found.pairs, "pair"),
        change=change_plot(found),
        times=times_plot(document.sides),
        drawn=f"; the first {MOST_DOTS} pairs are drawn" if found.pairs > MOST_DOTS else "",
        ordered=sorted_plot(document.sides),
        sides=tuple(safe_name(wording.side_text(side), 1000) for side in document.sides),
        figures=tuple(wording.table_of(document)),
        notes=tuple(f"{capital(safe_name(note, 1000))}." for note in wording.notes(document)),
        environment=environment_rows(document.environment),
    )
    head = page_head("time", document.started_at, document.ciwrap_version, document.environment)
    return render_page("timing.html.j2", head, page)


def _hue(document: TimingDocument) -> str:
    """The class that colours the head of the page."""
    verdict = document.comparison.verdict
    if verdict is TimingVerdict.INCONCLUSIVE:
        return "vary"
    is_slower = verdict is TimingVerdict.CHANGED and document.comparison.change > 0
    return "differ" if is_slower else "match"
