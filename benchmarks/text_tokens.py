"""Texts token by token: speed and memory for a large log, numdiff beside it, what insertions cost.

    python -m benchmarks.text_tokens [--mib 2048] [--numdiff-mib 64] [--folder DIR]

Needs numdiff (`apt-get install numdiff`) for the comparison with it. Each case is a process of its
own; speeds are MB of one log for each second of processor time, and of elapsed time.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.used import Used, used

ATOL = 1e-8
BLOCK_LINES = 60_000
PAIRS = 50
SEED = 20261122


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, default=2048, help="size of the large log")
    parser.add_argument("--numdiff-mib", type=int, default=64, help="size for numdiff")
    parser.add_argument("--folder", type=Path, default=None, help="where to write the logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        _large(folder, options.mib)
        _insertions(folder)
        if shutil.which("numdiff"):
            _beside_numdiff(folder, options.numdiff_mib)
            _verdicts(folder)
        else:
            print("numdiff is not installed; nothing to compare with")


def _large(folder: Path, mib: int) -> None:
    golden, new = _pair(folder, mib, is_beyond=False)
    _tell(f"log of {mib} MiB, every 20th number within the bound", _ciwrap(golden, new), golden)
    golden.unlink()
    new.unlink()


def _insertions(folder: Path) -> None:
    """10,000 lines more on one side, in the middle."""
    lines, _ = _block(random.Random(SEED), is_beyond=False)
    golden, plain, longer = (folder / name for name in ("a.log", "b.log", "c.log"))
    golden.write_text("".join(lines * 4))
    plain.write_text("".join(lines * 4))
    more = [f"a line {i} that is new, {i * 0.37:.4f}\n" for i in range(10_000)]
    longer.write_text("".join(lines * 2 + more + lines * 2))
    _ciwrap(golden, plain)
    pairs = [(_ciwrap(golden, plain), _ciwrap(golden, longer)) for _ in range(5)]
    ratio = sorted(two.cpu_seconds / one.cpu_seconds for one, two in pairs)[2]
    print(f"10,000 lines inserted: {ratio:.2f} x the processor time of an equal pair (median of 5)")


def _beside_numdiff(folder: Path, mib: int) -> None:
    golden, new = _pair(folder, mib, is_beyond=False)
    numdiff = ["numdiff", "-q", "-a", str(ATOL), str(golden), str(new)]
    _ciwrap(golden, new)
    rounds = [(_ciwrap(golden, new), used(numdiff)) for _ in range(3)]
    for name, ran in zip(("ciwrap", "numdiff"), rounds[0], strict=True):
        _tell(f"{name}, log of {mib} MiB", ran, golden)
    ratio = sorted(other.cpu_seconds / ours.cpu_seconds for ours, other in rounds)[1]
    print(f"ciwrap is {ratio:.1f} x as fast as numdiff (processor time, median of 3)")


def _verdicts(folder: Path) -> None:
    """Pairs that match and pairs that do not, by both programs."""
    rng = random.Random(SEED)
    same = 0
    for turn in range(PAIRS):
        lines, others = _block(rng, lines=400, is_beyond=turn % 2 == 1)
        golden, new = folder / "a.log", folder / "b.log"
        golden.write_text("".join(lines))
        new.write_text("".join(others))
        ours = _ciwrap(golden, new).exit_code
        theirs = used(["numdiff", "-q", "-a", str(ATOL), str(golden), str(new)]).exit_code
        same += ours == theirs == turn % 2
    print(f"{same} of {PAIRS} pairs have the same verdict, and the right one")


def _pair(folder: Path, mib: int, *, is_beyond: bool) -> tuple[Path, Path]:
    golden, new = folder / "golden.log", folder / "new.log"
    lines, others = _block(random.Random(SEED), is_beyond=is_beyond)
    for path, block in ((golden, lines), (new, others)):
        data = "".join(block).encode()
        with path.open("wb") as file:
            for _ in range((mib << 20) // len(data) + 1):
                file.write(data)
    return golden, new


def _block(
    rng: random.Random, *, is_beyond: bool, lines: int = BLOCK_LINES
) -> tuple[list[str], list[str]]:
    """Lines of a log, and the same with noise below the bound; is_beyond: in one, beyond it."""
    golden, new = [], []
    for i in range(lines):
        energy = rng.uniform(-20, -10)
        noise = rng.choice((0.5, -0.5)) * ATOL if i % 20 == 0 else 0.0
        if is_beyond and i == lines // 2:
            noise = 100 * ATOL
        head = f" MD| step {i:9d} of the run, temperature {rng.uniform(290, 310):12.6f} K, energy"
        golden.append(f"{head} {energy:20.12f} after {i % 17:3d} SCF cycles of PBE0\n")
        new.append(f"{head} {energy + noise:20.12f} after {i % 17:3d} SCF cycles of PBE0\n")
    return golden, new


def _ciwrap(golden: Path, new: Path) -> Used:
    words = ["compare", str(golden), str(new), "--format", "tokens", "--atol", str(ATOL)]
    return used([sys.executable, "-m", "ciwrap", *words])


def _tell(what: str, ran: Used, log: Path) -> None:
    size = log.stat().st_size / 1e6
    print(
        f"{what}: {size / ran.cpu_seconds:.0f} MB/s of processor time,"
        f" {size / ran.seconds:.0f} MB/s elapsed, {ran.peak >> 20} MiB at most,"
        f" exit code {ran.exit_code}"
    )


if __name__ == "__main__":
    main()
