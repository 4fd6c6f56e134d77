"""Which values of suspect chunks moved, and how far, by the golden's digests alone.

In a chunk where one or two values left their cells, the core finds the golden's codes that hash to
the golden's digest (docs/explanation/residues.md). A code and its residue stand for a narrow range
of golden values, and the new value is compared with both ends of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import as_bytes, is_bfloat16, widen_bfloat16
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import chunk_elements, to_index, value_texts
from ciwrap.golden.trees import Cells, Preimage, bound_ratio, scalar_parameters
from ciwrap.model import MovedElement
from ciwrap.model.variable_result import BOUND_CLASS, NO_NUMBER, SHARE_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

_ORDERED = {2: "i2", 4: "i4", 8: "i8"}


def as_numbers(elements: NDArray[Any], dtype: str) -> NDArray[Any] | None:
    """Elements as native numbers NumPy can calculate with; None for bytes and strings."""
    if is_bfloat16(dtype):
        return widen_bfloat16(elements)
    if elements.dtype.kind not in "iufcb":
        return None
    native = elements.astype(elements.dtype.newbyteorder("="), copy=False)
    return native.view(np.uint8) if native.dtype.kind == "b" else native


def ordered(values: NDArray[Any]) -> NDArray[Any] | None:
    """Floats as whole numbers in the same order, neighbours one apart; None for other kinds."""
    if values.dtype.kind != "f" or values.dtype.itemsize not in _ORDERED:
        return None
    bits = np.ascontiguousarray(values).view(_ORDERED[values.dtype.itemsize])
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits)


def share_of_bound(
    golden: NDArray[Any], new: NDArray[Any], parameters: _core.TreeParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(|v - g| / bound, |v - g|) of 1-d arrays in the golden's dtype.

    0 where they are equal in the contract's sense, inf where the bound is 0 or one side is special
    (|v - g| is inf then, too). Rounded: near the bound it may err in the last digits.
    """
    g, v = as_numbers(golden, parameters.dtype), as_numbers(new, parameters.dtype)
    if g is None or v is None:
        unequal = np.where(golden != new, np.inf, 0.0)
        return unequal, np.minimum(unequal, 1.0)
    if g.dtype.kind == "c":
        parts = [
            share_of_numbers(getattr(g, part), getattr(v, part), parameters)
            for part in ("real", "imag")
        ]
        return np.maximum(parts[0][0], parts[1][0]), np.maximum(parts[0][1], parts[1][1])
    return share_of_numbers(g, v, parameters)


def share_of_numbers(
    golden: NDArray[Any], new: NDArray[Any], parameters: _core.TreeParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    with np.errstate(all="ignore"):
        is_same = golden == new
        missing = np.zeros(golden.shape, dtype=bool)
        for value in parameters.fill_values:
            fill = np.asarray(value).astype(golden.dtype)
            ours, theirs = golden == fill, new == fill
            is_same |= ours & theirs
            missing |= ours ^ theirs
        if golden.dtype.kind == "f":
            both_nan = np.isnan(golden) & np.isnan(new)
            if parameters.equal_nan:
                is_same |= both_nan
        g, v = golden.astype(np.float64), new.astype(np.float64)
        difference = np.minimum(np.abs(v - g), np.finfo(np.float64).max)
        if golden.dtype.kind in "iu" and golden.dtype.itemsize == 8:
            difference = _apart(golden, new)
        share = _share(golden, new, g, difference, parameters)
        special = ~is_same & (missing | ~np.isfinite(g) | ~np.isfinite(v))
        share = np.where(special | np.isnan(share), np.inf, share)
        difference = np.where(special, np.inf, difference)
    return np.where(is_same, 0.0, share), np.where(is_same, 0.0, difference)


def _apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """How far whole numbers are apart, rounded once: beyond 2^53 neighbours fall together as
    float64, while unsigned wrap-around is exact.
    """
    unsigned = one.astype(np.uint64), other.astype(np.uint64)
    apart = np.where(other > one, unsigned[1] - unsigned[0], unsigned[0] - unsigned[1])
    return apart.astype(np.float64)


def _share(
    golden: NDArray[Any],
    new: NDArray[Any],
    g: NDArray[np.float64],
    difference: NDArray[np.float64],
    parameters: _core.TreeParameters,
) -> NDArray[np.float64]:
    if parameters.ulps:
        ours, theirs = ordered(golden), ordered(new)
        if ours is not None and theirs is not None:
            return _apart(ours, theirs) / parameters.ulps
        return difference / parameters.ulps
    # Whole numbers may be so many of them apart, as the core has it.
    atol = math.floor(parameters.atol) if golden.dtype.kind in "iu" else parameters.atol
    share: NDArray[np.float64] = difference / (atol + parameters.rtol * np.abs(g))
    return share


def share_classes(
    shares: NDArray[np.float64], differences: NDArray[np.float64] | None = None
) -> NDArray[np.uint8]:
    """Classes as in `Comparison.histogram`; whatever is beyond its bound is in one beyond it, and
    what has no finite difference in one of its own.
    """
    with np.errstate(all="ignore"):
        exponents = np.floor(np.log2(shares)) + BOUND_CLASS
    # Exactly the bound is within it.
    exponents = np.where(shares == 1.0, BOUND_CLASS - 1, exponents)
    classes = np.clip(np.nan_to_num(exponents, nan=33, posinf=33, neginf=1), 1, SHARE_CLASSES - 1)
    if differences is not None:
        classes = np.where(np.isinf(differences), NO_NUMBER, classes)
    return np.where(shares == 0, 0, classes).astype(np.uint8)


class LeastShares(Struct, frozen=True):
    """What summaries prove of changed chunks (docs/reference/cell-codes.md, section 9).

    shares: by how large a share of the golden's own bound a value of each chunk moved, at least;
    infinite where a value is no number on one side alone, 0 where nothing is proved. has_size:
    whether that is a distance for sure. summaries: of these chunks of the new values. nan_count:
    how many values became NaN in chunks in which the golden has none.
    """

    shares: NDArray[np.float64]
    has_size: NDArray[np.bool_]
    summaries: NDArray[np.int64]
    nan_count: int


# Columns: the least and the greatest code stand before the sum; whence NaN are counted.
_SUM, _NAN = 2, 4
# So many chunks are read at a time, if they lie together.
_CHUNKS_AT_ONCE = 256


def least_shares(
    golden: _core.GoldenVariable, new: Values, leaves: NDArray[np.int64]
) -> LeastShares | None:
    """Of changed chunks of new values; None if the golden has no summaries. Raises CiwrapError for
    values that cannot be read.
    """
    if golden.summaries is None or golden.tree.parameters.is_narrowed:
        return None
    scalars = new.element_count * golden.tree.parameters.scalars_per_element
    return shares_between(
        golden.tree.parameters,
        scalars,
        leaves,
        golden.summaries[leaves],
        summaries_against(golden.tree, new, leaves),
    )


def shares_between(
    parameters: _core.TreeParameters,
    scalar_count: int,
    leaves: NDArray[np.int64],
    ours: NDArray[np.int64],
    theirs: NDArray[np.int64],
) -> LeastShares:
    """What the summaries of changed chunks prove, of an array of so many scalars.

    Why that is so: docs/reference/cell-codes.md, section 9.
    """
    shares, has_size = _core.least_shares(parameters, scalar_count, leaves, ours, theirs)
    # Of complex numbers, parts are counted.
    had_none = (ours[:, _NAN] == 0) & (parameters.scalars_per_element == 1)
    return LeastShares(shares, has_size, theirs, int(theirs[had_none, _NAN].sum()))


def chunk_means(
    golden: _core.GoldenVariable, leaves: NDArray[np.int64], least: LeastShares
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The mean of the rounded numbers of each chunk, of the golden and of new values of which these
    chunks have changed; each to within its bound. NaN where a chunk has no such numbers. None where
    codes are not of even steps.
    """
    parameters, summaries = golden.tree.parameters, golden.summaries
    if summaries is None or parameters.scalars_per_element > 1:
        return None
    levels = parameters.residue_levels
    half = (levels - 1) // 2
    if parameters.kind == "absolute":
        step, first = parameters.atol / (half + 1), 0.0
    elif parameters.kind == "steps" and parameters.dtype[1] in "iu":
        step = (math.floor(parameters.atol) + 1) // (half + 1)
        first = (step - 1) / 2 + (2.0 ** (8 * parameters.scalar_bytes - 1)) * (
            parameters.dtype[1] == "u"
        )
    else:
        return None
    count = math.prod(golden.shape)
    places = np.arange(summaries.shape[0]) * parameters.chunk_scalars
    counts = np.minimum(parameters.chunk_scalars, count - places)
    ours, theirs = summaries, summaries.copy()
    theirs[leaves] = least.summaries
    means = []
    for side in (ours, theirs):
        rounded = counts - side[:, 4:].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A code stands for as many steps as there are levels, here for the middle one.
            mean = (side[:, _SUM] / rounded * levels + half) * step + first
        may_wrap = np.abs(side[:, :_SUM].astype(np.float64)).max(axis=1) * counts >= 2.0**63
        means.append(np.where((rounded == 0) | may_wrap, np.nan, mean))
    return means[0], means[1]


def summaries_against(
    golden: _core.Tree, new: Values, leaves: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of some chunks of new values, rounded relative to the golden's residues if it has any."""
    parameters = golden.parameters
    per_chunk = chunk_elements(parameters)
    found = []
    breaks = np.flatnonzero(np.diff(leaves) != 1) + 1
    for run in np.split(leaves, breaks):
        for start in range(0, run.size, _CHUNKS_AT_ONCE):
            leaf = int(run[start])
            chunks = min(_CHUNKS_AT_ONCE, run.size - start)
            first = leaf * per_chunk
            count = min(chunks * per_chunk, new.element_count - first)
            data = as_bytes(new.read(first, count))
            found.append(_core.summarize_chunks(parameters, data, golden=golden, first_leaf=leaf))
    return np.concatenate(found)


# Chunks that are tried: so many of one variable, and no more once so many in a row had no solution.
# Each takes up to some hundredths of a second.
MOST_CHUNKS = 64
_MOST_UNSOLVED = 8


class Solved(Struct, frozen=True):
    """What is known of a variable without the golden's data. chunk_count: suspect chunks of which
    everything that moved is known. elements: of these, and others that are surely beyond.
    """

    chunk_count: int
    elements: tuple[MovedElement, ...]


def solve_chunks(
    tree: _core.Tree,
    new: Values,
    leaves: NDArray[np.int64],
    shape: tuple[int, ...],
    asked: _core.TreeParameters,
) -> Solved:
    """Tries to solve suspect chunks, and judges what moved by the bound that is asked for. Raises
    CiwrapError for values that cannot be read.
    """
    parameters = tree.parameters
    is_whole = parameters.chunk_scalars % parameters.scalars_per_element == 0
    if parameters.dtype[1] in "SU" or not is_whole:
        return Solved(0, ())
    chunks = _Chunks(tree, new, shape, asked)
    solved, in_vain = 0, 0
    found: list[MovedElement] = []
    for leaf in leaves[:MOST_CHUNKS].tolist():
        moved, is_solved = chunks.look_at(leaf)
        found += moved
        solved += is_solved
        in_vain = 0 if moved else in_vain + 1
        if in_vain == _MOST_UNSOLVED:
            break
    if bound_ratio(asked, parameters)[0] < 1:  # values in the golden's cells may be beyond it
        solved = 0
    return Solved(solved, tuple(found))


class _Chunks:
    """The suspect chunks of one variable, one after the other."""

    def __init__(
        self,
        tree: _core.Tree,
        new: Values,
        shape: tuple[int, ...],
        asked: _core.TreeParameters,
    ) -> None:
        self._tree = tree
        self._parameters = tree.parameters
        self._new = new
        self._shape = shape
        self._cells = Cells(scalar_parameters(tree.parameters))
        self._asked = scalar_parameters(asked)

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
        is_beyond, shares = _beyond_bound(self._cells, self._asked, golden, new)
        least, greatest = value_texts(golden.values, dtype)
        return replace(
            known,
            golden_from=least,
            golden_to=greatest,
            share_from=None if shares is None else min(shares),
            share_to=None if shares is None else max(shares),
            is_beyond=is_beyond,
        )


def _beyond_bound(
    cells: Cells, asked: _core.TreeParameters, golden: Preimage, new: NDArray[Any]
) -> tuple[bool | None, list[float] | None]:
    """Whether the new value is beyond the bound, whichever of its values the golden had; None if
    that depends on it. And the least and the greatest share of the bound, as far as it is a number.

    |new - golden| - bound is a straight line in the golden's value between its ends, zero, and the
    new value, so these are all that has to be looked at.
    """
    ends = cells.turning_points(golden.values, new)
    sides = as_bytes(ends), as_bytes(np.repeat(new, ends.size))
    found = _core.compare_arrays(asked, *sides)
    beyond = {0: False, ends.size: True}.get(int(found.differing_count))
    shares = [share for _, share, _, _ in _core.compare_each(asked, *sides)]
    numbers = [share for share in shares if share is not None]
    return beyond, numbers if len(numbers) == len(shares) else None
