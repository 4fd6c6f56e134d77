"""Pending goldens out of an artifact that somebody else's run left: a folder or a .zip.

Nothing in it is trusted. Only files of the kinds that ciwrap itself writes are taken over, into a
folder of our own; whatever else lies below its `pending.json` is refused. What the goldens hold is
verified when they are read.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from ciwrap import archive
from ciwrap.errors import ArtifactError
from ciwrap.golden.paths import BINARY_SUFFIX, MANIFEST_SUFFIX
from ciwrap.golden.pending import INDEX_NAME, RESULT_SUFFIX, PendingStore

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = (MANIFEST_SUFFIX, BINARY_SUFFIX, RESULT_SUFFIX)
# Left by whatever was running when the folder was packed; of no use, and harmless.
_PASSED_OVER = frozenset({".ciwrap.lock"})


@contextlib.contextmanager
def opened(source: Path) -> Iterator[PendingStore]:
    """The artifact's pending goldens, copied into a temporary folder that ends with the block.

    Raises ArtifactError for anything that ciwrap does not write itself, FileLimitError for more of
    it than is ever needed.
    """
    with tempfile.TemporaryDirectory(prefix="ciwrap-") as folder:
        target = Path(folder) / "pending"
        target.mkdir()
        try:
            if source.is_dir():
                _take(archive.folder_files(source), target, source)
            else:
                with _regular(source) as stream, archive.zip_files(stream, source) as files:
                    _take(files, target, source)
        except OSError as error:
            raise ArtifactError(
                f"cannot be read: {error.strerror or error}", file=source
            ) from error
        yield PendingStore(target)


@contextlib.contextmanager
def _regular(source: Path) -> Iterator[IO[bytes]]:
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ArtifactError("is neither a folder nor a file", file=source)
        yield stream


def _take(files: archive.Files, target: Path, source: Path) -> None:
    """Copies what lies beside and below `pending.json`; other parts of the artifact stay out."""
    indexes = [name for name in files if PurePosixPath(name).name == INDEX_NAME]
    if len(indexes) != 1:
        raise ArtifactError(
            f"holds {len(indexes) or 'no'} {INDEX_NAME}, not one",
            file=source,
            remedy="give the folder that `ciwrap` left in .ciwrap/pending, or an archive of it",
        )
    prefix = indexes[0].removesuffix(INDEX_NAME)
    taken = {}
    for name, open_file in sorted(files.items()):
        inner = name.removeprefix(prefix)
        if not name.startswith(prefix) or PurePosixPath(inner).name in _PASSED_OVER:
            continue
        if inner != INDEX_NAME and not inner.endswith(_SUFFIXES):
            raise archive.refused(name, "is no file of a pending golden", source)
        taken[inner] = open_file
    archive.copy_files(taken, target, source)
