"""Results to look at and to test reports with; all but the largest come from real comparisons.

The planted defect: a wave on four ranks, cut along axis 0. From iteration 7 on, rank 2 takes its
upper wall (the last plane of axis 2) with the wrong sign.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from command_line import call

from ciwrap.model import (
    CheckResult,
    DifferingElement,
    ErrorBound,
    Evidence,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import IndexBox
from ciwrap.report.document import from_document

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 4
DEFECT_FROM, DEFECT_RANK = 7, 2


@dataclass(frozen=True)
class Wave:
    """extent: cells of each rank along every axis. noise: largest change added to each step."""

    extent: int = 24
    iterations: int = 12
    noise: float = 1e-9
    seed: int = 1
    has_defect: bool = False


def run_wave(folder: Path, wave: Wave) -> None:
    """Writes folder/iter_NNNN/rank_R/{u,energy}.npy."""
    n = wave.extent
    random = np.random.default_rng(wave.seed)
    x = np.linspace(0, 1, n * RANKS)[:, None, None]
    y = np.linspace(0, 1, n)[None, :, None]
    z = np.linspace(0, 1, n)[None, None, :]
    u = np.exp(-60 * ((x - 0.7) ** 2 + (y - 0.4) ** 2 + (z - 0.6) ** 2))
    u = u + 0.3 * np.sin(3 * np.pi * x) * np.cos(2 * np.pi * y) * (0.4 + z)
    v = np.zeros_like(u)
    for iteration in range(1, wave.iterations + 1):
        laplace = np.zeros_like(u)
        laplace[1:-1] += u[2:] - 2 * u[1:-1] + u[:-2]
        laplace[:, 1:-1] += u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2]
        laplace[:, :, 1:-1] += u[:, :, 2:] - 2 * u[:, :, 1:-1] + u[:, :, :-2]
        v += 0.2 * laplace
        u = u + 0.2 * v
        u[:, :, -1] = u[:, :, -2]
        if wave.has_defect and iteration >= DEFECT_FROM:
            mine = slice(DEFECT_RANK * n, (DEFECT_RANK + 1) * n)
            u[mine, :, -1] = -u[mine, :, -2]
        u += wave.noise * random.uniform(-1, 1, u.shape)
        for rank in range(RANKS):
            target = folder / f"iter_{iteration:04d}" / f"rank_{rank}"
            target.mkdir(parents=True, exist_ok=True)
            mine = slice(rank * n, (rank + 1) * n)
            np.save(target / "u.npy", u[mine])
            np.save(target / "energy.npy", np.float64((v[mine] ** 2).sum() / 2))


def ciwrap(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Runs a command line; returns its stdout."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("CIWRAP_")}
    done = call(*arguments, folder=folder, environment=keep)
    assert done.returncode in codes, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def read(path: Path) -> RunResult:
    return from_document(json.loads(path.read_text(encoding="utf-8")))


def checked(folder: Path, config: str, golden: Wave, new: Wave, code: int) -> RunResult:
    """A golden of one wave, and the check of the other against it, with a report beside it."""
    folder.mkdir(parents=True)
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    run_wave(folder / "out", golden)
    ciwrap(folder, "accept")
    run_wave(folder / "out", new)
    ciwrap(folder, "check", "--json", "result.json", "--report", "report.html", codes=(code,))
    return read(folder / "result.json")


DATA = """\
version: 1
defaults:
  atol: 1e-6
  data_budget_bytes: 8000000
checks:
  wave:
    outputs: out
"""
RESIDUES = DATA.replace("data_budget_bytes: 8000000", "evidence: residues")


def match(folder: Path) -> RunResult:
    return checked(folder, RESIDUES, Wave(), Wave(noise=5e-8, seed=2), 0)


def planted(folder: Path) -> RunResult:
    """Small noise, and the planted defect; the golden keeps its data."""
    return checked(folder, DATA, Wave(), Wave(seed=2, has_defect=True), 1)


def planted_residues(folder: Path) -> RunResult:
    """The same defect, judged by residues alone."""
    return checked(folder, RESIDUES, Wave(), Wave(seed=2, has_defect=True), 1)


def field(folder: Path) -> RunResult:
    """Three 3-d fields of which one is off: a blob in the middle of the temperature."""
    random = np.random.default_rng(3)
    shape = (24, 40, 64)
    z, y, x = np.meshgrid(*(np.linspace(0, 1, n) for n in shape), indexing="ij")
    fields = {
        "temperature": 290 + 12 * np.sin(3 * x) * np.cos(4 * y) - 30 * z,
        "pressure": 1.0e5 * np.exp(-z) + 30 * np.sin(9 * x * y),
        "humidity": np.clip(0.6 - z + 0.1 * np.sin(14 * x), 0, 1).astype(np.float32),
    }
    for side in ("golden", "new"):
        (folder / side).mkdir(parents=True)
        for name, values in fields.items():
            scale = np.float64(1e-9 * np.abs(values).max())
            moved = values + scale * random.uniform(-1, 1, values.shape)
            if side == "new" and name == "temperature":
                moved = moved + 0.4 * np.exp(
                    -90 * ((x - 0.62) ** 2 + (y - 0.35) ** 2 + (z - 0.4) ** 2)
                )
            np.save(folder / side / f"{name}.npy", moved.astype(values.dtype))
    ciwrap(
        folder,
        *("compare", "golden", "new", "--rtol", "1e-6", "--atol", "1e-6"),
        *("--json", "result.json", "--report", "report.html"),
        codes=(1,),
    )
    return read(folder / "result.json")


def not_comparable(folder: Path) -> RunResult:
    """What must never pass: another shape and dtype, NaN, a missing variable, a cut file."""
    folder.mkdir(parents=True)
    out = folder / "out"
    out.mkdir()
    (folder / "ciwrap.yaml").write_text(
        "version: 1\ndefaults:\n  atol: 1e-6\nchecks:\n  ocean:\n    outputs: out\n"
        "  ice:\n    outputs: ice\n",
        encoding="utf-8",
    )
    random = np.random.default_rng(4)
    for name in ("salinity", "depth", "speed", "gone", "cut", "calm"):
        np.save(out / f"{name}.npy", random.normal(size=(30, 20)))
    (folder / "ice").mkdir()
    np.save(folder / "ice" / "thickness.npy", random.normal(size=50))
    ciwrap(folder, "accept")
    salinity = np.load(out / "salinity.npy")
    np.save(out / "salinity.npy", salinity[:, :-1])
    np.save(out / "depth.npy", np.load(out / "depth.npy").astype(np.float32))
    speed = np.load(out / "speed.npy")
    speed[4, 5:9] = np.nan
    np.save(out / "speed.npy", speed)
    (out / "gone.npy").unlink()
    whole = (out / "cut.npy").read_bytes()
    (out / "cut.npy").write_bytes(whole[: len(whole) // 2])
    np.save(out / "new_one.npy", np.zeros(3))
    ciwrap(folder, "check", "--json", "result.json", "--report", "report.html", codes=(3,))
    return read(folder / "result.json")


def many(count: int = 10_000, differing: int = 700) -> RunResult:
    """Many checks of one variable each; of the differing ones together 10^8 elements."""
    random = np.random.default_rng(5)
    bound = ErrorBound(1e-6)
    checks = []
    for number in range(count):
        name = f"suite/{number // 100:03d}/case_{number:05d}"
        if number % (count // differing) == 0:
            size = 10**8 // differing
            share = float(10 ** random.uniform(0.1, 6))
            histogram = [0] * 34
            histogram[0], histogram[10], histogram[20] = size, size // 10, size
            variable = VariableResult(
                "result",
                Verdict.DIFFER,
                evidence=Evidence.DATA,
                dtype="<f8",
                shape=(size // 100 * 2, 100),
                bound=bound,
                source_path=f"out/{name}/result.npy",
                element_count=size * 2,
                differing_count=size,
                first_index=(0, 5),
                first_differences=tuple(
                    DifferingElement((0, i), "1.25", "1.5", 0.25, 250000.0) for i in range(10)
                ),
                differing_box=IndexBox((0, 5), (90, 99)),
                chunk_count=600,
                suspect_chunks=500,
                max_abs_difference=share * 1e-6,
                max_abs_index=(3, 4),
                max_bound_share=share,
                max_drift_share=share,
                bound_share_histogram=tuple(histogram),
            )
        else:
            variable = VariableResult(
                "result",
                Verdict.MATCH,
                evidence=Evidence.RESIDUES,
                dtype="<f8",
                shape=(1000,),
                bound=bound,
                source_path=f"out/{name}/result.npy",
                element_count=1000,
                differing_count=0,
                suspect_chunks=0,
                residue_levels=15,
                guaranteed_share=0.875,
                max_drift_share=float(random.integers(0, 8)) / 8,
                drift_histogram=(900, 60, 20, 10, 5, 3, 1, 1),
            )
        checks.append(
            CheckResult(
                name,
                variable.verdict,
                (variable,),
                golden_path=f"golden/{name}.golden",
                seconds=0.01,
            )
        )
    return RunResult(
        Verdict.DIFFER,
        tuple(checks),
        environment={"cpu": "some", "git_commit": "0" * 40},
        ciwrap_version="0.1.0",
        started_at="2026-11-21T12:00:00+00:00",
    )


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x1b[0m\x07",
    "\u202egnp.exe",
    "a\nb\r\n::error::forged",
    "`x` | @someone #1 [a](http://b.example) **bold**",
    "]]><!--&lt;",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 10_000,
    "\ud800",
    "%0A::warning::",
    "' onmouseover='alert(1)",
)


def hostile() -> RunResult:
    """Every text that comes from outside is hostile."""
    from ciwrap.model import CommandOutcome, Message, MessageLevel

    checks = []
    for number, text in enumerate(HOSTILE):
        variables = (
            VariableResult(
                text,
                Verdict.DIFFER,
                iteration=1,
                rank=0,
                evidence=Evidence.DATA,
                dtype="<U9",
                shape=(4,),
                bound=ErrorBound(),
                mask=text,
                source_path=text,
                element_count=4,
                differing_count=1,
                first_index=(0,),
                first_differences=(DifferingElement((0,), text, text),),
            ),
            VariableResult(text + "2", Verdict.NOT_COMPARABLE, reason=text),
        )
        checks.append(
            CheckResult(
                text,
                Verdict.NOT_COMPARABLE,
                variables,
                golden_path=text,
                source_path=text,
                messages=(Message(MessageLevel.ERROR, text, file=text, variable=text),),
                engine=text,
                label=text if number % 2 else None,
                golden_environment={text: text, "cpu": "old"},
                command=CommandOutcome(text, text, 3, 1.0, output_tail=text),
            )
        )
    return RunResult(
        Verdict.NOT_COMPARABLE,
        tuple(checks),
        kind="check",
        messages=tuple(Message(MessageLevel.WARNING, text, file=text) for text in HOSTILE),
        command=CommandOutcome(HOSTILE[0], "/", 1, 1.0, output_tail="\n".join(HOSTILE)),
        environment=dict.fromkeys(HOSTILE, HOSTILE[0]),
        ciwrap_version=HOSTILE[0],
        started_at=HOSTILE[1],
    )
