"""Where the chunks of a Zarr array lie, and what else lies there.

zarr-python takes whatever is not a file of a chunk's name for a chunk that was never written, and
gives the fill value for its numbers; nor does it list what is inside the folder of an array.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ciwrap.errors import CorruptFileError
from ciwrap.readers.sniff import ZARR_MARKERS

_LIKE_A_CHUNK = re.compile(r"c|(c\.)?\d+(\.\d+)*")


class ChunkNames:
    """The names of an array's chunk files, below its folder."""

    def __init__(self, array: Any) -> None:
        described = array.metadata.to_dict()
        self._axes = len(array.shape)
        if described.get("zarr_format") == 2:
            self._has_prefix = False
            self._separator = str(described.get("dimension_separator", "."))
            return
        encoding = described.get("chunk_key_encoding") or {}
        given = (encoding.get("configuration") or {}).get("separator")
        self._has_prefix = encoding.get("name") != "v2"
        self._separator = given or ("/" if self._has_prefix else ".")

    def of(self, index: tuple[int, ...]) -> str:
        if self._has_prefix:
            return self._separator.join(["c", *map(str, index)])
        return self._separator.join(map(str, index)) or "0"

    def outermost(self) -> tuple[re.Pattern[str], bool]:
        """What the entries of the array's folder are called, and whether they are folders."""
        first, slash, _ = self.of((0,) * self._axes).partition("/")
        return re.compile(re.escape(first).replace("0", r"\d+")), bool(slash)


def folder_fault(folder: Path, array: Any) -> str | None:
    """Why the values of an array may not be those that lie in its folder."""
    # zarr.json counts where both are.
    if (folder / ".zarray").is_file() and (folder / "zarr.json").is_file():
        return "is described twice, by .zarray and by zarr.json; remove one of the two"
    if array.metadata.to_dict().get("storage_transformers"):
        return "has storage transformers, which are not read"
    named, are_folders = ChunkNames(array).outermost()
    with os.scandir(folder) as entries:
        odd = [
            one.name
            for one in entries
            if _LIKE_A_CHUNK.fullmatch(one.name)
            and not (named.fullmatch(one.name) and one.is_dir() == are_folders)
            and not _is_empty_folder(one)
        ]
    if odd:
        return f"has {min(odd)!r} in its folder, which is not how its description names its chunks"
    return None


def inner_folders(folder: Path, array: Any) -> list[str]:
    """The folders in that of an array that hold something, and no chunks."""
    named, are_folders = ChunkNames(array).outermost()

    def is_inner(one: os.DirEntry[str]) -> bool:
        if _LIKE_A_CHUNK.fullmatch(one.name):  # of those with other names `folder_fault` tells
            return are_folders and bool(named.fullmatch(one.name)) and _is_node(Path(one.path))
        return not _is_empty_folder(one)

    with os.scandir(folder) as entries:
        return sorted(one.name for one in entries if one.is_dir() and is_inner(one))


def check_is_missing(folder: Path, chunk: Path) -> None:
    """Raises CorruptFileError if something that is no file stands where a chunk belongs.

    folder: of the array.
    """
    here = chunk
    while here != folder and not os.path.lexists(here):
        here = here.parent
    if here == folder or (here != chunk and here.is_dir()):
        return
    what = "a broken link" if here.is_symlink() else "no file"
    raise CorruptFileError(
        f"stands where a chunk belongs and is {what}", file=here, remedy="write the store again"
    )


def _is_node(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ZARR_MARKERS)


def _is_empty_folder(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir():
        return False
    with os.scandir(entry.path) as entries:
        return next(entries, None) is None
