"""The progress bar: silent at first, on terminals only, and gone afterwards."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from ciwrap.cli import progress
from ciwrap.progress import NO_PROGRESS


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: Any) -> Terminal:
    stream = Terminal()
    # Not sys.stderr itself: pytest puts its own there between a fixture and its test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_no_terminal_no_bar(monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO()))
    with progress.progress_bar() as bar:
        assert bar is NO_PROGRESS


def test_quick_work_shows_nothing(terminal: Terminal) -> None:
    with progress.progress_bar() as bar:
        bar.begin("checking", 100)
        bar.advance(100)
        bar.end()
    assert terminal.getvalue() == ""


def test_slow_work_shows_a_bar_with_a_harmless_label(terminal: Terminal, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    with progress.progress_bar() as bar:
        for _ in range(2):
            bar.begin("checking [x]\x07\u202e", 100)
            bar.advance(50)
            bar.advance(50)
            bar.end()
    shown = terminal.getvalue()
    assert "checking [x]" in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown


def test_a_bar_is_taken_away_when_work_fails(terminal: Terminal, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)

    def fail() -> None:
        with progress.progress_bar() as bar:
            bar.begin("checking", None)
            bar.advance(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    # The cursor is shown again.
    assert "\x1b[?25h" in terminal.getvalue()
