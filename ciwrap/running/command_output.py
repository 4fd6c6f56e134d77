"""What a command prints, shown as it comes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time
from typing import IO

_TAIL_BYTES = 4000
_AT_ONCE = 1 << 16
_LOOK_SECONDS = 0.05
_USUAL_PIPE_BYTES = 1 << 16


class CommandOutput:
    """Takes what a command prints, in a thread of its own.

    tail: the end of it. error: why it could no longer be shown; the command does not suffer from
    that, and what it prints is still taken. copy: where it is shown; None for nowhere.
    """

    def __init__(self, stream: IO[bytes], copy: IO[bytes] | None) -> None:
        self.tail = bytearray()
        self.error: OSError | None = None
        self._stream, self._copy = stream, copy
        self._taken = 0
        self._is_over = False  # nobody prints any more
        self._is_left = False  # nobody waits for the thread any more
        self._showing = threading.Lock()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Waits until all that the command printed is shown, and shows no more then.

        seconds: to wait for more. A process that it left behind may hold the pipe open for ever, or
        print for ever: of that, no more is shown than a pipe can hold.
        """
        deadline = time.monotonic() + seconds
        most = self._taken + _capacity(self._stream)
        while self._thread.is_alive():
            self._thread.join(_LOOK_SECONDS)
            is_late = time.monotonic() >= deadline
            if is_late and (self._taken > most or not self._is_busy()):
                break
        self.show_no_more()

    def show_no_more(self) -> None:
        """Nobody writes to where it was shown from now on: a thread that does so while Python ends
        makes it abort.
        """
        with self._showing:
            self._copy = None
            self._is_left = True
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_over and self._is_left:
            self._stream.close()

    def _is_busy(self) -> bool:
        """Whether something is being shown, or is there to be."""
        return self._showing.locked() or self._has_more(0)

    def _has_more(self, milliseconds: int | None) -> bool:
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def _pass_on(self) -> None:
        while not self._is_over:
            self._has_more(None)
            with self._showing:  # from before it is taken: what is taken will have been shown
                self._is_over = not self._take()
                self._close_if_done()

    def _take(self) -> bool:
        chunk = os.read(self._stream.fileno(), _AT_ONCE)
        self._taken += len(chunk)
        self.tail += chunk
        del self.tail[:-_TAIL_BYTES]
        if chunk and self._copy is not None and self.error is None:
            self._show(self._copy, chunk)
        return bool(chunk)

    def _show(self, copy: IO[bytes], chunk: bytes) -> None:
        try:
            copy.write(chunk)
            copy.flush()
        except OSError as error:
            self.error = error


def _capacity(pipe: IO[bytes]) -> int:
    """How many bytes a pipe holds."""
    with contextlib.suppress(AttributeError, OSError):  # another system
        return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    return _USUAL_PIPE_BYTES
