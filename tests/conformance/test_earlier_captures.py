"""Captures that were written before chunks had summaries are read and compared as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ciwrap.cli.main import run

CAPTURES = Path(__file__).parent / "earlier" / "captures"


def compared(folder: Path, one: str, other: str, *more: str) -> dict[tuple[str, int], Any]:
    target = folder / "r.json"
    sides = [str(CAPTURES / f"{name}.tree") for name in (one, other)]
    run(["compare", *sides, *more, "--json", str(target), "--json-detail", "all"])
    found = json.loads(target.read_text())["checks"][0]["variables"]
    return {(one["name"], one["iteration"]): one for one in found}


def test_they_match_and_do_not_as_they_did(tmp_path: Path) -> None:
    near, far = compared(tmp_path, "one", "near"), compared(tmp_path, "one", "far")
    for iteration in (1, 2):
        assert near["x", iteration]["verdict"] == "match"
        assert far["x", iteration]["verdict"] == "undecided"
        assert (far["x", iteration]["suspect_chunks"], far["x", iteration]["chunk_count"]) == (6, 6)
        assert "least_share" not in far["x", iteration]
        for found in (near, far):
            assert found["count", iteration]["verdict"] == "match"


@pytest.mark.parametrize(("bound", "verdict"), [("1", "match"), ("2e-4", "differ")])
def test_another_bound_is_judged_by_what_they_hold(
    tmp_path: Path, bound: str, verdict: str
) -> None:
    found = compared(tmp_path, "one", "near", "--atol", bound)
    assert {one["verdict"] for (name, _), one in found.items() if name == "x"} <= {
        verdict,
        "undecided",
    }
    if verdict == "match":
        assert {one["verdict"] for one in found.values()} == {"match"}
