"""How long work reports its progress; by itself it prints nothing."""

from __future__ import annotations

from typing import Any, Protocol


class Progress(Protocol):
    """begin, any number of advances, end; one piece of work at a time.

    total_bytes: None where it is not known; expect: the total, where it is known only later.
    byte_count: since the last advance.
    """

    def begin(self, label: str, total_bytes: int | None) -> None: ...
    def expect(self, total_bytes: int) -> None: ...
    def advance(self, byte_count: int) -> None: ...
    def end(self) -> None: ...


class NoProgress:
    """Tells nobody."""

    def begin(self, *_: Any, **__: Any) -> None:
        pass

    expect = advance = end = begin


NO_PROGRESS = NoProgress()
