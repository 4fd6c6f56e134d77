"""What a capture says of its run: checkpoints, their files, variables and trees.

These are also the rows of the capture's index: in this order, and in these types (index_codec).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ciwrap import _core
from ciwrap.arrays.values import Shaped
from ciwrap.captures.container import Section
from ciwrap.catalog.files import Digest, SourceFile, Whole
from ciwrap.errors import CiwrapError, CorruptCaptureError
from ciwrap.model import VariableId
from ciwrap.structs import Struct, field
from ciwrap.trees.bounds import kept_fill_values

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.captures.bounds import CaptureHeader
    from ciwrap.captures.container import CaptureFile

CheckpointKey = tuple[Whole | None, Whole | None]  # iteration, rank
_FINE = b"ciwrap fine tree"

# Why a variable has no tree: its check says so, or how it is compared there.
IGNORED = "it is ignored"
IN_AN_ORDER = "its rows are put in the order of "
BY_STEP = "its elements are paired by the steps that the text tells, which trees do not know"
IN_ANOTHER_WAY = "it is compared in a way that trees do not know, such as with a mask"


class MadeWith(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`_core.TreeParameters`, as a row."""

    dtype: str
    atol: float
    rtol: float
    ulps: Whole
    residue_levels: Annotated[int, Meta(ge=0, le=255)]
    chunk_bytes: Annotated[int, Meta(ge=0, le=1 << 40)]
    arity: Annotated[int, Meta(ge=0, le=256)]
    equal_nan: bool
    fill_values: tuple[float | int, ...]

    @classmethod
    def of(cls, p: _core.TreeParameters) -> MadeWith:
        return cls(
            p.dtype,
            p.atol,
            p.rtol,
            p.ulps,
            p.requested_residue_levels,
            p.chunk_bytes,
            p.arity,
            p.equal_nan,
            kept_fill_values(p.fill_values),
        )


# There are few of them in a capture, over and over.
@lru_cache(maxsize=1024)
def parameters_of(row: MadeWith) -> _core.TreeParameters:
    """Raises UsageError for a row that cannot have been written by us."""
    return _core.TreeParameters(
        row.dtype,
        atol=row.atol,
        rtol=row.rtol,
        ulps=row.ulps,
        residue_levels=row.residue_levels,
        chunk_bytes=row.chunk_bytes,
        arity=row.arity,
        equal_nan=row.equal_nan,
        fill_values=row.fill_values,
    )


@lru_cache(maxsize=4096)
def _level_counts(leaves: int, arity: int) -> tuple[int, ...]:
    counts = [leaves]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // arity))
    return tuple(reversed(counts))


class FineIdentity(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which tree with residues another run was held against.

    The root of a tree with residues is that of the cells alone: trees of other residues can have
    the same one. So this is a digest of both, and a type of its own, which no root passes for.
    """

    digest: Digest


class StoredTree(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tree in the file: all digests, root first. residues: only in one others are held against.

    against: the fine tree that this one was made against; None for a tree of its own.
    max_share: how much of the bound the values had moved from there, over matching chunks.
    """

    made_with: MadeWith
    root: Digest
    digests: Section
    residues: Section | None = None
    against: FineIdentity | None = None
    max_share: Annotated[float, Meta(ge=0, le=1)] | None = None

    @property
    def parameters(self) -> _core.TreeParameters:
        """Raises UsageError for a row that cannot have been written by us."""
        return parameters_of(self.made_with)

    @property
    def identity(self) -> FineIdentity | None:
        """Of a tree with residues: what it is, residues and all; None for other trees."""
        if self.residues is None:
            return None
        return FineIdentity(_core.xxh3_128(_FINE + self.root + self.residues.checksum))

    def counts(self, scalar_count: int) -> tuple[int, ...]:
        """Nodes of each level, root first."""
        parameters = self.parameters
        leaves = max(1, -(-scalar_count // parameters.chunk_scalars))
        return _level_counts(leaves, parameters.arity)


class CapturedVariable(Shaped, msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A variable of a checkpoint.

    plain: the tree that may be compared with any other of the same bound. fine: the tree with
    residues. relative: the tree made against another run's fine one. Without any, the reason says
    why it has none, and its data have to be compared. labels: as in `VariableInfo`.
    """

    identity: VariableId
    dtype: str
    shape: Annotated[tuple[Whole, ...], Meta(max_length=64)]
    plain: StoredTree | None = None
    fine: StoredTree | None = None
    relative: StoredTree | None = None
    reason: str | None = None
    # Where the bytes lie as they are: one of the checkpoint's files, and the first byte.
    region: tuple[str, Whole] | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def any_tree(self) -> StoredTree | None:
        """A tree of its own, if it has one: what was asked for is told by either."""
        return self.plain or self.fine

    @property
    def digests(self) -> tuple[bytes | None, bytes | None]:
        """What tells its trees from others: the plain one's root, the fine one's identity."""
        fine = None if self.fine is None else self.fine.identity
        return (
            None if self.plain is None else self.plain.root,
            None if fine is None else fine.digest,
        )

    @property
    def all_digests(self) -> tuple[object, ...]:
        """Those, and what tells how far it is from a run it was held against: two values in one
        cell of the plain tree may lie on both sides of the bound.
        """
        relative = self.relative
        return (*self.digests, *(() if relative is None else (relative.root, relative.against)))


class CapturedCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """All variables of one (iteration, rank). digest: one for all, equal only if all are."""

    key: CheckpointKey
    files: tuple[SourceFile, ...]
    variables: tuple[CapturedVariable, ...]

    @property
    def digest(self) -> bytes:
        rows = sorted(
            (v.identity.sort_key, v.dtype, v.shape, v.labels, *v.digests) for v in self.variables
        )
        return _core.xxh3_128(msgspec.msgpack.encode(rows))


class Directory(msgspec.Struct, frozen=True, array_like=True):
    """Where a checkpoint's own index lies, and its digest."""

    key: CheckpointKey
    section: Section
    digest: Digest


class CaptureIndex(Struct):
    """The checkpoints of a capture, by (iteration, rank), and what it says of itself."""

    header: CaptureHeader
    checkpoints: dict[CheckpointKey, Directory] = field(default_factory=dict)

    @property
    def identity(self) -> bytes:
        """run > iteration > rank: one digest of everything, equal only if all trees are."""
        iterations: dict[int | None, list[bytes]] = {}
        for key in sorted(self.checkpoints, key=key_order):
            named = msgspec.json.encode(key[1]) + b" " + self.checkpoints[key].digest
            iterations.setdefault(key[0], []).append(named)
        upper = [
            msgspec.json.encode(iteration) + b" " + _core.xxh3_128(b"".join(ranks))
            for iteration, ranks in iterations.items()
        ]
        return _core.xxh3_128(b"".join(upper))


def key_order(key: CheckpointKey) -> tuple[int, int]:
    """Sort key of a checkpoint: None first."""
    return (-1 if key[0] is None else key[0], -1 if key[1] is None else key[1])


def malformed(path: Path, what: str) -> CorruptCaptureError:
    return CorruptCaptureError(
        f"its index is malformed ({what})", file=path, remedy="capture the run again"
    )


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
    except CiwrapError as error:
        raise malformed(capture.path, str(error)) from error
    if built.root != tree.root:
        raise malformed(capture.path, "a tree's root")
    return built
