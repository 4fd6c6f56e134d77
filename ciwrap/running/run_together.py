"""Running several commands at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ciwrap.running.run_command import end_process, run_command

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from ciwrap.config import CommandSettings
    from ciwrap.model import CommandOutcome


def run_together(
    commands: Sequence[CommandSettings], *, is_shown: bool = True
) -> tuple[CommandOutcome, ...]:
    """Starts all commands at once and waits for all of them; outcomes in the order of commands.

    On Ctrl-C all of them are ended, and KeyboardInterrupt is raised. Raises what `run_command`
    does.
    """
    if len(commands) == 1:
        return (run_command(commands[0], is_shown=is_shown),)
    group = _Group()
    with ThreadPoolExecutor(len(commands)) as pool:
        futures = [
            pool.submit(run_command, one, is_shown=is_shown, on_start=group.add) for one in commands
        ]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            group.end()
            raise


class _Group:
    """Processes that are to end together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._has_ended = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._processes.append(process)
            has_ended = self._has_ended
        if has_ended:
            end_process(process)

    def end(self) -> None:
        with self._lock:
            self._has_ended = True
            processes = list(self._processes)
        for process in processes:
            if process.poll() is None:
                end_process(process)
