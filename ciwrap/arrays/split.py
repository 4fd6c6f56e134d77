"""Arrays that NumPy's plain types cannot hold whole, as several: masked, sparse, long double.

Each half says something that the other does not, so they are compared side by side: `x` and
`x.mask`, `x` and `x.row` and `x.col`, `x` and `x.low`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import native
from ciwrap.arrays.objects import TYPE
from ciwrap.arrays.single import missing, refuse_carried, truth_values, unit_of
from ciwrap.errors import UnsupportedDtypeError
from ciwrap.late import numpy as np
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ciwrap.arrays.part import Part

_LONG = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def is_long_double(array: Any) -> bool:
    """Whether the elements are wider than float64, or complex ones of such parts."""
    dtype = getattr(array, "dtype", None)
    return (
        isinstance(array, (np.ndarray, np.generic))
        and isinstance(dtype, np.dtype)
        and dtype.kind in _LONG
        and dtype.itemsize > _LONG[dtype.kind].itemsize
    )


def long_double(part: Part) -> Iterator[Part]:
    """`x`, rounded to float64, and `x.low`, what that leaves; together they are exact.

    Raises UnsupportedDtypeError for numbers that two floats do not hold.
    """
    unit = unit_of(part.value)
    values: NDArray[Any] = np.asarray(part.value)
    narrow = _LONG[values.dtype.kind]
    with np.errstate(all="ignore"):
        high = values.astype(narrow)
        rest = np.where(np.isfinite(values), values - high, 0)
        low = rest.astype(narrow)
        is_lost = bool(np.any(np.isfinite(values) & (high.astype(values.dtype) + low != values)))
    if is_lost:
        raise UnsupportedDtypeError(
            f"{values.dtype} holds numbers that two numbers of type {narrow} cannot hold",
            variable=part.name,
            remedy=f"give x.astype('{narrow}') if these will do",
        )
    label = ((TYPE, str(native(values.dtype))),)
    yield replace(part, value=high, labels=(*part.labels, *label), unit=part.unit or unit)
    yield part.beside("low", low, is_exact=False)


def mask_of(value: Any, name: str) -> NDArray[np.bool_] | None:
    """The mask of an array that has one (NumPy's, astropy's); None if nothing is masked.

    Raises UnsupportedDtypeError for records of which something is masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        mask: Any = np.ma.getmaskarray(value)
        if mask.dtype.names is not None:
            if truth_values(mask).any():
                raise missing(value, name)
            return None
    elif isinstance(value, np.ndarray) and hasattr(value, "unmasked"):
        mask = getattr(value, "mask", None)
    else:
        return None
    # A mask of astropy's records is a structured array; what has one is refused.
    found: NDArray[np.bool_] = np.asarray(mask)
    return found if found.dtype == np.bool_ and found.any() else None


def masked(part: Part, mask: NDArray[np.bool_]) -> Iterator[Part]:
    """`x` with zeros (empty texts) in the place of masked elements, and `x.mask`. Raises what
    `refuse_carried` raises.
    """
    value = part.value
    unit = unit_of(value)
    refuse_carried(value, part.name)
    if isinstance(value, np.ma.MaskedArray):
        plain: NDArray[Any] = np.array(np.ma.getdata(value), subok=False)
    else:
        plain = np.array(value.unmasked, subok=False)
    plain[mask] = np.zeros((), dtype=plain.dtype)
    label = (("missing", "masked"),)
    yield replace(part, value=plain, labels=(*part.labels, *label), unit=part.unit or unit)
    yield part.beside("mask", mask)


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse array or matrix of SciPy, in any of its formats."""
    return hasattr(value, "tocoo") and hasattr(value, "nnz")


def sparse(part: Part) -> Iterator[Part]:
    """`x` with the elements that are stored, and where they stand (`x.row`, `x.col`).

    They are sorted, and those of one place are added up, so the format makes no difference.
    """
    stored = part.value.tocoo(copy=True)
    stored.sum_duplicates()
    places = getattr(stored, "coords", None) or (stored.row, stored.col)
    order = np.lexsort(tuple(reversed(places)))
    shape = " ".join(map(str, stored.shape))
    labels = (*part.labels, (TYPE, "sparse"), ("shape", shape))
    yield replace(part, value=stored.data[order], labels=labels)
    names = ("row", "col") if len(places) == 2 else [f"index{i}" for i in range(len(places))]
    for name, place in zip(names, places, strict=True):
        yield part.beside(name, np.asarray(place, dtype=np.int64)[order])
