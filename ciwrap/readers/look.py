"""A first look at a file in a process of its own, for libraries that crash on few files, and whose
data would take long to come through a pipe: what they open there without dying is then opened here.

One process looks at many files, since a copy of this one costs ten times as much as a look. It ends
when it has had nothing to do for a second, so that it keeps neither memory nor pipes that this
process gives up. Whatever one file may have done to it counts for no other: a file is at fault only
if a process that has seen none before dies of it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import struct
from typing import IO, TYPE_CHECKING

from ciwrap.errors import CiwrapError, CorruptFileError
from ciwrap.readers.child import DATA, Child, Teller, check_told, limit_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.readers.base import Source

_IDLE_SECONDS = 1.0
_LENGTH = struct.Struct("<Q")

_seen: set[tuple[str, int, int, int, int]] = set()


def look_first(
    path: Path, open_source: Callable[[], Source], has_open_files: Callable[[], bool]
) -> None:
    """Opens a file and reads an element of each variable, in a process of its own.

    A file that has not changed is not looked at twice. open_source and has_open_files, which says
    whether the library holds any file open in this process, are functions of a module, or a
    `functools.partial` of one. Raises what `open_source` raises, and CorruptFileError where that
    process dies or comes to no end.
    """
    try:
        status = path.stat()
        # Those that a path without a folder is meant to be in may change.
        folder = "" if path.is_absolute() else os.getcwd()  # noqa: PTH109
    except OSError:
        return  # opening it will say why
    times = status.st_mtime_ns, status.st_ctime_ns
    key = (str(path.resolve()), status.st_ino, status.st_size, *times)
    if key not in _seen:
        _look(path, status.st_size, pickle.dumps((folder, path, open_source, has_open_files)))
        _seen.add(key)


def _look(path: Path, byte_count: int, question: bytes) -> None:
    looker = _take_looker()
    # Not given back if it is interrupted: its answer would be taken for that to the next question.
    try:
        kind, data = looker.look(path, byte_count, question)
    except CorruptFileError:
        looker.child.close()
        if looker.looks == 1:
            raise
        # It had nothing to do and has ended, or an earlier file has done it harm.
        looker = _Looker()
        kind, data = looker.look(path, byte_count, question)
    _idle.append(looker)
    check_told(path, kind, data, DATA)


class _Looker:
    """A process that looks at files, and for whom it does."""

    def __init__(self) -> None:
        self.child = Child(_serve)
        self.owner = os.getpid()  # a copy of this process needs another one
        self.looks = 0

    def look(self, path: Path, byte_count: int, question: bytes) -> tuple[bytes, bytearray]:
        self.looks += 1
        self.child.ask(_LENGTH.pack(len(question)) + question)
        return self.child.answer(path, byte_count, 0)


_idle: list[_Looker] = []


def _take_looker() -> _Looker:
    while _idle:
        looker = _idle.pop()
        if looker.owner == os.getpid():
            return looker
        looker.child.close()
    return _Looker()


# --- the child ------------------------------------------------------------------------------------


def _serve(questions: IO[bytes], teller: Teller) -> None:
    """Looks at files until there is nothing to do, or the library holds one open: it would take
    what it knows of that for what another of the same name holds.
    """
    while len(head := questions.read(_LENGTH.size)) == _LENGTH.size:
        question = questions.read(_LENGTH.unpack(head)[0])
        has_open_files = True
        with teller.telling_errors():
            folder, path, open_source, library_has_open_files = pickle.loads(question)
            try:
                if folder:
                    os.chdir(folder)
                _look_at(path, open_source)
            finally:
                has_open_files = library_has_open_files()
            teller.tell(DATA, b"")
        if has_open_files or not select.select([questions], [], [], _IDLE_SECONDS)[0]:
            return


def _look_at(path: Path, open_source: Callable[[], Source]) -> None:
    limit_memory(path)
    with open_source() as source:
        for info in source.variables:
            if info.fault is None and info.element_count:
                # What cannot be read is told when it is compared.
                with contextlib.suppress(CiwrapError):
                    source.read(info.name, 0, 1)
                    source.read(info.name, info.element_count - 1, 1)
