"""Attacks an encoder: equal codes must not hide a difference, small differences not raise an alarm.

The encoder is a parameter, so that the same attack runs against the specification's reference
implementation, against deliberately broken variants of it (to know that the attack can fail), and
against the compiled core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from . import contract
from . import scalars as sc
from .cell_codes import Codes, Plan, cell_codes, scaled_power
from .scalars import AnyArray

Encoder = Callable[[Plan, bytes, AnyArray | None], Codes]


def reference_encoder(plan: Plan, data: bytes, residues: AnyArray | None) -> Codes:
    return cell_codes(plan, data, residues)


@dataclass(slots=True)
class Outcome:
    """Counts of one attack. `misses` and `false_alarms` have to be 0."""

    pairs: int = 0
    matches: int = 0
    differing: int = 0
    misses: int = 0
    guaranteed: int = 0  # pairs within the guaranteed share
    false_alarms: int = 0
    wrong_drift: int = 0
    met: int = 0  # special codes inside the range of rounded ones
    cross_pairs: int = 0
    example: str = ""

    def add(self, other: Outcome) -> None:
        for name in self.__slots__:
            if name != "example":
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.example = self.example or other.example

    @property
    def clean(self) -> bool:
        return not (self.misses or self.false_alarms or self.wrong_drift or self.met)


def equal_rows(a: AnyArray, b: AnyArray) -> AnyArray:
    same = a == b
    return np.asarray(same if same.ndim == 1 else same.all(axis=1))


def describe(plan: Plan, what: str, golden: AnyArray, new: AnyArray, at: int) -> str:
    if plan.layout.scalar in sc.FLOATS:
        g, v = (float(sc.widen(plan.layout.scalar, a[at : at + 1])[0]) for a in (golden, new))
        shown = f"g={g.hex()} v={v.hex()}"
    else:
        shown = f"g={golden[at]!r} v={new[at]!r}"
    return f"{what}: {shown} at {at}; {plan}"


@np.errstate(all="ignore")
def attack(
    plan: Plan,
    bound: contract.Bound,
    golden: AnyArray,
    new: AnyArray,
    encode: Encoder = reference_encoder,
    cross: np.random.Generator | None = None,
) -> Outcome:
    """`bound` is the bound as asked for; the share is of the one used (plan.atol, plan.rtol)."""
    layout = plan.layout
    ours = encode(plan, sc.bytes_of(layout, golden), None)
    theirs = encode(plan, sc.bytes_of(layout, new), ours.residues)
    match = equal_rows(ours.values, theirs.values)
    if not bound.equal_nan:
        match &= ~(ours.nan | theirs.nan)
    differ = contract.differs_of_scalars(layout.scalar, golden, new, bound)
    result = Outcome(pairs=len(match), matches=int(match.sum()), differing=int(differ.sum()))
    missed = match & differ
    result.misses = int(missed.sum())
    inside = ~contract.differs_of_scalars(
        layout.scalar, golden, new, used_bound(plan, bound), plan.share
    )
    if plan.kind == "relative":  # the guarantee is stated for magnitudes below X
        top = scaled_power(plan.x_exponent)
        below = [~(np.abs(sc.widen(layout.scalar, values)) >= top) for values in (golden, new)]
        inside &= (below[0] & below[1]) | equal_rows(golden, new)
    result.guaranteed = int(inside.sum())
    alarmed = inside & ~match
    result.false_alarms = int(alarmed.sum())
    for mask, what in ((missed, "miss"), (alarmed, "false alarm")):
        if mask.any() and not result.example:
            result.example = describe(plan, what, golden, new, int(np.flatnonzero(mask)[0]))
    if plan.kind != "exact":
        limits(plan, ours, golden, result)
        limits(plan, theirs, new, result)
        drift(plan, ours, theirs, match, golden, new, result)
        if cross is not None:
            cross_attack(plan, bound, golden, ours, encode, cross, result)
    return result


def used_bound(plan: Plan, bound: contract.Bound) -> contract.Bound:
    scalar = plan.layout.scalar
    atol, rtol, ulps = plan.atol, plan.rtol, 0
    if plan.kind == "steps":
        ulps = plan.n if scalar in sc.FLOATS else 0
        atol = float(plan.n) if scalar in sc.INTEGERS else 0.0
    return contract.Bound(atol, rtol, ulps, bound.equal_nan, bound.fill_values)


def limits(plan: Plan, codes: Codes, values: AnyArray, result: Outcome) -> None:
    """Rounded codes stay within C; special codes stay beyond it, within the width."""
    if plan.kind == "steps" or codes.fine is None:
        return
    wide = codes.values.astype(np.int64)
    inside = np.abs(np.where(wide == plan.int_min, plan.int_min + 1, wide)) <= plan.code_limit
    wrong = inside == codes.special
    if wrong.any():
        result.met += int(wrong.sum())
        at = int(np.flatnonzero(wrong)[0])
        result.example = result.example or describe(plan, "codes meet", values, values, at)


def drift(
    plan: Plan,
    ours: Codes,
    theirs: Codes,
    match: AnyArray,
    golden: AnyArray,
    new: AnyArray,
    result: Outcome,
) -> None:
    """Where codes are equal, the wrapped residue difference is f(new) - f(golden)."""
    if theirs.delta is None or ours.fine is None or theirs.fine is None:
        return
    rounded = match & ~ours.special & ~theirs.special
    wrong = rounded & (theirs.delta != theirs.fine - ours.fine)
    if wrong.any():
        result.wrong_drift += int(wrong.sum())
        at = int(np.flatnonzero(wrong)[0])
        result.example = result.example or describe(plan, "wrong drift", golden, new, at)


def cross_attack(
    plan: Plan,
    bound: contract.Bound,
    values: AnyArray,
    ours: Codes,
    encode: Encoder,
    rng: np.random.Generator,
    result: Outcome,
) -> None:
    """All golden values of one residue against all values: whoever meets must not differ.

    For each golden the extreme values among those with its code are tried, which decides for all.
    """
    layout = plan.layout
    if layout.scalar in sc.FLOATS:
        wide = sc.widen(layout.scalar, values)
        order = np.argsort(wide, kind="stable")
    else:
        order = np.argsort(values, kind="stable")
    candidates = values[order]
    residues = [None] if ours.residues is None else list(rng.choice(plan.k, min(plan.k, 4), False))
    for s in residues:
        constant = None if s is None else np.full(len(values), s, dtype=np.uint8)
        if constant is None:
            mine, theirs = ours.values, ours.values[order]
            goldens = values
        else:
            assert ours.residues is not None
            holds = ours.residues == s
            mine, goldens = ours.values[holds], values[holds]
            theirs = encode(plan, sc.bytes_of(layout, candidates), constant).values
        # A stable sort by code keeps the order by value inside each code.
        by_code = np.argsort(theirs, kind="stable")
        sorted_codes = theirs[by_code]
        first = np.searchsorted(sorted_codes, mine, "left")
        last = np.searchsorted(sorted_codes, mine, "right") - 1
        met = first <= last
        for end in (first, last):
            partner = candidates[by_code[end[met]]]
            g = goldens[met]
            differ = contract.differs_of_scalars(layout.scalar, g, partner, bound)
            nan = sc.nan_mask(layout.scalar, g) & (not bound.equal_nan)
            differ &= ~nan
            result.cross_pairs += len(g)
            if differ.any():
                result.misses += int(differ.sum())
                at = int(np.flatnonzero(differ)[0])
                result.example = result.example or describe(plan, "cross miss", g, partner, at)


def exact_share(golden: float, new: float, atol: float, rtol: float) -> Fraction:
    """|v - g| / (atol + rtol |g|) over the reals."""
    allowed = Fraction(atol) + Fraction(rtol) * abs(Fraction(golden))
    return abs(Fraction(new) - Fraction(golden)) / allowed


def table(outcomes: Mapping[tuple[str, str], Outcome]) -> str:
    """Counts as a Markdown table, one row per (kind, dtype), with their sum."""
    names = ("pairs", "matches", "differing", "guaranteed", "cross_pairs")
    faults = ("misses", "false_alarms", "wrong_drift", "met")
    total = Outcome()
    lines = ["| kind | dtype | " + " | ".join(names + faults) + " |"]
    lines.append("|---" * (2 + len(names + faults)) + "|")
    for outcome in outcomes.values():
        total.add(outcome)
    rows = [*sorted(outcomes.items()), (("all", ""), total)]
    for (kind, dtype), outcome in rows:
        counts = " | ".join(f"{getattr(outcome, name):,}" for name in names + faults)
        lines.append(f"| {kind} | {dtype} | {counts} |")
    return "\n".join(lines)
