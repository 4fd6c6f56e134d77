"""Ends a command whose ciwrap was killed by what nobody can catch.

SIGKILL (`kill -9`, the kernel's own where memory runs out) leaves no time to end the command, which
would go on and write over what the next call puts there. So a shell waits beside each command for
one line; where its pipe is closed without that line, ciwrap is gone, and the shell kills the
command's process group. A command that has just begun, and of which the shell was not told yet,
goes on. Nothing runs between fork and exec, where threads make that unsafe, and no
program but the system's own shell is needed.
"""

from __future__ import annotations

import contextlib
import subprocess

_SHELL = "/bin/sh"
# `read` fails at the end of the pipe. The first line is the group: without it there is no command.
_WAITS = 'read -r group && { read -r over || kill -s KILL -- "-$group"; }'


class Guard:
    """The shell that waits, until the end of a `with`. Begun before the command, so that none is
    ever without one, but where there is no shell, as in some images of containers. Raises OSError
    if it cannot be started.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        # In a session of its own: Ctrl-C is for ciwrap, which ends the command and then the guard.
        with contextlib.suppress(FileNotFoundError):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _WAITS],
                cwd="/",
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def watch(self, group: int) -> None:
        """Says which process group is to end with this process."""
        self._say(f"{group}\n")

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *raised: object) -> None:
        """Ends the guard, and nothing else."""
        self._say("over\n")
        if self._shell is not None:
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.wait()

    def _say(self, line: str) -> None:
        if self._shell is None:
            return
        assert self._shell.stdin is not None
        # Somebody may have killed the guard; the command is none the worse for it.
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(line.encode())
