"""Judges one variable: a run's values against a golden, or against another run's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import RoundedValues, Values, is_mixed_precision
from ciwrap.base.errors import (
    CiwrapError,
    DtypeMismatchError,
    ParameterMismatchError,
    PeriodError,
    ShapeMismatchError,
)
from ciwrap.check.findings import (
    Suspects,
    with_digests,
    with_elements,
    with_other_bound,
    with_residues,
    with_roots,
    with_solved,
)
from ciwrap.check.two_sides import (
    GOLDEN,
    RUNS,
    Work,
    as_compared,
    as_dtype,
    common_dtype,
    compare_elements,
    in_dtype,
    is_strict_on,
    kept_statistics,
    not_comparable,
    read_each,
    refuse_empty,
    refuse_incompatible,
    refuse_other_labels,
    suspect_pieces,
    uncompared,
    without_statistics,
)
from ciwrap.golden.store import golden_id, golden_signature, kept_values
from ciwrap.golden.trees import (
    asked_for,
    bound_of,
    build_tree,
    describe_bound,
    has_other_classes,
    is_other_bound,
    tree_builder,
    tree_parameters,
)
from ciwrap.model import ErrorBound, Evidence, VariableId, VariableResult, VariableSettings, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels, SeriesFacts, Signature
    from ciwrap.check.two_sides import Wording


class Reference(Struct, frozen=True):
    """The side that new values are compared with: a golden, or the values of another run.

    values: of a golden, read only if elements are needed. steps: of a series out of a text; None
    if there are none, or they are not to be paired. statistics: of a golden that keeps no data, for
    bounds in their scale.
    """

    values: Values
    signature: Signature
    wording: Wording
    steps: Callable[[], SeriesFacts | None] | None = None
    golden: _core.GoldenVariable | None = None
    statistics: Mapping[str, float] | None = None


def compare_values(
    reference: Values,
    new: Values,
    settings: VariableSettings,
    identity: VariableId,
    *,
    work: Work | None = None,
    source_path: str | None = None,
    aligned_by: str | None = None,
) -> VariableResult:
    """Compares all elements of two variables; counts and indices are exact. Series out of texts are
    paired by their steps.

    Raises UsageError for settings that the dtype cannot have; whatever else keeps the two from
    being compared is a result, `not_comparable` with its reason.
    """
    result = uncompared(
        identity,
        reference.signature,
        new.signature,
        bound=settings.bound,
        evidence=Evidence.DATA,
        settings=settings,
        source_path=source_path,
        aligned_by=aligned_by,
    )
    side = Reference(reference, reference.signature, RUNS, lambda: reference.series)
    return _judged(work or Work(), result, side, new, settings)


def check_golden(
    golden: _core.GoldenVariable,
    new: Values,
    settings: VariableSettings | None,
    *,
    labels: Labels | None = None,
    steps: Callable[[], SeriesFacts] | None = None,
    work: Work | None = None,
    source_path: str | None = None,
    aligned_by: str | None = None,
) -> VariableResult:
    """Compares a run's values with a golden variable. Raises as `compare_values`.

    settings: what is asked for now, whatever bound the golden was made with. None: that bound.
    labels: those of the golden; None if it does not say. steps: what the golden knows of a series
    out of a text; None: nothing.
    """
    said = new.labels if labels is None else labels
    reference = golden_signature(golden, without_statistics(said))
    result = uncompared(
        golden_id(golden),
        reference,
        new.signature,
        bound=bound_of(golden.tree.parameters),
        evidence=Evidence(golden.evidence),
        settings=settings,
        source_path=source_path,
        aligned_by=aligned_by,
        golden_root=golden.tree.root.hex(),
    )
    values = _NoData(golden, reference) if golden.data is None else kept_values(golden)
    values.labels = reference.labels
    side = Reference(values, reference, GOLDEN, steps, golden, kept_statistics(said))
    return _judged(work or Work(), result, side, new, settings)


class _NoData(Values):
    """The values of a golden that keeps none of them."""

    def __init__(self, golden: _core.GoldenVariable, signature: Signature) -> None:
        self._evidence = golden.evidence
        self.dtype, self.shape, self.labels = signature.dtype, signature.shape, signature.labels

    def read(self, first_element: int, count: int) -> NDArray[Any]:  # noqa: ARG002
        raise ShapeMismatchError(
            f"the golden keeps its {self._evidence} alone, which cannot be compared at some steps",
            remedy="set 'evidence: data' and accept the outputs anew",
        )


def _judged(
    work: Work,
    begun_result: VariableResult,
    reference: Reference,
    new: Values,
    asked: VariableSettings | None,
) -> VariableResult:
    """asked: None for whatever the golden was made with."""
    result = begun_result
    try:
        settings = VariableSettings() if asked is None else asked
        if reference.values.is_text or new.is_text:
            return _compare_texts(work, result, reference, new, settings)
        if settings.scale is not None:
            result = replace(result, bound_scale=settings.scale.text)
            reference, new, settings = _in_scale(reference, new, settings, result.id)
            asked, result = settings, replace(result, dtype=new.dtype)
            result = replace(result, bound=settings.bound)
        counts = reference.values.element_count, new.element_count
        facts = new.series
        golden = reference.golden
        if golden is not None:
            made_with = golden.tree.parameters
            wanted = made_with if asked is None else asked_parameters(golden, asked, result.id)
            if is_other_bound(wanted, made_with):
                result = replace(result, golden_bound=describe_bound(made_with))
        if facts is not None and reference.steps is not None:
            reference, new = _paired_by_step(reference, new, facts, settings)
        if reference.signature != new.signature:
            is_strict = settings.strict_shape
            refuse_incompatible(
                reference.signature, new.signature, reference.wording, is_strict=is_strict
            )
        if settings.mask is not None:
            refuse_empty(new, settings)
        if reference.golden is None:
            result = _by_values(work, result, reference.values, new, settings)
        else:
            result = _by_golden(work, result, reference, new, settings, wanted)
        if facts is None:
            return result
        from ciwrap.check.texts import with_series

        if reference.golden is None:  # what was compared may be a part of either side
            result = replace(result, shape=tuple(new.shape), golden_shape=None)
        return with_series(result, reference.values.series, new.series or facts, counts)
    except CiwrapError as error:
        return not_comparable(result, error)


def _in_scale(
    reference: Reference, new: Values, settings: VariableSettings, identity: VariableId
) -> tuple[Reference, Values, VariableSettings]:
    """Both sides, durations as whole numbers, and the settings with their bound as a number."""
    from ciwrap.golden.scale import as_counts, in_scale_of

    golden = reference.golden
    if settings.scale is not None and settings.scale.is_duration:
        if golden is not None and golden.data is None:
            raise _needs_data(golden, settings)
        refuse_other_labels(reference.signature.labels, new.labels, reference.wording)
        new, own = as_counts(new, settings, identity)
        values, _ = as_counts(reference.values, settings, identity)
        return Reference(values, values.signature, reference.wording), new, own
    if golden is None:
        return reference, new, in_scale_of(reference.values, settings, identity)
    return reference, new, in_scale_of_golden(golden, reference.statistics, settings)


def in_scale_of_golden(
    golden: _core.GoldenVariable,
    statistics: Mapping[str, float] | None,
    settings: VariableSettings,
) -> VariableSettings:
    """The settings with their bound as a number, in the scale of a golden. statistics: those that
    are kept with it. Raises ParameterMismatchError if nothing tells them, and as `in_scale_of`.
    """
    if settings.scale is None:
        return settings
    if settings.scale.is_duration:  # trees of durations are exact
        return settings.with_bound(ErrorBound())
    from ciwrap.golden.scale import in_scale, in_scale_of

    identity = golden_id(golden)
    if golden.data is not None:
        return in_scale_of(kept_values(golden), settings, identity)
    if statistics is None:
        raise ParameterMismatchError(
            f"atol: {settings.scale.text} is asked for, and the golden keeps its {golden.evidence}"
            " without the statistics of its numbers",
            remedy="give atol as a number, or accept the outputs anew",
        )
    return in_scale(settings, statistics, identity)


def _compare_texts(
    work: Work,
    result: VariableResult,
    reference: Reference,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    from ciwrap.check.texts import check_golden_text, compare_texts

    golden = reference.golden
    refuse_other_labels(reference.signature.labels, new.labels, reference.wording)
    if golden is None:
        return compare_texts(work, result, reference.values, new, settings, reference.wording)
    in_dtype(new, reference.signature.dtype, GOLDEN, is_strict=True)
    kept = None if golden.data is None else reference.values
    return check_golden_text(work, result, golden, kept, new, settings)


def _paired_by_step(
    reference: Reference,
    new: Values,
    facts: SeriesFacts,
    settings: VariableSettings,
) -> tuple[Reference, Values]:
    """Both sides of a series out of a text with the elements that belong together."""
    ours = None if reference.steps is None else reference.steps()
    if ours is None:
        return reference, new
    from ciwrap.check.texts import in_step

    values, new = in_step(reference.values, ours, new, facts, settings, reference.wording)
    if values is reference.values:
        return reference, new
    return Reference(values, values.signature, reference.wording), new


def asked_parameters(
    golden: _core.GoldenVariable, settings: VariableSettings, identity: VariableId
) -> _core.TreeParameters:
    """What is asked for now, in chunks as the golden has them.

    Raises ParameterMismatchError if NaN or fill values count otherwise than in the digests of a
    golden that keeps no data, for these know no number from another one then.
    """
    made_with = golden.tree.parameters
    asked = asked_for(made_with, settings, identity)
    if golden.data is None and has_other_classes(asked, made_with):
        raise ParameterMismatchError(
            f"the golden was made with {describe_bound(made_with)}, but {describe_bound(asked)}"
            f" is asked for, and it keeps its {golden.evidence} alone",
            remedy="accept the outputs anew with these settings, or restore the old ones",
        )
    return asked


def _by_golden(
    work: Work,
    result: VariableResult,
    reference: Reference,
    new: Values,
    settings: VariableSettings,
    asked: _core.TreeParameters,
) -> VariableResult:
    """By the golden's tree, and by its data if it has them.

    Digests and residues are of the values as they were. What has to be seen otherwise (on a circle,
    under a combined bound, with another sign, in another precision) needs the golden's data, or is
    not comparable.
    """
    golden = reference.golden
    assert golden is not None
    parameters = golden.tree.parameters
    is_mixed = settings.mixed_precision and is_mixed_precision(parameters.dtype, new.dtype)
    is_cut = is_mixed and parameters.dtype[1:] == "f8"
    common = None if is_mixed else common_dtype(reference.values, new, settings)
    needs_data = bool(settings.period) or settings.combine != "sum" or is_cut
    needs_data |= settings.up_to_sign != "none"
    # Without its data, only what the golden's own type holds can be compared with it.
    needs_data |= common not in (None, parameters.dtype) and golden.data is not None
    if is_mixed and not needs_data:
        new = RoundedValues(new, parameters.dtype)
    elif not needs_data and common is not None:
        new = as_dtype(new, parameters.dtype)
    elif not needs_data and new.dtype != parameters.dtype:
        new = in_dtype(new, parameters.dtype, GOLDEN, is_strict=is_strict_on(settings))
    if needs_data and golden.data is None:
        raise _needs_data(golden, settings)
    if needs_data:
        return _by_values(work, result, reference.values, new, settings)
    if golden.data is None:
        return _by_tree(work, result, golden, new, asked)
    tree = golden.tree if asked == parameters else None
    return _by_elements(work, result, reference.values, new, asked, tree)


def _needs_data(golden: _core.GoldenVariable, settings: VariableSettings) -> CiwrapError:
    """Why a golden without its data cannot be compared as the settings ask."""
    kept = f"the golden keeps its {golden.evidence} alone, which cannot be compared"
    remedy = "set 'evidence: data' and accept the outputs anew"
    if settings.combine != "sum":
        return ParameterMismatchError(f"{kept} with 'combine: {settings.combine}'", remedy=remedy)
    if settings.scale is not None:
        return ParameterMismatchError(f"{kept} within {settings.scale.text}", remedy=remedy)
    if settings.up_to_sign != "none":
        return ParameterMismatchError(f"{kept} up to its sign", remedy=remedy)
    if settings.period:
        return PeriodError(f"{kept} modulo a period", remedy=remedy)
    return DtypeMismatchError(
        f"the golden keeps the {golden.evidence} of float64 values, which float32 values cannot be"
        " compared with",
        remedy="accept the float32 outputs, or set 'evidence: data' and accept anew",
    )


def _by_values(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    reference, new, settings = as_compared(reference, new, settings)
    result = replace(result, flipped_count=new.flipped_count)
    if settings.combine != "sum":  # which a period is refused beside
        from ciwrap.check.other_bounds import compare_combined

        return compare_combined(work, result, reference, new, settings)
    if settings.period:
        from ciwrap.check.other_bounds import Circle

        return Circle(reference.dtype, tuple(reference.shape), settings).compare(
            work, result, reference, new
        )
    parameters = tree_parameters(reference.dtype, settings, variable=result.id.text)
    return _by_elements(work, result, reference, new, parameters, None)


def _by_elements(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    parameters: _core.TreeParameters,
    reference_tree: _core.Tree | None,
) -> VariableResult:
    """Every element is compared, and both trees are built on the way: they hold each other.

    reference_tree: the reference's, if there is one already.
    """
    shape = tuple(reference.shape)
    ours = []
    if reference_tree is None:
        ours = [tree_builder(parameters, reference, work.resources)]
    theirs = tree_builder(parameters, new, work.resources, reference_tree)
    comparison = compare_elements(
        work, parameters, reference, new, reference_trees=ours, new_trees=[theirs]
    )
    tree = theirs.finish()
    if reference_tree is None:
        reference_tree = ours[0].finish()
    suspects = Suspects(_core.diff_trees(reference_tree, tree), reference_tree.leaf_count)
    _core.check_deciders(parameters, comparison, suspects.leaves)

    def read_both(first: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return reference.read(first, count).reshape(-1), new.read(first, count).reshape(-1)

    def pieces() -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        for first, count in suspect_pieces(parameters, reference, suspects.leaves):
            yield (first, *read_both(first, count))

    result = with_elements(
        with_roots(result, reference_tree.root, tree.root, new),
        comparison,
        parameters,
        shape,
        suspects,
        all_compared=True,
        read_elements=lambda flats: read_each(read_both, flats),
    )
    if work.explain is None or result.verdict is Verdict.MATCH:
        return result
    return work.explain().elements(
        result, comparison, suspects.leaves, reference_tree, shape, pieces, read_both
    )


def _by_tree(
    work: Work,
    result: VariableResult,
    golden: _core.GoldenVariable,
    new: Values,
    asked: _core.TreeParameters,
) -> VariableResult:
    """Digests only; with residues the new run is rounded relative to the golden one.

    The new tree is made as the golden's was, and judged by the bound that is asked for.
    """
    parameters = golden.tree.parameters
    built = build_tree(
        parameters, new, resources=work.resources, golden=golden.tree, progress=work.progress
    )
    tree, drift = built.tree, built.drift
    work.engine = built.engine or work.engine
    changed = _core.diff_trees(golden.tree, tree)
    result = with_roots(result, golden.tree.root, tree.root, new)
    if golden.evidence == "residues":
        result = with_residues(result, parameters)
    shape = tuple(golden.shape)
    least = None
    if changed.size:
        from ciwrap.check.solve import chunk_means, least_shares

        least = least_shares(golden, new, changed)
    suspects = Suspects(changed, golden.tree.leaf_count, least)
    if result.golden_bound is None:
        result = with_digests(result, parameters, shape, suspects, drift=drift)
    else:
        result, suspects = with_other_bound(result, asked, parameters, shape, suspects, drift)
    if not suspects.leaves.size:
        return result
    from ciwrap.check.solve import solve_chunks

    if work.explain is not None:
        means = None if least is None else chunk_means(golden, changed, least)
        result = work.explain().chunks(result, suspects.leaves, golden.tree, shape, new, means)
    return with_solved(result, solve_chunks(golden.tree, new, changed, shape, asked))
