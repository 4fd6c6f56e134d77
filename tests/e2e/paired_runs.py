"""Two runs of a few arrays each, and the particles that alignment is tested with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


BOX = 10.0
ATOL = 1e-3


class Case:
    """Two runs `a` and `b` in a folder, and a check over whichever is in `out`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
        self.folder = folder
        monkeypatch.chdir(folder)
        (folder / "ciwrap.yaml").write_text(
            f"version: 1\ndefaults: {{atol: {ATOL}}}\nchecks:\n  c:\n    outputs: out\n{keys}"
        )

    def save(self, run_name: str, path: str, array: Any) -> None:
        target = self.folder / run_name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, array)

    def compare(self, code: int) -> dict[str, Any]:
        return self._run(code, "compare", "a", "b", "--check", "c")

    def check(self, code: int) -> dict[str, Any]:
        return self._run(code, "check")

    def accept(self, run_name: str, code: int = 0) -> None:
        self.use(run_name)
        assert run(["accept", "--reason", "test"]) == code

    def use(self, run_name: str) -> None:
        out = self.folder / "out"
        if out.is_symlink():
            out.unlink()
        out.symlink_to(self.folder / run_name)

    def _run(self, code: int, *arguments: str) -> dict[str, Any]:
        found = run([*arguments, "--json", "result.json"])
        document = json.loads((self.folder / "result.json").read_text())
        assert found == code, document
        variables: list[dict[str, Any]] = document["checks"][0]["variables"]
        self.messages = [message["text"] for message in document["checks"][0]["messages"]]
        return {
            " / ".join(str(v[k]) for k in ("iteration", "rank", "name") if v.get(k) is not None): v
            for v in variables
        }


def particles(seed: int, count: int = 500) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "id": draw.permutation(count).astype("<i8") * 7,
        "x": draw.uniform(0, BOX, (count, 3)),
        "mass": draw.normal(size=count).astype("<f4"),
        "hit": draw.integers(0, 9, count).astype("<i4"),
    }


def shuffled(rows: dict[str, Any], seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(rows["id"].size)
    return {name: array[order] for name, array in rows.items()}


def save_ranks(case: Case, run_name: str, rows: dict[str, Any], ranks: int, step: int = 5) -> None:
    """Rows dealt out to ranks by where the particles are, as domain decomposition does."""
    owner = (rows["x"][:, 0] / BOX * ranks).astype(int).clip(0, ranks - 1)
    for rank in range(ranks):
        for name, array in rows.items():
            case.save(run_name, f"iter_{step:04d}/rank_{rank}/{name}.npy", array[owner == rank])


def wrapped(golden: Any, new: Any) -> Any:
    raw = np.abs(new - golden)
    return np.minimum(raw, BOX - raw)
