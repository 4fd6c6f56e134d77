"""What snapshots cost, how they compress, and whether an environment can be had back.

python -m benchmarks.snapshots overhead     what watching a command of two seconds costs it;
                                            with --mpi 2, two ranks of mpiexec
python -m benchmarks.snapshots compression  kept files with zlib, zstd and raw: times and sizes
python -m benchmarks.snapshots rebuild      NumPy and SciPy installed anew by pip, then verified
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.project.run_command import run_command
from ciwrap.project.settings import CommandSettings
from ciwrap.snapshot.difference import describe_environment
from ciwrap.snapshot.restore import check_objects, recipes
from ciwrap.snapshot.store import SUFFIXES, object_files, unpack_archive, write_archive
from ciwrap.snapshot.take import ProgramWatcher, snapshot_of_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.snapshot.records import Snapshot

# Two seconds of arithmetic, with all libraries of NumPy and SciPy that a simulation has.
BUSY = """
import time
import numpy as np, scipy.linalg, scipy.sparse.linalg, scipy.fft, scipy.integrate
a = np.random.default_rng(1).standard_normal((120, 120))
for _ in range(COUNT):
    scipy.linalg.eigvals(a)
time.sleep(PAUSE)
"""


def settings(python: str, count: int, pause: float = 0.0, ranks: int = 0) -> CommandSettings:
    code = BUSY.replace("COUNT", str(count)).replace("PAUSE", str(pause))
    words: tuple[str, ...] = (python, "-c", code)
    if ranks:
        mpiexec = str(Path(python).with_name("mpiexec"))
        words = (mpiexec, "-n", str(ranks), python, "-c", f"from mpi4py import MPI{code}")
    return CommandSettings(words, Path.cwd(), env={"OPENBLAS_NUM_THREADS": "1"})


def overhead(pairs: int, ranks: int) -> None:
    """The same command watched and left alone, in pairs that take turns at being first."""
    count = 20
    while run_command(settings(sys.executable, count, 0, ranks), is_shown=False).seconds < 2:
        count *= 2
    ratios, plain = [], []
    for number in range(pairs):
        seconds = {}
        for is_watched in (True, False) if number % 2 else (False, True):
            watcher = ProgramWatcher() if is_watched else None
            command = settings(sys.executable, count, 0, ranks)
            seconds[is_watched] = run_command(command, is_shown=False, watcher=watcher).seconds
        ratios.append(seconds[True] / seconds[False])
        plain.append(seconds[False])
    watcher = ProgramWatcher()
    begun = time.process_time()
    command = settings(sys.executable, count, 0, ranks)
    run = run_command(command, is_shown=False, watcher=watcher)
    watching = time.process_time() - begun
    taken = costs(lambda: snapshot_of_program(Path.cwd(), watcher.seen))
    described = costs(lambda: describe_environment(Path.cwd()))
    objects = snapshot_of_program(Path.cwd(), watcher.seen).objects
    told = sorted({one.version for one in objects if one.version and one.kind in ("maths", "mpi")})
    print(f"a run of {statistics.median(plain):.2f} s, {pairs} pairs, {len(objects)} objects seen")
    print(f"versions told by BLAS and MPI themselves: {', '.join(told)}")
    print(f"watched / left alone: median {statistics.median(ratios):.4f},", end=" ")
    print(f"from {min(ratios):.3f} to {max(ratios):.3f}")
    print(f"processor time of watching: {1000 * watching:.0f} ms in {run.seconds:.1f} s,", end=" ")
    print(f"{watching / run.seconds:.1%}")
    print(f"snapshot after the run: {taken}")
    print(f"facts of the machine alone: {described}")


def costs(what: Callable[[], object], repeats: int = 25) -> str:
    """The first call, then the median of others with the range of their middle half: milliseconds
    of processor time, those of git and other children included, and of the clock.
    """
    first, *others = ((timed(what, processor_time), timed(what)) for _ in range(repeats + 1))
    spent, waited = ([1000 * one[which] for one in others] for which in (0, 1))
    return (
        f"{_middle(spent)} of processor time (the first {1000 * first[0]:.0f} ms),"
        f" {_middle(waited)} by the clock"
    )


def _middle(times: list[float]) -> str:
    low, median, high = statistics.quantiles(times, n=4)
    return f"median {median:.0f} ms ({low:.0f} to {high:.0f})"


def processor_time() -> float:
    """Seconds that this process and its ended children have computed."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(one.ru_utime + one.ru_stime for one in (own, children))


def compression(repeats: int) -> None:
    """The table of the poster: creation, restoration and size of what is kept of a run."""
    watcher = ProgramWatcher(is_thorough=True)
    run_command(settings(sys.executable, 1, pause=0.5), is_shown=False, watcher=watcher)
    files = object_files({file.path: key[0] for file, key in watcher.seen.files.items()})
    size = sum(path.stat().st_size for path in files.values()) / 2**20
    print(f"{len(files)} objects, {size:.1f} MiB; processor time, fastest of {repeats}")
    print("| | raw | zlib 6 | zstd 3 |\n|---|---|---|---|")
    rows: dict[str, list[str]] = {"create, s": [], "restore, s": [], "MiB": []}
    with tempfile.TemporaryDirectory() as folder:
        for how in ("", "z", "zst"):
            create, restore, packed = one_archive(files, Path(folder), how, repeats)
            rows["create, s"].append(f"{create:.2f}")
            rows["restore, s"].append(f"{restore:.2f}")
            rows["MiB"].append(f"{packed / 2**20:.1f}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")


def one_archive(
    files: dict[str, Path], folder: Path, how: str, repeats: int
) -> tuple[float, float, int]:
    """Seconds of processor time to pack and to unpack, and bytes; the fastest of some repeats."""
    target = folder / f"x{SUFFIXES[how]}"
    create, restore = [], []
    for number in range(repeats):
        create.append(timed(lambda: write_archive(files, target, how), time.process_time))
        to = folder / f"back{number}"
        to.mkdir()
        restore.append(timed(partial(unpack_archive, target, to), time.process_time))
        shutil.rmtree(to)
    return min(create), min(restore), target.stat().st_size


def rebuild() -> int:
    """Makes an environment, takes its snapshot, builds it again from requirements.txt alone, and
    compares all objects by SHA-256.
    """
    with tempfile.TemporaryDirectory() as folder:
        first = environment(Path(folder, "first"), ["numpy", "scipy"])
        before = seen(first)
        text = recipes(before)["requirements.txt"]
        pins = Path(folder, "requirements.txt")
        pins.write_text(text)
        started = time.perf_counter()
        second = environment(Path(folder, "second"), ["-r", str(pins)])
        seconds = time.perf_counter() - started
        found = check_objects(before, seen(second))
    print(f"rebuilt in {seconds:.1f} s from {len(before.packages)} pins")
    print(f"{len(found.equal)} of {len(before.objects)} objects equal by SHA-256")
    for one in (*found.missing, *(pair[0] for pair in found.other)):
        print(f"  not equal: {one.path}")
    for one in found.extra:
        print(f"  new: {one.path}")
    return 0 if found.is_same else 1


def environment(folder: Path, words: list[str]) -> str:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print(f"installing {' '.join(words)} ...", file=sys.stderr, flush=True)
    subprocess.run([*pip, *words], check=True, env=clean)
    return python


def seen(python: str) -> Snapshot:
    watcher = ProgramWatcher(is_thorough=True)
    run_command(settings(python, 1, pause=1.0), is_shown=False, watcher=watcher)
    return snapshot_of_program(Path.cwd(), watcher.seen, hashed=True)


def timed(what: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    what()
    return clock() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["overhead", "compression", "rebuild"])
    parser.add_argument("--repeats", type=int, default=0, help="pairs, or times; 0: as usual")
    parser.add_argument("--mpi", type=int, default=0, metavar="RANKS", help="of `overhead`")
    given = parser.parse_args()
    if given.what == "rebuild":
        return rebuild()
    if given.what == "overhead":
        overhead(given.repeats or 10, given.mpi)
    else:
        compression(given.repeats or 3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
