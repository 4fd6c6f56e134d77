"""What a capture says of its run: checkpoints, their files, variables and trees."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.errors import CorruptCaptureError, InvalidBoundError
from ciwrap.history.container import Section
from ciwrap.model import ErrorBound, VariableId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ciwrap.history.container import CaptureFile

CheckpointKey = tuple["int | None", "int | None"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the run as it was when it was captured.

    path: relative to the run, with '/'. how: reader, name and options it was read with, as text.
    checksum: XXH3-128 of the XXH3-128 of its pieces of 1 MiB, where one was asked for.
    """

    path: str
    byte_count: int
    mtime_ns: int
    how: str
    checksum: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTree:
    """A tree in the file: all digests, root first. residues: only in one others are held against.

    against: root of the fine tree that this one was made against; None for a tree of its own.
    max_share: how much of the bound the values had moved from there, over matching chunks.
    """

    parameters: _core.TreeParameters
    root: str
    digests: Section
    residues: Section | None = None
    against: str | None = None
    max_share: float | None = None

    def counts(self, scalar_count: int) -> tuple[int, ...]:
        """Nodes of each level, root first."""
        leaves = max(1, -(-scalar_count // self.parameters.chunk_scalars))
        counts = [leaves]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] // self.parameters.arity))
        return tuple(reversed(counts))


@dataclass(frozen=True, slots=True)
class CapturedVariable:
    """A variable of a checkpoint.

    plain: the tree that may be compared with any other of the same bound. fine: the tree with
    residues. relative: the tree made against another run's fine one. Without any, the reason says
    why it has none, and its data have to be compared.
    """

    identity: VariableId
    dtype: str
    shape: tuple[int, ...]
    plain: StoredTree | None = None
    fine: StoredTree | None = None
    relative: StoredTree | None = None
    reason: str | None = None
    # Where the bytes lie as they are: one of the checkpoint's files, and the first byte.
    region: tuple[str, int] | None = None

    @property
    def element_count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class CapturedCheckpoint:
    """All variables of one (iteration, rank). digest: one for all, equal only if all are."""

    key: CheckpointKey
    files: tuple[SourceFile, ...]
    variables: tuple[CapturedVariable, ...]

    @property
    def digest(self) -> bytes:
        text = json.dumps(
            [
                [list(v.identity.sort_key), v.dtype, list(v.shape), v.plain and v.plain.root]
                for v in sorted(self.variables, key=lambda v: v.identity)
            ]
        )
        return _core.xxh3_128(text.encode())


@dataclass(frozen=True, slots=True)
class Directory:
    """Where a checkpoint's own index lies, and its digest."""

    key: CheckpointKey
    section: Section
    digest: bytes


@dataclass(slots=True)
class CaptureIndex:
    """The checkpoints of a capture, by (iteration, rank)."""

    checkpoints: dict[CheckpointKey, Directory] = field(default_factory=dict)

    @property
    def root(self) -> bytes:
        """run > iteration > rank: one digest of everything, equal only if all plain trees are."""
        iterations: dict[int | None, list[bytes]] = {}
        for key in sorted(self.checkpoints, key=key_order):
            named = json.dumps(key[1]).encode() + b" " + self.checkpoints[key].digest
            iterations.setdefault(key[0], []).append(named)
        upper = [
            json.dumps(iteration).encode() + b" " + _core.xxh3_128(b"".join(ranks))
            for iteration, ranks in iterations.items()
        ]
        return _core.xxh3_128(b"".join(upper))

    def encode(self) -> bytes:
        rows = [
            [*key, *_section_row(one.section), one.digest.hex()]
            for key, one in sorted(self.checkpoints.items(), key=lambda item: key_order(item[0]))
        ]
        return json.dumps({"checkpoints": rows}, separators=(",", ":")).encode()


def key_order(key: CheckpointKey) -> tuple[int, int]:
    """Sort key of a checkpoint: None first."""
    return (-1 if key[0] is None else key[0], -1 if key[1] is None else key[1])


def _section_row(section: Section | None) -> list[Any]:
    if section is None:
        return []
    return [section.offset, section.byte_count, section.checksum.hex()]


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


@lru_cache(maxsize=1024)
def _parameters_of(
    dtype: str,
    atol: float,
    rtol: float,
    ulps: int,
    levels: int,
    chunk_bytes: int,
    arity: int,
    equal_nan: bool,
    fills: tuple[float, ...],
) -> _core.TreeParameters:
    """There are few of them in a capture, over and over."""
    return _core.TreeParameters(
        dtype,
        atol=float(atol),
        rtol=float(rtol),
        ulps=ulps,
        residue_levels=levels,
        chunk_bytes=chunk_bytes,
        arity=arity,
        equal_nan=equal_nan,
        fill_values=list(fills),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parameters(value: Any, dtype: str) -> _core.TreeParameters:
    names = _list(value, "parameters", 9)
    _need(names[0] == dtype, "a tree's dtype")
    _need(_is_number(names[1]) and _is_number(names[2]), "bounds")
    _need(all(map(_is_number, _list(names[8], "fill values"))), "fill values")
    _need(isinstance(names[7], bool), "equal_nan")
    for position, most in ((3, 1 << 62), (4, 255), (5, 1 << 40), (6, 256)):
        _need(_whole(names[position], "parameters") <= most, "parameters")
    try:
        return _parameters_of(*names[:8], tuple(names[8]))
    except (_core.CoreError, TypeError, ValueError, OverflowError) as error:
        raise _MalformedError(str(error)) from error


def _tree(row: Any, dtype: str, scalar_count_of: Callable[[Any], int]) -> StoredTree:
    _need(isinstance(row, dict), "a tree")
    parameters = _parameters(row.get("parameters"), dtype)
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
        raise _refusal(path, "no JSON") from error
    if not isinstance(value, dict):
        raise _refusal(path, "no object")
    return value


def _refusal(path: Path, what: str) -> CorruptCaptureError:
    return CorruptCaptureError(
        f"its index is malformed ({what})", file=path, remedy="capture the run again"
    )


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
        raise _refusal(path, str(error)) from error


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
        raise _refusal(path, str(error)) from error


def read_index(capture: CaptureFile) -> CaptureIndex:
    return decode_index(capture.packed_section(capture.root), capture.path)


def read_checkpoint(capture: CaptureFile, directory: Directory) -> CapturedCheckpoint:
    """A checkpoint's index; its digest is verified. Raises CorruptCaptureError."""
    found = decode_checkpoint(
        capture.packed_section(directory.section), directory.key, capture.path
    )
    if found.digest != directory.digest:
        raise _refusal(capture.path, "a checkpoint's digest")
    return found


def read_tree(capture: CaptureFile, variable: CapturedVariable, tree: StoredTree) -> _core.Tree:
    """The whole tree, checksums and root verified. Raises CorruptCaptureError."""
    import numpy as np

    counts = tree.counts(variable.element_count * tree.parameters.scalars_per_element)
    digests = np.frombuffer(capture.section(tree.digests), dtype=np.uint8).reshape(-1, 16)
    residues = None
    if tree.residues is not None:
        residues = np.frombuffer(capture.section(tree.residues), dtype=np.uint8)
    try:
        built = _core.Tree.from_parts(
            tree.parameters,
            variable.element_count * tree.parameters.scalars_per_element,
            digests[-counts[-1] :],
            residues,
        )
    except _core.CoreError as error:
        raise _refusal(capture.path, str(error)) from error
    if built.root.hex() != tree.root:
        raise _refusal(capture.path, "a tree's root")
    return built


def bound_of_tree(tree: StoredTree) -> ErrorBound:
    p = tree.parameters
    return ErrorBound(p.atol, p.rtol, p.ulps)


def by_identity(variables: Iterable[CapturedVariable]) -> dict[VariableId, CapturedVariable]:
    return {one.identity: one for one in variables}
