"""What to try next, where what was found tells it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciwrap.details import Cause
from ciwrap.errors import CiwrapError
from ciwrap.late import numpy as np
from ciwrap.model import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.across_ranks import PartsOf
    from ciwrap.compare.outcome import Outcome
    from ciwrap.details import Explanation
    from ciwrap.model import VariableResult

# What variables that number the rows of others are called.
_ID_NAME = re.compile(r"(?:.*[/._])?(?:particle_?|atom_?|cell_?|global_?|g|p)?(?:id|ids|tag|tags)")
_MOST_ID_BYTES = 8 << 20
_FLOATS = {"f4", "f8"}


def hints(outcome: Outcome, rules: Rules, parts_of: PartsOf) -> list[str]:
    """A sentence for each remedy that would help, as far as that is known without much reading.

    parts_of: as in `explain_ranks`.
    """
    found = (
        *_other_names(outcome),
        *_moved_rows(outcome),
        *_other_order(outcome, parts_of),
        *_other_precision(outcome, rules),
    )
    return [f"hint: {text}" for text in found]


def _other_names(outcome: Outcome) -> Iterator[str]:
    """All names of one run differ from those of the other in one part, as a job's number does."""
    if outcome.results or not outcome.missing or not outcome.extra:
        return
    ours = {one.name for one in outcome.missing}
    theirs = {one.name for one in outcome.extra}
    for mine in sorted(_common_parts(ours)):
        for other in sorted(_common_parts(theirs)):
            if mine == other:
                continue
            if {_without(name, mine) for name in ours} == {_without(n, other) for n in theirs}:
                # A layout takes the place of the one by which folders tell iterations and ranks.
                is_flat = all(one.iteration is one.rank is None for one in outcome.missing)
                example = _layout({_without(name, mine) for name in ours}) if is_flat else None
                such_as = f", such as {example!r}" if example else ""
                yield (
                    f"all names differ in one part, {mine!r} in A and {other!r} in B; write {{*}}"
                    f" for it in --layout{such_as}: it is left out of names"
                )
                return


def _layout(names: Iterable[str]) -> str | None:
    """A layout that fits files of these names, in which {*} stands for a part: `job.{*}_{name}`;
    None where more than one stretch beside that part differs.
    """
    stretches = [set(found) for found in zip(*(name.split("{*}") for name in names), strict=False)]
    several = [at for at, found in enumerate(stretches) if len(found) > 1]
    worded = [at for at, found in enumerate(stretches) if any(one.strip("/._-") for one in found)]
    if len(several) > 1 or not worded:
        return None
    at = several[0] if several else worded[-1]
    if any("/" in one for one in stretches[at]):
        return None
    shown = [min(found) for found in stretches]
    shown[at] = _marks(stretches[at], r"^[._-]*") + "{name}" + _marks(stretches[at], r"[._-]*$")
    return "{*}".join(shown)


def _marks(texts: Iterable[str], where: str) -> str:
    """The separators that all of these begin or end with."""
    found = {"".join(re.findall(where, text)) for text in texts}
    return found.pop() if len(found) == 1 else ""


_SEPARATORS = re.compile(r"([/._-])")


def _common_parts(names: Iterable[str]) -> set[str]:
    parts = [{part for part in _SEPARATORS.split(name)[::2] if part} for name in names]
    return set.intersection(*parts)


def _without(name: str, part: str) -> str:
    return "".join("{*}" if one == part else one for one in _SEPARATORS.split(name))


def _moved_rows(outcome: Outcome) -> Iterator[str]:
    """Other numbers of rows on each rank, equal sums of them, and an id that names the rows."""
    sums: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    for one in outcome.results:
        if one.rank is not None and one.shape:
            reference = one.golden_shape or one.shape
            sums.setdefault((one.name, one.iteration), []).append((reference[0], one.shape[0]))
    moved = [
        key
        for key, rows in sums.items()
        if any(mine != other for mine, other in rows)
        and sum(mine for mine, _ in rows) == sum(other for _, other in rows)
    ]
    names = sorted({one.name for one in outcome.results if _is_id(one)})
    if moved and names:
        yield (
            "rows have moved between ranks, whose sums are equal: try --align-by"
            f" {names[0]} --across-ranks"
        )


def _is_id(one: VariableResult) -> bool:
    is_whole = one.dtype is not None and one.dtype[1] in "iu"
    return is_whole and len(one.shape or ()) == 1 and _ID_NAME.fullmatch(one.name) is not None


def _other_order(outcome: Outcome, parts_of: PartsOf) -> Iterator[str]:
    """An id that holds the same values in another order."""
    for one in outcome.results:
        is_small = (one.byte_count or 0) <= _MOST_ID_BYTES
        if one.verdict is Verdict.DIFFER and _is_id(one) and not one.aligned_by and is_small:
            if _are_same_values(one, parts_of):
                yield (
                    f"{one.name} holds the same values in another order: try --align-by {one.name}"
                )
            return


def with_id_named(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; where rows stand in another order and an id does so as well, the remedy names it
    instead of leaving that to the reader.
    """
    names = {one.name for one in results if _is_id(one) and _order_of(one) is not None}
    if len(names) != 1:
        return list(results)
    (name,) = names
    return [
        one if (told := _order_of(one)) is None else _with_remedy(one, told, f"align_by: {name}")
        for one in results
    ]


def _order_of(one: VariableResult) -> Explanation | None:
    found = (told for told in one.explanations if told.cause is Cause.OTHER_ORDER)
    return next(found, None)


def _with_remedy(one: VariableResult, told: Explanation, remedy: str) -> VariableResult:
    named = replace(told, remedy=remedy)
    explanations = tuple(named if other is told else other for other in one.explanations)
    return replace(one, explanations=explanations)


def _are_same_values(one: VariableResult, parts_of: PartsOf) -> bool:
    try:
        read = [
            np.sort(values.read(0, values.element_count), axis=None)
            for parts in parts_of(one)
            for identity, values in parts
            if identity == one.id
        ]
    except CiwrapError:
        return False
    return len(read) == 2 and bool(np.array_equal(read[0], read[1]))


def _other_precision(outcome: Outcome, rules: Rules) -> Iterator[str]:
    for one in outcome.results:
        kinds = {dtype[1:] for dtype in (one.golden_dtype, one.dtype) if dtype is not None}
        if one.verdict is not Verdict.NOT_COMPARABLE or kinds != _FLOATS or one.dtype is None:
            continue
        if not rules.settings_for(one.id, one.dtype).mixed_precision:
            yield "float32 on one side and float64 on the other: try --mixed-precision"
            return
