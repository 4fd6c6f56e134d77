"""Small files, which are read as they are opened, have the results that the stream has.

Runs of random arrays are compared twice: as they are, and with every file taken for a large one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiers import examples

from ciwrap.cli.main import run
from ciwrap.formats import npy
from ciwrap.runs.questions import ElementStage

if TYPE_CHECKING:
    from numpy.typing import NDArray

DTYPES = ("<f8", ">f8", "<f4", "<f2", "<c16", "<i8", ">i2", "|u1", "|b1", "|S5", "<U3")
# What only one of the two ways says: how it read, and when.
_OF_READING = ("engine", "seconds", "bytes_read", "started_at")


def array(random: np.random.Generator, dtype: np.dtype[Any]) -> NDArray[Any]:
    shape = tuple(random.integers(0, 6, random.integers(0, 4)).tolist())
    if random.random() < 0.1:
        shape = (int(random.integers(1, 3000)),)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind in "SU":
        return np.array(random.integers(0, 3, count).astype(str), dtype).reshape(shape)
    values = random.integers(-3, 4, count) * random.choice([1.0, 1e-3, 1e6])
    values = np.abs(values) if dtype.kind in "ub" else values
    if dtype.kind in "fc":
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
        values = np.where(random.random(count) < 0.2, random.choice(odd, count), values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype).reshape(shape)


def changed(random: np.random.Generator, values: NDArray[Any]) -> NDArray[Any]:
    """The other run's values: the same, within a bound or not, of another shape or type."""
    way = random.integers(0, 6)
    found = values.copy()
    flat = found.reshape(-1)
    if way == 1 and flat.size:
        flat[random.integers(flat.size)] = flat[random.integers(flat.size)]
    if way == 2 and found.dtype.kind in "fc":
        flat += random.choice([1e-9, 1e-7, 1e-5, 1e-2], flat.size)
    if way == 3 and found.dtype.kind == "f":
        return found.astype(found.dtype.newbyteorder())
    if way == 4 and flat.size:
        return np.append(flat, flat[:1])
    if way == 5 and flat.size:
        return flat[::-1].reshape(found.shape).copy(order="F")
    return found


def write_runs(folder: Path, random: np.random.Generator) -> None:
    for iteration in range(int(random.integers(1, 4))):
        places = [folder / run / f"iter_{iteration}" for run in "AB"]
        for place in places:
            place.mkdir(parents=True)
        for name in "abcd"[: random.integers(1, 5)]:
            values = array(random, np.dtype(random.choice(DTYPES)))
            for place, some in zip(places, (values, changed(random, values)), strict=True):
                if name == "a" or random.random() < 0.95:
                    np.save(place / f"{name}.npy", some)


def document(words: list[str]) -> tuple[int, Any]:
    """The exit code and the results, but for what tells how files were read."""
    Path("r.json").unlink(missing_ok=True)
    code = run(["compare", "A", "B", *words, "--json", "r.json", "--json-detail", "all"])
    text = Path("r.json").read_text() if Path("r.json").exists() else "null"
    return code, without(json.loads(text), _OF_READING)


def without(found: Any, names: tuple[str, ...]) -> Any:
    if isinstance(found, dict):
        return {key: without(found[key], names) for key in found if key not in names}
    return [without(one, names) for one in found] if isinstance(found, list) else found


BOUNDS = (
    [],
    ["--atol", "1e-6"],
    ["--rtol", "1e-3", "--atol", "1e-8"],
    ["--ulps", "2"],
    ["--atol", "1e-6", "--no-equal-nan"],
)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_results_are_those_of_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    write_runs(tmp_path, random)
    monkeypatch.chdir(tmp_path)
    words = BOUNDS[seed % len(BOUNDS)]
    listed = ["--list", "list.csv"] if seed % 2 else []
    held = document([*words, *listed])
    rows = Path("list.csv").read_text() if listed else ""
    monkeypatch.setattr(npy, "_HELD_BYTES", -1)
    assert held == document([*words, *listed])
    assert held[1] is not None
    assert not listed or sorted(rows.split()) == sorted(Path("list.csv").read_text().split())


@pytest.mark.parametrize("side", "AB")
def test_a_file_written_after_it_was_read_matches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "AB":
        Path(name).mkdir()
        for variable in "xy":
            np.save(Path(name, f"{variable}.npy"), np.arange(100.0))
    compare_held = ElementStage._compare_held

    def write_first(*arguments: Any) -> None:
        np.save(Path(side, "x.npy"), np.arange(1.0, 101.0))
        compare_held(*arguments)

    monkeypatch.setattr(ElementStage, "_compare_held", write_first)
    code, found = document([])
    assert code not in (0, 1)
    reasons = [one["reason"] for one in found["checks"][0]["variables"]]
    assert len(reasons) == 2
    assert all("was written while it was being compared" in reason for reason in reasons)
