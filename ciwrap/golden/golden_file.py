"""A golden file by itself, without its manifest: read within what this machine may take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    GoldenToMendError,
    escape,
)
from ciwrap.files import read_regular

if TYPE_CHECKING:
    from pathlib import Path


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def read_golden_file(path: Path) -> tuple[list[_core.GoldenVariable], str]:
    """The variables and the root of any golden file, without its manifest.

    Raises as `GoldenStore.read` does.
    """
    try:
        data = read_regular(path, largest_decoded())
    except FileNotFoundError:
        raise GoldenMissingError("there is no such file", file=path) from None
    return decode(data, path), _core.golden_root(data).hex()


def decode(data: bytes, source: Path, remedy: str | None = None) -> list[_core.GoldenVariable]:
    """Decodes a golden file's bytes. Raises as `GoldenStore.read`.

    source, remedy: for the message, the remedy for that of damage.
    """
    limit = largest_decoded()
    shown = escape(str(source))  # the core takes no name that is no UTF-8
    try:
        return _core.decode_golden(data, source=shown, max_decoded_bytes=limit)
    except FileLimitError as error:
        raise FileLimitError(
            f"would unpack to more than the {limit} bytes that this machine may take",
            file=source,
            remedy="keep less in it (evidence: residues or tree), or use a larger machine",
        ) from error
    except CorruptFileError as error:
        refuse_pointer(data, source)
        message = error.message.removeprefix(f"{shown}: ")
        raise CorruptGoldenError(message, file=source, remedy=remedy) from error
    except CiwrapError as error:
        error.blame(file=source)
        raise


def refuse_pointer(data: bytes, source: Path) -> None:
    """Raises GoldenToMendError for what stands for a file that Git LFS has not fetched."""
    if data.startswith(_LFS_POINTER):
        raise GoldenToMendError(
            "is a pointer of Git LFS, not the golden itself",
            file=source,
            remedy="run `git lfs pull` (with actions/checkout: `lfs: true`)",
        )


def root_of(path: Path) -> str | None:
    """The root that a golden file states, unverified; None if it is missing or no golden."""
    try:
        return _core.golden_root(read_regular(path, largest_decoded())).hex()
    except (FileNotFoundError, CiwrapError):
        return None


def largest_decoded() -> int:
    """Bytes a golden may unpack to: half of the memory, at most 16 GiB."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        memory = 8 << 30
    return min(max(memory // 2, 1 << 28), 1 << 34)
