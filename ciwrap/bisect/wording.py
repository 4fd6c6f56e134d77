"""What `ciwrap bisect` found, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import plural, safe_name
from ciwrap.report.timelines import divergence_text

if TYPE_CHECKING:
    from ciwrap.bisect.document import BisectDocument
    from ciwrap.model import RunResult


def found_text(document: BisectDocument) -> str:
    """`1a2b3c4d5e moved iter 20 / rank 1 / vy`."""
    assert document.found is not None
    assert document.result is not None
    return f"{document.found.name[:10]} moved {_what_moved(document.result)}"


def not_found_text(document: BisectDocument) -> str:
    """Why there is no answer."""
    return (
        f"not found: one of these {plural(len(document.candidates), 'commit')} moved a number, and"
        " the rest cannot be compared"
    )


def _what_moved(result: RunResult) -> str:
    """The first variable whose numbers differ, where, and by how much."""
    for check in result.checks:
        divergence = check.first_numeric_divergence
        if divergence is not None:
            return f"{safe_name(divergence.variable.id.text)}{divergence_text(divergence)}"
    for check in result.checks:
        if check.verdict.is_statistical and not check.verdict.is_good:
            return f"the statistics of {safe_name(check.name)}"
    return "a number"
