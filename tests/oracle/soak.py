"""Attacks the specification with random bounds for as long as one likes, and prints the counts.

    cd tests && python -m oracle.soak --seconds 600 --seed 1

Exit code 1 and the first counterexamples if anything was found.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

from . import adversary, attack
from .cases import Case

DTYPES = ("<f2", "<bf2", "<f4", "<f8")
LEVELS = (1, 3, 5, 15, 63, 255)


def random_bound(rng: np.random.Generator) -> dict[str, Any]:
    kind = rng.choice(["absolute", "relative", "mixed", "ulps"])
    if kind == "ulps":
        return {"ulps": int(2 ** rng.uniform(0, 40))}
    bound: dict[str, Any] = {}
    if kind != "relative":
        usual = rng.random() < 0.5
        bound["atol"] = float(10.0 ** (rng.uniform(-12, 3) if usual else rng.uniform(-320, 308)))
    if kind != "absolute":
        usual = rng.random() < 0.9
        bound["rtol"] = float(10.0 ** (rng.uniform(-15, 6) if usual else rng.uniform(-310, 308)))
    if rng.random() < 0.2:
        powers = {key: 2.0 ** round(math.log2(value)) for key, value in bound.items()}
        bound = {key: powers[key] or bound[key] for key in bound}
    return bound


def random_case(rng: np.random.Generator) -> Case:
    special: dict[str, Any] = {}
    if rng.random() < 0.3:
        special["fill_values"] = ((0.0, 7.0), (0.0, math.nan))[int(rng.integers(2))]
    if rng.random() < 0.2:
        special["equal_nan"] = False
    dtype, k = str(rng.choice(DTYPES)), int(rng.choice(LEVELS))
    return Case(dtype, k, random_bound(rng), special)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=50_000)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    end = time.monotonic() + given.seconds
    table: dict[tuple[str, str], attack.Outcome] = {}
    cases = 0
    while time.monotonic() < end:
        case = random_case(rng)
        plan, asked = case.plan(), case.contract()
        golden, new = adversary.pairs(plan, rng, given.pairs, (asked.atol, asked.rtol))
        outcome = attack.attack(plan, asked, golden, new, cross=rng)
        table.setdefault((plan.kind, case.dtype), attack.Outcome()).add(outcome)
        cases += 1
    print(f"{cases} random bounds, seed {given.seed}")
    print(attack.table(table))
    dirty = [outcome.example for outcome in table.values() if not outcome.clean]
    print("\n".join(dirty))
    return 1 if dirty else 0


if __name__ == "__main__":
    raise SystemExit(main())
