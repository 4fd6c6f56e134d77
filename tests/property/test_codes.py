"""Codes and residues of the core, bit for bit, against the reference implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from core_side import code_differences, core_encoder, parameters
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import adversary, attack
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cases import FLOAT_DTYPES, Case, cases_of_tier
from oracle.strategies import BOUNDS, LEVELS


def elements(case: Case, count: int, salt: int = 0) -> tuple[bytes, bytes]:
    plan, rng = case.plan(), case.rng(salt)
    golden, new = adversary.pairs(plan, rng, count * plan.layout.scalars_per_element)
    return sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)


@pytest.mark.parametrize("case", cases_of_tier(), ids=str)
def test_codes_and_residues_are_those_of_the_page(case: Case) -> None:
    plan, params = case.plan(), parameters(case)
    assert (params.kind, params.residue_levels, params.code_bytes) == (
        plan.kind,
        plan.k,
        plan.code_bytes,
    )
    assert (params.scalar_bytes, params.scalars_per_element, params.chunk_scalars) == (
        plan.layout.scalar_bytes,
        plan.layout.scalars_per_element,
        plan.chunk_scalars,
    )
    golden, new = elements(case, 1500)
    assert code_differences(params, plan, golden, None) == 0
    residues = cc.cell_codes(plan, golden).residues
    if residues is not None:
        assert code_differences(params, plan, new, residues) == 0


@pytest.mark.parametrize("case", cases_of_tier(), ids=str)
def test_core_keeps_the_contract(case: Case) -> None:
    plan, rng = case.plan(), case.rng(1)
    golden, new = adversary.pairs(plan, rng, 1500)
    if plan.layout.scalars_per_element == 2:
        golden, new = golden[: len(golden) // 2 * 2], new[: len(new) // 2 * 2]
    encode = core_encoder(parameters(case))
    outcome = attack.attack(plan, case.contract(), golden, new, encode)
    assert outcome.clean, outcome.example


@given(st.sampled_from(FLOAT_DTYPES), st.sampled_from(LEVELS), BOUNDS, st.integers(0, 2**32))
@example("<f8", 1, {"rtol": 5e-14}, 0)
@example("<f8", 255, {"rtol": 3.3e-13}, 0)
@example("<f4", 3, {"atol": 2.0**-149}, 0)
@example("<f4", 1, {"atol": 1.5 * 2.0**-149}, 0)
@example("<f8", 3, {"atol": 1e308}, 0)
@example("<f8", 15, {"atol": 1e-300, "rtol": 1e-3}, 0)
@example("<f8", 15, {"atol": 1e-310, "rtol": 1e-3}, 0)
@example("<f8", 15, {"atol": 1.0, "rtol": 1e-305}, 0)
def test_any_bound(dtype: str, k: int, bound: dict[str, float], seed: int) -> None:
    case = Case(dtype, k, bound)
    plan, params = case.plan(), parameters(case)
    assert (params.kind, params.residue_levels) == (plan.kind, plan.k)
    rng = np.random.default_rng(seed)
    asked = (float(bound.get("atol", 0)), float(bound.get("rtol", 0)))
    golden, new = adversary.pairs(plan, rng, 600, asked)
    golden_bytes, new_bytes = (sc.bytes_of(plan.layout, x) for x in (golden, new))
    assert code_differences(params, plan, golden_bytes, None) == 0
    residues = cc.cell_codes(plan, golden_bytes).residues
    if residues is not None:
        assert code_differences(params, plan, new_bytes, residues) == 0
        anything = rng.integers(0, plan.k, len(residues)).astype(np.uint8)
        assert code_differences(params, plan, new_bytes, anything) == 0


@given(st.sampled_from(FLOAT_DTYPES[:8]), st.sampled_from(LEVELS), BOUNDS, st.binary(min_size=8))
def test_any_bits(dtype: str, k: int, bound: dict[str, float], data: bytes) -> None:
    case = Case(dtype, k, bound)
    plan = case.plan()
    whole = data[: len(data) // plan.layout.scalar_bytes * plan.layout.scalar_bytes]
    assert code_differences(parameters(case), plan, whole, None) == 0


FALLBACKS = [
    Case("<f8", 15, {"atol": 1e-300}),
    Case("<f8", 15, {"rtol": 1e-15}),
    Case("<f8", 15, {"rtol": 1e-15, "atol": 1e-3}),
    Case("<f4", 15, {"atol": 1e-50}),
    Case("<f8", 15, {"atol": 1e308}),
    Case("<f8", 15, {"atol": 1e-310, "rtol": 1e-3}),
    Case("<f8", 15, {"atol": 1.0, "rtol": 1e-305}),
]


@pytest.mark.parametrize("case", cases_of_tier() + FALLBACKS, ids=str)
def test_the_stated_share_is_guaranteed(case: Case) -> None:
    """`guaranteed_share` promises no more than the page does; `exact_above` is where X is."""
    plan, params = case.plan(), parameters(case)
    assert params.guaranteed_share <= float(plan.share) * (1 + 1e-15)
    assert params.guaranteed_share >= float(plan.share) * (1 - 1e-6)
    if plan.kind in ("absolute", "relative"):
        top = cc.scaled_power(plan.x_exponent)
        if plan.code_bytes == 4 and plan.x_exponent == 128:
            assert params.exact_above in (top, math.inf)
        else:
            assert params.exact_above == top
