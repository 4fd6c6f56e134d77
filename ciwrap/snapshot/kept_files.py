"""The files of a snapshot themselves: loaded objects and the run's folder, as one archive."""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import tarfile
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ciwrap.archive import checked_names, copy_files, refused
from ciwrap.errors import ArtifactError, FileLimitError
from ciwrap.files import replaced_file, writing
from ciwrap.repository import ask_git
from ciwrap.snapshot.store import ZLIB_LEVEL, ZSTD_LEVEL, best_compression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_BYTES = 2 << 30
_STEP_BYTES = 1 << 20
SUFFIXES = {"zst": ".files.tar.zst", "z": ".files.tar.gz", "": ".files.tar"}


def run_files(folder: Path) -> dict[str, Path]:
    """The files of a run's folder by the name they get: those that git tracks; without git, all
    but hidden ones, which may hold what nobody is to see.
    """
    listed = ask_git(folder, "ls-files", "-z", "--cached", "--", ".")
    if listed is not None:
        names = [name for name in listed.split("\0") if name]
        found = [folder / name for name in names]
    else:
        found = [
            path
            for path in sorted(folder.rglob("*"))
            if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        ]
    return {
        f"run/{path.relative_to(folder).as_posix()}": path
        for path in found
        if path.is_file() and not path.is_symlink()
    }


def object_files(paths: Mapping[str, str]) -> dict[str, Path]:
    """Loaded objects by the name they get. paths: where each lies, by its path in the snapshot."""
    return {
        f"objects/{shown.replace('{', '').replace('}', '').lstrip('/.')}": Path(path)
        for shown, path in paths.items()
    }


def write_archive(files: Mapping[str, Path], target: Path, how: str | None = None) -> None:
    """Packs files, in the order of their names. how: as in `ciwrap.snapshot.store.compressed`.

    Owners, times and modes beyond "may be run" are left out, so that equal files make equal
    archives. Raises WriteFailedError, FileLimitError.
    """
    total = sum(path.stat().st_size for path in files.values())
    if total > _MOST_BYTES:
        raise FileLimitError(
            f"its {total} bytes are more than the {_MOST_BYTES} that are kept", file=target
        )
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            replaced_file(target) as staged,
            staged.open("wb") as raw,
            _compressing(raw, how) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in sorted(files):
                _add(archive, name, files[name])


def unpack_archive(path: Path, folder: Path) -> list[str]:
    """Unpacks an archive below an empty folder; the names of its files. Whoever made it is not
    trusted. Raises ArtifactError, FileLimitError, UnreadableFileError.
    """
    with tempfile.TemporaryFile() as plain:
        try:
            with path.open("rb") as raw, _decompressing(raw, path) as stream:
                _copy(stream, plain, path)
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r:") as archive:
                members = archive.getmembers()
                checked_names((member.name for member in members), path)
                for member in members:
                    if not member.isreg():
                        raise refused(member.name, "is a link or no regular file", path)
                files = {one.name: functools.partial(_opened, archive, one) for one in members}
                copy_files(files, folder, path)
                for member in members:
                    if member.mode & 0o100:
                        (folder / member.name).chmod(0o755)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise ArtifactError(f"is damaged: {error}", file=path) from error
    return [member.name for member in members]


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(member)
    assert stream is not None
    return stream


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    with path.open("rb") as stream:
        info = tarfile.TarInfo(name)
        status = os.fstat(stream.fileno())
        info.size = status.st_size
        info.mode = 0o755 if status.st_mode & 0o100 else 0o644
        archive.addfile(info, stream)


@contextlib.contextmanager
def _compressing(raw: IO[bytes], how: str | None) -> Iterator[IO[bytes]]:
    chosen = best_compression() if how is None else how
    if chosen == "zst":
        import zstandard

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL).stream_writer(raw, closefd=False) as stream:
            yield stream
    elif chosen == "z":
        with gzip.GzipFile("", "wb", ZLIB_LEVEL, raw, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


@contextlib.contextmanager
def _decompressing(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.name.endswith(".zst"):
        import zstandard

        try:
            with zstandard.ZstdDecompressor().stream_reader(raw, closefd=False) as stream:
                yield stream
        except zstandard.ZstdError as error:
            raise ArtifactError(f"is damaged: {error}", file=path) from None
    elif path.name.endswith(".gz"):
        with gzip.GzipFile(fileobj=raw) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


def _copy(stream: IO[bytes], plain: IO[bytes], path: Path) -> None:
    left = _MOST_BYTES + (64 << 20)
    while block := stream.read(_STEP_BYTES):
        left -= len(block)
        if left < 0:
            raise FileLimitError("holds more than 2 GiB", file=path)
        plain.write(block)


def archive_of(folder: Path, identity: str) -> Path | None:
    """The archive that belongs to a snapshot; None if no files were kept."""
    for suffix in SUFFIXES.values():
        path = folder / f"{identity}{suffix}"
        if path.is_file():
            return path
    return None
