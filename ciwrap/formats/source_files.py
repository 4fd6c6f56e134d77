"""The files that a run was read from, as they looked then, and whether they still do."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ciwrap import _core
from ciwrap.base.errors import CiwrapError, OutputMissingError, UnreadableFileError
from ciwrap.base.late import json
from ciwrap.formats.reader import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ciwrap.formats.find_outputs import OutputFile

_PIECE_BYTES = 1 << 20
_INODE_BITS = (1 << 62) - 1  # as many as `Whole` has
NOWHERE = Path()  # paths as they are, relative to no run

# As they stand in the index of a capture.
Whole = Annotated[int, Meta(ge=0, lt=1 << 62)]
_Step = Annotated[int, Meta(ge=0)]
CheckpointKey = tuple[_Step | None, _Step | None]  # iteration, rank
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]


class SourceFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file of the run as it was when it was captured.

    path: relative to the run, with '/'. change_ns, inode: as the file system has them, to tell a
    file that was written in place and given its old time back from a copy that has that time. how:
    reader, name and options it was read with, as text. checksum: XXH3-128 of the XXH3-128 of its
    pieces of 1 MiB, where one was asked for.
    """

    path: str
    byte_count: Whole
    mtime_ns: int
    change_ns: int
    inode: Whole
    how: str
    checksum: Digest | None = None


def source_files(run: Path, files: Sequence[OutputFile]) -> tuple[SourceFile, ...]:
    """What the files, and those that belong to them, look like now.

    Raises OutputMissingError for one that has gone, UnreadableFileError.
    """
    sources: dict[str, SourceFile] = {}
    for file in files:
        how = f"{file.reader.name} {file.label}"
        if file.options:
            how += f" {_options_text(file)}"
        status = _status(file.path_text)
        if stat.S_ISDIR(status.st_mode):
            # A store of many files: each of them counts, and so does how they are read.
            sources.update({one.path: one for one in _inside(run, file.path, how)})
            continue
        one = _seen_as(run, file.path_text, how, status)
        sources[one.path] = one
        for companion in file.companions:
            if companion.is_file():
                beside = _source(run, companion, "beside")
                sources.setdefault(beside.path, beside)
    return tuple(sources[path] for path in sorted(sources))


def digest_of_sight(seen: object) -> str:
    """Of what files look like, the same in every process. Names of files can be of any bytes, which
    no format of messages has a place for: the representation does.
    """
    return _core.xxh3_128(repr(seen).encode()).hex()


def _options_text(file: OutputFile) -> str:
    return json.dumps({str(key): file.options[key] for key in sorted(file.options)}, default=repr)


def _inside(run: Path, folder: Path, how: str) -> Iterator[SourceFile]:
    for here, _, names in walk_with_links(folder):
        for name in names:
            yield _source(run, Path(here) / name, how)


def walk_with_links(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As os.walk, but links to folders are followed, since readers follow them, too; each folder is
    visited once, whatever links lead to it. Raises UnreadableFileError.
    """
    seen: set[tuple[int, int]] = set()

    def is_new(path: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            place = inode_of(Path(path))
            if place not in seen:
                seen.add(place)
                return True
        return False

    try:
        is_new(str(folder))
        for here, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
            folders[:] = [name for name in sorted(folders) if is_new(os.path.join(here, name))]  # noqa: PTH118
            yield here, folders, names
    except OSError as error:
        why = f"cannot be listed: {error.strerror or error}"
        raise UnreadableFileError(why, file=error.filename or folder) from error


def _raise(error: OSError) -> None:
    """What has gone meanwhile holds nothing."""
    if not isinstance(error, FileNotFoundError):
        raise error


def relative_path(run: Path, path: Path | str) -> str:
    """A file's path in the run. Files are found below it: nothing has to be resolved for this."""
    return str(path).removeprefix(f"{run}{os.sep}")


def _source(run: Path, path: Path, how: str) -> SourceFile:
    return _seen_as(run, path, how, _status(path))


def _status(path: Path | str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116 - for every file of a run
    except FileNotFoundError:
        raise OutputMissingError("was removed while it was being read", file=path) from None
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error


def _seen_as(run: Path, path: Path | str, how: str, status: os.stat_result) -> SourceFile:
    return SourceFile(
        relative_path(run, path),
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino & _INODE_BITS,
        how,
    )


def inodes_of(files: Iterable[OutputFile]) -> Iterator[tuple[int, int]]:
    """Device and inode of each file: two names of one file share them. What is gone is left out."""
    return ((status.st_dev, status.st_ino) for status in statuses_of(files))


def statuses_of(files: Iterable[OutputFile]) -> Iterator[os.stat_result]:
    """Of each file; what cannot be looked at is left out."""
    for file in files:
        try:
            status = os.stat(file.path_text)  # noqa: PTH116 - for every file of a run
        except OSError:
            continue
        yield status


def inode_of(path: Path) -> tuple[int, int]:
    """Device and inode. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def youngest_ns(files: Sequence[SourceFile]) -> int:
    return max((file.mtime_ns for file in files), default=0)


def checksum_of(path: Path) -> bytes:
    """XXH3-128 of the XXH3-128 of each MiB, so that a file of any size is read in pieces.

    Raises as `InputFile` does.
    """
    file = InputFile(path)
    parts = [
        _core.xxh3_128(file.read_some(offset, _PIECE_BYTES))
        for offset in range(0, max(1, file.byte_count), _PIECE_BYTES)
    ]
    return _core.xxh3_128(b"".join(parts))


def why_stale(
    captured: Sequence[SourceFile],
    now: Sequence[SourceFile],
    run: Path,
    *,
    verify_checksums: bool = False,
) -> str | None:
    """Why a checkpoint's files are no longer those that were captured; None if they are.

    A file is the one that was captured if its size, its inode and both of its times are: of a copy
    nobody knows what was copied, and any time of writing can be given to any file. Another file of
    the same size is looked at whole where its checksum is known, and every file is with
    verify_checksums.
    """
    ours = {file.path: file for file in captured}
    theirs = {file.path: file for file in now}
    for path in sorted({*ours, *theirs}):
        if path not in theirs:
            return f"{path} is gone"
        if path not in ours:
            return f"{path} is new"
        old, new = ours[path], theirs[path]
        if old.how != new.how:
            return f"{path} was read in another way"
        if old.byte_count != new.byte_count:
            return f"{path} had {old.byte_count} bytes, now {new.byte_count}"
        what = None  # where the file is known to be as it was
        if old.mtime_ns != new.mtime_ns:
            what = "was written since"
        elif old.inode != new.inode:
            what = "is not the file that was captured, but a copy or one that took its place"
        elif old.change_ns != new.change_ns:
            what = "was touched since (written and given its old time, or chmod)"
        if old.checksum is None:
            if what is not None:
                return f"{path} {what}"
            if verify_checksums:
                return f"{path} was captured without a checksum"
        elif verify_checksums or what is not None:
            try:
                if checksum_of(run / path) != old.checksum:
                    return f"{path} has other bytes (checksum)"
            except CiwrapError as error:
                return str(error)
    return None


def why_changed(captured: Sequence[SourceFile], run: Path) -> str | None:
    """Why files of a run are no longer those that were captured; None if they are.

    Of files that have come since it knows nothing.
    """
    try:
        now = [_source(run, run / one.path, one.how) for one in captured]
    except CiwrapError as error:
        return str(error)
    return why_stale(captured, now, run)


def change_since(
    seen: Sequence[SourceFile] | None, files: Sequence[OutputFile], run: Path = NOWHERE
) -> str | None:
    """What has happened to a run's files since they were seen; None if nothing has, or if they
    could not be looked at then.
    """
    if seen is None:
        return None
    try:
        now = source_files(run, files)
        return None if now == seen else why_stale(seen, now, run)
    except CiwrapError as error:
        return str(error)
