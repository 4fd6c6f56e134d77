"""What is said of the results that reports are made of, in all outputs, word for word."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import report_cases as cases
import report_scenarios as scenarios
from expected_texts import page_text
from msgspec.structs import replace

from ciwrap.report.console import make_console
from ciwrap.report.markdown import render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.terminal import render

if TYPE_CHECKING:
    from pathlib import Path

    from expected_texts import Expected

    from ciwrap.model import RunResult

LARGE = {"long_run"}
MADE = {
    **{name: make for name, make in cases.CASES.items() if name not in LARGE},
    **{name: getattr(scenarios, name) for name in ("field", "not_comparable")},
}


def of_any_machine(run: RunResult) -> RunResult:
    """The result without times, the engine that read the files, and where it was made."""
    checks = [replace(one, seconds=0.5, engine="pread", bytes_read=4096) for one in run.checks]
    return replace(run, checks=tuple(checks), seconds=1.0, environment={})


def in_terminal(run: RunResult, *, verbose: bool = False) -> str:
    stream = io.StringIO()
    render(run, make_console(stream, color=False), verbose=verbose)
    return stream.getvalue()


@pytest.mark.parametrize("name", MADE)
def test_outputs(name: str, tmp_path: Path, expected_text: Expected) -> None:
    """In the terminal, the same with --verbose, as Markdown, and the words of the page."""
    folder = tmp_path / name
    folder.parent.mkdir(exist_ok=True)
    MADE[name](folder)
    run = of_any_machine(scenarios.read(folder / "result.json"))
    expected_text(in_terminal(run))
    expected_text(in_terminal(run, verbose=True))
    expected_text(render_markdown(run))
    expected_text(page_text(render_html(run)))
