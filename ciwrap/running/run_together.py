"""Running several commands at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ciwrap.running.run_command import run_command

if TYPE_CHECKING:
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
    stop = threading.Event()
    with ThreadPoolExecutor(len(commands)) as pool:
        futures = [pool.submit(run_command, one, is_shown=is_shown, stop=stop) for one in commands]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            stop.set()
            raise
