"""The compiled core in the words of the oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cell_codes import Codes, Plan

from ciwrap import _core

if TYPE_CHECKING:
    from oracle.attack import Encoder
    from oracle.cases import Case
    from oracle.scalars import AnyArray

LEVELS = [level["name"] for level in _core.cpu_levels() if level["usable"]]
BACKENDS = [one["name"] for one in _core.backends() if one["usable"]]
# All that makes digests on this machine: CPU level, backend and number of threads.
WAYS = [(level, backend, threads) for level in LEVELS for backend in BACKENDS for threads in (1, 2)]
WAYS += [(LEVELS[-1], "portable", threads) for threads in (1, 2)]  # what devices run, on the host


def parameters(case: Case, **more: object) -> _core.TreeParameters:
    return _core.TreeParameters(case.dtype, **{**case.keywords, **more})  # type: ignore[arg-type]


def as_rows(plan: Plan, codes: AnyArray) -> AnyArray:
    """Codes of the core in the oracle's form."""
    if plan.kind == "exact":
        flat = np.frombuffer(np.ascontiguousarray(codes).tobytes(), dtype=np.uint8)
        return flat.reshape(-1, plan.code_bytes)
    assert codes.dtype == np.dtype(f"i{plan.code_bytes}")
    return codes


def core_encoder(params: _core.TreeParameters) -> Encoder:
    def encode(plan: Plan, data: bytes, residues: AnyArray | None) -> Codes:
        codes, own = _core.cell_codes(params, data, residues)
        values = as_rows(plan, codes)
        scalars = sc.scalars_of(plan.layout, data)
        missing = sc.missing_mask(plan.layout.scalar, scalars, plan.fill_values)
        nan = sc.nan_mask(plan.layout.scalar, scalars) & ~missing
        return Codes(values, own, None, missing, nan)

    return encode


def code_differences(
    params: _core.TreeParameters, plan: Plan, data: bytes, residues: AnyArray | None
) -> int:
    """How many codes or residues of the core are not those of the reference implementation."""
    ours, own = _core.cell_codes(params, data, residues)
    right = cc.cell_codes(plan, data, residues)
    rows = as_rows(plan, ours)
    assert rows.shape == right.values.shape
    wrong = int((rows != right.values).sum())
    if residues is None and plan.k > 1:
        assert own is not None
        assert right.residues is not None
        wrong += int((own != right.residues).sum())
    else:
        assert own is None
    return wrong
