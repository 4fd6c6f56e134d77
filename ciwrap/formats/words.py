"""Numbers in texts that are held in memory, by the grammar of tables."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.tables import CellError, as_floats, as_ints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


def numbers_in(words: Sequence[str], dtype: str = "<f8") -> NDArray[Any]:
    """The numbers that ASCII words are, "<f8" or "<i8". Raises CorruptFileError if one is none, or
    one that such a number cannot hold.
    """
    is_simple = "_" not in "".join(words)
    try:
        if dtype == "<i8":
            return as_ints(words, is_simple=is_simple)
        return as_floats(words, is_simple=is_simple, empty_is_nan=False)
    except CellError as error:
        raise CorruptFileError(f"holds {error.cell[:40]!a}, which {error.problem}") from None


@contextlib.contextmanager
def telling_line(data: bytes, at: Callable[[], int]) -> Iterator[None]:
    """Errors of the block tell the line, counted from 1. at: the byte that was read last."""
    try:
        yield
    except CorruptFileError as error:
        line = data.count(b"\n", 0, at()) + 1
        error.message = f"line {line}: {error.message}"
        raise
