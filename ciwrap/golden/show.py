"""A golden as stable text: small data in full, large ones chunk by chunk.

The same golden gives the same lines on any machine, and a number that changes changes the lines it
stands in and no others; so the text serves `git diff`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.arrays.convert import is_bfloat16, widen_bfloat16
from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.arrays.shown import element_texts
from ciwrap.golden.manifest import Count, Root, VariableRow, describe_evidence
from ciwrap.late import numpy as np
from ciwrap.model import Evidence, VariableId
from ciwrap.trees.bounds import bound_of, describe_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.golden.manifest import Acceptance

# Data of up to so many elements are printed one by one.
_MOST_ELEMENTS = 4096
# Of larger trees the last level with at most so many nodes is printed.
_MOST_NODES = 256
_PER_LINE = 4
_DIGEST_DIGITS = 16


class ShownVariable(msgspec.Struct, frozen=True):
    """One variable of a golden, without its tree and its data."""

    name: str
    iteration: int | None
    rank: int | None
    dtype: str
    shape: tuple[int, ...]
    atol: float
    rtol: float
    ulps: Count
    equal_nan: bool
    evidence: Evidence
    residue_levels: Count
    chunk_bytes: Count
    leaf_count: Count
    root: Root


def shown_variables(variables: Sequence[_core.GoldenVariable]) -> tuple[ShownVariable, ...]:
    """The golden's table."""
    return tuple(_shown(variable) for variable in variables)


def _shown(variable: _core.GoldenVariable) -> ShownVariable:
    row = VariableRow.of(variable)
    parameters = variable.tree.parameters
    bound = bound_of(parameters)
    return ShownVariable(
        name=row.name,
        iteration=row.iteration,
        rank=row.rank,
        dtype=row.dtype,
        shape=row.shape,
        atol=bound.atol,
        rtol=bound.rtol,
        ulps=bound.ulps,
        equal_nan=parameters.equal_nan,
        evidence=Evidence(variable.evidence),
        residue_levels=parameters.residue_levels,
        chunk_bytes=parameters.chunk_bytes,
        leaf_count=variable.tree.leaf_count,
        root=row.root,
    )


def golden_lines(
    variables: Sequence[_core.GoldenVariable], root: str, *, full: bool = False
) -> Iterator[str]:
    """The text, line by line. full: every element and every leaf, however many."""
    yield f"golden with {len(variables)} variable{'s' if len(variables) > 1 else ''}, root {root}"
    for variable in variables:
        yield ""
        yield from _variable_lines(variable, full)


def acceptance_line(entry: Acceptance) -> str:
    """Who made or replaced a golden, when and why."""
    actor = "" if entry.actor is None else f" for {entry.actor}"
    commit = "" if entry.commit is None else f", commit {entry.commit}"
    return f"accepted {entry.when} by {entry.who}{actor}: {entry.why}{commit}"


def _variable_lines(variable: _core.GoldenVariable, full: bool) -> Iterator[str]:
    tree, parameters = variable.tree, variable.tree.parameters
    identity = VariableId(variable.name, variable.iteration, variable.rank)
    shape = "x".join(map(str, variable.shape)) if variable.shape else "()"
    # Golden files hold no names with control characters, so this prints as it is.
    yield f"variable {identity.text}"
    yield f"  {parameters.dtype} {shape}, {describe_bound(parameters)}"
    yield f"  evidence {describe_evidence(variable)}"
    yield f"  root {tree.root.hex()}"
    yield (
        f"  chunks of {parameters.chunk_bytes} bytes: {tree.leaf_count};"
        f" nodes by level: {' '.join(map(str, tree.level_counts))}"
    )
    elements = _elements(variable)
    if elements is not None and (full or elements.size <= _MOST_ELEMENTS):
        yield from _element_lines(elements, variable.shape)
    else:
        yield from _chunk_lines(variable, elements, full)


def _elements(variable: _core.GoldenVariable) -> NDArray[Any] | None:
    if variable.data is None:
        return None
    dtype = variable.tree.parameters.dtype
    elements = np.frombuffer(variable.data, dtype=storage_dtype(dtype))
    return widen_bfloat16(elements) if is_bfloat16(dtype) else elements


def _element_lines(elements: NDArray[Any], shape: tuple[int, ...]) -> Iterator[str]:
    """A few elements on each line, beginning with the index of the first; rows begin new lines."""
    row = shape[-1] if shape else 1
    for start in range(0, elements.size, max(1, row)):
        for first in range(start, start + row, _PER_LINE):
            last = min(first + _PER_LINE, start + row)
            values = "  ".join(element_texts(elements[first:last]))
            yield f"  {_index(first, shape)}  {values}"


def _index(flat: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return "[]"
    return f"[{', '.join(str(int(position)) for position in np.unravel_index(flat, shape))}]"


def _chunk_lines(
    variable: _core.GoldenVariable, elements: NDArray[Any] | None, full: bool
) -> Iterator[str]:
    """One line for each node of the last level that is small enough: where, digest, and range."""
    tree, parameters = variable.tree, variable.tree.parameters
    levels = tree.level_counts
    level = len(levels) - 1
    while not full and level > 0 and levels[level] > _MOST_NODES:
        level -= 1
    leaves_per_node = parameters.arity ** (len(levels) - 1 - level)
    per_node = leaves_per_node * max(1, parameters.chunk_scalars // parameters.scalars_per_element)
    count = tree.scalar_count // parameters.scalars_per_element
    first_node = sum(levels[:level])
    for node in range(levels[level]):
        first = node * per_node
        last = min(first + per_node, count) - 1
        digest = tree.digests[first_node + node].tobytes().hex()[:_DIGEST_DIGITS]
        where = (
            f"{_index(first, variable.shape)} to {_index(last, variable.shape)}"
            if last >= first
            else "no elements"
        )
        yield f"  {where}  {digest}{_range_text(elements, first, last)}"


def _range_text(elements: NDArray[Any] | None, first: int, last: int) -> str:
    if elements is None or last < first or elements.dtype.kind not in "iuf":
        return ""
    part = elements[first : last + 1]
    finite = part[np.isfinite(part)] if part.dtype.kind == "f" else part
    if finite.size == 0:
        return "  no finite value"
    odd = part.size - finite.size
    note = f", {odd} not finite" if odd else ""
    return f"  from {finite.min()!s} to {finite.max()!s}{note}"
