"""One of two runs to compare: its files by checkpoint, and its capture as far as that holds.

Of a capture's trees no more is read than shows which chunks are suspect.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import (
    CiwrapError,
    CorruptCaptureError,
    CorruptFileError,
    DuplicateVariableError,
    NotComparableError,
    OutputMissingError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import RUNS
from ciwrap.formats.catalog import Catalog, OtherSide
from ciwrap.formats.find_outputs import FoundOutputs
from ciwrap.formats.source_files import (
    Whole,
    change_since,
    source_files,
    why_stale,
)
from ciwrap.golden.trees import asked_for, describe_bound, has_other_classes
from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.capture_index import (
    CapturedCheckpoint,
    faults_of,
    key_order,
    read_checkpoint,
    read_index,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Signature, Values
    from ciwrap.formats.catalog import Arrangement
    from ciwrap.formats.find_outputs import OutputFile
    from ciwrap.formats.rows import RowOrder
    from ciwrap.formats.source_files import CheckpointKey, SourceFile
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.runs.capture_index import CapturedVariable, CaptureHeader, CaptureIndex, StoredTree

DEFAULT_INSIDE = ".ciwrap.tree"


def by_checkpoint(found: FoundOutputs) -> dict[CheckpointKey, list[OutputFile]]:
    """The files by (iteration, rank), in that order."""
    groups: dict[CheckpointKey, list[OutputFile]] = {}
    for file in found.files:
        groups.setdefault((file.iteration, file.rank), []).append(file)
    return {key: groups[key] for key in sorted(groups, key=key_order)}


def capture_paths(run: Path) -> tuple[Path, ...]:
    """Where a run's capture is looked for: inside, then beside."""
    return (
        (run / DEFAULT_INSIDE, run.with_name(run.name + ".tree"))
        if run.name
        else (run / DEFAULT_INSIDE,)
    )


WHOLE_RUN: CheckpointKey = (None, None)


class Run(Struct):
    """A run, or a single file: a run of one checkpoint. capture: open, or None; index: what it
    holds. arrangement: how rows are aligned, which only whole runs can be. other: the run whose
    rows keep their order where they are paired by coordinates. is_fingerprint: whether
    the capture is all that there is of the run; then it is believed whatever lies there. notes:
    what else is to be reported of it.
    """

    path: Path
    found: FoundOutputs
    groups: dict[CheckpointKey, list[OutputFile]]
    capture: CaptureFile | None = None
    index: CaptureIndex | None = None
    verify_checksums: bool = False
    fault: CiwrapError | None = None  # why a capture that is there is not used
    arrangement: Arrangement | None = None
    other: Run | None = None
    header: CaptureHeader | None = None  # of the capture, whether or not its trees are of use
    is_fingerprint: bool = False
    is_whole: bool = False  # whether WHOLE_RUN is all that there is, not what no path tells of
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()  # what the run lacks

    @property
    def excluded_files(self) -> int:
        """How many of the run's own files were left out; captures are none of them."""
        own = {path.name for path in capture_paths(self.path)}
        if self.capture is not None:
            own.add(self.capture.path.name)
        return sum(Path(name).name not in own for name in self.found.excluded)

    @property
    def is_recorded(self) -> bool:
        """Whether it is known by the journals that the program itself wrote."""
        return self.capture is not None and self.capture.is_recording

    @property
    def is_single(self) -> bool:
        """Whether there is but one checkpoint, of which the paths say nothing."""
        return list(self.groups) == [WHOLE_RUN]

    @property
    def has_iterations_in_paths(self) -> bool:
        """Whether every file is of an iteration that its path tells. A fingerprint has no files."""
        files = self.found.files
        return not self.is_fingerprint and all(file.iteration is not None for file in files)

    def take_whole(self, arrangement: Arrangement | None, *, by_iteration: bool) -> None:
        """From now on all files of an iteration are one checkpoint, or all files of the run, whose
        variables then state their iterations; variables state ranks in either case. Captures,
        which are of single checkpoints, are of no use then.
        """
        if not self.is_fingerprint:
            self.close()
            self.capture = self.index = None
        self.arrangement = arrangement
        self.is_whole = not by_iteration
        if self.is_whole:
            self.groups = {WHOLE_RUN: list(self.found.files)}
            return
        self.groups = {}
        for file in self.found.files:
            self.groups.setdefault((file.iteration, None), []).append(file)

    def prefetch(self, keys: Iterable[CheckpointKey]) -> None:
        """Has the system fetch what the capture says of these checkpoints, all at once."""
        if self.capture is None or self.index is None:
            return
        found = (self.index.checkpoints[key] for key in keys if key in self.index.checkpoints)
        self.capture.prefetch((one.section.offset, one.section.byte_count) for one in found)

    def captured(
        self, key: CheckpointKey
    ) -> tuple[tuple[SourceFile, ...] | None, CapturedCheckpoint | None, str | None]:
        """What a checkpoint's files look like now (None: they cannot be looked at); what the
        capture says of it, None if it is not in it, or no longer holds; and why that is.
        """
        if self.is_fingerprint:
            return None, self._believed(key), None
        directory = None if self.index is None else self.index.checkpoints.get(key)
        try:
            now = source_files(self.path, self.groups[key])
        except CiwrapError as error:
            return None, None, None if directory is None else str(error)
        if self.capture is None or directory is None:
            return now, None, None
        try:
            checkpoint = read_checkpoint(self.capture, directory)
            reason = why_stale(
                checkpoint.files, now, self.path, verify_checksums=self.verify_checksums
            )
        except CiwrapError as error:
            reason = str(error)
        return (now, checkpoint, None) if reason is None else (now, None, reason)

    def _believed(self, key: CheckpointKey) -> CapturedCheckpoint:
        """What a fingerprint says of one checkpoint, or of all. Raises CorruptCaptureError."""
        assert self.capture is not None
        assert self.index is not None
        if not self.is_whole:
            directory = self.index.checkpoints.get(key)
            if directory is None:
                raise CorruptCaptureError(
                    "no longer has what it had when the comparison began", file=self.capture.path
                )
            return read_checkpoint(self.capture, directory)
        variables = [
            one
            for directory in self.index.checkpoints.values()
            for one in read_checkpoint(self.capture, directory).variables
        ]
        return CapturedCheckpoint(key, (), tuple(variables))

    def catalog(self, key: CheckpointKey) -> Catalog:
        """The checkpoint's variables, from its files."""
        found = Catalog(FoundOutputs(tuple(self.groups[key])), self.arrangement)
        if self.other is not None:
            found.keep_order_of(OtherSide(partial(self.other.arrays, key), RUNS.sides))
        return found

    def arrays(self, key: CheckpointKey, wanted: Sequence[VariableId]) -> list[NDArray[Any]]:
        """Some variables of a checkpoint, in their shapes. Raises AlignmentError."""
        with self.catalog(key) as catalog:
            return catalog.arrays(wanted)

    @property
    def capture_bytes_read(self) -> int:
        return 0 if self.capture is None else self.capture.bytes_read

    def close(self) -> None:
        if self.capture is not None:
            self.capture.close()


def open_run(
    run: Path,
    found: FoundOutputs,
    capture_path: Path | None = None,
    *,
    use_capture: bool = True,
    verify_checksums: bool = False,
) -> Run:
    """A run, with its capture if there is one that can be read.

    capture_path: where it is; then it has to be there (raises OutputMissingError and the other
    errors of `CaptureFile`). Else it is looked for inside and beside the run, and one that cannot
    be read is a `fault` of the side. Raises UsageError if checksums are to be verified that nobody
    has taken.
    """
    side = Run(run, found, by_checkpoint(found), verify_checksums=verify_checksums)
    if not use_capture:
        return side
    for path in (capture_path,) if capture_path is not None else capture_paths(run):
        try:
            capture = CaptureFile(path)
        except OutputMissingError:
            if capture_path is not None:
                raise
            continue
        except (CorruptCaptureError, UnsupportedFormatError) as error:
            if capture_path is not None:
                raise
            side.fault = error
            continue
        try:
            side.index = read_index(capture)
        except CorruptCaptureError as error:
            capture.close()
            if capture_path is not None:
                raise
            side.fault = error
            continue
        side.capture, side.header = capture, side.index.header
        if verify_checksums and not side.header.has_checksums:
            side.close()
            raise UsageError(
                "--verify-checksums, but the capture has no checksums of its files",
                file=path,
                remedy="capture the run with --checksums, or compare with --no-captures",
            )
        break
    return side


def open_fingerprint(
    run: Path, capture_path: Path, open_capture: Callable[[Path], CaptureFile] = CaptureFile
) -> Run:
    """A run of which there is a capture alone. run: what the user calls it.

    Raises the errors of `CaptureFile`, and CorruptCaptureError for an index that is damaged.
    """
    capture = open_capture(capture_path)
    try:
        index = read_index(capture)
    except BaseException:
        capture.close()
        raise
    return Run(
        run,
        FoundOutputs(()),
        {key: [] for key in index.checkpoints},
        capture,
        index,
        header=index.header,
        is_fingerprint=True,
        notes=capture.notes,
        faults=(*capture.faults, *faults_of(capture_path, index.header.left_out)),
    )


def recorded_again(run: Path, identity: VariableId) -> NotComparableError:
    """Why a second recording of a variable, which is not as the first one, is no variable of its
    own that a run may have or lack.
    """
    return NotComparableError(
        "was recorded twice, and not the same",
        file=run,
        variable=identity.text,
        remedy="record the run in one go, and each iteration once",
    )


class Look:
    """A first look at a checkpoint's files, and whether any of their data were read after it."""

    def __init__(self, side: Run, key: CheckpointKey, seen: tuple[SourceFile, ...] | None) -> None:
        self.run = side
        self.key = key
        self.has_read = False
        self._seen = seen

    def change(self) -> str | None:
        """What has happened to the files since, if data were read; None if nothing has."""
        if not self.has_read:
            return None
        return change_since(self._seen, self.run.groups[self.key], self.run.path)


class Variables:
    """A checkpoint of one run: from its capture, its files opened only if they have to be.

    has_data: whether there are files behind what its capture says. captured: what that says of each
    variable, {} if it has none or that no longer holds.
    stale: why it does not. look: at its files, before anything of them was read. errors: files that
    could not be read; notes: what was chosen among copies.
    """

    def __init__(self, side: Run, key: CheckpointKey) -> None:
        self.run = side
        self._key = key
        self._catalog: Catalog | None = None
        self._named: dict[str, OutputFile] | None = None  # files by the one variable they hold
        self.errors: list[CiwrapError] = []
        self.notes: list[str] = []
        self.has_data = not side.is_fingerprint
        try:
            seen, checkpoint, self.stale = side.captured(key)
        except CorruptCaptureError as error:  # of a fingerprint, in whose place there is nothing
            self.errors.append(error)
            seen, checkpoint, self.stale = None, None, None
        self.look = Look(side, key, seen)
        variables = () if checkpoint is None else checkpoint.variables
        self.captured = {one.identity: one for one in variables}
        if len(self.captured) < len(variables):
            self.errors += self._claimed_twice(variables)
        is_known = bool(self.captured) or not self.has_data
        self.identities = set(self.captured if is_known else self.catalog.entries)

    def _claimed_twice(self, variables: Sequence[CapturedVariable]) -> list[CiwrapError]:
        """An error for each variable that several checkpoints of a fingerprint hold, which are one
        here since paths tell of the other run's less: one of them alone is compared.
        """
        counts = Counter(one.identity for one in variables)
        return [
            DuplicateVariableError(
                "is in several of its checkpoints, of which the other run makes one",
                file=None if self.run.capture is None else self.run.capture.path,
                variable=identity.text,
                remedy="leave one of the files out with --exclude, and capture the run again",
            )
            for identity in self.captured
            if counts[identity] > 1
        ]

    @property
    def catalog(self) -> Catalog:
        if self._catalog is None:
            self._refuse_fingerprint()
            self._catalog = self.run.catalog(self._key)
            self.errors.extend(self._catalog.errors)
            self.notes.extend(self._catalog.notes)
            self.look.has_read = True
        return self._catalog

    @property
    def has_files_open(self) -> bool:
        return self._catalog is not None

    @property
    def attributes_left_out(self) -> int:
        """In the files that were opened."""
        return 0 if self._catalog is None else self._catalog.attributes_left_out

    def signature(self, identity: VariableId) -> Signature:
        """What the variable is, as far as no data have to be read for that."""
        captured = self.captured.get(identity)
        if captured is not None:
            return captured.signature
        return self.catalog.signature(identity)

    def path_of(self, identity: VariableId) -> str:
        """The file that holds it; the checkpoint's folder where the file was not opened."""
        if not self.has_data and self.run.capture is not None:
            return str(self.run.capture.path)
        if self._catalog is not None and identity in self._catalog.entries:
            return self._catalog.path_of(identity)
        files = self.run.groups[self._key]
        if self._named is None:
            self._named = {one.label: one for one in files if not one.reader.names_inside}
        return self._named.get(identity.name, files[0]).path_text

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        """Why nothing can be read of the variable, as far as its file was opened."""
        catalog = self._catalog
        if catalog is None or identity not in catalog.entries:
            return None
        return catalog.fault_of(identity)

    def refuse_fault(self, identity: VariableId) -> None:
        """Raises UnsupportedDtypeError for a variable that no reader can read, NotComparableError
        for one of which there is neither a tree nor data.
        """
        captured = self.captured.get(identity)
        if captured is not None and captured.any_tree is not None:
            return
        if not self.has_data and captured is not None:
            raise NotComparableError(
                f"only its capture is at hand, which has no tree of it: {captured.reason}",
                file=self.path_of(identity),
                remedy="compare where its data are",
            )
        entry = self.catalog.entries.get(identity)
        if entry is not None and entry.info.fault is not None:
            self.catalog.values(identity)  # raises

    def region(self, identity: VariableId) -> FileRegion | None:
        """Where the variable's bytes lie, if back to back in a file. Raises CorruptFileError if it
        is not what it was in the capture.
        """
        self._refuse_fingerprint()
        captured = self.captured.get(identity)
        if captured is not None and captured.region is not None and self._catalog is None:
            path, offset = captured.region
            self.look.has_read = True
            return FileRegion(
                os.path.join(self.run.path, path),  # noqa: PTH118 - for every variable of a run
                offset,
                captured.byte_count,
            )
        self._refuse_change(identity)
        info = self.catalog.entries[identity].info
        if info.fault is not None:
            self.catalog.values(identity)  # raises
        return info.region

    def held(self, identity: VariableId) -> memoryview | None:
        """The variable's bytes, back to back in C order, if they are in memory already."""
        return None if self._catalog is None else self._catalog.held(identity)

    def values(self, identity: VariableId, mask: str | None = None) -> Values:
        """The variable's values. Raises CorruptFileError as `region` does."""
        self._refuse_change(identity)
        return self.catalog.values(identity, mask)

    def is_series(self, identity: VariableId) -> bool:
        """Whether the variable was found element by element in a text, which is at hand; of one
        that has a tree it does not matter, for steps are not told of its elements.
        """
        captured = self.captured.get(identity)
        if not self.has_data or (captured is not None and captured.any_tree is not None):
            return False
        return self.catalog.is_series(identity)

    def is_aligned(self, identity: VariableId) -> bool:
        """Whether the variable's rows are put in order."""
        return self.run.arrangement is not None and self.catalog.is_aligned(identity)

    def order_of(self, identity: VariableId) -> RowOrder | None:
        """The order of the variable's rows; None if it is not aligned. Raises AlignmentError."""
        if self.run.arrangement is None:
            return None
        found = self.catalog.order_of(identity)
        self.notes += [note for note in self.catalog.notes if note not in self.notes]
        return found

    def _refuse_change(self, identity: VariableId) -> None:
        entry = self.catalog.entries.get(identity)
        if entry is None or entry.info.signature != self.signature(identity):
            raise CorruptFileError(
                "the file changed while it was being compared",
                file=self.path_of(identity),
                remedy="let the program finish first",
            )

    def _refuse_fingerprint(self) -> None:
        if not self.has_data:
            raise NotComparableError(
                "only its capture is at hand, and trees alone do not tell",
                file=None if self.run.capture is None else self.run.capture.path,
                remedy="compare where its data are",
            )

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None


def fitting(
    captured: CapturedVariable | None,
    settings: VariableSettings,
    identity: VariableId,
    *,
    with_any_bound: bool = False,
) -> CapturedVariable | None:
    """The captured variable if its trees were made with the bound that is now asked for.

    with_any_bound: or with another one, for what data cannot decide.
    """
    tree = None if captured is None else captured.any_tree
    if captured is None or tree is None:
        return None
    fine = captured.fine or tree
    made_with = tree.parameters, fine.parameters
    fits = []
    for made in made_with:
        asked = asked_for(made, settings, identity)
        fits.append(asked == made or (with_any_bound and not has_other_classes(asked, made)))
    if not fits[0]:
        return None
    return captured if fits[1] else replace(captured, fine=None)


def usable_residues(captured: CapturedVariable, *, is_reference: bool) -> StoredTree | None:
    """The tree with residues that the other run's values can be rounded relative to.

    A relative bound is one of the first run's values: then only that run's residues serve. An
    absolute one, and one in floats, is the same from either side.
    """
    fine = captured.fine
    return fine if fine is not None and (is_reference or fine.made_with.rtol == 0) else None


def comparable_trees(
    mine: CapturedVariable, other: CapturedVariable
) -> tuple[StoredTree, StoredTree] | None:
    """The best two trees whose digests may be compared: relative to the first run, else plain.

    Two trees with residues of their own tell only that they are the same.
    """
    if mine.fine is not None and other.relative is not None:
        same = other.relative.parameters == mine.fine.parameters
        if same and other.relative.against == mine.fine.identity:
            return mine.fine, other.relative
    if mine.fine is not None and other.fine is not None:
        same = other.fine.parameters == mine.fine.parameters
        if same and other.fine.identity == mine.fine.identity:
            return mine.fine, other.fine
    if mine.plain is None or other.plain is None:
        return None
    return (mine.plain, other.plain) if mine.plain.parameters == other.plain.parameters else None


_UNMATCHABLE = b"\xff" * 16
# Neighbouring groups of leaves are read in one go across gaps up to this.
_GAP_NODES = 256
# From this share of suspect parents on, all leaves are read at once.
_READ_ALL_FROM = 0.25
# Trees of up to so many leaves are read at once: finding out which would take the disk longer.
_READ_ALL_UP_TO = 8192


class Descent(Struct, frozen=True):
    """Two captured trees whose roots differ, of one size and with the same chunks."""

    golden: CaptureFile
    golden_tree: StoredTree
    new: CaptureFile
    new_tree: StoredTree
    variable: CapturedVariable

    @property
    def counts(self) -> tuple[int, ...]:
        """Nodes of each level of either tree, root first."""
        tree = self.golden_tree
        return tree.counts(self.variable.element_count * tree.parameters.scalars_per_element)

    def verify(self) -> None:
        """Reads both trees whole. Raises CorruptCaptureError if one is damaged."""
        self.golden.section(self.golden_tree.digests)
        self.new.section(self.new_tree.digests)


def prefetch_trees(descents: Iterable[Descent]) -> None:
    """Has the system fetch what `suspect_leaves` will read first, of all of them at once."""
    parts: dict[CaptureFile, list[tuple[int, int]]] = {}
    for one in descents:
        counts = one.counts
        count = sum(counts if counts[-1] <= _READ_ALL_UP_TO else counts[:-1])
        for capture, tree in ((one.golden, one.golden_tree), (one.new, one.new_tree)):
            part = (tree.digests.offset, 16 * count)
            parts.setdefault(capture, []).append(part)
    for capture, some in parts.items():
        capture.prefetch(some)


def roots_match(a: StoredTree, b: StoredTree) -> bool:
    """Whether no element of the variable can differ; a NaN that equals nothing keeps it open."""
    return a.root == b.root and a.root != _UNMATCHABLE


def suspect_leaves(descent: Descent) -> NDArray[np.int64]:
    """Indices of the leaves that do not match, ascending.

    Small trees are read whole, and checked against their checksums. Of others, the upper levels (a
    fifteenth of a tree) are read, and the leaves below nodes that differ, each checked against the
    node above it. Raises CorruptCaptureError.
    """
    golden, golden_tree = descent.golden, descent.golden_tree
    new, new_tree = descent.new, descent.new_tree
    counts = descent.counts
    if len(counts) == 1 or counts[-1] <= _READ_ALL_UP_TO:
        leaf_bytes = 16 * counts[-1]
        return _core.diff_leaves(
            golden.section(golden_tree.digests)[-leaf_bytes:],
            new.section(new_tree.digests)[-leaf_bytes:],
        )
    arity = golden_tree.parameters.arity
    offsets = np.concatenate(([0], np.cumsum(counts)))
    upper = int(offsets[-2])
    sides = [_Held(golden, golden_tree, upper), _Held(new, new_tree, upper)]
    differs = ~_matches(sides[0].upper, sides[1].upper)
    nodes = parents = np.zeros(1, dtype=np.int64)
    for level in range(len(counts) - 1):
        parents = nodes[differs[offsets[level] + nodes]]
        nodes = (parents[:, None] * arity + np.arange(arity)).reshape(-1)
        nodes = nodes[nodes < counts[level + 1]]
        if level + 2 < len(counts):
            below = slice(int(offsets[level + 1]), int(offsets[level + 2]))
            for one in sides:
                one.refuse_damage(offsets[level] + parents, parents * arity, one.upper[below])
    found = []
    for first, last in _stretches(nodes, counts[-1]):
        leaves = [one.read(upper + first, last - first) for one in sides]
        inside = parents[(parents * arity >= first) & (parents * arity < last)]
        for one, some in zip(sides, leaves, strict=True):
            one.refuse_damage(offsets[-3] + inside, inside * arity - first, some)
        found.append(np.flatnonzero(~_matches(*leaves)) + first)
    if not found:
        return np.empty(0, dtype=np.int64)
    return np.intersect1d(np.concatenate(found), nodes, assume_unique=True)


class _Held:
    """A tree of which parts are read: the levels above the leaves at once.

    Nobody reads enough of it to compare it with its checksum. So each node that leads to leaves is
    checked against its children, and the uppermost one against the root that the index tells: pages
    that both trees have lost look the same, and would hide what differs.
    """

    def __init__(self, capture: CaptureFile, tree: StoredTree, upper: int) -> None:
        self._capture = capture
        self._tree = tree
        self.upper = self.read(0, upper)
        if self.upper[0].tobytes() != tree.root:
            raise self._damaged()

    def read(self, first: int, count: int) -> NDArray[np.uint64]:
        data = self._capture.read(self._tree.digests.offset + 16 * first, 16 * count)
        return np.frombuffer(data, dtype="<u8").reshape(-1, 2)

    def refuse_damage(
        self, nodes: NDArray[np.int64], begins: NDArray[np.int64], children: NDArray[np.uint64]
    ) -> None:
        """Raises CorruptCaptureError for nodes of the upper levels that are not the digests of
        their children. begins: where those of each begin among the children.
        """
        arity = self._tree.parameters.arity
        for node, begin in zip(self.upper[nodes], begins.tolist(), strict=True):
            told, below = node.tobytes(), children[begin : begin + arity]
            if _core.xxh3_128(below) != told and not (told == _UNMATCHABLE and _is_open(below)):
                raise self._damaged()

    def _damaged(self) -> CorruptCaptureError:
        return CorruptCaptureError(
            f"the section at byte {self._tree.digests.offset} is damaged (a digest is not that of"
            " what lies below it)",
            file=self._capture.path,
            remedy="capture the run again",
        )


def _is_open(digests: NDArray[np.uint64]) -> bool:
    """Whether one of them matches nothing, not even itself."""
    return bool((digests == np.uint64(0xFFFFFFFFFFFFFFFF)).all(axis=1).any())


def _matches(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.bool_]:
    equal = (a == b).all(axis=1)
    matches: NDArray[np.bool_] = equal & (a != np.uint64(0xFFFFFFFFFFFFFFFF)).any(axis=1)
    return matches


def _stretches(nodes: NDArray[np.int64], leaf_count: int) -> list[tuple[int, int]]:
    """The leaves to read, as (first, one past the last)."""
    if nodes.size == 0:
        return []
    if nodes.size >= _READ_ALL_FROM * leaf_count:
        return [(0, leaf_count)]
    breaks = np.flatnonzero(np.diff(nodes) > _GAP_NODES)
    firsts = nodes[np.concatenate(([0], breaks + 1))]
    lasts = nodes[np.concatenate((breaks, [nodes.size - 1]))] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


if TYPE_CHECKING:
    # Name, dtype, shape, bound and evidence.
    _Row = tuple[str, str, tuple[int, ...], str | None, str]

_MOST_LEFT_OUT = 10


class ShownTrees(msgspec.Struct, frozen=True):
    """All variables of one name, dtype, shape, bound and evidence.

    bound: in words; None without a tree. evidence: which trees there are (`plain`, `residues`,
    `relative` to another run's residues), or why there is none. checkpoints: how many hold it.
    data_bytes: of the values that the trees were made of. tree_bytes: of the trees, before the
    file's own index.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: str | None
    evidence: str
    checkpoints: Whole
    data_bytes: Whole
    tree_bytes: Whole


class ShownCapture(msgspec.Struct, frozen=True):
    """What a capture says of itself, and a table of its variables.

    bounds_from: who asked for the bounds. iterations, ranks: of all variables that have one.
    snapshot: the identity of that of its environment. left_out: what it does not hold of its run,
    and why.
    """

    identity: str
    made_at: str
    made_by: str
    bounds_from: str
    layout: str | None
    chunk_bytes: Whole
    has_checksums: bool
    capture_bytes: Whole
    checkpoints: Whole
    iterations: tuple[int, ...]
    ranks: tuple[int, ...]
    variables: tuple[ShownTrees, ...]
    snapshot: str | None = None
    left_out: tuple[str, ...] = ()


def shown_capture(path: Path, open_capture: Callable[[Path], CaptureFile]) -> ShownCapture:
    """What an opener finds there, such as `CaptureFile`, whose errors are raised."""
    with open_capture(path) as capture:
        index = read_index(capture)
        rows: dict[_Row, list[int]] = {}
        places = set(index.checkpoints)
        for directory in index.checkpoints.values():
            for one in read_checkpoint(capture, directory).variables:
                made_with = None if one.plain is None else describe_bound(one.plain.parameters)
                key = (one.identity.name, one.dtype, one.shape, made_with, _evidence(one))
                places.add((one.identity.iteration, one.identity.rank))
                sums = rows.setdefault(key, [0, 0, 0])
                for place, count in enumerate((1, one.signature.byte_count, _tree_bytes(one))):
                    sums[place] += count
        header = index.header
        return ShownCapture(
            index.identity.hex(),
            header.made_at,
            header.made_by,
            header.origin,
            header.layout,
            header.chunk_bytes,
            header.has_checksums,
            capture.committed_bytes,
            len(index.checkpoints),
            _known(places, 0),
            _known(places, 1),
            tuple(ShownTrees(*key, *sums) for key, sums in sorted(rows.items(), key=_in_order)),
            None if header.snapshot is None else header.snapshot.identity,
            tuple(f"{one.path or 'the run'}: {one.reason}" for one in header.left_out),
        )


def _in_order(item: tuple[_Row, list[int]]) -> str:
    return str(item[0])


def _known(keys: Iterable[CheckpointKey], part: int) -> tuple[int, ...]:
    return tuple(sorted({number for key in keys if (number := key[part]) is not None}))


def _evidence(one: CapturedVariable) -> str:
    if one.plain is None:
        return f"none: {one.reason}"
    kinds = ["plain"]
    if one.fine is not None:
        kinds.append(f"residues (k = {one.fine.made_with.residue_levels})")
    if one.relative is not None:
        kinds.append("relative")
    return ", ".join(kinds)


def _tree_bytes(one: CapturedVariable) -> int:
    trees = (one.plain, one.fine, one.relative)
    sections = [
        section
        for tree in trees
        if tree is not None
        for section in (tree.digests, tree.residues)
        if section is not None
    ]
    return sum(section.byte_count for section in sections)


def capture_lines(shown: ShownCapture) -> Iterator[str]:
    """The text, line by line."""
    yield (
        f"capture of {_counted(shown.checkpoints, 'checkpoint')}, {shown.capture_bytes:,} bytes,"
        f" identity {shown.identity}"
    )
    yield f"  made {shown.made_at} by ciwrap {shown.made_by}"
    yield f"  blocks of {shown.chunk_bytes:,} bytes; bounds: {_one_line(shown.bounds_from)}"
    yield f"  checksums of files: {'all' if shown.has_checksums else 'not of all'}"
    if shown.snapshot is not None:
        yield f"  environment: snapshot {shown.snapshot} (`ciwrap snapshot show CAPTURE`)"
    if shown.layout is not None:
        yield f"  layout {_one_line(shown.layout)}"
    for text in shown.left_out[:_MOST_LEFT_OUT]:
        yield f"  not captured: {_one_line(text)}"
    if len(shown.left_out) > _MOST_LEFT_OUT:
        yield f"  not captured: {len(shown.left_out) - _MOST_LEFT_OUT:,} more"
    yield f"  iterations: {_ranges(shown.iterations)}; ranks: {_ranges(shown.ranks)}"
    for one in shown.variables:
        shape = "x".join(map(str, one.shape)) if one.shape else "()"
        yield f"variable {_one_line(one.name)}"
        yield f"  {one.dtype} {shape}, {one.bound or 'no tree'}"
        yield f"  evidence {_one_line(one.evidence)}"
        yield (
            f"  in {_counted(one.checkpoints, 'checkpoint')}: {one.data_bytes:,} bytes of data,"
            f" {one.tree_bytes:,} bytes of trees"
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _ranges(numbers: Sequence[int]) -> str:
    if not numbers:
        return "unknown"
    if len(numbers) == 1:
        return str(numbers[0])
    return f"{numbers[0]} to {numbers[-1]} ({len(numbers):,})"


def _one_line(text: str) -> str:
    """A text of a file that may come from anywhere, without control characters."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
