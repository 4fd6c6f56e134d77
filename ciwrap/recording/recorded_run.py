"""A recorded run: the journals of its processes, as one capture, whose index is made in memory.

It has no data: what holds for a capture whose run is gone (a fingerprint) holds for it.
"""

from __future__ import annotations

import contextlib
import math
import operator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace
from msgspec.structs import replace as with_fields

from ciwrap import _core
from ciwrap.base.errors import (
    CiwrapError,
    CorruptCaptureError,
    NotComparableError,
    OutputMissingError,
    StillWrittenError,
    UsageError,
)
from ciwrap.base.files import write_atomically, writing
from ciwrap.base.late import hashlib
from ciwrap.base.patterns import file_glob
from ciwrap.check.check import GoldenSide, ignored_but_in_golden, misspelt_words
from ciwrap.check.two_sides import GOLDEN, HistoryOptions, failed_check
from ciwrap.formats.catalog import Rules
from ciwrap.formats.find_outputs import FoundOutputs
from ciwrap.formats.reader import reading
from ciwrap.formats.source_files import relative_path, walk_with_links, why_changed
from ciwrap.golden.store import golden_id
from ciwrap.model import ErrorBound, Message, MessageLevel, VariableId, VariableSettings, Verdict
from ciwrap.project.outputs import (
    OWN_FILES,
    RUN_FILE,
    SNAPSHOT_FILE,
    is_recording,
    journal_paths,
    own_files,
    recorded_run_of,
    unrecorded,
)
from ciwrap.recording.journal import FINE, PLAIN, RELATIVE, JournalReader
from ciwrap.runs.capture_file import (
    MAGIC,
    CaptureFile,
    CaptureWriter,
    Section,
    file_in_memory,
    replaced_capture,
    stamp_of_file,
)
from ciwrap.runs.capture_index import (
    NONE_GIVEN,
    SUMMARY_BYTES,
    Bounds,
    CapturedCheckpoint,
    CapturedVariable,
    CaptureHeader,
    CaptureIndex,
    Directory,
    FineIdentity,
    GivenSnapshot,
    MadeWith,
    StoredTree,
    append_checkpoint,
    appended,
    encode_index,
    malformed,
    parameters_of,
    read_checkpoint,
    read_index,
    snapshot_text,
)
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.sides import Run, capture_paths, open_fingerprint, recorded_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Shaped
    from ciwrap.check.two_sides import Work
    from ciwrap.formats.source_files import CheckpointKey, SourceFile
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.model import CheckResult
    from ciwrap.project.settings import Check
    from ciwrap.recording.journal import (
        RecordedCheckpoint,
        RecordedState,
        RecordedTree,
        RecordingCost,
    )
    from ciwrap.snapshot.records import Snapshot


def keep(
    found: dict[str, CapturedVariable], one: CapturedVariable, attempt: int
) -> VariableId | None:
    """Keeps a variable; of an iteration that was recorded twice, the second one if it differs.

    Returns what it is called, or None if it was not kept.
    """
    name = one.identity.name
    known = found.get(name)
    if known is None:
        found[name] = one
        return one.identity
    is_same = known.signature == one.signature and known.all_digests == one.all_digests
    if is_same and one.any_tree is not None:
        found[name] = _with_larger_share(known, one)
        return None
    other = f"{name} (attempt {attempt})" if attempt > 1 else f"{name} (again)"
    while other in found:
        other += "'"
    identity = VariableId(other, one.identity.iteration, one.identity.rank)
    found[other] = msgspec.structs.replace(one, identity=identity)
    return identity


def _with_larger_share(known: CapturedVariable, one: CapturedVariable) -> CapturedVariable:
    """Two recordings of one cells: reported is the larger share of the bound that either moved."""
    if known.relative is None or one.relative is None:
        return known
    shares = [known.relative.max_share, one.relative.max_share]
    largest = max((share for share in shares if share is not None), default=None)
    relative = msgspec.structs.replace(known.relative, max_share=largest)
    return msgspec.structs.replace(known, relative=relative)


FORMAT = "ciwrap recorded run 1"


class RunFile(msgspec.Struct, frozen=True):
    """What `run.json` holds. format: FORMAT in a file of ours. command: without secrets.
    bounds_from: who asked for its bounds; None if nobody but the program itself. ended_in: the
    iteration for which it was ended, since it did not match what it was compared with. exit_code:
    of `ciwrap record`; None while it runs, and where it failed.
    """

    format: str = ""
    command: str = ""
    bounds_from: str | None = None
    ended_in: int | None = None
    exit_code: int | None = None


def write_run_file(run: Path, content: RunFile) -> None:
    """Makes the folder, if need be. Raises WriteFailedError."""
    with writing(run):
        run.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.encode(msgspec.structs.replace(content, format=FORMAT)) + b"\n"
        write_atomically(run / RUN_FILE, text)


def run_file_of(run: Path) -> RunFile | None:
    """What a run's folder says; None for one without a run file of ours."""
    try:
        found = msgspec.json.decode((run / RUN_FILE).read_bytes(), type=RunFile)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.format == FORMAT else None


def add_to_run_file(run: Path, **fields: int | None) -> None:
    """Sets fields of a run's file. Raises WriteFailedError."""
    write_run_file(run, replace(run_file_of(run) or RunFile(), **fields))


def refuse_files_of_others(run: Path) -> None:
    """Raises UsageError if somebody else's files have the names that `ciwrap record` writes, or
    deletes with a run: those in a folder without a run file of ours.
    """
    found = next((run / name for name in OWN_FILES if (run / name).exists()), None)
    if found is not None and run_file_of(run) is None:
        raise UsageError(
            "already exists and is not of a recorded run; it is left as it is",
            file=found,
            remedy="give another folder with -o",
        )


_MOST_SNAPSHOT_BYTES = 32 << 20
_MOST_TOLD = 5
# Trees stay in their journals: of an offset of the capture, what is above these bits is the number
# of the journal, from 1, and what is below is the offset there.
_JOURNAL_BITS = 40


def write_snapshot(run: Path, text: bytes) -> None:
    """Puts the JSON of a snapshot into the run's folder. Raises WriteFailedError."""
    with writing(run):
        write_atomically(run / SNAPSHOT_FILE, text)


def snapshot_of_capture(path: Path) -> Snapshot | None:
    """The snapshot of a capture, of the run that has one, or of a recorded run; None for a path
    that is not a capture. Raises UsageError for a capture without any, and the errors of
    reading it.
    """
    capture = capture_of(path)
    if capture is None:
        return None
    from ciwrap.snapshot.store import decoded_as

    kept = snapshot_text(capture, open_capture)
    if kept is None:
        raise UsageError(
            "the capture has no snapshot", file=capture, remedy="capture the run again"
        )
    return decoded_as(kept.identity, kept.text, capture)


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

    notes: what is to be reported. faults: what the program could not record, and journals that are
    missing: the run is not all there then. open_journals: of processes that have not ended
    them. suspects: what did not match the reference while the run was made, by iteration,
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
        with reading(run):
            stamps = tuple(stamp_of_file(path.stat()) for path in self._journals)
        with file_in_memory() as held:
            self._merge(run, held)
            super().__init__(held)
        self.path, self.stamps = run, stamps
        own = run_file_of(run)
        self.ended_in = None if own is None else own.ended_in

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
        self.faults = (*unrecorded(run), *missing, *_recording_errors(readers))
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
        with reading(path), path.open("rb") as file:
            file.seek(offset & ((1 << _JOURNAL_BITS) - 1))
            data = file.read(count)
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

    def summaries_section(self, section: Section) -> bytes:
        """As they lie in the journal."""
        return self.section(section)

    def prefetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """As in any capture; journals are read as they are asked for."""
        super().prefetch(part for part in parts if part[0] >> _JOURNAL_BITS == 0)


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


def _recording_errors(readers: Sequence[JournalReader]) -> list[CiwrapError]:
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
        self._places: dict[str, tuple[str, str]] = {}  # by what a variable is called
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
                self._refuse_two_of_a_name(reader, state.variable.name, checkpoint.point)
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

    def _refuse_two_of_a_name(self, reader: JournalReader, name: str, point: str) -> None:
        """Raises NotComparableError for `x@half` beside `x` at the point `half`."""
        text = f"{name}@{point}" if point else name
        if self._places.setdefault(text, (name, point)) != (name, point):
            raise NotComparableError(
                "is the name of an array, and of another one at a point",
                file=reader.path,
                variable=text,
                remedy="give the array or the point another name",
            )

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
                    kind: _tree_in_journal(state, kind, tree, base)
                    for kind, tree in state.trees.items()
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


def _tree_in_journal(state: RecordedState, kind: int, tree: RecordedTree, base: int) -> StoredTree:
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
    summaries = None
    if kind in state.summaries:
        offset, rows = state.summaries[kind]
        if len(rows) != SUMMARY_BYTES * counted.counts(scalars)[-1]:
            raise ValueError("its summaries are of another size")
        summaries = Section(base + offset, len(rows), _core.xxh3_128(rows))
    return StoredTree(
        made,
        digests[:16],
        Section(at, node_bytes, _core.xxh3_128(digests)),
        Section(at + node_bytes, len(residues), _core.xxh3_128(residues)) if kind == FINE else None,
        None if tree.against is None else FineIdentity(tree.against),
        tree.max_share,
        summaries,
    )


def open_capture(path: Path) -> CaptureFile:
    """A capture file, or the capture that a recorded run's journals make."""
    if not path.is_dir():
        return CaptureFile(path)

    return RecordedCapture(path)


def fingerprint_of(path: Path) -> Path | None:
    """The capture that stands for a run without data: the file or recorded run `path` itself, or
    that of a folder that holds no other file; None for a run with data and for anything else.
    Raises UnreadableFileError.
    """
    known = capture_of(path)
    if known == path:
        return path
    return None if known is None or (path.is_dir() and any(_visible_files(path))) else known


def capture_of(path: Path) -> Path | None:
    """The capture or recorded run at `path`, or the capture of the run there; None if there is
    none. Raises UnreadableFileError.
    """
    with reading(path):
        if is_recording(path):
            return path
        if path.is_dir():
            return next((one for one in capture_paths(path) if one.is_file()), None)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return path if file.read(len(MAGIC)) == MAGIC else None


def refuse_other_data(run: Path, capture_path: Path) -> None:
    """Raises NotComparableError for a capture that is to stand for a run whose data are there, and
    which does not tell of them any more: files that were captured have changed, or others have been
    written since. Raises the errors of reading captures.
    """
    if capture_path == run or not run.is_dir():
        return
    captured: dict[str, SourceFile] = {}
    with open_capture(capture_path) as capture:
        index = read_index(capture)
        for directory in index.checkpoints.values():
            files = read_checkpoint(capture, directory).files
            captured.update({one.path: one for one in files})
    others = [one for one in _visible_files(run) if relative_path(run, one) not in captured]
    if not others and not any(_visible_files(run)):
        return
    try:
        made_at = datetime.fromisoformat(index.header.made_at).timestamp()
    except ValueError:
        raise malformed(capture_path, "when it was made") from None
    newer = next((one for one in others if _is_since(one, made_at)), None)
    why = why_changed([*captured.values()], run)
    if newer is not None:
        why = f"{relative_path(run, newer)} was written since"
    if why is not None:
        raise NotComparableError(
            f"has changed since its capture was made: {why}",
            file=run,
            remedy=f"capture it again, or name the capture itself ({capture_path})",
        )


def files_beside_journals(
    run: Path, exclude: Sequence[str] = (), root: Path | None = None
) -> tuple[CiwrapError, ...]:
    """An error for each file that lies in the folder of a recorded run and that recording did not
    write: nobody compares it.

    exclude: patterns of files that nobody wants to hear of, relative to `root` (the run's folder
    if it is not given). Raises UnreadableFileError, ConfigError.
    """
    own = {*own_files(run)}
    left_out = [file_glob(text, "exclude") for text in exclude]
    found = (path for path in _visible_files(run) if path not in own)
    return tuple(
        NotComparableError(
            "was not compared: of a recorded run the journals alone are",
            file=path,
            remedy="write it elsewhere, or leave it out with 'exclude'",
        )
        for path in sorted(found)
        if not any(one.match(relative_path(root or run, path)) for one in left_out)
    )


def _is_since(path: Path, moment: float) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(look().st_mtime >= moment for look in (path.lstat, path.stat))
    return False


def _visible_files(folder: Path) -> Iterator[Path]:
    """All files that are not hidden, nor in a hidden folder. Raises UnreadableFileError."""
    for here, folders, names in walk_with_links(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here) / name for name in names if not name.startswith("."))


def check_recorded(check: Check, store: GoldenStore, work: Work) -> CheckResult:
    """Compares the recorded run that is a check's output with its golden. Writes nothing.

    Raises UsageError for a configuration that cannot be used; everything else is in the result.
    """
    try:
        golden, run = store.read(check.name), recorded_run_of(check)
        assert run is not None
        return compare_recorded(check, golden, run, work)
    except CiwrapError as error:
        return failed_check(check.name, error, str(store.path(check.name)))


def compare_recorded(
    check: Check,
    golden: StoredGolden,
    run: Path,
    work: Work,
    settings_for: Callable[[VariableId, Shaped], VariableSettings] | None = None,
) -> CheckResult:
    """Compares a recorded run with a check's golden, by trees and residues alone.

    settings_for: of a variable and what it is; those of the check if not given. Raises UsageError
    for a check that needs data, and the errors of reading the run.
    """
    refuse_what_needs_data(check)
    rules = Rules(
        settings_for or check.settings_for,
        check.is_ignored,
        check.strict.variables,
        bounds_from=f"check {check.name}",
    )
    with (
        closing(golden_run(golden.path, golden.variables, golden.manifest.labels)) as ours,
        closing(open_fingerprint(run, run, RecordedCapture)) as theirs,
    ):
        theirs.faults += files_beside_journals(run, check.exclude, check.root)
        result = compare_histories(
            check.name,
            ours,
            theirs,
            rules,
            HistoryOptions(detail_bytes=0),
            golden_path=str(golden.path),
            source_path=str(run),
            wording=GOLDEN,
            resources=work.resources,
            progress=work.progress,
        )
    known = {golden_id(one) for one in golden.variables}
    known |= {one.id for one in result.variables} | {*result.extra_variables}
    told = misspelt_words(check, known | {*result.ignored_variables})
    warnings = (Message(MessageLevel.WARNING, text) for text in told)
    return replace(
        _with_newly_ignored(result, golden, check),
        messages=(*result.messages, *warnings),
        golden_root=golden.root,
        golden_bytes=golden.byte_count,
        golden_environment=dict(golden.manifest.environment),
    )


def refuse_what_needs_data(check: Check) -> None:
    """Raises UsageError for a check that a recorded run cannot be compared with."""
    if check.expected:
        raise UsageError(
            f"check {check.name!r} says what values are ('expect', 'range'), and a recorded run"
            " has none",
            file=check.config_path,
            remedy="leave that to a check of files",
        )


def _with_newly_ignored(result: CheckResult, golden: StoredGolden, check: Check) -> CheckResult:
    """The result, in which what the golden holds and the check ignores is not comparable."""
    ours = GoldenSide(golden, check)
    found = [one for one in ours.variables if check.is_ignored(one)]
    if not found:
        return result
    told = [ignored_but_in_golden(one, ours.signature(one)) for one in found]
    return replace(
        result,
        verdict=Verdict.worst((result.verdict, Verdict.NOT_COMPARABLE)),
        variables=tuple(sorted((*result.variables, *told), key=lambda one: one.id.sort_key)),
        ignored_variables=tuple(one for one in result.ignored_variables if one not in found),
        left_out_variables=tuple(one for one in result.left_out_variables if one not in found),
    )


def trees_of_golden(variable: _core.GoldenVariable) -> tuple[_core.Tree | None, _core.Tree | None]:
    """(plain tree, tree with residues) of a golden's variable, as far as it tells them.

    A golden has one tree; of one that keeps its data both are made.
    """
    tree = variable.tree
    if tree.residues is not None:
        return None, tree
    if variable.data is None:
        return tree, None
    levels = VariableSettings().residue_levels
    fine = parameters_of(with_fields(MadeWith.of(tree.parameters), residue_levels=levels))
    return tree, None if fine.residue_levels == 1 else _core.build_tree(fine, variable.data)


def golden_run(
    path: Path,
    variables: Iterable[_core.GoldenVariable],
    labels: Mapping[VariableId, tuple[tuple[str, str], ...]] | None = None,
) -> Run:
    """A golden as one of two runs, of which there are trees alone. labels: as in its manifest."""
    with file_in_memory() as held:
        with CaptureWriter(held) as writer:
            found: dict[CheckpointKey, list[CapturedVariable]] = {}
            for one in variables:
                captured = _captured(writer, one, labels or {})
                key = (captured.identity.iteration, captured.identity.rank)
                found.setdefault(key, []).append(captured)
            directories = {}
            for key, some in found.items():
                checkpoint = CapturedCheckpoint(key, (), tuple(some))
                directories[key] = append_checkpoint(writer, checkpoint, path)
            writer.commit(b"")
        capture = CaptureFile(held)
    capture.path = path
    return Run(
        path,
        FoundOutputs(()),
        {key: [] for key in directories},
        capture,
        CaptureIndex(CaptureHeader(NONE_GIVEN, 0, ()), directories),
        is_fingerprint=True,
    )


def _captured(
    writer: CaptureWriter,
    one: _core.GoldenVariable,
    labels: Mapping[VariableId, tuple[tuple[str, str], ...]],
) -> CapturedVariable:
    identity = golden_id(one)
    plain, fine = trees_of_golden(one)

    def packed(tree: _core.Tree | None, *, has_residues: bool) -> StoredTree | None:
        if tree is None:
            return None
        summaries = one.summaries
        if one.data and tree.parameters.kind != "exact":
            summaries = _core.summarize_chunks(tree.parameters, one.data)
        return _packed_tree(writer, tree, summaries, has_residues=has_residues)

    return CapturedVariable(
        identity,
        one.tree.parameters.dtype,
        tuple(one.shape),
        packed(plain, has_residues=False),
        packed(fine, has_residues=True),
        labels=labels.get(identity, ()),
    )


def _packed_tree(
    writer: CaptureWriter,
    tree: _core.Tree,
    summaries: NDArray[np.int64] | None,
    *,
    has_residues: bool,
) -> StoredTree:
    residues = None
    if has_residues:  # of an array of nothing none, and they lie there all the same
        residues = writer.append(b"" if tree.residues is None else tree.residues.tobytes())
    digests = writer.append(tree.digests.tobytes())
    return StoredTree(
        MadeWith.of(tree.parameters),
        tree.root,
        digests,
        residues,
        summaries=None if summaries is None else writer.append_packed(summaries.tobytes()),
    )


def merge_recording(run: Path, target: Path) -> int:
    """Writes all trees of a recorded run into a capture; the number of its checkpoints.

    Elements that were kept of suspect chunks stay behind. Raises what `refuse_parts` does, since a
    capture could not tell of it, UsageError for a file that already exists, WriteFailedError, and
    the errors of reading journals.
    """
    if target.exists():
        raise UsageError("already exists", file=target, remedy="give another name with -o")
    with RecordedCapture(run) as capture:
        capture.refuse_parts("compare the folder as it is")
        index = read_index(capture)
        with replaced_capture(target) as writer:
            directories: dict[CheckpointKey, Directory] = {}
            for key, directory in index.checkpoints.items():
                held = read_checkpoint(capture, directory)
                copied = tuple(_copied(one, capture, writer) for one in held.variables)
                checkpoint = CapturedCheckpoint(key, (), copied)
                directories[key] = append_checkpoint(writer, checkpoint, run)
            kept = appended(writer, snapshot_of_run(run), None)
            header = replace(index.header, snapshot=kept)
            writer.commit(encode_index(CaptureIndex(header, directories)))
    return len(directories)


def _copied(one: CapturedVariable, capture: CaptureFile, writer: CaptureWriter) -> CapturedVariable:
    def tree(stored: StoredTree | None) -> StoredTree | None:
        if stored is None:
            return None
        residues, summaries = stored.residues, stored.summaries
        return replace(
            stored,
            digests=writer.append(capture.section(stored.digests)),
            residues=None if residues is None else writer.append(capture.section(residues)),
            summaries=None
            if summaries is None
            else writer.append_packed(capture.summaries_section(summaries)),
        )

    return replace(one, plain=tree(one.plain), fine=tree(one.fine), relative=tree(one.relative))
