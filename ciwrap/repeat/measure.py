"""Compares one run after the other with the reference, and keeps what summaries are made of.

Of each variable of each checkpoint: which runs have equal values, and how far they are from the
reference. The reference and one run are looked at at a time; samples apart, nothing of a run stays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.captures.side import open_run
from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.files import inodes_of
from ciwrap.compare.histories import compare_histories
from ciwrap.compare.outcome import HistoryOptions
from ciwrap.errors import NotComparableError
from ciwrap.model import ErrorBound, MessageLevel, Verdict
from ciwrap.repeat.samples import Movement, Spread, has_zeros, read_sample, sample_size
from ciwrap.report.text import plural
from ciwrap.structs import Struct, field, replace
from ciwrap.trees.build import DEFAULT_RESOURCES, build_tree, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ciwrap.catalog.rules import Rules
    from ciwrap.model import CheckResult, VariableId, VariableResult, VariableSettings
    from ciwrap.readers.layout import FoundOutputs
    from ciwrap.trees.build import Resources

    # Compares a run's outputs with the golden.
    AgainstGolden = Callable[["RunOutputs"], CheckResult]

_REFERENCE = b"reference"
_NO_DETAILS = HistoryOptions(detail_bytes=0)


class RunOutputs(Struct, frozen=True):
    """The files of one run. place: the folder that they are in."""

    place: Path
    found: FoundOutputs


class Slot(Struct):
    """One variable of one checkpoint over all runs.

    roots: by run, equal ones are equal results; results: of runs that were compared and are not
    equal to the reference. element_count: of the reference.
    """

    roots: dict[int, bytes] = field(default_factory=dict)
    results: dict[int, VariableResult] = field(default_factory=dict)
    movement: Movement | None = None


class Measured(Struct):
    """All that was found of one check. faults: by name, why it is not comparable, the first reason;
    compared: runs that were compared with it; bounds: as configured, by name.
    """

    slots: dict[VariableId, Slot] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    zeros: dict[str, bool] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, ErrorBound] = field(default_factory=dict)
    compared: list[int] = field(default_factory=list)


class Measurer:
    """Measures the runs of one check. Not thread safe.

    name: of the check. against_golden: for the golden as the reference, where nothing but what it
    keeps is known of it; else the first run that is given is the reference.
    """

    def __init__(
        self,
        name: str,
        rules: Rules,
        *,
        against_golden: AgainstGolden | None = None,
        resources: Resources = DEFAULT_RESOURCES,
    ) -> None:
        self.name = name
        self.measured = Measured()
        self.last: CheckResult | None = None  # the run that was added last, against the first
        self._rules = rules
        self._against_golden = against_golden
        self._resources = resources
        self._reference: RunOutputs | None = None
        self._sample_size = 0

    def add(self, number: int, outputs: RunOutputs) -> str | None:
        """Takes a run; why it could not be compared as a whole, if so. Raises UsageError."""
        self.last = None  # never that of an earlier run
        try:
            if self._against_golden is not None:
                return self._take_all(number, outputs, self._against_golden(outputs))
            if self._reference is None:
                self._begin(number, outputs)
                return None
            return self._add_to_first(number, outputs, self._reference)
        except NotComparableError as error:
            return str(error)

    def _begin(self, number: int, outputs: RunOutputs) -> None:
        with self._catalog(outputs) as catalog:
            if catalog.errors:
                raise catalog.errors[0]
            kept = [one for one in catalog.entries if not self._rules.is_ignored(one)]
            if not kept:
                raise NotComparableError("nothing is there to compare", file=outputs.place)
            size = sample_size(len(kept))
            slots = {}
            for identity in kept:
                slots[identity] = Slot({number: _REFERENCE})
                slots[identity].movement = self._movement(catalog, identity, size)
        self.measured.slots = slots
        self._sample_size = size
        self._reference = outputs

    def _movement(self, catalog: Catalog, identity: VariableId, size: int) -> Movement | None:
        settings = self._settings(catalog, identity)
        try:
            sample = read_sample(catalog.values(identity, settings.mask), size)
        except NotComparableError as error:
            self.measured.faults.setdefault(identity.name, str(error))
            return None
        if sample is None:
            return None
        self.measured.spreads.setdefault(identity.name, Spread()).add(sample)
        return Movement(sample, settings.period[0] if len(settings.period) == 1 else 0.0)

    def _add_to_first(self, number: int, outputs: RunOutputs, reference: RunOutputs) -> str | None:
        if inodes_of(outputs.found.files) & inodes_of(reference.found.files):
            raise NotComparableError(
                "has files of the first run (links, or one folder twice), so it would be compared"
                " with itself",
                file=outputs.place,
            )
        self.last = compare_runs(
            self.name, reference, outputs, self._rules, resources=self._resources
        )
        return self._take_all(number, outputs, self.last)

    def _take_all(self, number: int, outputs: RunOutputs, check: CheckResult) -> str | None:
        """What a run is against the reference; why that is not known as a whole, if so."""
        problem = _problem(check)
        if problem is not None:
            return problem
        self.measured.compared.append(number)
        self._note_one_sided(number, check)
        with self._catalog(outputs) as catalog:
            for result in check.variables:
                if self._against_golden is not None:
                    self.measured.slots.setdefault(result.id, Slot())
                self._take(number, result, catalog, is_equal=is_equal(result))
        return None

    def _note_one_sided(self, number: int, check: CheckResult) -> None:
        for identities, text in (
            (check.missing_variables, "lacks it"),
            (check.extra_variables, "has it, and the reference has not"),
        ):
            for identity in identities:
                self.measured.faults.setdefault(identity.name, f"run {number} {text} ({identity})")

    def _take(
        self, number: int, result: VariableResult, catalog: Catalog, *, is_equal: bool
    ) -> None:
        slot = self.measured.slots.get(result.id)
        if slot is None:
            self.measured.faults.setdefault(result.name, f"run {number}: {result.reason}")
            return
        if result.bound is not None:
            self.measured.bounds.setdefault(result.name, result.bound)
        fault = _fault(result)
        if fault is not None:
            where = "" if result.iteration is None else f" at {result.id}"
            self.measured.faults.setdefault(result.name, f"run {number}{where}: {fault}")
            return
        if is_equal:
            slot.roots[number] = _REFERENCE
            if slot.movement is not None:
                slot.movement.add(number, None)
            return
        settings = self._settings(catalog, result.id)
        slot.results[number] = _slim(result)
        slot.roots[number] = self._root(catalog, result.id, settings)
        if slot.movement is not None:
            values = catalog.values(result.id, settings.mask)
            slot.movement.add(number, read_sample(values, self._sample_size))

    def _root(self, catalog: Catalog, identity: VariableId, settings: VariableSettings) -> bytes:
        """A digest of the values: two runs with the same one are equal as numbers."""
        values = catalog.values(identity, settings.mask)
        exact = replace(settings, bound=ErrorBound(), equal_nan=True)
        parameters = tree_parameters(values.dtype, exact, variable=identity.text)
        return build_tree(parameters, values, resources=self._resources)[0].root

    def look_for_zeros(self, names: set[str]) -> None:
        """Finds out which of these variables are 0 anywhere in the reference. What cannot be read
        again has become not comparable.
        """
        if self._reference is None:
            return
        with self._catalog(self._reference) as catalog:
            for identity, slot in self.measured.slots.items():
                is_known = self.measured.zeros.get(identity.name) or slot.movement is None
                if identity.name not in names or is_known:
                    continue
                try:
                    self.measured.zeros[identity.name] = self._has_zeros(catalog, identity)
                except NotComparableError as error:
                    self.measured.faults.setdefault(identity.name, str(error))

    def _has_zeros(self, catalog: Catalog, identity: VariableId) -> bool:
        if identity not in catalog.entries:
            raise NotComparableError(f"the first run no longer has it ({identity})")
        return has_zeros(catalog.values(identity, self._settings(catalog, identity).mask))

    def _settings(self, catalog: Catalog, identity: VariableId) -> VariableSettings:
        return self._rules.settings_for(identity, catalog.entries[identity].info.dtype)

    def _catalog(self, outputs: RunOutputs) -> Catalog:
        return Catalog(outputs.found, self._rules.arrangement)


def compare_runs(
    name: str,
    reference: RunOutputs,
    outputs: RunOutputs,
    rules: Rules,
    *,
    resources: Resources = DEFAULT_RESOURCES,
) -> CheckResult:
    """One run against another, every element of each variable. Raises UsageError."""
    return compare_histories(
        name,
        open_run(reference.place, reference.found, use_capture=False),
        open_run(outputs.place, outputs.found, use_capture=False),
        rules,
        _NO_DETAILS,
        golden_path=str(reference.place),
        source_path=str(outputs.place),
        resources=resources,
    )


def is_equal(result: VariableResult) -> bool:
    """Whether both sides are equal as numbers, whatever bound they were compared by."""
    if result.verdict is not Verdict.MATCH:
        return False
    is_exact = result.bound is not None and result.bound.is_exact
    return is_exact or result.max_abs_difference == 0 or not result.element_count


def varying_share(result: VariableResult) -> float | None:
    """The share of elements that are not equal to the reference's; None if unknown."""
    count = result.element_count
    if not count:
        return None
    if result.bound is not None and result.bound.is_exact and result.differing_count is not None:
        return result.differing_count / count
    histogram = result.bound_share_histogram
    return None if histogram is None else 1 - histogram[0] / count


def _fault(result: VariableResult) -> str | None:
    """Why a variable cannot be compared from run to run; None if it can."""
    if result.verdict is Verdict.NOT_COMPARABLE:
        return result.reason
    for count, what in (
        (result.nan_mismatch_count, "NaN"),
        (result.inf_mismatch_count, "an infinity"),
        (result.missing_mismatch_count, "a fill value"),
    ):
        if count:
            where = plural(count, "element")
            return f"{what} where the reference has none, or the other way round ({where})"
    return None


def _problem(check: CheckResult) -> str | None:
    """Why a whole run was not compared; faults of single variables are theirs."""
    for message in check.messages:
        if message.level is MessageLevel.ERROR:
            return message.text
    return None


def _slim(result: VariableResult) -> VariableResult:
    """Without what only reports of one comparison draw; there are many of these."""
    return replace(
        result, details=None, suspect_ranges=(), first_differences=(), drift_histogram=None
    )


def largest(values: Mapping[int, float | None]) -> tuple[int, float] | None:
    """The run with the largest known value."""
    known = {run: value for run, value in values.items() if value is not None}
    known = {run: value for run, value in known.items() if not math.isnan(value)}
    return max(known.items(), key=lambda item: item[1], default=None)
