"""Which capture or recorded run stands for a run whose data are elsewhere, or gone."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.captures.container import MAGIC
from ciwrap.captures.index import malformed
from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.captures.journals import is_recording, own_files
from ciwrap.captures.listing import capture_paths
from ciwrap.captures.open_capture import open_capture
from ciwrap.catalog.files import relative_path, walk_with_links, why_changed
from ciwrap.errors import NotComparableError, UnreadableFileError
from ciwrap.patterns import file_glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.catalog.files import SourceFile
    from ciwrap.errors import CiwrapError


def fingerprint_of(path: Path) -> Path | None:
    """The capture that stands for a run without data: the file or recorded run `path` itself, or
    that of a folder that holds no other file; None for a run with data and for anything else.
    Raises UnreadableFileError.
    """
    known = capture_of(path)
    if known == path:
        return path
    return None if known is None or (path.is_dir() and any(_visible_files(path))) else known


def capture_of(path: Path) -> Path | None:
    """The capture or recorded run at `path`, or the capture of the run there; None if there is
    none. Raises UnreadableFileError.
    """
    try:
        if is_recording(path):
            return path
        if path.is_dir():
            return next((one for one in capture_paths(path) if one.is_file()), None)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return path if file.read(len(MAGIC)) == MAGIC else None
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error


def refuse_other_data(run: Path, capture_path: Path) -> None:
    """Raises NotComparableError for a capture that is to stand for a run whose data are there, and
    which does not tell of them any more: files that were captured have changed, or others have been
    written since. Raises the errors of reading captures.
    """
    if capture_path == run or not run.is_dir():
        return
    captured: dict[str, SourceFile] = {}
    with open_capture(capture_path) as capture:
        index = read_index(capture)
        for directory in index.checkpoints.values():
            files = read_checkpoint(capture, directory).files
            captured.update({one.path: one for one in files})
    others = [one for one in _visible_files(run) if relative_path(run, one) not in captured]
    if not others and not any(_visible_files(run)):
        return
    try:
        made_at = datetime.fromisoformat(index.header.made_at).timestamp()
    except ValueError:
        raise malformed(capture_path, "when it was made") from None
    newer = next((one for one in others if _is_since(one, made_at)), None)
    why = why_changed([*captured.values()], run)
    if newer is not None:
        why = f"{relative_path(run, newer)} was written since"
    if why is not None:
        raise NotComparableError(
            f"is no longer what its capture describes: {why}",
            file=run,
            remedy=f"capture it again, or name the capture itself ({capture_path})",
        )


def files_beside_journals(
    run: Path, exclude: Sequence[str] = (), root: Path | None = None
) -> tuple[CiwrapError, ...]:
    """An error for each file that lies in the folder of a recorded run and that recording did not
    write: nobody compares it.

    exclude: patterns of files that nobody wants to be told of, relative to `root` (the run's folder
    if it is not given). Raises UnreadableFileError, ConfigError.
    """
    own = {*own_files(run)}
    left_out = [file_glob(text, "exclude") for text in exclude]
    found = (path for path in _visible_files(run) if path not in own)
    return tuple(
        NotComparableError(
            "was not compared: of a recorded run the journals alone are",
            file=path,
            remedy="write it elsewhere, or leave it out with 'exclude'",
        )
        for path in sorted(found)
        if not any(one.match(relative_path(root or run, path)) for one in left_out)
    )


def _is_since(path: Path, moment: float) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(look().st_mtime >= moment for look in (path.lstat, path.stat))
    return False


def _visible_files(folder: Path) -> Iterator[Path]:
    """All files that are not hidden, nor in a hidden folder. Raises UnreadableFileError."""
    for here, folders, names in walk_with_links(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here) / name for name in names if not name.startswith("."))
