"""What the report draws of one variable: samples and maps, bounded whatever the variable's size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.compare.explain import explain
from ciwrap.compare.explain.difference import Difference
from ciwrap.compare.maps import chunk_share_maps, share_maps
from ciwrap.compare.parts import chunk_elements, judged_elements, read_each, runs_of
from ciwrap.compare.pictures import make_pictures
from ciwrap.compare.shares import as_numbers, share_classes, share_of_bound
from ciwrap.compare.views import effect_of, make_view
from ciwrap.details import (
    MOST_RUNS,
    MOST_WORST,
    ChunkMap,
    Effect,
    Explanation,
    IndexBox,
    TreeLevel,
    View,
)
from ciwrap.late import numpy as np
from ciwrap.model import Details, DifferingElement
from ciwrap.structs import replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.compare.parts import ReadBoth
    from ciwrap.compare.work import Pieces
    from ciwrap.model import VariableResult

# Elements that are looked at a second time for the samples: some seconds at most.
_MOST_SCANNED = 1 << 23
# A share that rounds to less is that of an element beyond its bound.
_JUST_BEYOND = math.nextafter(1.0, math.inf)
# Elements of a variable that hypotheses are held against: a second or so.
_MOST_EXPLAINED = 1 << 21


def chunk_map(
    suspects: NDArray[np.int64], parameters: _core.TreeParameters, leaf_count: int
) -> ChunkMap:
    """All suspect chunks as runs, in coarser cells where there would be too many."""
    per_cell = 1
    while True:
        found = runs_of(np.unique(suspects // per_cell))
        if 2 * len(found) + 1 <= MOST_RUNS:
            break
        per_cell *= 2
    cell_count = -(-leaf_count // per_cell)
    runs, at = [], 0
    for first, last in found:
        runs += [first - at, last - first + 1]
        at = last + 1
    if at < cell_count:
        runs.append(cell_count - at)
    return ChunkMap(chunk_elements(parameters), leaf_count, per_cell, tuple(runs))


def tree_levels(suspects: NDArray[np.int64], tree: _core.Tree) -> tuple[TreeLevel, ...]:
    """How many nodes of each level lie above a suspect chunk; the root first."""
    nodes = suspects
    levels = []
    for count in reversed(tree.level_counts):
        levels.append(TreeLevel(int(count), int(nodes.size)))
        nodes = np.unique(nodes // tree.parameters.arity)
    return tuple(reversed(levels))


def suspect_details(
    suspects: NDArray[np.int64], tree: _core.Tree, shape: tuple[int, ...], count: int
) -> Details:
    """Of a variable whose suspect chunks are known, and no more."""
    return Details(
        chunk_map=chunk_map(suspects, tree.parameters, tree.leaf_count),
        tree_levels=tree_levels(suspects, tree),
        share_maps=chunk_share_maps(suspects, chunk_elements(tree.parameters), shape, count),
    )


def element_details(
    result: VariableResult,
    comparison: _core.Comparison,
    suspects: NDArray[np.int64],
    tree: _core.Tree,
    shape: tuple[int, ...],
    pieces: Pieces,
    read: ReadBoth,
    *,
    with_pictures: bool = True,
) -> VariableResult:
    """Looks a second time at a variable that differs, the data of both sides at hand: its result
    with what reports draw of it (with_pictures), and what stands out.
    """
    parameters = tree.parameters
    scan = _Scan(comparison, parameters, shape)
    for first, golden, new in pieces():
        if scan.scanned + golden.size > _MOST_SCANNED:
            break
        scan.add(first, golden, new)
    # Rounded shares must not tell of other elements than the verdict does.
    is_sure = scan.differing_count == comparison.differing_count
    box = scan.box() if is_sure else None
    whole = _whole(shape, read) if is_sure else None
    explanations: tuple[Explanation, ...] = ()
    if whole is not None:
        explanations = _explained(parameters, shape, scan.positions(), whole)
    result = replace(result, differing_box=box, explanations=explanations)
    if not with_pictures:
        return result
    view: View | None = None
    effect: Effect | None = None
    found = scan.worst_elements() or [int(comparison.max_abs_index), int(comparison.first_index)]
    worst_elements, worst = _beyond(found, parameters, shape, read)
    if whole is not None:
        view, effect = _views(parameters, shape, worst, box, whole)
    if is_sure:
        maps = share_maps(scan.positions(), scan.classes(), shape)
    else:
        count = int(np.prod(shape, dtype=np.int64))
        maps = chunk_share_maps(suspects, chunk_elements(parameters), shape, count)
    pictures = make_pictures(parameters, shape, worst[0], box, read) if worst else {}
    details = Details(
        chunk_map=chunk_map(suspects, parameters, tree.leaf_count),
        tree_levels=tree_levels(suspects, tree),
        worst_elements=worst_elements,
        share_maps=maps,
        view=view,
        # Masked elements count as zero here, and what they would add to means is not known.
        effect=None if result.mask is not None else effect,
        **pictures,
    )
    return replace(result, details=details)


def _beyond(
    flats: list[int], parameters: _core.TreeParameters, shape: tuple[int, ...], read: ReadBoth
) -> tuple[tuple[DifferingElement, ...], list[int]]:
    """Those of some elements that differ, each once, and where they are. -1 is none."""
    known = [flat for flat in dict.fromkeys(flats) if flat >= 0]
    judged = judged_elements(known, parameters, shape, lambda some: read_each(read, some))
    pairs = [
        (one, flat)
        for one, flat in zip(judged, known, strict=True)
        if one.bound_share is None or one.bound_share > 1.0
    ]
    return tuple(one for one, _ in pairs), [flat for _, flat in pairs]


def _whole(shape: tuple[int, ...], read: ReadBoth) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """All elements of both sides; None where that would be too much to read."""
    count = int(np.prod(shape, dtype=np.int64))
    return None if count > _MOST_EXPLAINED else read(0, count)


def _views(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    worst: list[int],
    box: IndexBox | None,
    whole: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[View | None, Effect | None]:
    """The numbers behind the picture, and what the difference comes to; None of strings."""
    numbers = [as_numbers(side, parameters.dtype) for side in whole]
    if numbers[0] is None or numbers[1] is None or not worst:
        return None, None
    view = make_view(parameters, whole, shape, worst[0], box)
    return view, effect_of(parameters, numbers[0], numbers[1])


def _explained(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    positions: NDArray[np.int64],
    whole: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[Explanation, ...]:
    """What the differing elements have in common; nothing of strings."""
    golden, new = (as_numbers(side, parameters.dtype) for side in whole)
    if golden is None or new is None:
        return ()
    difference = Difference(golden.reshape(shape), new.reshape(shape), positions, parameters)
    return explain(difference)


class _Scan:
    """Looks at the differing elements piece by piece and keeps what is needed of them."""

    def __init__(
        self,
        comparison: _core.Comparison,
        parameters: _core.TreeParameters,
        shape: tuple[int, ...],
    ) -> None:
        indices = comparison.indices
        # Which elements differ the core knows exactly, but it does not list many of them.
        self._known = indices if indices.size == comparison.differing_count else None
        self._parameters = parameters
        self._shape = shape
        self._positions: list[NDArray[np.int64]] = []
        self._classes: list[NDArray[np.uint8]] = []
        self._worst: list[tuple[float, float, int]] = []
        self.scanned = 0
        self.differing_count = 0

    def add(self, first: int, golden: NDArray[Any], new: NDArray[Any]) -> None:
        golden, new = golden.reshape(-1), new.reshape(-1)
        self.scanned += golden.size
        shares, differences = share_of_bound(golden, new, self._parameters)
        inside = self._differing(shares, first)
        if inside.size == 0:
            return
        shares, differences = np.maximum(shares[inside], _JUST_BEYOND), differences[inside]
        self.differing_count += int(inside.size)
        self._positions.append((inside + first).astype(np.int64))
        self._classes.append(share_classes(shares, differences))
        self._note_worst(first, inside, shares, differences)

    def _differing(self, shares: NDArray[np.float64], first: int) -> NDArray[np.int64]:
        """Where in a piece the elements lie that differ; told by rounded shares if need be."""
        if self._known is None:
            return np.flatnonzero(shares > 1.0)
        begin, end = np.searchsorted(self._known, (first, first + shares.size))
        return self._known[begin:end] - first

    def _note_worst(
        self,
        first: int,
        inside: NDArray[np.int64],
        shares: NDArray[np.float64],
        differences: NDArray[np.float64],
    ) -> None:
        order = np.lexsort((inside, -differences, -shares))[:MOST_WORST]
        self._worst += [
            (-float(shares[one]), -float(differences[one]), int(inside[one]) + first)
            for one in order
        ]
        self._worst = sorted(self._worst)[:MOST_WORST]

    def positions(self) -> NDArray[np.int64]:
        return np.concatenate(self._positions) if self._positions else np.empty(0, np.int64)

    def classes(self) -> NDArray[np.uint8]:
        return np.concatenate(self._classes) if self._classes else np.empty(0, np.uint8)

    def worst_elements(self) -> list[int]:
        return [flat for _, _, flat in self._worst]

    def box(self) -> IndexBox | None:
        """The smallest box around all differing elements; None for a single number."""
        positions = self.positions()
        if not positions.size or not self._shape:
            return None
        indices = np.unravel_index(positions, self._shape)
        return IndexBox(
            tuple(int(axis.min()) for axis in indices), tuple(int(axis.max()) for axis in indices)
        )
