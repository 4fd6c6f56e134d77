"""Saying what was done already, where an error ends a command that changes several goldens."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.errors import CiwrapError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_NAMES = 10


@contextlib.contextmanager
def telling_what_is_done(word: str) -> Iterator[list[str]]:
    """Gives a list for the names of what is done; an error that ends the block tells them.

    word: what was done to them: `accepted`.
    """
    done: list[str] = []
    try:
        yield done
    except CiwrapError as error:
        if done:
            more = len(done) - _MOST_NAMES
            names = ", ".join(done[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
            error.message += f"; {word} before that: {names}"
        raise
