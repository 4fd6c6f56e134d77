"""What the processes of a command have mapped, seen by looking at them while they run."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ciwrap.snapshot.kinds import kind_of_variable
from ciwrap.snapshot.maps import MappedFile, mapped_files
from ciwrap.snapshot.objects import look_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FIRST_SECONDS = 0.025
# Each look comes twice as late as the one before, but what a long run loads late is seen, too.
_MOST_SECONDS = 5.0
_MOST_PROCESSES = 512
_MOST_BYTES = 4 << 20


@dataclass(slots=True)
class SeenProgram:
    """What was seen of the processes of a command.

    files: mapped executable, with what tells that they are still the same. variables: the values
    that processes had, for each name of the allow-list. processes: how many were looked at.
    """

    files: dict[MappedFile, tuple[str, int, int, int, int]] = field(default_factory=dict)
    variables: dict[str, set[str]] = field(default_factory=dict)
    processes: set[tuple[int, int]] = field(default_factory=set)


class ProgramWatcher:
    """Looks at the process trees of commands, at 0.025, 0.05, 0.1 ... s and then every 5 s.

    Processes and libraries that live shorter than that may be missed: what is told is what was
    seen. One watcher may watch several commands, also at the same time.
    """

    def __init__(self) -> None:
        self.seen = SeenProgram()
        self._lock = threading.Lock()
        self._texts: dict[int, bytes] = {}

    def watch(self, pid: int) -> Watch:
        """Watches a command, as long as the context lasts. pid: leader of a session of its own."""
        return Watch(self, pid)

    def look(self, pid: int) -> None:
        """Looks once at a process and all that belong to it."""
        with self._lock:
            for one, started in members_of(pid):
                self._look_at(one, started)

    def _look_at(self, pid: int, started: int) -> None:
        text = _read(f"/proc/{pid}/maps")
        if not text or self._texts.get(pid) == text:
            return
        self._texts[pid] = text
        self.seen.processes.add((pid, started))
        new = [file for file in mapped_files(text) if file not in self.seen.files]
        self.seen.files.update(look_at(new, root=f"/proc/{pid}/root"))
        for name, value in _variables(_read(f"/proc/{pid}/environ")):
            self.seen.variables.setdefault(name, set()).add(value)


class Watch:
    """Watching one command, in a thread of its own."""

    def __init__(self, watcher: ProgramWatcher, pid: int) -> None:
        self._watcher, self._pid = watcher, pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        pause = _FIRST_SECONDS
        while not self._ended.wait(pause):
            self._watcher.look(self._pid)
            pause = min(2 * pause, _MOST_SECONDS)


def members_of(leader: int) -> list[tuple[int, int]]:
    """The process, its descendants and all others of its session; each with its start time.

    Descendants alone would miss those whose parent has ended, and the session those that have
    made one of their own, as launchers of MPI do.
    """
    parents: dict[int, tuple[int, int, int]] = {}
    for pid in _all_processes():
        stat = parse_stat(_read(f"/proc/{pid}/stat"))
        if stat is not None:
            parents[pid] = stat
    found = {pid for pid, (_, session, _) in parents.items() if session == leader}
    found.add(leader)
    is_new = True
    while is_new:
        more = {pid for pid, (parent, _, _) in parents.items() if parent in found} - found
        found |= more
        is_new = bool(more)
    return [(pid, parents[pid][2]) for pid in sorted(found) if pid in parents][:_MOST_PROCESSES]


def parse_stat(data: bytes) -> tuple[int, int, int] | None:
    """Parent, session and start time of /proc/PID/stat; None for what is no such line.

    The name in it may hold anything, brackets and line breaks too. The format: proc_pid_stat(5).
    """
    words = data.rpartition(b")")[2].split()
    if len(words) < 20 or not all(word.isdigit() for word in (words[1], words[3], words[19])):
        return None
    return int(words[1]), int(words[3]), int(words[19])


def own_program() -> SeenProgram:
    """What this very process has mapped; variables are those of the process."""
    files = look_at(mapped_files(_read("/proc/self/maps")))
    kept = {name: {value} for name, value in os.environ.items() if kind_of_variable(name)}
    return SeenProgram(files, kept, {(os.getpid(), 0)})


def _variables(block: bytes) -> Iterator[tuple[str, str]]:
    """Those variables of a process that are of the allow-list."""
    for entry in block.split(b"\0"):
        name, is_set, value = entry.partition(b"=")
        text = name.decode("utf-8", "replace")
        if is_set and kind_of_variable(text) is not None:
            yield text, value.decode("utf-8", "replace")


def _all_processes() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _read(path: str) -> bytes:
    """What the kernel says; nothing of a process that is gone, or not ours."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            return stream.read(_MOST_BYTES)
    except OSError:
        return b""
