"""The page of `ciwrap bisect`: the commit, what it moved, and the commits that were looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ciwrap.bisect.wording import found_text, not_found_text
from ciwrap.report import findings
from ciwrap.report.html import cards_of
from ciwrap.report.page import page_head, render_page, time_words
from ciwrap.report.paths import portable, portable_text
from ciwrap.report.text import plural, safe_name, seconds_text

if TYPE_CHECKING:
    from ciwrap.bisect.document import BisectDocument, Step
    from ciwrap.bisect.search import Commit

MOST_STEPS = 200


def render_bisect_html(document: BisectDocument) -> str:
    """The page of a search, self-contained as that of a comparison is."""
    result = None if document.result is None else portable(document.result)
    cards, left_out = (None, "") if result is None else cards_of(result)
    found = document.found
    lead: list[str] = []
    if found is not None and result is not None:
        lead = [f"{_commit(found)}, by {safe_name(found.author, 80)}, {time_words(found.when)}."]
        lead += findings.lead(result)
    page = SimpleNamespace(
        title=not_found_text(document) if found is None else found_text(document),
        lead=tuple(lead),
        hue="not_comparable" if found is None else "differ",
        runs=plural(len(document.steps), "run"),
        ends=f"between {document.good[:10]} (good) and {document.bad[:10]} (bad)",
        candidates=tuple(map(_commit, document.candidates)),
        cards=cards,
        cards_left_out=left_out,
        steps=tuple(_row(step, document) for step in document.steps[:MOST_STEPS]),
        steps_left_out=max(0, len(document.steps) - MOST_STEPS),
    )
    head = page_head("bisect", document.started_at, document.ciwrap_version)
    return render_page("bisect.html.j2", head, page)


def _commit(one: Commit) -> str:
    return f"{one.name[:10]} {safe_name(one.title, 120)}"


def _row(step: Step, document: BisectDocument) -> SimpleNamespace:
    return SimpleNamespace(
        commit=step.commit.name[:10],
        title=safe_name(step.commit.title, 120),
        verdict=step.verdict,
        seconds=seconds_text(step.seconds),
        reason=safe_name(portable_text(step.reason or ""), 300),
        is_found=document.found is not None and step.commit.name == document.found.name,
    )
