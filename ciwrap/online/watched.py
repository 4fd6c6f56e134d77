"""What the journals of a run say of it while they grow: how far each variable is from its bound."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING

from ciwrap.captures.index import parameters_of
from ciwrap.captures.journal import JournalFollower, JournalReader
from ciwrap.captures.journals import journal_paths
from ciwrap.statistics.slopes import Slope, slope_of
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.captures.recorded import RecordedCheckpoint, RecordedState

# A slope that chance alone makes less often than this is told.
_RARE = 0.01
# Of so many iterations at the end: what goes on now counts, and the couples of all are too many.
_MOST_POINTS = 200
# A journal that has not grown for so long is asked whether its program still lives.
_SILENT_SECONDS = 2.0


class NoMatch(Struct, frozen=True):
    """Where a variable first did not match: so many of its chunks."""

    iteration: int
    rank: int
    suspect_chunks: int
    chunks: int


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
    compared: int = 0
    not_compared: int = 0
    reason: str = ""  # why it was first not compared

    def add(self, iteration: int, rank: int, state: RecordedState) -> None:
        found = state.compared
        why = state.reason if found is None else found.reason
        if found is None or why is not None:
            self.not_compared += 1
            self.reason = self.reason or why or "the run was not compared with another one"
            return
        self.compared += 1
        if found.max_share is not None:
            self.shares[iteration] = max(self.shares.get(iteration, 0.0), found.max_share)
        if found.suspect_chunks:
            here = NoMatch(iteration, rank, found.suspect_chunks, found.chunks)
            first = self.first_no_match
            if first is None or (iteration, rank) < (first.iteration, first.rank):
                self.first_no_match = here

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
        if self.reader.is_closed:
            return True
        with self.reader.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return False
            return True
