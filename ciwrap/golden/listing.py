"""All goldens below a folder, and getting rid of some."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CiwrapError
from ciwrap.files import flush_folder, remove, writing
from ciwrap.golden.module_store import ModuleStore
from ciwrap.golden.names import name_of_stem
from ciwrap.golden.paths import MANIFEST_SUFFIX, SHARED_SUFFIX, STAGED_SUFFIX, stored_stems
from ciwrap.golden.places import Place
from ciwrap.golden.stores import GoldenStores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ciwrap.golden.unused import UnusedGolden


def stored_places(golden_dir: Path, faults: list[CiwrapError] | None = None) -> list[Place]:
    """The places of all goldens of checks, whole or not, in the folder and below it; sorted.

    What has no manifest is of no check: somebody's own golden, which a program wrote.
    Folders whose names begin with a dot are passed over, and so are links to folders. faults: takes
    the errors of shared files that are damaged, whose goldens nobody knows; without it they are
    raised.
    """
    found: set[Place] = set()
    for here, folder in _folders(golden_dir):
        found |= {
            Place(folder, name_of_stem(here, stem))
            for stem in stored_stems(here, (MANIFEST_SUFFIX,))
        }
    for folder, store in shared_stores(golden_dir):
        found |= {Place(folder, name) for name in _names_in(store, faults)}
    return sorted(found)


def _names_in(store: ModuleStore, faults: list[CiwrapError] | None) -> list[str]:
    try:
        return store.shared_names()
    except CiwrapError as error:
        if faults is None:
            raise
        faults.append(error)
        return []


def _folders(golden_dir: Path) -> Iterator[tuple[Path, str]]:
    """All folders, with their paths below the first."""
    for here, folders, _ in os.walk(golden_dir):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = Path(here).relative_to(golden_dir).as_posix()
        yield Path(here), "" if relative == "." else relative


def linked_folders(golden_dir: Path) -> Iterator[Path]:
    """Links to folders, which `stored_places` passes over."""
    for here, _ in _folders(golden_dir):
        with contextlib.suppress(FileNotFoundError), os.scandir(here) as entries:
            yield from sorted(Path(one) for one in entries if one.is_symlink() and one.is_dir())


def shared_stores(golden_dir: Path) -> Iterator[tuple[str, ModuleStore]]:
    """The stores of all test files that have a shared file, or the journal of one, in order."""
    for here, folder in _folders(golden_dir):
        with contextlib.suppress(FileNotFoundError):
            names = {entry.name.removesuffix(STAGED_SUFFIX) for entry in os.scandir(here)}
            for name in sorted(names):
                if name.endswith(SHARED_SUFFIX) and name != SHARED_SUFFIX:
                    inner = "/".join(part for part in (folder, name) if part)
                    stem = inner.removesuffix(SHARED_SUFFIX)
                    yield stem, ModuleStore(golden_dir / stem)


def delete_goldens(
    golden_dir: Path, unused: Iterable[UnusedGolden], deleted: list[str] | None = None
) -> list[str]:
    """Deletes goldens, and the folders that are empty then; returns where they lay, in words.

    deleted: takes these words one by one, for whoever has to tell of them if an error is raised.
    One that has another root by now stays: somebody has written it since it was looked at. Raises
    LockBusyError, WriteFailedError.
    """
    deleted = [] if deleted is None else deleted
    folders = set()
    stores = GoldenStores(golden_dir)
    with stores.kept():
        for one in unused:
            store = stores.at(one.place)
            if not store.contains(one.name):
                continue
            with store.locked():
                if store.root_of(one.name) != one.root:
                    continue
                where = store.shown(one.name)
                store.remove(one.name)
            deleted.append(where)
            folders.add(store.folder)
    for folder in sorted(folders, reverse=True):
        while folder != golden_dir:
            with contextlib.suppress(OSError):  # not empty, or gone already
                folder.rmdir()
            folder = folder.parent
    return deleted


def delete_ensemble(path: Path) -> Path:
    """Deletes an ensemble, and returns its path. Raises WriteFailedError."""
    with writing(path, "could not be deleted"):
        remove(path)
        flush_folder(path.parent)
    return path
