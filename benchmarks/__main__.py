"""Measures ciwrap on this machine.

    python -m benchmarks             everything, at full size (8 GiB of memory, ten minutes)
    python -m benchmarks --quick     the same at small sizes, to see that it works
    python -m benchmarks --only tree-building --json FILE

Run it on a machine that does nothing else: it prints the load it found, and timings under load
mean little.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import (
    busy_machine,
    demo_noise,
    element_comparison,
    ensemble_commands,
    ensembles,
    false_alarms,
    golden_check,
    golden_sizes,
    golden_writing,
    measure,
    noisy_bounds,
    pytest_plugin,
    recording,
    recording_in_place,
    repeat_size,
    repeated_runs,
    simulated_runs,
    slow_programs,
    solving,
    start_up,
    timing_pairs,
    tree_building,
    variability_maps,
    written_bounds,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT_VERSION = 1


class Section(NamedTuple):
    title: str
    run: Callable[[], dict[str, Any]]
    table: Callable[[dict[str, Any]], list[list[str]]]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes; the numbers mean little")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="measured rounds")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="and the tables here")
    names = list(_sections(parser.parse_args([])))
    parser.add_argument(
        "--only", choices=names, nargs="+", metavar="SECTION", help=", ".join(names)
    )
    options = parser.parse_args()
    if options.repeats < 1 or min(options.threads) < 1:
        parser.error("--repeats and --threads must be at least 1")

    document: dict[str, Any] = {"format_version": FORMAT_VERSION, "machine": measure.machine()}
    words = _machine_words(document["machine"])
    print(words)
    if document["machine"]["load_average_at_start"] > 0.5:
        print("This machine is busy; timings will be off.")
    markdown = f"# Results\n\n`{_command_line()}` on {words}\n"
    for name, section in _sections(options).items():
        if options.only and name not in options.only:
            continue
        result = section.run()
        document[name] = result
        rows = section.table(result)
        print(f"\n{section.title}\n{_plain_table(rows)}")
        markdown += f"\n## {section.title}\n\n{_markdown_table(rows)}"
        if options.json:
            options.json.write_text(json.dumps(document, indent=1) + "\n")
        if options.markdown:
            options.markdown.write_text(markdown)
    return 0


def _sections(options: argparse.Namespace) -> dict[str, Section]:
    quick = options.quick
    size = 1 << (26 if quick else 30)
    return {
        "false-alarms": Section(
            "Chunks suspected, by noise and residue levels (float64, 1024 values per chunk)",
            lambda: false_alarms.run(chunk_count=512 if quick else 4096),
            false_alarms.table,
        ),
        "solve": Section(
            "One element that moved, found by the golden's digest and residues (k = 15)",
            lambda: solving.run(trials=40 if quick else 1000),
            solving.table,
        ),
        "demo-noise": Section(
            "Largest |difference| between runs of the demonstration's simulation",
            lambda: demo_noise.run(runs=2 if quick else 10),
            demo_noise.table,
        ),
        "repeated-runs": Section(
            "Bounds that `ciwrap repeat` suggests, and further runs of the demonstration",
            lambda: repeated_runs.run(runs=10, further=8 if quick else 200),
            repeated_runs.table,
        ),
        "written-bounds": Section(
            "Bounds that `ciwrap repeat --write-bounds` writes for real programs, and further runs",
            lambda: written_bounds.run(
                runs=10, further=3 if quick else 50, names=("mpi",) if quick else ()
            ),
            written_bounds.table,
        ),
        "repeat-size": Section(
            "`ciwrap repeat` over large runs",
            lambda: repeat_size.run(
                data_bytes=(1 << 26) if quick else (1 << 30), runs=3 if quick else 10
            ),
            repeat_size.table,
        ),
        "start-up": Section(
            "Small commands, beside what Python and NumPy take to start",
            lambda: start_up.run(repeats=options.repeats),
            start_up.table,
        ),
        "ensemble-commands": Section(
            "An ensemble of Lorenz-96 by commands alone, 24 features, tested at 1 %",
            lambda: ensemble_commands.run(
                trials=3 if quick else 200, changed_trials=1 if quick else 20
            ),
            ensemble_commands.table,
        ),
        "golden-sizes": Section(
            "Size of a golden file",
            lambda: golden_sizes.run(data_bytes=size),
            golden_sizes.table,
        ),
        "golden-check": Section(
            "Checking an array of float64 against its stored baseline",
            lambda: golden_check.run(
                element_count=500_000 if quick else 10_000_000, repeats=min(options.repeats, 5)
            ),
            golden_check.table,
        ),
        "busy-machine": Section(
            "Comparing two files, in processes of their own, with and without another process",
            lambda: busy_machine.run(data_bytes=size, repeats=min(options.repeats, 5)),
            busy_machine.table,
        ),
        "golden-writing": Section(
            "Writing goldens of 100 float64 into one folder",
            lambda: golden_writing.run(counts=(10, 50) if quick else (100, 1000, 3000)),
            golden_writing.table,
        ),
        "pytest-plugin": Section(
            "The pytest plugin, each line a pytest run of its own",
            lambda: pytest_plugin.run(
                check_count=50 if quick else 1000,
                element_count=500_000 if quick else 10_000_000,
                repeats=1 if quick else min(options.repeats, 3),
            ),
            pytest_plugin.table,
        ),
        "pytest-peers": Section(
            "Baselines of tests beside those of other tools",
            lambda: pytest_plugin.run_peers(
                check_count=20 if quick else 200, element_count=500_000 if quick else 10_000_000
            ),
            pytest_plugin.peers_table,
        ),
        "timing-pairs": Section(
            "Verdicts on run times in pairs, of simulated machines",
            lambda: timing_pairs.run(trials=50 if quick else 3000),
            timing_pairs.table,
        ),
        "simulated-runs": Section(
            "What is said of simulated runs, and how often it is right",
            lambda: simulated_runs.run(trials=10 if quick else 200),
            simulated_runs.table,
        ),
        "noisy-bounds": Section(
            "Bounds from ten runs of eight noises, and 100 later runs",
            lambda: noisy_bounds.run(sets=2 if quick else 25),
            noisy_bounds.table,
        ),
        "slow-programs": Section(
            "Programs that a switch slows by a tenth, and what `repeat --vary` says it acts on",
            lambda: slow_programs.run(programs=1 if quick else 10, runs=16),
            slow_programs.table,
        ),
        "ensembles": Section(
            "The ensemble test on Lorenz-96, 24 features, with another forcing",
            lambda: ensembles.run(trials=100 if quick else 1000),
            ensembles.table,
        ),
        "variability-maps": Section(
            "Maps of variability: 810 synthetic configurations of 40 runs with two peaks",
            lambda: variability_maps.run(
                splits=1 if quick else 5,
                configurations=5 if quick else 50,
                rounds=1 if quick else 10,
            ),
            variability_maps.table,
        ),
        "recording": Section(
            "A solver in C that records its 8 MiB array every 20 steps, and without",
            lambda: recording.run(
                size=256 if quick else 1024,
                steps=40 if quick else 400,
                every=20,
                repeats=2 if quick else 10,
            ),
            recording.table,
        ),
        "recording-in-place": Section(
            "A checkpoint in place, as multiples of a memcpy: CPU time of the program's thread",
            lambda: recording_in_place.run(
                rows=200 if quick else 2000, columns=300 if quick else 2000, repeats=5
            ),
            recording_in_place.table,
        ),
        "tree-building": Section(
            f"Building the tree of {size >> 20} MiB in memory",
            lambda: tree_building.run(
                data_bytes=size, repeats=options.repeats, thread_counts=tuple(options.threads)
            ),
            tree_building.table,
        ),
        "element-comparison": Section(
            f"Comparing the elements of two arrays of {size >> 22} MiB in memory",
            lambda: element_comparison.run(
                data_bytes=size // 4,
                repeats=options.repeats,
                thread_counts=tuple(options.threads),
            ),
            element_comparison.table,
        ),
    }


def _command_line() -> str:
    return " ".join(["python -m benchmarks", *sys.argv[1:]])


def _machine_words(machine: dict[str, Any]) -> str:
    return (
        f"{machine['cpu']}, {machine['cores']} cores, CPU level {machine['cpu_level']}, "
        f"load {machine['load_average_at_start']:.2f}; ciwrap {machine['ciwrap']}, "
        f"NumPy {machine['numpy']}, Python {machine['python']}"
    )


def _markdown_table(rows: list[list[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _plain_table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in rows]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


if __name__ == "__main__":
    sys.exit(main())
