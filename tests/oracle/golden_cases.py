"""Golden variables made from arrays by the reference implementations alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import trees
from .cell_codes import make_plan
from .golden_format import Variable
from .scalars import AnyArray, missing_mask, narrow, parse_dtype, raw_bits


def fill_bits(dtype: str, values: tuple[float | int, ...]) -> tuple[int, ...]:
    """Fill values as the file keeps them: the bits of one scalar in canonical form."""
    layout = parse_dtype(dtype)
    out = []
    for value in values:
        if layout.scalar in ("f2", "bf2", "f4", "f8"):
            canonical = abs(value) if value == 0 else value  # NaN needs none: NumPy's is canonical
            scalars = narrow(layout.scalar, np.array([canonical]))
            assert missing_mask(layout.scalar, scalars, (value,))[0]
            out.append(int(raw_bits(layout.scalar, scalars)[0]))
        else:
            out.append(int(value) % (1 << 8 * layout.scalar_bytes))
    return tuple(out)


def variable_of(
    name: str,
    data: bytes | AnyArray,
    *,
    dtype: str = "",
    shape: tuple[int, ...] | None = None,
    iteration: int | None = None,
    rank: int | None = None,
    keep_data: bool = False,
    keep_summaries: bool = False,
    arity: int = 16,
    **parameters: Any,
) -> Variable:
    """data: an array, or bytes of `dtype`. parameters: those of make_plan."""
    if isinstance(data, np.ndarray):
        dtype, shape = dtype or data.dtype.str, data.shape if shape is None else shape
        data = data.tobytes()
    layout = parse_dtype(dtype)
    plan = make_plan(dtype, **parameters)
    scalar_count = len(data) // layout.scalar_bytes
    if shape is None:
        shape = (scalar_count // layout.scalars_per_element,)
    (*_, leaves), codes = trees.build(plan, data, arity)
    has_summaries = keep_summaries and plan.kind != "exact"
    residues = b""
    if plan.k > 1:
        assert codes.residues is not None
        residues = trees.pack_residues(plan, codes.residues).tobytes()
    return Variable(
        name=name,
        dtype=dtype,
        shape=shape,
        leaves=b"".join(leaves),
        residues=residues,
        data=data if keep_data else None,
        summaries=trees.summaries(plan, codes).tobytes() if has_summaries else None,
        iteration=iteration,
        rank=rank,
        atol=float(parameters.get("atol", 0.0)),
        rtol=float(parameters.get("rtol", 0.0)),
        ulps=int(parameters.get("ulps", 0)),
        requested_levels=int(parameters.get("residue_levels", 1)),
        levels=plan.k,
        chunk_bytes=int(parameters.get("chunk_bytes", 4096)),
        arity=arity,
        equal_nan=bool(parameters.get("equal_nan", True)),
        fill_bits=fill_bits(dtype, tuple(parameters.get("fill_values", ()))),
    )
