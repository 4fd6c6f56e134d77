"""What a command uses: seconds, processor time, and the most memory it held."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# A process begins with the peak of the one that starts it (Linux keeps ru_maxrss over exec), so
# the command is started by a small process of its own, and not by a benchmark or a test with
# arrays in its memory.
_STARTER = """\
import json, resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - started
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""


class Used(NamedTuple):
    """cpu_seconds: of the command and its children. peak: the largest of them, in bytes."""

    exit_code: int
    seconds: float
    cpu_seconds: float
    peak: int


def used(words: Sequence[str], *, cwd: Path | None = None) -> Used:
    """Runs a command; what it prints on standard output is dropped."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, *words],
        cwd=cwd,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Used(*json.loads(done.stdout))
