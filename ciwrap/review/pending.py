"""Pending goldens: kept when a check does not match, until somebody accepts or rejects them.

They lie in `.ciwrap/pending/`, laid out like the golden folder and written by the same stores, each
with the result of the comparison that failed: beside its pair of files, or in the line of a shared
one. `pending.json` lists them for other programs and is made anew whenever they change, so it never
is the only one to know something. Rejected ones get a line in `.ciwrap/rejected.jsonl`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ciwrap import _core
from ciwrap.arrays.values import Labels
from ciwrap.base.documents import DocumentError, NewerFormatError, load_json, to_versioned_record
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    LockBusyError,
    PendingConflictError,
    UnreadableFileError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.files import (
    WORK_DIR,
    keep_out_of_git,
    read_regular,
    remove,
    write_atomically,
    writing,
)
from ciwrap.base.repository import git_user
from ciwrap.base.words import nearest
from ciwrap.golden.goldens_of_tests import ModuleStore, telling_what_is_done
from ciwrap.golden.manifest import (
    MOST_MANIFEST_BYTES,
    BinaryFile,
    Count,
    Manifest,
    PendingKind,
    PendingOrigin,
    Root,
    load_manifest,
    now_text,
    rows_of,
)
from ciwrap.golden.places import (
    BINARY_SUFFIX,
    MANIFEST_SUFFIX,
    SHARED_SUFFIX,
    STAGED_SUFFIX,
    Place,
    checks_meant,
    escape_name,
    journal_path,
    remove_lock_file,
    staged,
    writer_lock,
)
from ciwrap.golden.show import shared_stores
from ciwrap.golden.store import (
    GoldenStore,
    GoldenStores,
    StoredGolden,
)
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import VariableId
from ciwrap.review.change import GoldenChange, Origin, capture_change, origin_of
from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from ciwrap.project.settings import Check
    from ciwrap.review.project import Project


_ANEW = "delete it, and run the tests again"


class PendingGolden(Struct, frozen=True):
    """One golden that waits, as its manifest tells of it. path: its binary."""

    place: Place
    path: Path
    manifest: Manifest
    origin: PendingOrigin

    @property
    def check(self) -> str:
        """What people call the check."""
        return self.place.check

    @property
    def root(self) -> str:
        return self.manifest.binary.root


def pending_origin(base_root: str | None, commit: str | None) -> PendingOrigin:
    """What a golden was made from that is made now.

    base_root: of the golden it would replace; "" for one that cannot be read, None for none.
    """
    return PendingOrigin(
        kind="new" if base_root is None else "changed",
        created=now_text(),
        commit=commit,
        base_root=base_root or None,
    )


# A pending golden; the error of a file that looks like one and is none, or of one that a later
# release has written; None for one that has just gone.
Looked = PendingGolden | CorruptGoldenError | UnsupportedFormatError | None


def look_at_pair(folder: str, path: Path) -> Looked:
    """What a manifest in the folder of pending goldens is; None if it has just gone."""
    try:
        data = read_regular(path, MOST_MANIFEST_BYTES)
        return _pending_golden(folder, path, load_manifest(data))
    except FileNotFoundError:
        return None
    except NewerFormatError as error:
        return UnsupportedFormatError(str(error), file=path)
    except (DocumentError, UnreadableFileError, FileLimitError) as error:
        return CorruptGoldenError(f"is not a pending golden: {error}", file=path, remedy=_ANEW)


def look_at_all_shared(folder: str, store: ModuleStore) -> Iterator[Looked]:
    try:
        names = store.shared_names()
    except CorruptGoldenError as error:
        yield CorruptGoldenError(
            error.message,
            file=error.file,
            remedy="throw it away with `ciwrap reject --all`, and run the tests again",
        )
        return
    except UnsupportedFormatError as error:
        yield error
        return
    for name in names:
        yield look_at_shared(Place(folder, name), store)


def look_at_shared(place: Place, store: ModuleStore) -> Looked:
    """What a golden of a shared file is, among those that wait; None if it has just gone."""
    try:
        found = store.read(place.name)
    except GoldenMissingError:
        return None
    except CorruptGoldenError as error:
        return error
    origin = found.manifest.pending
    if origin is None:
        text = f"does not say what {place.name!r} was made from"
        return CorruptGoldenError(text, file=found.path, remedy=_ANEW)
    return PendingGolden(place, found.path, found.manifest, origin)


def _pending_golden(folder: str, path: Path, manifest: Manifest) -> PendingGolden:
    binary = path.with_name(path.name.removesuffix(MANIFEST_SUFFIX) + BINARY_SUFFIX)
    if manifest.pending is None:
        raise DocumentError("does not say what it was made from")
    if not manifest.check or GoldenStore(path.parent).pair_path(manifest.check) != binary:
        raise DocumentError(f"belongs to check {manifest.check!r}, but lies in another's place")
    return PendingGolden(Place(folder, manifest.check), binary, manifest, manifest.pending)


INDEX_NAME = "pending.json"
INDEX_VERSION = 1
MOST_INDEX_BYTES = 16 << 20


class PendingEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pending golden. file: its binary, below the folder of pending.json."""

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


def index_text(index: PendingIndex) -> str:
    return json.dumps(msgspec.to_builtins(index), indent=1) + "\n"


def read_index(folder: Path) -> PendingIndex | None:
    """The index in a folder of pending goldens; None without one.

    Raises CorruptFileError for one that is damaged, UnreadableFileError.
    """
    path = folder / INDEX_NAME
    try:
        data = read_regular(path, MOST_INDEX_BYTES)
        return to_versioned_record(load_json(data), PendingIndex, INDEX_VERSION)
    except FileNotFoundError:
        return None
    except DocumentError as error:
        text = f"is not a list of pending goldens: {error}"
        raise CorruptFileError(text, file=path, remedy=_ANEW) from None


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
        return self.folder / place.folder / f"{escape_name(place.name)}{RESULT_SUFFIX}"

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
        name = path.name.removesuffix(STAGED_SUFFIX)
        if name.endswith(SHARED_SUFFIX):
            shared = path.with_name(name)
            store: GoldenStore = ModuleStore(path.with_name(name.removesuffix(SHARED_SUFFIX)))
            files = [shared, journal_path(shared)]
        else:
            store = GoldenStore(path.parent)
            stem = name.removesuffix(MANIFEST_SUFFIX)
            ends = (MANIFEST_SUFFIX, BINARY_SUFFIX, RESULT_SUFFIX)
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
                if name.endswith(MANIFEST_SUFFIX):
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
            for here, _, _ in os.walk(self.folder, topdown=False):
                if Path(here) != self.folder:
                    remove_lock_file(Path(here))
                    with contextlib.suppress(OSError):  # not empty
                        Path(here).rmdir()
            entries = tuple(_entry(golden, golden_dir) for golden in goldens)
            index = PendingIndex(golden_dir=golden_dir, checks=entries)
            self._write(self.folder / INDEX_NAME, index_text(index))
        return goldens

    def _write(self, path: Path, text: str) -> None:
        with writing(path):
            write_atomically(path, text, staged=staged(path))

    def _remove(self, path: Path) -> None:
        with writing(path):
            remove(path)


def _entry(golden: PendingGolden, golden_dir: str) -> PendingEntry:
    path = golden.path
    folder = PurePosixPath(golden.place.folder)
    if path.name.endswith(SHARED_SUFFIX):
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


def keep_unmatched(
    checks: Iterable[Check],
    store: GoldenStore,
    pending: PendingGoldens,
    documents: Mapping[str, str],
    *,
    with_snapshots: bool = True,
    resources: Resources = DEFAULT_RESOURCES,
) -> dict[str, str]:
    """Captures the outputs of checks as pending goldens; why one could not be, by its check's name.

    documents: the results of the checks that do not match. Those that match leave nothing, and what
    waited of them is gone. with_snapshots: whether what the outputs were made with is kept beside
    them. Raises WriteFailedError, LockBusyError.
    """
    problems: dict[str, str] = {}
    for check in checks:
        place = Place("", check.name)
        document = documents.get(check.name)
        if document is None:
            pending.discard(place)
            continue
        try:
            change = capture_change(check, store, with_details=False, resources=resources)
        except CiwrapError as error:
            if isinstance(error, (WriteFailedError, LockBusyError)):
                raise
            pending.discard(place)
            problems[check.name] = str(error)
            continue
        origin = origin_of(check, check.root, pending.snapshots if with_snapshots else None)
        keep(change, place, pending, origin, document)
    return problems


def keep(
    change: GoldenChange, place: Place, pending: PendingGoldens, origin: Origin, document: str
) -> None:
    """Keeps a golden that could be written, with the result it comes from.

    Raises WriteFailedError, LockBusyError.
    """
    # Something lies there, if nothing that can be read.
    base_root = change.old.root if change.old.problem is None else ""
    made_from = pending_origin(base_root, origin.commit)
    facts = (origin.environment, document, change.labels, change.ignored)
    pending.write(place, change.variables, made_from, *facts)


_LOG_NAME = "rejected.jsonl"
# Why nothing is decided of a pending golden that is not the one which was shown.
WAS_REPLACED = "the pending golden was replaced or removed meanwhile"


def reject_all(project: Project, goldens: Iterable[PendingGolden], reason: str | None) -> None:
    """Removes pending goldens. Raises as `reject`, and then says which were removed before."""
    who = git_user(project.root)
    with telling_what_is_done("rejected") as done, project.pending.kept():
        for golden in goldens:
            reject(project, golden, reason, who)
            done.append(golden.check)


def reject(
    project: Project, golden: PendingGolden, reason: str | None, who: str | None = None
) -> None:
    """Removes a pending golden.

    who: rejects it; None lets git be asked, which takes longer than all else. Raises
    PendingConflictError if another one waits in its place by now; WriteFailedError, LockBusyError.
    """
    entry = {
        "when": now_text(),
        "who": git_user(project.root) if who is None else who,
        "why": reason,
        "check": golden.check,
        "root": golden.root,
        "base_root": golden.origin.base_root,
        "commit": golden.origin.commit,
    }
    path = project.pending.folder.parent / _LOG_NAME
    with project.pending.store(golden.place).locked():
        if not project.pending.still_waits(golden):
            raise PendingConflictError(
                WAS_REPLACED,
                file=golden.path,
                variable=golden.check,
                remedy="look at it again",
            )
        project.pending.remove(golden.place)
        # Only now: what could not be removed was not rejected.
        with (
            writer_lock(path.parent, doing="noting what is rejected"),
            writing(path),
            path.open("a", encoding="utf-8") as stream,
        ):
            stream.write(json.dumps(entry) + "\n")
