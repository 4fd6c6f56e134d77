"""Every error a user can cause or meet, with its exit code and its entry in the documentation.

`str(error)` is one line: where, what, and what to do about it. An error also is the builtin it
resembles, so `except FileNotFoundError` catches a missing golden. Only the command line turns
`exit_code` into a process exit. The bindings call `core_error`, so errors of the compiled core
are errors of this module too.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import os


class ExitCode(IntEnum):
    """What every command ends with."""

    MATCH = 0
    DIFFER = 1
    USAGE = 2
    NOT_COMPARABLE = 3


def one_line(text: object) -> str:
    """The text as one harmless line, with white space folded and control characters escaped."""
    return escape(" ".join(str(text).split()))


def escape(text: str) -> str:
    """The text with line breaks, control characters and lone surrogates written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


class CiwrapError(Exception):
    """Base of all errors of ciwrap.

    message: what is wrong. file: the file at fault. variable: the variable at fault, as
    `VariableId.text`. remedy: what the user can do. All but the message may be None.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.NOT_COMPARABLE
    slug: ClassVar[str] = "error"
    os_errno: ClassVar[int | None] = None
    code: str | None = None  # the core's own, where the error is from there

    message: str
    file: str | None
    variable: str | None
    remedy: str | None

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        variable: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = None if file is None else str(file)
        self.variable = variable
        self.remedy = remedy
        mixed: Any = self
        if isinstance(mixed, OSError):
            mixed.errno = self.os_errno
            mixed.filename = self.file

    def blame(
        self, *, file: str | os.PathLike[str] | None = None, variable: str | None = None
    ) -> None:
        """Names the file and the variable at fault, where the error names none yet.

        Who knows them catches the error, calls this, and raises it on. A message that begins with
        the file's name loses that beginning.
        """
        if file is not None and self.file is None:
            self.file = str(file)
            self.message = self.message.removeprefix(f"{file}: ")
            mixed: Any = self
            if isinstance(mixed, OSError):
                mixed.filename = self.file
        if self.variable is None:
            self.variable = variable

    @property
    def where(self) -> str:
        """File and variable as the message's beginning; '' if neither is known."""
        return ": ".join(escape(part) for part in (self.file, self.variable) if part)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return one_line(f"{text}; {self.remedy}" if self.remedy else text)


class GoldenMismatch(AssertionError):  # noqa: N818 - a test's failed assertion
    """What the pytest fixture raises for a check that is no match; an outcome, not a fault.

    result: all that was found, as a `ciwrap.model.CheckResult`.
    """

    def __init__(self, text: str, result: Any = None) -> None:
        super().__init__(text)
        self.result = result


# Failures print the qualified name: this is the one under which it is offered.
GoldenMismatch.__module__ = "ciwrap"


# --- exit code 2: usage and configuration ---------------------------------------------------------


class UsageError(CiwrapError, ValueError):
    """An argument or option that has no meaning."""

    exit_code = ExitCode.USAGE
    slug = "usage"


class InvalidBoundError(UsageError):
    """An error bound that is negative, NaN, infinite, or mixes ulps with atol or rtol."""

    slug = "invalid-bound"


class ConfigError(UsageError):
    """A configuration that cannot be used.

    line and column count from 1; key is dotted (`checks.mesh.atol`); suggestion is the nearest
    valid key or value. Each may be None.
    """

    slug = "config"

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        suggestion: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, file=file, remedy=remedy)
        self.line = line
        self.column = column
        self.key = key
        self.suggestion = suggestion

    @property
    def where(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number is not None]
        place = ":".join([escape(self.file), *numbers]) if self.file else ""
        return ": ".join(part for part in (place, escape(self.key or "")) if part)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        if self.suggestion:
            text += f"; did you mean {self.suggestion!r}?"
        return one_line(f"{text}; {self.remedy}" if self.remedy else text)


class ConfigMissingError(ConfigError, FileNotFoundError):
    """No configuration file where one is needed."""

    slug = "config-missing"
    os_errno = errno.ENOENT

    def __new__(cls, *_args: object, **_keywords: object) -> ConfigMissingError:
        # Of its two bases OSError decides what an instance is made of. Python finds that out where
        # the class is called, but not who calls __new__ to unpickle it (tblib, which Dask brings).
        return FileNotFoundError.__new__(cls)


class UnknownReaderError(ConfigError):
    """No reader of that name, or none for that file suffix."""

    slug = "unknown-reader"


# --- exit code 3: could not compare ---------------------------------------------------------------


class NotComparableError(CiwrapError):
    """Something that keeps two things from being compared. Never a match."""

    slug = "not-comparable"


class GoldenMissingError(NotComparableError, FileNotFoundError):
    """There is no golden to check against; `check` never makes one."""

    slug = "golden-missing"
    os_errno = errno.ENOENT


class OutputMissingError(NotComparableError, FileNotFoundError):
    """The run left no such output."""

    slug = "output-missing"
    os_errno = errno.ENOENT


class UnreadableFileError(NotComparableError, OSError):
    """The operating system does not let us read a file (permission, a folder, an I/O error)."""

    slug = "unreadable-file"
    os_errno = errno.EIO


class CorruptFileError(NotComparableError, ValueError):
    """Bytes that are not what their format, length or checksum promises."""

    slug = "corrupt-file"


class CorruptGoldenError(CorruptFileError):
    """A damaged or hostile golden file, or one that its manifest does not describe."""

    slug = "corrupt-golden"


class GoldenToMendError(CorruptGoldenError):
    """A golden that somebody has to put right by hand: what it was is to be had elsewhere, so no
    new golden takes its place.
    """

    slug = "golden-to-mend"


class CorruptCaptureError(CorruptFileError):
    """A capture of a run that is damaged, truncated, or was never completed."""

    slug = "corrupt-capture"


class StillWrittenError(NotComparableError, BlockingIOError):
    """A checkpoint whose files change while they are looked at; it was left alone."""

    slug = "still-written"
    os_errno = errno.EAGAIN


class FileLimitError(CorruptFileError):
    """A file that would unpack to more than it may (a decompression bomb, or lengths that lie)."""

    slug = "file-limit"


class UnsupportedFormatError(NotComparableError, ValueError):
    """A well-formed file of a kind or version that this release does not know."""

    slug = "unsupported-format"


class UnreadFileError(UnsupportedFormatError):
    """A file that nobody has said how to read. Many of them are reported in one line."""

    slug = "unread-file"


class UnsupportedDtypeError(NotComparableError, TypeError):
    """A variable of a type that has no defined comparison."""

    slug = "unsupported-dtype"


class PickledArrayError(UnsupportedDtypeError):
    """An array of Python objects; unpickling runs code, so it is refused."""

    slug = "pickled-array"


class DtypeMismatchError(NotComparableError, TypeError):
    """Golden and output have different dtypes."""

    slug = "dtype-mismatch"


class ShapeMismatchError(NotComparableError, ValueError):
    """Golden and output have different shapes."""

    slug = "shape-mismatch"


class LabelMismatchError(NotComparableError, ValueError):
    """Golden and output have different labels: names of dimensions, units, a fill value."""

    slug = "label-mismatch"


class ParameterMismatchError(NotComparableError, ValueError):
    """The golden was made with another bound or other settings than those now asked for."""

    slug = "parameter-mismatch"


class VariableMissingError(NotComparableError, KeyError):
    """A variable that one side lacks."""

    slug = "variable-missing"


class VariableExtraError(NotComparableError, ValueError):
    """A variable that only the run has."""

    slug = "variable-extra"


class VariableIgnoredError(NotComparableError, ValueError):
    """A variable that the golden holds, and that the configuration ignores by now."""

    slug = "variable-ignored"


class DuplicateVariableError(NotComparableError, ValueError):
    """A variable stands twice in the outputs: same iteration, rank and name."""

    slug = "duplicate-variable"


class InvalidResultError(NotComparableError, ValueError):
    """A file that is not a JSON result of ciwrap."""

    slug = "invalid-result"


class ArtifactError(CorruptFileError):
    """An archive or folder of pending goldens that must not be accepted from."""

    slug = "artifact"


class PendingConflictError(NotComparableError, RuntimeError):
    """A pending golden made from another commit or against another golden, or not the one shown."""

    slug = "pending-conflict"


class AlignmentError(NotComparableError, ValueError):
    """Rows that cannot be put in the order of an id variable, or that only one side has."""

    slug = "alignment"


class PeriodError(NotComparableError, ValueError):
    """A period for values, bounds or a golden that it has no meaning for."""

    slug = "period"


class MaskError(NotComparableError, ValueError):
    """A mask that is missing, not boolean, or of another shape than the variable it masks."""

    slug = "mask"


class ReaderPluginError(NotComparableError, ImportError):
    """A registered reader, or a library it needs, cannot be loaded."""

    slug = "reader-plugin"


class NotAvailableError(NotComparableError, RuntimeError):
    """A backend, read engine or device that was asked for and that this machine or build lacks."""

    slug = "not-available"


class DeviceArrayError(NotAvailableError):
    """An array on a GPU, or another device, that this build cannot compare where it lies."""

    slug = "device-array"


class CommandFailedError(NotComparableError, RuntimeError):
    """The configured command could not be started, failed, or ran out of time."""

    slug = "command-failed"


class RepositoryError(NotComparableError, RuntimeError):
    """git could not do what was asked of it."""

    slug = "repository"


class WriteFailedError(NotComparableError, OSError):
    """A golden, report or configuration could not be written; the old one is untouched."""

    slug = "write-failed"
    os_errno = errno.EIO


class LockBusyError(NotComparableError, TimeoutError):
    """Another process is accepting goldens in the same folder."""

    slug = "lock-busy"
    os_errno = errno.ETIMEDOUT


class RemoteError(NotComparableError, ConnectionError):
    """A service that could not be reached, or that refused what was asked of it."""

    slug = "remote"
    os_errno = errno.EIO


class InterruptedCallError(NotComparableError, RuntimeError):
    """A long call was stopped by a signal."""

    slug = "interrupted"


def all_errors() -> dict[str, type[CiwrapError]]:
    """Every error class by its slug."""
    found: dict[str, type[CiwrapError]] = {}
    pending: list[type[CiwrapError]] = [CiwrapError]
    while pending:
        kind = pending.pop()
        found[kind.slug] = kind
        pending.extend(kind.__subclasses__())
    return dict(sorted(found.items()))


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
