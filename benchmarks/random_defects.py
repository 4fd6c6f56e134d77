"""1,000 random defects of five kinds of fields, judged by what a golden keeps.

    python -m benchmarks.random_defects [COUNT]

Each defect is judged with the golden's data, by residues, and by a tree alone; of the last two
also without the summaries of chunks, as goldens were before these had them.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden
from ciwrap.golden.manifest import capture
from ciwrap.model import ErrorBound, EvidencePolicy, VariableId, VariableSettings

SIZE = 20_000
Array = np.ndarray


def field(rng: np.random.Generator) -> Array:
    t = np.arange(SIZE) / SIZE
    kinds = (
        lambda: np.sin(9 * t * rng.uniform(1, 9)) * rng.uniform(1, 300),
        lambda: 300 + 20 * np.sin(5 * t) + rng.normal(size=SIZE) / 10,
        lambda: rng.normal(size=SIZE),
        lambda: 10 ** rng.uniform(-6, 6, SIZE),
        lambda: rng.uniform(0, 10, SIZE),
    )
    return kinds[rng.integers(len(kinds))]()


def defect(values: Array, bound: float, rng: np.random.Generator) -> Array:
    """By two bounds or more, where it is one of a size."""
    size, sign = bound * 10 ** rng.uniform(0.3, 4), rng.choice([-1, 1])
    new, first = values.copy(), int(rng.integers(SIZE - 600))
    match rng.integers(9):
        case 0:
            return -values
        case 1:
            return values * (1 + 10 ** rng.uniform(-5, -1))
        case 2:
            return values + sign * size
        case 3:
            return values + rng.normal(size=SIZE) * size
        case 4:
            return np.roll(values, int(rng.integers(1, 50)))
        case 5:
            few = rng.integers(SIZE, size=int(rng.integers(1, 20)))
            new[few] += bound * 10 ** rng.uniform(0.3, 6) * rng.choice([-1, 1], few.size)
        case 6:
            new[first : first + int(rng.integers(2, 600))] += size
        case 7:
            return rng.permutation(values)
        case _:
            new[first : first + 50] = np.nan
    return new


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(2026)
    told: dict[str, Counter[str]] = {}
    for _ in range(count):
        values = field(rng)
        bound = 10 ** rng.uniform(-8, -4) * values.std()
        if rng.random() < 0.3:
            values = values.astype("f4")
            bound = max(bound, np.abs(values).max() * 1e-6)
        kinds = (ErrorBound(bound), ErrorBound(0.0, 1e-6), ErrorBound(bound, 1e-7))
        asked = kinds[rng.integers(len(kinds))]
        new = ArrayValues(defect(values.astype("f8"), bound, rng).astype(values.dtype))
        for evidence in ("data", "residues", "tree"):
            settings = VariableSettings(bound=asked, evidence=EvidencePolicy(evidence))
            golden = capture(ArrayValues(values), settings, VariableId("x")).variable
            bare = _core.GoldenVariable("x", golden.shape, golden.tree)
            judged = {evidence: golden}
            if evidence != "data":
                judged[f"{evidence}, without summaries"] = bare
            for name, one in judged.items():
                verdict = check_golden(one, new, settings).verdict.value
                told.setdefault(name, Counter())[verdict] += 1
    print("| the golden keeps | match | differ | undecided |")
    print("|---|--:|--:|--:|")
    for name, verdicts in told.items():
        counts = (verdicts[word] for word in ("match", "differ", "undecided"))
        print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
