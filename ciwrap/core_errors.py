"""Our errors for those of the compiled core, without loading the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    InterruptedCallError,
    NotAvailableError,
    NotComparableError,
    UnreadableFileError,
    UnsupportedFormatError,
    UsageError,
)

if TYPE_CHECKING:
    import os


class CoreErrorLike(Protocol):
    """What `from_core_error` needs of `ciwrap._core.CoreError`, without loading the core."""

    @property
    def code(self) -> str: ...


_CORE_CODES: dict[str, type[CiwrapError]] = {
    "invalid_argument": UsageError,
    "io": UnreadableFileError,
    "corrupt_file": CorruptFileError,
    "unsupported": UnsupportedFormatError,
    "not_available": NotAvailableError,
    "interrupted": InterruptedCallError,
}


def from_core_error(
    error: CoreErrorLike,
    *,
    file: str | os.PathLike[str] | None = None,
    variable: str | None = None,
    golden: bool = False,
) -> CiwrapError:
    """Our error for one of the core's; the caller raises it `from` the core's.

    golden: `file` is a golden, so "corrupt_file" becomes CorruptGoldenError. A file that the core's
    message already begins with is not named twice. A code that is not known gives
    NotComparableError.
    """
    kind = _CORE_CODES.get(error.code, NotComparableError)
    if golden and kind is CorruptFileError:
        kind = CorruptGoldenError
    message = str(error)
    if file is not None:
        message = message.removeprefix(f"{file}: ")
    return kind(message, file=file, variable=variable)
