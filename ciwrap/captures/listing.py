"""The files of a run by checkpoint, and whether they still are what a capture says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures.index import SourceFile, key_order
from ciwrap.errors import CiwrapError, OutputMissingError, UnreadableFileError
from ciwrap.readers.files import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.readers.layout import FoundOutputs, OutputFile

DEFAULT_INSIDE = ".ciwrap.tree"
_PIECE_BYTES = 1 << 20


def by_checkpoint(found: FoundOutputs) -> dict[CheckpointKey, list[OutputFile]]:
    """The files by (iteration, rank), in that order."""
    groups: dict[CheckpointKey, list[OutputFile]] = {}
    for file in found.files:
        groups.setdefault((file.iteration, file.rank), []).append(file)
    return {key: groups[key] for key in sorted(groups, key=key_order)}


def source_files(run: Path, files: Sequence[OutputFile]) -> tuple[SourceFile, ...]:
    """What the files, and those that belong to them, look like now.

    Raises OutputMissingError for one that has gone, UnreadableFileError.
    """
    sources: dict[str, SourceFile] = {}
    for file in files:
        how = _how(file)
        status = _status(file.path)
        if stat.S_ISDIR(status.st_mode):
            # A store of many files: each of them counts, and so does how they are read.
            sources.update({one.path: one for one in _inside(run, file.path, how)})
            continue
        one = _described(run, file.path, how, status)
        sources[one.path] = one
        for companion in file.reader.companions(file.path):
            if companion.is_file():
                beside = _source(run, companion, "beside")
                sources.setdefault(beside.path, beside)
    return tuple(sources[path] for path in sorted(sources))


def _how(file: OutputFile) -> str:
    if not file.options:
        return f"{file.reader.name} {file.label}"
    options = json.dumps(
        {str(key): file.options[key] for key in sorted(file.options)}, default=repr
    )
    return f"{file.reader.name} {file.label} {options}"


def _inside(run: Path, folder: Path, how: str) -> Iterator[SourceFile]:
    for here, _, names in os.walk(folder):
        for name in names:
            yield _source(run, Path(here) / name, how)


def relative_path(run: Path, path: Path | str) -> str:
    """A file's path in the run. Files are found below it: nothing has to be resolved for this."""
    return str(path).removeprefix(f"{run}{os.sep}")


def _source(run: Path, path: Path, how: str) -> SourceFile:
    return _described(run, path, how, _status(path))


def _described(run: Path, path: Path, how: str, status: os.stat_result) -> SourceFile:
    return SourceFile(relative_path(run, path), status.st_size, status.st_mtime_ns, how)


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError:
        raise OutputMissingError("has gone while it was looked at", file=path) from None
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error


def youngest_ns(files: Sequence[SourceFile]) -> int:
    return max((file.mtime_ns for file in files), default=0)


def checksum_of(path: Path) -> bytes:
    """XXH3-128 of the XXH3-128 of each MiB, so that a file of any size is read in pieces.

    Raises as `InputFile` does.
    """
    file = InputFile(path)
    try:
        parts = [
            _core.xxh3_128(file.read_some(offset, _PIECE_BYTES))
            for offset in range(0, max(1, file.byte_count), _PIECE_BYTES)
        ]
    finally:
        file.close()
    return _core.xxh3_128(b"".join(parts))


def why_stale(
    captured: Sequence[SourceFile],
    now: Sequence[SourceFile],
    run: Path,
    *,
    verify_checksums: bool = False,
) -> str | None:
    """Why a checkpoint's files are no longer those that were captured; None if they are.

    A file of another time and the same size is looked at whole where its checksum is known, and
    every file is with verify_checksums.
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
        if old.mtime_ns != new.mtime_ns and old.checksum is None:
            return f"{path} was written since"
        if old.checksum is None and verify_checksums:
            return f"{path} was captured without a checksum"
        if old.checksum is not None and (verify_checksums or old.mtime_ns != new.mtime_ns):
            try:
                if checksum_of(run / path) != old.checksum:
                    return f"{path} has other bytes (checksum)"
            except CiwrapError as error:
                return str(error)
    return None


def capture_paths(run: Path) -> tuple[Path, ...]:
    """Where a run's capture is looked for: inside, then beside."""
    return (
        (run / DEFAULT_INSIDE, run.with_name(run.name + ".tree"))
        if run.name
        else (run / DEFAULT_INSIDE,)
    )
