"""How a capture's index is written: MessagePack, and back (docs/reference/capture-format.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciwrap.captures.bounds import CaptureHeader
from ciwrap.captures.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    Directory,
    key_order,
    malformed,
)
from ciwrap.errors import CiwrapError, UnsupportedFormatError
from ciwrap.model import VariableSettings

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.container_writer import CaptureWriter
    from ciwrap.captures.index import CheckpointKey

# These look at the type and range of every value, for a capture may come from anywhere.
_INDEX = msgspec.msgpack.Decoder(tuple[CaptureHeader, tuple[Directory, ...]])
_CHECKPOINT = msgspec.msgpack.Decoder(CapturedCheckpoint)


def encode_index(index: CaptureIndex) -> bytes:
    rows = sorted(index.checkpoints.values(), key=lambda one: key_order(one.key))
    return msgspec.msgpack.encode((index.header, rows))


def encode_checkpoint(checkpoint: CapturedCheckpoint, run: Path) -> bytes:
    """Raises UnsupportedFormatError for a path of the run that is not UTF-8."""
    for file in checkpoint.files:
        if not _is_unicode(file.path):
            raise UnsupportedFormatError(
                "is not captured: its path is not UTF-8",
                file=run / file.path,
                remedy="rename it, or compare without a capture",
            )
    return msgspec.msgpack.encode(checkpoint)


def append_checkpoint(
    writer: CaptureWriter, checkpoint: CapturedCheckpoint, run: Path
) -> Directory:
    """Adds a checkpoint's own index to a capture. Raises as `encode_checkpoint`."""
    section = writer.append_packed(encode_checkpoint(checkpoint, run))
    return Directory(checkpoint.key, section, checkpoint.digest)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _MalformedError(ValueError):
    pass


_UNDECODABLE = (_MalformedError, msgspec.DecodeError, UnicodeDecodeError, CiwrapError)


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise _MalformedError(what)


def _check_variable(variable: CapturedVariable) -> None:
    """Raises _MalformedError, and the core's errors."""
    place = variable.identity.iteration, variable.identity.rank
    _need(all(one is None or one >= 0 for one in place), "an iteration or a rank")
    element_count = variable.element_count
    _need(element_count < 1 << 60, "a shape")
    for tree in (variable.plain, variable.fine, variable.relative):
        if tree is None:
            continue
        _need((tree is variable.fine) == (tree.residues is not None), "residues")
        _need((tree is variable.relative) == (tree.against is not None), "a baseline")
        parameters = tree.parameters
        _need(parameters.dtype == variable.dtype, "a tree's dtype")
        nodes = sum(tree.counts(element_count * parameters.scalars_per_element))
        _need(tree.digests.byte_count == 16 * nodes, "the size of a tree")


def decode_index(data: bytes, path: Path) -> CaptureIndex:
    """Raises CorruptCaptureError."""
    try:
        found: dict[CheckpointKey, Directory] = {}
        header, directories = _INDEX.decode(data)
        for row in header.bounds:
            row.over(VariableSettings())
        for directory in directories:
            _need(directory.key not in found, "a checkpoint twice")
            found[directory.key] = directory
        return CaptureIndex(header, found)
    except _UNDECODABLE as error:
        raise malformed(path, str(error)) from error


def decode_checkpoint(data: bytes, key: CheckpointKey, path: Path) -> CapturedCheckpoint:
    """Raises CorruptCaptureError."""
    try:
        found = _CHECKPOINT.decode(data)
        _need(found.key == key, "a checkpoint's key")
        paths = {file.path for file in found.files}
        for variable in found.variables:
            _check_variable(variable)
            _need(variable.region is None or variable.region[0] in paths, "a region's file")
        identities = {variable.identity for variable in found.variables}
        _need(len(identities) == len(found.variables), "a variable twice")
        return found
    except _UNDECODABLE as error:
        raise malformed(path, str(error)) from error


def read_index(capture: CaptureFile) -> CaptureIndex:
    return decode_index(capture.packed_section(capture.root), capture.path)


def read_checkpoint(capture: CaptureFile, directory: Directory) -> CapturedCheckpoint:
    """A checkpoint's index; its digest is verified. Raises CorruptCaptureError."""
    found = decode_checkpoint(
        capture.packed_section(directory.section), directory.key, capture.path
    )
    if found.digest != directory.digest:
        raise malformed(capture.path, "a checkpoint's digest")
    return found
