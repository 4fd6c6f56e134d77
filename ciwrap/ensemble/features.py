"""Features of a run: a few numbers that say what its variables are like, whatever their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.convert import as_doubles
from ciwrap.compare.misspelt import misspelt_words
from ciwrap.compare.outputs import Outputs
from ciwrap.ensemble.untaken import Untaken
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.late import numpy as np
from ciwrap.model.fill_values import fit_fill_values
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.config import Check
    from ciwrap.model import VariableId

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
        # An infinity makes a feature that is not finite, which is told of by its name.
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
            settings = check.settings_for(identity, info.dtype)
            values = (
                catalog.values(identity, settings.mask) if info.dtype[1:2] in _NUMBERS else None
            )
            if values is None or not values.element_count:
                untaken.others.add(identity)
                continue
            fills = fit_fill_values(settings, info.dtype).fill_values
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
    many = choice.blocks > 1
    return {
        f"{name} {statistic}{f', block {number} of {choice.blocks}' if many else ''}": sums.value(
            statistic
        )
        for name, variable in found.items()
        for number, sums in enumerate(variable.blocks, start=1)
        if sums.count
        for statistic in choice.statistics
    }
