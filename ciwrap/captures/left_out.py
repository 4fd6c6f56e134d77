"""What a capture does not hold of its run, which whoever has the capture alone could not see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ciwrap.catalog.files import relative_path
from ciwrap.errors import NotComparableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.errors import CiwrapError


class LeftOut(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file or folder of the run, relative to it ('' for the run), and why it was not captured."""

    path: str
    reason: str


# What a capture says that is kept while it is made.
NOT_TO_ITS_END = LeftOut("", "the capture did not come to its end")


def left_out_of(run: Path, errors: Iterable[CiwrapError]) -> tuple[LeftOut, ...]:
    """What errors say, without the folder that the run lies in."""
    return tuple(
        LeftOut(
            _unicode("" if error.file is None else _within(run, error.file)),
            _unicode(_reason_of(error).replace(f"{run}/", "")),
        )
        for error in errors
    )


def _reason_of(error: CiwrapError) -> str:
    return error.message if error.variable is None else f"{error.variable}: {error.message}"


def _within(run: Path, path: Path | str) -> str:
    return "" if str(path) == str(run) else relative_path(run, path)


def _unicode(text: str) -> str:
    """Names of files can be of any bytes, which a capture has no place for."""
    return text.encode(errors="backslashreplace").decode()


def faults_of(capture: Path, left_out: Iterable[LeftOut]) -> tuple[CiwrapError, ...]:
    """Why a run is not all there of which there is this capture alone."""
    return tuple(
        NotComparableError(
            f"is not in the capture {capture}: {one.reason}",
            file=Path(one.path),
            remedy="compare where its data are, or capture the run again (--exclude leaves files"
            " out)",
        )
        if one.path
        else NotComparableError(
            f"does not hold all of its run: {one.reason}",
            file=capture,
            remedy="capture the run again",
        )
        for one in left_out
    )
