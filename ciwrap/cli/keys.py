"""One key of a terminal, without Enter."""

from __future__ import annotations

import os
import sys

import click

_LONGEST = 32
_END_OF_INPUT = "\x04"


def has_keys() -> bool:
    """Whether single keys can be read: from a terminal that is more than a typewriter."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") != "dumb"


def ask_key(question: str) -> str:
    """Prints a question and waits for a key; "\\n" for Enter, "" for one that is no character.

    What was typed before the question counts for nothing: it was of something else. Raises
    click.Abort at the end of input; KeyboardInterrupt.
    """
    # Not every system has them.
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSAFLUSH)
        click.echo(f"{question}: ", nl=False)
        data = os.read(descriptor, _LONGEST)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    key = data.decode("utf-8", "replace").replace("\r", "\n")
    # An arrow is several bytes, and so is what was pasted.
    key = key if len(key) == 1 else ""
    click.echo(key if key.isprintable() else "")
    if not data or key == _END_OF_INPUT:
        raise click.Abort
    return key
