"""What the compiled core raises: one of our own errors for each of its error codes.

The bindings call `core_error`, so no Python code ever sees an error of the core that is not one of
`ciwrap.errors`.
"""

from __future__ import annotations

from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    FileLimitError,
    InterruptedCallError,
    NotAvailableError,
    NotComparableError,
    UnreadableFileError,
    UnsupportedFormatError,
    UsageError,
)

_KINDS: dict[str, type[CiwrapError]] = {
    "invalid_argument": UsageError,
    "io": UnreadableFileError,
    "corrupt_file": CorruptFileError,
    "unsupported": UnsupportedFormatError,
    "too_large": FileLimitError,
    "not_available": NotAvailableError,
    "interrupted": InterruptedCallError,
}


class ContradictionError(RuntimeError):
    """Digests and elements of one variable contradict each other.

    A defect of ciwrap, or of the machine it runs on: not an error of the user's and never a
    verdict, so it is no CiwrapError and ends the command loudly.
    """

    code = "internal"


def core_error(code: str, message: str) -> CiwrapError | ContradictionError:
    """The error for one of the core's codes (csrc/base/error.hpp), to be raised by the bindings.

    A code that is not known gives NotComparableError: it must never pass for a match.
    """
    if code == ContradictionError.code:
        return ContradictionError(f"{message}; this is a defect, please report it")
    error = _KINDS.get(code, NotComparableError)(message)
    error.code = code
    return error
