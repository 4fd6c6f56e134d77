"""Snapshots of runs: which one made which outputs, so that a later `accept` or `check` knows it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import (
    CorruptFileError,
    FileLimitError,
    NotAvailableError,
    UnreadableFileError,
    UsageError,
    WriteFailedError,
)
from ciwrap.files import read_regular, write_atomically
from ciwrap.work_folder import RUN_NOTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ciwrap.model import EnvironmentDifference
    from ciwrap.snapshot.program import ProgramWatcher
    from ciwrap.snapshot.records import Snapshot
    from ciwrap.snapshot.store import SnapshotStore

FORMAT_VERSION = 1
# A program of a thousand libraries on another system would fill every report.
MOST_DIFFERENCES = 200
_MOST_BYTES = 4 << 20


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """snapshot: its identity. stamp: what the outputs looked like when the run had ended."""

    snapshot: str
    stamp: str


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    checks: dict[str, _Note]


def keep_snapshot(
    store: SnapshotStore, snapshot: Snapshot, *, is_newest: bool = False
) -> dict[str, str]:
    """Saves a snapshot and returns its summary, with its identity if it could be written.

    is_newest: whether it becomes the newest of the store, also if it was there before.

    No run fails because it leaves no snapshot: what is in the way is told on stderr.
    """
    from ciwrap.snapshot.describe import summary_of

    try:
        identity = store.save(snapshot)
        if is_newest:
            store.touch(identity)
    except WriteFailedError as error:
        print(f"warning: no snapshot is kept: {error}", file=sys.stderr)
        return summary_of(snapshot)
    return summary_of(snapshot, identity)


def environment_of_program(root: Path, watcher: ProgramWatcher, command: str) -> dict[str, str]:
    """The summary of what a watched command ran with; the snapshot is kept in the project's
    `.ciwrap`. root: the project's folder.
    """
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.snapshot.take import snapshot_of_program

    found = snapshot_of_program(root, watcher.seen, command=command)
    return keep_snapshot(SnapshotStore.of_project(root), found, is_newest=True)


def environment_of_process(root: Path, golden_dir: Path | None = None) -> dict[str, str]:
    """The summary of this process. The snapshot is kept with the goldens, where some are written,
    else in the project's `.ciwrap`.
    """
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.snapshot.take import snapshot_of_process

    store = (
        SnapshotStore.of_project(root)
        if golden_dir is None
        else SnapshotStore.of_goldens(golden_dir)
    )
    return keep_snapshot(store, snapshot_of_process(root))


def note_outputs(
    root: Path, environment: Mapping[str, str], outputs: Mapping[str, Iterable[Path]]
) -> None:
    """Notes that a run with this environment made these files, by check (or whatever tells one
    place of outputs from others).

    Nothing is noted of a run whose snapshot was not kept, and what was noted of these checks is
    gone then.
    """
    import json

    notes = dict(_read_notes(root))
    identity = environment.get("snapshot")
    for name, files in outputs.items():
        notes.pop(name, None)
        if identity is not None:
            notes[name] = _Note(identity, stamp_of(files))
    path = root / RUN_NOTES
    if not path.parent.is_dir():
        return
    document = msgspec.to_builtins(_Notes(FORMAT_VERSION, notes))
    try:
        write_atomically(path, json.dumps(document, indent=1) + "\n")
    except OSError as error:
        print(f"warning: {path}: could not be written: {error.strerror}", file=sys.stderr)


def environment_of_outputs(root: Path, files: Iterable[Path]) -> dict[str, str] | None:
    """The summary of the run that made these files; None if that is not known, or if one of them
    was written since.
    """
    found = snapshot_of_outputs(root, files)
    if found is None:
        return None
    from ciwrap.snapshot.describe import summary_of

    return summary_of(found[1], found[0])


def snapshot_of_outputs(root: Path, files: Iterable[Path]) -> tuple[str, Snapshot] | None:
    """Identity and snapshot of the run that made these files; None as above.

    Files that were moved, as `repeat --keep` does, are known by what they look like.
    """
    from ciwrap.snapshot.store import SnapshotStore

    notes = _read_notes(root)
    there = list(files) if notes else []
    if not there:
        return None
    stamp = stamp_of(there)
    for note in notes.values():
        if note.stamp == stamp:
            found = _load(note.snapshot, [SnapshotStore.of_project(root)])
            if found is not None:
                return note.snapshot, found
    return None


def environment_for_golden(
    root: Path, files: Iterable[Path], store: SnapshotStore
) -> dict[str, str]:
    """Keeps what outputs were made with beside the golden they become; its summary.

    Of outputs that no known run made it is what is here: the machine, and no program.
    """
    from ciwrap.snapshot.take import snapshot_of_machine

    known = snapshot_of_outputs(root, files)
    return keep_snapshot(store, snapshot_of_machine(root) if known is None else known[1])


def carry_snapshot(
    environment: Mapping[str, str], sources: Iterable[SnapshotStore], target: SnapshotStore
) -> None:
    """Copies the snapshot that a summary names, from the first store that has it. Where none can
    read it, or it cannot be written, the summary stays alone, and only the latter is told.
    """
    from ciwrap.snapshot.store import IDENTITY_DIGITS

    identity = environment.get("snapshot", "")
    if len(identity) == IDENTITY_DIGITS and target.contains(identity):
        return
    found = _load(environment.get("snapshot"), sources)
    if found is not None:
        keep_snapshot(target, found)


def environment_differences(
    reference: Mapping[str, str], new: Mapping[str, str], stores: Iterable[SnapshotStore]
) -> tuple[EnvironmentDifference, ...]:
    """What differs between two environments: object by object where both snapshots are in one of
    the stores and can be read, else as far as their summaries tell.
    """
    from ciwrap.snapshot.difference import compare_snapshots, compare_summaries

    there = list(stores)
    before, after = (_load(one.get("snapshot"), there) for one in (reference, new))
    if before is not None and after is not None:
        return compare_snapshots(before, after)[:MOST_DIFFERENCES]
    return compare_summaries(reference, new)[:MOST_DIFFERENCES]


def stamp_of(files: Iterable[Path]) -> str:
    """A digest of the names, sizes and times of files; it is another one once one is written."""
    import hashlib

    digest = hashlib.sha256()
    for path in sorted(files):
        try:
            status = path.stat()
        except OSError:
            digest.update(f"{path.name}\0gone\0".encode("utf-8", "surrogateescape"))
            continue
        facts = f"{path.name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\0"
        digest.update(facts.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _load(identity: str | None, stores: Iterable[SnapshotStore]) -> Snapshot | None:
    """A snapshot from the first store that has it and can read it."""
    for store in stores if identity is not None else ():
        assert identity is not None
        if store.contains(identity):
            try:
                return store.load(identity)
            except (CorruptFileError, NotAvailableError, UnreadableFileError, UsageError):
                continue
    return None


def _read_notes(root: Path) -> dict[str, _Note]:
    """What was noted; nothing where the notes are missing or damaged, since they only save work."""
    try:
        data = read_regular(root / RUN_NOTES, _MOST_BYTES)
        return dict(to_versioned_record(load_json(data), _Notes, FORMAT_VERSION).checks)
    except (FileNotFoundError, FileLimitError, UnreadableFileError, DocumentError):
        return {}
