"""A golden of two files, and whether these belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.documents import DocumentError, NewerFormatError
from ciwrap.errors import (
    CiwrapError,
    CorruptGoldenError,
    GoldenMissingError,
    GoldenToMendError,
    UnsupportedFormatError,
)
from ciwrap.files import read_regular
from ciwrap.golden import paths
from ciwrap.golden.golden_file import decode, largest_decoded, refuse_pointer
from ciwrap.golden.manifest import Manifest, load_manifest, rows_of
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from pathlib import Path

REMEDY_PAIR = "take both files from the same commit, or make the golden anew with `ciwrap accept`"


class StoredGolden(Struct, frozen=True):
    """A golden as read: verified against its own checksums and its manifest.

    path: the binary's usual place, or the file that it shares (is_shared). was_interrupted: an
    accept was killed at its very end; the golden is whole and new, its file still lies under a
    `.next` name until the next accept. result: kept beside one that waits in a shared file.
    """

    check: str
    path: Path
    manifest_path: Path
    manifest: Manifest
    variables: tuple[_core.GoldenVariable, ...]
    byte_count: int
    was_interrupted: bool = False
    is_shared: bool = False
    result: str | None = None

    @property
    def root(self) -> str:
        return self.manifest.binary.root


def read_pair(check: str, path: Path, manifest_path: Path, data: bytes) -> StoredGolden:
    """The golden whose manifest's bytes were read, with the one of its two files that these name.

    Raises as `GoldenStore.read` does.
    """
    try:
        manifest = load_manifest(data)
    except NewerFormatError as error:
        # Whatever it is, it must not be taken for damage that a new golden may replace.
        raise UnsupportedFormatError(str(error), file=manifest_path) from None
    except DocumentError as error:
        refuse_pointer(data, manifest_path)
        _refuse_merge(data, manifest_path, str(error))
        raise CorruptGoldenError(str(error), file=manifest_path, remedy=REMEDY_PAIR) from None
    if manifest.check != check or manifest.binary.file != path.name:
        raise CorruptGoldenError(
            f"it is the manifest of {manifest.binary.file!r}, check {manifest.check!r}",
            file=manifest_path,
            remedy="give the files their own names back, or accept the check anew",
        )
    source, binary = _binary_of(path, manifest)
    variables = decode(binary, source, REMEDY_PAIR)
    # The binary holds no labels, so it cannot witness them.
    if rows_of(variables, manifest.labels or {}) != manifest.variables:
        raise CorruptGoldenError(
            "it describes other variables than the golden file holds",
            file=manifest_path,
            remedy=REMEDY_PAIR,
        )
    return StoredGolden(
        check,
        path,
        manifest_path,
        manifest,
        tuple(variables),
        len(binary),
        was_interrupted=source != path,
    )


def _refuse_merge(data: bytes, manifest_path: Path, why: str) -> None:
    """Raises GoldenToMendError for a manifest with the marks of a merge: both sides' history is in
    it.
    """
    from ciwrap.golden.shared_lines import is_of_merge

    if any(map(is_of_merge, data.splitlines())):
        raise GoldenToMendError(
            why,
            file=manifest_path,
            remedy="take both files of one side of the merge, then accept anew if need be",
        )


def _binary_of(path: Path, manifest: Manifest) -> tuple[Path, bytes]:
    found: bytes | None = None
    for suffix in ("", paths.STAGED_SUFFIX):
        candidate = path.with_name(path.name + suffix)
        try:
            data = read_regular(candidate, largest_decoded())
        except FileNotFoundError:
            continue
        if _matches(data, manifest):
            return candidate, data
        if not suffix:
            found = data
    if found is not None:
        # A damaged file says better what is wrong with it than its root could.
        decode(found, path, REMEDY_PAIR)
        raise CorruptGoldenError(
            "the manifest belongs to another file (it names another root)",
            file=path,
            remedy=REMEDY_PAIR,
        )
    raise GoldenMissingError(
        "the golden file is missing, although its manifest is there",
        file=path,
        remedy=REMEDY_PAIR,
    )


def _matches(data: bytes, manifest: Manifest) -> bool:
    if len(data) != manifest.binary.bytes:
        return False
    try:
        return _core.golden_root(data).hex() == manifest.binary.root
    except CiwrapError:
        return False
