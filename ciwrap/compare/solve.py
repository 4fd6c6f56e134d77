"""Which elements of suspect chunks moved, and how far, told by the golden's digests alone.

A chunk in which one or two scalars left their cells is solved: the core finds the golden's codes
that hash to the golden's digest (docs/explanation/residues.md). A code and its residue stand for a
narrow range of golden values, and the new value is held against both ends of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.parts import chunk_elements, to_index, value_texts
from ciwrap.compare.shares import as_numbers
from ciwrap.late import numpy as np
from ciwrap.model import MovedElement
from ciwrap.structs import Struct, replace
from ciwrap.trees.preimage import Cells, Preimage, scalar_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

# Chunks that are tried: so many of one variable, and no more once so many in a row had no solution.
# Each takes up to some hundredths of a second.
MOST_CHUNKS = 64
_MOST_UNSOLVED = 8


class Solved(Struct, frozen=True):
    """What is told of a variable without the golden's data. chunk_count: suspect chunks of which
    everything that moved is known. elements: of these, and others that are surely beyond.
    """

    chunk_count: int
    elements: tuple[MovedElement, ...]


def solve_chunks(
    tree: _core.Tree, new: Values, leaves: NDArray[np.int64], shape: tuple[int, ...]
) -> Solved:
    """Tries to solve suspect chunks. Raises CiwrapError for values that cannot be read."""
    parameters = tree.parameters
    is_whole = parameters.chunk_scalars % parameters.scalars_per_element == 0
    if parameters.dtype[1] in "SU" or not is_whole:
        return Solved(0, ())
    chunks = _Chunks(tree, new, shape)
    solved, in_vain = 0, 0
    found: list[MovedElement] = []
    for leaf in leaves[:MOST_CHUNKS].tolist():
        moved, is_solved = chunks.look_at(leaf)
        found += moved
        solved += is_solved
        in_vain = 0 if moved else in_vain + 1
        if in_vain == _MOST_UNSOLVED:
            break
    return Solved(solved, tuple(found))


class _Chunks:
    """The suspect chunks of one variable, one after the other."""

    def __init__(self, tree: _core.Tree, new: Values, shape: tuple[int, ...]) -> None:
        self._tree = tree
        self._parameters = tree.parameters
        self._new = new
        self._shape = shape
        self._cells = Cells(scalar_parameters(tree.parameters))

    def look_at(self, leaf: int) -> tuple[list[MovedElement], bool]:
        """What is known to have moved in a chunk, and whether that is all that did."""
        per_chunk = chunk_elements(self._parameters)
        first = leaf * per_chunk
        data = as_bytes(self._new.read(first, min(per_chunk, self._new.element_count - first)))
        moved = [
            self._moved(data, first, index, self._cells.values_of(code, residue))
            for index, code, residue in _core.solve_chunk(self._tree, leaf, data)
        ]
        if moved:
            return moved, True
        return [self._moved(data, first, index, None) for index in self._lost(leaf, data)], False

    def _lost(self, leaf: int, data: NDArray[np.uint8]) -> list[int]:
        """New scalars that are NaN, infinite or missing where the golden had a number: its residue
        is that of a number unless it is 0.
        """
        if self._tree.residues is None or self._cells.is_whole_number:
            return []
        scalars = as_numbers(self._cells.stored(data), self._cells.parameters.dtype)
        assert scalars is not None
        fills = self._parameters.fill_values
        lost = ~np.isfinite(scalars) | np.isin(scalars, [one for one in fills if one == one])
        found: list[int] = np.flatnonzero(lost & (self._tree.leaf_residues(leaf) != 0)).tolist()
        return found

    def _moved(
        self, data: NDArray[np.uint8], first: int, index: int, golden: Preimage | None
    ) -> MovedElement:
        per_element = self._parameters.scalars_per_element
        width = self._parameters.scalar_bytes
        new = self._cells.stored(data[index * width : (index + 1) * width])
        dtype = self._cells.parameters.dtype
        known = MovedElement(
            index=to_index(first + index // per_element, self._shape),
            part=None if per_element == 1 else "imaginary" if index % 2 else "real",
            new=value_texts(new, dtype)[0],
            is_beyond=True,
        )
        if golden is None:
            return known
        if golden.is_missing and len(self._parameters.fill_values) > 1:
            # Missing equals missing, so all fill values have one code.
            return replace(known, golden_is_fill=True)
        is_beyond, shares = _held_against(self._cells, golden, new)
        least, greatest = value_texts(golden.values, dtype)
        return replace(
            known,
            golden_from=least,
            golden_to=greatest,
            share_from=None if shares is None else min(shares),
            share_to=None if shares is None else max(shares),
            is_beyond=is_beyond,
        )


def _held_against(
    cells: Cells, golden: Preimage, new: NDArray[Any]
) -> tuple[bool | None, list[float] | None]:
    """Whether the new value is beyond the bound, whichever of its values the golden had; None if
    that depends on it. And the least and the greatest share of the bound, as far as it is a number.

    |new - golden| - bound is a straight line in the golden's value between its ends, zero, and the
    new value, so these are all that has to be looked at.
    """
    ends = cells.turning_points(golden.values, new)
    sides = as_bytes(ends), as_bytes(np.repeat(new, ends.size))
    found = _core.compare_arrays(cells.parameters, *sides)
    beyond = {0: False, ends.size: True}.get(int(found.differing_count))
    shares = [share for _, share, _, _ in _core.compare_each(cells.parameters, *sides)]
    numbers = [share for share in shares if share is not None]
    return beyond, numbers if len(numbers) == len(shares) else None
