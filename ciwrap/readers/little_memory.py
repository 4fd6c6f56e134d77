"""How much memory a file may take: some libraries make room for whatever a damaged one claims."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

# What zlib packs a thousandfold, as bytes of which doubles are made, and a copy of these.
_MEMORY_PER_BYTE = 20_000
# Other files may belong to a small one.
_LEAST_MEMORY = 1 << 30
_MOST_LIMIT = (1 << 63) - 1


@contextlib.contextmanager
def little_memory(path: Path) -> Iterator[None]:
    """Lets this process take no more memory than a file of that size can need: making room for what
    a damaged file claims takes long, and may take all there is.

    Raises CorruptFileError where MemoryError is raised. For processes that do nothing else.
    """
    try:
        with _limited(path.stat().st_size):
            yield
    except MemoryError:
        raise too_much(path) from None


def too_much(path: Path) -> CorruptFileError:
    return CorruptFileError(
        "is damaged: it claims more elements than a file of its size can hold",
        file=path,
        remedy="write it again",
    )


@contextlib.contextmanager
def _limited(file_bytes: int) -> Iterator[None]:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):  # only Linux tells
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + _LEAST_MEMORY + file_bytes * _MEMORY_PER_BYTE
    most = wanted if before[0] == resource.RLIM_INFINITY else min(before[0], wanted)
    resource.setrlimit(resource.RLIMIT_AS, (min(most, _MOST_LIMIT), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
