"""The pages of the studies (repeat, time, trend, bisect, variability, ensembles): each is what the
command itself wrote of a small program.

Each function writes `report.html` into a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from git_repository import GitRepository
from report_scenarios import ciwrap

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = Path(__file__).resolve().parents[1] / "docs/benchmarks/io-times.csv"
REPORT = ("--report", "report.html")

# Lorenz-96 from starts a hair apart, beside a quantity that is conserved but for noise.
GROWS = """\
import sys, pathlib
import numpy as np

def rate(x):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8

random = np.random.default_rng(int(sys.argv[1]))
x = (8 + np.sin(np.arange(40))) * (1 + 1e-14 * random.normal(size=40))
for iteration in range(1, 31):
    for step in range(20):
        a = rate(x)
        b = rate(x + 0.025 * a)
        c = rate(x + 0.025 * b)
        x = x + 0.05 / 6 * (a + 2 * b + 2 * c + rate(x + 0.05 * c))
    folder = pathlib.Path(f"out/iter_{iteration:04d}")
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "state.npy", x)
    np.save(folder / "mass.npy", 1 + 1e-15 * random.normal(size=40))
    np.save(folder / "cells.npy", np.arange(40))
"""


def _project(folder: Path, program: str, config: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sim.py").write_text(program, encoding="utf-8")
    (folder / "ciwrap.yaml").write_text(config.format(python=sys.executable), encoding="utf-8")


def repeat(folder: Path) -> None:
    """A field that grows exponentially, one that is noise, one that is equal."""
    config = (
        "version: 1\nrun: [{python!r}, sim.py, '{{seed}}']\n"
        "checks:\n  fields: {{outputs: out, atol: 1.0e-9}}\n"
    )
    _project(folder, GROWS, config)
    ciwrap(folder, "repeat", "-n", "8", "--seed", "7", *REPORT)


SUMS = """\
import os, pathlib
import numpy as np
x = np.random.default_rng(1).normal(size=5000)
order = np.argsort(x) if os.environ["SORTED"] == "1" else slice(None)
weights = {f"key {n}": (1 + n) ** 0.5 * (-1) ** n for n in range(30)}
pathlib.Path("out").mkdir(exist_ok=True)
np.save("out/total.npy", np.add.accumulate(x[order])[-1])
np.save("out/set_sum.npy", sum(weights[name] for name in set(weights)))
np.save("out/product.npy", x * x[::-1])
"""


def repeat_factors(folder: Path) -> None:
    """Two sums, each of which a factor of its own changes, and a field that none changes."""
    config = "version: 1\nrun: [{python!r}, sim.py]\nchecks:\n  sums: {{outputs: out}}\n"
    _project(folder, SUMS, config)
    factors = ("--vary", "SORTED=0,1", "--vary", "hash-seed")
    ciwrap(folder, "repeat", "-n", "8", *factors, "--seed", "7", *REPORT)


def repeat_equal(folder: Path) -> None:
    """All runs are the same."""
    program = "import numpy as np; np.save('x.npy', np.arange(100.0))\n"
    config = "version: 1\nrun: [{python!r}, sim.py]\nchecks:\n  x: {{outputs: x.npy, atol: 1}}\n"
    _project(folder, program, config)
    ciwrap(folder, "repeat", "-n", "4", *REPORT)


def repeat_fails(folder: Path) -> None:
    """One run of five ends with an error, and the others differ in all values."""
    program = (
        "import sys, numpy as np\nn = int(sys.argv[1])\nprint('seed', n)\n"
        "if sys.argv[2] == '3': sys.exit('the solver diverged in step 12')\n"
        "np.save('x.npy', np.random.default_rng(n).random(100))\n"
    )
    config = (
        "version: 1\nrun: [{python!r}, sim.py, '{{seed}}', '{{run}}']\n"
        "checks:\n  x: {{outputs: x.npy, atol: 1.0e-9}}\n"
    )
    _project(folder, program, config)
    ciwrap(folder, "repeat", "-n", "5", "--seed", "7", *REPORT, codes=(3,))


def _busy(steps: int) -> str:
    return f'python3 -S -c "sum(i * i for i in range({steps}))"'


def time_changed(folder: Path) -> None:
    """B does half as much work again."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = (_busy(400_000), _busy(700_000))
    ciwrap(folder, "time", *pair, "--pairs", "12", "--seed", "7", *REPORT)


def time_open(folder: Path) -> None:
    """The same command twice, too few times, so that nothing is decided."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = (_busy(100_000), _busy(101_000))
    ciwrap(folder, "time", *pair, "--pairs", "6", "--margin", "0.001", "--seed", "7", *REPORT)


def time_alone(folder: Path) -> None:
    """One command, and a budget that it exceeds."""
    folder.mkdir(parents=True, exist_ok=True)
    more = ("--pairs", "12", "--max-seconds", "0.001")
    ciwrap(folder, "time", _busy(400_000), *more, *REPORT, codes=(1,))


MESH_CONFIG = """\
version: 1
run: ./sim
checks:
  mesh: {outputs: out, atol: 1.0e-6}
"""


def _nightly(folder: Path, shares: list[tuple[float, float]], seconds: list[float]) -> list[str]:
    """A result of each night: real comparisons, their times moved to a night of their own."""
    (folder / "out").mkdir(parents=True)
    (folder / "ciwrap.yaml").write_text(MESH_CONFIG, encoding="utf-8")
    x = np.linspace(0, 1, 200)

    def write(density: float, pressure: float, noise: float) -> None:
        np.save(folder / "out/density.npy", 1 + x + density * 1e-6)
        np.save(folder / "out/pressure.npy", np.cos(x) + pressure * 1e-6)
        np.save(folder / "out/speed.npy", np.sin(x) + noise * np.sin(900 * x))

    write(0, 0, 0)
    ciwrap(folder, "accept")
    random = np.random.default_rng(4)
    names = []
    for night, (density, pressure) in enumerate(shares):
        write(density, pressure, random.uniform(2.8e-7, 3.2e-7))
        name = f"night_{night:02}.json"
        ciwrap(folder, "check", "--json", name, codes=(0, 1))
        path = folder / name
        result = json.loads(path.read_text(encoding="utf-8"))
        when = datetime(2026, 3, 1, 2, tzinfo=timezone.utc) + timedelta(days=night)
        result["started_at"] = when.isoformat()
        commit = hashlib.sha1(str(night).encode(), usedforsecurity=False).hexdigest()
        result["environment"] = {"cpu": "A processor", "git_commit": commit}
        if seconds:
            result["command"] = {
                "command": "./sim",
                "working_dir": ".",
                "exit_code": 0,
                "seconds": seconds[night],
            }
        path.write_text(json.dumps(result), encoding="utf-8")
        names.append(name)
    return names


def _levels(random: np.random.Generator, count: int, step: int) -> list[float]:
    return [random.normal(1.2 if night < step else 1.5, 0.02) for night in range(count)]


def trend(folder: Path) -> None:
    """A share that grows, one that rose in a step, and a command that became slower."""
    random = np.random.default_rng(3)
    shares = [(0.1 + 0.02 * n, 0.2 if n < 17 else 0.72) for n in range(25)]
    names = _nightly(folder, shares, _levels(random, 25, 14))
    ciwrap(folder, "trend", *names, *REPORT)


def trend_beyond(folder: Path) -> None:
    """One variable passed its bound some nights ago, and still lies beyond it."""
    shares = [(0.3, 0.2 if n < 15 else 2.6) for n in range(20)]
    ciwrap(folder, "trend", *_nightly(folder, shares, []), *REPORT)


def trend_quiet(folder: Path) -> None:
    """Nothing to warn of."""
    ciwrap(folder, "trend", *_nightly(folder, [(0.3, 0.2)] * 9, []), *REPORT)


STEPS = """\
import os, sys
import numpy as np
{line}
os.makedirs("out", exist_ok=True)
y, x = np.mgrid[0:1:40j, 0:1:60j]
density = 1 + 0.3 * np.sin(6 * x) * np.cos(4 * y)
density[:, -1] += {by}
np.save("out/density.npy", density)
np.save("out/speed.npy", np.sqrt(1 + x * y))
"""


def _history(folder: Path, moved: int, broken: tuple[int, ...]) -> None:
    repository = GitRepository.make(folder)
    titles = (
        "Begin",
        "Document the time step",
        "Sum up in pairs",
        "Name the fields of a cell",
        "Start to rewrite the solver",
        "Take the flux of the last column from the ghost cells",
        "Rename the parameters",
        "Print less",
    )
    config = f"version: 1\nrun: ['{sys.executable}', sim.py]\n"
    config += "checks:\n  fields: {outputs: out, atol: 1.0e-6}\n"
    for number, title in enumerate(titles):
        line = "sys.exit('it does not build')" if number in broken else f"# {title}"
        program = STEPS.format(line=line, by="3e-4" if number >= moved else "0.0")
        files = {"sim.py": program}
        if number == 0:
            files |= {"ciwrap.yaml": config, ".gitignore": "out/\nreport.html\n"}
        repository.commit(title, files)
        if number == 0:
            ciwrap(folder, "run", codes=(3,))
            ciwrap(folder, "accept")
            repository.commit("Add goldens", {})


def bisect(folder: Path) -> None:
    """A commit that is found, beside one that does not build."""
    _history(folder, 5, (3,))
    ciwrap(folder, "bisect", "HEAD~7", "HEAD", *REPORT)


def bisect_open(folder: Path) -> None:
    """The commits where it happened do not build."""
    _history(folder, 5, (4, 5))
    ciwrap(folder, "bisect", "HEAD~7", "HEAD", *REPORT, codes=(3,))


def variability(folder: Path) -> None:
    """The map of the how-to, of three quarters of its configurations."""
    folder.mkdir(parents=True, exist_ok=True)
    head, *rows = TABLE.read_text(encoding="utf-8").splitlines()
    some = [row for row in rows if row.split(",")[2] in ("1", "16", "64")]
    (folder / "io.csv").write_text("\n".join([head, *some]) + "\n", encoding="utf-8")
    ciwrap(folder, "variability", "fit", "io.csv", *REPORT)


def _members(folder: Path, count: int, seed: int, spread: float) -> None:
    """What runs of a chaotic program left: the logistic map from starts a hair apart."""
    random = np.random.default_rng(seed)
    for number in range(1, count + 1):
        x, states = 0.3 + 1e-13 * random.random(), []
        for _ in range(4000):
            x = 3.9 * x * (1 - x)
            states.append(x)
        (folder / f"run_{number}").mkdir(parents=True)
        np.save(folder / f"run_{number}" / "x.npy", 0.5 + spread * (np.array(states) - 0.5))


def ensemble(folder: Path) -> None:
    """Runs whose statistics have moved."""
    folder.mkdir(parents=True, exist_ok=True)
    config = "version: 1\nchecks:\n  air: {outputs: x.npy, ensemble: runs/run_*}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    _members(folder / "runs", 60, 1, 1.0)
    options = ("--ensemble", "air", "--blocks", "8", "--reason", "As of version 2")
    ciwrap(folder, "capture", *options)
    shutil.rmtree(folder / "runs")
    _members(folder / "runs", 3, 2, 0.97)
    ciwrap(folder, "check", *REPORT, codes=(1,))


PAGES: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        repeat,
        repeat_factors,
        repeat_equal,
        repeat_fails,
        time_changed,
        time_open,
        time_alone,
        trend,
        trend_beyond,
        trend_quiet,
        bisect,
        bisect_open,
        variability,
        ensemble,
    )
}


def make(name: str, folder: Path) -> Path:
    """The page of a study."""
    PAGES[name](folder)
    return folder / "report.html"
