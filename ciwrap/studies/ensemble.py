"""Ensembles: features of runs as a golden in one text file, and the verdict on new runs.

Features are a few numbers that say what a variable is like. A verdict on statistics is never a
match.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.arrays.values import Values, as_doubles
from ciwrap.base.documents import DocumentError, DocumentHead, to_versioned_record
from ciwrap.base.errors import (
    CiwrapError,
    CorruptGoldenError,
    GoldenMissingError,
    NotComparableError,
    UnreadableFileError,
    UsageError,
)
from ciwrap.base.late import numpy as np
from ciwrap.check.check import misspelt_words
from ciwrap.check.two_sides import Work, failed_check
from ciwrap.golden.places import ensemble_path
from ciwrap.golden.store import GoldenStore, refuse_pointer
from ciwrap.model import (
    CheckResult,
    EnsembleFacts,
    Message,
    MessageLevel,
    Shift,
    VariableId,
    Verdict,
)
from ciwrap.project.outputs import Outputs, folders_of_runs
from ciwrap.report.document import MOST_BYTES, digest_of, parse_document, plain, write_text
from ciwrap.report.lead import ensemble_sentence
from ciwrap.report.text import plural
from ciwrap.statistics.factors import EnsembleVerdict, compare_with_ensemble

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.project.settings import Check


class Untaken(Struct):
    """Of one run, or of several together.

    others: variables that are no numbers, or empty. ignored: what `ignore` names. early: of
    iterations that are left out. masked: how many elements masks take out. filled: names of
    variables with fill values. excluded: how many files `exclude` took out. rounded: names of
    variables with integers that no double holds. notes: what else is to be told.
    """

    others: set[VariableId] = field(default_factory=set)
    ignored: set[VariableId] = field(default_factory=set)
    early: set[VariableId] = field(default_factory=set)
    masked: int = 0
    filled: set[str] = field(default_factory=set)
    excluded: int = 0
    rounded: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def add(self, run: Untaken) -> None:
        """Takes what one more run has. A variable that several runs hold is one."""
        self.others |= run.others
        self.ignored |= run.ignored
        self.early |= run.early
        self.masked += run.masked
        self.filled |= run.filled
        self.excluded += run.excluded
        self.rounded |= run.rounded
        self.notes += [note for note in run.notes if note not in self.notes]

    @property
    def other_names(self) -> tuple[str, ...]:
        """The names of variables that have no statistics, sorted."""
        return tuple(sorted({one.name for one in self.others}))

    @property
    def rounding(self) -> tuple[str, ...]:
        """A warning for each variable of which doubles cannot tell integers apart."""
        return tuple(
            f"{name} has integers beyond 2^53, of which statistics see no difference of their last"
            " digits"
            for name in sorted(self.rounded)
        )


if TYPE_CHECKING:
    _Numbers = NDArray[np.float64]
    _Flags = NDArray[np.bool_]

STATISTICS = ("mean", "std", "lag")
_NUMBERS = "fciu"


class FeatureChoice(Struct, frozen=True):
    """Which features are taken.

    statistics: of `mean`, `std` (standard deviation) and `lag` (the mean product of neighbours, in
    C order). blocks: into how many stretches of equal length each variable is cut, in C order.
    from_iteration: earlier checkpoints are left out; None for none.
    """

    statistics: tuple[str, ...] = ("mean", "std")
    blocks: int = 1
    from_iteration: int | None = None


class RunFeatures(Struct, frozen=True):
    """values: of each feature, by name. numbers: how many each variable has in all checkpoints and
    ranks, without those that are masked and fill values. untaken: what there is besides.
    """

    values: dict[str, float]
    numbers: dict[str, int]
    untaken: Untaken


class _Sums(Struct):
    """Of the numbers of one block over all checkpoints and ranks, in one pass."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the distances from the mean
    couples: int = 0
    products: float = 0.0

    def add(self, numbers: _Numbers, kept: _Flags | None, before: float | None) -> None:
        """Takes a stretch of numbers. kept: which of them count; None for all. before: the one that
        stands before it in the same block, if that counts.
        """
        # An infinity makes a feature that is not finite, which is reported by its name.
        with np.errstate(invalid="ignore", over="ignore"):
            self._add_products(numbers, kept, before)
            counted = numbers if kept is None else numbers[kept]
            if counted.size:
                self._add(counted)

    def _add(self, numbers: _Numbers) -> None:
        mean = float(numbers.mean())
        step, total = mean - self.mean, self.count + numbers.size
        # Chan, Golub and LeVeque (1983): nothing is lost where the mean is large.
        self.squares += float(np.sum((numbers - mean) ** 2))
        self.squares += step * step * self.count * numbers.size / total
        self.mean += step * numbers.size / total
        self.count = total

    def _add_products(self, numbers: _Numbers, kept: _Flags | None, before: float | None) -> None:
        first, second = numbers[:-1], numbers[1:]
        if kept is not None:
            both = kept[:-1] & kept[1:]
            first, second = first[both], second[both]
        self.couples += first.size
        self.products += float(np.dot(first, second))
        if before is not None and (kept is None or kept[0]):
            self.couples += 1
            self.products += before * float(numbers[0])

    def value(self, statistic: str) -> float:
        if statistic == "mean":
            return self.mean
        if statistic == "std":
            return math.sqrt(self.squares / self.count)
        return self.products / self.couples if self.couples else 0.0


class _Variable(Struct):
    """All checkpoints and ranks of one name."""

    blocks: list[_Sums] = field(default_factory=list)
    is_rounded: bool = False

    def add(self, values: Values, count: int, fills: tuple[float | int, ...]) -> None:
        """Takes all values. count: of blocks. fills: values that stand for missing ones."""
        self.blocks = self.blocks or [_Sums() for _ in range(count)]
        before: float | None = None
        block_before = -1
        for first, slab in values.slabs():
            numbers = as_doubles(slab, values.dtype)
            factor = max(1, numbers.size // max(1, slab.size))  # 2 for complex numbers
            total, start = values.element_count * factor, first * factor
            masked = None if values.mask is None else values.mask.read(first, slab.size)
            kept = _kept(masked, slab, numbers, fills)
            if slab.dtype.kind in "iu" and slab.dtype.itemsize == 8:
                # Of what is not kept nothing is taken, so its rounding takes nothing away.
                is_lost = numbers.astype(np.longdouble) != slab
                self.is_rounded |= bool((is_lost if kept is None else is_lost & kept).any())
            at = 0
            while at < numbers.size:
                block = (start + at) * count // total
                end = min(numbers.size, -(-(block + 1) * total // count) - start)
                flags = None if kept is None else kept[at:end]
                self.blocks[block].add(
                    numbers[at:end], flags, before if block == block_before else None
                )
                before = float(numbers[end - 1]) if kept is None or kept[end - 1] else None
                block_before, at = block, end


def _kept(
    masked: _Flags | None,
    slab: NDArray[Any],
    numbers: _Numbers,
    fills: tuple[float | int, ...],
) -> _Flags | None:
    """Which numbers are neither masked nor missing; None for all of them."""
    kept = None if masked is None else np.repeat(~masked, numbers.size // max(1, slab.size))
    # Doubles hold all floats; of integers they may make a fill value of another number.
    plain = slab if slab.dtype.kind in "iu" and slab.dtype.itemsize == 8 else numbers
    for fill in fills:
        present = ~np.isnan(numbers) if fill != fill else plain != fill
        kept = present if kept is None else kept & present
    return kept


def features_of(check: Check, choice: FeatureChoice) -> RunFeatures:
    """The features of the run whose outputs a check finds, by name: `density std, block 2 of 8`.

    Checkpoints and ranks of one name are taken together. Variables that hold no numbers, and those
    that the check ignores, have none; masked elements and fill values have no part in any. Raises
    NotComparableError for a run without any, and for values that are not finite, UsageError for a
    check that states values; else as reading outputs does.
    """
    if check.expected:
        raise UsageError(
            f"check {check.name!r} says what values are ('expect', 'range'), of which statistics"
            " say nothing",
            file=check.config_path,
            remedy="leave that to a check without 'ensemble'",
        )
    found: dict[str, _Variable] = {}
    untaken = Untaken()
    with Outputs(check) as catalog:
        if catalog.errors:
            raise catalog.errors[0]
        for identity in sorted(catalog.entries):
            if _is_left_out(check, choice, identity, untaken):
                continue
            info = catalog.entries[identity].info
            settings = check.settings_for(identity, info)
            is_number = info.dtype[1:2] in _NUMBERS
            if catalog.pairs_others(identity):
                raise UsageError(
                    f"rows are paired by {identity.name!r} with those of one other run, and an"
                    " ensemble has many",
                    file=check.config_path,
                    remedy="have the program write rows in one order, and set 'align_by: none'",
                )
            values = catalog.values(identity, settings.mask) if is_number else None
            if values is None or not values.element_count:
                untaken.others.add(identity)
                continue
            fills = settings.fill_values
            found.setdefault(identity.name, _Variable()).add(values, choice.blocks, fills)
            untaken.masked += values.masked_count
            untaken.filled |= {identity.name} if fills else set()
        words = misspelt_words(check, catalog.identities, catalog)
        untaken.notes += [*catalog.notes, *catalog.found.notes, *words]
        untaken.excluded = len(catalog.found.excluded)
        catalog.refuse_changes()
    untaken.rounded = {name for name, one in found.items() if one.is_rounded}
    features = _named(found, choice)
    for name, value in features.items():
        if not math.isfinite(value):
            raise NotComparableError(
                f"{name} is not finite", file=check.root, remedy="'ignore' the variable"
            )
    if not features:
        raise NotComparableError("holds no numbers to take features of", file=check.root)
    numbers = {name: sum(one.count for one in each.blocks) for name, each in found.items()}
    return RunFeatures(features, numbers, untaken)


def _is_left_out(
    check: Check, choice: FeatureChoice, identity: VariableId, untaken: Untaken
) -> bool:
    """Whether the check ignores a variable, or its checkpoint is early; `untaken` then has it."""
    if check.is_ignored(identity):
        untaken.ignored.add(identity)
        return True
    first, at = choice.from_iteration, identity.iteration
    if first is not None and at is not None and at < first:
        untaken.early.add(identity)
        return True
    return False


def _named(found: dict[str, _Variable], choice: FeatureChoice) -> dict[str, float]:
    features = {}
    for name, variable in found.items():
        for number, sums in enumerate(variable.blocks, start=1):
            block = f", block {number} of {choice.blocks}" if choice.blocks > 1 else ""
            for statistic in choice.statistics if sums.count else ():
                features[f"{name} {statistic}{block}"] = sums.value(statistic)
    return features


FORMAT_VERSION = 1


class EnsembleGolden(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The features of an ensemble's members.

    features: their names. members: a row of features for each, as doubles that are read back to the
    bit. statistics, blocks, from_iteration: how features are taken. rate: of false alarms that the
    test may raise. made, who, why, commit: when (UTC, ISO 8601) and by whom it was made. digest: of
    all the rest, to tell damage. numbers: how many variables have in all, those of which all
    members have as many; others: the names of the variables of members that have no features, since
    they are no numbers, or empty. Both are None in an ensemble that was made before they were kept.
    """

    format: int
    check: str
    statistics: tuple[str, ...]
    blocks: int
    rate: float
    features: tuple[str, ...]
    members: tuple[tuple[float, ...], ...]
    made: str
    who: str
    why: str
    environment: dict[str, str]
    from_iteration: int | None = None
    commit: str | None = None
    digest: str = ""
    numbers: dict[str, int] | None = None
    others: tuple[str, ...] | None = None

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that have features: `density std, block 2 of 8` is of density."""
        whole = self.features
        if self.blocks > 1:
            whole = tuple(one.rpartition(", block ")[0] for one in whole)
        return frozenset(one.rpartition(" ")[0] for one in whole)


def write_ensemble(golden: EnsembleGolden, path: Path) -> None:
    """Writes an ensemble, whole or not at all. Raises WriteFailedError."""
    document = plain(golden)
    document["digest"] = digest_of(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A line for each member, for review.
    rows = document.pop("members")
    head = json.dumps(document, indent=1, allow_nan=False).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(row, allow_nan=False) for row in rows)
    write_text(f'{head},\n "members": [\n  {lines}\n ]\n}}\n', str(path), "the ensemble")


def read_ensemble(path: Path) -> EnsembleGolden:
    """Reads an ensemble. Raises GoldenMissingError, UnreadableFileError, CorruptGoldenError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise GoldenMissingError(
            "there is no ensemble", file=path, remedy="`ciwrap capture --ensemble` makes one"
        ) from error
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    return parse_ensemble(data, path)


def parse_ensemble(data: bytes, path: Path) -> EnsembleGolden:
    """An ensemble from the bytes of its file. Raises CorruptGoldenError."""
    try:
        golden = to_versioned_record(parse_document(data), EnsembleGolden, FORMAT_VERSION)
    except DocumentError as error:
        refuse_pointer(data, path)
        raise CorruptGoldenError(f"is not an ensemble: {error}", file=path) from error
    if golden.digest != digest_of(plain(golden)):
        raise CorruptGoldenError(
            "the ensemble is damaged, or somebody has edited it",
            file=path,
            remedy="restore it from version control, or capture it again",
        )
    if any(len(row) != len(golden.features) for row in golden.members):
        raise CorruptGoldenError("not every member has every feature", file=path)
    return golden


_MOST_NAMES = 3


class RunsFeatures(Struct, frozen=True):
    """names: of features. rows: of them, one for each run. numbers: how many numbers variables
    have, those of which all runs have as many. untaken: what the runs hold besides.
    """

    names: tuple[str, ...]
    rows: list[tuple[float, ...]]
    numbers: dict[str, int]
    untaken: Untaken


def features_of_runs(
    check: Check,
    folders: Sequence[Path],
    choice: FeatureChoice,
    like: EnsembleGolden | None = None,
) -> RunsFeatures:
    """The features of runs.

    folders: each has the outputs of a run as the project's folder would. like: the ensemble whose
    variables the runs must have; None for those of the first run. Runs must also have as many
    numbers as its members, as far as that is known, since a run that ended early has statistics,
    too. Raises UsageError for a folder that is named twice or is none, NotComparableError for a run
    with other features or other variables.
    """
    seen: set[Path] = set()
    rows = []
    untaken = Untaken()
    names, others = (None, None) if like is None else (like.features, like.others)
    wanted = {} if like is None else like.numbers or {}
    common: dict[str, int] | None = None
    for folder in folders:
        if not folder.is_dir():
            raise UsageError("there is no such folder of a run", file=folder)
        if folder.resolve() in seen:
            raise UsageError("this run is named twice", file=folder)
        seen.add(folder.resolve())
        found = features_of(replace(check, root=folder), choice)
        names = tuple(found.values) if names is None else names
        _refuse_others(folder, names, found.values)
        if others is None and like is None:
            others = found.untaken.other_names
        if others is not None:
            _refuse_others(folder, others, found.untaken.other_names)
        _refuse_other_size(folder, wanted, found.numbers)
        rows.append(tuple(found.values[name] for name in names))
        untaken.add(found.untaken)
        common = found.numbers if common is None else dict(common.items() & found.numbers.items())
    assert names is not None
    assert common is not None
    return RunsFeatures(names, rows, dict(sorted(common.items())), untaken)


def _refuse_other_size(folder: Path, wanted: Mapping[str, int], found: dict[str, int]) -> None:
    for name, count in wanted.items():
        if found.get(name) != count:
            raise NotComparableError(
                f"the run has {plural(found.get(name, 0), 'number')} of {name} in all, and every"
                f" member {count:,}",
                file=folder,
                remedy="let it run to its end, or capture the ensemble anew",
            )


def _refuse_others(folder: Path, names: tuple[str, ...], found: Collection[str]) -> None:
    for what, others in (
        ("lacks", [name for name in names if name not in found]),
        ("also has", [name for name in found if name not in names]),
    ):
        if others:
            more = ", ..." if len(others) > _MOST_NAMES else ""
            raise NotComparableError(
                f"the run {what} {', '.join(others[:_MOST_NAMES])}{more}",
                file=folder,
                remedy="members and new runs must write the same variables",
            )


# Of random permutations: fixed, so that the same runs are always judged alike.
_SEED = 1
_VERDICTS = {
    EnsembleVerdict.CONSISTENT: (Verdict.CONSISTENT, MessageLevel.NOTE),
    EnsembleVerdict.INCONSISTENT: (Verdict.INCONSISTENT, MessageLevel.ERROR),
    EnsembleVerdict.TOO_SMALL: (Verdict.NOT_COMPARABLE, MessageLevel.ERROR),
}


def check_ensemble(check: Check, store: GoldenStore, _: Work) -> CheckResult:
    """Compares the runs that a check's `ensemble` names with its ensemble. Writes nothing.

    Consistent, inconsistent, or not comparable: where runs or members are too few to tell, where
    there are none, and where one could not be read. Raises UsageError for a configuration that
    cannot be used.
    """
    started = time.monotonic()
    path = ensemble_path(store.folder, check.name)
    try:
        result = _judge(check, path)
    except CiwrapError as error:
        return failed_check(check.name, error, str(path))
    return replace(result, seconds=time.monotonic() - started)


def _judge(check: Check, path: Path) -> CheckResult:
    golden = read_ensemble(path)
    if golden.check != check.name:
        raise CorruptGoldenError(f"it is the ensemble of check {golden.check!r}", file=path)
    folders = folders_of_runs(check)
    choice = FeatureChoice(golden.statistics, golden.blocks, golden.from_iteration)
    taken = features_of_runs(check, folders, choice, golden)
    untaken = taken.untaken
    found = compare_with_ensemble(golden.members, taken.rows, rate=golden.rate, seed=_SEED)
    facts = EnsembleFacts(
        members=found.members,
        runs=found.runs,
        features=len(golden.features),
        rate=found.rate,
        p=found.p,
        more_members=found.more_members,
        shifts=tuple(Shift(golden.features[one.feature], one.deviations) for one in found.shifts),
        without_statistics=tuple(sorted(untaken.others)),
        masked_elements=untaken.masked,
        filled=len(untaken.filled),
    )
    verdict, level = _VERDICTS[found.verdict]
    return CheckResult(
        check.name,
        verdict,
        golden_path=str(path),
        ignored_variables=tuple(sorted(untaken.ignored | untaken.early)),
        uncommon=len(untaken.early),
        excluded_files=untaken.excluded,
        messages=(
            *_repeated(len(taken.rows), found.runs),
            *(Message(MessageLevel.WARNING, text) for text in (*untaken.rounding, *untaken.notes)),
            Message(level, ensemble_sentence(facts)),
        ),
        golden_bytes=path.stat().st_size,
        golden_environment=dict(golden.environment),
        ensemble=facts,
    )


def _repeated(runs: int, distinct: int) -> tuple[Message, ...]:
    """A warning of runs with equal features, which count once."""
    if runs == distinct:
        return ()
    sets = "the same features" if distinct == 1 else f"{distinct} different sets of features"
    text = f"{plural(runs, 'run')} have {sets}; equal ones count once"
    return (Message(MessageLevel.WARNING, text),)


class CaptureEnsembleDocument(DocumentHead, frozen=True):
    """What capture --ensemble did. members: how many runs there are. distinct: how many of them
    differ from each other. least_runs: for how many new runs at once the ensemble is large enough;
    null if for none. without_statistics: variables of the runs of which nothing is kept, since they
    are no numbers, or empty. rounded: variables with integers that no double holds.
    """

    kind: Literal["capture-ensemble"]
    check: str
    golden_path: str
    members: int
    distinct: int
    features: tuple[str, ...]
    least_runs: int | None
    without_statistics: tuple[str, ...]
    rounded: tuple[str, ...]
