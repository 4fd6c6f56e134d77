"""Compares one run after the other with the reference, and keeps what summaries are made of.

The reference and one run are read at a time; but for bounded samples nothing of a run is kept. The
largest difference is that of all values; root mean squares, spreads and digits are the sample's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.arrays.values import Values, as_doubles, is_bfloat16
from ciwrap.base.errors import NotComparableError
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import HistoryOptions
from ciwrap.formats.catalog import Catalog, Rules
from ciwrap.formats.find_outputs import FoundOutputs, OutputFile
from ciwrap.formats.reader import Reader, Source, VariableInfo
from ciwrap.formats.source_files import inodes_of
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources, build_tree, tree_parameters
from ciwrap.model import (
    CheckResult,
    ErrorBound,
    MessageLevel,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)
from ciwrap.report.text import plural
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.sides import open_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 64
_MOST_ELEMENTS = 16_384
_LEAST_ELEMENTS = 256
# Of all variables together; some arrays of doubles are kept for each.
_BUDGET = 1 << 21
_SAME = 1e-14
# No digit is left long before; its square is a double.
_LARGEST_RELATIVE = 1e150


def sample_size(variables: int) -> int:
    """How many elements of each of so many variables are kept."""
    return max(_LEAST_ELEMENTS, min(_MOST_ELEMENTS, _BUDGET // max(1, variables)))


def read_sample(values: Values, size: int) -> NDArray[np.float64] | None:
    """All elements of a small variable, else evenly spaced blocks of them; None for what is no
    number. Complex numbers are two each. Shape (elements,).
    """
    kind = values.dtype[1:2]
    if kind not in "fciub" or values.dtype == "|b1":
        return None
    count = values.element_count
    if count <= size:
        return as_doubles(values.read(0, count), values.dtype)
    blocks = size // _BLOCK
    firsts = np.linspace(0, count - _BLOCK, blocks).astype(np.int64)
    parts = [as_doubles(values.read(int(first), _BLOCK), values.dtype) for first in firsts]
    return np.concatenate(parts)


def has_zeros(values: Values) -> bool:
    """Whether any element, or a part of a complex one, is 0. Reads all of them."""
    for _, slab in values.slabs():
        # NumPy counts its own types where they lie, three times as fast as copies of them.
        is_own = slab.dtype.kind in "fiu" and not is_bfloat16(values.dtype)
        numbers = slab if is_own else as_doubles(slab, values.dtype)
        if int(np.count_nonzero(numbers)) < numbers.size:
            return True
    return False


class Movement(Struct):
    """How the sampled elements of one variable of one checkpoint move over the runs.

    reference: g; period: differences are modulo this, or 0; norms: the root of the sum of the
    squares of v - g, by run. Relative differences z are counted where g is finite and not 0; where
    it is 0 and some run's value is not, z is as large as it gets.
    """

    reference: NDArray[np.float64]
    period: float = 0.0
    norms: dict[int, float] = field(default_factory=dict)
    runs: int = 0
    _mean: NDArray[np.float64] | None = None
    _squares: NDArray[np.float64] | None = None
    _largest: NDArray[np.float64] | None = None
    _farthest: NDArray[np.float64] | None = None
    _left_zero: NDArray[np.bool_] | None = None

    @property
    def _is_relative(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.reference) & (self.reference != 0))

    def add(self, run: int, sample: NDArray[np.float64] | None) -> None:
        """Takes a run's sample; None for one that is equal to the reference."""
        if sample is None or sample.shape != self.reference.shape:
            difference = np.zeros_like(self.reference)
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                difference = sample - self.reference
            if self.period:
                difference -= self.period * np.round(difference / self.period)
        # What is no number moves nothing; two finite numbers may be further apart than a double is.
        difference = np.nan_to_num(difference, nan=0.0, posinf=math.inf, neginf=-math.inf)
        difference[~np.isfinite(self.reference)] = 0.0
        far = np.abs(difference)
        self._farthest = far if self._farthest is None else np.maximum(self._farthest, far)
        # The root of the sum of squares, none of which overflows or vanishes.
        self.norms[run] = _root_mean_square(difference) * math.sqrt(difference.size)
        left = (self.reference == 0) & (difference != 0)
        self._left_zero = left if self._left_zero is None else self._left_zero | left
        relative = self._is_relative
        with np.errstate(over="ignore"):
            z = difference[relative] / self.reference[relative]
        self._add_relative(np.clip(z, -_LARGEST_RELATIVE, _LARGEST_RELATIVE))

    def _add_relative(self, z: NDArray[np.float64]) -> None:
        if self._mean is None or self._squares is None or self._largest is None:
            self._mean, self._squares = np.zeros_like(z), np.zeros_like(z)
            self._largest = np.zeros_like(z)
        self.runs += 1
        step = z - self._mean
        self._mean += step / self.runs
        self._squares += step * (z - self._mean)
        np.maximum(self._largest, np.abs(z), out=self._largest)

    @property
    def farthest(self) -> NDArray[np.float64]:
        """Of each sampled element, the largest |v - g| of any run."""
        return np.zeros_like(self.reference) if self._farthest is None else self._farthest

    @property
    def largest_relative(self) -> NDArray[np.float64]:
        """Of each element with a relative difference, the largest |z| of any run."""
        return np.empty(0) if self._largest is None else self._with_left_zeros(self._largest)

    @property
    def relative_spread(self) -> NDArray[np.float64]:
        """Of each such element, the standard deviation of z over the runs; at least 2 of them."""
        if self._squares is None or self.runs < 2:
            return np.empty(0)
        return self._with_left_zeros(np.sqrt(self._squares / (self.runs - 1)))

    def _with_left_zeros(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """And one more for each element that is 0 in the reference alone: no digit is common."""
        count = 0 if self._left_zero is None else int(np.count_nonzero(self._left_zero))
        return np.concatenate([found, np.full(count, _LARGEST_RELATIVE)])


def _root_mean_square(numbers: NDArray[np.float64]) -> float:
    largest = float(np.abs(numbers).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    return largest * math.sqrt(float(np.mean((numbers / largest) ** 2)))


def _mean(numbers: NDArray[np.float64]) -> float:
    """The mean, whose sum does not overflow."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return largest * float(np.mean(numbers / largest)) if largest else 0.0


def _median(sizes: NDArray[np.float64]) -> float:
    """The median of numbers that are not below 0; the sum of two of them may be no double."""
    middle = [(sizes.size - 1) // 2, sizes.size // 2]
    low, high = np.partition(sizes, middle)[middle]
    return float(low + (high - low) / 2)


class Spread(Struct):
    """Standard deviation and typical magnitude of all sampled values of one name."""

    count: int = 0
    mean: float = 0.0
    _deviation: float = 0.0
    nan_count: int = 0
    magnitudes: list[float] = field(default_factory=list)

    def add(self, sample: NDArray[np.float64]) -> None:
        finite = sample[np.isfinite(sample)]
        self.nan_count += int(np.isnan(sample).sum())
        if finite.size == 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(finite)
            # Squares of two parts about their own means lose no digits (Chan, Golub and LeVeque);
            # by their shares of all, no sum is larger than a double.
            total = self.count + finite.size
            old, new = self.count / total, finite.size / total
            own = _root_mean_square(finite - mean)
            apart = math.sqrt(old * new)
            self._deviation = math.hypot(
                math.sqrt(old) * self._deviation,
                math.sqrt(new) * own,
                apart * mean - apart * self.mean,
            )
            self.mean = old * self.mean + new * mean
            self.magnitudes.append(_median(np.abs(finite)))
        self.count = total

    @property
    def deviation(self) -> float:
        """The standard deviation; of a constant its magnitude."""
        if not self.count:
            return 0.0
        # What rounding leaves of equal values is no spread.
        is_constant = self._deviation <= _SAME * abs(self.mean)
        return abs(self.mean) if is_constant else self._deviation

    @property
    def magnitude(self) -> float | None:
        """The median over checkpoints of the median |g|."""
        return _median(np.array(self.magnitudes)) if self.magnitudes else None


if TYPE_CHECKING:
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


class Named(Struct, frozen=True):
    """All slots of one name, in order."""

    name: str
    slots: dict[VariableId, Slot]

    @property
    def iterations(self) -> list[int | None]:
        return list(dict.fromkeys(identity.iteration for identity in self.slots))

    @property
    def dtypes(self) -> set[str]:
        """Of the results that are not equal to the reference."""
        found = (one.dtype for slot in self.slots.values() for one in slot.results.values())
        return {dtype for dtype in found if dtype is not None}

    def at(self, iteration: int | None) -> list[Slot]:
        return [slot for identity, slot in self.slots.items() if identity.iteration == iteration]

    def largest_by_run(self, field: str, until: float = math.inf) -> dict[int, float | None]:
        """Of each run that was compared, the largest value of a result's field; None where one of
        its results does not tell.
        """
        found: dict[int, float | None] = {}
        for identity, slot in self.slots.items():
            if identity.iteration is not None and identity.iteration > until:
                continue
            for run, result in slot.results.items():
                value, known = getattr(result, field), found.get(run, 0.0)
                found[run] = None if value is None or known is None else max(known, float(value))
        return found

    def largest(self, field: str, until: float = math.inf) -> tuple[int, float] | None:
        """The run with the largest value of a field; None where some run does not tell."""
        found = self.largest_by_run(field, until)
        return None if None in found.values() else largest(found)

    def place_of(self, worst: tuple[int, float]) -> tuple[Slot, VariableResult] | None:
        """Where a run has its largest |v - g|, of that size."""
        for slot in self.slots.values():
            result = slot.results.get(worst[0])
            if result is not None and result.max_abs_difference == worst[1]:
                return slot, result
        return None


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
        refuse_shared_files(reference, outputs)
        rules, resources = self._rules, self._resources
        self.last = compare_runs(self.name, reference, outputs, rules, resources=resources)
        return self._take_all(number, outputs, self.last)

    def _take_all(self, number: int, outputs: RunOutputs, check: CheckResult) -> str | None:
        """What a run is against the reference; why that is not known as a whole, if so."""
        problem = _problem(check)
        if problem is not None:
            return problem
        self.measured.compared.append(number)
        for identities, text in (
            (check.missing_variables, "lacks it"),
            (check.extra_variables, "has it, and the reference has not"),
        ):
            for identity in identities:
                self.measured.faults.setdefault(identity.name, f"run {number} {text} ({identity})")
        with self._catalog(outputs) as catalog:
            for result in check.variables:
                if self._against_golden is not None:
                    self.measured.slots.setdefault(result.id, Slot())
                self._take(number, result, catalog, is_equal=is_equal(result))
        return None

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
        # Without what only reports of one comparison draw; there are many of these.
        slot.results[number] = replace(
            result, details=None, suspect_ranges=(), first_differences=(), drift_histogram=None
        )
        slot.roots[number] = self._root(catalog, result.id, settings)
        if slot.movement is not None:
            values = catalog.values(result.id, settings.mask)
            slot.movement.add(number, read_sample(values, self._sample_size))

    def _root(self, catalog: Catalog, identity: VariableId, settings: VariableSettings) -> bytes:
        """A digest of the values: two runs with the same one are equal as numbers."""
        values = catalog.values(identity, settings.mask)
        exact = replace(settings.with_bound(ErrorBound()), equal_nan=True)
        parameters = tree_parameters(values.dtype, exact, variable=identity.text)
        return build_tree(parameters, values, resources=self._resources).tree.root

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
                    if identity not in catalog.entries:
                        raise NotComparableError(f"the first run no longer has it ({identity})")
                    mask = self._settings(catalog, identity).mask
                    self.measured.zeros[identity.name] = has_zeros(catalog.values(identity, mask))
                except NotComparableError as error:
                    self.measured.faults.setdefault(identity.name, str(error))

    def _settings(self, catalog: Catalog, identity: VariableId) -> VariableSettings:
        return self._rules.settings_for(identity, catalog.entries[identity].info)

    def _catalog(self, outputs: RunOutputs) -> Catalog:
        return Catalog(outputs.found, self._rules.arrangement)


def refuse_shared_files(reference: RunOutputs, outputs: RunOutputs) -> None:
    """Raises NotComparableError for two runs that have a file in common."""
    if set(inodes_of(outputs.found.files)).intersection(inodes_of(reference.found.files)):
        raise NotComparableError(
            "has files of the first run (links, or one folder twice), so it would be compared"
            " with itself",
            file=outputs.place,
        )


def compare_runs(
    name: str,
    reference: RunOutputs,
    outputs: RunOutputs,
    rules: Rules,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    options: HistoryOptions = _NO_DETAILS,
) -> CheckResult:
    """One run against another, every element of each variable. Raises UsageError."""
    return compare_histories(
        name,
        open_run(reference.place, reference.found, use_capture=False),
        open_run(outputs.place, outputs.found, use_capture=False),
        rules,
        options,
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
            where = plural(count, "value")
            return f"{what} where the reference has none, or the other way round ({where})"
    return None


def _problem(check: CheckResult) -> str | None:
    """Why a whole run was not compared; faults of single variables are theirs."""
    errors = (one.text for one in check.messages if one.level is MessageLevel.ERROR)
    return next(errors, None)


def largest(values: Mapping[int, float | None]) -> tuple[int, float] | None:
    """The run with the largest known value."""
    known = {run: value for run, value in values.items() if value is not None}
    known = {run: value for run, value in known.items() if not math.isnan(value)}
    return max(known.items(), key=lambda item: item[1], default=None)


def held_run(name: str, catalog: Catalog, is_ignored: Callable[[VariableId], bool]) -> RunOutputs:
    """A copy of all variables that count, as the outputs of a run of that name.

    Raises the errors that kept files of the catalog from being opened, and those of reading.
    """
    if catalog.errors:
        raise catalog.errors[0]
    infos, arrays = [], {}
    for identity in catalog.entries:
        if is_ignored(identity):
            continue
        values = catalog.values(identity)
        slabs = [slab.reshape(-1) for _, slab in values.slabs()]
        arrays[identity.text] = np.concatenate(slabs) if slabs else values.read(0, 0)
        infos.append(
            VariableInfo(
                identity.text,
                values.dtype,
                tuple(values.shape),
                called=identity.name,
                iteration=identity.iteration,
                rank=identity.rank,
                labels=values.labels,
            )
        )
    place = Path(name)
    return RunOutputs(place, FoundOutputs((OutputFile(str(place), _HeldReader(infos, arrays)),)))


class _HeldReader(Reader):
    """Opens the variables it was given."""

    name = "memory"
    suffixes = ()

    def __init__(self, infos: list[VariableInfo], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._infos = tuple(infos)
        self._arrays = arrays

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - the variables have names
        options: Mapping[str, Any] | None = None,  # noqa: ARG002 - there are none
    ) -> Source:
        return _HeldSource(path, self._infos, self._arrays)


class _HeldSource(Source):
    def __init__(
        self, path: Path, infos: tuple[VariableInfo, ...], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        self.path = path
        self.variables = infos
        self._arrays = arrays

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        return self._arrays[name][first_element : first_element + count]
