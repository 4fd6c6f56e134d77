"""Compares a program with another run or a golden while it runs, and watches how far it is.

The recording library reads journals alone. Captures and goldens are turned into journals of their
trees with residues before the program starts; a recorded run is one already, and may still grow.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct, field

from ciwrap.base.errors import NotComparableError, OutputMissingError
from ciwrap.base.files import writing
from ciwrap.check.two_sides import HistoryOptions
from ciwrap.formats.catalog import Rules
from ciwrap.golden.places import BINARY_SUFFIX, MANIFEST_SUFFIX
from ciwrap.golden.store import read_golden_file
from ciwrap.golden.trees import Resources
from ciwrap.model import CheckResult, VariableId
from ciwrap.project.outputs import is_recording, journal_paths
from ciwrap.recording.journal import (
    FINE,
    PLAIN,
    JournalFollower,
    JournalReader,
    JournalWriter,
    RecordedCheckpoint,
    RecordedState,
)
from ciwrap.recording.recorded_run import (
    RecordedCapture,
    capture_of,
    golden_run,
    open_capture,
    refuse_other_data,
)
from ciwrap.report.text import (
    at_most_text,
    percent_text,
    plural,
    rounded_down,
    safe_name,
    share_text,
)
from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.capture_index import (
    IGNORED,
    CaptureIndex,
    MadeWith,
    StoredTree,
    parameters_of,
    read_checkpoint,
    read_index,
)
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.sides import Run, open_fingerprint
from ciwrap.statistics.change_points import Slope, slope_of


class HeldTrees(Struct, frozen=True):
    """A variable's trees, on their way into a journal: kind, digests and residues, summaries."""

    identity: VariableId
    made_with: MadeWith
    shape: tuple[int, ...]
    trees: tuple[tuple[int, bytes, bytes | None], ...]


class Reference(Struct, frozen=True):
    """A run to hold another one against. named: as the user calls it. journals: the folder that the
    library reads.
    """

    named: Path
    journals: Path

    def open(self) -> Run:
        """As one side of a comparison. Raises the errors of `open_fingerprint`."""
        return open_fingerprint(self.named, self.journals, RecordedCapture)


@contextlib.contextmanager
def prepared(path: Path, work: Path) -> Iterator[Reference]:
    """A golden, a capture or a recorded run, in the form that the library reads.

    work: a folder to be made, which is removed in the end. Raises OutputMissingError if there is
    none of these, NotComparableError if nothing of it can be compared, or if the capture of a
    run with data no longer tells of these, and the errors of reading it.
    """
    capture = capture_of(path) if path.exists() else None
    if capture is not None and is_recording(capture):
        yield _recorded(path, capture)
        return
    if capture is not None:
        refuse_other_data(path, capture)
    golden = None if capture is not None else golden_file_of(path)
    if capture is None and golden is None:
        raise OutputMissingError(
            "is not a golden, a capture or a recorded run",
            file=path,
            remedy="record that run first, with --residues",
        )
    shutil.rmtree(work, ignore_errors=True)
    try:
        held = _of_golden(golden) if golden is not None else _of_capture(capture or path)
        _write_journals(path, held, work)
        yield Reference(path, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _recorded(path: Path, run: Path) -> Reference:
    """Raises NotComparableError if nothing of its first checkpoint can be compared, or if it has
    ended and lacks journals.
    """
    _refuse_missing(path, journal_paths(run))
    first = next(JournalReader(journal_paths(run)[0]).checkpoints(), None)
    if first is not None and not any(
        FINE in one.trees or (PLAIN in one.trees and _is_exact(one.variable.made_with))
        for one in first.states
    ):
        raise _without_residues(path)
    return Reference(path, run)


def _refuse_missing(path: Path, journals: Sequence[Path]) -> None:
    """Raises NotComparableError for a run that has ended without the journals of some processes,
    which those of the same ranks would wait for.
    """
    head = JournalReader(journals[0])
    head.read_head()
    count = head.ranks - len(journals)
    if count > 0 and not any(_may_grow(one) for one in journals):
        raise NotComparableError(
            f"has ended, and lacks the journals of {count} of its {head.ranks} processes",
            file=path,
            remedy="record that run again",
        )


def _is_exact(made: MadeWith) -> bool:
    return parameters_of(made).kind == "exact"


def _without_residues(path: Path) -> NotComparableError:
    return NotComparableError(
        "has no residues, so no run can be compared with it while it runs",
        file=path,
        remedy="record or capture that run with --residues, or accept it with `evidence: residues`",
    )


def golden_file_of(path: Path) -> Path | None:
    """The file of a golden that is named by itself, by its manifest or without a suffix."""
    names = [path, path.with_name(path.name + BINARY_SUFFIX)] if path.name else []
    if path.name.endswith(MANIFEST_SUFFIX):
        names.append(path.with_name(path.name.removesuffix(MANIFEST_SUFFIX) + BINARY_SUFFIX))
    return next((one for one in names if one.name.endswith(BINARY_SUFFIX) and one.is_file()), None)


def _of_capture(path: Path) -> Iterator[HeldTrees]:
    with open_capture(path) as capture:
        yield from _held_trees(capture, read_index(capture))


def _of_golden(path: Path) -> Iterator[HeldTrees]:
    side = golden_run(path, read_golden_file(path)[0])
    assert side.capture is not None
    assert side.index is not None
    with side.capture:
        yield from _held_trees(side.capture, side.index)


def _held_trees(capture: CaptureFile, index: CaptureIndex) -> Iterator[HeldTrees]:
    for directory in index.checkpoints.values():
        for one in read_checkpoint(capture, directory).variables:
            best = one.fine or one.plain
            if best is None and one.reason != IGNORED:
                raise NotComparableError(
                    f"has no tree of it, so no run can be compared with it: {one.reason}",
                    file=capture.path,
                    variable=one.identity.text,
                    remedy="capture that run with it under --ignore",
                )
            if best is None:
                continue
            bodies = tuple(
                (kind, _body(capture, tree), _summaries(capture, tree))
                for kind, tree in ((PLAIN, one.plain), (FINE, one.fine))
                if tree is not None
            )
            yield HeldTrees(one.identity, best.made_with, one.shape, bodies)


def _body(capture: CaptureFile, tree: StoredTree) -> bytes:
    residues = b"" if tree.residues is None else capture.section(tree.residues)
    return capture.section(tree.digests) + residues


def _summaries(capture: CaptureFile, tree: StoredTree) -> bytes | None:
    return None if tree.summaries is None else capture.summaries_section(tree.summaries)


def _write_journals(path: Path, held: Iterable[HeldTrees], target: Path) -> None:
    """Raises NotComparableError if nothing of it can be compared, WriteFailedError."""
    by_rank: dict[int, list[HeldTrees]] = {}
    for one in held:
        if one.identity.iteration is None:
            raise NotComparableError(
                "says no iterations, by which a running program is compared with it",
                file=path,
                variable=one.identity.text,
            )
        by_rank.setdefault(one.identity.rank or 0, []).append(one)
    fits = (
        any(kind == FINE for kind, _, _ in one.trees) or _is_exact(one.made_with)
        for some in by_rank.values()
        for one in some
    )
    if not any(fits):
        raise _without_residues(path)
    for rank in range(max(by_rank) + 1):
        where = target / f"{rank // 1000:03d}" / f"rank-{rank:06d}.cwr"
        with JournalWriter(
            where, rank, max(by_rank) + 1, program=path.name, made_by="reference"
        ) as writer:
            _write_rank(writer, by_rank.get(rank, []))
            writer.end()


def _write_rank(writer: JournalWriter, held: Iterable[HeldTrees]) -> None:
    places: dict[tuple[int, str], list[tuple[str, HeldTrees]]] = {}
    for one in held:
        name, _, point = one.identity.name.rpartition("@")
        if not (name and point):  # an '@' of the name's own
            name, point = one.identity.name, ""
        places.setdefault((one.identity.iteration or 0, point), []).append((name, one))
    for (iteration, point), some in sorted(places.items()):
        for name, one in some:
            writer.tree(iteration, point, (name, one.made_with), one.shape, one.trees)
        writer.complete(iteration, point)


def judge_recorded(
    reference: Reference,
    run: Path,
    rules: Rules,
    *,
    is_common: bool,
    resources: Resources,
) -> CheckResult:
    """Compares what all processes have recorded with the reference.

    The library stops a program as soon as one process finds a chunk that does not match; what that
    means, and what diverged first, is told here, once all have told. is_common: as in
    `HistoryOptions`. Raises UsageError, and the errors of reading.
    """
    with (
        closing(reference.open()) as ours,
        closing(open_fingerprint(run, run, RecordedCapture)) as theirs,
    ):
        return compare_histories(
            f"{reference.named} : {run}",
            ours,
            theirs,
            rules,
            HistoryOptions(detail_bytes=0, is_common=is_common),
            golden_path=str(reference.named),
            source_path=str(run),
            resources=resources,
        )


_LOOK_SECONDS = 0.25
# Launchers that end the others do so within a second.
_GRACE_SECONDS = 10.0


@contextlib.contextmanager
def set_after_end(mark: Path) -> Iterator[threading.Event]:
    """An event that is set some seconds after a process was ended for what does not match, of which
    the file `mark` tells: what is left of the program then waits for that process in vain.

    The file is deleted before and after. Raises WriteFailedError.
    """
    is_over, is_set = threading.Event(), threading.Event()

    def look() -> None:
        while not mark.exists():
            if is_over.wait(_LOOK_SECONDS):
                return
        if not is_over.wait(_GRACE_SECONDS):
            is_set.set()

    with writing(mark, "could not be deleted"):
        mark.unlink(missing_ok=True)  # of a command that was killed
    thread = threading.Thread(target=look, name="ciwrap-ended-mark", daemon=True)
    thread.start()
    try:
        yield is_set
    finally:
        is_over.set()
        thread.join()
        with writing(mark, "could not be deleted"):
            mark.unlink(missing_ok=True)


# A slope that chance alone makes less often than this is told.
_RARE = 0.01
# Of so many iterations at the end: what goes on now counts, and the couples of all are too many.
_MOST_POINTS = 200
# A journal that has not grown for so long is asked whether its program still lives.
_SILENT_SECONDS = 2.0


# Why nothing of a run was compared that was recorded by itself.
ALONE = "the run was not compared with another one"


class NoMatch(Struct, frozen=True):
    """Where a variable first did not match, or surely differed: so many of its chunks.

    least_share: of the bound, by which a value moved; None where no distance is sure.
    """

    iteration: int
    rank: int
    suspect_chunks: int
    chunks: int
    least_share: float | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.iteration, self.rank


def _earlier(one: NoMatch | None, other: NoMatch) -> NoMatch:
    return other if one is None or other.place < one.place else one


class Rise(Struct, frozen=True):
    """A share of the bound that goes up: by how much an iteration, and the iteration at which it
    would reach the bound.
    """

    per_iteration: float
    reaches_at: int


class WatchedVariable(Struct):
    """A variable at one point, over all ranks. shares: of its bound by iteration, the largest that
    a value of a matching chunk moved, to within `step`; none where equality is asked for.
    """

    name: str
    step: float | None
    shares: dict[int, float] = field(default_factory=dict)
    first_no_match: NoMatch | None = None
    first_difference: NoMatch | None = None  # what is sure to be beyond the bound
    compared: int = 0
    not_compared: int = 0
    reason: str = ""  # why it was first not compared

    def add(self, iteration: int, rank: int, state: RecordedState) -> None:
        found = state.compared
        why = state.reason if found is None else found.reason
        if found is None or why is not None:
            self.not_compared += 1
            self.reason = self.reason or why or ALONE
            return
        self.compared += 1
        if found.max_share is not None:
            self.shares[iteration] = max(self.shares.get(iteration, 0.0), found.max_share)
        if found.suspect_chunks:
            here = NoMatch(iteration, rank, found.suspect_chunks, found.chunks, found.least_share)
            self.first_no_match = _earlier(self.first_no_match, here)
            if found.proven_chunks:
                self.first_difference = _earlier(self.first_difference, here)

    @property
    def latest(self) -> list[tuple[int, float]]:
        """Iterations and shares, of the last ones."""
        return sorted(self.shares.items())[-_MOST_POINTS:]

    def rise(self) -> Rise | None:
        """The line through the latest shares, if they go up; Raises NotAvailableError without
        SciPy.
        """
        points = self.latest
        slope: Slope | None = slope_of([share for _, share in points])
        if slope is None or slope.p > _RARE or slope.per_step <= 0:
            return None
        steps = slope.steps_until(1.0)
        if steps is None:
            return None
        spacing = (points[-1][0] - points[0][0]) / (len(points) - 1)
        return Rise(slope.per_step / spacing, points[-1][0] + round(steps * spacing))


class WatchedRun:
    """A recorded run, read on with every `look`. Raises the errors of `JournalReader`.

    variables: in the order in which they were recorded first. last_iteration: None before the
    first checkpoint. has_news: whether the last look found any.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._journals: dict[Path, _Journal] = {}
        self.variables: dict[str, WatchedVariable] = {}
        self.last_iteration: int | None = None
        self.checkpoints = 0
        self.has_news = False

    def look(self) -> None:
        """Takes in what has been recorded since."""
        self.has_news = False
        for path in journal_paths(self._run):
            if path not in self._journals and path.stat().st_size:
                self._journals[path] = _Journal(JournalReader(path))
        for journal in self._journals.values():
            for checkpoint in journal.follower.new_checkpoints():
                self._add(journal.reader.rank, checkpoint)
                journal.has_grown()
                self.has_news = True

    def _add(self, rank: int, checkpoint: RecordedCheckpoint) -> None:
        self.checkpoints += 1
        self.last_iteration = max(self.last_iteration or 0, checkpoint.iteration)
        for state in checkpoint.states:
            name = state.variable.name
            name += f"@{checkpoint.point}" if checkpoint.point else ""
            if name not in self.variables:
                parameters = parameters_of(state.variable.made_with)
                half = (parameters.residue_levels - 1) // 2
                self.variables[name] = WatchedVariable(name, 1 / (half + 1) if half else None)
            self.variables[name].add(checkpoint.iteration, rank, state)

    @property
    def has_reference(self) -> bool:
        """Whether any of it was to be compared with another run."""
        return any(one.compared or one.reason != ALONE for one in self.variables.values())

    @property
    def ranks(self) -> int:
        """How many processes the run has."""
        return max((one.reader.ranks for one in self._journals.values()), default=0)

    @property
    def closed(self) -> int:
        """How many of them have ended their journals."""
        return sum(one.reader.is_closed for one in self._journals.values())

    @property
    def errors(self) -> int:
        """How many things could not be recorded."""
        return sum(len(one.reader.errors) for one in self._journals.values())

    def has_ended(self) -> bool:
        """Whether no process will record any more: all have ended their journals, or are dead."""
        if not self._journals:
            return False
        if self.closed == self.ranks:
            return True
        return all(one.has_ended() for one in self._journals.values())


class _Journal:
    def __init__(self, reader: JournalReader) -> None:
        self.reader = reader
        self.follower = JournalFollower(reader)
        self.seen_at = 0.0
        self.has_grown()

    def has_grown(self) -> None:
        """Notes when: a journal that was left long ago is not beginning."""
        ago = max(0.0, time.time() - self.reader.path.stat().st_mtime)
        self.seen_at = time.monotonic() - ago

    def has_ended(self) -> bool:
        """A program that records holds a lock; not asked while it may just be beginning."""
        if time.monotonic() - self.seen_at < _SILENT_SECONDS:
            return False
        return self.reader.is_closed or not _is_locked(self.reader.path)


def _is_locked(path: Path) -> bool:
    """Whether a program records there: it holds a lock."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def _may_grow(path: Path) -> bool:
    """Whether a program records there, or has just begun or ended."""
    return time.time() - path.stat().st_mtime < _SILENT_SECONDS or _is_locked(path)


_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_DIGITS = "0123456789"
_MOST_BARS = 24
_MOST_NAME = 28


def watch_lines(run: WatchedRun, *, has_ended: bool, has_bars: bool) -> Iterator[str]:
    """One line of the run, and one for each variable.

    has_bars: whether bars can be shown; else tenths of the bound are digits.
    """
    yield _run_line(run, has_ended=has_ended)
    if run.variables and not run.has_reference:
        yield "  nothing is compared: record the run with --against, or use ciwrap compare"
        return
    width = min(_MOST_NAME, max((len(safe_name(name)) for name in run.variables), default=0))
    for one in run.variables.values():
        name = safe_name(one.name, _MOST_NAME)
        yield f"  {name:<{width}}  {_variable_words(one, has_bars=has_bars)}"


def _run_line(run: WatchedRun, *, has_ended: bool) -> str:
    if run.last_iteration is None:
        return "nothing recorded yet"
    state = "still running"
    if has_ended:
        killed = run.ranks - run.closed
        state = "ended" if not killed else f"ended; {killed} of {run.ranks} without an end"
    errors = f"; {plural(run.errors, 'error')} while recording" if run.errors else ""
    ranks = f"{run.ranks} process{'' if run.ranks == 1 else 'es'}"
    checkpoints = plural(run.checkpoints, "checkpoint")
    return f"iteration {run.last_iteration}, {ranks}, {checkpoints} ({state}){errors}"


def _variable_words(one: WatchedVariable, *, has_bars: bool) -> str:
    parts = []
    if one.shares:
        parts.append(_share_words(one, has_bars=has_bars))
    if one.first_no_match is not None:
        if one.first_no_match != one.first_difference:
            parts.append(f"does not match {_since(one.first_no_match)}")
        if one.first_difference is not None:
            parts.append(f"differs {_since(one.first_difference)}")
    elif one.compared and not one.shares:
        parts.append("equal")
    if one.not_compared:
        times = plural(one.not_compared, "time")
        parts.append(f"not compared {times}: {safe_name(one.reason)}")
    return "; ".join(parts)


def _since(first: NoMatch) -> str:
    chunks = f"{first.suspect_chunks} of {plural(first.chunks, 'block')}"
    words = f"since iteration {first.iteration} (rank {first.rank}, {chunks})"
    if first.least_share is None:
        return words
    return f"{words}, by at least {share_text(rounded_down(first.least_share))}"


def _share_words(one: WatchedVariable, *, has_bars: bool) -> str:
    latest = one.latest
    share = latest[-1][1]
    words = f"{_bars([share for _, share in latest[-_MOST_BARS:]], has_bars)}  "
    # The upper end of what residues leave open.
    words += f"{at_most_text(min(1.0, share + (one.step or 0.0)))} of the bound"
    rise = one.rise()
    if rise is None or one.first_no_match is not None:
        return words
    return (
        f"{words}; grows by {percent_text(rise.per_iteration)} an iteration: reaches the bound"
        f" near iteration {rise.reaches_at} if it goes on so"
    )


def _bars(shares: list[float], has_bars: bool) -> str:
    letters = _BARS if has_bars else _DIGITS
    return "".join(letters[min(len(letters) - 1, int(len(letters) * share))] for share in shares)
