"""Other processes, as the kernel tells of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator


class Process(Struct, frozen=True):
    """state: a letter, as proc_pid_stat(5) has it. started: in ticks since the system was."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it is more than an entry that nobody has taken away yet."""
        return self.state not in "ZX"


def all_processes() -> Iterator[Process]:
    """Those that there are; none where the system has no /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found = parse_stat(path.read_bytes())
        except OSError:  # it has ended meanwhile
            continue
        if found is not None:
            yield found


def parse_stat(data: bytes) -> Process | None:
    """What /proc/PID/stat says; None for what is no such line.

    The name in it may hold anything, brackets and line breaks too. The format: proc_pid_stat(5).
    """
    pid, words = data.partition(b" ")[0], data.rpartition(b")")[2].split()
    numbers = [pid, *words[1:4], *words[19:20]]
    if len(numbers) < 5 or not all(word.isdigit() for word in numbers):
        return None
    return Process(int(pid), words[0].decode("ascii", "replace"), *map(int, numbers[1:]))


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True
