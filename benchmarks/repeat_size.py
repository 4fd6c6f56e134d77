"""`ciwrap repeat` over runs of a size: peak memory, and time beside what it cannot do without.

Each run writes so many float64 with noise of its own into eight files. What it cannot do without is
each run of the command, and one comparison of the run with the first (`ciwrap compare`). CPU
seconds stand beside times, since they say more on a machine that does other things, too.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.used import used

FILES = 8
PROGRAM = f"""\
import sys
from pathlib import Path
import numpy as np
count, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
folder.mkdir(exist_ok=True)
noise = np.random.default_rng(seed)
step = 1 << 18
for file in range({FILES}):
    array = np.lib.format.open_memmap(folder / f"x{{file}}.npy", "w+", np.float64, (count,))
    header = array.offset
    del array
    with open(folder / f"x{{file}}.npy", "r+b") as stream:
        stream.seek(header)
        for first in range(0, count, step):
            size = min(step, count - first)
            values = np.linspace(1, 2, size) + 1e-9 * noise.standard_normal(size)
            stream.write(values.tobytes())
"""


def run(*, data_bytes: int, runs: int) -> dict[str, Any]:
    """Times in seconds, memory in bytes."""
    count = data_bytes // (8 * FILES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        program = [sys.executable, "program.py", str(count)]
        (folder / "ciwrap.yaml").write_text(
            f"run: {' '.join(program)} {{seed}} out\nchecks:\n  big: {{outputs: out}}\n"
        )
        commands = [used([*program, str(seed), f"run_{seed}"], cwd=folder) for seed in (1, 2)]
        ciwrap = [sys.executable, "-m", "ciwrap"]
        compared = used([*ciwrap, "compare", "run_1", "run_2", "--atol", "1e-7"], cwd=folder)
        for seed in (1, 2):
            shutil.rmtree(folder / f"run_{seed}")
        repeated = used([*ciwrap, "repeat", "-n", str(runs), "--json", "result.json"], cwd=folder)
        made = json.loads((folder / "result.json").read_text())["runs"]
    command = min(commands, key=lambda one: one.cpu_seconds)
    return {
        "data_bytes": data_bytes,
        "runs": runs,
        "command": command._asdict(),
        "compare": compared._asdict(),
        "repeat": repeated._asdict(),
        # Runs that were made count with their own time: the machine may have slowed down since.
        "ratio": repeated.seconds / (sum(one["seconds"] for one in made) + runs * compared.seconds),
        "cpu_ratio": repeated.cpu_seconds / (runs * (command.cpu_seconds + compared.cpu_seconds)),
    }


def table(result: dict[str, Any]) -> list[list[str]]:
    size = f"{result['data_bytes'] / (1 << 30):.3g} GiB"
    rows = [["runs", "each", "command", "one comparison", "repeat", "of N x both", "peak memory"]]
    peak = f"{result['repeat']['peak'] / (1 << 20):.0f} MiB"
    parts = [result[name] for name in ("command", "compare", "repeat")]
    for unit, key, ratio in (("s", "seconds", "ratio"), ("CPU s", "cpu_seconds", "cpu_ratio")):
        times = [f"{part[key]:.1f} {unit}" for part in parts]
        rows.append([str(result["runs"]), size, *times, f"{result[ratio]:.2f}", peak])
    return rows
