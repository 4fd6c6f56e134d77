"""What `ciwrap variability` prints, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import safe_text
from ciwrap.variability import wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.variability.document import MapSummary, VariabilityDocument


def lines_of(document: VariabilityDocument) -> Iterator[str]:
    """All of it. Names from files are made harmless."""
    yield wording.headline(document)
    for one in document.maps:
        yield from _map_lines(one)
    for prediction in document.predictions:
        yield from (f"  {line}" for line in wording.prediction_notes(prediction))
    for repeats in document.repeats:
        yield from (f"  {line}" for line in wording.repeats_notes(repeats))
    for number, candidate in enumerate(document.candidates, 1):
        yield f"  {number}. {wording.candidate_words(candidate)}"
    if document.map_file is not None:
        yield ""
        yield f"wrote {safe_text(document.map_file)}"


def _map_lines(one: MapSummary) -> Iterator[str]:
    words = wording.category_words(one.category)
    yield ""
    if words:
        yield words
    yield from (f"  {line}" for line in wording.fit_words(one))
    yield ""
    rows = wording.score_rows(one)
    width = max(len(row[0]) for row in rows)
    middle = max(len(row[1]) for row in rows)
    yield f"  {'error on unseen configurations':<{width}}"
    for name, error, remark in rows:
        yield f"    {name:<{width}}  {error:>{middle}}  {remark}".rstrip()
    yield ""
    yield "  what drives it"
    yield from (f"    {line}" for line in wording.influence_words(one))
    yield from (f"  note: {safe_text(note)}" for note in one.notes)
