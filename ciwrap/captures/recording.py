"""A recorded run: the journals of its processes, as one capture, which is made in memory.

A recorded run has no data. What holds for a capture whose run is gone (a fingerprint) holds for it.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ciwrap.captures.bounds import NONE_GIVEN, Bounds, CaptureHeader
from ciwrap.captures.container import CaptureFile, CaptureWriter
from ciwrap.captures.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    Directory,
    StoredTree,
)
from ciwrap.captures.index_codec import encode_checkpoint, encode_index
from ciwrap.captures.journal import JournalReader
from ciwrap.errors import NotComparableError, OutputMissingError, WriteFailedError
from ciwrap.model import ErrorBound, VariableId, VariableSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.journal import RecordedCheckpoint, RecordedTree
    from ciwrap.errors import CiwrapError

RUN_FILE = "run.json"
_JOURNALS = "[0-9][0-9][0-9]*/rank-*.cwr"
_MOST_TOLD = 5


class RunFile(msgspec.Struct, frozen=True):
    """What `ciwrap record` says of a run, in `run.json`.

    bounds_from: who asked for its bounds; None if nobody but the program itself.
    """

    format: str = "ciwrap recorded run 1"
    command: tuple[str, ...] = ()
    bounds_from: str | None = None


def write_run_file(run: Path, said: RunFile) -> None:
    """Makes the folder, if need be. Raises WriteFailedError."""
    try:
        run.mkdir(parents=True, exist_ok=True)
        (run / RUN_FILE).write_bytes(msgspec.json.encode(said) + b"\n")
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error


def journal_paths(run: Path) -> list[Path]:
    """The journals of a recorded run, by rank."""
    return sorted(run.glob(_JOURNALS))


def is_recording(path: Path) -> bool:
    """Whether a folder is a recorded run."""
    return path.is_dir() and next(path.glob(_JOURNALS), None) is not None


def _bounds_from(path: Path) -> str | None:
    """Who asked for the bounds of a run, as far as its run file says it."""
    try:
        return msgspec.json.decode((path / RUN_FILE).read_bytes(), type=RunFile).bounds_from
    except (OSError, msgspec.DecodeError):
        return None


class RecordedCapture(CaptureFile):
    """The capture that a recorded run's journals make, as they are now.

    notes: what is to be told of it. faults: what the program could not record, and journals that
    are missing: the run is not all there then. open_journals: of processes that have not ended
    them. Raises the errors of `JournalReader`, OutputMissingError without a journal, and
    CorruptCaptureError for journals of several runs.
    """

    def __init__(self, run: Path) -> None:
        self.notes: tuple[str, ...] = ()
        self.faults: tuple[CiwrapError, ...] = ()
        self.open_journals = 0
        memory = os.memfd_create("ciwrap-recording", os.MFD_CLOEXEC)
        held = Path(f"/proc/self/fd/{memory}")
        try:
            self._merge(run, held)
            super().__init__(held)
        finally:
            os.close(memory)
        self.path = run

    def _merge(self, run: Path, target: Path) -> None:
        readers = [JournalReader(path) for path in journal_paths(run)]
        if not readers:
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
            for reader in readers:
                merge.take(writer, reader)
            writer.commit(encode_index(merge.index(readers)))
        self.faults = (*missing, *_told(readers))
        self.open_journals = sum(not one.is_closed for one in readers)
        if self.open_journals:
            count = f"{self.open_journals} of {len(readers)} processes"
            why = "they still run, or were killed; compared is what they have recorded so far"
            self.notes = (f"{run}: {count} have not closed their journals: {why}",)


def _missing_ranks(run: Path, readers: Sequence[JournalReader]) -> list[CiwrapError]:
    """An error for the ranks that left no journal. Raises CorruptCaptureError."""
    ranks = readers[0].ranks
    seen: set[int] = set()
    for one in readers:
        if one.ranks != ranks or one.rank >= ranks or one.rank in seen:
            raise one.damaged(f"it is of rank {one.rank} of {one.ranks}, another one is of {ranks}")
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

    def take(self, writer: CaptureWriter, reader: JournalReader) -> None:
        """Adds what one process recorded."""
        places: dict[int, dict[str, CapturedVariable]] = {}
        for checkpoint in reader.checkpoints():
            found = places.setdefault(checkpoint.iteration, {})
            for tree in checkpoint.trees:
                one = self._captured(writer, reader, checkpoint, tree)
                _keep(found, one, checkpoint.attempt)
        for iteration, variables in places.items():
            key = (iteration, reader.rank)
            captured = CapturedCheckpoint(key, (), tuple(variables.values()))
            section = writer.append_packed(encode_checkpoint(captured, self._run))
            self._directories[key] = Directory(key, section, captured.digest)

    def _captured(
        self,
        writer: CaptureWriter,
        reader: JournalReader,
        checkpoint: RecordedCheckpoint,
        tree: RecordedTree,
    ) -> CapturedVariable:
        variable = tree.variable
        name = f"{variable.name}@{checkpoint.point}" if checkpoint.point else variable.name
        identity = VariableId(name, checkpoint.iteration, reader.rank)
        plain = None
        if tree.reason is None:
            if len(tree.digests) < 16:
                raise reader.damaged("a tree without a root")
            plain = StoredTree(variable.made_with, tree.digests[:16], writer.append(tree.digests))
            self._note(identity, variable.made_with.dtype, plain)
        return CapturedVariable(
            identity, variable.made_with.dtype, tree.shape, plain, reason=tree.reason
        )

    def _note(self, identity: VariableId, dtype: str, tree: StoredTree) -> None:
        made = tree.made_with
        self._chunk_bytes = self._chunk_bytes or made.chunk_bytes
        settings = VariableSettings(
            ErrorBound(made.atol, made.rtol, made.ulps),
            equal_nan=made.equal_nan,
            fill_values=made.fill_values,
        )
        self._bounds.note(settings, identity, dtype)

    def index(self, readers: Sequence[JournalReader]) -> CaptureIndex:
        """The index of everything that was taken."""
        made = [VariableSettings(one.over(VariableSettings()).bound) for one in self._bounds.rows]
        is_asked = any(one.has_table for one in readers) or any(
            not one.bound.is_exact for one in made
        )
        last = max(readers, key=lambda one: one.made_at)
        header = CaptureHeader(
            _bounds_from(self._run) or ("given" if is_asked else NONE_GIVEN),
            self._chunk_bytes,
            self._bounds.rows,
            made_at=datetime.fromtimestamp(last.made_at, timezone.utc).isoformat(),
            made_by=last.made_by,
        )
        return CaptureIndex(header, self._directories)


def _keep(found: dict[str, CapturedVariable], one: CapturedVariable, attempt: int) -> None:
    """Keeps a variable; of an iteration that was recorded twice, the second one if it differs."""
    name = one.identity.name
    known = found.get(name)
    if known is None:
        found[name] = one
        return
    if known.digests == one.digests and known.signature == one.signature and one.plain is not None:
        return
    other = f"{name} (attempt {attempt})"
    while other in found:
        other += "'"
    identity = VariableId(other, one.identity.iteration, one.identity.rank)
    found[other] = msgspec.structs.replace(one, identity=identity)


def open_capture(path: Path) -> CaptureFile:
    """A capture file, or the capture that a recorded run's journals make."""
    return RecordedCapture(path) if path.is_dir() else CaptureFile(path)
