"""Writing what the renderers make: one result, many files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.document import write_text

if TYPE_CHECKING:
    import os

    from ciwrap.model import RunResult
    from ciwrap.model.repeat_result import RepeatResult


def write_report(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes the page of a result, atomically; `-` is stdout. Raises WriteFailedError."""
    from ciwrap.report.html import render_html

    write_text(render_html(run), str(path), "the report")


def write_repeat_report(path: str | os.PathLike[str], result: RepeatResult) -> None:
    """Writes the page of repeated runs; see `write_report`."""
    from ciwrap.report.repeat_page import render_repeat_html

    write_text(render_repeat_html(result), str(path), "the report")


def write_markdown(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes the job summary; see `write_report`."""
    from ciwrap.report.markdown import render_markdown

    write_text(render_markdown(run), str(path), "the summary")


def write_junit(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes JUnit XML; see `write_report`."""
    from ciwrap.report.junit import render_junit

    write_text(render_junit(run), str(path), "the JUnit file")


def write_sarif(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes SARIF 2.1.0; see `write_report`."""
    from ciwrap.report.sarif import render_sarif

    write_text(render_sarif(run), str(path), "the SARIF file")
