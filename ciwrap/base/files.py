"""Files that are whole, regular and safely on the disk; packed ones; the folder `.ciwrap`."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import BinaryIO

from ciwrap.base.errors import CiwrapError, FileLimitError, UnreadableFileError, WriteFailedError
from ciwrap.base.late import shutil

_PIECE = 1 << 20
# What begins a file that Git LFS has not fetched.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def read_regular(path: Path, limit: int) -> bytes:
    """A regular file's bytes. Raises FileNotFoundError, UnreadableFileError, FileLimitError."""
    data = b""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
            with path.open("rb") as stream:
                data = read_at_most(stream, limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFileError(error.strerror or "the file cannot be read", file=path) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFileError("this is not a regular file", file=path)
    # It may have grown since.
    byte_count = max(status.st_size, len(data))
    if byte_count > limit:
        raise FileLimitError(
            f"has {byte_count} bytes, more than the {limit} that are allowed", file=path
        )
    return data


def read_at_most(stream: BinaryIO, limit: int) -> bytes:
    """What a file still has from where it stands, `limit` bytes at most.

    Python takes memory for as many bytes as are asked for before it reads. Where a process may not
    have that much (`ulimit -v`), a small file could not be read under a large limit.
    """
    expected = os.fstat(stream.fileno()).st_size - stream.tell()
    pieces = [stream.read(min(limit, max(expected, 0) + 1))]
    left = limit - len(pieces[0])
    while left > 0 and pieces[-1]:
        pieces.append(stream.read(min(left, _PIECE)))  # it has grown since
        left -= len(pieces[-1])
    return b"".join(pieces)


def write_text(path: Path, text: str) -> None:
    """Writes a file as UTF-8 and waits until the disk has it. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def writing(path: Path, problem: str = "could not be written") -> Iterator[None]:
    """Turns an OSError of the block into the WriteFailedError of this file."""
    try:
        yield
    except CiwrapError:
        raise  # some of ours are an OSError, too
    except OSError as error:
        raise WriteFailedError(
            f"{problem}: {error.strerror or error}",
            file=path,
            remedy="free some space or make the folder writable",
        ) from error


def write_atomically(path: Path, data: str | bytes, *, staged: Path | None = None) -> None:
    """Replaces a file, or makes it: it is what it was until all of this is on the disk. Texts are
    written as UTF-8. staged: as of `replaced_file`. Raises OSError.
    """
    with replaced_file(path, staged=staged) as new:
        new.write_bytes(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def replaced_file(path: Path, *, staged: Path | None = None) -> Iterator[Path]:
    """Where to write a file that takes the place of `path` once the block has ended well; after an
    error nothing is left of it. It gets the permissions of any new file.

    staged: that place, for writers that keep each other out: a killed one leaves one file at most.
    Without it, each has a place of its own. Raises OSError.
    """
    own = f".{path.name[:100]}.{os.urandom(4).hex()}"
    new = path.with_name(own) if staged is None else staged
    try:
        yield new
        flush(new)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(new)
        raise
    flush_folder(path.parent)


def flush(path: Path) -> None:
    """Waits until the disk has a file that somebody else wrote. Raises OSError."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def flush_folder(folder: Path) -> None:
    """Waits until the disk has a folder's names, after a rename in it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems know no fsync of folders; their renames are synchronous.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a file, if it is there. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


WORK_DIR = ".ciwrap"
# The JSON Schema of ciwrap.yaml, in the package and there.
SCHEMA_NAME = "ciwrap.schema.json"
_SCHEMA = Path(__file__).resolve().parents[1] / SCHEMA_NAME
PENDING_DIR = f"{WORK_DIR}/pending"
# Of what runs left: their snapshots, and which of them made which outputs.
RUNS_DIR = f"{WORK_DIR}/snapshots"
RUN_NOTES = f"{RUNS_DIR}/outputs.json"


def keep_out_of_git(work_dir: Path) -> None:
    """Makes the folder if it is missing, tells git to ignore it, and puts the schema there that the
    first line of a ciwrap.yaml names to editors. Raises WriteFailedError.
    """
    path = work_dir / ".gitignore"
    if not path.exists():
        with writing(path):
            work_dir.mkdir(parents=True, exist_ok=True)
            path.write_text("# Made by ciwrap; nothing in here is to be committed.\n*\n")
    copy = work_dir / SCHEMA_NAME
    if not (work_dir.parent / "ciwrap.yaml").exists():
        return
    # Another size: that of another release.
    if not copy.exists() or copy.stat().st_size != _SCHEMA.stat().st_size:
        with writing(copy):
            new = copy.with_name(f"{SCHEMA_NAME}.{os.urandom(4).hex()}")
            shutil.copyfile(_SCHEMA, new)
            new.replace(copy)


PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


def is_packed(path: PurePath) -> bool:
    """Whether the name says so."""
    name = path.name
    return inner_name(name) != name


def inner_name(name: str) -> str:
    """What a packed file of this name would be called unpacked; any other name as it is."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix.lower() in PACKED_SUFFIXES else name


def inner_path(path: PurePath) -> PurePath:
    """What a packed file would be called unpacked; any other file's own path."""
    return path.with_name(inner_name(path.name)) if is_packed(path) else path


def suffixes_of(path: PurePath) -> str:
    """The suffix of a file; behind that of what is in it, if it is packed: `.csv.gz`."""
    return path.name.removeprefix(inner_path(path).stem)
