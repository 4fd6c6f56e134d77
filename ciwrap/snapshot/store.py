"""Snapshots as files: JSON, compressed, named by what they hold."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import (
    CorruptFileError,
    NotAvailableError,
    UsageError,
)
from ciwrap.files import read_regular, write_atomically, writing
from ciwrap.processes import is_running
from ciwrap.snapshot.records import FORMAT_VERSION, Snapshot
from ciwrap.work_folder import RUNS_DIR, WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

# Beside goldens, in a hidden folder, since it holds no goldens.
GOLDEN_FOLDER = ".snapshots"
LAST = "last"
NAME = re.compile(r"(?P<hash>[0-9a-f]{32})\.json(?:\.(?P<how>zst|z))?")
_STAGED = re.compile(rf"\.{NAME.pattern}\.(?P<pid>[0-9]{{1,9}})")
_HASH = re.compile(r"[0-9a-f]{4,32}")
_MOST_BYTES = 32 << 20
IDENTITY_DIGITS = 32
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_LEVEL, ZLIB_LEVEL = 3, 6


def encoded(snapshot: Snapshot) -> bytes:
    """The JSON text of a snapshot: the same bytes for the same facts."""
    document = msgspec.to_builtins(snapshot)
    if not snapshot.local_packages:
        # As before there was this field: a snapshot keeps its name.
        del document["local_packages"]
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def identity_of(snapshot: Snapshot) -> str:
    """The name of a snapshot: the first half of the SHA-256 of its text."""
    return _identity_of_text(encoded(snapshot))


def _identity_of_text(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:IDENTITY_DIGITS]


def best_compression() -> str:
    """ "zst" where zstandard is installed, else "z"."""
    return "zst" if find_spec("zstandard") is not None else "z"


def compressed(data: bytes, how: str | None = None) -> tuple[bytes, str]:
    """The bytes and the suffix that tells how. how: "zst", "z", "" for as they are; None for the
    best there is.
    """
    chosen = best_compression() if how is None else how
    if chosen == "zst":
        import zstandard

        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data), ".zst"
    if not chosen:
        return data, ""
    return zlib.compress(data, ZLIB_LEVEL), ".z"


def decompressed(data: bytes) -> bytes:
    """What `compressed` was given. Raises DocumentError, NotAvailableError."""
    if data.startswith(_ZSTD_MAGIC):
        return _zstd(data)
    if data[:1] == b"{":
        return data
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, _MOST_BYTES)
    except zlib.error:
        raise DocumentError("is neither JSON nor compressed") from None
    if not reader.eof:
        raise DocumentError("is cut off, or too large")
    return found


def _zstd(data: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise NotAvailableError(
            "this snapshot is compressed with zstd, and zstandard is not installed",
            remedy="pip install 'ciwrap[snapshot]'",
        ) from None
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            found = reader.read(_MOST_BYTES + 1)
            if len(found) > _MOST_BYTES:
                raise DocumentError("is too large")
            return bytes(found)
    except zstandard.ZstdError:
        raise DocumentError("is damaged") from None


def decoded(data: bytes) -> Snapshot:
    """The snapshot that a file holds. Raises DocumentError, NotAvailableError."""
    return to_versioned_record(load_json(decompressed(data)), Snapshot, FORMAT_VERSION)


def decoded_as(identity: str, data: bytes, file: Path) -> Snapshot:
    """The snapshot of this identity that bytes hold. file: where they are from, for messages.

    Raises CorruptFileError, also for another snapshot; NotAvailableError.
    """
    try:
        if len(data) > _MOST_BYTES:
            raise DocumentError("is too large")
        found = decoded(data)
    except DocumentError as error:
        raise CorruptFileError(f"this is not a snapshot: {error}", file=file) from None
    if identity_of(found) != identity:
        raise CorruptFileError("holds another snapshot than its name says", file=file)
    return found


class SnapshotStore:
    """The snapshots of a folder. folder: it need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of_project(root: Path) -> SnapshotStore:
        """The store for what runs here left, in `.ciwrap`, which is never committed."""
        return SnapshotStore(root / RUNS_DIR)

    @staticmethod
    def of_goldens(golden_dir: Path) -> SnapshotStore:
        """The store for what goldens were made with, to be committed with them."""
        return SnapshotStore(golden_dir / GOLDEN_FOLDER)

    def save(self, snapshot: Snapshot) -> str:
        """Writes a snapshot, if it is not there, and returns its identity. Raises
        WriteFailedError.
        """
        text = encoded(snapshot)
        identity = _identity_of_text(text)
        if self.path_of(identity) is None:
            data, suffix = compressed(text)
            self._write(f"{identity}.json{suffix}", data)
        return identity

    def load(self, identity: str) -> Snapshot:
        """A snapshot by its identity or how that begins. Raises UsageError if there is none, or
        more than one; CorruptFileError, UnreadableFileError.
        """
        if not _HASH.fullmatch(identity):
            raise UsageError(f"{identity!r} names no snapshot: give at least 4 digits of its hash")
        paths = self._paths(identity)
        names = {path.name[:32] for path in paths}
        if len(names) > 1:
            raise UsageError(
                f"{identity} is the beginning of {len(names)} snapshots; give more of it"
            )
        if not paths:
            raise UsageError(f"there is no snapshot {identity} in {self.folder}")
        return decoded_as(paths[0].name[:32], read_snapshot_file(paths[0]), paths[0])

    def contains(self, identity: str) -> bool:
        return bool(_HASH.fullmatch(identity)) and bool(self._paths(identity))

    def path_of(self, identity: str) -> Path | None:
        """Where a snapshot lies; None if it is not here."""
        return next(iter(self._paths(identity)), None)

    def newest(self) -> str | None:
        """The identity of the snapshot that was last written or noted; None if there is none."""
        paths = self._paths("")
        if not paths:
            return None
        return max(paths, key=lambda path: (path.stat().st_mtime_ns, path.name)).name[:32]

    def touch(self, identity: str) -> None:
        """Makes a snapshot the newest. Raises WriteFailedError."""
        path = self.path_of(identity)
        if path is not None:
            with writing(path):
                path.touch()

    def remove_others(self, kept: Collection[str]) -> list[Path]:
        """Removes the snapshots that are not among these identities, and the folder if it is empty
        then; the files. Raises WriteFailedError.
        """
        others = self.others(kept)
        with writing(self.folder, "could not be cleared"):
            for path in others:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or not there
            self.folder.rmdir()
        return others

    def others(self, kept: Collection[str]) -> list[Path]:
        """The files of snapshots that are not among these identities."""
        return [path for path in self._paths("") if path.name[:32] not in kept]

    def _paths(self, identity: str) -> list[Path]:
        try:
            names = sorted(path.name for path in self.folder.iterdir())
        except OSError:
            return []
        return [
            self.folder / name
            for name in names
            if NAME.fullmatch(name) and name.startswith(identity)
        ]

    def _clear_staged(self) -> None:
        """Removes what processes have left that were killed while they wrote."""
        for path in self.folder.iterdir():
            writer = _STAGED.fullmatch(path.name)
            if writer is not None and not is_running(int(writer["pid"])):
                path.unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        with writing(path):
            for parent in self.folder.parents:
                if parent.name == WORK_DIR:
                    keep_out_of_git(parent)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear_staged()
            # Another process may write the same one.
            staged = path.with_name(f".{path.name}.{os.getpid()}")
            write_atomically(path, data, staged=staged)


def load_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file. Raises UsageError if there is no such file, CorruptFileError,
    UnreadableFileError, NotAvailableError.
    """
    try:
        return decoded(read_snapshot_file(path))
    except DocumentError as error:
        raise CorruptFileError(f"this is not a snapshot: {error}", file=path) from None


def read_snapshot_file(path: Path) -> bytes:
    """What is in the file of a snapshot. Raises UsageError if there is none, UnreadableFileError,
    FileLimitError.
    """
    try:
        return read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        raise UsageError("there is no such file", file=path) from None
