"""What a command uses: seconds, processor time, and the most memory it held."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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


def used(words: Sequence[str], *, cwd: Path | None = None, code: int | None = 0) -> Used:
    """Runs a command; what it prints on standard output is dropped.

    code: the exit code that it has to end with; None for any. Raises RuntimeError for another one.
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, *words],
        cwd=cwd,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = Used(*json.loads(done.stdout))
    if code not in (None, found.exit_code):
        raise RuntimeError(f"{' '.join(words)} ended with {found.exit_code}, not {code}")
    return found


def in_turns(
    commands: Mapping[str, Sequence[str]], *, cwd: Path, rounds: int
) -> dict[str, list[Used]]:
    """What each command used in each round. Raises RuntimeError if one fails."""
    found: dict[str, list[Used]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, words in commands.items():
            one = used(words, cwd=cwd)
            if turn:  # the first one compiles modules, and fills caches
                found[name].append(one)
    return found


def median_ratio(some: Sequence[Used], others: Sequence[Used], what: str) -> float:
    """The median, over the rounds, of what one command used beside the other. what: `seconds` or
    `cpu_seconds`.
    """
    pairs = zip(some, others, strict=True)
    return statistics.median(getattr(one, what) / getattr(other, what) for one, other in pairs)
