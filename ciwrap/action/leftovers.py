"""Runs a program and ends what it leaves behind, so that later steps of the job are undisturbed.

This keeps accidents away, not malice: while a program runs, it can read what other processes of its
user have in their environment (docs/explanation/security.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from ciwrap.processes import all_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_MOST_ROUNDS = 1000


def run_to_the_end(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Runs a program to its end, and ends all processes that it leaves; its exit code.

    Its output goes to stdout, whatever it was printed to.
    """
    _adopt_orphans()
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
    )
    _end_children()
    return done.returncode


def _adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave behind."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: nothing is adopted
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_children() -> None:
    """Ends all children, and those that come to us as their parents end."""
    for _ in range(_MOST_ROUNDS):
        children = _children()
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    own = os.getpid()
    return [one.pid for one in all_processes() if one.parent == own and one.state != "X"]
