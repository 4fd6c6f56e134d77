"""Sources in a process of their own, for libraries that crash or hang on damaged files.

Another process opens the file, lists it and reads from it; what it reads comes back through a pipe.
If it dies, or comes to no end, that is an error which names the file, whichever part of the file is
damaged. Nothing that comes back is more than names and numbers.
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.closing import closed_on_error
from ciwrap.errors import CiwrapError
from ciwrap.late import numpy as np
from ciwrap.readers.base import Source, VariableInfo
from ciwrap.readers.child import DATA, LISTING, Child, Teller, check_told
from ciwrap.readers.entries import guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray


def bytes_below(*paths: Path) -> int:
    """What the files, and those in the folders, hold, as far as they can be asked."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            if path.is_dir():
                total += bytes_below(*path.iterdir())
            else:
                total += path.stat().st_size
    return total


class SourceApart(Source):
    """What `open_source` opens, in a process of its own. byte_count: of the file and all that
    belongs to it; a larger file may take longer. Raises what `open_source` raises, and
    CorruptFileError where that process dies or comes to no end. `open_source` has to be known to
    pickle where processes are not copied.
    """

    def __init__(self, path: Path, open_source: Callable[[], Source], byte_count: int) -> None:
        self.path = path
        self._fault: CiwrapError | None = None
        self._byte_count = byte_count
        self._child = Child(partial(_serve, open_source))
        with closed_on_error(self.close):
            listing = self._answer(LISTING, 0)
            with guarded(path):
                self.variables = tuple(_info(one) for one in json.loads(bytes(listing)))

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        dtype = storage_dtype(info.dtype)
        if count == 0:
            return np.empty(0, dtype=dtype)
        if self._fault is not None:
            raise self._fault
        self._child.ask(json.dumps([name, first_element, count]).encode() + b"\n")
        return np.frombuffer(self._answer(DATA, count * dtype.itemsize), dtype=dtype)

    def close(self) -> None:
        self._child.close()

    def _answer(self, wanted: bytes, data_bytes: int) -> bytearray:
        """The answer to the question that was asked last, or the error that it is."""
        try:
            kind, data = self._child.answer(self.path, self._byte_count, data_bytes)
        except CiwrapError as error:
            self._fault = error
            raise
        check_told(self.path, kind, data, wanted)
        return data


# --- the child ------------------------------------------------------------------------------------


def _serve(open_source: Callable[[], Source], questions: IO[bytes], teller: Teller) -> None:
    held: list[Source] = []
    with teller.telling_errors():
        held.append(open_source())
        listing = [_as_list(info) for info in held[0].variables]
        teller.tell(LISTING, json.dumps(listing).encode())
    for line in questions:
        with teller.telling_errors():
            name, first, count = json.loads(line)
            teller.tell(DATA, held[0].read(name, first, count).tobytes())


def _as_list(info: VariableInfo) -> list[Any]:
    place = [info.called, info.iteration, info.rank, info.fault]
    return [info.name, info.dtype, [int(length) for length in info.shape], *place, info.labels]


def _info(told: Any) -> VariableInfo:
    name, dtype, shape, called, iteration, rank, fault, pairs = told
    labels = tuple((str(key), str(text)) for key, text in pairs)
    return VariableInfo(
        name, dtype, tuple(shape), None, called, iteration, rank, fault, labels=labels
    )
