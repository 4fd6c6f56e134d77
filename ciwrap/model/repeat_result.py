"""What several runs of one command came to: which variables vary, how, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ciwrap.base.errors import ExitCode
from ciwrap.base.words import Word
from ciwrap.model.results import Message, MessageLevel, Used
from ciwrap.model.settings import ErrorBound
from ciwrap.model.variable_result import Number

# Types of fields are needed when the program runs: documents are checked against them.


class Behaviour(Word):
    """What a variable does from run to run.

    EQUAL: all runs are equal. NOISE: they differ, and differences do not grow exponentially over
    the iterations. GROWING: they do, as in chaotic codes. UNRELATED: from the first checkpoint that
    varies on, runs differ by a tenth of what the values themselves spread or more, as with a random
    seed left open.
    NOT_COMPARABLE: some run has another shape or dtype, or NaN elsewhere, or lacks it.
    """

    EQUAL = "equal"
    NOISE = "noise"
    GROWING = "growing"
    UNRELATED = "unrelated"
    NOT_COMPARABLE = "not_comparable"


class BoundFit(Word):
    """What the configured bound is to the differences seen."""

    FITS = "fits"
    TOO_TIGHT = "too_tight"
    TOO_WIDE = "too_wide"


class RepeatedRun(Struct, frozen=True):
    """One run. factors: "on" or "off" by factor. exit_code: None if it was ended, or could not be
    started. problem: why nothing of it was compared. folder: where its outputs are kept. snapshot:
    the identity of the snapshot of its environment, where one is kept. used: of all its commands.
    began_at: with its time zone, ISO 8601, where the machine is to be told.
    """

    number: int
    seed: int
    factors: Mapping[str, str] = field(default_factory=dict)
    seconds: Number | None = None
    exit_code: int | None = None
    timed_out: bool = False
    problem: str | None = None
    output_tail: str = ""
    folder: str | None = None
    snapshot: str | None = None
    used: Used | None = None
    began_at: str | None = None


class IterationSpread(Struct, frozen=True):
    """One iteration of a variable, over all ranks.

    iteration: None where paths tell none. distinct_results: how many different ones the runs have.
    max_abs: largest |v - g| of any run. typical: root mean square of v - g over (a sample of) the
    elements, median over the runs that were compared.
    """

    iteration: int | None
    distinct_results: int
    max_abs: Number | None
    typical: Number | None


class BoundSuggestion(Struct, frozen=True):
    """A bound that would have held. One of atol and rtol is 0.

    factor: by what the largest of so many comparisons was multiplied before it was rounded up.
    within: with this confidence at least this share of later runs stays within the largest
    difference itself. noise_multiple: the bound over the typical run's largest difference.
    until_iteration: up to which iteration it is for, where differences grow.
    """

    atol: Number
    rtol: Number
    factor: int
    comparisons: int
    confidence: Number
    within: Number
    noise_multiple: Number | None = None
    until_iteration: int | None = None

    @property
    def bound(self) -> ErrorBound:
        return ErrorBound(atol=self.atol, rtol=self.rtol)


class RunGroups(Struct, frozen=True):
    """Two groups that runs fall into by their largest |v - g|, ten times apart or more.

    far_runs: the runs of the group that is farther from the reference, whose |v - g| is
    far_at_least. near_count: how many others were compared, whose |v - g| is near_at_most.
    """

    far_runs: tuple[int, ...]
    near_count: int
    near_at_most: Number
    far_at_least: Number


class RepeatedVariable(Struct, frozen=True):
    """One variable by name, over all iterations and ranks, with run 1 (or the golden) as g.

    classes: of each run, in the order of `RepeatResult.runs`; equal numbers are results of equal
    values, from 1; 0 for runs without a result. first_iteration: the earliest at which results
    differ. max_abs: largest |v - g|, max_abs_run and max_abs_index: where. max_rel: largest |v - g|
    / |g|. varying_share: of the elements, in the run and checkpoint with the most that differ at
    all. spread: standard deviation of g over (a sample of) its elements. growth_rate: by which ln D
    grows per iteration. horizon: the iteration at which D reaches the present bound, None where
    that was before the first one, or is beyond a tenth of the spread; spread_horizon: a tenth of
    the spread. compare_until: up to which iteration three digits of the
    spread are left. present_bound: as configured. present_share: the largest share of it that was
    used, over all iterations, and early_share: up to compare_until. present_fit: whether it fits,
    up to compare_until where there is one. common_digits: decimal digits that all but 5 %
    of the sampled elements have in common in all runs with the reference; normal_digits: in common
    with the mean of the runs, in 95 % of runs with 95 % confidence if they are normal, where SciPy
    is installed. groups: two groups of runs, where they fall into such. by_run: the largest |v - g|
    of each run, in the order of `RepeatResult.runs`, where any varies; None where it is not known.
    reason: why it is not
    comparable, or unrelated, or why no bound is suggested.
    breaks_bound: whether the present bound does not hold for some run, or may not. What some run
    leaves unknown (a golden without data) is None: max_abs, max_rel, shares.
    """

    check: str
    name: str
    kind: Behaviour
    classes: tuple[int, ...] = ()
    distinct_results: int = 0
    first_iteration: int | None = None
    max_abs: Number | None = None
    max_abs_run: int | None = None
    max_abs_index: tuple[int, ...] | None = None
    max_rel: Number | None = None
    varying_share: Number | None = None
    spread: Number | None = None
    by_iteration: tuple[IterationSpread, ...] = ()
    growth_rate: Number | None = None
    horizon: Number | None = None
    spread_horizon: Number | None = None
    compare_until: int | None = None
    suggested_bound: BoundSuggestion | None = None
    present_bound: ErrorBound | None = None
    present_share: Number | None = None
    present_fit: BoundFit | None = None
    common_digits: Number | None = None
    normal_digits: Number | None = None
    reason: str | None = None
    early_share: Number | None = None
    groups: RunGroups | None = None
    by_run: tuple[Number | None, ...] = ()
    breaks_bound: bool = False

    @property
    def varies(self) -> bool:
        return self.kind not in (Behaviour.EQUAL, Behaviour.NOT_COMPARABLE)

    @property
    def is_compared_to_the_end(self) -> bool:
        """Whether nothing was compared after the iteration up to which the bound is judged."""
        last = max((row.iteration or 0 for row in self.by_iteration), default=0)
        return self.compare_until is not None and self.compare_until >= last


class FactorFinding(Struct, frozen=True):
    """What switching a factor does to a variable.

    pairs: of runs that differ in this factor only; differing: how many of them have different
    results. off_pairs, on_pairs: pairs of runs that differ in no factor, with this one off, and on;
    off_differing, on_differing: how many of them have different results. max_abs: largest |v - g|
    of runs that differ from the first in this factor only. changes: whether it changes the result,
    where runs that differ in no factor are equal; None where they are not, and where no runs that
    were compared can tell. effect: where they are not equal, how much |v - g| moves with the factor
    on, from -1 (every run with it on is nearer) to 1 (every one is farther). p: how often chance
    makes so large an effect of any factor on any variable. power: the chance to have found a factor
    that spreads normal noise five times as much.
    """

    name: str
    check: str
    variable: str
    pairs: int
    differing: int
    off_pairs: int = 0
    off_differing: int = 0
    on_pairs: int = 0
    on_differing: int = 0
    max_abs: Number | None = None
    changes: bool | None = None
    effect: Number | None = None
    p: Number | None = None
    power: Number | None = None

    @property
    def repeat_pairs(self) -> int:
        return self.off_pairs + self.on_pairs

    @property
    def repeat_differing(self) -> int:
        return self.off_differing + self.on_differing

    @property
    def acts(self) -> bool:
        """Whether it changes the result, or acts on how far runs are from the reference."""
        return bool(self.changes) or (self.p is not None and self.p <= 0.05)


class CostEffect(Struct, frozen=True):
    """What switching a factor does to a cost of runs. off, on: its medians. effect, p: as of a
    `FactorFinding`, over all costs.
    """

    name: str
    off: Number
    on: Number
    effect: Number
    p: Number


class RunCost(Struct, frozen=True):
    """What runs took of one thing: the smallest, the median and the largest of all that succeeded.

    name: seconds; waiting_seconds, which are those in which no processor worked for it, where runs
    never use more than one; else a field of what a run `used`.
    """

    name: str
    smallest: Number
    median: Number
    largest: Number
    factors: tuple[CostEffect, ...] = ()


class RepeatResult(Struct, frozen=True):
    """What `ciwrap repeat` found.

    headline: the first sentence. reference: "first" or "golden". seed: of the order of the runs,
    and what seeds of runs begin with. exit_code: 0; 1 if --check asked and something varies beyond
    its bound, or two revisions differ by more than that and than their noise; 3 if a run failed or
    could not be compared. costs: what runs took, where they were
    made. cost_note: whether slow runs worked more, or waited, where they took clearly longer.
    hour_note: whether times go with the hour at which runs began, where these are known.
    """

    headline: str
    exit_code: int
    reference: str = "first"
    seed: int = 0
    design: str = "full"
    runs: tuple[RepeatedRun, ...] = ()
    variables: tuple[RepeatedVariable, ...] = ()
    factors: tuple[FactorFinding, ...] = ()
    costs: tuple[RunCost, ...] = ()
    cost_note: str | None = None
    hour_note: str | None = None
    messages: tuple[Message, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ciwrap_version: str = ""
    started_at: str = ""
    seconds: Number = 0.0

    @property
    def has_failed(self) -> bool:
        return self.exit_code == int(ExitCode.NOT_COMPARABLE)

    @property
    def errors(self) -> list[Message]:
        return [one for one in self.messages if one.level is MessageLevel.ERROR]
