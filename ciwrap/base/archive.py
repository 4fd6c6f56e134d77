"""Copies files out of zips and folders that others made, and trusts nothing in them.

A name decides only where below our own folder a file is put, and lengths are counted while they
are read. Links, devices, encryption and rare ways of packing are refused.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ciwrap.base.errors import ArtifactError, FileLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

if TYPE_CHECKING:
    # Files by their path in the archive, with `/`, and how each is opened.
    Files = Mapping[str, Callable[[], IO[bytes]]]

MOST_FILES = 10_000
# Of everything together and of one file, as they lie on the disk unpacked.
MOST_BYTES = 1 << 30
MOST_FILE_BYTES = 512 << 20
MOST_DEPTH = 20
_MOST_NAME_BYTES = 255
# A generous name and extra field for each of the files.
_MOST_LIST_BYTES = MOST_FILES * 512
_STEP_BYTES = 1 << 20
_ENCRYPTED = 0x1

# What `zipfile` raises for damaged or strange archives besides OSError: NotImplementedError for
# features it lacks, EOFError for streams that stop early, ValueError and OverflowError for offsets
# and names that it hands on as they are.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


@contextlib.contextmanager
def zip_files(stream: IO[bytes], file: str | os.PathLike[str]) -> Iterator[Files]:
    """The files of a zip, their names checked; they can be opened within the block.

    stream: seekable. file: what errors call it. Raises ArtifactError for anything but plain files
    in plain folders under names of their own, FileLimitError for too many of them.
    """
    with _opened(stream, file) as archive:
        infos = archive.infolist()
        if len(infos) > MOST_FILES:
            raise _too_many(file)
        # `orig_filename` is what the archive says before Python tidies it.
        checked_names((info.orig_filename for info in infos), file)
        for info in infos:
            _refuse_kind(info, file)
        yield {
            info.orig_filename: functools.partial(archive.open, info)
            for info in infos
            if not _is_folder(info)
        }


def _opened(stream: IO[bytes], file: str | os.PathLike[str]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(_ShortReads(stream, file))
    except FileLimitError:
        raise
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror or error}", file=file) from error
    except _ZIP_ERRORS as error:
        raise ArtifactError(f"is not a .zip that can be read: {error}", file=file) from error


def folder_files(folder: Path) -> Files:
    """The regular files below a folder, their names checked.

    Raises ArtifactError for links, devices and strange names, FileLimitError for too many files.
    """
    files: dict[str, Callable[[], IO[bytes]]] = {}
    for here, folders, names in os.walk(folder, onerror=_raise):
        for name in (*folders, *names):
            path = Path(here, name)
            mode = path.lstat().st_mode
            shown = path.relative_to(folder).as_posix()
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise refused(shown, "is a link or no regular file", folder)
            if stat.S_ISREG(mode):
                files[shown] = functools.partial(_open_plain, path)
        if len(files) > MOST_FILES:
            raise _too_many(folder)
    checked_names(files, folder)
    return files


def _raise(error: OSError) -> None:
    raise error


def _open_plain(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def copy_files(files: Files, folder: Path, file: str | os.PathLike[str]) -> None:
    """Copies files, whose names have been checked, into an empty folder.

    Raises FileLimitError where they hold more than the limits above, whatever they claim, and
    ArtifactError where they are damaged or cannot be copied; part of them may lie there then.
    """
    room = MOST_BYTES
    for name, open_file in files.items():
        left = min(room, MOST_FILE_BYTES)
        try:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as copy:
                for block in _blocks(open_file, name, file):
                    left -= len(block)
                    room -= len(block)
                    if left < 0:
                        raise FileLimitError(
                            f"{_shown(name)} is too large: {MOST_BYTES >> 30} GiB in all and"
                            f" {MOST_FILE_BYTES >> 20} MiB for one file are enough",
                            file=file,
                        )
                    copy.write(block)
        except OSError as error:
            raise ArtifactError(
                f"{_shown(name)} cannot be copied: {error.strerror or error}", file=file
            ) from error


def _blocks(
    open_file: Callable[[], IO[bytes]], name: str, file: str | os.PathLike[str]
) -> Iterator[bytes]:
    try:
        stream = open_file()
    except _ZIP_ERRORS as error:
        raise refused(name, f"is damaged: {error}", file) from error
    with stream:
        while True:
            try:
                block = stream.read(_STEP_BYTES)
            except _ZIP_ERRORS as error:
                raise refused(name, f"is damaged: {error}", file) from error
            if not block:
                return
            yield block


def checked_names(names: Iterable[str], file: str | os.PathLike[str]) -> None:
    """Raises ArtifactError for a name that leads elsewhere or is there twice.

    A name that ends with `/` is a folder's. Names that a file system takes for one, because they
    differ in case alone, say, are refused by `copy_files`, which replaces nothing.
    """
    seen: set[str] = set()
    for name in names:
        _refuse_name(name.removesuffix("/"), file)
        if name in seen:
            raise refused(name, "is there twice", file)
        seen.add(name)


def _refuse_name(name: str, file: str | os.PathLike[str]) -> None:
    parts = name.split("/")
    # A colon would name a drive or a stream elsewhere; ciwrap escapes it, like the backslash.
    if (
        not name.isprintable()
        or any(char in name for char in "\\:")
        or any(part in ("..", ".", "") for part in parts)
        or len(parts) > MOST_DEPTH
        or any(len(os.fsencode(part)) > _MOST_NAME_BYTES for part in parts)
    ):
        raise refused(name, "is not a path that can be taken over", file)


def _refuse_kind(info: zipfile.ZipInfo, file: str | os.PathLike[str]) -> None:
    name = info.orig_filename
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if _is_folder(info) else stat.S_IFREG):
        raise refused(name, "is a link or no regular file", file)
    if info.flag_bits & _ENCRYPTED:
        raise refused(name, "is encrypted", file)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        why = f"is packed with method {info.compress_type}; stored and deflate are known"
        raise refused(name, why, file)


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.orig_filename.endswith("/")


class _ShortReads(io.RawIOBase):
    """A file of which no more is read at once than the list of a zip's files may take: `zipfile`
    reads that list in one piece, as large as the zip says it is. Its files are read in steps.
    """

    def __init__(self, stream: IO[bytes], file: str | os.PathLike[str]) -> None:
        super().__init__()
        self._stream, self._file = stream, file

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_LIST_BYTES:
            raise _too_many(self._file)
        return self._stream.read(size if size >= 0 else _MOST_LIST_BYTES)


def refused(name: str, why: str, file: str | os.PathLike[str]) -> ArtifactError:
    """The error for one of the files, named harmlessly."""
    return ArtifactError(f"{_shown(name)} {why}", file=file)


def _too_many(file: str | os.PathLike[str]) -> FileLimitError:
    return FileLimitError(f"holds more than {MOST_FILES} files", file=file)


def _shown(name: str) -> str:
    return f"{name[:200]!a}"
