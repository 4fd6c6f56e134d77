"""Eigenvectors whose signs the library chose otherwise, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciwrap.cli.main import run
from ciwrap.model import VariableSettings
from ciwrap.studies.changes.state import Judged, judgement_changes

KEYS = "    variables: {V: {up_to_sign: columns}}\n"


def save(it: Any) -> None:
    vectors = np.linalg.qr(np.random.default_rng(3).normal(size=(40, 4)))[0]
    it.save("a", "V.npy", vectors)
    it.save("b", "V.npy", vectors * [1, -1, 1, -1] + 1e-9)
    wrong = vectors * [1, -1, 1, -1]
    wrong[7, 1] *= -1
    it.save("c", "V.npy", wrong)
    for side in "abc":
        it.save(side, "w.npy", np.arange(4.0))


def test_a_flipped_vector_is_no_difference(case: Any, capsys: pytest.CaptureFixture[str]) -> None:
    it = case(KEYS)
    save(it)
    found = it.compare(0)
    assert found["V"]["flipped_count"] == 2
    assert found["w"].get("flipped_count") is None
    words = ["--atol", "1e-3", "--up-to-sign", "columns", "--ignore", "w", "-v"]
    assert run(["compare", "a", "b", *words]) == 0
    assert "2 vectors with the other sign" in capsys.readouterr().out
    it.save("b", "w.npy", -np.arange(4.0))
    assert it.compare(1)["w"]["verdict"] == "differ"
    assert run(["compare", "a", "b", "--atol", "1e-3", "--up-to-sign", "columns"]) == 3
    assert "set --up-to-sign none for this variable" in capsys.readouterr().out


def test_against_a_golden(case: Any) -> None:
    it = case(KEYS)
    save(it)
    it.accept("a")
    it.use("b")
    assert it.check(0)["V"]["flipped_count"] == 2
    before = Path("golden/c.golden").read_bytes()
    it.accept("b")  # which matches, so the golden stays
    assert Path("golden/c.golden").read_bytes() == before
    it.use("c")
    found = it.check(1)
    assert (found["V"]["differing_count"], found["V"]["first_index"]) == (1, [7, 1])
    listed = ["compare", "a", "c", "--check", "c", "--list", "l.csv"]
    assert run(listed) == 1
    assert len(Path("l.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize("evidence", ["residues", "tree"])
def test_a_golden_without_data(case: Any, evidence: str) -> None:
    it = case(f"    evidence: {evidence}\n")
    save(it)
    it.accept("a")
    case(f"    evidence: {evidence}\n{KEYS}")
    it.use("b")
    assert "which cannot be compared up to its sign" in it.check(3)["V"]["reason"]
    assert run(["accept", "--reason", "x"]) == 3


def test_captures_hold_no_signs(case: Any) -> None:
    """Their trees are of the numbers as they are; the data are compared instead."""
    it = case(KEYS)
    save(it)
    assert run(["capture", "a", "--atol", "1e-3"]) == run(["capture", "b", "--atol", "1e-3"]) == 0
    assert it.compare(0)["V"]["flipped_count"] == 2
    assert run(["compare", "a", "b", "--json", "r.json"]) == 1
    (check,) = json.loads(Path("r.json").read_text())["checks"]
    assert {one["name"]: one["verdict"] for one in check["variables"]}["V"] == "differ"


@pytest.mark.parametrize(
    ("was", "now", "wider"),
    [
        ("none", "whole", True),
        ("none", "rows", True),
        ("whole", "columns", True),
        ("rows", "columns", True),
        ("rows", "whole", False),
        ("columns", "none", False),
    ],
)
def test_more_signs_that_may_be_others_are_less_checked(was: str, now: str, wider: bool) -> None:
    old, new = (
        Judged("exact", "exact", "data", VariableSettings(up_to_sign=one)) for one in (was, now)
    )
    assert list(judgement_changes(old, new)) == [("bound", f"up_to_sign: {was} -> {now}", wider)]
