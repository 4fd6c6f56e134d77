"""Where in an array elements differ, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ciwrap.model import ChunkRange, VariableResult
from ciwrap.model.variable_result import Cause, IndexBox, layers_text
from ciwrap.report.text import in_fortran, index_text

# A box of this share of an array says nothing of where in it.
_NEARLY_ALL = 0.95

_FEW = 20
# The first checkpoint or rank alone says so, of all of them.
_OF_ALL = (Cause.GROWS, Cause.STOPPED, Cause.ACROSS_RANKS)


def box_words(variable: VariableResult) -> str:
    """Where all differing elements lie, in the array's own indices; nothing if that is
    everywhere or not known.
    """
    box, shape = variable.differing_box, variable.shape
    if variable.differing_count == 1 and variable.first_index is not None:
        at = f"at {index_text(variable.first_index)}" if variable.first_index else ""
        return f"{at}, in the interior" if _is_inside(variable.first_index, shape) else at
    # A document may claim a box in an array without elements.
    if box is None or not shape or 0 in shape or len(shape) != len(box.first_index):
        if variable.first_index:
            return f"first at {index_text(variable.first_index)}"
        return ""
    fixed = [
        axis
        for axis, (first, last) in enumerate(zip(box.first_index, box.last_index, strict=True))
        if first == last and shape[axis] > 1
    ]
    text = box_text(box, shape)
    if variable.differing_count == variable.compared_elements:
        return "in every value"
    is_nearly_all = _share_of(box, shape) >= _NEARLY_ALL
    faces = [one for one in variable.explanations if one.cause is Cause.BOUNDARY]
    if faces and faces[0].words and faces[0] is variable.explanations[0]:
        return f"in {text}"  # the cause says what that is called
    if faces and is_nearly_all:
        return f"at the boundary of axis {' and '.join(map(str, faces[0].axes))}"
    # A few elements span a box, and are not spread over it.
    if is_nearly_all and (variable.differing_count or 0) < _FEW and variable.first_index:
        return f"first at {index_text(variable.first_index)}"
    if not text.strip("[]:, "):
        return "spread over the whole array"
    if is_nearly_all:
        return "spread over nearly the whole array"
    free = [axis for axis, extent in enumerate(shape) if extent > 1 and axis not in fixed]
    if len(fixed) == 1 and len(shape) in (2, 3) and len(free) == len(shape) - 1:
        return f"all in {_layer_words(fixed[0], box.first_index[fixed[0]], shape)}, {text}"
    if fixed and len(free) == 1:
        return f"all in the line {text}"
    return f"all within {text}"


def _layer_words(axis: int, at: int, shape: Sequence[int]) -> str:
    """`the last column`, `row 17`."""
    name = layers_text(axis, len(shape))
    if at in (0, shape[axis] - 1):
        return f"the {'last' if at else 'first'} {name}"
    kind, *of = name.split(" ", 1)
    return " ".join([kind, str(at), *of])


def is_the_same_place(first: VariableResult, results: Iterable[VariableResult]) -> bool:
    """Whether all that does not match of a variable lies where the first of it does, as far as that
    is known of each.
    """
    others = [one for one in results if one.verdict.is_alarm and one.id != first.id]
    return all(_contains(first, one) for one in others)


def _contains(outer: VariableResult, inner: VariableResult) -> bool:
    if outer.shape != inner.shape:
        return False
    if outer.differing_count is None and outer.suspect_chunks == outer.chunk_count:
        return inner.suspect_chunks == inner.chunk_count
    if outer.differing_count is not None and outer.differing_count == outer.compared_elements:
        return inner.differing_count == inner.compared_elements
    one, other = outer.differing_box, inner.differing_box
    if one is None or other is None or len(one.first_index) != len(other.first_index):
        return False
    ends = zip(one.first_index, other.first_index, one.last_index, other.last_index, strict=True)
    return all(low <= first and last <= high for low, first, high, last in ends)


def of_the_first(first: VariableResult, results: Iterable[VariableResult], words: str) -> str:
    """`in iteration 5, rank 2 sign flipped`: what is known of the first one alone. Nothing may be
    known of the others, or something else.
    """
    beside = [one for one in results if one.verdict.is_alarm and one.iteration == first.iteration]
    rank = "" if first.rank is None or len(beside) < 2 else f"rank {first.rank}"
    iteration = "" if first.iteration is None else f"iteration {first.iteration}"
    where = ", ".join(filter(None, (iteration, rank)))
    return f"in {where} {words}" if where else f"at first {words}"


def is_the_same_cause(first: VariableResult, results: Iterable[VariableResult]) -> bool:
    """Whether the same is known of all that does not match of a variable; what is known of its
    history or its ranks is.
    """
    if any(one.cause in _OF_ALL for one in first.explanations[:1]):
        return True
    causes = _cause_of(first)
    return all(_cause_of(one) == causes for one in results if one.verdict.is_alarm)


def _cause_of(variable: VariableResult) -> tuple[object, ...]:
    """What is said of it in a few words: the first cause, without how many it holds on."""
    return next(((one.cause, one.values, one.axes) for one in variable.explanations), ())


def _is_inside(index: Sequence[int], shape: Sequence[int] | None) -> bool:
    """Whether an element of a field lies at none of its faces."""
    pairs = [(at, extent) for at, extent in zip(index, shape or (), strict=False) if extent > 1]
    return bool(pairs) and all(0 < at < extent - 1 for at, extent in pairs)


def _share_of(box: IndexBox, shape: Sequence[int]) -> float:
    """How much of the array lies in the box."""
    inside = math.prod(
        last - first + 1 for first, last in zip(box.first_index, box.last_index, strict=True)
    )
    return inside / math.prod(shape)


def box_text(box: IndexBox, shape: Sequence[int]) -> str:
    """`[0, :, 3:17]`, as NumPy would slice it; for those who count as Fortran does, so as well."""
    ranges = zip(box.first_index, box.last_index, strict=True)
    return f"{box.as_slices(shape)}{in_fortran([*ranges])}"


def suspect_place(variable: VariableResult) -> str:
    """Where the suspect chunks lie: `in values [100:120, :]`; nothing where that is not asked."""
    if variable.differing_count is not None or not variable.suspect_chunks:
        return ""
    if variable.suspect_chunks == variable.chunk_count:
        return "in the array's one block" if variable.chunk_count == 1 else "in every block"
    if not variable.suspect_ranges:
        return ""
    shape = variable.golden_shape or variable.shape or ()
    first = range_text(variable.suspect_ranges[0], shape)
    count = variable.suspect_range_count or 1
    return f"in values {first}" if count == 1 else f"in {count:,} ranges, the first {first}"


def range_text(item: ChunkRange, shape: Sequence[int]) -> str:
    """The box of the array that holds elements which follow one another in storage, along the axis
    on which the first and the last one part: `[98:120, :]`.
    """
    first, last = item.first_index, item.last_index
    if len(first) != len(shape) or not shape:
        return f"{index_text(first)} to {index_text(last)}"
    axis = next((at for at in range(len(shape)) if first[at] != last[at]), len(shape) - 1)
    rest = len(shape) - axis - 1
    ends = tuple(shape[axis + 1 :])
    box = IndexBox(
        (*first[: axis + 1], *([0] * rest)), (*last[: axis + 1], *(end - 1 for end in ends))
    )
    return box_text(box, shape)
