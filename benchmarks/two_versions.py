"""Compares two versions of ciwrap: commands, trees, elements, the pytest plugin.

    python -m benchmarks.two_versions OLD [NEW] [--repeats N] [--quick] [--markdown FILE]

OLD and NEW are folders with an importable `ciwrap` (a work tree after tools/dev-install); NEW is
this one unless given. Each round runs every case with both versions, one right after the other; a
ratio is formed within a round, and the median over the rounds is told, so that a slow minute of the
machine meets both. CPU seconds are those of all threads of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent.parent
_CALLS = """
import json, time
import numpy as np
from ciwrap.api import build_tree, compare_arrays
rng = np.random.default_rng(1)
values = (rng.normal(size={count}) * {scale}).astype("{dtype}")
noisy = (values * (1 + 1e-8)).astype("{dtype}")
{call}
seconds, cpu = [], []
for _ in range(5):
    started, used = time.perf_counter(), time.process_time()
    {call}
    seconds.append(time.perf_counter() - started)
    cpu.append(time.process_time() - used)
print(json.dumps([sorted(seconds)[2], sorted(cpu)[2]]))
"""
# Calls of the Python API: the type of the array, what is called.
_TREES = (
    ("f4", "atol=1e-3"),
    ("f4", "rtol=1e-4"),
    ("f4", "ulps=4"),
    ("f4", "atol=1e-3, residue_levels=15"),
    ("f8", "atol=1e-3"),
    ("f8", "rtol=1e-6"),
    ("f8", "ulps=4"),
    ("f8", "atol=1e-3, residue_levels=15"),
    ("f8", "atol=1e-3, fill_values=[-9999.0]"),
    ("f2", "atol=1e-2"),
    ("i8", "atol=10"),
    ("i4", ""),
)
_ELEMENTS = (
    ("f4", "atol=1e-3"),
    ("f4", "rtol=1e-4"),
    ("f4", "ulps=4"),
    ("f8", "atol=1e-3"),
    ("f8", "ulps=4"),
    ("i8", ""),
)
_PLUGIN = """
import json, time
import numpy as np

def test_it(ciwrap):
    x = np.arange(100.0)
    started, used = time.perf_counter(), time.process_time()
    for number in range({checks}):
        ciwrap.check(x, f"x{{number}}", atol=1e-6)
    with open("seconds.json", "w") as stream:
        json.dump([time.perf_counter() - started, time.process_time() - used], stream)
"""
_CONFIG = "checks:\n  mesh:\n    outputs: [x.npy]\n    atol: 1e-6\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A command line of `python`, run in `folder`; what it prints or writes may be its own time.

    before: a command line that is run first, each time, and not measured. told: the command tells
    its seconds itself, on stdout or in the file of this name. status: it ends with.
    """

    name: str
    folder: Path
    words: tuple[str, ...]
    before: tuple[str, ...] = ()
    told: str | None = None
    status: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=HERE)
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="measured rounds")
    parser.add_argument("--quick", action="store_true", help="small sizes; the numbers mean little")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table here")
    options = parser.parse_args()
    versions = (options.old.resolve(), options.new.resolve())
    with tempfile.TemporaryDirectory() as name:
        both = [
            cases(Path(name, str(number)), version, quick=options.quick)
            for number, version in enumerate(versions)
        ]
        rows = [measured(pair, versions, options.repeats) for pair in zip(*both, strict=True)]
    table = "\n".join(_table(rows))
    load = os.getloadavg()[0]
    print(f"{table}\n\nload {load:.2f}, {options.repeats} rounds")
    if options.markdown:
        options.markdown.write_text(f"{table}\n", encoding="utf-8")
    return 0


def cases(root: Path, version: Path, *, quick: bool) -> list[Case]:
    """The cases of one version, and the files they need, made with that version."""
    count = 1 << (16 if quick else 26)
    checks = 20 if quick else 1000
    rng = np.random.default_rng(3)
    for folder in ("check", "large", "runs/a", "runs/b", "plugin", "update", "many/a", "many/b"):
        (root / folder).mkdir(parents=True)
    small = rng.normal(size=20_000)
    np.save(root / "check/x.npy", small)
    (root / "check/ciwrap.yaml").write_text(_CONFIG)
    large = rng.standard_normal(count, dtype=np.float32)
    np.save(root / "runs/a/x.npy", large)
    np.save(root / "runs/b/x.npy", large + np.float32(1e-5))
    np.save(root / "large/x.npy", large)
    (root / "large/ciwrap.yaml").write_text(_CONFIG)
    for step in range(checks):
        np.save(root / f"many/a/x_{step:05}.npy", small[:500])
        np.save(root / f"many/b/x_{step:05}.npy", small[:500] + 1e-7)
    named = {f"v{number:04}": small[:100] for number in range(checks)}
    np.savez(root / "many/named.npz", **named)
    for folder in ("plugin", "update"):
        (root / folder / "pytest.ini").write_text("[pytest]\n")
        (root / folder / "test_it.py").write_text(_PLUGIN.format(checks=checks))
    ciwrap = ("-m", "ciwrap")
    test = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    update = (*test, "--ciwrap-update=new", "--ciwrap-update-in-ci")
    for folder, words in (
        ("check", (*ciwrap, "accept", "--reason", "first")),
        ("large", (*ciwrap, "accept", "--reason", "first")),
        ("plugin", update),
        ("runs", (*ciwrap, "capture", "a", "--atol", "1e-3", "--residues")),
        ("runs", (*ciwrap, "capture", "b", "--atol", "1e-3", "--against", "a/.ciwrap.tree")),
    ):
        _run(Case("", root / folder, words), version)
    data = ("compare", "a/x.npy", "b/x.npy", "--atol", "1e-3")
    nothing = (*ciwrap, "compare", "a", "b", "--atol", "1e-3", "--no-captures")
    differing = (*ciwrap, *data[:3], "--atol", "1e-6")
    forget = ("-c", "import shutil; shutil.rmtree('golden', ignore_errors=True)")

    def call(name: str, dtype: str, words: str) -> Case:
        scale = 1e6 if dtype[0] == "i" else 1
        what = f"build_tree(values, {words})"
        if name == "elements":
            what = f"compare_arrays(values, noisy, {words})"
        text = _CALLS.format(count=count // 2, dtype=dtype, call=what, scale=scale)
        title = f"{name}, {dtype}, {words or 'exact'}"
        return Case(title, root, ("-c", text), told="stdout")

    runs = root / "runs"
    recapture = (*ciwrap, "capture", "a", "--atol", "1e-3", "--residues", "--rebuild")
    many = (*ciwrap, "compare", "many/a", "many/b", "--atol", "1e-3", "--no-captures")
    named_twice = (*ciwrap, "compare", "many/named.npz", "many/named.npz", "--atol", "1e-3")
    return [
        Case("check, one array of 20,000", root / "check", (*ciwrap, "check")),
        Case("check, one large array", root / "large", (*ciwrap, "check")),
        Case(
            "accept, one large array",
            root / "large",
            (*ciwrap, "accept", "--reason", "first"),
            before=forget,
        ),
        Case("compare, two files", runs, (*ciwrap, *data)),
        Case("compare, two files, rtol", runs, (*ciwrap, *data, "--rtol", "1e-3")),
        Case("compare, two files that differ", runs, differing, status=1),
        Case("compare, two folders, no captures", runs, nothing),
        Case("compare, captured folders", runs, (*ciwrap, "compare", "a", "b")),
        Case(f"compare, two folders of {checks} files", root, many),
        Case(f"compare, two files of {checks} variables", root, named_twice),
        Case("capture, one file", runs, recapture),
        *(call("tree", dtype, words) for dtype, words in _TREES),
        *(call("elements", dtype, words) for dtype, words in _ELEMENTS),
        Case(f"plugin, {checks} checks", root / "plugin", test, told="seconds.json"),
        Case(
            f"plugin, {checks} new goldens",
            root / "update",
            update,
            before=forget,
            told="seconds.json",
        ),
    ]


def measured(
    pair: Sequence[Case], versions: Sequence[Path], repeats: int
) -> tuple[str, list[list[tuple[float, float]]]]:
    """Seconds and CPU seconds of both versions, round by round."""
    rounds: list[list[tuple[float, float]]] = []
    for number in range(repeats + 1):
        order = (0, 1) if number % 2 else (1, 0)
        found = {which: _run(pair[which], versions[which]) for which in order}
        if number:  # the first is to warm up
            rounds.append([found[0], found[1]])
    return pair[0].name, rounds


def _run(case: Case, version: Path) -> tuple[float, float]:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("CIWRAP_")},
        "PYTHONPATH": str(version),
    }
    if case.before:
        subprocess.run([sys.executable, *case.before], cwd=case.folder, check=True)
    started = perf_counter()
    child = subprocess.Popen(
        [sys.executable, *case.words],
        cwd=case.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = perf_counter() - started
    if child.returncode != case.status:
        sys.exit(f"{' '.join(case.words)} ended with {child.returncode}:\n{said.decode()}")
    if case.told is None:
        return seconds, usage.ru_utime + usage.ru_stime
    text = said if case.told == "stdout" else (case.folder / case.told).read_bytes()
    own_seconds, cpu = json.loads(text)
    return own_seconds, cpu


def _table(rows: Sequence[tuple[str, list[list[tuple[float, float]]]]]) -> list[str]:
    head = ["case", "old s", "new s", "new : old", "old CPU s", "new CPU s", "new : old, CPU"]
    lines = [head, ["---"] * len(head)]
    for name, rounds in rows:
        line = [name]
        for which in (0, 1):  # seconds, CPU seconds
            old, new = ([one[version][which] for one in rounds] for version in (0, 1))
            ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
            line += [f"{statistics.median(old):.3f}", f"{statistics.median(new):.3f}"]
            line.append(f"{ratio:.2f}")
        lines.append(line)
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
