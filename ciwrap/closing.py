"""What is closed at the end of a `with` block, or only if the block fails."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_Self = TypeVar("_Self", bound="Closing")


@contextlib.contextmanager
def closed_on_error(close: Callable[[], object]) -> Iterator[None]:
    """Closes what was opened if the block fails; the block's own error is the one to tell."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            close()
        raise


class Closing(ABC):
    """A context manager that closes itself, whatever ends the block."""

    @abstractmethod
    def close(self) -> object:
        """Gives up what is held; harmless when repeated."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
