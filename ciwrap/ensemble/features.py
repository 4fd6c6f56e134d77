"""Features of a run: a few numbers that say what its variables are like, whatever their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.arrays.convert import as_doubles
from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.files import change_since, looked_at
from ciwrap.compare.check import arrangement_of, outputs_of
from ciwrap.errors import NotComparableError, StillWrittenError, UsageError
from ciwrap.late import numpy as np
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.config import Check

    _Numbers = NDArray[np.float64]

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
    ranks.
    """

    values: dict[str, float]
    numbers: dict[str, int]


class _Sums(Struct):
    """Of the numbers of one block over all checkpoints and ranks, in one pass."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the distances from the mean
    couples: int = 0
    products: float = 0.0

    def add(self, numbers: _Numbers, before: float | None) -> None:
        """Takes a stretch of numbers. before: the one that stands before it in the same block."""
        # An infinity makes a feature that is not finite, which is told of by its name.
        with np.errstate(invalid="ignore", over="ignore"):
            self._add(numbers, before)

    def _add(self, numbers: _Numbers, before: float | None) -> None:
        mean = float(numbers.mean())
        step, total = mean - self.mean, self.count + numbers.size
        # Chan, Golub and LeVeque (1983): nothing is lost where the mean is large.
        self.squares += float(np.sum((numbers - mean) ** 2))
        self.squares += step * step * self.count * numbers.size / total
        self.mean += step * numbers.size / total
        self.count = total
        neighbours = numbers if before is None else np.concatenate([[before], numbers])
        self.couples += neighbours.size - 1
        self.products += float(np.dot(neighbours[1:], neighbours[:-1]))

    def value(self, statistic: str) -> float:
        if statistic == "mean":
            return self.mean
        if statistic == "std":
            return math.sqrt(self.squares / self.count)
        return self.products / self.couples if self.couples else 0.0


class _Variable(Struct):
    """All checkpoints and ranks of one name."""

    blocks: list[_Sums] = field(default_factory=list)

    def add(self, values: Values, count: int) -> None:
        self.blocks = self.blocks or [_Sums() for _ in range(count)]
        before: float | None = None
        block_before = -1
        for first, slab in values.slabs():
            numbers = as_doubles(slab, values.dtype)
            factor = max(1, numbers.size // max(1, slab.size))  # 2 for complex numbers
            total, start = values.element_count * factor, first * factor
            at = 0
            while at < numbers.size:
                block = (start + at) * count // total
                end = min(numbers.size, -(-(block + 1) * total // count) - start)
                stretch = numbers[at:end]
                self.blocks[block].add(stretch, before if block == block_before else None)
                before, block_before, at = float(stretch[-1]), block, end


def features_of(check: Check, choice: FeatureChoice) -> RunFeatures:
    """The features of the run whose outputs a check finds, by name: `density std, block 2 of 8`.

    Checkpoints and ranks of one name are taken together. Variables that hold no numbers, and those
    that the check ignores, have none. Raises NotComparableError for a run without any, and for
    values that are not finite, UsageError for a check that states values; else as reading outputs
    does.
    """
    if check.expected:
        raise UsageError(
            f"check {check.name!r} says what values are ('expect', 'range'), of which statistics"
            " say nothing",
            file=check.config_path,
            remedy="leave that to a check without 'ensemble'",
        )
    found: dict[str, _Variable] = {}
    outputs = outputs_of(check)
    seen = looked_at(outputs.files)
    with Catalog(outputs, arrangement_of(check)) as catalog:
        if catalog.errors:
            raise catalog.errors[0]
        for identity in sorted(catalog.entries):
            info = catalog.entries[identity].info
            is_early = (
                choice.from_iteration is not None
                and identity.iteration is not None
                and identity.iteration < choice.from_iteration
            )
            if check.is_ignored(identity) or is_early or info.dtype[1:2] not in _NUMBERS:
                continue
            values = catalog.values(identity, check.settings_for(identity, info.dtype).mask)
            if values.element_count:
                found.setdefault(identity.name, _Variable()).add(values, choice.blocks)
    change = change_since(seen, outputs.files)
    if change is not None:
        raise StillWrittenError(
            f"an output was written while it was being read: {change}",
            remedy="let the program finish first, then check again",
        )
    features = _named(found, choice)
    for name, value in features.items():
        if not math.isfinite(value):
            raise NotComparableError(
                f"{name} is not finite", file=check.root, remedy="'ignore' the variable"
            )
    if not features:
        raise NotComparableError("holds no numbers to take features of", file=check.root)
    numbers = {name: sum(one.count for one in each.blocks) for name, each in found.items()}
    return RunFeatures(features, numbers)


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
