"""The line of progress: silent at first, on terminals only, and gone afterwards."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from ciwrap.base.progress import NO_PROGRESS
from ciwrap.cli import terminal as progress


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


def test_slow_work_shows_a_line_with_a_harmless_label(terminal: Terminal, monkeypatch: Any) -> None:
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


def test_a_bar_is_never_full_in_its_first_frame(terminal: Terminal, monkeypatch: Any) -> None:
    """What takes its time after the last byte is not told by the bytes."""
    clock = iter((0.0, 0.5, 9.0, 9.0))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.progress_bar() as bar:
        bar.begin("checking", 100)
        bar.advance(60)
        bar.advance(40)
        bar.end()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_a_bar_fits_the_terminal(terminal: Terminal, monkeypatch: Any, width: int) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", str(width))
    with progress.progress_bar() as bar:
        bar.begin("runs/2026-11/reference : runs/2026-11/mine", 100 << 20)
        bar.advance(50 << 20)
        bar.end()
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).split("\n")
    frames = [line for part in lines for line in part.split("\r") if line.strip()]
    assert len(set(frames)) == 1
    assert "50.0 MiB of 100.0 MiB, 50 %" in frames[0]
    assert len(frames[0].rstrip()) <= width


def test_a_bar_is_taken_away_when_work_fails(terminal: Terminal, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)

    def fail() -> None:
        with progress.progress_bar() as bar:
            bar.begin("checking", None)
            bar.advance(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue().endswith("\r\x1b[K")
