"""Recorded runs that are compared with others: how they are started, and what they say."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path

from command_line import call
from online_programs import PYTHON_TEXT
from recorded_runs import need_library

from ciwrap.cli.main import run as run_cli

LAST = re.compile(r"^last step (\d+)$", re.MULTILINE)


def write_program() -> list[str]:
    """Writes a program that records into the working folder; returns the words that start it."""
    need_library()
    Path("walk.py").write_text(PYTHON_TEXT)
    return [sys.executable, "walk.py"]


def ciwrap(*words: str) -> tuple[int, str]:
    """The exit code, and all that was printed; what the program says is in it, too."""
    done = call(*words, folder=Path.cwd(), environment=os.environ.copy())
    return done.returncode, done.stdout + done.stderr


def quietly(*words: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()):
        return run_cli(words)


def last_step(text: str) -> int:
    found = LAST.search(text)
    assert found is not None, text
    return int(found[1])


def against(reference: str, policy: str, *more: str) -> list[str]:
    return ["record", "--against", reference, "--on-divergence", policy, *more]


def record(reference: list[str], output: str = "a", *more: str) -> None:
    code, text = ciwrap("record", "--residues", "-o", output, *more, "--", *reference)
    assert code == 0, text
