"""What a capture says of its run: checkpoints, their files, variables, trees, bound, environment.

The records are the rows of the index, in this order and these types, written as MessagePack
(docs/reference/capture-format.md). The bound of a capture holds for checkpoints that were written
later, and where captured trees no longer describe a checkpoint; trees know their own bound.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Shaped
from ciwrap.base.errors import (
    CiwrapError,
    CorruptCaptureError,
    NotComparableError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.base.late import numpy as np
from ciwrap.formats.source_files import CheckpointKey, Digest, SourceFile, Whole, relative_path
from ciwrap.golden.trees import kept_fill_values, settings_text
from ciwrap.model import ErrorBound, VariableId, VariableSettings, fit_fill_values
from ciwrap.runs.capture_file import CaptureFile, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from ciwrap.formats.catalog import Rules
    from ciwrap.runs.capture_file import CaptureWriter

_FINE = b"ciwrap fine tree"
SUMMARY_BYTES = 80

# Why a variable has no tree: its check says so, or how it is compared there.
IGNORED = "it is ignored"
IN_AN_ORDER = "its rows are put in the order of "
BY_STEP = "its values are paired by the steps that the text tells, which trees do not know"
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
    """Which tree with residues another run was compared with.

    The root of a tree with residues is that of the cells alone: trees of other residues can have
    the same one. So this is a digest of both, and a type of its own, which no root passes for.
    """

    digest: Digest


class StoredTree(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tree in the file: all digests, root first. residues: only if others are compared with it.

    against: the fine tree that this one was made against; None for a tree of its own.
    max_share: how much of the bound the values had moved from there, over matching chunks.
    summaries: of its chunks; None of an earlier release, and of codes that have none.
    """

    made_with: MadeWith
    root: Digest
    digests: Section
    residues: Section | None = None
    against: FineIdentity | None = None
    max_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    summaries: Section | None = None

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
        """A tree of its own, if it has one: either says what was asked for."""
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
        """Those, and what tells how far it is from a run it was compared with: two values in one
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


def read_summaries(
    capture: CaptureFile, variable: CapturedVariable, tree: StoredTree
) -> NDArray[np.int64] | None:
    """A row for each chunk, as of `_core.summarize_chunks`; None if there are none. Raises
    CorruptCaptureError.
    """
    if tree.summaries is None:
        return None
    leaves = tree.counts(variable.element_count * tree.parameters.scalars_per_element)[-1]
    data = capture.summaries_section(tree.summaries)
    if len(data) != leaves * SUMMARY_BYTES:
        raise malformed(capture.path, "the size of summaries")
    return np.frombuffer(data, dtype="<i8").reshape(leaves, -1)


class LeftOut(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file or folder of the run, relative to it ('' for the run), and why it was not captured."""

    path: str
    reason: str


# What a capture says that is kept while it is made.
NOT_TO_ITS_END = LeftOut("", "the capture did not come to its end")


def left_out_of(run: Path, errors: Iterable[CiwrapError]) -> tuple[LeftOut, ...]:
    """What errors say, without the folder that the run lies in."""
    return tuple(
        LeftOut(
            _unicode("" if error.file is None else _within(run, error.file)),
            _unicode(_reason_of(error).replace(f"{run}/", "")),
        )
        for error in errors
    )


def _reason_of(error: CiwrapError) -> str:
    return error.message if error.variable is None else f"{error.variable}: {error.message}"


def _within(run: Path, path: Path | str) -> str:
    return "" if str(path) == str(run) else relative_path(run, path)


def _unicode(text: str) -> str:
    """Names of files can be of any bytes, which a capture has no place for."""
    return text.encode(errors="backslashreplace").decode()


def faults_of(capture: Path, left_out: Iterable[LeftOut]) -> tuple[CiwrapError, ...]:
    """Why a run is not all there of which there is this capture alone."""
    return tuple(
        NotComparableError(
            f"is not in the capture {capture}: {one.reason}",
            file=Path(one.path),
            remedy="compare where its data are, or capture the run again (--exclude leaves files"
            " out)",
        )
        if one.path
        else NotComparableError(
            f"does not hold all of its run: {one.reason}",
            file=capture,
            remedy="capture the run again",
        )
        for one in left_out
    )


Identity = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class KeptSnapshot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which snapshot a capture has, and where its JSON lies, compressed."""

    identity: Identity
    section: Section


class GivenSnapshot(msgspec.Struct, frozen=True):
    """A snapshot to be put into a capture. text: its JSON."""

    identity: Identity
    text: bytes


def appended(
    writer: CaptureWriter, given: GivenSnapshot | None, earlier: KeptSnapshot | None
) -> KeptSnapshot | None:
    """Where a snapshot lies in a capture from now on; the earlier one where none is given."""
    if given is None or (earlier is not None and earlier.identity == given.identity):
        return earlier
    return KeptSnapshot(given.identity, writer.append_packed(given.text))


def snapshot_text(
    path: Path, open_capture: Callable[[Path], CaptureFile] = CaptureFile
) -> GivenSnapshot | None:
    """The snapshot of what an opener finds there, a capture or a recorded run; None if it has none.

    Raises the errors of `CaptureFile`, and CorruptCaptureError.
    """
    with open_capture(path) as capture:
        kept = read_index(capture).header.snapshot
        if kept is None:
            return None
        return GivenSnapshot(kept.identity, capture.packed_section(kept.section))


NONE_GIVEN = "none given"


class BoundRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was asked for of some variables. dtype, names: None for whatever there is."""

    atol: float
    rtol: float
    ulps: Whole
    equal_nan: bool
    fill_values: tuple[float | int, ...] = ()
    dtype: str | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, settings: VariableSettings) -> BoundRow:
        bound = settings.bound
        return cls(
            bound.atol,
            bound.rtol,
            bound.ulps,
            settings.equal_nan,
            kept_fill_values(settings.fill_values),
        )

    @property
    def text(self) -> str:
        """`atol=1e-6 rtol=0`, or `exact`, and whatever else decides equality."""
        return settings_text(self.over(VariableSettings()))

    def over(self, settings: VariableSettings) -> VariableSettings:
        """The settings with this bound, and all that goes with it.

        Raises InvalidBoundError for a row that cannot have been written by us.
        """
        return replace(
            settings.with_bound(ErrorBound(self.atol, self.rtol, self.ulps)),
            equal_nan=self.equal_nan,
            fill_values=self.fill_values,
        )


class CaptureHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a capture is, beside its checkpoints.

    origin: who asked for the bounds (`given`, `check NAME`, `none given`). bounds: what was asked
    for. has_checksums: whether the bytes of all files are known. layout: where iteration and rank
    stand in the paths, if that was said. made_at: of the last change, UTC, ISO 8601. made_by: the
    version of ciwrap that wrote it. snapshot: of the environment, where one is known. left_out:
    what it does not hold of its run.
    """

    origin: str
    chunk_bytes: Whole
    bounds: tuple[BoundRow, ...]
    has_checksums: bool = False
    layout: str | None = None
    made_at: str = ""
    made_by: str = ""
    snapshot: KeptSnapshot | None = None
    left_out: tuple[LeftOut, ...] = ()


class Bounds(Struct):
    """The bounds of a capture, by variable; new ones can be noted.

    by_place: whether variables of one name have bounds of their own at each iteration or rank; the
    names of rows are the texts of identities then.
    """

    origin: str
    _general: BoundRow | None = None
    by_place: bool = False
    _named: dict[tuple[str, str | None], BoundRow] = field(default_factory=dict)

    @classmethod
    def of_header(cls, header: CaptureHeader) -> Bounds:
        found = cls(header.origin)
        for row in header.bounds:
            if row.names is None:
                found._general = row
            for name in row.names or ():
                found._named[name, row.dtype] = row
                found._named.setdefault((name, None), row)
        return found

    @classmethod
    def of_rules(cls, rules: Rules) -> Bounds:
        """Those that rules ask for of every variable alike; of others, once they are noted."""
        settings = rules.general
        general = None if settings is None or _is_beyond_rows(settings) else BoundRow.of(settings)
        if not rules.bounds_are_given:
            return cls(NONE_GIVEN, general)
        return cls(rules.bounds_from, general, rules.by_place)

    def settings_for(
        self, settings: VariableSettings, identity: VariableId, dtype: str
    ) -> VariableSettings | None:
        """The settings with the variable's bound; None where the capture says nothing of it."""
        for name in (identity.text, identity.name):
            row = self._named.get((name, dtype)) or self._named.get((name, None))
            if row is not None:
                return row.over(settings)
        return None if self._general is None else self._general.over(settings)

    def note(self, settings: VariableSettings, identity: VariableId, dtype: str) -> None:
        """Takes down what is asked for of a variable, if a row can say it."""
        if _is_beyond_rows(settings):
            return
        row = BoundRow.of(settings)
        name = identity.text if self.by_place else identity.name
        known = self._named.get((name, dtype)) or self._general
        if known is None or not _are_same(known.over(settings), settings):
            self._named[name, dtype] = row
            self._named.setdefault((name, None), row)

    @property
    def rows(self) -> tuple[BoundRow, ...]:
        """As a header holds them: variables of one bound together."""
        groups: dict[BoundRow, list[str]] = {}
        for (name, dtype), row in sorted(
            (item for item in self._named.items() if item[0][1] is not None),
            key=lambda item: (item[0][0], item[0][1] or ""),
        ):
            plain = msgspec.structs.replace(row, dtype=dtype, names=None)
            groups.setdefault(plain, []).append(name)
        named = (msgspec.structs.replace(row, names=tuple(names)) for row, names in groups.items())
        return (*(() if self._general is None else (self._general,)), *named)

    def refuse_other(self, asked: VariableSettings, identity: VariableId, dtype: str) -> None:
        """Raises UsageError if something else is asked for than the capture was made with."""
        known = self.settings_for(asked, identity, dtype)
        if known is not None and not _are_same(known, asked):
            raise UsageError(
                f"{settings_text(asked)} is asked for, but the existing capture was made with"
                f" {settings_text(known)}",
                variable=identity.text,
                remedy="leave the bound out to keep it, or begin anew with --rebuild",
            )


def _is_beyond_rows(settings: VariableSettings) -> bool:
    """Whether the bound is not the sum of two numbers, which is all that a row can say."""
    return settings.combine != "sum" or settings.scale is not None


def _are_same(one: VariableSettings, other: VariableSettings) -> bool:
    """Whether two settings have one bound; a fill value that is NaN is the same as itself."""
    return repr(BoundRow.of(one)) == repr(BoundRow.of(other))


def rules_with(rules: Rules, bounds: Bounds, whose: str) -> Rules:
    """The rules with a capture's bounds; what the capture says nothing of stays as it was.

    whose: what the bounds are called from then on.
    """

    def settings_for(identity: VariableId, what: Shaped) -> VariableSettings:
        settings = rules.settings_for(identity, what)
        known = bounds.settings_for(settings, identity, what.dtype)
        return settings if known is None else fit_fill_values(known, what.dtype, what.labels)

    return replace(
        rules, settings_for=settings_for, bounds_from=whose, bounds_are_given=True, general=None
    )


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
