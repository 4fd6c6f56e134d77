"""Artifacts that others made: fetched, unpacked within limits, and read as what they may be."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ciwrap.action.inputs import ARTIFACT_PREFIX, safe_key
from ciwrap.errors import CorruptFileError, FileLimitError, UsageError
from ciwrap.report.text import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.action.api import Api

MOST_ZIP_BYTES = 256 << 20
MOST_ENTRIES = 10_000
MOST_BYTES = 1 << 30
MOST_ENTRY_BYTES = 512 << 20
MOST_ARTIFACTS = 200
_MOST_META_BYTES = 64 << 10
_MOST_PARTS = 12
_COPY_BYTES = 1 << 20
_END_BYTES = 22
_MOST_DIRECTORY_BYTES = MOST_ENTRIES * 512
_ENCRYPTED = 0x1
_COMMIT = re.compile(r"([0-9a-f]{40})?")


@dataclass(frozen=True, slots=True)
class Meta:
    """What an artifact says of itself. Somebody else wrote it: it names, it never decides."""

    platform_key: str = ""
    sha: str = ""
    commit: str = ""


def unpack(data: bytes, folder: Path, name: str) -> None:
    """Unpacks a zip into an empty folder, or nothing of it.

    Raises CorruptFileError for anything but plain files in plain folders (links, devices, `..`,
    absolute paths, the same name twice, encryption) and FileLimitError beyond the limits above,
    which are counted while unpacking: what a zip says of its own sizes is not believed.
    """
    if _directory_bytes(data) > _MOST_DIRECTORY_BYTES:
        raise FileLimitError(f"holds more than {MOST_ENTRIES} files", file=name)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = _entries(archive, name)
            room = MOST_BYTES
            for target, info in entries.items():
                room = _copy(archive, info, folder / target, room, name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"is no usable zip: {error}", file=name) from error
    except OSError as error:
        raise CorruptFileError(
            f"cannot be unpacked: {error.strerror or error}", file=name
        ) from error
    except Exception as error:
        # zlib and lzma have errors of their own, which share no base but this.
        if type(error).__name__ not in ("error", "LZMAError"):
            raise
        raise CorruptFileError(f"is damaged: {error}", file=name) from error


def _directory_bytes(data: bytes) -> int:
    """How much the list of a zip's files takes, to be known before all of it is read into memory;
    0 for what is no zip. Looks for the list's end where `zipfile` does."""
    end = len(data) - _END_BYTES
    if data[end : end + 4] != b"PK\5\6" or data[-2:] != b"\0\0":
        end = data.rfind(b"PK\5\6", max(0, end - 0xFFFF))
    if end < 0 or len(data) - end < _END_BYTES:
        return 0
    (size,) = struct.unpack_from("<I", data, end + 12)
    locator = end - 20
    large = locator - 56
    if large >= 0 and data[locator : locator + 4] == b"PK\6\7":
        size = max(size, struct.unpack_from("<Q", data, large + 40)[0])
    return int(size)


def _entries(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MOST_ENTRIES:
        raise FileLimitError(f"holds more than {MOST_ENTRIES} files", file=name)
    found: dict[str, zipfile.ZipInfo] = {}
    taken: set[str] = set()
    for info in infos:
        if info.is_dir():
            continue
        target = _target(info, name)
        # Names that some file system takes for the same one are the same.
        if target.casefold() in taken:
            raise CorruptFileError(f"holds {target!r} twice", file=name)
        taken.add(target.casefold())
        found[target] = info
    return found


def _target(info: zipfile.ZipInfo, name: str) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise CorruptFileError(f"{info.filename!r} is no plain file", file=name)
    if info.flag_bits & _ENCRYPTED:
        raise CorruptFileError(f"{info.filename!r} is encrypted", file=name)
    path = PurePosixPath(info.filename)
    strange = (
        path.is_absolute()
        or not path.parts
        or len(path.parts) > _MOST_PARTS
        or ".." in path.parts
        or "\\" in info.filename
        or ":" in path.parts[0]
        or not info.filename.isprintable()
        or any(len(os.fsencode(part)) > 255 for part in path.parts)
    )
    if strange:
        raise CorruptFileError(f"{info.filename!r} is no name for a file in it", file=name)
    return path.as_posix()


def _copy(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, room: int, name: str
) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    left = min(room, MOST_ENTRY_BYTES)
    with archive.open(info) as source, target.open("xb") as sink:
        while chunk := source.read(_COPY_BYTES):
            left -= len(chunk)
            room -= len(chunk)
            if left < 0:
                raise FileLimitError(
                    f"unpacks to more than {bytes_text(MOST_BYTES)}"
                    f" ({bytes_text(MOST_ENTRY_BYTES)} for one file)",
                    file=name,
                )
            sink.write(chunk)
    return room


def read_meta(folder: Path) -> Meta:
    """Raises CorruptFileError for a description that is not one of ours."""
    path = folder / "meta.json"
    try:
        with path.open("rb") as stream:
            document = json.loads(stream.read(_MOST_META_BYTES))
        key, sha, commit = (document[name] for name in ("platform_key", "sha", "commit"))
        if not isinstance(key, str):
            raise TypeError("platform_key must be a text")
        for one in (sha, commit):
            if not isinstance(one, str) or not _COMMIT.fullmatch(one):
                raise ValueError(f"{one!r} is no commit")
        return Meta(safe_key(key, "platform_key") if key else "", sha, commit)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UsageError) as error:
        raise CorruptFileError(f"does not describe an artifact: {error}", file=path) from None


def results_below(folder: Path) -> Iterator[Path]:
    """The folders of artifacts in a folder: itself, or those in it, sorted by name."""
    for one in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (one / "result.json").is_file() or (one / "meta.json").is_file():
            yield one


def fetch(api: Api, repository: str, run_id: int, folder: Path) -> list[Path]:
    """Unpacks all of our artifacts of a workflow run, each into a folder of its own name."""
    path = f"/repos/{repository}/actions/runs/{run_id}/artifacts"
    newest: dict[str, Any] = {}
    for found in api.pages(path, "artifacts"):
        name = str(found.get("name", ""))
        if found.get("expired") or not _is_ours(name):
            continue
        if name not in newest or int(newest[name]["id"]) < int(found["id"]):
            newest[name] = found
        if len(newest) > MOST_ARTIFACTS:
            raise FileLimitError(f"the run has more than {MOST_ARTIFACTS} artifacts")
    folders = []
    for name, found in sorted(newest.items()):
        data = api.download(
            f"/repos/{repository}/actions/artifacts/{int(found['id'])}/zip", MOST_ZIP_BYTES
        )
        target = folder / name
        target.mkdir(parents=True)
        unpack(data, target, name)
        folders.append(target)
    return folders


def _is_ours(name: str) -> bool:
    if name != ARTIFACT_PREFIX and not name.startswith(f"{ARTIFACT_PREFIX}-"):
        return False
    try:
        return safe_key(name, "name") == name
    except UsageError:
        return False
