"""Writes what the renderers make: one result, many files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.base.errors import WriteFailedError
from ciwrap.report.document import write_text

if TYPE_CHECKING:
    import os

    from ciwrap.model import RunResult


def write_report(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes the page of a result, atomically; `-` is stdout. Raises WriteFailedError."""
    from ciwrap.report.page import render_html

    write_text(render_html(run), str(path), "the report")


def write_markdown(
    path: str | os.PathLike[str], run: RunResult, link: str = "", picture: str = ""
) -> None:
    """Writes the job summary; see `write_report`. link, picture: where both will lie."""
    from ciwrap.report.markdown import render_markdown

    write_text(render_markdown(run, link, picture), str(path), "the summary")


def write_picture(path: str | os.PathLike[str], run: RunResult) -> bool:
    """Writes the picture of the first difference; whether there is one. Raises WriteFailedError."""
    from pathlib import Path

    from ciwrap.report.page import picture_file

    found = picture_file(run)
    if found is None:
        return False
    try:
        Path(path).write_bytes(found.png)
    except OSError as error:
        words = f"the picture could not be written: {error.strerror or error}"
        raise WriteFailedError(words, file=Path(path)) from error
    return True


def write_junit(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes JUnit XML; see `write_report`."""
    from ciwrap.report.exports import render_junit

    write_text(render_junit(run), str(path), "the JUnit file")


def write_sarif(path: str | os.PathLike[str], run: RunResult) -> None:
    """Writes SARIF 2.1.0; see `write_report`."""
    from ciwrap.report.exports import render_sarif

    write_text(render_sarif(run), str(path), "the SARIF file")
