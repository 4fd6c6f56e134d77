"""What explains differences over all variables, checkpoints and ranks of a check; what to try next.

What it uses itself is loaded only where something differs. Read first `explainer`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Signature
from ciwrap.base.errors import CiwrapError
from ciwrap.base.late import numpy as np
from ciwrap.base.patterns import with_counters
from ciwrap.explain.difference import of_atol
from ciwrap.golden.store import kept_values
from ciwrap.golden.trees import build_tree
from ciwrap.model import Verdict, two_digits_above
from ciwrap.model.variable_result import FAR_BEYOND, MOST_EXPLANATIONS, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.check.two_sides import Explainer, Findings, Pieces, ReadBoth
    from ciwrap.formats.catalog import Catalog, Rules
    from ciwrap.model import VariableId, VariableResult


def explainer() -> Explainer:
    """Of results that reports draw."""
    return _Explainer()


def explainer_without_pictures() -> Explainer:
    """Of results of which nothing is drawn."""
    return _Explainer(with_pictures=False)


class _Explainer(Struct, frozen=True):
    """As `ciwrap.check.two_sides.Explainer`."""

    with_pictures: bool = True

    def elements(
        self,
        result: VariableResult,
        comparison: _core.Comparison,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        pieces: Pieces,
        read: ReadBoth,
    ) -> VariableResult:
        from ciwrap.explain.pictures import element_details

        return element_details(
            result,
            comparison,
            leaves,
            tree,
            shape,
            pieces,
            read,
            with_pictures=self.with_pictures,
        )

    def chunks(
        self,
        result: VariableResult,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        new: Values,
        means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> VariableResult:
        from ciwrap.explain.pictures import (
            make_means_picture,
            make_new_picture,
            new_values_of,
            suspect_details,
        )

        parameters = tree.parameters
        picture = make_new_picture(
            parameters, shape, leaves, lambda *piece: new.read(*piece).reshape(-1)
        )
        details = suspect_details(leaves, tree, shape, new.element_count)
        result = replace(
            result,
            new_values=new_values_of(parameters, new, leaves),
            details=replace(details, picture=picture),
        )
        if means is None or result.details is None:
            return result
        from ciwrap.explain.hypotheses import by_means

        drawn = make_means_picture(parameters, shape, leaves, means)
        # Each side is known to within its bound, and so is what rounds it.
        slack = 4 * max(parameters.atol, 1.0 if parameters.kind == "steps" else 0.0)
        return replace(
            result,
            explanations=(
                *result.explanations,
                *by_means(means[0][leaves], means[1][leaves], slack),
            ),
            details=replace(result.details, means=drawn),
        )

    def together(
        self,
        results: list[VariableResult],
        gone: Collection[VariableId],
        extra: Collection[VariableId],
    ) -> list[VariableResult]:
        from ciwrap.explain.over_time import with_growth, with_stopped

        results = with_id_named(with_one_rank(with_growth(with_one_bound(results))))
        return with_stopped(results, gone, extra)

    def from_elsewhere(
        self,
        results: list[VariableResult],
        golden: Mapping[VariableId, _core.GoldenVariable],
        outputs: Catalog,
        judge: Callable[[VariableResult, VariableId], VariableResult],
    ) -> None:
        at = first_difference(results)
        if at is not None:
            from ciwrap.explain.swapped import say_swapped

            first = results[at] = _without_values(results[at], golden, outputs)
            results[at] = with_other_iteration(first, golden, lambda other: judge(first, other))
            say_swapped(results, judge)
        explain_ranks(results, lambda first: parts_of_golden(golden, outputs, first))


def _without_values(
    first: VariableResult,
    golden: Mapping[VariableId, _core.GoldenVariable],
    outputs: Catalog,
) -> VariableResult:
    """The result, which says what a golden without data shows of its numbers all the same."""
    kept = golden.get(first.id)
    is_plain = first.text is None and first.aligned_by is None and first.mask is None
    if kept is None or kept.data is not None or not is_plain or not first.suspect_chunks:
        return first
    from ciwrap.explain.by_residues import by_residues, nan_box

    tree, shape = kept.tree, tuple(kept.shape)
    try:
        values = outputs.values(first.id)
        if values.dtype != tree.parameters.dtype or tuple(values.shape) != shape:
            return first
        leaves = _core.diff_trees(tree, build_tree(tree.parameters, values, golden=tree).tree)
        new = values.read(0, values.element_count).reshape(shape)
    except CiwrapError:  # the result tells of it
        return first
    known = [one for one in first.explanations if one.cause is Cause.ALL_NAN]
    if known:
        told: Explanation | None = replace(known[0], words=nan_box(tree, new, leaves))
    else:
        told = by_residues(tree, new, leaves)
    # What the means show is the same in fewer words, or a part of it.
    return first if told is None else replace(first, explanations=(told,))


_BOUNDS = (Cause.WIDER_BOUND, Cause.NEAR_ZERO)
# So many times the bound of the one checkpoint would hide what moved in another.
_MOST_TIMES = 10.0


def with_one_bound(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; where one says that all of it would match with an atol, it is one for all
    checkpoints of its variable. It is left out where some checkpoint is not known to match with
    any, or is so far off that a bound would hide it.
    """
    by_name: dict[str, list[int]] = {}
    for at, one in enumerate(results):
        if one.verdict.is_alarm:
            by_name.setdefault(one.name, []).append(at)
    found = list(results)
    for places in by_name.values():
        if len(places) < 2:
            continue
        needed = max(_needed(results[at]) for at in places)
        for at in places:
            told = results[at].explanations
            if any(one.cause in _BOUNDS for one in told):
                bound = results[at].bound
                rtol = 0.0 if bound is None else bound.rtol
                shown = (_with_bound(one, needed, rtol) for one in told)
                explanations = tuple(one for one in shown if one is not None)
                found[at] = replace(results[at], explanations=explanations)
    return found


def _needed(result: VariableResult) -> float:
    """An atol with which a checkpoint surely matches; infinite if there is none to be told. Worked
    out of what is known of each, whether or not it was looked at again.
    """
    lost = (
        result.nan_mismatch_count,
        result.inf_mismatch_count,
        result.missing_mismatch_count,
    )
    size, share = result.max_abs_difference, result.max_bound_share
    is_exact = result.bound is None or result.bound.is_exact
    is_far = not is_exact and share is not None and share > FAR_BEYOND
    return math.inf if not size or any(lost) or is_far else two_digits_above(size)


def _with_bound(one: Explanation, atol: float, rtol: float) -> Explanation | None:
    if one.cause not in _BOUNDS:
        return one
    is_told = math.isfinite(atol)
    if not is_told or not one.values or atol > _MOST_TIMES * one.values[0]:
        is_near = one.cause is Cause.NEAR_ZERO
        return replace(one, values=(), remedy=None) if is_near else None
    return one if atol <= one.values[0] else _of_atol(one, atol, rtol)


def _of_atol(one: Explanation, atol: float, rtol: float) -> Explanation:
    return replace(one, values=(atol,), remedy=of_atol(atol, rtol))


# Of two ranks, one is half of all.
_FEWEST_RANKS = 3


def with_one_rank(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; the first of a variable that differs on one rank alone says so."""
    by_name: dict[str, list[int]] = {}
    for at, one in enumerate(results):
        if one.rank is not None:
            by_name.setdefault(one.name, []).append(at)
    found = list(results)
    for places in by_name.values():
        ranks = {results[at].rank for at in places}
        bad = [at for at in places if results[at].verdict.is_alarm]
        hit = {results[at].rank for at in bad}
        if len(ranks) < _FEWEST_RANKS or len(hit) != 1:
            continue
        # Nobody knows on which rank a variable differs that is undecided or could not be compared.
        known = {results[at].verdict for at in places}
        if known != {Verdict.MATCH, Verdict.DIFFER}:
            continue
        at = min(bad, key=lambda one: results[one].id.sort_key)
        (rank,) = hit
        count = results[at].differing_count or results[at].element_count or 0
        told = Explanation(
            Cause.ONE_RANK, count, count, values=(float(rank or 0), float(len(ranks)))
        )
        causes = (*results[at].explanations[: MOST_EXPLANATIONS - 1], told)
        found[at] = replace(results[at], explanations=causes)
    return found


# What may be read once more of each side for the first difference.
MOST_BYTES = 32 << 20
# One or two numbers are those of another iteration by chance.
_FEWEST_ELEMENTS = 3


def first_difference(results: Sequence[VariableResult]) -> int | None:
    """Where the earliest one that differs stands; None if there is none, or it is large."""
    found = [
        at
        for at, one in enumerate(results)
        if one.verdict.is_alarm and one.text is None and one.series is None
    ]
    at = min(found, key=lambda one: results[one].id.time_key, default=None)
    return None if at is None or (results[at].byte_count or 0) > MOST_BYTES else at


def with_other_iteration(
    result: VariableResult,
    known: Iterable[VariableId],
    judge: Callable[[VariableId], VariableResult],
) -> VariableResult:
    """The result, which says so if its numbers are those of the iteration before or after.

    known: variables of the reference. judge: compares this one of them with the new numbers.
    """
    mine = result.id
    if mine.iteration is None or (result.element_count or 0) < _FEWEST_ELEMENTS:
        return result
    same = [one for one in known if (one.name, one.rank) == (mine.name, mine.rank)]
    ordered = sorted((one for one in same if one.iteration is not None), key=_iteration)
    if mine not in ordered:
        return result
    at = ordered.index(mine)
    for other in (*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2]):
        if judge(other).verdict is Verdict.MATCH:
            count = result.differing_count or result.element_count or 0
            told = Explanation(
                Cause.OTHER_ITERATION, count, count, values=(float(_iteration(other)),)
            )
            rest = [one for one in result.explanations if one.cause is not Cause.WIDER_BOUND]
            return replace(result, explanations=(told, *rest)[:MOST_EXPLANATIONS])
    return result


def _iteration(one: VariableId) -> int:
    assert one.iteration is not None
    return one.iteration


if TYPE_CHECKING:
    # The values of a variable on each rank; what is not at hand is left out.
    Parts = Iterable[tuple[VariableId, Values]]
    PartsOf = Callable[[VariableResult], tuple[Parts, Parts]]  # golden, new


def explain_ranks(results: list[VariableResult], parts_of: PartsOf) -> None:
    """Says of what does not match first if both sides have it on other ranks.

    parts_of: all variables of the name and iteration of a result, of both sides.
    """
    bad = [
        at
        for at, one in enumerate(results)
        if one.verdict is not Verdict.MATCH and one.rank is not None and not one.aligned_by
    ]
    at = min(bad, key=lambda one: results[one].id.time_key, default=None)
    if at is None or results[at].text is not None or results[at].series is not None:
        return
    from ciwrap.explain.moved import arrays_of_ranks, other_decomposition

    first = results[at]
    try:
        golden, new = (arrays_of_ranks(parts, MOST_BYTES) for parts in parts_of(first))
    except CiwrapError:  # the result tells of it
        return
    if not golden or not new:
        return
    told = other_decomposition(golden, new, first.bound)
    if told is not None:
        rest = [one for one in first.explanations if one.cause is not Cause.WIDER_BOUND]
        results[at] = replace(first, explanations=(told, *rest)[:MOST_EXPLANATIONS])


def parts_of_golden(
    variables: Mapping[VariableId, _core.GoldenVariable], catalog: Catalog, first: VariableResult
) -> tuple[Parts, Parts]:
    """The variable of a result on every rank, as the golden has kept it and as the outputs have."""
    kept = (
        (identity, kept_values(golden))
        for identity, golden in variables.items()
        if is_part(identity, first) and golden.data is not None
    )
    new = (
        (identity, catalog.values(identity))
        for identity in catalog.entries
        if is_part(identity, first)
    )
    return kept, new


def is_part(identity: VariableId, first: VariableResult) -> bool:
    """Whether it is the variable of a result on some rank."""
    return (identity.name, identity.iteration) == (first.name, first.iteration)


# What variables that number the rows of others are called.
_ID_NAME = re.compile(r"(?:.*[/._])?(?:particle_?|atom_?|cell_?|global_?|g|p)?(?:id|ids|tag|tags)")
# What variables that say where the rows of others are may be called.
_POINTS_NAME = re.compile(r"(?:.*[/._])?(?:points?|positions?|coordinates|nodes)")
_MOST_ID_BYTES = 8 << 20
_FLOATS = {"f4", "f8"}


def hints(findings: Findings, rules: Rules, parts_of: PartsOf) -> list[str]:
    """A sentence for each remedy that would help, as far as that is known without much reading.

    parts_of: as in `explain_ranks`.
    """
    found = (
        *_other_names(findings),
        *_counting_folders(findings),
        *_moved_rows(findings),
        *_other_order(findings, parts_of),
        *_other_precision(findings, rules),
    )
    return [f"hint: {text}" for text in found]


def _other_names(findings: Findings) -> Iterator[str]:
    """All names of one run differ from those of the other in one part, as a job's number does."""
    if findings.results or not findings.missing or not findings.extra:
        return
    ours = {one.name for one in findings.missing}
    theirs = {one.name for one in findings.extra}
    for mine in sorted(_common_parts(ours)):
        for other in sorted(_common_parts(theirs)):
            if mine == other:
                continue
            if {_without(name, mine) for name in ours} == {_without(n, other) for n in theirs}:
                # A layout takes the place of the one by which folders tell iterations and ranks.
                is_flat = all(one.iteration is one.rank is None for one in findings.missing)
                example = _layout({_without(name, mine) for name in ours}) if is_flat else None
                such_as = f", such as {example!r}" if example else ""
                yield (
                    f"all names differ in one part, {mine!r} in A and {other!r} in B; write {{*}}"
                    f" for it in --layout{such_as}: it is left out of names"
                )
                return


def _counting_folders(findings: Findings) -> Iterator[str]:
    """All files lie in folders that count iterations or ranks, and no layout has said so."""
    layouts: set[str] = set()
    for one in findings.results:
        *folders, _ = one.name.split("/")
        parts = with_counters(folders)
        _, is_path, suffix = f"/{one.source_path}".rpartition(f"/{one.name}.")
        if not is_path or parts == folders or one.iteration is not None or one.rank is not None:
            return
        layouts.add("/".join([*parts, "{name}." + suffix]))
    if len(findings.results) > 1 and len(layouts) == 1:
        yield (
            f"folders are numbered as iterations or ranks: --layout {layouts.pop()!r} compares each"
            " variable along them"
        )


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


def _moved_rows(findings: Findings) -> Iterator[str]:
    """Other numbers of rows on each rank, equal sums of them, and an id that names the rows."""
    sums: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    for one in findings.results:
        if one.rank is not None and one.shape:
            reference = one.golden_shape or one.shape
            sums.setdefault((one.name, one.iteration), []).append((reference[0], one.shape[0]))
    moved = [
        key
        for key, rows in sums.items()
        if any(mine != other for mine, other in rows)
        and sum(mine for mine, _ in rows) == sum(other for _, other in rows)
    ]
    names = sorted({one.name for one in findings.results if _is_id(one)})
    if moved and names:
        yield (
            "rows have moved between ranks, whose sums are equal: try --align-by"
            f" {names[0]} --across-ranks"
        )


def _is_id(one: VariableResult) -> bool:
    is_whole = one.dtype is not None and one.dtype[1] in "iu"
    return is_whole and len(one.shape or ()) == 1 and _ID_NAME.fullmatch(one.name) is not None


def _is_points(one: VariableResult) -> bool:
    is_real = one.dtype is not None and one.dtype[1] == "f"
    return is_real and len(one.shape or ()) == 2 and _POINTS_NAME.fullmatch(one.name) is not None


def _other_order(findings: Findings, parts_of: PartsOf) -> Iterator[str]:
    """Coordinates, or an id, that hold the same values in another order."""
    for is_kind in (_is_points, _is_id):
        for one in findings.results:
            is_small = (one.byte_count or 0) <= _MOST_ID_BYTES
            is_moved = one.verdict is Verdict.DIFFER and not one.aligned_by
            if is_moved and is_small and is_kind(one):
                if _are_same_values(one, parts_of):
                    yield (
                        f"{one.name} holds the same values in another order: try --align-by"
                        f" {one.name}"
                    )
                    return
                break


def with_id_named(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; where rows stand in another order and their coordinates or an id do so as well,
    the remedy names these instead of leaving that to the reader.
    """
    moved = [one for one in results if _order_of(one) is not None]
    for is_kind in (_is_points, _is_id):
        rows = {one.name: (one.shape or (0,))[0] for one in moved if is_kind(one)}
        if len(rows) == 1:
            ((name, count),) = rows.items()
            # VTK's cells are paired by their points.
            cells = f"{name.removesuffix('points')}cell" if is_kind is _is_points else name
            return [
                _with_remedy(one, told, f"align_by: {name}")
                if (told := _order_of(one)) is not None
                and ((one.shape or (0,))[0] == count or one.name.startswith(cells))
                else one
                for one in results
            ]
    return list(results)


def _order_of(one: VariableResult) -> Explanation | None:
    found = (told for told in one.explanations if told.cause is Cause.OTHER_ORDER)
    return next(found, None)


def _with_remedy(one: VariableResult, explanation: Explanation, remedy: str) -> VariableResult:
    named = replace(explanation, remedy=remedy)
    explanations = tuple(named if other is explanation else other for other in one.explanations)
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


def _other_precision(findings: Findings, rules: Rules) -> Iterator[str]:
    for one in findings.results:
        kinds = {dtype[1:] for dtype in (one.golden_dtype, one.dtype) if dtype is not None}
        if one.verdict is not Verdict.NOT_COMPARABLE or kinds != _FLOATS or one.dtype is None:
            continue
        if not rules.settings_for(one.id, Signature(one.dtype, one.shape or ())).mixed_precision:
            yield "float32 on one side and float64 on the other: try --mixed-precision"
            return
