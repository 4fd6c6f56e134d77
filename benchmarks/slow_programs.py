"""Programs that a switch slows by a tenth, by work, by waiting or by page faults: does
`repeat --vary` say which, on a machine that is as busy as it is?
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.written_bounds import ciwrap

# Each computes for some 0.2 s, in its own way; `slow` is done by those that are slowed.
_PROGRAM = """
import mmap, os, sys, time
kind, size, slow = sys.argv[1], int(sys.argv[2]), os.environ.get("SLOW") == "1"
started = time.process_time()
total = 0
if size % 3 == 0:
    for n in range(20_000 * size):
        total += n * n
elif size % 3 == 1:
    total = sum(sorted(hash(str(n)) for n in range(4_000 * size)))
else:
    for n in range(60 * size):
        total += sum(range(300))
        b"x" * 1000
took = time.process_time() - started
if slow and kind == "work":
    until = time.process_time() + 0.1 * took + 0.02
    while time.process_time() < until:
        total += 1
if slow and kind == "waiting":
    time.sleep(0.1 * took + 0.02)
if slow and kind == "page faults":
    held = mmap.mmap(-1, 24 << 20)
    for place in range(0, 24 << 20, mmap.PAGESIZE):
        held[place] = 1
with open("out.txt", "w") as file:
    file.write("1\\n")
"""
# Of what is slowed in a way, the costs that say so; and those that would be another way.
_SAYS = {
    "work": ({"cpu_seconds"}, {"minor_faults", "waiting_seconds"}),
    "waiting": ({"waiting_seconds", "voluntary_switches"}, {"minor_faults", "cpu_seconds"}),
    "page faults": ({"minor_faults"}, {"waiting_seconds"}),
}
_SURE = 0.05


def run(*, programs: int, runs: int) -> dict[str, Any]:
    """programs: of each kind. runs: of each of them, half of which are slow."""
    rows = []
    for kind in _SAYS:
        told = [_told(kind, 10 + number, runs) for number in range(programs)]
        rows.append({"kind": kind, "told": [sorted(one) for one in told], **_counts(kind, told)})
    return {"programs": programs, "runs": runs, "rows": rows}


def _told(kind: str, size: int, runs: int) -> set[str]:
    """The costs that the switch is said to act on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slow.py").write_text(_PROGRAM)
        command = json.dumps(f"{sys.executable} -S slow.py '{kind}' {size}")
        (folder / "ciwrap.yaml").write_text(
            f"run: {command}\nchecks:\n  x: {{outputs: out.txt, format: tokens}}\n"
        )
        words = ("repeat", "-n", str(runs), "--vary", "SLOW=0,1", "--seed", str(size))
        _, result = ciwrap(folder, *words)
    return {
        cost["name"]
        for cost in result["costs"]
        for one in cost.get("factors", ())
        if one["p"] <= _SURE and one["on"] > one["off"]
    }


def _counts(kind: str, told: list[set[str]]) -> dict[str, int]:
    says, denies = _SAYS[kind]
    wrong = sum(bool(one & denies) and not one & says for one in told)
    right = sum(bool(one & says) for one in told)
    return {"right": right, "wrong": wrong, "nothing": len(told) - right - wrong}


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["slowed by", "right", "nothing found", "wrong"]]
    for one in result["rows"]:
        counts = [f"{one[key]} of {result['programs']}" for key in ("right", "nothing", "wrong")]
        rows.append([one["kind"], *counts])
    return rows
