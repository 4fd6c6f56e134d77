"""What the processes of a command have mapped, seen by looking at them while they run."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ciwrap.errors import NotAvailableError
from ciwrap.hidden import secrets_of
from ciwrap.processes import all_processes
from ciwrap.snapshot.kinds import kind_of_variable
from ciwrap.snapshot.maps import MappedFile, mapped_files
from ciwrap.snapshot.objects import look_at
from ciwrap.structs import Struct, field

_FIRST_SECONDS = 0.025
# Looks come rarer the longer a command runs, but never later than a tenth of its time so far.
_EARLY_SECONDS = 0.4
_MOST_SECONDS = 5.0
_SHARE = 0.1
_MOST_PROCESSES = 512
_MOST_BYTES = 4 << 20


class SeenProgram(Struct):
    """What was seen of the processes of a command.

    files: mapped executable, with what tells that they are still the same. variables: the values
    that processes had, for each name of the allow-list. secrets: what must not be told of them.
    """

    files: dict[MappedFile, tuple[str, int, int, int, int]] = field(default_factory=dict)
    variables: dict[str, set[str]] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        """Without the secrets, which would stand in a traceback or a log."""
        return f"SeenProgram({len(self.files)} files)"


class _Process(Struct):
    """What was seen of one process. program: the file that it runs."""

    program: MappedFile | None = None
    text: bytes = b""
    files: dict[MappedFile, tuple[str, int, int, int, int]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Without the secrets, as above."""
        return f"_Process({self.program})"


class ProgramWatcher:
    """Looks at the process trees of commands, at 0.025, 0.075, 0.175, 0.375 ... s, then rarer.

    Processes and libraries that live shorter than that may be missed: what is told is what was
    seen. One watcher may watch several commands, also at the same time. is_thorough: looks all the
    time, for whoever does not care what that costs the command.
    """

    def __init__(self, *, is_thorough: bool = False) -> None:
        self.is_thorough = is_thorough
        self._lock = threading.Lock()
        self._processes: dict[tuple[int, int], _Process] = {}
        self._shells: dict[int, tuple[str, int] | None] = {}

    @property
    def seen(self) -> SeenProgram:
        """What was seen so far, of all processes together."""
        found = SeenProgram()
        with self._lock:
            for (pid, _), process in self._processes.items():
                program = process.program
                if program and (program.path, program.inode) == self._shells.get(pid):
                    continue  # the shell that starts a command is no part of it
                found.files.update(process.files)
                found.secrets.update(process.secrets)
                for name, value in process.variables.items():
                    found.variables.setdefault(name, set()).add(value)
        return found

    def watch(self, pid: int, *, has_shell: bool = False) -> Watch:
        """Watches a command, as long as the context lasts. pid: leader of a session of its own.
        has_shell: whether that is the shell that runs the command.
        """
        if has_shell:
            self._shells[pid] = _mapped_at(Path(os.path.realpath("/bin/sh")))
        return Watch(self, pid)

    def look(self, pid: int) -> None:
        """Looks once at a process and all that belong to it."""
        with self._lock:
            for member in members_of(pid):
                self._look_at(member)

    def _look_at(self, member: tuple[int, int]) -> None:
        pid = member[0]
        text = _read(f"/proc/{pid}/maps")
        process = self._processes.get(member, _Process())
        mapped = [] if not text or process.text == text else mapped_files(text)
        if not mapped:
            return
        if mapped[0] != process.program:
            # A shell or a launcher that has become another program is part of it no longer.
            process = _Process(mapped[0])
            environment = _environment(_read(f"/proc/{pid}/environ"))
            process.secrets = secrets_of(environment)
            process.variables = {
                name: value for name, value in environment.items() if kind_of_variable(name)
            }
        process.text = text
        new = [file for file in mapped if file not in process.files]
        process.files.update(look_at(new, root=f"/proc/{pid}/root"))
        self._processes[member] = process


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
        begun = time.monotonic()
        pause = _FIRST_SECONDS
        while not self._ended.wait(pause):
            self._watcher.look(self._pid)
            if not self._watcher.is_thorough:
                early = min(2 * pause, _EARLY_SECONDS)
                pause = min(max(early, _SHARE * (time.monotonic() - begun)), _MOST_SECONDS)


def members_of(leader: int) -> list[tuple[int, int]]:
    """The process, its descendants and all others of its session; each with its start time.

    Descendants alone would miss those whose parent has ended, and the session those that have
    made one of their own, as launchers of MPI do.
    """
    processes = {one.pid: one for one in all_processes()}
    found = {one.pid for one in processes.values() if one.session == leader}
    found.add(leader)
    is_new = True
    while is_new:
        more = {one.pid for one in processes.values() if one.parent in found} - found
        found |= more
        is_new = bool(more)
    there = [(pid, processes[pid].started) for pid in sorted(found) if pid in processes]
    return there[:_MOST_PROCESSES]


def _mapped_at(path: Path) -> tuple[str, int] | None:
    """What tells a file as one that is mapped."""
    try:
        return str(path), path.stat().st_ino
    except OSError:
        return None


def can_look() -> bool:
    """Whether this system says what processes have loaded. macOS does not."""
    return os.access("/proc/self/maps", os.R_OK)


def require_look() -> None:
    """Raises NotAvailableError where it does not."""
    if not can_look():
        raise NotAvailableError(
            "this system does not say what processes have loaded",
            remedy="take and compare snapshots of programs on Linux",
        )


def own_program() -> SeenProgram:
    """What this very process has mapped; variables are those of the process."""
    files = look_at(mapped_files(_read("/proc/self/maps")))
    return SeenProgram(files, own_variables())


def own_variables() -> dict[str, set[str]]:
    """The variables of the allow-list that this process has."""
    return {name: {value} for name, value in os.environ.items() if kind_of_variable(name)}


def _environment(block: bytes) -> dict[str, str]:
    """The variables of a process, as the kernel has them."""
    entries = (entry.partition(b"=") for entry in block.split(b"\0"))
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, is_set, value in entries
        if is_set
    }


def _read(path: str) -> bytes:
    """What the kernel says; nothing of a process that is gone, or not ours."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            return stream.read(_MOST_BYTES)
    except OSError:
        return b""
