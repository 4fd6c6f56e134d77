"""Measures whole runs: captures, stage two, and what others need for the same.

    python -m benchmarks.histories --folder /scratch [--gib 4] [--rounds 9] [--no-others]
        [--json FILE] [--markdown FILE]

Two runs of 10 iterations and 2 ranks, seven float32 variables each, in four versions of the second
run. Every measurement begins with a cold page cache (POSIX_FADV_DONTNEED on every file); bytes are
those asked of files, and those that came from the disk (/proc/self/io). Small runs are compared
right before, untimed: memory that was not touched for a second is slow to touch in some virtual
machines. What is set beside each other is measured in rounds, one after the other, and medians over
the rounds are given. Needs --gib x 4 of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import measure
from benchmarks.disk import bandwidth, disk_bytes, settle_to_disk
from benchmarks.history_runs import (
    ATOL,
    CHUNK_BYTES,
    elements_of,
    equal,
    everything,
    files_of,
    noise,
    one_percent_of_chunks,
    write_first,
    write_second,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ciwrap.model import CheckResult
    from ciwrap.runs.capture import CaptureReport

# --- measuring ------------------------------------------------------------------------------------


@dataclass
class Cost:
    seconds: float
    from_disk: int
    result: Any = None


def cold(folder: Path, work: Callable[[], Any]) -> Cost:
    settle_to_disk(folder)
    warm_up(folder)
    before = disk_bytes()
    started = time.perf_counter()
    result = work()
    return Cost(time.perf_counter() - started, disk_bytes() - before, result)


def warm_folder(folder: Path) -> Path:
    return folder.with_name(folder.name + "-warm")


def make_warm_up(folder: Path) -> None:
    """Runs of two chunks a variable, to be compared before every measurement."""
    warm = warm_folder(folder)
    write_first(warm / "A", CHUNK_BYTES // 2)
    write_second(warm / "A", warm / "B", one_percent_of_chunks)
    for run in ("A", "B"):
        capture(warm / run, warm / f"{run}.tree")


def warm_up(folder: Path) -> None:
    warm = warm_folder(folder)
    compare(warm / "A", warm / "B", None)
    compare(warm / "A", warm / "B", (warm / "A.tree", warm / "B.tree"))


def rules() -> Any:
    from ciwrap.cli.compare import RuleOptions
    from ciwrap.model import ErrorBound, SettingsLayer

    layer = SettingsLayer({"bound": ErrorBound(ATOL)})
    return RuleOptions(layer, None, None).make_rules()


def compare(first: Path, second: Path, captures: tuple[Path, Path] | None) -> CheckResult:
    """Without what reports of small runs show besides."""
    from ciwrap.check.two_sides import HistoryOptions
    from ciwrap.formats.find_outputs import find_in
    from ciwrap.runs.compare_runs import compare_histories
    from ciwrap.runs.sides import open_run

    pairs = [(first, None), (second, None)]
    if captures is not None:
        pairs = [(first, captures[0]), (second, captures[1])]
    sides = [
        open_run(run, find_in(run), capture, use_capture=capture is not None)
        for run, capture in pairs
    ]
    try:
        options = HistoryOptions(detail_bytes=0)
        return compare_histories("runs", *sides, rules(), options, golden_path="A", source_path="B")
    finally:
        for side in sides:
            side.close()


def capture(run: Path, target: Path, **options: Any) -> CaptureReport:
    from ciwrap.formats.find_outputs import find_in
    from ciwrap.runs.capture import CaptureOptions, capture_run

    return capture_run(
        run,
        find_in(run),
        target,
        rules(),
        CaptureOptions(settle_seconds=0, chunk_bytes=CHUNK_BYTES, **options),
        rebuild=True,
    )


def numpy_allclose(first: Path, second: Path) -> bool:
    close = True
    for one, two in zip(files_of(first), files_of(second), strict=True):
        with one.open("rb") as a, two.open("rb") as b:
            a.seek(128)
            b.seek(128)
            while True:
                ours = np.fromfile(a, np.float32, 1 << 22)
                theirs = np.fromfile(b, np.float32, 1 << 22)
                if ours.size == 0:
                    break
                close &= bool(np.allclose(ours, theirs, rtol=0, atol=ATOL))
    return close


def h5diff_cost(folder: Path, first: Path, second: Path) -> Cost | None:
    """On one HDF5 file of each run, contiguous; None where there is no h5diff."""
    program = shutil.which("h5diff")
    if program is None:
        return None
    import h5py

    files = []
    for run in (first, second):
        files.append(folder / f"{run.name}.h5")
        with h5py.File(files[-1], "w") as target:
            for path in files_of(run):
                target[str(path.relative_to(run).with_suffix(""))] = np.load(path)
    cost = cold(
        folder,
        lambda: (
            subprocess.run(
                [program, "-q", f"--delta={ATOL}", *map(str, files)], check=False
            ).returncode
        ),
    )
    for path in files:
        path.unlink()
    return cost


# --- the cases ------------------------------------------------------------------------------------


def row(name: str, cost: Cost, **more: Any) -> dict[str, Any]:
    return {"case": name, "seconds": cost.seconds, "from_disk": cost.from_disk, **more}


def capture_row(name: str, costs: dict[str, list[Cost]]) -> dict[str, Any]:
    made = middle(costs["capture"])
    read = made.result.bytes_read
    ideal = [read / cost.result for cost in costs["disk"]]
    return row(
        name,
        made,
        data_bytes=read,
        capture_file_bytes=made.result.capture_bytes,
        of_disk=1 / share(costs["capture"], ideal),
    )


def facts_of(result: CheckResult) -> dict[str, Any]:
    assert result.history is not None
    return {
        "verdict": result.verdict.value,
        "capture_bytes": result.history.capture_bytes_read,
        "data_bytes": result.history.data_bytes_read,
        "suspect_chunks": sum(v.suspect_chunks or 0 for v in result.variables),
        "chunks": sum(v.chunk_count or 0 for v in result.variables),
        "differing": sum(v.differing_count or 0 for v in result.variables),
    }


def rounds(count: int, works: dict[str, Callable[[], Any]], folder: Path) -> dict[str, list[Cost]]:
    """Each round does all of the work once, in this order."""
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(count):
        for name, work in works.items():
            costs[name].append(cold(folder, work))
    return costs


def middle(costs: list[Cost]) -> Cost:
    return sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]


def share(ours: list[Cost], theirs: list[float]) -> float:
    """Median over the rounds of our seconds in units of theirs."""
    return statistics.median(a.seconds / b for a, b in zip(ours, theirs, strict=True))


def run_all(
    folder: Path, gib: float, *, others: bool, most_rounds: int
) -> Iterator[dict[str, Any]]:
    elements = elements_of(gib)
    first, second = folder / "A", folder / "B"
    trees = (folder / "A.tree", folder / "B.tree")

    def direct() -> CheckResult:
        return compare(first, second, None)

    def by_captures() -> CheckResult:
        return compare(first, second, trees)

    def disk() -> float:
        return bandwidth(files_of(first))

    make_warm_up(folder)
    write_first(first, elements)
    for name, residues in (("capture", False), ("capture with residues", True)):
        costs = rounds(
            min(3, most_rounds),
            {
                "disk": disk,
                "capture": lambda residues=residues: capture(first, trees[0], residues=residues),
            },
            folder,
        )
        yield capture_row(name, costs)
    for name, change, count in (
        ("a: equal", equal, 5),
        ("b: 1 % of the chunks differ", one_percent_of_chunks, 9),
        ("c: noise of 10 % of the bound", noise, 1),
        ("d: everything differs", everything, 5),
    ):
        shutil.rmtree(second, ignore_errors=True)
        write_second(first, second, change)
        capture(second, trees[1])
        works = {"disk": disk, "direct": direct, "captures": by_captures}
        if change is one_percent_of_chunks:
            yield row(f"{name}: direct", once := cold(folder, direct), **facts_of(once.result))
            del works["direct"]
        costs = rounds(min(count, most_rounds), works, folder)
        speeds = [cost.result for cost in costs["disk"]]
        yield {"case": f"{name}: disk", "bytes_per_second": statistics.median(speeds)}
        ours = middle(costs["captures"])
        facts = facts_of(ours.result)
        if "direct" in costs:
            cost = middle(costs["direct"])
            read = facts_of(cost.result)["data_bytes"]
            pace = 1 / share(costs["direct"], [read / speed for speed in speeds])
            yield row(f"{name}: direct", cost, of_disk=pace, **facts_of(cost.result))
            theirs = [cost.seconds for cost in costs["direct"]]
            beside = share(costs["captures"], theirs)
            yield row(f"{name}: captures", ours, of_direct=beside, **facts)
        else:
            ideal = [facts["data_bytes"] / speed for speed in speeds]
            yield row(
                f"{name}: captures", ours, of_reading=share(costs["captures"], ideal), **facts
            )
        if change is noise:
            work = {"disk": disk, "capture": lambda: capture(second, trees[1], against=trees[0])}
            yield capture_row(
                f"{name}: capture against A", rounds(min(3, most_rounds), work, folder)
            )
            fine = middle(rounds(min(5, most_rounds), {"": by_captures}, folder)[""])
            yield row(f"{name}: captures against A", fine, **facts_of(fine.result))
        if others and change in (equal, everything):
            cost = cold(folder, lambda: numpy_allclose(first, second))
            yield row(f"{name}: NumPy allclose", cost)
            diffed = h5diff_cost(folder, first, second)
            if diffed is not None:
                yield row(f"{name}: h5diff", diffed)


def ratio_words(one: dict[str, Any]) -> str:
    if "of_disk" in one:
        return f"{one['of_disk']:.2f} of the disk's speed"
    if "of_direct" in one:
        times = one["of_direct"]
        return f"{1 / times:.0f} times faster" if times < 0.1 else f"{times:.2f} of direct's time"
    if "of_reading" in one:
        return f"{one['of_reading']:.2f} of reading these data"
    return ""


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| case | seconds | from disk, MiB | captures, KiB | data, MiB | suspect chunks | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        if "bytes_per_second" in one:
            lines.append(f"| {one['case']} | {one['bytes_per_second'] / 1e9:.2f} GB/s | | | | | |")
            continue
        cells = [
            one["case"],
            f"{one['seconds']:.3f}",
            f"{one['from_disk'] / 2**20:.1f}",
            f"{one['capture_bytes'] / 1024:.1f}" if "capture_bytes" in one else "",
            f"{one['data_bytes'] / 2**20:.1f}" if "data_bytes" in one else "",
            f"{one['suspect_chunks']} of {one['chunks']}" if one.get("chunks") else "",
            ratio_words(one),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="on the disk to measure")
    parser.add_argument("--gib", type=float, default=4.0, help="of each run")
    parser.add_argument("--no-others", action="store_true", help="neither NumPy nor h5diff")
    parser.add_argument("--rounds", type=int, default=9, help="at most so many of each case")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    folder = options.folder / f"ciwrap-histories-{os.getpid()}"
    folder.mkdir()
    rows = []
    try:
        for one in run_all(
            folder, options.gib, others=not options.no_others, most_rounds=options.rounds
        ):
            rows.append(one)
            sys.stderr.write(json.dumps(one) + "\n")
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(warm_folder(folder), ignore_errors=True)
    document = {"machine": measure.machine(), "gib": options.gib, "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(table(rows))
    sys.stdout.write(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
