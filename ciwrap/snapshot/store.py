"""Snapshots as files: compressed JSON, named by content, with their objects as an archive."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from ciwrap.base.archive import checked_names, copy_files, refused
from ciwrap.base.documents import DocumentError, load_json, to_versioned_record
from ciwrap.base.errors import (
    ArtifactError,
    CorruptFileError,
    CorruptGoldenError,
    FileLimitError,
    NotAvailableError,
    UnreadableFileError,
    UsageError,
)
from ciwrap.base.files import (
    RUNS_DIR,
    WORK_DIR,
    keep_out_of_git,
    read_regular,
    replaced_file,
    write_atomically,
    writing,
)
from ciwrap.base.processes import is_running
from ciwrap.base.repository import ask_git, left_out
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest
from ciwrap.golden.places import ENSEMBLE_SUFFIX, Place
from ciwrap.golden.show import linked_folders, stored_places
from ciwrap.golden.store import GoldenStore, GoldenStores
from ciwrap.snapshot.records import FORMAT_VERSION, Snapshot

# Beside goldens, in a hidden folder, since it holds no goldens.
GOLDEN_FOLDER = ".snapshots"
LAST = "last"
NAME = re.compile(r"(?P<hash>[0-9a-f]{32})\.json(?:\.(?P<how>zst|z))?")
_STAGED = re.compile(rf"\.{NAME.pattern}\.(?P<pid>[0-9]{{1,9}})")
_HASH = re.compile(r"[0-9a-f]{4,32}")
_MOST_SNAPSHOT_BYTES = 32 << 20
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
    return hashlib.sha256(encoded(snapshot)).hexdigest()[:IDENTITY_DIGITS]


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
        found = reader.decompress(data, _MOST_SNAPSHOT_BYTES)
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
            remedy="pip install zstandard",
        ) from None
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            found = reader.read(_MOST_SNAPSHOT_BYTES + 1)
            if len(found) > _MOST_SNAPSHOT_BYTES:
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
        if len(data) > _MOST_SNAPSHOT_BYTES:
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
        identity = identity_of(snapshot)
        if self.path_of(identity) is None:
            data, suffix = compressed(encoded(snapshot))
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
        with writing(self.folder, "could not be emptied"):
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

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        with writing(path):
            for parent in self.folder.parents:
                if parent.name == WORK_DIR:
                    keep_out_of_git(parent)
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.iterdir():
                # Of a process that was killed while it wrote.
                writer = _STAGED.fullmatch(left.name)
                if writer is not None and not is_running(int(writer["pid"])):
                    left.unlink(missing_ok=True)
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
        return read_regular(path, _MOST_SNAPSHOT_BYTES)
    except FileNotFoundError:
        raise UsageError("there is no such file", file=path) from None


_MOST_ARCHIVE_BYTES = 2 << 30
_STEP_BYTES = 1 << 20
SUFFIXES = {"zst": ".files.tar.zst", "z": ".files.tar.gz", "": ".files.tar"}


def run_files(folder: Path) -> dict[str, Path]:
    """The files of a run's folder by the name they get: those that git tracks; without git, all
    but hidden ones, which may hold what nobody is to see.
    """
    listed = ask_git(folder, "ls-files", "-z", "--cached", "--", ".")
    if listed is not None:
        names = [name for name in listed.split("\0") if name]
        found = [folder / name for name in names]
    else:
        found = [
            path
            for path in sorted(folder.rglob("*"))
            if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        ]
    return {
        f"run/{path.relative_to(folder).as_posix()}": path
        for path in found
        if path.is_file() and not path.is_symlink()
    }


def object_files(paths: Mapping[str, str]) -> dict[str, Path]:
    """Loaded objects by the name they get. paths: where each lies, by its path in the snapshot."""
    return {
        f"objects/{shown.replace('{', '').replace('}', '').lstrip('/.')}": Path(path)
        for shown, path in paths.items()
    }


def write_archive(files: Mapping[str, Path], target: Path, how: str | None = None) -> None:
    """Packs files, in the order of their names. how: as in `ciwrap.snapshot.store.compressed`.

    Owners, times and modes beyond "may be run" are left out, so that equal files make equal
    archives. Raises WriteFailedError, FileLimitError.
    """
    total = sum(path.stat().st_size for path in files.values())
    if total > _MOST_ARCHIVE_BYTES:
        raise FileLimitError(
            f"its {total} bytes are more than the {_MOST_ARCHIVE_BYTES} that are kept",
            file=target,
        )
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            replaced_file(target) as staged,
            staged.open("wb") as raw,
            _compressing(raw, how) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in sorted(files):
                _add(archive, name, files[name])


def unpack_archive(path: Path, folder: Path) -> list[str]:
    """Unpacks an archive below an empty folder; the names of its files. Whoever made it is not
    trusted. Raises ArtifactError, FileLimitError, UnreadableFileError.
    """
    with tempfile.TemporaryFile() as plain:
        try:
            with path.open("rb") as raw, _decompressing(raw, path) as stream:
                _copy(stream, plain, path)
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r:") as archive:
                members = archive.getmembers()
                checked_names((member.name for member in members), path)
                for member in members:
                    if not member.isreg():
                        raise refused(member.name, "is a link or no regular file", path)
                files = {one.name: functools.partial(_opened, archive, one) for one in members}
                copy_files(files, folder, path)
                for member in members:
                    if member.mode & 0o100:
                        (folder / member.name).chmod(0o755)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise ArtifactError(f"is damaged: {error}", file=path) from error
    return [member.name for member in members]


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(member)
    assert stream is not None
    return stream


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    with path.open("rb") as stream:
        info = tarfile.TarInfo(name)
        status = os.fstat(stream.fileno())
        info.size = status.st_size
        info.mode = 0o755 if status.st_mode & 0o100 else 0o644
        archive.addfile(info, stream)


@contextlib.contextmanager
def _compressing(raw: IO[bytes], how: str | None) -> Iterator[IO[bytes]]:
    chosen = best_compression() if how is None else how
    if chosen == "zst":
        import zstandard

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL).stream_writer(raw, closefd=False) as stream:
            yield stream
    elif chosen == "z":
        with gzip.GzipFile("", "wb", ZLIB_LEVEL, raw, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


@contextlib.contextmanager
def _decompressing(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.name.endswith(".zst"):
        import zstandard

        try:
            with zstandard.ZstdDecompressor().stream_reader(raw, closefd=False) as stream:
                yield stream
        except zstandard.ZstdError as error:
            raise ArtifactError(f"is damaged: {error}", file=path) from None
    elif path.name.endswith(".gz"):
        with gzip.GzipFile(fileobj=raw) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


def _copy(stream: IO[bytes], plain: IO[bytes], path: Path) -> None:
    left = _MOST_ARCHIVE_BYTES + (64 << 20)
    while block := stream.read(_STEP_BYTES):
        left -= len(block)
        if left < 0:
            raise FileLimitError("holds more than 2 GiB", file=path)
        plain.write(block)


def archive_of(folder: Path, identity: str) -> Path | None:
    """The archive that belongs to a snapshot; None if no files were kept."""
    for suffix in SUFFIXES.values():
        path = folder / f"{identity}{suffix}"
        if path.is_file():
            return path
    return None


_MOST_ENSEMBLE_BYTES = 256 << 20


def used_snapshots(golden_dir: Path, without: Collection[Place] = ()) -> frozenset[str]:
    """The identities that goldens and ensembles in a folder name.

    without: goldens that do not count. Raises CorruptGoldenError for one that cannot be read, since
    nobody knows what it names, or is not looked at.
    """
    for name in left_out(golden_dir):
        raise _unknown(golden_dir / name, "the sparse checkout leaves it out")
    for path in linked_folders(golden_dir):
        raise _unknown(path, "it is a link to a folder, which is not followed")
    stores = GoldenStores(golden_dir)
    found = {
        _named_by_golden(stores.at(place), place.name)
        for place in stored_places(golden_dir)
        if place not in without
    }
    found |= {_named_by_ensemble(path) for path in sorted(golden_dir.glob(f"*{ENSEMBLE_SUFFIX}"))}
    return frozenset(one for one in found if isinstance(one, str))


def _named_by_golden(store: GoldenStore, name: str) -> object:
    if isinstance(store, ModuleStore) and store.is_shared(name):
        return store.read(name).manifest.environment.get("snapshot")
    path = store.manifest_path(name)
    try:
        manifest = load_manifest(read_regular(path, MOST_MANIFEST_BYTES))
    except (DocumentError, FileNotFoundError, FileLimitError, UnreadableFileError) as error:
        raise _unknown(path, error) from None
    return manifest.environment.get("snapshot")


def _named_by_ensemble(path: Path) -> object:
    try:
        document: Any = load_json(read_regular(path, _MOST_ENSEMBLE_BYTES))
        return document["environment"].get("snapshot")
    except (DocumentError, FileLimitError, UnreadableFileError) as error:
        raise _unknown(path, error) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _unknown(path, f"it has no environment ({error})") from None


def _unknown(path: Path, why: object) -> CorruptGoldenError:
    return CorruptGoldenError(
        f"cannot be read, so nobody knows which snapshot it needs: {why}",
        file=path,
        remedy="fix it, or remove it",
    )
