"""One variable of two runs, both at hand: trees first, then the elements of suspect chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.convert import (
    ConvertedValues,
    RoundedValues,
    held_by_float32,
    is_mixed_precision,
)
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.details import element_details
from ciwrap.compare.parts import MOST_INDICES, read_each, suspect_pieces
from ciwrap.compare.periodic import compare_periodic
from ciwrap.compare.stream import compare_stored, fits_stream
from ciwrap.compare.variable import Compared, element_result, not_comparable, reason_of
from ciwrap.errors import (
    CiwrapError,
    DtypeMismatchError,
    ExitCode,
    ShapeMismatchError,
)
from ciwrap.model import Evidence
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources, build_tree, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress

# Up to here every element is compared whatever the trees say: it takes no time, and means and
# histograms then speak of all elements.
ALWAYS_ELEMENTWISE_BYTES = 64 << 20
# Residues of the first run are kept in memory so that noise below the bound raises no alarms; above
# this they are not, and memory stays bounded.
_LARGEST_RESIDUES_BYTES = 1 << 30
# From this share of suspect chunks on, reading everything in order beats reading here and there.
_STREAM_FROM = 0.5
# The core cuts what it is given into waves, two of which are under way at a time.
_DEVICE_SLAB_BYTES = 1 << 30


def compare_variable(
    golden: Values,
    new: Values,
    settings: VariableSettings,
    identity: VariableId,
    *,
    source_path: str | None = None,
    aligned_by: str | None = None,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Compared:
    """Compares two variables whose data are both at hand; counts and indices are exact.

    Raises UsageError for settings that the dtype cannot have; whatever else keeps the two from
    being compared is a result, `not_comparable` with its reason.
    """
    facts = {
        "dtype": new.dtype,
        "shape": tuple(new.shape),
        "source_path": source_path,
        "byte_count": new.byte_count,
        "evidence": Evidence.DATA,
        "bound": settings.bound,
        "mask": settings.mask,
        "aligned_by": aligned_by,
        "period": settings.period or None,
    }
    if golden.dtype != new.dtype:
        facts["golden_dtype"] = golden.dtype
    if tuple(golden.shape) != tuple(new.shape):
        facts["golden_shape"] = tuple(golden.shape)
    try:
        if tuple(golden.shape) != tuple(new.shape) and (
            settings.strict_shape or golden.element_count != new.element_count
        ):
            raise ShapeMismatchError(
                f"shape {tuple(golden.shape)} on one side, {tuple(new.shape)} on the other"
            )
        golden, new, settings = in_one_dtype(golden, new, settings)
        if settings.period:
            return compare_periodic(
                golden, new, settings, identity, facts, resources=resources, progress=progress
            )
        return _compare(golden, new, settings, identity, facts, resources, progress)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return Compared(not_comparable(identity, reason_of(error), **facts))


def in_one_dtype(
    golden: Values, new: Values, settings: VariableSettings
) -> tuple[Values, Values, VariableSettings]:
    """Both sides as they are compared, and the settings for that. Raises DtypeMismatchError."""
    if settings.mixed_precision and is_mixed_precision(golden.dtype, new.dtype):
        settings = replace(settings, fill_values=held_by_float32(settings.fill_values))
        return RoundedValues(golden), RoundedValues(new), settings
    if golden.dtype != new.dtype:
        if settings.strict_dtype:
            raise DtypeMismatchError(f"dtype {golden.dtype} on one side, {new.dtype} on the other")
        new = ConvertedValues(new, golden.dtype)
    return golden, new, settings


def _compare(
    golden: Values,
    new: Values,
    settings: VariableSettings,
    identity: VariableId,
    facts: dict[str, Any],
    resources: Resources,
    progress: Progress,
) -> Compared:
    is_small = golden.byte_count <= ALWAYS_ELEMENTWISE_BYTES
    parameters = tree_parameters(golden.dtype, settings, variable=identity.text)
    if not is_small:
        fine = tree_parameters(
            golden.dtype,
            settings,
            residue_levels=settings.residue_levels,
            variable=identity.text,
        )
        if golden.element_count * fine.scalars_per_element <= _LARGEST_RESIDUES_BYTES:
            parameters = fine
    golden_tree, _, engine = build_tree(
        parameters, golden, resources=resources, progress=progress, read_again=is_small
    )
    new_tree, drift, _ = build_tree(
        parameters,
        new,
        resources=resources,
        golden=golden_tree,
        progress=progress,
        read_again=is_small,
    )
    suspects = _core.diff_trees(golden_tree, new_tree)
    compare_all = is_small or suspects.size >= _STREAM_FROM * golden_tree.leaf_count
    comparison = _compare_elements(
        parameters, golden, new, None if compare_all else suspects, resources
    )

    def read_both(first: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return golden.read(first, count).reshape(-1), new.read(first, count).reshape(-1)

    def pieces() -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        for first, count in suspect_pieces(parameters, golden, suspects):
            yield (first, *read_both(first, count))

    result = element_result(
        identity,
        facts,
        comparison,
        parameters,
        tuple(golden.shape),
        suspects,
        golden_tree.leaf_count,
        all_compared=compare_all,
        read_elements=read_each(read_both),
        root=new_tree.root.hex(),
        golden_root=golden_tree.root.hex(),
        drift=drift,
        details=lambda: element_details(
            comparison, suspects, golden_tree, tuple(golden.shape), pieces, read_both
        ),
    )
    return Compared(result, engine)


def _side(values: Values, first: int, count: int) -> Any:
    """An array on a device as a whole, or the bytes of some elements."""
    if values.device is not None:
        return values.device.array
    return as_bytes(values.read(first, count))


def _compare_elements(
    parameters: _core.TreeParameters,
    golden: Values,
    new: Values,
    leaves: NDArray[np.int64] | None,
    resources: Resources,
) -> _core.Comparison:
    """Compares the chunks in `leaves` (None: all), in a stream where both sides lie in files.

    Where one lies on a device, that compares them, and what of the other is on the host goes there.
    """
    ours, theirs = golden.region, new.region
    device = golden.device or new.device
    is_stored = device is None and golden.byte_count > 0 and fits_stream(parameters)
    if is_stored and ours is not None and theirs is not None:
        return compare_stored(parameters, ours, theirs, leaves, resources)
    comparer = _core.ElementComparer(
        parameters,
        max_indices=MOST_INDICES,
        backend=resources.backend if device is None else device.backend,
        threads=resources.threads,
    )
    if device is not None:
        for first, count in suspect_pieces(parameters, golden, leaves, _DEVICE_SLAB_BYTES):
            comparer.update_device(
                _side(golden, first, count),
                _side(new, first, count),
                first_element=first,
                element_count=count,
            )
        return comparer.finish()
    for first, count in suspect_pieces(parameters, golden, leaves):
        comparer.update(
            as_bytes(golden.read(first, count)),
            as_bytes(new.read(first, count)),
            first_element=first,
        )
    return comparer.finish()
