"""What a command found: its checks, what was reported beside them, and the verdict on all.

A result holds all that the renderers (terminal, JSON, HTML, JUnit, job summary) show, so none of
them computes anything. Of thousands of variables that do not match, a few keep all details.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from ciwrap.base.words import Word
from ciwrap.model.settings import VariableId
from ciwrap.model.variable_result import (
    DifferingElement,
    HistoryFacts,
    Number,
    VariableResult,
    Verdict,
    worst_of,
)

_FILLED = "fill values"


class Coverage(Struct, frozen=True):
    """Counts of what was compared and of what was not. Two of them add up. The names are in the
    result that it is made of.

    compared_variables: each checkpoint's counts; compared_names: how many variables that are, over
    all checkpoints. checkpointed: checks with iterations or ranks, where what is counted is arrays.

    compared_elements: of the compared variables, without those that are masked.
    not_comparable: variables that both sides hold, and that could not be compared. missing: on the
    golden side only. extra: on the new side only. ignored: what `ignore` names, on either side, and
    uncommon, which are of iterations that were not to be compared.
    left_out: what the golden side holds and the configuration left out; each of them is also
    counted under ignored or missing. let_go: how many of those no `ignore` names; they are gone
    from the new side while strict variables are off.
    masked_unknown: compared variables that have a mask of unknown extent. filled: compared
    variables that have fill values, which are not compared as numbers. unpaired_elements: of series
    of a text, at steps that one side alone has. excluded_files: what
    `exclude` names. attributes: checks of files whose attributes were not compared. by_statistics:
    checks of runs whose statistics were compared with an ensemble, none of whose values was
    compared. without_statistics: variables of such runs that have none: texts, booleans, and what
    is empty; each counts once, however many runs have it.
    """

    compared_variables: int = 0
    compared_elements: int = 0
    not_comparable: int = 0
    missing: int = 0
    extra: int = 0
    ignored: int = 0
    uncommon: int = 0
    left_out: int = 0
    let_go: int = 0
    masked_elements: int = 0
    masked_unknown: int = 0
    filled: int = 0
    excluded_files: int = 0
    attributes: int = 0
    by_statistics: int = 0
    compared_names: int = 0
    checkpointed: int = 0
    unpaired_elements: int = 0
    without_statistics: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*map(add, astuple(self), astuple(other)))

    @property
    def is_whole(self) -> bool:
        """Whether every number that there was on either side was compared."""
        lost = (self.not_comparable, self.missing, self.extra, self.ignored, self.left_out)
        hidden = (self.masked_elements, self.masked_unknown, self.filled, self.excluded_files)
        others = (self.by_statistics, self.unpaired_elements, self.without_statistics)
        return not any((*lost, *hidden, *others))

    @property
    def unit(self) -> str:
        """What is counted beside elements."""
        return "array" if self.checkpointed else "variable"

    @property
    def text(self) -> str:
        """One line: `compared 12 variables, 1,203 elements; not compared: 40 elements masked`."""
        parts = self.not_compared
        return f"{self.compared}; not compared: {', '.join(parts)}" if parts else self.compared

    @property
    def compared(self) -> str:
        """`compared 12 variables, 1,203 elements`, or `compared nothing`."""
        statistics = f"the statistics of {grouped_plural(self.by_statistics, 'check')}"
        if not self.compared_variables:
            return f"compared {statistics}, no values" if self.by_statistics else "compared nothing"
        variables = grouped_plural(self.compared_variables, "variable")
        if 0 < self.compared_names < self.compared_variables:
            variables = grouped_plural(self.compared_names, "variable")
            variables += f" in {self.compared_variables:,} arrays"
        values = f"compared {variables}, {grouped_plural(self.compared_elements, 'value')}"
        return f"{values}, and {statistics}" if self.by_statistics else values

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What was not compared, in words, a part for each reason."""
        one = self.unit
        parts = (
            (self.not_comparable, one, "not comparable"),
            (self.missing, one, "missing"),
            (self.extra, one, "extra"),
            (self.ignored - self.uncommon, one, "(ignore)"),
            (self.uncommon, one, "of iterations left out"),
            (self.without_statistics, one, "without statistics"),
            (self.masked_elements, "value", "masked"),
            (self.masked_unknown, one, "in part by a mask"),
            (self.filled, one, _FILLED),
            (self.unpaired_elements, "value", "of steps on one side only"),
            (self.excluded_files, "file", "(exclude)"),
        )
        said = [_counted(count, noun, why) for count, noun, why in parts if count]
        return (*said, "attributes") if self.attributes else tuple(said)


def coverage_of(check: CheckResult) -> Coverage:
    """What one check covers; the only place where it is counted."""
    variables = elements = masked = masked_variables = filled = unpaired = 0
    lost = []
    names = set()
    facts = check.ensemble
    if facts is not None:
        masked, filled = facts.masked_elements, facts.filled
    for one in check.variables:
        if one.verdict is Verdict.NOT_COMPARABLE:
            lost.append(one)
            continue
        variables += 1
        names.add(one.name)
        elements += one.element_count or 0
        masked += one.masked_count or 0
        filled += one.has_fill_values
        if one.series is not None:
            unpaired += sum(one.series.count) - 2 * (one.element_count or 0)
        masked_variables += one.is_mask_unknown
    one_sided = {*check.missing_variables, *check.extra_variables}
    left_out = set(check.left_out_variables)
    if check.missing_variables:
        # What is gone from the run and has no verdict of its own was left out, whoever says so.
        left_out |= set(check.missing_variables).difference(one.id for one in check.variables)
    lists = [check.missing_variables, check.extra_variables, check.ignored_variables]
    lists += [] if facts is None else [facts.without_statistics]
    named = [one for part in (*lists, check.left_out_variables) for one in part]
    places = [(one.iteration, one.rank) for one in check.variables]
    places += [(one.iteration, one.rank) for one in named]
    return Coverage(
        compared_variables=variables,
        compared_elements=elements - masked if facts is None else 0,
        not_comparable=sum(one.id not in one_sided for one in lost),
        missing=len(check.missing_variables),
        extra=len(check.extra_variables),
        ignored=len(check.ignored_variables),
        uncommon=check.uncommon,
        left_out=len(left_out),
        let_go=len(left_out.difference(check.ignored_variables)),
        masked_elements=masked,
        masked_unknown=masked_variables,
        filled=filled,
        excluded_files=check.excluded_files,
        attributes=int(check.attributes == "none"),
        by_statistics=int(check.verdict.is_statistical),
        compared_names=len(names),
        checkpointed=int(any(place != (None, None) for place in places)),
        unpaired_elements=unpaired,
        without_statistics=0 if facts is None else len(facts.without_statistics),
    )


def _counted(count: int, noun: str, why: str) -> str:
    counted = grouped_plural(count, noun)
    # Nobody counts the elements that hold one, and there may be none.
    return f"{why} of {counted}" if why == _FILLED else f"{counted} {why}"


def grouped_plural(count: int, noun: str) -> str:
    """`1 variable`, `2,000 variables`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def names_text(names: Sequence[str], most: int) -> str:
    """The names, at most so many of them: `a, b and 3 more`."""
    said = ", ".join(names[:most])
    return f"{said} and {len(names) - most:,} more" if len(names) > most else said


class DivergenceKind(Word):
    """Why a variable does not match. UNDECIDED: digests differ, and nobody can tell whether a
    number is beyond its bound. MISSING: only the golden side has it. EXTRA: only the new side has
    it. NOT_COMPARABLE: both have it, and it could not be compared.
    """

    DIFFER = "differ"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not_comparable"
    MISSING = "missing"
    EXTRA = "extra"

    @property
    def is_alarm(self) -> bool:
        """Whether it is about numbers that were compared."""
        return self in (DivergenceKind.DIFFER, DivergenceKind.UNDECIDED)


class Divergence(Struct, frozen=True):
    """A variable of one checkpoint that does not match, and why."""

    kind: DivergenceKind
    variable: VariableResult

    @property
    def element(self) -> DifferingElement | None:
        """The first element that differs; None where nothing differs or no values are known."""
        if self.kind is not DivergenceKind.DIFFER or not self.variable.first_differences:
            return None
        return self.variable.first_differences[0]


def earliest(check: CheckResult, found: Iterable[VariableResult]) -> Divergence | None:
    """The first by iteration, rank and name of some variables of a check, none of which matches;
    one without an iteration, only if no other has one.
    """
    first = min(found, key=lambda one: one.id.time_key, default=None)
    return None if first is None else Divergence(_kind_of(check, first), first)


def _kind_of(check: CheckResult, variable: VariableResult) -> DivergenceKind:
    if variable.verdict.is_alarm:
        return DivergenceKind(variable.verdict.value)
    if variable.id in check.missing_variables:
        return DivergenceKind.MISSING
    if variable.id in check.extra_variables:
        return DivergenceKind.EXTRA
    return DivergenceKind.NOT_COMPARABLE


class ProjectOptions(Struct, frozen=True):
    """What a command needs to find the same configuration and goldens; None for what it
    finds by itself.
    """

    config: str | None = None
    golden_dir: str | None = None

    def __str__(self) -> str:
        """As they are typed, each behind a space."""
        given = (("--config", self.config), ("--golden-dir", self.golden_dir))
        return "".join(f" {option} {_quoted(path)}" for option, path in given if path is not None)


def command_words(command: str, names: Sequence[str], options: str = "") -> str:
    """A command on names, quoted for a shell. options: text that is put as it is, each behind a
    space.
    """
    words = " ".join(map(_quoted, names))
    if any(name.startswith("-") for name in names):
        # Behind `--` nothing is an option.
        return f"{command}{options} -- {words}"
    return f"{command} {words}{options}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


class Shift(Struct, frozen=True):
    """How far the new runs' mean of one feature is from the members' mean, in standard deviations
    of the mean of so many members; infinite for a feature that no member varies.
    """

    feature: str
    deviations: Number


class EnsembleFacts(Struct, frozen=True):
    """Runs against an ensemble.

    members, runs: how many there are that differ from each other. features: how many numbers stand
    for each. rate: of honest runs that are called inconsistent. p: how often runs drawn from all of
    them lie as far out; None where they are too few, and more_members then says how many further
    ones it takes. shifts: of the features that moved, the largest first. without_statistics: what
    the new runs hold that is no numbers, or empty; nothing of it was compared. masked_elements: of
    all new runs; they have no part in the statistics. filled: variables with fill values, which
    have none either.
    """

    members: int
    runs: int
    features: int
    rate: float
    p: float | None = None
    more_members: int | None = None
    shifts: tuple[Shift, ...] = ()
    without_statistics: tuple[VariableId, ...] = ()
    masked_elements: int = 0
    filled: int = 0


# Types of fields are needed when the program runs: documents are checked against them.


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

    kind: what it is, a key of `ciwrap.snapshot.records.KINDS`, which are in the order of how often
    they change numbers. golden, run: what either side has. prove: the command that would show
    whether this changes the numbers, where there is one.
    """

    kind: str
    name: str
    golden: str
    run: str
    prove: str | None = None


class Used(Struct, frozen=True):
    """What a command used, with the processes it waited for, as the system counts it.

    cpu_seconds: of its own work and of the system's for it. voluntary_switches: how often it waited
    and left its processor; involuntary_switches: how often it had to. minor_faults, major_faults:
    pages that it touched first, and that came from a disk. peak_bytes: the memory of the largest of
    its processes; None where that is not known, since it is no more than what ciwrap held.
    """

    cpu_seconds: Number
    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    peak_bytes: int | None = None


class CommandOutcome(Struct, frozen=True):
    """What the configured command did.

    exit_code: negative for a signal, None if it was ended. output_tail: the end of what it printed.
    used: None where the system does not tell.
    """

    command: str
    working_dir: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    output_tail: str = ""
    used: Used | None = None

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

    match, undecided, differ, not_comparable: how many have which verdict. max_drift_share: the
    largest share of its bound that any of them used up, where known. coverage: of all variables,
    listed or not.
    """

    match: int
    undecided: int
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
    do not beyond the first 10,000. accept_options: what `ciwrap accept` needs beside the
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
    match; and for a verdict on values where statistics were compared with an ensemble, or the other
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
    8601. project: the name of the project's folder.

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
    project: str = ""

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


# Of up to so many variables that do not match, each says all that is known of it.
MOST_WHOLE = 1000


def brief(one: VariableResult) -> VariableResult:
    """The result without histograms, ranges and samples, and with one differing element."""
    return replace(
        one,
        first_differences=one.first_differences[:1],
        suspect_ranges=(),
        bound_share_histogram=None,
        drift_histogram=None,
        details=None,
    )


def with_brief_ones(results: Iterable[VariableResult]) -> list[VariableResult]:
    """The results, as `BriefResults` would leave them."""
    found = list(results)
    BriefResults(found).catch_up()
    return found


class BriefResults:
    """Keeps a growing list of results small: of more than `MOST_WHOLE` that do not match, all but
    the first and the worst of each name become brief, and of more names than half of that, those of
    the first names in the alphabet.

    Which ones these are does not depend on the order in which they come, nor on how often and
    over which parts of the list this is done. Results are only added at the end.
    """

    def __init__(self, results: list[VariableResult]) -> None:
        self._results = results
        self._seen = 0
        self._bad_count = 0
        self._whole: set[int] = set()  # places of results that do not match and say all
        self._best: dict[str, tuple[int, int]] = {}  # of each name, places of first and worst

    def catch_up(self) -> None:
        """Looks at what was added since the last call."""
        for at in range(self._seen, len(self._results)):
            one = self._results[at]
            if one.verdict is not Verdict.MATCH:
                self._bad_count += 1
                self._whole.add(at)
                first, worst = self._best.get(one.name, (at, at))
                self._best[one.name] = (self._earlier(first, at), self._worse(worst, at))
        self._seen = len(self._results)
        if self._bad_count <= MOST_WHOLE:
            return
        names = sorted(self._best)[: MOST_WHOLE // 2]
        kept = {at for name in names for at in self._best[name]}
        for at in self._whole - kept:
            self._results[at] = brief(self._results[at])
        self._whole &= kept

    def _earlier(self, one: int, other: int) -> int:
        return min(one, other, key=lambda at: self._results[at].id.sort_key)

    def _worse(self, one: int, other: int) -> int:
        worst = worst_of((self._results[one], self._results[other]))
        return one if worst is self._results[one] else other

    @property
    def whole_ones(self) -> set[VariableId] | None:
        """What does not match and says all; None if everything does."""
        if self._bad_count <= MOST_WHOLE:
            return None
        return {self._results[at].id for at in self._whole}
