"""Memory does not grow with the data: files with holes are large and take no disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import environment

if TYPE_CHECKING:
    from pathlib import Path

GIB = 8 if os.environ.get("CIWRAP_LONG") else 0.5
MOST_MIB = 300

# The interpreter with all that a comparison imports, and then the comparison.
PROGRAM = """
import json, re, sys
from pathlib import Path
import numpy, click
import ciwrap._core, ciwrap.cli.compare, ciwrap.cli.capture, ciwrap.runs.compare_runs
import ciwrap.runs.capture, ciwrap.runs.sides, ciwrap.report.terminal, ciwrap.project.settings
from ciwrap.cli.main import run
# Not ru_maxrss, which begins with what the parent had when it forked.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
code = run(sys.argv[1:])
print(json.dumps([code, before, peak()]))
"""


def write_sparse(path: Path, gib: float, *places: int) -> None:
    """Zeros, but for ones at some elements."""
    elements = int(gib * (1 << 30)) // 4
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (elements,)}
        )
        start = file.tell()
        file.truncate(start + 4 * elements)
        for place in places:
            file.seek(start + 4 * place)
            file.write(np.float32(1).tobytes())


def peak_of(folder: Path, *arguments: str) -> tuple[int, float]:
    """Exit code, and MiB beyond what the interpreter took before."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    code, before, after = json.loads(done.stdout.splitlines()[-1])
    return code, after - before


@pytest.fixture
def large_runs(tmp_path: Path) -> Path:
    for iteration in range(2):
        for name in ("x", "y"):
            changed = (5, 1 << 24) if (iteration, name) == (1, "y") else ()
            write_sparse(tmp_path / f"A/iter_{iteration}/{name}.npy", GIB / 4)
            write_sparse(tmp_path / f"B/iter_{iteration}/{name}.npy", GIB / 4, *changed)
    return tmp_path


def test_peak_memory(large_runs: Path) -> None:
    code, without = peak_of(large_runs, "compare", "A", "B", "--no-captures")
    assert code == 1
    assert without < MOST_MIB
    captured = []
    for run in ("A", "B"):
        code, peak = peak_of(large_runs, "capture", run, "--settle=0")
        assert code == 0
        captured.append(peak)
    code, by_captures = peak_of(large_runs, "compare", "A", "B")
    assert code == 1
    sys.stdout.write(
        f"{GIB} GiB a run, MiB beyond the interpreter's own: {without:.0f} without captures,"
        f" {max(captured):.0f} to capture, {by_captures:.0f} with captures\n"
    )
    assert max(*captured, by_captures) < MOST_MIB
