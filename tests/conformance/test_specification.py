"""docs/reference/cell-codes.md against the error-bound contract, by its reference implementation.

Nothing here needs the compiled core: what is tested is the specification.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracle import adversary, attack, contract, mutants
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cases import Case, cases_of_tier
from oracle.strategies import ATOL, BOUNDS, LEVELS, RTOL

DTYPES = ("<f2", "<bf2", "<f4", "<f8")


@given(st.sampled_from(DTYPES), st.sampled_from(LEVELS), BOUNDS, st.integers(0, 2**32))
def test_equal_codes_never_hide_a_difference_and_the_share_never_alarms(
    dtype: str, k: int, bound: dict[str, float], seed: int
) -> None:
    case = Case(dtype, k, bound)
    plan, rng = case.plan(), np.random.default_rng(seed)
    asked = (float(bound.get("atol", 0)), float(bound.get("rtol", 0)))
    golden, new = adversary.pairs(plan, rng, 2000, asked)
    outcome = attack.attack(plan, case.contract(), golden, new, cross=rng)
    assert outcome.clean, outcome.example


@given(
    st.sampled_from(DTYPES),
    st.sampled_from(LEVELS),
    BOUNDS,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
@example("<f8", 3, {"rtol": 1e-3}, 0x8000000000000000, 0)
@example("<f4", 15, {"atol": 1e-45}, 0x3F800000, 0xBF800000)
def test_one_pair_of_any_bits(
    dtype: str, k: int, bound: dict[str, float], golden_bits: int, new_bits: int
) -> None:
    case = Case(dtype, k, bound)
    plan = case.plan()
    scalar = plan.layout.scalar
    width = (1 << (8 * plan.layout.scalar_bytes)) - 1
    golden = sc.from_bits(scalar, np.array([golden_bits & width], dtype=np.uint64))
    new = sc.from_bits(scalar, np.array([new_bits & width], dtype=np.uint64))
    outcome = attack.attack(plan, case.contract(), golden, new)
    assert outcome.clean, outcome.example


@given(st.lists(st.floats(), min_size=1, max_size=8), ATOL, RTOL, st.floats(-3, 3))
def test_the_vectorised_contract_is_the_contract(
    golden: list[float], atol: float, rtol: float, factor: float
) -> None:
    """The fast form of the truth against the slow one, near the bound above all."""
    bound = contract.Bound(atol, rtol)
    g = np.array(golden)
    with np.errstate(all="ignore"):
        v = g + factor * (atol + rtol * np.abs(g))
        v = np.concatenate([v, g + atol + rtol * np.abs(g), g[::-1]])
    g = np.concatenate([g, g, g])
    told = contract.differs_of_scalars("f8", g, v, bound)
    for i in range(len(g)):
        assert told[i] == contract.differs_scalar(float(g[i]), float(v[i]), bound)


@pytest.mark.parametrize(("terms", "budget"), [(16, 39), (24, 49)])
def test_log2_is_within_its_budget(terms: int, budget: int) -> None:
    """Each of the two values of a pair may use half of w (2^-38 and 2^-48)."""
    rng = np.random.default_rng(terms)
    root = math.sqrt(0.5)
    y = np.concatenate(
        [
            np.exp2(rng.uniform(-0.5, 0.5, 1500)),
            np.exp2(rng.uniform(-1074, 1023, 300)),
            1 + rng.choice([-1, 1], 500) * np.exp2(rng.uniform(-53, -2, 500)),
            root * (1 + np.arange(-20, 20) * 2.0**-52),
            np.array([5e-324, 2.0**-1022, 1.7976931348623157e308, 1.0]),
        ]
    )
    e, p = cc.log2_parts(y, terms)
    with localcontext() as context:
        context.prec = 50
        two = Decimal(2).ln()
        worst = max(
            abs(Decimal(int(i)) + Decimal(float(f)) - Decimal(float(x)).ln() / two)
            for i, f, x in zip(e, p, y, strict=True)
        )
        assert worst < Decimal(2) ** -budget


@given(RTOL, st.sampled_from(LEVELS), st.sampled_from(DTYPES))
def test_steps_of_a_relative_bound_are_fine_enough(rtol: float, k: int, dtype: str) -> None:
    """h + 1 steps and all rounding errors (2^-21 steps, w) fit into log2(1 + rtol)."""
    plan = cc.make_plan(dtype, rtol=rtol, residue_levels=k)
    assume(plan.kind == "relative")
    with localcontext() as context:
        context.prec = 60
        true = (1 + Decimal(rtol)).ln() / Decimal(2).ln()
        reach = Decimal(plan.c2) * (true - Decimal(plan.log_error))
        assert reach > plan.h + 1 + Decimal(2) ** -21


@given(st.floats(5e-324, 2.0**1000), st.integers(1, 53))
def test_up_is_the_smallest_above(x: float, n: int) -> None:
    result = cc.up(x, n)
    assert result >= x
    mantissa = int(math.frexp(result)[0] * 2**53)
    if x >= 2.0**-1022:
        assert mantissa % (1 << (53 - n)) == 0
        below = cc.from_bits64(cc.bits64(result) - (1 << (53 - n)))
        assert below < x


@pytest.mark.parametrize("case", cases_of_tier(), ids=str)
def test_specification_over_every_kind(case: Case) -> None:
    plan, rng = case.plan(), case.rng()
    golden, new = adversary.pairs(plan, rng, 3000)
    outcome = attack.attack(plan, case.contract(), golden, new, cross=rng)
    assert outcome.clean, outcome.example
    if plan.h > 0 and plan.kind != "steps":
        assert outcome.guaranteed > 0


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda m: m.name)
def test_the_suite_catches_a_broken_encoder(mutant: mutants.Mutant) -> None:
    """A mutant is caught by the attack if it breaks the contract, else by its codes."""
    total = attack.Outcome()
    changed = 0

    def is_caught() -> bool:
        return all(getattr(total, what) > 0 for what in mutant.breaks) and bool(
            changed > 0 or mutant.breaks
        )

    for case, salt in itertools.product(mutant.cases, range(3)):
        if is_caught():  # counts only grow
            return
        plan, rng = case.plan(), case.rng(salt)
        golden, new = adversary.pairs(plan, rng, 20_000)
        total.add(attack.attack(plan, case.contract(), golden, new, mutant.encoder(), rng))
        data = sc.bytes_of(plan.layout, golden)
        mine, right = mutant.encoder()(plan, data, None), cc.cell_codes(plan, data)
        changed += int((~attack.equal_rows(mine.values, right.values)).sum())
        if mine.residues is not None and right.residues is not None:
            changed += int((mine.residues != right.residues).sum())
    assert is_caught(), f"{mutant.name}: the attack saw none of {mutant.breaks} in {total}"


def test_the_share_is_the_one_of_the_page() -> None:
    """Section 4 of the contract: 50 %, 67 %, 87.5 %, 99.2 % of the bound, to within a hair."""
    for k, ideal in ((3, Fraction(1, 2)), (5, Fraction(2, 3)), (15, Fraction(7, 8))):
        for dtype in ("<f4", "<f8"):
            share = cc.make_plan(dtype, atol=1e-3, residue_levels=k).share
            assert ideal * (1 - Fraction(1, 2**18)) < share < ideal


def test_the_contract_without_extended_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy.longdouble is no wider than binary64, integers decide everything, and alike."""
    case = Case("<f8", 1, {"atol": 1e-5, "rtol": 1e-3})
    golden, new = adversary.pairs(case.plan(), case.rng(), 5000)
    told = contract.differs_of_scalars("f8", golden, new, case.contract())
    monkeypatch.setattr(contract, "WIDE", None)
    again = contract.differs_of_scalars("f8", golden, new, case.contract())
    assert told.tolist() == again.tolist()
    assert 500 < told.sum() < 4500
