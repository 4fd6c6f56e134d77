"""How a capture's index is written: JSON, and back (docs/reference/capture-format.md)."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.errors import InvalidBoundError
from ciwrap.history.container import Section
from ciwrap.history.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    Directory,
    SourceFile,
    StoredTree,
    key_order,
    malformed,
)
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ciwrap.history.container import CaptureFile
    from ciwrap.history.index import CheckpointKey


def _section_row(section: Section | None) -> list[Any]:
    if section is None:
        return []
    return [section.offset, section.byte_count, section.checksum.hex()]


def encode_index(index: CaptureIndex) -> bytes:
    rows = [
        [*key, *_section_row(one.section), one.digest.hex()]
        for key, one in sorted(index.checkpoints.items(), key=lambda item: key_order(item[0]))
    ]
    return json.dumps({"checkpoints": rows}, separators=(",", ":")).encode()


def encode_checkpoint(checkpoint: CapturedCheckpoint) -> bytes:
    return json.dumps(
        {
            "key": list(checkpoint.key),
            "files": [
                [one.path, one.byte_count, one.mtime_ns, one.how, one.checksum]
                for one in checkpoint.files
            ],
            "variables": [_variable_row(one) for one in checkpoint.variables],
        },
        separators=(",", ":"),
        sort_keys=True,
    ).encode()


def _variable_row(variable: CapturedVariable) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": [variable.identity.name, variable.identity.iteration, variable.identity.rank],
        "dtype": variable.dtype,
        "shape": list(variable.shape),
    }
    for name in ("plain", "fine", "relative"):
        tree: StoredTree | None = getattr(variable, name)
        if tree is not None:
            row[name] = _tree_row(tree)
    if variable.reason is not None:
        row["reason"] = variable.reason
    if variable.region is not None:
        row["region"] = list(variable.region)
    return row


def _tree_row(tree: StoredTree) -> dict[str, Any]:
    p = tree.parameters
    row: dict[str, Any] = {
        "parameters": [
            p.dtype,
            p.atol,
            p.rtol,
            p.ulps,
            p.requested_residue_levels,
            p.chunk_bytes,
            p.arity,
            p.equal_nan,
            list(p.fill_values),
        ],
        "root": tree.root,
        "digests": _section_row(tree.digests),
    }
    if tree.residues is not None:
        row["residues"] = _section_row(tree.residues)
    if tree.against is not None:
        row |= {"against": tree.against, "max_share": tree.max_share}
    return row


# --- back again; every value is looked at, for a capture may come from anywhere -------------------


class _MalformedError(ValueError):
    pass


_HEX = re.compile("[0-9a-f]{32}")


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise _MalformedError(what)


def _whole(value: Any, what: str, *, none: bool = False) -> Any:
    if none and value is None:
        return None
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise _MalformedError(what)
    return value


def _text(value: Any, what: str) -> str:
    _need(isinstance(value, str), what)
    return str(value)


def _hex(value: Any, what: str) -> str:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise _MalformedError(what)
    return value


def _list(value: Any, what: str, length: int | None = None) -> list[Any]:
    _need(isinstance(value, list) and length in (None, len(value)), what)
    return list(value)


def _section(value: Any, what: str) -> Section:
    offset, count, checksum = _list(value, what, 3)
    return Section(_whole(offset, what), _whole(count, what), bytes.fromhex(_hex(checksum, what)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@lru_cache(maxsize=1024)
def _parameters(text: str, dtype: str) -> _core.TreeParameters:
    """From their JSON; there are few of them in a capture, over and over."""
    names = _list(json.loads(text), "parameters", 9)
    _need(names[0] == dtype, "a tree's dtype")
    _need(_is_number(names[1]) and _is_number(names[2]), "bounds")
    _need(all(map(_is_number, _list(names[8], "fill values"))), "fill values")
    _need(isinstance(names[7], bool), "equal_nan")
    for position, most in ((3, 1 << 62), (4, 255), (5, 1 << 40), (6, 256)):
        _need(_whole(names[position], "parameters") <= most, "parameters")
    try:
        return _core.TreeParameters(
            dtype,
            atol=float(names[1]),
            rtol=float(names[2]),
            ulps=names[3],
            residue_levels=names[4],
            chunk_bytes=names[5],
            arity=names[6],
            equal_nan=names[7],
            fill_values=names[8],
        )
    except (_core.CoreError, TypeError, ValueError, OverflowError) as error:
        raise _MalformedError(str(error)) from error


def _tree(row: Any, dtype: str, scalar_count_of: Callable[[Any], int]) -> StoredTree:
    _need(isinstance(row, dict), "a tree")
    parameters = _parameters(json.dumps(row.get("parameters")), dtype)
    share = row.get("max_share")
    _need(share is None or (isinstance(share, (int, float)) and 0 <= share <= 1), "max_share")
    residues, against = row.get("residues"), row.get("against")
    tree = StoredTree(
        parameters,
        _hex(row.get("root"), "root"),
        _section(row.get("digests"), "digests"),
        None if residues is None else _section(residues, "residues"),
        None if against is None else _hex(against, "against"),
        None if share is None else float(share),
    )
    nodes = sum(tree.counts(scalar_count_of(parameters)))
    _need(tree.digests.byte_count == 16 * nodes, "the size of a tree")
    return tree


def _variable(row: Any) -> CapturedVariable:
    _need(isinstance(row, dict), "a variable")
    name, iteration, rank = _list(row.get("id"), "an identity", 3)
    identity = VariableId(
        _text(name, "a name"),
        _whole(iteration, "an iteration", none=True),
        _whole(rank, "a rank", none=True),
    )
    dtype = _text(row.get("dtype"), "a dtype")
    shape = tuple(_whole(n, "a shape") for n in _list(row.get("shape"), "a shape"))
    _need(len(shape) <= 64 and math.prod(shape) < 1 << 60, "a shape")

    element_count = int(math.prod(shape))

    def scalar_count(parameters: _core.TreeParameters) -> int:
        return element_count * parameters.scalars_per_element

    trees = {
        key: _tree(row[key], dtype, scalar_count)
        for key in ("plain", "fine", "relative")
        if key in row
    }
    reason, region = row.get("reason"), row.get("region")
    if region is not None:
        path, offset = _list(region, "a region", 2)
        region = (_text(path, "a path"), _whole(offset, "an offset"))
    return CapturedVariable(
        identity,
        dtype,
        shape,
        trees.get("plain"),
        trees.get("fine"),
        trees.get("relative"),
        None if reason is None else _text(reason, "a reason"),
        region,
    )


def _file(row: Any) -> SourceFile:
    path, byte_count, mtime_ns, how, checksum = _list(row, "a file", 5)
    _need(isinstance(mtime_ns, int) and not isinstance(mtime_ns, bool), "a time")
    return SourceFile(
        _text(path, "a path"),
        _whole(byte_count, "a size"),
        mtime_ns,
        _text(how, "how a file was read"),
        None if checksum is None else _hex(checksum, "a checksum"),
    )


def _key(iteration: Any, rank: Any) -> CheckpointKey:
    return (
        _whole(iteration, "an iteration", none=True),
        _whole(rank, "a rank", none=True),
    )


def _parsed(data: bytes, path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise malformed(path, "no JSON") from error
    if not isinstance(value, dict):
        raise malformed(path, "no object")
    return value


def decode_index(data: bytes, path: Path) -> CaptureIndex:
    """Raises CorruptCaptureError."""
    try:
        found: dict[CheckpointKey, Directory] = {}
        for row in _list(_parsed(data, path).get("checkpoints"), "checkpoints"):
            iteration, rank, *section, digest = _list(row, "a checkpoint", 6)
            key = _key(iteration, rank)
            _need(key not in found, "a checkpoint twice")
            found[key] = Directory(
                key,
                _section(section, "a checkpoint"),
                bytes.fromhex(_hex(digest, "a digest")),
            )
        return CaptureIndex(found)
    except _MalformedError as error:
        raise malformed(path, str(error)) from error


def decode_checkpoint(data: bytes, key: CheckpointKey, path: Path) -> CapturedCheckpoint:
    """Raises CorruptCaptureError."""
    try:
        value = _parsed(data, path)
        _need(_key(*_list(value.get("key"), "a key", 2)) == key, "a checkpoint's key")
        files = tuple(_file(row) for row in _list(value.get("files"), "files"))
        variables = tuple(_variable(row) for row in _list(value.get("variables"), "variables"))
        _need(len({v.identity for v in variables}) == len(variables), "a variable twice")
        paths = {file.path for file in files}
        _need(all(v.region is None or v.region[0] in paths for v in variables), "a region's file")
        return CapturedCheckpoint(key, files, variables)
    except (_MalformedError, InvalidBoundError) as error:
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
