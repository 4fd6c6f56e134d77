"""By which power of its size each command's processor time grows.

    python -m benchmarks.growth             sizes that take seconds, five minutes in all
    python -m benchmarks.growth --quick     small ones, to see that it works

Each case is a command on inputs of four sizes, each twice the one before: bytes, files, variables,
differences, lines, or iterations. To these times, and to that for next to nothing, a + b * size^p
is fitted. Processor time, the least of some repeats: load says little.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.measure import machine
from benchmarks.used import used
from ciwrap import _core
from ciwrap.recording.journal import PLAIN, JournalWriter
from ciwrap.runs.capture_index import MadeWith, parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable

CIWRAP = (sys.executable, "-m", "ciwrap")
SIZES = 4
# Clearly more than in proportion, with room for caches and noise.
LINEAR = 1.2
# Next to nothing. What grows by less than a tenth of that time is lost in noise.
FEWEST = 8
LEAST_GROWTH = 0.1


class Case(NamedTuple):
    """prepare: writes inputs of a size into a folder. first: the least size, of `quick` runs an
    eighth. words: the command that is measured. before: commands that make the goldens for it.
    """

    name: str
    axis: str
    first: int
    prepare: Callable[[Path, int], None]
    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    code: int = 0


def _save(folder: Path, name: str, values: np.ndarray[Any, Any]) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    np.save(folder / name, values)


def _config(folder: Path, outputs: str, more: str = "") -> None:
    text = f"checks:\n  one:\n    outputs: {outputs}\n    atol: 1e-6\n{more}"
    (folder / "ciwrap.yaml").write_text(text)


def _values(count: int, seed: int = 17) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=count)


def _two(folder: Path, name: str, golden: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> None:
    _save(folder, f"A/{name}", golden)
    _save(folder, f"B/{name}", new)


def one_file(folder: Path, count: int) -> None:
    _config(folder, "A")
    _two(folder, "x.npy", _values(count), _values(count))


def many_files(folder: Path, count: int) -> None:
    _config(folder, "A")
    for number in range(count):
        _two(folder, f"x_{number}.npy", _values(100), _values(100))


def many_variables(folder: Path, count: int) -> None:
    _config(folder, "A")
    arrays = {f"v{number}": _values(100, number) for number in range(count)}
    for side in "AB":
        (folder / side).mkdir()
        np.savez(folder / side / "all.npz", **arrays)


def variables_that_differ(folder: Path, count: int) -> None:
    many_variables(folder, count)
    arrays = {f"v{number}": _values(100, number) + 1e-3 * number for number in range(count)}
    np.savez(folder / "B" / "all.npz", **arrays)


def elements_that_differ(folder: Path, count: int) -> None:
    golden = _values(1 << 21)
    new = golden.copy()
    places = np.random.default_rng(3).choice(golden.size, count, replace=False)
    new[places] += 1e-3
    _two(folder, "x.npy", golden, new)


def blocks_that_differ(folder: Path, count: int) -> None:
    """Runs of elements, each apart from the others, in one array."""
    golden = _values(1 << 21)
    new = golden.copy()
    for place in range(0, golden.size, golden.size // count):
        new[place : place + 4] *= -1
    _two(folder, "x.npy", golden, new)


def iterations(folder: Path, count: int) -> None:
    for number in range(count):
        _two(folder, f"iter_{number}/x.npy", _values(200, number), _values(200, number))


def iterations_that_differ(folder: Path, count: int) -> None:
    for number in range(count):
        golden = _values(200, number)
        _two(folder, f"iter_{number}/x.npy", golden, golden + 1e-4 * (number > 3))


def _lines(count: int) -> list[str]:
    values = _values(count)
    return [f"step {number} energy {value:.9e}" for number, value in enumerate(values)]


def lines(folder: Path, count: int) -> None:
    for side, text in (("A", _lines(count)), ("B", _lines(count))):
        (folder / side).mkdir()
        (folder / side / "run.txt").write_text("\n".join(["a text", *text]) + "\n")


def lines_that_differ(folder: Path, count: int) -> None:
    lines(folder, count)
    text = [f"{line}1" if number % 3 else line for number, line in enumerate(_lines(count))]
    (folder / "B" / "run.txt").write_text("\n".join(["a text", *text]) + "\n")


def ranks(folder: Path, count: int) -> None:
    """Two recorded runs of so many processes: journals of three checkpoints of two arrays."""
    made = MadeWith("<f8", 1e-6, 0.0, 0, 1, 4096, 16, equal_nan=False, fill_values=())
    digests = _core.build_tree(parameters_of(made), _values(100)).digests.tobytes()
    for side in "AB":
        for rank in range(count):
            path = folder / side / f"{rank // 1000:03}" / f"rank-{rank:06}.cwr"
            with JournalWriter(path, rank, count, program="model", made_by="1") as journal:
                for iteration in range(3):
                    for name in ("x", "y"):
                        trees = [(PLAIN, digests, None)]
                        journal.tree(iteration, "", (name, made), (100,), trees)
                    journal.complete(iteration, "")
                journal.end()


ACCEPT = ("accept", "--reason", "to measure")
COMPARE = ("compare", "A", "B", "--atol", "1e-6")
TEXTS = (*COMPARE, "--format", "*.txt=tokens")
CAPTURE_A = ("capture", "A", "--atol", "1e-6")
CAPTURED = (CAPTURE_A, ("capture", "B", "--atol", "1e-6"))
CASES = (
    Case("accept", "elements", 1 << 22, one_file, ACCEPT),
    Case("accept", "files", 300, many_files, ACCEPT),
    Case("accept", "variables", 600, many_variables, ACCEPT),
    Case("check", "elements", 1 << 22, one_file, ("check",), (ACCEPT,)),
    Case("check", "files", 300, many_files, ("check",), (ACCEPT,)),
    Case("check", "variables", 600, many_variables, ("check",), (ACCEPT,)),
    Case("capture", "elements", 1 << 22, one_file, CAPTURE_A),
    Case("capture", "iterations", 300, iterations, CAPTURE_A),
    Case("compare", "elements", 1 << 22, one_file, COMPARE),
    Case("compare", "files", 300, many_files, COMPARE),
    Case("compare", "variables", 600, many_variables, COMPARE),
    Case("compare", "iterations", 300, iterations, COMPARE),
    Case("compare, captured", "iterations", 300, iterations, ("compare", "A", "B"), CAPTURED),
    Case("compare, recorded", "ranks", 1250, ranks, ("compare", "A", "B")),
    Case("compare", "differing elements", 1 << 16, elements_that_differ, COMPARE, code=1),
    Case("compare", "differing blocks", 1 << 10, blocks_that_differ, COMPARE, code=1),
    Case("compare", "differing variables", 200, variables_that_differ, COMPARE, code=1),
    Case("compare", "differing iterations", 200, iterations_that_differ, COMPARE, code=1),
    Case("compare", "lines", 40_000, lines, TEXTS),
    Case("compare", "differing lines", 5_000, lines_that_differ, TEXTS, code=1),
    Case(
        "compare --report",
        "differing variables",
        200,
        variables_that_differ,
        (*COMPARE, "--report", "page.html"),
        code=1,
    ),
)


def measure(case: Case, *, quick: bool, repeats: int) -> dict[str, Any]:
    first = max(2 * FEWEST, case.first // 16) if quick else case.first
    sizes = [first << step for step in range(SIZES)]
    base, _ = _least(case, FEWEST, repeats)
    seconds, peaks = zip(*(_least(case, size, repeats) for size in sizes), strict=True)
    return {
        "case": case.name,
        "axis": case.axis,
        "sizes": sizes,
        "base_seconds": base,
        "seconds": list(seconds),
        "peak_bytes": peaks[-1],
        "exponent": exponent([FEWEST, *sizes], [base, *seconds]),
        "last_exponent": last_exponent(list(seconds)),
    }


def exponent(sizes: list[int], seconds: list[float]) -> float | None:
    """The power p with which a + b * size^p fits best; None where hardly anything grows."""
    n, t = np.array(sizes, dtype=float) / sizes[-1], np.array(seconds)
    found = []
    for power in np.arange(0.3, 3.0, 0.01):
        columns = np.stack([np.ones_like(n), n**power], axis=1) / t[:, None]
        (constant, factor), *_ = np.linalg.lstsq(columns, np.ones_like(t), rcond=None)
        misfit = np.sum((columns @ (constant, factor) - 1) ** 2)
        found.append((float(misfit), float(power), float(factor), float(constant)))
    _, best, factor, constant = min(found)
    return best if factor > LEAST_GROWTH * max(constant, 0.0) else None


def last_exponent(seconds: list[float]) -> float | None:
    """The same of the last three sizes, each twice the one before."""
    before, after = seconds[-2] - seconds[-3], seconds[-1] - seconds[-2]
    if before < LEAST_GROWTH * seconds[-3] or after <= 0:
        return None
    return float(np.log2(after / before))


def _least(case: Case, size: int, repeats: int) -> tuple[float, int]:
    """The least processor time of the command with what it starts, and the least peak in bytes."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            case.prepare(folder, size)
            for words in case.before:
                used((*CIWRAP, *words), cwd=folder)
            found.append(used((*CIWRAP, *case.words), cwd=folder, code=case.code))
    return min(one.cpu_seconds for one in found), min(one.peak for one in found)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| command | grows with | sizes | CPU s (of next to nothing first) | power | last | MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        times = ", ".join(f"{one:.2f}" for one in (row["base_seconds"], *row["seconds"]))
        shown = ["lost in noise" if p is None else f"{p:.2f}" for p in _powers(row)]
        lines.append(
            f"| {row['case']} | {row['axis']} | {row['sizes'][0]:,} to {row['sizes'][-1]:,}"
            f" | {times} | {shown[0]} | {shown[1]} | {row['peak_bytes'] >> 20} |"
        )
    return "\n".join(lines)


def _powers(row: dict[str, Any]) -> tuple[float | None, float | None]:
    return row["exponent"], row["last_exponent"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("--only", metavar="TEXT", help="cases whose command or axis has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if options.only is None or options.only in f"{case.name} by {case.axis}":
            rows.append(measure(case, quick=options.quick, repeats=options.repeats))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    document = {"machine": machine(), "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    print(f"\n{table(rows)}")
    steep = [row for row in rows if (row["exponent"] or 0.0) > LINEAR]
    for row in steep:
        print(f"more than in proportion: {row['case']} by {row['axis']}")
    return 1 if steep and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
