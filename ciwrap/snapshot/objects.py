"""Loaded objects: what they are, by the digest of their build."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from functools import lru_cache
from typing import TYPE_CHECKING

from ciwrap.snapshot.elf import build_id_of
from ciwrap.snapshot.kinds import kind_of_library
from ciwrap.snapshot.records import LoadedObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.snapshot.maps import MappedFile
    from ciwrap.snapshot.private import Cleaner

_BLOCK = 1 << 20
_MOST_SEARCHED = 256 << 20
_VERSION_IN_NAME = re.compile(r"\.so\.(\d+\.\d[\d.]*)$|-(\d+\.\d[\d.]*)\.so$")
# What libraries say of themselves, in the kinds where a version is worth a search.
_VERSION_IN_FILE = {
    "maths": (
        ("OpenBLAS", re.compile(rb"OpenBLAS (\d+\.\d+[\w.]*)")),
        ("MKL", re.compile(rb"Math Kernel Library Version (\d[\w.]*)")),
        ("BLIS", re.compile(rb"AOCL-BLIS (\d[\w.]*)")),
    ),
    "mpi": (
        ("MPICH", re.compile(rb"\0(\d+\.\d[\w.]*)\0MPICH %s")),
        ("Open MPI", re.compile(rb"Open MPI v(\d[\w.]*)")),
    ),
}
_Key = tuple[str, int, int, int, int]


def look_at(files: Iterable[MappedFile], *, root: str = "") -> dict[MappedFile, _Key]:
    """Those of the files that are still what was mapped, each with what a change would change.

    root: the root folder of the process that mapped them, as /proc/PID/root, for containers.
    """
    found: dict[MappedFile, _Key] = {}
    for file in files:
        for path in (file.path, f"{root}{file.path}") if root else (file.path,):
            try:
                status = os.stat(path)  # noqa: PTH116 - hundreds of them
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_ino == file.inode:
                key = (path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
                found[file] = key
                _learn(key)
                break
    return found


def _learn(key: _Key) -> None:
    """Reads the build ID now: a program that was built for this run may be gone after it."""
    with contextlib.suppress(OSError):
        _build_id(key)


def describe_object(key: _Key, path: str, cleaner: Cleaner, *, hashed: bool) -> LoadedObject | None:
    """What an object is; None if it cannot be read. path: as its process sees it.

    hashed: SHA-256 also of objects that have a build ID.
    """
    sha256 = version = None
    kind = kind_of_library(path.rpartition("/")[2])
    try:
        build_id = _build_id(key)
        if hashed or build_id is None:
            sha256 = _sha256(key)
        version = _version(key, kind)
    except OSError:
        build_id = None
    if build_id is None and sha256 is None:
        return None
    return LoadedObject(cleaner.path(path), kind, key[-1], build_id, sha256, version)


@lru_cache(4096)
def _build_id(key: _Key) -> str | None:
    with open(key[0], "rb") as stream:  # noqa: PTH123
        return build_id_of(stream)


@lru_cache(4096)
def _sha256(key: _Key) -> str:
    digest = hashlib.sha256()
    with open(key[0], "rb") as stream:  # noqa: PTH123
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@lru_cache(4096)
def _version(key: _Key, kind: str) -> str | None:
    """What the file says of its version; else what its name says."""
    if kind in _VERSION_IN_FILE and key[-1] > _BLOCK:
        with open(key[0], "rb") as stream:  # noqa: PTH123
            said = _search(stream.read(_MOST_SEARCHED), kind)
        if said is not None:
            return said
    named = _VERSION_IN_NAME.search(key[0])
    return None if named is None else (named[1] or named[2]).rstrip(".")


def _search(data: bytes, kind: str) -> str | None:
    for name, pattern in _VERSION_IN_FILE[kind]:
        found = pattern.search(data)
        if found is not None:
            return f"{name} {found[1].decode('ascii', 'replace')}"
    return None
