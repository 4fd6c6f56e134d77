"""The page of `ciwrap variability`: slices of each map, how good it is, and what drives it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ciwrap.model.coverage import grouped_plural
from ciwrap.report.page import environment_rows, page_head, render_page
from ciwrap.report.text import capital, safe_name
from ciwrap.variability import charts, wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.variability.document import MapSummary, Slice, VariabilityDocument

MOST_MAPS = 20
_MOST_TERMS = 10


def render_variability_html(document: VariabilityDocument) -> str:
    """The page of what `fit` or `plan` found, self-contained as that of a comparison is."""
    repeats = document.repeats[0] if document.repeats else None
    page = SimpleNamespace(
        title=capital(wording.headline(document)),
        lead=tuple(_lead(document)),
        hue="vary",
        counts=tuple(_counts(document)),
        maps=tuple(_card(one) for one in document.maps[:MOST_MAPS]),
        maps_left_out=max(0, len(document.maps) - MOST_MAPS),
        curve=None if repeats is None else charts.curve_chart(repeats.curve),
        candidates=tuple(wording.candidate_words(one) for one in document.candidates),
        environment=environment_rows(document.environment),
    )
    head = page_head(
        f"variability {document.did}",
        document.started_at,
        document.ciwrap_version,
        document.environment,
    )
    return render_page("variability.html.j2", head, page)


def _lead(document: VariabilityDocument) -> Iterator[str]:
    if len(document.maps) == 1:
        yield from (f"{capital(text)}." for text in wording.fit_words(document.maps[0]))
    for repeats in document.repeats:
        yield from (f"{capital(text)}." for text in wording.repeats_notes(repeats))


def _counts(document: VariabilityDocument) -> Iterator[tuple[str, str]]:
    """Number and what is counted."""
    if document.maps:
        yield _counted(sum(one.configurations for one in document.maps), "configuration")
        yield _counted(sum(one.runs for one in document.maps), "run")
        yield _counted(len(document.maps[0].parameters), "parameter")
    if len(document.maps) > 1:
        yield _counted(len(document.maps), "map")


def _counted(count: int, noun: str) -> tuple[str, str]:
    number, _, words = grouped_plural(count, noun).partition(" ")
    return number, words


def _card(one: MapSummary) -> SimpleNamespace:
    terms = () if one.influences is None else one.influences.terms[:_MOST_TERMS]
    return SimpleNamespace(
        name=wording.category_words(one.category),
        say=tuple(f"{capital(text)}." for text in wording.fit_words(one)),
        slices=tuple(
            SimpleNamespace(caption=_caption(each), chart=charts.slice_chart(each, one))
            for each in one.slices
        ),
        colours=charts.colour_bar(one),
        scatter=charts.scatter_chart(one),
        band="" if one.factor is None else f"a factor of {one.factor:.2f}, which holds 90 %",
        scores=charts.score_chart(one),
        rows=tuple(wording.score_rows(one)),
        influences=(
            None if one.influences is None else charts.influence_chart(terms, one.influences.left)
        ),
        influence_words=tuple(f"{text}." for text in wording.influence_words(one)),
        notes=tuple(f"{capital(safe_name(note, 1000))}." for note in one.notes),
    )


def _caption(one: Slice) -> str:
    return wording.configuration_words(one.held, {}) if one.held else "all of it"
