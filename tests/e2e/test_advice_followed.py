"""A line of configuration that a check advises makes the check pass, if it is taken literally."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from advice import bound_with, remedies
from e2e.cli_project import Project
from hypothesis import given, settings
from hypothesis import strategies as st

ELEMENTS = 700


def values_of(kind: str, seed: int, dtype: str) -> Any:
    random = np.random.default_rng(seed)
    numbers = {
        "smooth": lambda: np.sin(np.linspace(0, 7, ELEMENTS)),
        "noise": lambda: random.normal(size=ELEMENTS),
        "decades": lambda: np.exp(random.normal(size=ELEMENTS) * 6),
        "large": lambda: 1e6 + random.normal(size=ELEMENTS),
        "near zero": lambda: np.where(np.arange(ELEMENTS) % 7, 1e3 + np.arange(ELEMENTS), 1e-13),
        "angles": lambda: random.uniform(0, 360, size=ELEMENTS),
    }[kind]()
    if dtype.startswith("complex"):
        numbers = numbers * (1 - 0.5j)
    return numbers.astype(dtype)


def changed(golden: Any, how: str, size: float, seed: int) -> Any:
    random = np.random.default_rng(seed + 1)
    wide = golden.astype("c16" if golden.dtype.kind == "c" else "f8")
    noise = random.normal(size=golden.size)
    new = {
        "noise": lambda: wide + size * noise,
        "relative": lambda: wide * (1 + size * noise),
        "few": lambda: wide + size * np.where(np.arange(golden.size) % 97 == 5, noise, 0),
        "offset": lambda: wide + size,
        "rounded": lambda: golden.astype("c8" if golden.dtype.kind == "c" else "f4"),
        "turned": lambda: wide + 360 * (noise > 1),
        "lost": lambda: np.where(noise > 1, -9999, wide),
    }[how]()
    return new.astype(golden.dtype)


def check_advice(folder: Path, golden: dict[str, Any], new: dict[str, Any], bound: str) -> int:
    """How many lines were advised; each alone makes its variable match."""
    project = Project(folder / "project")
    for path in (project.folder / "out").iterdir():
        path.unlink()
    project.configure(bound=bound)
    for name, array in golden.items():
        project.save(name, array)
    project.accept()
    for name, array in new.items():
        project.save(name, array)
    advised = remedies(project.run("check").document)
    for name, lines in advised.items():
        for line in lines:
            rule = yaml.safe_dump({name: bound_with(bound, line)}, default_flow_style=True)
            project.configure(f"    variables: {rule}", bound=bound)
            verdicts = {
                one["verdict"]
                for one in project.run("check").document["checks"][0]["variables"]
                if one["name"] == name
            }
            assert verdicts == {"match"}, (name, line, bound)
    return sum(map(len, advised.values()))


@pytest.mark.parametrize("evidence", ["data", "residues"])
@given(
    kind=st.sampled_from(["smooth", "noise", "decades", "large", "near zero", "angles"]),
    how=st.sampled_from(["noise", "relative", "few", "offset", "rounded", "turned", "lost"]),
    is_found=st.booleans(),
    dtype=st.sampled_from(["float64", "float32", "float16", "complex128", "complex64"]),
    bound=st.sampled_from(
        ["atol: 0", "atol: 1e-9", "rtol: 1e-9", "atol: 1e-12, rtol: 1e-6", "atol: 1e-3", "ulps: 2"]
    ),
    exponent=st.integers(-14, 0),
    checkpoints=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
@settings(max_examples=12)
def test_taken_literally_it_matches(
    evidence: str,
    kind: str,
    how: str,
    dtype: str,
    bound: str,
    exponent: int,
    is_found: bool,
    checkpoints: int,
    seed: int,
) -> None:
    golden = {}
    new = {}
    for at in range(checkpoints):
        name = f"x_{at:04d}"
        with np.errstate(over="ignore"):
            golden[name] = values_of(kind, seed + at, dtype)
        new[name] = changed(golden[name], how, 10.0**exponent * (at + 1), seed + at)
    if is_found:  # what was lost is there now
        golden, new = new, golden
    with tempfile.TemporaryDirectory() as folder:
        check_advice(Path(folder), golden, new, f"{bound}, evidence: {evidence}")


@pytest.mark.parametrize("evidence", ["data", "residues"])
def test_no_fill_value_is_offered_that_one_side_alone_holds(tmp_path: Path, evidence: str) -> None:
    numbers = values_of("smooth", 3, "float64")
    lost = changed(numbers, "lost", 0.0, 3)
    for at, (golden, new) in enumerate(((numbers, lost), (lost, numbers))):
        bound = f"atol: 1e-9, evidence: {evidence}"
        assert check_advice(tmp_path / str(at), {"x": golden}, {"x": new}, bound) == 0


@pytest.mark.parametrize(
    ("kind", "how", "bound"),
    [
        ("noise", "noise", "atol: 1e-9"),
        ("noise", "noise", "atol: 1e-9, rtol: 1e-9"),
        ("near zero", "noise", "rtol: 1e-6"),
        ("noise", "rounded", "atol: 0"),
        ("angles", "turned", "atol: 1e-6"),
    ],
)
def test_there_is_advice_to_follow(tmp_path: Path, kind: str, how: str, bound: str) -> None:
    golden = {"x": values_of(kind, 3, "float64")}
    new = {"x": changed(golden["x"], how, 1e-8, 3)}
    assert check_advice(tmp_path, golden, new, bound)
