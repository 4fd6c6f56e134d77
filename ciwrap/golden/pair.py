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
from ciwrap.golden import paths
from ciwrap.golden.files import read_regular
from ciwrap.golden.golden_file import decode, largest_decoded, refuse_pointer
from ciwrap.golden.manifest import Manifest, VariableRow, load_manifest, rows_of
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    rows = rows_of(variables, manifest.labels or {})
    if rows != manifest.variables:
        raise _other_rows(manifest, rows, manifest_path)
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
        raise _other_binary(manifest, found, path)
    raise GoldenMissingError(
        "the golden file is missing, although its manifest is there",
        file=path,
        remedy=REMEDY_PAIR,
    )


def _other_rows(
    manifest: Manifest, rows: Sequence[VariableRow], manifest_path: Path
) -> CorruptGoldenError:
    """How a manifest differs from the rows that its golden file makes."""
    message = f"it lists {len(manifest.variables)} variables, the golden file holds {len(rows)}"
    for stated, actual in zip(manifest.variables, rows, strict=False):
        if stated != actual:
            fields = [
                name
                for name in VariableRow.__struct_fields__
                if getattr(stated, name) != getattr(actual, name)
            ]
            message = (
                f"variable {stated.name!r} is described differently in the golden file"
                f" ({', '.join(fields)})"
            )
            break
    return CorruptGoldenError(message, file=manifest_path, remedy=REMEDY_PAIR)


def _other_binary(manifest: Manifest, found: bytes, path: Path) -> CorruptGoldenError:
    """How a manifest differs from a binary that is not its own. Raises as `decode` does."""
    # A damaged file says better what is wrong with it than its root could.
    decode(found, path, REMEDY_PAIR)
    return CorruptGoldenError(
        f"the manifest belongs to another file (it names root {manifest.binary.root[:16]}... and"
        f" {manifest.binary.bytes} bytes; the file has {_core.golden_root(found).hex()[:16]}..."
        f" and {len(found)})",
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
