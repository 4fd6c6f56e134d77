"""What is found: verdicts on variables, checks and whole runs.

A result holds all that the renderers (terminal, JSON, HTML, JUnit, job summary) show, so none of
them computes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode
from ciwrap.model.rules import VariableId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ciwrap.details import ChunkMap, IndexBox, Pattern, Picture, ShareMap, TreeLevel
    from ciwrap.model.rules import ErrorBound, Evidence
    from ciwrap.timeline import HistoryFacts


class Verdict(str, Enum):
    """The three result words."""

    MATCH = "match"
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"

    def __str__(self) -> str:
        return self.value

    @property
    def words(self) -> str:
        """For people: `match`, `differ`, `not comparable`."""
        return self.value.replace("_", " ")

    @property
    def exit_code(self) -> ExitCode:
        return _EXIT_CODES[self]

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """not_comparable before differ before match; of nothing at all: not_comparable."""
        return max(verdicts, key=_SEVERITY.index, default=Verdict.NOT_COMPARABLE)


_SEVERITY = (Verdict.MATCH, Verdict.DIFFER, Verdict.NOT_COMPARABLE)
_EXIT_CODES = {
    Verdict.MATCH: ExitCode.MATCH,
    Verdict.DIFFER: ExitCode.DIFFER,
    Verdict.NOT_COMPARABLE: ExitCode.NOT_COMPARABLE,
}


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Neighbouring suspect chunks, as the elements they hold: first and last, both included.

    The indices are those of the elements in the variable's shape (C order), () for a 0-d variable.
    """

    first_element: int
    last_element: int
    first_index: tuple[int, ...] = ()
    last_index: tuple[int, ...] = ()
    chunk_count: int = 1

    @property
    def element_count(self) -> int:
        return self.last_element - self.first_element + 1


@dataclass(frozen=True, slots=True)
class DifferingElement:
    """One element beyond its bound. Values are texts that read back exactly (`0.1`, `nan`,
    `b'ab'`).
    """

    index: tuple[int, ...]
    golden: str
    new: str
    abs_difference: float | None = None  # None where it has no meaning (NaN, bytes)
    bound_share: float | None = None  # |v - g| / bound; inf for a bound of 0
    rel_difference: float | None = None  # |v - g| / |g|
    ulps: int | None = None  # floats of the dtype between the two


@dataclass(frozen=True, slots=True)
class Details:
    """What a report draws of one variable; kept for the variables that matter most, and bounded.

    worst_elements: the largest differences, worst first. share_maps: where the differing elements
    (or suspect chunks) are, seen along the axes. picture: values of both sides, where both are at
    hand. tree_levels: the root first.
    """

    chunk_map: ChunkMap | None = None
    tree_levels: tuple[TreeLevel, ...] = ()
    worst_elements: tuple[DifferingElement, ...] = ()
    share_maps: tuple[ShareMap, ...] = ()
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class VariableResult:
    """The verdict on one variable, and what it rests on. None means: not known on this evidence.

    Counts are of elements. If only suspect chunks are known, differing_count is None and the truth
    lies from differing_count_at_least to differing_count_at_most. max_drift_share is the share of
    the bound used up over the matching chunks, to within one fine step of the residues.
    bound_share_histogram has the 34 classes of the core's `Comparison.histogram`; drift_histogram
    has the elements that drifted by 0, 1, ... h fine steps.

    Raises ValueError for a match that is none: a match has 0 differing elements, and what is not
    comparable has a reason.
    """

    name: str
    verdict: Verdict
    iteration: int | None = None
    rank: int | None = None
    evidence: Evidence | None = None
    reason: str | None = None
    dtype: str | None = None  # of the new run; golden_dtype only where it is another
    golden_dtype: str | None = None
    shape: tuple[int, ...] | None = None
    golden_shape: tuple[int, ...] | None = None
    bound: ErrorBound | None = None
    mask: str | None = None
    aligned_by: str | None = None  # the id variable that ordered the rows
    period: tuple[float, ...] | None = None
    source_path: str | None = None
    golden_root: str | None = None  # hexadecimal
    root: str | None = None
    byte_count: int | None = None

    element_count: int | None = None
    differing_count: int | None = None
    differing_count_at_least: int | None = None
    differing_count_at_most: int | None = None
    first_index: tuple[int, ...] | None = None
    first_differences: tuple[DifferingElement, ...] = ()

    chunk_count: int | None = None
    suspect_chunks: int | None = None
    suspect_ranges: tuple[ChunkRange, ...] = ()  # the first few
    suspect_range_count: int | None = None  # all of them

    max_abs_difference: float | None = None
    max_abs_index: tuple[int, ...] | None = None
    mean_abs_difference: float | None = None
    max_rel_difference: float | None = None
    max_rel_index: tuple[int, ...] | None = None
    mean_rel_difference: float | None = None
    max_bound_share: float | None = None
    bound_share_histogram: tuple[int, ...] | None = None
    nan_mismatch_count: int | None = None
    inf_mismatch_count: int | None = None
    missing_mismatch_count: int | None = None

    residue_levels: int | None = None
    # drift up to this share of the bound never raises an alarm
    guaranteed_share: float | None = None
    max_drift_share: float | None = None
    drift_histogram: tuple[int, ...] | None = None

    differing_box: IndexBox | None = None
    pattern: Pattern | None = None
    pattern_value: float | None = None  # of a constant offset or factor
    details: Details | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.MATCH and self.differing_count != 0:
            raise ValueError(f"{self.id}: a match with {self.differing_count} differing elements")
        if self.verdict is Verdict.NOT_COMPARABLE and not self.reason:
            raise ValueError(f"{self.id}: not comparable, and no reason given")

    @property
    def id(self) -> VariableId:
        return VariableId(self.name, self.iteration, self.rank)


class MessageLevel(str, Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell besides the variables. slug: its entry in docs/reference/errors.md."""

    level: MessageLevel
    text: str
    slug: str | None = None
    file: str | None = None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What the configured command did. exit_code: negative for a signal, None if it was ended."""

    command: str
    working_dir: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    output_tail: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: a golden (or side A) against what a run left (or side B).

    Raises ValueError for a match that is none: nothing compared, or a variable that does not match.
    """

    name: str
    verdict: Verdict
    variables: tuple[VariableResult, ...] = ()
    golden_path: str | None = None
    source_path: str | None = None
    missing_variables: tuple[VariableId, ...] = ()  # in the golden only
    extra_variables: tuple[VariableId, ...] = ()  # in the run only
    ignored_variables: tuple[VariableId, ...] = ()
    messages: tuple[Message, ...] = ()
    golden_root: str | None = None
    root: str | None = None
    engine: str | None = None  # how files were read: "io_uring" or "pread"
    backend: str | None = None  # where trees were built: "serial", "openmp", ...
    seconds: float = 0.0
    bytes_read: int | None = None
    golden_bytes: int | None = None
    command: CommandOutcome | None = None
    label: str | None = None  # of merged results: which of them (a matrix leg, a shard)
    # What the golden was made with, and, of merged results, what this check ran with.
    golden_environment: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    test_id: str | None = None  # pytest's id of the test that made the check
    variant: str | None = None  # the kind of machine that the golden is for; None: every one
    history: HistoryFacts | None = None  # of two runs with checkpoints

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.MATCH:
            return
        if Verdict.worst(variable.verdict for variable in self.variables) is not Verdict.MATCH:
            raise ValueError(f"check {self.name}: a match although not every variable matches")

    @property
    def first_divergence(self) -> VariableResult | None:
        """The earliest variable that does not match, in the order of iteration, rank and name."""
        others = [v for v in self.variables if v.verdict is not Verdict.MATCH]
        return min(others, key=lambda variable: variable.id.sort_key, default=None)

    @property
    def max_drift_share(self) -> float | None:
        """The largest share of its bound that any variable used up, where known."""
        shares = [v.max_drift_share for v in self.variables if v.max_drift_share is not None]
        shares += [v.max_bound_share for v in self.variables if v.max_bound_share is not None]
        return max(shares, default=None)


@dataclass(frozen=True, slots=True)
class RunResult:
    """All checks of one command. environment is what the report shows of machine and versions.

    Raises ValueError for a verdict that is better than the worst of its checks.
    """

    verdict: Verdict
    checks: tuple[CheckResult, ...] = ()
    kind: str = "check"  # the command: "check", "compare", "run", ...
    messages: tuple[Message, ...] = ()
    command: CommandOutcome | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    ciwrap_version: str = ""
    started_at: str = ""  # ISO 8601, UTC
    seconds: float = 0.0

    def __post_init__(self) -> None:
        worst = Verdict.worst(check.verdict for check in self.checks)
        if _SEVERITY.index(self.verdict) < _SEVERITY.index(worst):
            raise ValueError(f"a verdict of {self.verdict} over checks whose worst is {worst}")

    @property
    def exit_code(self) -> ExitCode:
        return self.verdict.exit_code

    @property
    def verdict_counts(self) -> dict[Verdict, int]:
        """How many variables have which verdict, over all checks; every verdict is a key."""
        counts = dict.fromkeys(Verdict, 0)
        for check in self.checks:
            for variable in check.variables:
                counts[variable.verdict] += 1
        return counts
