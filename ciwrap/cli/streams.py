"""The standard streams of the process: nothing but what is seen depends on who reads them.

A reader may leave (`ciwrap check | head`), or never have been there (`ciwrap check >&-`). The
verdict, the exit code and the files that were asked for stay what they are.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Descriptor(io.FileIO):
    """A file descriptor that takes whatever is written once nobody reads it any more.

    Raises OSError for whatever else keeps it from being written, once: what is left in buffers then
    goes nowhere, so that the process ends as the error says.
    """

    _is_lost = False

    def write(self, data: Buffer, /) -> int:
        try:
            if not self._is_lost:
                return super().write(data)
        except BrokenPipeError:
            self._is_lost = True
        except OSError:
            self._is_lost = True
            raise
        return memoryview(data).nbytes


def settle_streams() -> None:
    """Makes stdin, stdout and stderr safe to use, for the whole process. To be called before
    anything else is opened.
    """
    _open_closed_descriptors()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _settled(sys.stdout, 1)
    sys.stderr = _settled(sys.stderr, 2)


def _open_closed_descriptors() -> None:
    """Fills those of 0, 1 and 2 that are closed with the null device: else the next file that is
    opened would get the number of a stream, and what is printed would end up in it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _settled(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream, or one on the same descriptor that a reader may leave."""
    if stream is not None and not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody else's: of an interactive shell, of a test
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(descriptor, "w", closefd=False)),
        encoding="utf-8" if stream is None else stream.encoding,
        errors=None if stream is None else stream.errors,
        line_buffering=stream is None or stream.line_buffering,
        write_through=stream is not None and stream.write_through,
    )
