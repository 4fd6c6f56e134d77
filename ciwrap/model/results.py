"""What a command found: its checks, what was told beside them, and the verdict on all.

A result holds all that the renderers (terminal, JSON, HTML, JUnit, job summary) show, so none of
them computes anything.
"""

from __future__ import annotations

from collections.abc import Mapping

# Types of fields are needed when the program runs: documents are checked against them.
from msgspec import Struct, field

from ciwrap.details import Number
from ciwrap.model.commands import ProjectOptions
from ciwrap.model.coverage import Coverage, coverage_of
from ciwrap.model.divergence import Divergence, earliest
from ciwrap.model.ensemble import EnsembleFacts
from ciwrap.model.rules import VariableId
from ciwrap.model.variable_result import VariableResult
from ciwrap.model.verdict import Verdict
from ciwrap.structs import Word
from ciwrap.timeline import HistoryFacts


class MessageLevel(Word):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Message(Struct, frozen=True):
    """Something to tell besides the variables.

    text: one line. slug: the kind of the error, its entry in docs/reference/errors.md.
    """

    level: MessageLevel
    text: str
    slug: str | None = None
    file: str | None = None
    variable: str | None = None


class EnvironmentDifference(Struct, frozen=True):
    """Something that differs between the environments of both sides; no cause of anything.

    kind: what it is, a key of `ciwrap.snapshot.kinds.KINDS`, which are in the order of how often
    they change numbers. golden, run: what either side has. prove: the command that would show
    whether this changes the numbers, where there is one.
    """

    kind: str
    name: str
    golden: str
    run: str
    prove: str | None = None


class CommandOutcome(Struct, frozen=True):
    """What the configured command did.

    exit_code: negative for a signal, None if it was ended. output_tail: the end of what it printed.
    """

    command: str
    working_dir: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    output_tail: str = ""

    @property
    def ending(self) -> str:
        """How it ended: `ended with exit code 4`, `ran out of time after 60 s`."""
        if self.timed_out:
            digits = ".0f" if self.seconds >= 10 else ".2g"
            return f"ran out of time after {self.seconds:{digits}} s"
        if self.exit_code is None:
            return "could not be started"
        if self.exit_code < 0:
            return f"was ended by signal {-self.exit_code}"
        return f"ended with exit code {self.exit_code}"


class Unlisted(Struct, frozen=True):
    """Variables that a document counts and does not list.

    match, suspect, differ, not_comparable: how many have which verdict. max_drift_share: the
    largest share of its bound that any of them used up, where known. coverage: of all variables,
    listed or not.
    """

    match: int
    suspect: int
    differ: int
    not_comparable: int
    coverage: Coverage
    max_drift_share: Number | None = None

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many have which verdict; every verdict is a key."""
        return {one: getattr(self, one.value) for one in Verdict.worst_first()[::-1]}


class CheckResult(Struct, frozen=True):
    """One check: a golden (or the first side) against what a run left (or the second side).

    source_path: the second side, where it is no run of the configuration. missing_variables: in the
    golden only. extra_variables: in the run only. golden_root, root: of all variables, in
    hexadecimal. engine: how files were read, "io_uring" or "pread"; None if by a reader of their
    format. backend: where trees were built, "serial" or "openmp" or another one. golden_bytes: size
    of the golden file. label: of merged results, which of them (a matrix leg, a shard).
    golden_environment: what the golden was made with. environment: of merged results, what this
    check ran with. environment_differences: what differs between both, the likeliest to change
    numbers first; object by object where both snapshots were at hand. test_id: pytest's id of the
    test that made the check. variant: the kind of machine that the golden is for; None for every
    one. history: of two runs with checkpoints. bounds_from: who asked for the bounds of two runs
    (`given`, `check NAME`, `A's capture`, `none given`). unlisted: variables that `--json-detail`
    leaves out. By default these are, of more than 1,000 variables, those that match, and those that
    do not beyond the first 10,000. accept_options: what `ciwrap accept` has to be told beside the
    name of the check.

    ignored_variables: all that `ignore` names, on either side, and what is of iterations that were
    not to be compared (`--common`, or a run that was ended); uncommon: how many of the latter.
    left_out_variables: those that the
    golden side holds and the configuration left out, by `ignore`, or because they are gone from the
    run while strict variables are off. excluded_files: how many files `exclude` took out.
    attributes: "none" where files have
    attributes and they were not compared. ensemble: where the golden is one; such a check has no
    variables.

    Raises ValueError if the verdict is a match, but nothing was compared or a variable does not
    match; and for a verdict on values where statistics were held against an ensemble, or the other
    way round.
    """

    name: str
    verdict: Verdict
    variables: tuple[VariableResult, ...] = ()
    golden_path: str | None = None
    source_path: str | None = None
    missing_variables: tuple[VariableId, ...] = ()
    extra_variables: tuple[VariableId, ...] = ()
    ignored_variables: tuple[VariableId, ...] = ()
    left_out_variables: tuple[VariableId, ...] = ()
    uncommon: int = 0
    excluded_files: int = 0
    attributes: str | None = None
    messages: tuple[Message, ...] = ()
    golden_root: str | None = None
    root: str | None = None
    engine: str | None = None
    backend: str | None = None
    seconds: float = 0.0
    bytes_read: int | None = None
    golden_bytes: int | None = None
    command: CommandOutcome | None = None
    label: str | None = None
    golden_environment: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_differences: tuple[EnvironmentDifference, ...] = ()
    test_id: str | None = None
    variant: str | None = None
    history: HistoryFacts | None = None
    bounds_from: str | None = None
    unlisted: Unlisted | None = None
    accept_options: ProjectOptions | None = None
    ensemble: EnsembleFacts | None = None

    def __post_init__(self) -> None:
        if self.verdict.is_statistical != (
            self.ensemble is not None and self.ensemble.p is not None
        ):
            raise ValueError(f"check {self.name}: {self.verdict} does not fit its ensemble")
        if self.verdict is not Verdict.MATCH:
            return
        verdicts = {variable.verdict for variable in self.variables}
        if self.unlisted is not None:
            verdicts |= {verdict for verdict, count in self.unlisted.counts.items() if count}
        if Verdict.worst(verdicts) is not Verdict.MATCH:
            raise ValueError(f"check {self.name}: a match although not every variable matches")

    @property
    def coverage(self) -> Coverage:
        """What the verdict rests on, and what was not compared."""
        return coverage_of(self) if self.unlisted is None else self.unlisted.coverage

    @property
    def variable_count(self) -> int:
        """How many variables there are, listed or not."""
        unlisted = 0 if self.unlisted is None else sum(self.unlisted.counts.values())
        return len(self.variables) + unlisted

    @property
    def is_history(self) -> bool:
        """Whether there is more than one iteration, so that something can be the first."""
        if self.unlisted is not None and self.history is not None:
            return True
        return len({variable.iteration for variable in self.variables} - {None}) > 1

    @property
    def first_divergence(self) -> Divergence | None:
        """The earliest variable that does not match, of any kind.

        Variables of one side that the configuration lets go have no verdict, and are none.
        """
        return earliest(self, (one for one in self.variables if one.verdict is not Verdict.MATCH))

    @property
    def first_numeric_divergence(self) -> Divergence | None:
        """The earliest variable whose numbers differ."""
        return earliest(self, (one for one in self.variables if one.verdict is Verdict.DIFFER))

    @property
    def first_names(self) -> tuple[str, ...]:
        """All variables that do not match in the iteration of the first divergence, sorted."""
        first = self.first_divergence
        if first is None:
            return ()
        iteration = first.variable.iteration
        bad = (one for one in self.variables if one.verdict is not Verdict.MATCH)
        return tuple(sorted({one.name for one in bad if one.iteration == iteration}))

    @property
    def max_drift_share(self) -> float | None:
        """The largest share of its bound that any variable used up at most, where known; where
        chunks are suspect, that of the others.
        """
        known = [one.used_interval for one in self.variables]
        shares = [one[1] for one in known if one is not None]
        if self.unlisted is not None and self.unlisted.max_drift_share is not None:
            shares.append(self.unlisted.max_drift_share)
        return max(shares, default=None)


class RunResult(Struct, frozen=True):
    """What check, run and compare found; and any command that failed, its error in `messages`.

    kind: the command; also accept, show and others that failed before they came to a document of
    their own. environment: machine, versions, thread settings, git commit. started_at: UTC, ISO
    8601.

    Raises ValueError for a verdict that is better than the worst of its checks.
    """

    verdict: Verdict
    checks: tuple[CheckResult, ...] = ()
    kind: str = "check"
    messages: tuple[Message, ...] = ()
    command: CommandOutcome | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    ciwrap_version: str = ""
    started_at: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        worst = Verdict.worst(check.verdict for check in self.checks)
        if self.verdict.severity < worst.severity:
            raise ValueError(f"a verdict of {self.verdict} over checks whose worst is {worst}")

    @property
    def all_errors(self) -> list[str]:
        """The texts of all errors, those of no check first."""
        every = (self.messages, *(check.messages for check in self.checks))
        return [one.text for some in every for one in some if one.level is MessageLevel.ERROR]

    @property
    def coverage(self) -> Coverage:
        """What all checks together compared, and what they did not."""
        return sum((check.coverage for check in self.checks), Coverage())

    @property
    def verdict_counts(self) -> dict[Verdict, int]:
        """How many variables have which verdict, over all checks; every one they can have is a
        key.
        """
        counts = dict.fromkeys(Verdict.worst_first()[::-1], 0)
        for check in self.checks:
            for variable in check.variables:
                counts[variable.verdict] += 1
            for verdict, count in (check.unlisted.counts if check.unlisted else {}).items():
                counts[verdict] += count
        return counts
