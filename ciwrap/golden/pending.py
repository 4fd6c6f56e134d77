"""Goldens that wait for somebody to accept or reject them.

They lie in `.ciwrap/pending/`, laid out like the golden folder: for each the pair of binary and
manifest, written by the same store, and the result of the comparison that failed. The manifest says
what it was made from. `pending.json` lists them all for other programs; it is made anew from what
lies there whenever that has changed, so it is never the only one to know something.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import (
    CorruptFileError,
    CorruptGoldenError,
    FileLimitError,
    UnreadableFileError,
    WriteFailedError,
)
from ciwrap.golden import paths
from ciwrap.golden.files import flush_folder, read_regular, remove, write_text
from ciwrap.golden.lock import remove_lock_file, writer_lock
from ciwrap.golden.manifest import (
    MOST_MANIFEST_BYTES,
    BinaryFile,
    Count,
    Manifest,
    PendingKind,
    PendingOrigin,
    Root,
    load_manifest,
    rows_of,
)
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ciwrap import _core
    from ciwrap.arrays.values import Labels
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.model import VariableId

WORK_DIR = ".ciwrap"
PENDING_DIR = f"{WORK_DIR}/pending"
INDEX_NAME = "pending.json"
INDEX_VERSION = 1
RESULT_SUFFIX = ".result.json"
MOST_INDEX_BYTES = 16 << 20
MOST_RESULT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class PendingGolden:
    """One that waits. path: its binary. byte_count: of the binary, as its manifest states it."""

    place: Place
    path: Path
    proposal: PendingOrigin
    root: str
    byte_count: int

    @property
    def check(self) -> str:
        """What the check is called by people."""
        return self.place.check


class PendingEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One golden in pending.json. file: its binary, below the folder of pending.json."""

    check: str
    kind: PendingKind
    golden_path: str
    file: str
    variant: str | None
    root: Root
    base_root: Root | None
    bytes: Count
    created: str
    commit: str | None


class PendingIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What pending.json says. golden_dir: the golden folder, relative to the project's."""

    format: int = INDEX_VERSION
    golden_dir: str
    checks: tuple[PendingEntry, ...]


def propose(base_root: str | None, commit: str | None) -> PendingOrigin:
    """Where a golden made now comes from. base_root: of the golden it would replace."""
    return PendingOrigin(
        kind="new" if base_root is None else "changed",
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=commit,
        base_root=base_root,
    )


def keep_out_of_git(work_dir: Path) -> None:
    """Makes the folder of what is never committed. Raises WriteFailedError."""
    path = work_dir / ".gitignore"
    if path.exists():
        return
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        path.write_text("# Made by ciwrap; nothing in here is to be committed.\n*\n")
    except OSError as error:
        raise _failed(path, error) from error


class PendingStore:
    """The pending goldens in one folder; safe to share. is_kept: as of a `GoldenStore`."""

    def __init__(self, folder: Path, *, is_kept: bool = False) -> None:
        self.folder = folder
        self._stores = GoldenStores(folder, is_kept=is_kept)

    def store(self, place: Place) -> GoldenStore:
        return self._stores.at(place)

    def close(self) -> None:
        self._stores.close()

    def contains(self, place: Place) -> bool:
        return paths.manifest_path(place.under(self.folder), place.name).exists()

    def write(
        self,
        place: Place,
        variables: Sequence[_core.GoldenVariable],
        proposal: PendingOrigin,
        environment: Mapping[str, str],
        result: str,
        labels: Mapping[VariableId, Labels],
    ) -> StoredGolden:
        """Keeps a golden for review, instead of an older one of the same check.

        labels: of its variables, where they have any. result: the document of the comparison
        that it comes from. Raises WriteFailedError, LockBusyError.
        """
        store = self.store(place)

        def make_manifest(root: str, byte_count: int) -> Manifest:
            return Manifest(
                check=place.name,
                binary=BinaryFile(store.path(place.name).name, root, byte_count),
                variables=rows_of(variables, labels),
                environment=dict(environment),
                pending=proposal,
            )

        if self.folder.parent.name == WORK_DIR:
            keep_out_of_git(self.folder.parent)
        with store.locked():
            stored = store.write(place.name, variables, make_manifest)
            self._write(self.result_path(place), result)
        return stored

    def result_path(self, place: Place) -> Path:
        folder = place.under(self.folder)
        return folder / f"{paths.escape_name(place.name)}{RESULT_SUFFIX}"

    def read_result(self, place: Place) -> Any:
        """The document of the comparison; None if it is not there, or is no JSON."""
        try:
            return load_json(read_regular(self.result_path(place), MOST_RESULT_BYTES))
        except (FileNotFoundError, DocumentError, FileLimitError, UnreadableFileError):
            return None

    def discard(self, place: Place) -> bool:
        """Removes a pending golden; whether there was one."""
        if not self.contains(place):
            return False
        store = self.store(place)
        with store.locked():
            remove(store.manifest_path(place.name))
            remove(store.path(place.name))
            remove(self.result_path(place))
        return True

    def found(self) -> tuple[list[PendingGolden], list[CorruptGoldenError]]:
        """All that wait, in the order of their places, and what looks like one and is none."""
        looked = [_look(folder, path) for folder, path in self._manifests()]
        goldens = [one for one in looked if isinstance(one, PendingGolden)]
        faults = [one for one in looked if isinstance(one, CorruptGoldenError)]
        return sorted(goldens, key=lambda one: one.place), faults

    def _manifests(self) -> Iterator[tuple[str, Path]]:
        for here, folders, files in os.walk(self.folder):
            folders.sort()
            folder = Path(here).relative_to(self.folder).as_posix()
            for name in sorted(files):
                if name.endswith(paths.MANIFEST_SUFFIX):
                    yield "" if folder == "." else folder, Path(here, name)

    def write_index(self, golden_dir: str) -> list[PendingGolden]:
        """Brings pending.json up to date, clears empty folders away; returns what is pending.

        golden_dir: the golden folder, relative to the project's. Raises WriteFailedError.
        """
        if not self.folder.is_dir():
            return []
        with writer_lock(self.folder):
            goldens, _ = self.found()
            self._clear_folders()
            entries = tuple(_entry(golden, golden_dir) for golden in goldens)
            index = msgspec.to_builtins(PendingIndex(golden_dir=golden_dir, checks=entries))
            self._write(self.folder / INDEX_NAME, json.dumps(index, indent=1) + "\n")
        return goldens

    def golden_dir(self) -> str | None:
        """The golden folder that the index names; None without an index.

        Raises CorruptFileError for one that is damaged.
        """
        path = self.folder / INDEX_NAME
        try:
            data = read_regular(path, MOST_INDEX_BYTES)
            index = to_versioned_record(load_json(data), PendingIndex, INDEX_VERSION)
        except FileNotFoundError:
            return None
        except DocumentError as error:
            raise CorruptFileError(
                f"is no list of pending goldens: {error}",
                file=path,
                remedy="delete it, and run the tests again",
            ) from None
        return index.golden_dir

    def _clear_folders(self) -> None:
        for here, _, _ in os.walk(self.folder, topdown=False):
            if Path(here) != self.folder:
                remove_lock_file(Path(here))
                with contextlib.suppress(OSError):  # not empty
                    Path(here).rmdir()

    def _write(self, path: Path, text: str) -> None:
        staged = paths.staged(path)
        try:
            write_text(staged, text)
            staged.replace(path)
            flush_folder(path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                remove(staged)
            raise _failed(path, error) from error


def _look(folder: str, path: Path) -> PendingGolden | CorruptGoldenError | None:
    """What a manifest among the pending goldens is; None if it has just gone."""
    try:
        data = read_regular(path, MOST_MANIFEST_BYTES)
        return _pending(folder, path, load_manifest(data))
    except FileNotFoundError:
        return None
    except (DocumentError, UnreadableFileError, FileLimitError) as error:
        return CorruptGoldenError(
            f"is no pending golden: {error}",
            file=path,
            remedy="delete it, and run the tests again",
        )


def _pending(folder: str, path: Path, manifest: Manifest) -> PendingGolden:
    binary = path.with_name(path.name.removesuffix(paths.MANIFEST_SUFFIX) + paths.BINARY_SUFFIX)
    if manifest.pending is None:
        raise DocumentError("does not say what it was made from")
    if not manifest.check or paths.binary_path(path.parent, manifest.check) != binary:
        raise DocumentError(f"is of check {manifest.check!r}, and lies in another's place")
    return PendingGolden(
        Place(folder, manifest.check),
        binary,
        manifest.pending,
        manifest.binary.root,
        manifest.binary.bytes,
    )


def _entry(golden: PendingGolden, golden_dir: str) -> PendingEntry:
    file = "/".join(part for part in (golden.place.folder, golden.path.name) if part)
    return PendingEntry(
        check=golden.check,
        kind=golden.proposal.kind,
        golden_path=f"{golden_dir}/{file}",
        file=file,
        variant=golden.place.variant,
        root=golden.root,
        base_root=golden.proposal.base_root,
        bytes=golden.byte_count,
        created=golden.proposal.created,
        commit=golden.proposal.commit,
    )


def _failed(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"could not be written: {error.strerror or error}",
        file=path,
        remedy="free some space or make the folder writable",
    )
