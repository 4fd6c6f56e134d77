"""What a verdict covers: how much was compared, and what was not, and why."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING

from ciwrap.model.verdict import Verdict
from ciwrap.structs import Struct, astuple

if TYPE_CHECKING:
    from ciwrap.model.results import CheckResult


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
    checks of runs whose statistics were held against an ensemble, none of whose values was
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
        values = f"compared {variables}, {grouped_plural(self.compared_elements, 'element')}"
        return f"{values}, and {statistics}" if self.by_statistics else values

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What was not compared, in words, a part for each reason."""
        one = self.unit
        parts = (
            (self.not_comparable, one, "not comparable"),
            (self.missing, one, "missing"),
            (self.extra, one, "extra"),
            (self.ignored - self.uncommon, one, "by ignore"),
            (self.uncommon, one, "of iterations left out"),
            (self.without_statistics, one, "without statistics"),
            (self.masked_elements, "element", "masked"),
            (self.masked_unknown, one, "in part by a mask"),
            (self.filled, one, _FILLED),
            (self.unpaired_elements, "element", "of steps on one side only"),
            (self.excluded_files, "file", "by exclude"),
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
        checkpointed=int(_has_checkpoints(check)),
        unpaired_elements=unpaired,
        without_statistics=0 if facts is None else len(facts.without_statistics),
    )


def _has_checkpoints(check: CheckResult) -> bool:
    """Whether anything of it is of an iteration or a rank."""
    lists = [check.missing_variables, check.extra_variables, check.ignored_variables]
    lists += [] if check.ensemble is None else [check.ensemble.without_statistics]
    named = [one for part in (*lists, check.left_out_variables) for one in part]
    places = [(one.iteration, one.rank) for one in check.variables]
    places += [(one.iteration, one.rank) for one in named]
    return any(place != (None, None) for place in places)


def _counted(count: int, noun: str, why: str) -> str:
    counted = grouped_plural(count, noun)
    # Nobody counts the elements that hold one, and there may be none.
    return f"{why} of {counted}" if why == _FILLED else f"{counted} {why}"


def grouped_plural(count: int, noun: str) -> str:
    """`1 variable`, `2,000 variables`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
