"""How good maps of variability are, beside what MOANA's authors found.

    python -m benchmarks --only variability-maps         synthetic, of the shape of MOANA's data
    python -m benchmarks.variability_maps TABLE.csv --value throughput     the same of a real table

The synthetic map has 15 frequencies x 9 numbers of threads x 6 file sizes = 810 configurations of
40 runs with two peaks, and a sigma that is known. TABLE is the public data of MOANA's authors, or
any other: a row for each run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.base.errors import NotAvailableError
from ciwrap.studies.variability.predictors import PREDICTORS, fit_process, likeliest_kernel
from ciwrap.studies.variability.quality import (
    bounded,
    conformal_factor,
    cross_validate,
    curve_of_prediction,
    curve_of_runs,
    noise_floor,
    sorted_residuals,
)
from ciwrap.studies.variability.runs import Measured, Roles, prepare, read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

SEED = 7
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
NAMES = ("frequency", "threads", "size")
FREQUENCIES = np.round(np.linspace(1.2, 3.0, 15), 3)
THREADS = np.array([1, 2, 4, 8, 16, 24, 32, 48, 64], float)
SIZES = np.array([4, 16, 64, 256, 1024, 16384], float)  # KiB
RUNS = 40
CONFIDENCE = 0.9
# Cameron et al., table 2: the mean error in % over 117 maps, by the share of training.
PUBLISHED = {
    "linear regression": {0.9: 323, 0.5: 325, 0.3: 327, 0.1: 339},
    "LSP": {0.9: 11.1, 0.5: 12.2, 0.3: 15.4, 0.1: 30.4},
    "Delaunay": {0.9: 10.0, 0.5: 11.4, 0.3: 13.6, 0.1: 23.4},
    "MARS": {0.9: 57, 0.5: 62, 0.3: 71, 0.1: 100},
}
PUBLISHED_AT_75, PUBLISHED_AT_90 = 24, 31


def true_sigma(points: Numbers) -> Numbers:
    """A smooth surface over three powers of ten, with an interaction and a ridge."""
    a = (points[:, 0] - 1.2) / 1.8
    b = np.log2(points[:, 1]) / 6
    c = np.log2(points[:, 2] / 4) / 12
    found: Numbers = np.exp(
        4
        + 4 * b
        + 2 * c
        + 0.8 * a
        + 1.2 * np.sin(4 * b) * c
        - a * b
        + 0.6 * np.exp(-(((b - c) * 4) ** 2))
    )
    return found


def synthetic(
    frequencies: Numbers = FREQUENCIES, *, seed: int = SEED, runs: int = RUNS
) -> tuple[Numbers, list[Numbers]]:
    """Configurations, and runs about a mean of 30 sigma: two peaks, as most of MOANA's have."""
    generator = np.random.default_rng(seed)
    points = np.array([(a, b, c) for a in frequencies for b in THREADS for c in SIZES])
    sides = generator.choice((-1.0, 1.0), (len(points), runs))
    noise = (sides + 0.33 * generator.normal(size=sides.shape)) / np.hypot(1, 0.33)
    sigma = true_sigma(points)
    return points, list((30 + noise) * sigma[:, np.newaxis])


def with_near_double() -> Numbers:
    """The frequencies and one more, 0.001 beside the last: what the public data have."""
    return np.append(FREQUENCIES, FREQUENCIES[-1] + 0.001)


def shares_table(
    measured: Measured, *, splits: int, shares: Sequence[float] = SHARES, seed: int = SEED
) -> list[dict[str, Any]]:
    """The error of every predictor by the share of configurations that it is fitted to."""
    warm = likeliest_kernel(measured.places.unit, np.log(measured.sigma))
    rows = []
    for name, fit in PREDICTORS.items():
        errors = {}
        for share in shares:
            generator = np.random.default_rng((seed, round(100 * share)))
            found = []
            for _ in range(splits):
                order = generator.permutation(len(measured))
                known, unseen = np.split(order, [round(share * len(measured))])
                try:
                    predict = fit(measured.places[known], measured.sigma[known], warm)
                except NotAvailableError:
                    continue
                sigma = measured.sigma[unseen]
                predicted = predict(measured.places[unseen])
                found.append(float(np.mean(np.abs(predicted - sigma) / sigma)))
            errors[share] = float(np.mean(found)) if found else None
        rows.append({"predictor": name, "errors": errors})
    return rows


def coverage(measured: Measured, *, splits: int, seed: int = SEED) -> float:
    """How many of configurations that took no part at all lie in their 90 % intervals."""
    held = total = 0
    for number in range(splits):
        order = np.random.default_rng((seed, number)).permutation(len(measured))
        known, unseen = np.split(order, [len(order) * 3 // 4])
        part = measured.only(known.tolist())
        validation = cross_validate(part, seed=number, rounds=2, only="Gaussian process")
        factor = conformal_factor(sorted_residuals(validation.predictions, part.sigma), CONFIDENCE)
        assert factor is not None
        predict = PREDICTORS["Gaussian process"](part.places, part.sigma)
        predicted = bounded(predict(measured.places[unseen]), part.sigma)
        ratio = np.abs(np.log(predicted / measured.sigma[unseen]))
        held += int(np.sum(ratio <= np.log(factor)))
        total += len(unseen)
    return held / total


def figure_9(measured: Measured, *, configurations: int, seed: int = SEED) -> dict[str, Any]:
    """After how many runs intervals have come 75 and 90 % of the way from 10 runs to 40."""
    drawn = np.random.default_rng(seed).choice(len(measured), configurations, replace=False)
    own = [
        curve_of_runs(measured.runs[row], confidence=0.95, seed=seed + int(row)) for row in drawn
    ]
    predicted = []
    for row in drawn[: max(1, configurations // 5)]:
        rest = measured.only([one for one in range(len(measured)) if one != row])
        kernel = likeliest_kernel(rest.places.unit, np.log(rest.sigma))
        process = fit_process(rest.places.unit, np.log(rest.sigma), kernel)
        predicted.append(
            curve_of_prediction(
                rest, process, measured.places.unit[row], confidence=0.95, seed=seed + int(row)
            )
        )
    return {
        name: {
            "configurations": len(curves),
            "at_75": _middle([one.at_75 for one in curves]),
            "at_90": _middle([one.at_90 for one in curves]),
        }
        for name, curves in (("measured", own), ("predicted", predicted))
    }


def _middle(counts: list[int]) -> list[float]:
    """The median, and what holds the middle 80 %."""
    return [float(one) for one in np.quantile(counts, (0.5, 0.1, 0.9))]


def near_double(*, rounds: int, seed: int = SEED) -> dict[str, Any]:
    """The map with a level that is nearly another one: merged, error beside the floor."""
    prepared = prepare(NAMES, *synthetic(with_near_double()), [], where="synthetic", seed=seed)
    validation = cross_validate(prepared.measured, seed=seed, rounds=rounds)
    return {
        "configurations": len(prepared.measured),
        "notes": list(prepared.notes),
        "chosen": validation.chosen,
        "error": validation.error,
        "floor": validation.floor,
        "ratio": validation.error / validation.floor,
    }


def judge(
    measured: Measured, *, splits: int, configurations: int, shares: Sequence[float] = SHARES
) -> dict[str, Any]:
    """All of it for one map."""
    return {
        "configurations": len(measured),
        "floor": noise_floor(measured, SEED),
        "rows": shares_table(measured, splits=splits, shares=shares),
        "coverage": coverage(measured, splits=splits),
        "figure_9": figure_9(measured, configurations=configurations),
    }


def run(
    *, splits: int, configurations: int, rounds: int, shares: Sequence[float] = SHARES
) -> dict[str, Any]:
    """All of it for the synthetic map. shares: of the configurations, that maps are fitted to."""
    measured = prepare(NAMES, *synthetic(), [], where="synthetic", seed=SEED).measured
    return {
        "seed": SEED,
        "splits": splits,
        "near_double": near_double(rounds=rounds),
        **judge(measured, splits=splits, configurations=configurations, shares=shares),
    }


def table(result: dict[str, Any]) -> list[list[str]]:
    """The errors in %, ours above the published ones; then what else was measured."""
    rows = [["error in % by share of training", *(f"{100 * share:.0f} %" for share in SHARES)]]
    for row in result["rows"]:
        rows.append([row["predictor"], *(_percent(row["errors"].get(share)) for share in SHARES)])
        published = PUBLISHED.get(row["predictor"])
        if published is not None:
            rows.append(
                ["published mean of 117 maps", *(f"{published.get(share, '')}" for share in SHARES)]
            )
    rows += [
        [name, value, *[""] * (len(SHARES) - 1)]
        for name, value in (
            ("noise floor", _percent(result["floor"])),
            ("unseen within 90 % intervals", _percent(result["coverage"])),
            *_figure_9_rows(result["figure_9"]),
        )
    ]
    double = result.get("near_double")
    if double is not None:
        name = "with a near double: error over floor"
        rows.append([name, f"{double['ratio']:.2f}", *[""] * (len(SHARES) - 1)])
    return rows


def _figure_9_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The median, and what holds the middle 80 %."""
    return [
        (f"runs for {share} % of the way, {name} (published: {published})", _runs_words(found[key]))
        for name, found in result.items()
        for share, published, key in (
            (75, PUBLISHED_AT_75, "at_75"),
            (90, PUBLISHED_AT_90, "at_90"),
        )
    ]


def _runs_words(found: list[float]) -> str:
    middle, low, high = found
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--value", metavar="COLUMN")
    parser.add_argument("--ignore", metavar="COLUMN", action="append", default=[])
    parser.add_argument("--category", metavar="COLUMN", action="append", default=[])
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    roles = Roles(options.value, None, tuple(options.category), tuple(options.ignore))
    runs = read_runs([options.table], roles)
    for group in runs.groups:
        print(", ".join(group.category.values()) or options.table.name)
        prepared = prepare(
            runs.parameters,
            group.points,
            [np.array(one) for one in group.runs.values()],
            [],
            where=str(options.table),
            seed=SEED,
        )
        for note in prepared.notes:
            print(f"note: {note}")
        measured = prepared.measured
        result = judge(measured, splits=options.splits, configurations=min(50, len(measured) // 2))
        for row in table(result):
            print("  ".join(cell.ljust(10) for cell in row).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
