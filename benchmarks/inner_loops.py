"""Instructions and predicted cycles of the inner loops, on processors that need not be at hand.

    python -m benchmarks.inner_loops BUILD...     build folders, for any processor

Reads the kernels that CMake has compiled, finds the loops that take nearly all of the time, and
has llvm-mca (LLVM 17 or newer) run them on its models of processors. These know ports, latencies
and the width of a core; they know no caches, no memory and no mispredicted branch. So the numbers
say what the arithmetic costs, and nothing of how fast data arrive.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path

TILES = {"v4": 64}  # scalars, else 32; simd.hpp
STRIPE = 64  # bytes; xxh3_core.hpp
# Where vectors have 16 bytes, loops over a tile are not laid out: four scalars a turn.
TURNS = {"v1": 8, "neon": 8}
PROCESSORS = {
    "v1": ("icelake-server", "znver3"),
    "v3": ("icelake-server", "znver3"),
    "v4": ("icelake-server",),
    "neon": ("neoverse-n1", "apple-m1"),
}
MULTIPLIES_A_STRIPE = {"v1": 4, "v3": 2, "v4": 1, "neon": 4}

PLAIN, GOLDEN, AGAINST = 0, 1, 2
LIMITED = r"encode_quick_block<.*LimitedTiles<\(.*Rounding\){0}, \(ciwrap::ScalarType\){1},"
ESTIMATED = (
    r"encode_quick_block<.*EstimatedTiles<\(.*Rounding\){0}, \(ciwrap::ScalarType\){1}, [46],"
    ".*FineRounding"
)
LOOPS = (
    ("absolute, plain", "float32", LIMITED.format(PLAIN, 2)),
    ("absolute, plain", "float64", LIMITED.format(PLAIN, 3)),
    ("absolute, residues", "float32", LIMITED.format(GOLDEN, 2)),
    ("absolute, residues", "float64", LIMITED.format(GOLDEN, 3)),
    ("new run against residues", "float32", LIMITED.format(AGAINST, 2)),
    ("new run against residues", "float64", LIMITED.format(AGAINST, 3)),
    ("relative, plain", "float32", "encode_float_block<|" + ESTIMATED.format(PLAIN, 2)),
    ("relative, plain", "float64", ESTIMATED.format(PLAIN, 3)),
)


@dataclass(frozen=True)
class Instruction:
    address: int
    text: str
    target: int | None  # of a jump within the function

    @property
    def is_call(self) -> bool:
        return self.text.split()[0] in ("bl", "blr", "call", "callq")

    @property
    def is_always_left(self) -> bool:
        return self.text.split()[0] in ("b", "br", "ret", "jmp", "retq")


@dataclass(frozen=True)
class Row:
    loop: str
    level: str
    processor: str
    instructions: float  # of one scalar, or of one stripe
    cycles: float


def functions(file: Path) -> dict[str, list[Instruction]]:
    """Of an object file, by demangled name."""
    objdump = "objdump"
    if "aarch64" in said_by(["readelf", "--file-header", str(file)]).lower():
        objdump = "aarch64-linux-gnu-objdump"
    text = said_by([objdump, "--disassemble", "--no-show-raw-insn", "--demangle", str(file)])
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(.*)>:", line):
            current = found.setdefault(head[1], [])
        elif body := re.match(r"\s*([0-9a-f]+):\s+(\S.*)", line):
            current.append(parse(int(body[1], 16), body[2]))
    return found


def parse(address: int, text: str) -> Instruction:
    text = re.split(r"\s+(?://|#)\s", text)[0].strip()
    target = None
    if jump := re.fullmatch(r"(\S+\s+(?:\S+, )*)([0-9a-f]+) <.*>", text):
        target = int(jump[2], 16)
        text = f"{jump[1]}.Lsomewhere"
    return Instruction(address, text, target)


def loops(body: list[Instruction]) -> list[list[Instruction]]:
    """From the target of a jump backwards to the jump, the shortest first."""
    found = [
        [one for one in body if jump.target <= one.address <= jump.address]
        for jump in body
        if jump.target is not None and body[0].address < jump.target <= jump.address
    ]
    return sorted((one for one in found if one), key=len)


def tile_loop(body: list[Instruction], turns: int) -> list[Instruction]:
    """What is done for one tile that holds nothing special, with the loop inside it laid out.

    Raises LookupError if the function has another form.
    """
    around = next((one for one in loops(body) if any(is_prefetch(step) for step in one)), None)
    if around is None:
        raise LookupError("no loop that fetches ahead")
    way = shortest_way(body, around[0], around[-1])
    # An unconditional jump back is the end of a detour.
    inner = [one for one in loops(way) if not max(one, key=lambda s: s.address).is_always_left]
    if not inner and turns == 1:
        return way
    if len(inner) != 1 or turns == 1:
        raise LookupError(f"{len(inner)} loops within a tile")
    start = way.index(inner[0][0])
    return way[:start] + inner[0] * turns + way[start + len(inner[0]) :]


def shortest_way(
    body: list[Instruction], first: Instruction, last: Instruction
) -> list[Instruction]:
    """The fewest instructions from `first` to `last` without a call, and past no instruction twice.

    What a tile needs that holds something special is a call, and a detour.
    """
    place = {step.address: number for number, step in enumerate(body)}
    before: dict[int, int] = {}
    start, end = place[first.address], place[last.address]
    ways = deque([start])
    while ways and end not in before:
        here = ways.popleft()
        step = body[here]
        after = [] if step.is_always_left else [here + 1]
        if step.target in place:
            after.append(place[step.target])
        for following in after:
            if following < len(body) and not body[following].is_call and following not in before:
                before[following] = here
                ways.append(following)
    if end not in before:
        raise LookupError("no way through a tile without calls")
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return [body[number] for number in reversed(way)]


def is_prefetch(step: Instruction) -> bool:
    return step.text.startswith(("prfm", "prefetch"))


def stripe_loop(hashing: list[list[Instruction]], multiplies: int) -> tuple[list[Instruction], int]:
    """The loop over stripes of a hash, and how many it takes a turn."""
    for one in [one for body in hashing for one in loops(body)]:
        found = sum(bool(re.match(r"umlal2?\s|v?pmuludq\s", step.text)) for step in one)
        if found and found % multiplies == 0:
            return one, found // multiplies
    raise SystemExit("inner_loops: no loop over stripes")


def predict(steps: list[Instruction], level: str, processor: str) -> tuple[float, float]:
    """Instructions and cycles of one turn."""
    triple = "x86_64" if level.startswith("v") else "aarch64"
    text = "\n".join(step.text for step in steps) + "\n.Lsomewhere:\n"
    command = [mca(), f"-mtriple={triple}", f"-mcpu={processor}", "-iterations=200"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"inner_loops: llvm-mca failed:\n{done.stderr}")
    numbers = dict(re.findall(r"^(Instructions|Total Cycles): +(\d+)", done.stdout, re.MULTILINE))
    return int(numbers["Instructions"]) / 200, int(numbers["Total Cycles"]) / 200


def mca() -> str:
    for name in [*(f"llvm-mca-{version}" for version in range(22, 16, -1)), "llvm-mca"]:
        if (path := shutil.which(name)) and llvm_version(path) >= 17:
            return path
    raise SystemExit("inner_loops: no llvm-mca of LLVM 17 or newer (Debian: llvm-19)")


def llvm_version(path: str) -> int:
    return int(re.findall(r"LLVM version (\d+)", said_by([path, "--version"]))[0])


def said_by(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows_of(file: Path, level: str) -> list[Row]:
    known = functions(file)
    tile = TILES.get(level, 32)
    rows = []
    for name, scalar, pattern in LOOPS:
        # Of two estimates that in floats or with fewer terms, which comes first by name.
        fitting = sorted(
            (found[0], f) for f in known if (found := re.search(pattern, f)) is not None
        )
        if not fitting:
            raise SystemExit(f"inner_loops: {file} has no function {pattern}")
        # GCC puts what it takes for rare elsewhere.
        body = max((known[f] for name_of, f in fitting if name_of == fitting[0][0]), key=len)
        try:
            steps = tile_loop(body, TURNS.get(level, 1))
        except LookupError as error:
            raise SystemExit(f"inner_loops: {level}, {name}, {scalar}: {error}") from None
        for processor in PROCESSORS[level]:
            instructions, cycles = predict(steps, level, processor)
            rows.append(
                Row(f"{name}, {scalar}", level, processor, instructions / tile, cycles / tile)
            )
    hashing = [body for f, body in known.items() if re.search(r"::(accumulate|hash_)\w*\(", f)]
    steps, stripes = stripe_loop(hashing, MULTIPLIES_A_STRIPE[level])
    for processor in PROCESSORS[level]:
        instructions, cycles = predict(steps, level, processor)
        rows.append(
            Row("XXH3, 64 bytes", level, processor, instructions / stripes, cycles / stripes)
        )
    return rows


def markdown(rows: list[Row]) -> str:
    columns = list(dict.fromkeys((row.level, row.processor) for row in rows))
    lines = [
        "| loop | " + " | ".join(f"{level}, {processor}" for level, processor in columns) + " |",
        "| --- |" + " ---: |" * len(columns),
    ]
    for loop in dict.fromkeys(row.loop for row in rows):
        cells = {(r.level, r.processor): r for r in rows if r.loop == loop}
        texts = [
            f"{cells[one].instructions:.1f} / {cells[one].cycles:.1f}" if one in cells else ""
            for one in columns
        ]
        lines.append(f"| {loop} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("builds", nargs="+", type=Path, metavar="BUILD")
    builds = arguments.parse_args().builds
    rows: list[Row] = []
    for level in PROCESSORS:
        name = f"**/ciwrap_levels_level_{level}.dir/**/level_kernels.cpp.o"
        for file in [file for build in builds for file in sorted(build.glob(name))][:1]:
            rows += rows_of(file, level)
    if not rows:
        raise SystemExit(f"inner_loops: no compiled kernels in {', '.join(map(str, builds))}")
    print("instructions / predicted cycles of one scalar (XXH3: of 64 bytes)\n")
    print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
