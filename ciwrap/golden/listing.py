"""All goldens below a folder, and getting rid of some."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.errors import CiwrapError, WriteFailedError
from ciwrap.golden.files import flush_folder, read_regular, remove
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest
from ciwrap.golden.paths import MANIFEST_SUFFIX, stored_stems, unescape_name
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStore

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTENED = "~"


def stored_places(golden_dir: Path) -> list[Place]:
    """The places of all goldens, whole or not, in the folder and below it; sorted.

    Folders whose names begin with a dot are passed over, and so are links to folders.
    """
    found: list[Place] = []
    for here, folders, _ in os.walk(golden_dir):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = Path(here).relative_to(golden_dir).as_posix()
        folder = "" if relative == "." else relative
        found += [Place(folder, _name_of(Path(here), stem)) for stem in stored_stems(Path(here))]
    return sorted(found)


def _name_of(folder: Path, stem: str) -> str:
    """The name a stem stands for; that of a shortened one is in the manifest only."""
    if _SHORTENED not in stem:
        return unescape_name(stem)
    try:
        data = read_regular(folder / f"{stem}{MANIFEST_SUFFIX}", MOST_MANIFEST_BYTES)
        return load_manifest(data).check
    except (CiwrapError, FileNotFoundError, DocumentError):
        return unescape_name(stem)


def delete_goldens(golden_dir: Path, places: Iterable[Place]) -> list[Path]:
    """Deletes goldens, and the folders that are empty then; returns the binaries' paths.

    Raises LockBusyError, WriteFailedError.
    """
    deleted = []
    for place in places:
        folder = golden_dir / place.folder
        store = GoldenStore(folder)
        if not store.contains(place.name):
            continue
        with store.locked():
            # The manifest last: without its binary it says that a golden is missing, while a
            # binary alone would be taken for a damaged one.
            remove(store.path(place.name))
            remove(store.manifest_path(place.name))
            flush_folder(folder)
        deleted.append(store.path(place.name))
        while folder != golden_dir:
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()
            folder = folder.parent
    return deleted


def delete_ensemble(path: Path) -> Path:
    """Deletes an ensemble, and returns its path. Raises WriteFailedError."""
    try:
        remove(path)
        flush_folder(path.parent)
    except OSError as error:
        raise WriteFailedError(
            f"could not be deleted: {error.strerror or error}", file=path
        ) from error
    return path
