"""Pending goldens out of an artifact that somebody else's run left: a folder or a .zip.

Nothing in it is trusted. Only files of the kinds and in the places that ciwrap itself writes are
taken, each bounded in size by what is really read, into a folder of our own; whatever else lies
below its `pending.json` is refused. What the goldens hold is verified when they are read.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from ciwrap.errors import ArtifactError
from ciwrap.golden.paths import BINARY_SUFFIX, MANIFEST_SUFFIX
from ciwrap.golden.pending import INDEX_NAME, RESULT_SUFFIX, PendingStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_FILES = 30_000
MOST_DEPTH = 40
# Of everything together, as it lies on the disk unpacked.
MOST_BYTES = 4 << 30
_STEP_BYTES = 1 << 20
_SUFFIXES = (MANIFEST_SUFFIX, BINARY_SUFFIX, RESULT_SUFFIX)
# Left by whatever was running when the folder was packed; of no use, and harmless.
_PASSED_OVER = frozenset({".ciwrap.lock"})


@contextlib.contextmanager
def opened(source: Path) -> Iterator[PendingStore]:
    """The artifact's pending goldens, copied into a temporary folder that ends with the block.

    Raises ArtifactError for anything that ciwrap does not write itself.
    """
    with tempfile.TemporaryDirectory(prefix="ciwrap-") as folder:
        target = Path(folder) / "pending"
        target.mkdir()
        try:
            if source.is_dir():
                _copy(_folder_files(source), target, source)
            else:
                with _archive(source) as archive:
                    _copy(_archive_files(archive, source), target, source)
        except OSError as error:
            raise ArtifactError(
                f"cannot be read: {error.strerror or error}", file=source
            ) from error
        yield PendingStore(target)


@contextlib.contextmanager
def _archive(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            raise ArtifactError("is neither a folder nor a file", file=source)
        with zipfile.ZipFile(source) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise ArtifactError(f"is no .zip that can be read: {error}", file=source) from error


def _archive_files(archive: zipfile.ZipFile, source: Path) -> dict[str, Callable[[], IO[bytes]]]:
    files: dict[str, Callable[[], IO[bytes]]] = {}
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise ArtifactError(f"holds more than {MOST_FILES} files", file=source)
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        # `orig_filename` is what the archive says before Python tidies it.
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or info.flag_bits & 1:
            raise _refused(info.orig_filename, "is a link, a device or encrypted", source)
        if info.is_dir():
            continue
        name = info.orig_filename
        if name in files:
            raise _refused(name, "is there twice", source)
        files[name] = lambda info=info: archive.open(info)  # type: ignore[misc]  # bound now
    return files


def _folder_files(source: Path) -> dict[str, Callable[[], IO[bytes]]]:
    files: dict[str, Callable[[], IO[bytes]]] = {}
    for here, folders, names in os.walk(source):
        for name in (*folders, *names):
            path = Path(here, name)
            mode = path.lstat().st_mode
            shown = path.relative_to(source).as_posix()
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise _refused(shown, "is a link or no regular file", source)
            if stat.S_ISREG(mode):
                files[shown] = lambda path=path: _open_plain(path)  # type: ignore[misc]
        if len(files) > MOST_FILES:
            raise ArtifactError(f"holds more than {MOST_FILES} files", file=source)
    return files


def _open_plain(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def _copy(files: dict[str, Callable[[], IO[bytes]]], target: Path, source: Path) -> None:
    """Copies what lies beside and below `pending.json`; other parts of the artifact stay out."""
    for name in files:
        _refuse_name(name, source)
    indexes = [name for name in files if PurePosixPath(name).name == INDEX_NAME]
    if len(indexes) != 1:
        raise ArtifactError(
            f"holds {len(indexes) or 'no'} {INDEX_NAME}, not one",
            file=source,
            remedy="give the folder that `ciwrap` left in .ciwrap/pending, or an archive of it",
        )
    prefix = indexes[0].removesuffix(INDEX_NAME)
    room = MOST_BYTES
    taken: set[str] = set()
    for name, open_file in sorted(files.items()):
        inner = name.removeprefix(prefix)
        if not name.startswith(prefix) or PurePosixPath(inner).name in _PASSED_OVER:
            continue
        if inner != INDEX_NAME and not inner.endswith(_SUFFIXES):
            raise _refused(name, "is no file of a pending golden", source)
        if inner.casefold() in taken:
            raise _refused(name, "differs from another one in upper and lower case only", source)
        taken.add(inner.casefold())
        path = target / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_file() as stream, path.open("xb") as copy:
            room -= _copy_bounded(stream, copy, room, name, source)


def _copy_bounded(stream: IO[bytes], copy: IO[bytes], room: int, name: str, source: Path) -> int:
    """Copies a file, whatever length it claims; returns its length."""
    count = 0
    while block := stream.read(_STEP_BYTES):
        count += len(block)
        if count > room:
            raise _refused(name, f"is too large: {MOST_BYTES >> 30} GiB in all are enough", source)
        copy.write(block)
    return count


def _refuse_name(name: str, source: Path) -> None:
    path = PurePosixPath(name)
    # A colon would name a drive or a stream elsewhere; ciwrap escapes it, like the backslash.
    if (
        path.is_absolute()
        or not name.isprintable()
        or any(char in name for char in "\\:")
        or any(part in ("..", ".", "") for part in name.split("/"))
        or len(path.parts) > MOST_DEPTH
    ):
        raise _refused(name, "is no path that can be taken over", source)


def _refused(name: str, why: str, source: Path) -> ArtifactError:
    return ArtifactError(f"{name[:200]!a} {why}", file=source)
