"""One variable of a new run against its golden: the verdict, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap import _core
from ciwrap.arrays.convert import ConvertedValues
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.details import element_details, suspect_details
from ciwrap.compare.parts import (
    MOST_ELEMENTS,
    MOST_INDICES,
    judged_elements,
    read_each,
    statistics,
    suspect_pieces,
    suspect_ranges,
    to_index,
)
from ciwrap.errors import (
    CiwrapError,
    DtypeMismatchError,
    ExitCode,
    ParameterMismatchError,
    ShapeMismatchError,
    one_line,
)
from ciwrap.model import Evidence, VariableId, VariableResult, Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.bounds import bound_of, describe_bound, suspect_is_proof
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources, build_tree, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.compare.parts import ReadElements
    from ciwrap.model import VariableSettings
    from ciwrap.progress import Progress


@dataclass(frozen=True, slots=True)
class Compared:
    """A result, and the engine that read the file (None if none did)."""

    result: VariableResult
    engine: str | None = None


def golden_id(golden: _core.GoldenVariable) -> VariableId:
    """Which variable of which checkpoint a golden's variable is."""
    return VariableId(golden.name, golden.iteration, golden.rank)


def reason_of(error: CiwrapError) -> str:
    """An error as a variable's reason: file, message, remedy, but not the variable once more."""
    text = f"{error.file}: {error.message}" if error.file else error.message
    return one_line(f"{text}; {error.remedy}" if error.remedy else text)


def not_comparable(identity: VariableId, reason: str, **facts: Any) -> VariableResult:
    """The result of a variable that could not be compared. facts: further fields of it."""
    return VariableResult(
        name=identity.name,
        iteration=identity.iteration,
        rank=identity.rank,
        verdict=Verdict.NOT_COMPARABLE,
        reason=reason,
        **facts,
    )


def check_variable(
    golden: _core.GoldenVariable,
    values: Values,
    settings: VariableSettings | None,
    *,
    source_path: str | None = None,
    aligned_by: str | None = None,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Compared:
    """Compares a run's values with a golden variable.

    settings: what is asked for now; a golden made with another bound is not comparable. None:
    whatever the golden was made with. Raises UsageError for settings that the dtype cannot have;
    whatever else keeps the two from being compared is a result, `not_comparable` with its reason.
    """
    identity = golden_id(golden)
    facts = {
        "dtype": values.dtype,
        "shape": tuple(values.shape),
        "source_path": source_path,
        "byte_count": values.byte_count,
        "evidence": Evidence(golden.evidence),
        "bound": bound_of(golden.tree.parameters),
        "golden_root": golden.tree.root.hex(),
        "mask": None if settings is None else settings.mask,
        "aligned_by": aligned_by,
    }
    if golden.tree.parameters.dtype != values.dtype:
        facts["golden_dtype"] = golden.tree.parameters.dtype
    if tuple(golden.shape) != tuple(values.shape):
        facts["golden_shape"] = tuple(golden.shape)
    try:
        values = _fitted(golden, values, settings)
        if settings is not None:
            refuse_other_parameters(golden, settings, identity)
        if golden.data is not None:
            return _by_data(golden, values, identity, facts, resources, progress)
        return _by_tree(golden, values, identity, facts, resources, progress)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return Compared(not_comparable(identity, reason_of(error), **facts))


def _fitted(
    golden: _core.GoldenVariable, values: Values, settings: VariableSettings | None
) -> Values:
    """The values in the golden's dtype. Raises DtypeMismatchError, ShapeMismatchError."""
    ours, theirs = tuple(golden.shape), tuple(values.shape)
    if ours != theirs:
        is_strict = settings is None or settings.strict_shape
        if is_strict or math.prod(ours) != values.element_count:
            raise ShapeMismatchError(
                f"shape {_shape_text(theirs)}, but the golden has {_shape_text(ours)}",
                remedy="if that is right, accept the new outputs",
            )
    dtype = golden.tree.parameters.dtype
    if dtype == values.dtype:
        return values
    if settings is None or settings.strict_dtype:
        raise DtypeMismatchError(
            f"dtype {_dtype_text(values.dtype)}, but the golden has {_dtype_text(dtype)}",
            remedy="if that is right, accept the new outputs",
        )
    return ConvertedValues(values, dtype)


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
            f"the golden was made with {describe_bound(made_with)}, asked for is"
            f" {describe_bound(asked)}",
            remedy="accept the outputs anew with this bound, or restore the old one",
        )


def _by_data(
    golden: _core.GoldenVariable,
    values: Values,
    identity: VariableId,
    facts: Mapping[str, Any],
    resources: Resources,
    progress: Progress,
) -> Compared:
    """Every element is compared: the golden's data are at hand, and small."""
    parameters = golden.tree.parameters
    assert golden.data is not None
    data = np.frombuffer(golden.data, dtype=np.uint8)
    builder = _core.TreeBuilder(
        parameters,
        golden.tree.scalar_count,
        golden=golden.tree,
        backend=resources.backend,
        threads=resources.threads,
    )
    comparer = _core.ElementComparer(
        parameters,
        max_indices=MOST_INDICES,
        backend=resources.backend,
        threads=resources.threads,
    )
    for first, slab in values.slabs():
        new = as_bytes(slab)
        begin = first * values.item_bytes
        builder.update(new)
        comparer.update(data[begin : begin + new.size], new, first_element=first)
        progress.advance(new.size)
    tree = builder.finish()
    comparison = comparer.finish()
    suspects = _core.diff_trees(golden.tree, tree)

    def read_both(first: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        new = values.read(first, count).reshape(-1)
        begin = first * values.item_bytes
        return data[begin : begin + count * values.item_bytes].view(new.dtype), new

    def pieces() -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        for first, count in suspect_pieces(parameters, values, suspects):
            yield (first, *read_both(first, count))

    result = element_result(
        identity,
        facts,
        comparison,
        parameters,
        tuple(golden.shape),
        suspects,
        golden.tree.leaf_count,
        all_compared=True,
        read_elements=read_each(read_both),
        root=tree.root.hex(),
        details=lambda: element_details(
            comparison, suspects, golden.tree, tuple(golden.shape), pieces, read_both
        ),
    )
    return Compared(result)


def element_result(
    identity: VariableId,
    facts: Mapping[str, Any],
    comparison: _core.Comparison,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: NDArray[np.int64] | None,
    leaf_count: int,
    *,
    all_compared: bool,
    read_elements: ReadElements,
    drift: _core.Drift | None = None,
    details: Callable[[], Mapping[str, Any]] | None = None,
    **more: Any,
) -> VariableResult:
    """The result of an element comparison: exact counts and indices.

    facts: further fields of the result, where the comparison does not know better. suspects: None
    without trees. all_compared: whether every element was, or those of suspect chunks only; drift
    then tells of the others, if it is known. details: makes the samples and maps of a variable that
    differs (ciwrap.compare.details), if the result is to have them. more: further fields.
    """
    count = math.prod(shape)
    differing = int(comparison.differing_count)
    elements = (
        judged_elements(
            comparison.indices[:MOST_ELEMENTS].tolist(), parameters, shape, read_elements
        )
        if differing
        else ()
    )
    numbers = {**facts, **statistics(comparison, parameters, shape, all_compared=all_compared)}
    if suspects is not None:
        ranges, range_count, _ = suspect_ranges(suspects, parameters, shape, count)
        numbers["chunk_count"] = leaf_count
        numbers["suspect_chunks"] = int(suspects.size)
        numbers["suspect_ranges"] = ranges
        numbers["suspect_range_count"] = range_count
    if all_compared:
        numbers["max_drift_share"] = numbers["max_bound_share"]
    elif drift is not None:
        numbers["max_drift_share"] = float(drift.max_share)
        numbers["drift_histogram"] = tuple(int(number) for number in drift.histogram)
        numbers["residue_levels"] = parameters.residue_levels
    if differing and details is not None:
        more.update(details())
    return VariableResult(
        name=identity.name,
        iteration=identity.iteration,
        rank=identity.rank,
        verdict=Verdict.DIFFER if differing else Verdict.MATCH,
        element_count=count,
        differing_count=differing,
        first_index=to_index(comparison.first_index, shape) if differing else None,
        first_differences=elements,
        **numbers,
        **more,
    )


def _by_tree(
    golden: _core.GoldenVariable,
    values: Values,
    identity: VariableId,
    facts: Mapping[str, Any],
    resources: Resources,
    progress: Progress,
) -> Compared:
    """Digests only; with residues the new run is rounded relative to the golden one."""
    parameters = golden.tree.parameters
    tree, drift, engine = build_tree(
        parameters, values, resources=resources, golden=golden.tree, progress=progress
    )
    suspects = _core.diff_trees(golden.tree, tree)
    shape = tuple(golden.shape)
    count = math.prod(shape)
    ranges, range_count, suspect_elements = suspect_ranges(suspects, parameters, shape, count)
    found: dict[str, Any] = {
        "verdict": Verdict.DIFFER if suspects.size else Verdict.MATCH,
        "element_count": count,
        "chunk_count": golden.tree.leaf_count,
        "suspect_chunks": int(suspects.size),
        "suspect_ranges": ranges,
        "suspect_range_count": range_count,
        "root": tree.root.hex(),
    }
    if suspects.size:
        proof = suspect_is_proof(parameters)
        found["differing_count_at_least"] = int(suspects.size) if proof else 0
        found["differing_count_at_most"] = suspect_elements
        found["details"] = suspect_details(suspects, golden.tree, shape, count)
    else:
        found["differing_count"] = 0
        if parameters.kind == "exact":
            # Equal codes are equal numbers.
            found["max_abs_difference"] = 0.0
    if golden.evidence == "residues":
        found["residue_levels"] = parameters.residue_levels
        found["guaranteed_share"] = parameters.guaranteed_share
    if drift is not None:
        found["max_drift_share"] = float(drift.max_share)
        found["drift_histogram"] = tuple(int(number) for number in drift.histogram)
    result = VariableResult(
        name=identity.name, iteration=identity.iteration, rank=identity.rank, **found, **facts
    )
    return Compared(result, engine)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "() (a single number)"


def _dtype_text(dtype: str) -> str:
    """`float64 (<f8)`: the name people use and the one that is exact."""
    if dtype[1:] == "bf2":
        return f"bfloat16 ({dtype})"
    return f"{np.dtype(dtype).name} ({dtype})"
