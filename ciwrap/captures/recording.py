"""A recorded run: the journals of its processes, as one capture, whose index is made in memory.

A recorded run has no data. What holds for a capture whose run is gone (a fingerprint) holds for it.
"""

from __future__ import annotations

import hashlib
import math
import operator
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec

from ciwrap import _core
from ciwrap.captures.bounds import NONE_GIVEN, Bounds, CaptureHeader
from ciwrap.captures.container import CaptureFile, Section, stamp_of_file
from ciwrap.captures.container_writer import CaptureWriter
from ciwrap.captures.in_memory import file_in_memory
from ciwrap.captures.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    Directory,
    FineIdentity,
    StoredTree,
)
from ciwrap.captures.index_codec import append_checkpoint, encode_index
from ciwrap.captures.journal import FINE, PLAIN, RELATIVE, JournalReader
from ciwrap.captures.journals import SNAPSHOT_FILE, journal_paths, unrecorded
from ciwrap.captures.kept_snapshot import GivenSnapshot, appended
from ciwrap.captures.recorded_twice import keep
from ciwrap.captures.run_file import run_file_of
from ciwrap.captures.side import recorded_again
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    NotComparableError,
    OutputMissingError,
    StillWrittenError,
    UnreadableFileError,
    WriteFailedError,
)
from ciwrap.model import ErrorBound, VariableId, VariableSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.recorded import (
        RecordedCheckpoint,
        RecordedState,
        RecordedTree,
        RecordingCost,
    )

_MOST_SNAPSHOT_BYTES = 32 << 20
_MOST_TOLD = 5
# Trees stay in their journals: of an offset of the capture, what is above these bits is the number
# of the journal, from 1, and what is below is the offset there.
_JOURNAL_BITS = 40


def write_snapshot(run: Path, text: bytes) -> None:
    """Puts the JSON of a snapshot into the run's folder. Raises WriteFailedError."""
    try:
        (run / SNAPSHOT_FILE).write_bytes(text)
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error


def snapshot_of_run(run: Path) -> GivenSnapshot | None:
    """The snapshot in a run's folder, named as snapshots are; None without one."""
    try:
        with (run / SNAPSHOT_FILE).open("rb") as file:
            text = file.read(_MOST_SNAPSHOT_BYTES)
    except OSError:
        return None
    return GivenSnapshot(hashlib.sha256(text).hexdigest()[:32], text)


class RecordedCapture(CaptureFile):
    """The capture that a recorded run's journals make, as they are now.

    notes: what is to be told of it. faults: what the program could not record, and journals that
    are missing: the run is not all there then. open_journals: of processes that have not ended
    them. suspects: what did not match what the run was held against while it ran, by iteration,
    order in it and rank; followed: of those since each process began anew, how many checkpoints it
    recorded after them. costs: what recording took of processes that have ended their journals,
    once for each attempt. repeated: what was recorded again, and not the same, as a variable of its
    own, with the one that it is of. Raises the errors of `JournalReader`, OutputMissingError
    without a journal, and NotComparableError for journals of several runs.
    """

    is_recording = True

    def __init__(self, run: Path) -> None:
        self.open_journals = 0
        self.suspects: tuple[VariableId, ...] = ()
        self.followed: dict[VariableId, int] = {}
        self.costs: list[RecordingCost] = []
        self._samples: dict[VariableId, dict[int, tuple[int, int]]] = {}
        self._journals = journal_paths(run)
        stamps = _stamps(self._journals)
        with file_in_memory() as held:
            self._merge(run, held)
            super().__init__(held)
        self.path, self.stamps = run, stamps

    def refuse_parts(
        self, remedy: str, is_ignored: Callable[[VariableId], bool] = lambda _: False
    ) -> None:
        """Raises for a run that is not all there, where nothing could tell of it later.

        The first fault; StillWrittenError, with that remedy, for a run that goes on or was killed;
        NotComparableError for one that a restart recorded again, otherwise, but for variables that
        are ignored.
        """
        if self.faults:
            raise self.faults[0]
        if self.open_journals:
            raise StillWrittenError(
                "has journals that were not closed: its program still runs, or was killed",
                file=self.path,
                remedy=remedy,
            )
        for identity in self.repeated:
            if not self.leaves_out(identity, is_ignored):
                raise recorded_again(self.path, identity)

    def _merge(self, run: Path, target: Path) -> None:
        readers = [JournalReader(path) for path in self._journals]
        if not readers:
            for error in unrecorded(run):
                raise error
            raise OutputMissingError(
                "holds no journal: nothing was recorded",
                file=run,
                remedy="let the program record (docs/how-to/record-a-program.md)",
            )
        for reader in readers:
            reader.read_head()
        missing = _missing_ranks(run, readers)
        merge = _Merge(run)
        with CaptureWriter(target) as writer:
            for number, reader in enumerate(readers, 1):
                merge.take(writer, reader, number << _JOURNAL_BITS)
            index = merge.index(readers)
            kept = appended(writer, snapshot_of_run(run), None)
            index.header = msgspec.structs.replace(index.header, snapshot=kept)
            writer.commit(encode_index(index))
        self.suspects, self._samples = merge.suspects, merge.samples
        self.followed = merge.followed
        self.repeated = merge.repeated
        self.faults = (*unrecorded(run), *missing, *_told(readers))
        self.costs = [cost for one in readers for cost in one.costs]
        self.open_journals = sum(not one.is_closed for one in readers)
        if self.open_journals:
            count = f"{self.open_journals} of {len(readers)} processes"
            why = "they still run, or were killed; compared is what they have recorded so far"
            self.notes = (f"{run}: {count} have not closed their journals: {why}",)

    def read(self, offset: int, count: int) -> bytes:
        """As in any capture; what lies in a journal is read there."""
        number = offset >> _JOURNAL_BITS
        if number == 0:
            return super().read(offset, count)
        path = self._journals[number - 1]
        try:
            with path.open("rb") as file:
                file.seek(offset & ((1 << _JOURNAL_BITS) - 1))
                data = file.read(count)
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), file=path) from error
        if len(data) != count:
            raise CorruptCaptureError("is truncated", file=path, remedy="record the run again")
        self.bytes_read += count
        return data

    def samples_of(self, identity: VariableId) -> dict[int, bytes]:
        """Elements that were kept of chunks that did not match, by chunk."""
        return {
            leaf: self.read(offset, count)
            for leaf, (offset, count) in self._samples.get(identity, {}).items()
        }

    def prefetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """As in any capture; journals are read as they are asked for."""
        super().prefetch(part for part in parts if part[0] >> _JOURNAL_BITS == 0)


def _stamps(journals: Iterable[Path]) -> tuple[tuple[int, ...], ...]:
    try:
        return tuple(stamp_of_file(path.stat()) for path in journals)
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=error.filename) from error


def _missing_ranks(run: Path, readers: Sequence[JournalReader]) -> list[CiwrapError]:
    """An error for the ranks that left no journal. Raises NotComparableError for processes that say
    otherwise how many there are, and CorruptCaptureError.
    """
    ranks = readers[0].ranks
    seen: set[int] = set()
    for one in readers:
        if one.ranks != ranks:
            raise NotComparableError(
                f"was recorded as rank {one.rank} of {one.ranks}, and another process as one of"
                f" {ranks}",
                file=one.path,
                remedy="let each process tell the same number of ranks, and record the run again",
            )
        if one.rank >= ranks or one.rank in seen:
            raise one.damaged(f"it is of rank {one.rank} of {ranks}, as another one is")
        seen.add(one.rank)
    count = ranks - len(seen)
    if not count:
        return []
    first = next(rank for rank in range(ranks) if rank not in seen)
    return [
        OutputMissingError(
            f"{count} of {ranks} ranks left no journal, such as rank {first}",
            file=run,
            remedy="see what the program said on stderr",
        )
    ]


def _told(readers: Sequence[JournalReader]) -> list[CiwrapError]:
    """What programs could not record, each thing once."""
    found: dict[str, CiwrapError] = {}
    for reader in readers:
        for text in reader.errors:
            found.setdefault(
                text, NotComparableError(f"was not recorded: {text}", file=reader.path)
            )
    return [*found.values()][:_MOST_TOLD]


class _Merge:
    """Journals on their way into a capture."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._directories: dict[CheckpointKey, Directory] = {}
        self._bounds = Bounds(NONE_GIVEN)
        self._chunk_bytes = 0
        self._suspects: list[tuple[tuple[int, int, int], VariableId]] = []
        self.followed: dict[VariableId, int] = {}
        self.repeated: dict[VariableId, VariableId] = {}
        self.samples: dict[VariableId, dict[int, tuple[int, int]]] = {}

    def take(self, writer: CaptureWriter, reader: JournalReader, base: int) -> None:
        """Adds what one process recorded. base: the offset at which the capture has its journal."""
        places: dict[int, dict[str, CapturedVariable]] = {}
        attempt, order = 0, 0
        seen: dict[VariableId, int] = {}  # suspects of the attempt, and when
        for order, checkpoint in enumerate(reader.checkpoints()):
            if checkpoint.attempt != attempt:
                attempt, seen = checkpoint.attempt, {}
            found = places.setdefault(checkpoint.iteration, {})
            for state in checkpoint.states:
                one = self._captured(reader, checkpoint, state, base)
                identity = keep(found, one, checkpoint.attempt)
                if one.any_tree is not None:
                    self._note(one, identity or one.identity, one.any_tree)
                if identity is not None and identity != one.identity:
                    self.repeated[identity] = one.identity
                if state.compared is not None and state.compared.suspect_chunks:
                    place = (checkpoint.iteration, order, reader.rank)
                    self._suspects.append((place, identity or one.identity))
                    seen[identity or one.identity] = order
                if identity is not None and state.samples:
                    self.samples[identity] = {
                        leaf: (base + at, count) for leaf, (at, count) in state.samples.items()
                    }
        self.followed.update((one, order - when) for one, when in seen.items())
        for iteration, variables in places.items():
            key = (iteration, reader.rank)
            captured = CapturedCheckpoint(key, (), tuple(variables.values()))
            self._directories[key] = append_checkpoint(writer, captured, self._run)

    def _captured(
        self,
        reader: JournalReader,
        checkpoint: RecordedCheckpoint,
        state: RecordedState,
        base: int,
    ) -> CapturedVariable:
        variable = state.variable
        name = f"{variable.name}@{checkpoint.point}" if checkpoint.point else variable.name
        identity = VariableId(name, checkpoint.iteration, reader.rank)
        found: dict[int, StoredTree] = {}
        if state.reason is None:
            if PLAIN not in state.trees and FINE not in state.trees:
                raise reader.damaged("a variable without a tree of its own")
            try:
                found = {
                    kind: _stored(state, kind, tree, base) for kind, tree in state.trees.items()
                }
            except (CiwrapError, ValueError) as error:
                raise reader.damaged(f"the trees of {name}: {error}") from error
        return CapturedVariable(
            identity,
            variable.made_with.dtype,
            state.shape,
            found.get(PLAIN),
            found.get(FINE),
            found.get(RELATIVE),
            reason=state.reason,
        )

    def _note(self, one: CapturedVariable, kept_as: VariableId, tree: StoredTree) -> None:
        made = tree.made_with
        self._chunk_bytes = self._chunk_bytes or made.chunk_bytes
        settings = VariableSettings(
            ErrorBound(made.atol, made.rtol, made.ulps),
            equal_nan=made.equal_nan,
            fill_values=made.fill_values,
        )
        self._bounds.note(settings, one.identity, one.dtype)
        if settings != VariableSettings():  # what is exact needs no word
            self._bounds.note(settings, kept_as, one.dtype)

    @property
    def suspects(self) -> tuple[VariableId, ...]:
        """What did not match, by iteration, order of points in it and rank."""
        return tuple(one for _, one in sorted(self._suspects, key=operator.itemgetter(0)))

    def index(self, readers: Sequence[JournalReader]) -> CaptureIndex:
        """The index of everything that was taken."""
        made = [VariableSettings(one.over(VariableSettings()).bound) for one in self._bounds.rows]
        is_asked = any(one.has_table for one in readers) or any(
            not one.bound.is_exact for one in made
        )
        last = max(readers, key=lambda one: one.made_at)
        said = run_file_of(self._run)
        header = CaptureHeader(
            (said and said.bounds_from) or ("given" if is_asked else NONE_GIVEN),
            self._chunk_bytes,
            self._bounds.rows,
            # Of a golden or a capture in the form of journals nobody says when it was made.
            made_at=_time_text(last.made_at) if last.made_at else "",
            made_by=last.made_by,
        )
        return CaptureIndex(header, self._directories)


def _time_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _stored(state: RecordedState, kind: int, tree: RecordedTree, base: int) -> StoredTree:
    """A tree as a capture has it, lying in its journal.

    Raises CiwrapError for parameters that are none, and ValueError for a tree of another size.
    """
    made = state.variable.made_with
    if kind == PLAIN:
        made = msgspec.structs.replace(made, residue_levels=1)
    first = Section(base + tree.offset, 16, b"\0" * 16)
    counted = StoredTree(made, tree.body[:16], first)
    scalars = counted.parameters.scalars_per_element * math.prod(state.shape)
    node_bytes = 16 * sum(counted.counts(scalars))
    digests, residues = tree.body[:node_bytes], tree.body[node_bytes:]
    if len(digests) != node_bytes or (residues and kind != FINE):
        raise ValueError("it is of another size")
    at = base + tree.offset
    return StoredTree(
        made,
        digests[:16],
        Section(at, node_bytes, _core.xxh3_128(digests)),
        Section(at + node_bytes, len(residues), _core.xxh3_128(residues)) if kind == FINE else None,
        None if tree.against is None else FineIdentity(tree.against),
        tree.max_share,
    )
