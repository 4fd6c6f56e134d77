"""What `ciwrap time` found, as a job summary in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.markdown import escaped
from ciwrap.report.text import capital
from ciwrap.timing import wording

if TYPE_CHECKING:
    from ciwrap.timing.document import TimingDocument


def timing_summary(document: TimingDocument) -> str:
    """GitHub-flavoured Markdown: the verdict, what it rests on, a table of both sides."""
    lines = [f"## ciwrap time: {wording.headline(document.comparison)}", ""]
    lines += [f"{capital(line)}." for line in wording.explanation(document.comparison)]
    lines += [""]
    lines += [f"- {escaped(wording.side_text(side))}" for side in document.sides]
    lines += ["", "| | A | B |", "|---|---|---|"]
    lines += [f"| {name} | {a} | {b} |" for name, a, b in wording.table_of(document)]
    lines += ["", *(f"{capital(note)}." for note in wording.notes(document))]
    return "\n".join(lines).rstrip() + "\n"
