"""Small runs to capture and compare, and what plain NumPy says of their difference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from result_schema import validator

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path


ITERATIONS = (5, 10, 20)
RANKS = (0, 1)
NAMES = ("phi", "x")
SHAPE = (40, 50)
ATOL = 1e-4
SMALL = "--chunk-bytes=512"


def path_of(run: Path, iteration: int, rank: int, name: str) -> Path:
    return run / f"iter_{iteration:04d}" / f"rank_{rank}" / f"{name}.npy"


def write_run(run: Path, *, iterations: tuple[int, ...] = ITERATIONS) -> Path:
    for iteration in iterations:
        for rank in RANKS:
            for name in NAMES:
                path = path_of(run, iteration, rank, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                seed = [iteration, rank, len(name)]
                dtype = np.float32 if name == "x" else np.float64
                np.save(path, np.random.default_rng(seed).normal(size=SHAPE).astype(dtype))
    return run


def change(path: Path, *places: tuple[int, ...], by: float = 1.0) -> None:
    array = np.load(path)
    for place in places:
        array[place] += by
    np.save(path, array)


def oracle(a: Path, b: Path, atol: float = ATOL) -> dict[tuple[int, int, str], int]:
    counts = {}
    for iteration in ITERATIONS:
        for rank in RANKS:
            for name in NAMES:
                one = np.load(path_of(a, iteration, rank, name)).astype(np.float64)
                two = np.load(path_of(b, iteration, rank, name)).astype(np.float64)
                counts[iteration, rank, name] = int((~(np.abs(one - two) <= atol)).sum())
    return counts


def ciwrap(tmp_path: Path, *arguments: object) -> tuple[int, Any]:
    target = tmp_path / "result.json"
    target.unlink(missing_ok=True)
    code = run_cli([*map(str, arguments), "--json", str(target)])
    document = json.loads(target.read_text()) if target.exists() else None
    if document is not None and document["kind"] != "capture":
        validator().validate(document)
    return code, document


def counts_in(document: Any) -> dict[tuple[int, int, str], int]:
    return {
        (one["iteration"], one["rank"], one["name"]): one["differing_count"]
        for one in document["checks"][0]["variables"]
    }


def capture(tmp_path: Path, run: Path, *more: object, code: int = 0) -> Any:
    found, document = ciwrap(tmp_path, "capture", run, SMALL, "--settle=0", *more)
    assert found == code, document
    return document
