"""Goldens that wait for somebody to accept or reject them: pending ones.

They lie in `.ciwrap/pending/`, laid out like the golden folder and written by the same stores, each
with the result of the comparison that failed: beside its pair of files, or in the line of a shared
one. The manifest says
what it was made from.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ciwrap.documents import DocumentError
from ciwrap.documents.load_json import load_json
from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    UnreadableFileError,
    UsageError,
)
from ciwrap.files import read_regular, remove, write_atomically, writing
from ciwrap.golden import paths
from ciwrap.golden.listing import shared_stores
from ciwrap.golden.lock import remove_lock_file, writer_lock
from ciwrap.golden.manifest import (
    BinaryFile,
    Manifest,
    PendingOrigin,
    rows_of,
)
from ciwrap.golden.module_store import ModuleStore
from ciwrap.golden.places import Place, checks_meant
from ciwrap.golden.store import GoldenStore
from ciwrap.golden.stores import GoldenStores
from ciwrap.model.forms import nearest
from ciwrap.review.pending_files import (
    PendingGolden,
    look_at_all_shared,
    look_at_pair,
    look_at_shared,
)
from ciwrap.review.pending_index import (
    INDEX_NAME,
    PendingEntry,
    PendingIndex,
    index_text,
    read_index,
)
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.work_folder import WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ciwrap import _core
    from ciwrap.arrays.values import Labels
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.model import VariableId

RESULT_SUFFIX = ".result.json"
MOST_RESULT_BYTES = 64 << 20


class PendingGoldens:
    """The pending goldens in one folder; safe to share. is_kept: as of a `GoldenStore`."""

    def __init__(self, folder: Path, *, is_kept: bool = False) -> None:
        self.folder = folder
        self._stores = GoldenStores(folder, is_kept=is_kept)

    def store(self, place: Place) -> GoldenStore:
        return self._stores.at(place)

    @property
    def snapshots(self) -> SnapshotStore:
        """What these goldens were made with; it travels with them."""
        return SnapshotStore.of_goldens(self.folder)

    def close(self) -> None:
        """Ends the writing of a kept one."""
        self._stores.close()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Makes many changes within the block cheap, and ends them with it."""
        with self._stores.kept():
            yield

    def contains(self, place: Place) -> bool:
        return self.store(place).contains(place.name)

    def write(
        self,
        place: Place,
        variables: Sequence[_core.GoldenVariable],
        origin: PendingOrigin,
        environment: Mapping[str, str],
        result: str,
        labels: Mapping[VariableId, Labels],
        ignored: tuple[str, ...] = (),
    ) -> StoredGolden:
        """Keeps a golden for review, instead of an older one of the same check.

        labels: of its variables, where they have any. ignored: what of the outputs is left out.
        result: the document of the comparison that it comes from. Raises WriteFailedError,
        LockBusyError.
        """
        store = self.store(place)

        def make_manifest(root: str, byte_count: int) -> Manifest:
            return Manifest(
                check=place.name,
                binary=BinaryFile(store.path(place.name).name, root, byte_count),
                variables=rows_of(variables, labels),
                environment=dict(environment),
                pending=origin,
                ignored=ignored,
            )

        if self.folder.parent.name == WORK_DIR:
            keep_out_of_git(self.folder.parent)
        with store.locked():
            # Never the result of one golden beside another one.
            self._remove(self.result_path(place))
            stored = store.write(place.name, variables, make_manifest, result)
            if not stored.is_shared:
                self._write(self.result_path(place), result)
        return stored

    def result_path(self, place: Place) -> Path:
        return self.folder / place.folder / f"{paths.escape_name(place.name)}{RESULT_SUFFIX}"

    def read_result(self, place: Place) -> Any:
        """The document of the comparison; None if it is not there, or is not JSON."""
        store = self.store(place)
        try:
            if isinstance(store, ModuleStore) and store.is_shared(place.name):
                return load_json((store.read(place.name).result or "").encode())
            return load_json(read_regular(self.result_path(place), MOST_RESULT_BYTES))
        except (FileNotFoundError, DocumentError, CorruptFileError, UnreadableFileError):
            return None

    def still_waits(self, golden: PendingGolden) -> bool:
        """Whether this very golden waits, and not another one of the same check by now.

        The caller holds its store's lock.
        """
        place, store = golden.place, self.store(golden.place)
        if isinstance(store, ModuleStore) and store.is_shared(place.name):
            return look_at_shared(place, store) == golden
        return look_at_pair(place.folder, store.manifest_path(place.name)) == golden

    def discard(self, place: Place) -> bool:
        """Removes whatever waits of a check; whether anything did.

        Raises LockBusyError, WriteFailedError.
        """
        if not self.contains(place):
            return False
        with self.store(place).locked():
            self.remove(place)
        return True

    def remove(self, place: Place) -> None:
        """Removes a pending golden; the caller holds its store's lock. Raises WriteFailedError."""
        store = self.store(place)
        if not (isinstance(store, ModuleStore) and store.is_shared(place.name)):
            # The manifest first: without it nothing waits, whatever else is left.
            self._remove(store.manifest_path(place.name))
        store.remove(place.name)
        self._remove(self.result_path(place))

    def found(self) -> tuple[list[PendingGolden], list[CiwrapError]]:
        """The pending goldens in the order of their places, and the errors of files that look like
        one and are none (CorruptGoldenError), or are of a later release (UnsupportedFormatError).
        """
        looked = [look_at_pair(folder, path) for folder, path in self._manifests()]
        for folder, store in shared_stores(self.folder):
            looked += look_at_all_shared(folder, store)
        goldens = [one for one in looked if isinstance(one, PendingGolden)]
        faults: list[CiwrapError] = [one for one in looked if isinstance(one, CiwrapError)]
        return sorted(goldens, key=lambda one: one.place), faults

    def all(self) -> list[PendingGolden]:
        """Returns all pending goldens. Raises the first of the errors that `found` tells."""
        goldens, faults = self.found()
        if faults:
            raise faults[0]
        return goldens

    def remove_damaged(self, fault: CorruptGoldenError) -> None:
        """Removes files that are damaged, as `found` told. Raises LockBusyError,
        WriteFailedError.
        """
        path = Path(str(fault.file))
        if self.folder not in path.parents:
            raise fault
        name = path.name.removesuffix(paths.STAGED_SUFFIX)
        if name.endswith(paths.SHARED_SUFFIX):
            shared = path.with_name(name)
            store: GoldenStore = ModuleStore(path.with_name(name.removesuffix(paths.SHARED_SUFFIX)))
            files = [shared, paths.journal_path(shared)]
        else:
            store = GoldenStore(path.parent)
            stem = name.removesuffix(paths.MANIFEST_SUFFIX)
            ends = (paths.MANIFEST_SUFFIX, paths.BINARY_SUFFIX, RESULT_SUFFIX)
            files = [path.with_name(f"{stem}{end}") for end in ends]
        with store.locked():
            for one in files:
                self._remove(one)

    def select(
        self, patterns: Sequence[str], faults: list[CiwrapError] | None = None
    ) -> list[PendingGolden]:
        """The pending goldens that one of the patterns means; without a pattern, all.

        faults: takes the errors that `found` tells. Raises UsageError for a pattern that means
        none; the first of these errors, unless faults takes them, or the patterns mean others.
        """
        goldens, damaged = self.found()
        if faults is not None:
            faults += damaged
        names = {golden.check for golden in goldens}
        meant = [checks_meant(one, names) for one in patterns]
        if damaged and faults is None and not (patterns and all(meant)):
            raise damaged[0]
        if not patterns:
            return goldens
        for pattern, hits in zip(patterns, meant, strict=True):
            if not hits:
                near = nearest(pattern, sorted(names))
                hint = "see `ciwrap review`" if near is None else f"did you mean {near!r}?"
                raise UsageError(f"no pending golden is called {pattern!r}", remedy=hint)
        return [golden for golden in goldens if any(golden.check in hits for hits in meant)]

    def _manifests(self) -> Iterator[tuple[str, Path]]:
        for here, folders, files in os.walk(self.folder):
            folders.sort()
            folder = Path(here).relative_to(self.folder).as_posix()
            for name in sorted(files):
                if name.endswith(paths.MANIFEST_SUFFIX):
                    yield "" if folder == "." else folder, Path(here, name)

    def golden_dir(self) -> str | None:
        """The golden folder that the index names; None without one. Raises CorruptFileError."""
        index = read_index(self.folder)
        return None if index is None else index.golden_dir

    def write_index(self, golden_dir: str) -> list[PendingGolden]:
        """Brings pending.json up to date, clears empty folders away; returns what is pending.

        golden_dir: the golden folder, relative to the project's. Raises WriteFailedError.
        """
        if not self.folder.is_dir():
            return []
        with writer_lock(self.folder):
            for _, store in shared_stores(self.folder):
                # Also what a killed run has left.
                store.put_in_place()
            goldens, faults = self.found()
            if not faults:
                used = {one.manifest.environment.get("snapshot", "") for one in goldens}
                self.snapshots.remove_others(used)
            self._clear_folders()
            entries = tuple(_entry(golden, golden_dir) for golden in goldens)
            index = PendingIndex(golden_dir=golden_dir, checks=entries)
            self._write(self.folder / INDEX_NAME, index_text(index))
        return goldens

    def _clear_folders(self) -> None:
        for here, _, _ in os.walk(self.folder, topdown=False):
            if Path(here) != self.folder:
                remove_lock_file(Path(here))
                with contextlib.suppress(OSError):  # not empty
                    Path(here).rmdir()

    def _write(self, path: Path, text: str) -> None:
        with writing(path):
            write_atomically(path, text, staged=paths.staged(path))

    def _remove(self, path: Path) -> None:
        with writing(path):
            remove(path)


def _entry(golden: PendingGolden, golden_dir: str) -> PendingEntry:
    path = golden.path
    folder = PurePosixPath(golden.place.folder)
    if path.name.endswith(paths.SHARED_SUFFIX):
        folder = folder.parent
    file = (folder / path.name).as_posix()
    return PendingEntry(
        check=golden.check,
        kind=golden.origin.kind,
        golden_path=f"{golden_dir}/{file}",
        file=file,
        variant=golden.place.variant,
        root=golden.root,
        base_root=golden.origin.base_root,
        bytes=golden.manifest.binary.bytes,
        created=golden.origin.created,
        commit=golden.origin.commit,
    )
