"""One variable, both sides at hand: a run's values against a golden, or against another run's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.convert import RoundedValues, is_mixed_precision
from ciwrap.arrays.values import Values
from ciwrap.compare.elements import compare_elements
from ciwrap.compare.findings import (
    Suspects,
    with_digests,
    with_elements,
    with_residues,
    with_roots,
    with_solved,
)
from ciwrap.compare.fit import (
    GOLDEN,
    RUNS,
    in_dtype,
    in_one_dtype,
    refuse_empty,
    refuse_misfit,
    refuse_other_labels,
)
from ciwrap.compare.law import begun, not_comparable
from ciwrap.compare.parts import read_each, suspect_pieces
from ciwrap.compare.work import Work
from ciwrap.errors import (
    CiwrapError,
    DtypeMismatchError,
    ParameterMismatchError,
    PeriodError,
    ShapeMismatchError,
)
from ciwrap.golden.variables import golden_id, golden_signature, kept_values
from ciwrap.model import Evidence, VariableId, VariableResult, VariableSettings
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of, describe_bound
from ciwrap.trees.build import build_tree, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ciwrap.arrays.series import SeriesFacts
    from ciwrap.arrays.values import Labels
    from ciwrap.compare.details import Drawn


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
    result = begun(
        identity,
        reference.signature,
        new.signature,
        bound=settings.bound,
        evidence=Evidence.DATA,
        settings=settings,
        source_path=source_path,
        aligned_by=aligned_by,
    )
    ours, theirs = reference.series, new.series
    counts = reference.element_count, new.element_count
    try:
        if reference.is_text or new.is_text:
            from ciwrap.compare.texts import compare_texts

            refuse_other_labels(reference.labels, new.labels, RUNS)
            return compare_texts(work or Work(), result, reference, new, settings, RUNS)
        if ours is not None and theirs is not None:
            from ciwrap.compare.series import in_step

            reference, new = in_step(reference, ours, new, theirs, settings, RUNS)
        if reference.signature != new.signature:
            refuse_misfit(reference.signature, new.signature, RUNS, is_strict=settings.strict_shape)
        if settings.mask is not None:
            refuse_empty(new, settings)
        result = _by_values(work or Work(), result, reference, new, settings)
        if new.series is None:
            return result
        from ciwrap.compare.series import with_series

        return with_series(_fitted(result, new), reference.series, new.series, counts)
    except CiwrapError as error:
        return not_comparable(result, error)


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
    """Compares a run's values with a golden variable.

    settings: what is asked for now; a golden made with another bound is not comparable. None:
    whatever the golden was made with. labels: those of the golden; None if it does not say. steps:
    what the golden knows of a series out of a text; None: nothing, and they are not asked for.
    Raises UsageError for settings that the dtype cannot have; whatever else keeps the two from
    being compared is a result, `not_comparable` with its reason.
    """
    work = work or Work()
    reference = golden_signature(golden, new.labels if labels is None else labels)
    result = begun(
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
    facts, count = new.series, new.element_count
    try:
        if new.is_text or reference.is_text:
            refuse_other_labels(reference.labels, new.labels, GOLDEN)
            in_dtype(new, reference.dtype, GOLDEN, is_strict=True)
            kept = None if golden.data is None else kept_values(golden)
            plain = VariableSettings() if settings is None else settings
            from ciwrap.compare.texts import check_golden_text

            return check_golden_text(work, result, golden, kept, new, plain)
        if facts is not None and steps is not None and settings is not None:
            from ciwrap.compare.series import in_step, with_series

            ours = _Counted(golden, reference.labels)
            chosen = in_step(ours, steps(), new, facts, settings, GOLDEN)
            paired = None if chosen[0] is ours else chosen
            if paired is not None:
                refuse_other_parameters(golden, settings, result.id)
                result = _by_values(work, result, *paired, settings)
                result = _fitted(result, paired[1])
                counts = (math.prod(golden.shape), count)
                return with_series(result, None, paired[1].series or facts, counts)
        if reference != new.signature:
            is_strict = settings is None or settings.strict_shape
            refuse_misfit(reference, new.signature, GOLDEN, is_strict=is_strict)
        if settings is not None and settings.mask is not None:
            refuse_empty(new, settings)
        if settings is not None and not settings.is_plain:
            result = _check_otherwise(work, result, golden, new, settings)
        else:
            result = _check_plainly(work, result, golden, new, settings)
        if facts is None:
            return result
        from ciwrap.compare.series import with_series

        return with_series(result, None, facts, (count, count))
    except CiwrapError as error:
        return not_comparable(result, error)


class _Counted(Values):
    """A golden's values, which are asked for only if they are needed."""

    def __init__(self, golden: _core.GoldenVariable, labels: Labels) -> None:
        self._golden = golden
        self.labels = labels
        self.dtype = golden.tree.parameters.dtype
        self.shape = tuple(golden.shape)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        if self._golden.data is None:
            raise ShapeMismatchError(
                f"the golden keeps its {self._golden.evidence} alone, which cannot be compared at"
                " some steps",
                remedy="set 'evidence: data' and accept the outputs anew",
            )
        return kept_values(self._golden).read(first_element, count)


def _fitted(result: VariableResult, compared: Values) -> VariableResult:
    """The result, of the shape that was compared."""
    return replace(result, shape=tuple(compared.shape), golden_shape=None)


def refuse_other_parameters(
    golden: _core.GoldenVariable, settings: VariableSettings, identity: VariableId
) -> None:
    """Raises ParameterMismatchError if the golden was made with another bound than is asked for."""
    made_with = golden.tree.parameters
    asked = tree_parameters(
        made_with.dtype,
        settings,
        residue_levels=made_with.requested_residue_levels,
        chunk_bytes=made_with.chunk_bytes,
        arity=made_with.arity,
        variable=identity.text,
    )
    if asked != made_with:
        raise ParameterMismatchError(
            f"the golden was made with {describe_bound(made_with)}, but {describe_bound(asked)}"
            " is asked for",
            remedy="accept the outputs anew with this bound, or restore the old one",
        )


def _check_plainly(
    work: Work,
    result: VariableResult,
    golden: _core.GoldenVariable,
    new: Values,
    settings: VariableSettings | None,
) -> VariableResult:
    dtype = golden.tree.parameters.dtype
    if new.dtype != dtype:
        new = in_dtype(new, dtype, GOLDEN, is_strict=settings is None or settings.strict_dtype)
    if settings is not None:
        refuse_other_parameters(golden, settings, result.id)
    if golden.data is None:
        return _by_tree(work, result, golden, new)
    return _by_elements(work, result, kept_values(golden), new, golden.tree.parameters, golden.tree)


def _check_otherwise(
    work: Work,
    result: VariableResult,
    golden: _core.GoldenVariable,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    """On a circle, or in another precision.

    Digests and residues are of the values as they were. What has to be seen otherwise needs the
    golden's data, or is not comparable.
    """
    made_of = golden.tree.parameters.dtype
    is_mixed = settings.mixed_precision and is_mixed_precision(made_of, new.dtype)
    if not settings.period and not is_mixed and settings.combine == "sum":
        return _check_plainly(work, result, golden, new, settings)
    if is_mixed and made_of[1:] == "f4" and not settings.period and settings.combine == "sum":
        return _check_plainly(work, result, golden, RoundedValues(new, made_of), settings)
    refuse_other_parameters(golden, settings, result.id)
    if golden.data is None and settings.combine != "sum":
        raise ParameterMismatchError(
            f"the golden keeps its {golden.evidence} alone, which cannot be compared with"
            f" 'combine: {settings.combine}'",
            remedy="set 'evidence: data' and accept the outputs anew",
        )
    if golden.data is None and settings.period:
        raise PeriodError(
            f"the golden keeps its {golden.evidence} alone, which cannot be compared modulo a"
            " period",
            remedy="set 'evidence: data' and accept the outputs anew",
        )
    if golden.data is None:
        raise DtypeMismatchError(
            f"the golden keeps the {golden.evidence} of float64 values, which float32 values"
            " cannot be compared with",
            remedy="accept the float32 outputs, or set 'evidence: data' and accept anew",
        )
    return _by_values(work, result, kept_values(golden), new, settings)


def _by_values(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    reference, new, settings = in_one_dtype(reference, new, settings)
    if settings.combine != "sum":  # which a period is refused beside
        from ciwrap.compare.combined import compare_combined

        return compare_combined(work, result, reference, new, settings)
    if settings.period:
        from ciwrap.compare.circle import Circle

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
    ours = [] if reference_tree is not None else [_builder(work, parameters, reference)]
    theirs = _builder(work, parameters, new, reference_tree)
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

    def draw() -> Drawn:
        from ciwrap.compare.details import element_details

        return element_details(
            comparison,
            suspects.leaves,
            reference_tree,
            shape,
            pieces,
            read_both,
            with_pictures=work.with_pictures,
        )

    return with_elements(
        with_roots(result, reference_tree.root, tree.root, new),
        comparison,
        parameters,
        shape,
        suspects,
        all_compared=True,
        read_elements=lambda flats: read_each(read_both, flats),
        draw=draw if work.with_details else None,
    )


def _by_tree(
    work: Work, result: VariableResult, golden: _core.GoldenVariable, new: Values
) -> VariableResult:
    """Digests only; with residues the new run is rounded relative to the golden one."""
    from ciwrap.compare.solve import solve_chunks

    parameters = golden.tree.parameters
    tree, drift, engine = build_tree(
        parameters, new, resources=work.resources, golden=golden.tree, progress=work.progress
    )
    work.engine = engine or work.engine
    suspects = Suspects(_core.diff_trees(golden.tree, tree), golden.tree.leaf_count)
    result = with_roots(result, golden.tree.root, tree.root, new)
    if golden.evidence == "residues":
        result = with_residues(result, parameters)
    shape = tuple(golden.shape)
    result = with_digests(result, parameters, shape, suspects, tree=golden.tree, drift=drift)
    if not suspects.leaves.size:
        return result
    from ciwrap.compare.new_values import new_values_of
    from ciwrap.compare.pictures import make_new_picture

    result = replace(result, new_values=new_values_of(parameters, new, suspects.leaves))
    if result.details is not None:
        picture = make_new_picture(
            parameters, shape, suspects.leaves, lambda *piece: new.read(*piece).reshape(-1)
        )
        result = replace(result, details=replace(result.details, picture=picture))
    return with_solved(result, solve_chunks(golden.tree, new, suspects.leaves, shape))


def _builder(
    work: Work,
    parameters: _core.TreeParameters,
    values: Values,
    golden: _core.Tree | None = None,
) -> _core.TreeBuilder:
    device = values.device
    return _core.TreeBuilder(
        parameters,
        values.element_count * parameters.scalars_per_element,
        golden=golden,
        backend=work.resources.backend if device is None else device.backend,
        threads=work.resources.threads,
    )
