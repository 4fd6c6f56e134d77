"""What is closed at the end of a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

_Self = TypeVar("_Self", bound="Closing")


class Closing(ABC):
    """A context manager that closes itself, whatever ends the block."""

    @abstractmethod
    def close(self) -> None:
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
