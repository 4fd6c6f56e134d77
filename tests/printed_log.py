"""Logs as simulations print them, and edits of them whose places are known by how they are made."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

# Of our own, and plainer than the rule under test: numbers with a point, or whole ones, alone.
_NUMBER = re.compile(r"(?<![\w.+-])[-+]?\d+(?:\.\d+(?:[eE][-+]\d+)?)?(?![\w.])")


def printed_log(rng: random.Random, steps: int = 12) -> list[str]:
    """The lines of a molecular-dynamics log: a head, blocks of a step, a table of timings."""
    lines = [
        " **** **** ******  **  PROGRAM STARTED AT               2026-11-22 10:01:17.125",
        f" CP| Atoms {rng.randint(100, 999)}  Kinds 3  Functions {rng.randint(1000, 9999)}",
        "",
        " Cell vectors [angstrom]",
    ]
    lines += [
        "  " + "".join(f"{rng.uniform(-9, 9):16.8f}" for _ in range(3)) + f"   |v{axis}|"
        for axis in range(3)
    ]
    for step in range(steps):
        energy = -1100 - rng.random()
        lines += ["", f" MD| Step number {step:>30d}", " MD| " + "-" * 40]
        lines += [
            f" {cycle:5d} P_Mix/Diag. 0.40E+00 {rng.random():8.1f} {rng.random():14.8f}"
            f" {energy + rng.random() / 10**cycle:20.10f} {-rng.random():.2E}"
            for cycle in range(1, 4)
        ]
        lines += [
            f"  *** SCF run converged in {rng.randint(5, 20)} steps ***",
            f" ENERGY| Total FORCE_EVAL ( QS ) energy [a.u.]: {energy:24.12f}",
            f" MD| Temperature [K] {rng.uniform(290, 310):18.6f} H2O fp64 x_{step}",
        ]
    lines += ["", " SUBROUTINE   CALLS  SELF TIME", f" CP2K    1 {rng.uniform(1, 9):9.3f}"]
    return [*lines, " **** PROGRAM ENDED"]


@dataclass
class Edited:
    """A log after some edits. numbers: (golden line, new line, column, golden text, new text).

    golden_only, new_only: lines that have no partner, by number from 1.
    """

    lines: list[str]
    numbers: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    golden_only: list[int] = field(default_factory=list)
    new_only: list[int] = field(default_factory=list)


def edit(rng: random.Random, golden: list[str], count: int) -> Edited:
    """The log with `count` edits, of different lines: a digit changed, a line gone, new or with
    another word. No two of them are next to each other.
    """
    new: list[str | None] = list(golden)
    inserted: dict[int, str] = {}
    counts = Counter(golden)
    unique = [i for i, line in enumerate(golden) if counts[line] == 1 and _NUMBER.search(line)]
    rng.shuffle(unique)
    chosen: list[int] = []
    for at in unique:
        if len(chosen) < count and all(abs(at - other) > 3 for other in chosen):
            chosen.append(at)
    changed: list[tuple[int, int, str, str]] = []
    result = Edited([])
    for at in chosen:
        kind = rng.choice(["digit", "digit", "digit", "gone", "new", "word"])
        if kind == "digit":
            line, column, old, text = _changed_digit(rng, golden[at])
            new[at] = line
            changed.append((at, column, old, text))
        elif kind == "gone":
            new[at] = None
            result.golden_only.append(at + 1)
        elif kind == "new":
            inserted[at] = f" WARNING {rng.randint(0, 999)} something else was seen"
        else:
            new[at] = f"{golden[at]} oops"
            result.golden_only.append(at + 1)
            result.new_only.append(-at)  # numbered below
    number_of: dict[int, int] = {}
    for at, line in enumerate(new):
        if at in inserted:
            result.lines.append(inserted[at])
            result.new_only.append(len(result.lines))
        if line is not None:
            result.lines.append(line)
            number_of[at] = len(result.lines)
    result.new_only = sorted(number_of[-one] if one <= 0 else one for one in result.new_only)
    result.golden_only.sort()
    result.numbers = sorted(
        (at + 1, number_of[at], column, old, text) for at, column, old, text in changed
    )
    return result


def _changed_digit(rng: random.Random, line: str) -> tuple[str, int, str, str]:
    """The line with another digit in one of its numbers; column from 1, and that number's texts."""
    while True:
        found = rng.choice(list(_NUMBER.finditer(line)))
        old = found[0]
        places = [i for i, c in enumerate(old) if c.isdigit()]
        place = rng.choice(places)
        text = old[:place] + rng.choice("0123456789") + old[place + 1 :]
        if float(text) != float(old):
            return line[: found.start()] + text + line[found.end() :], found.start() + 1, old, text
