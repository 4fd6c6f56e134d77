"""`ciwrap changes` on ensembles: what they look at, and how much they let runs vary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e.test_cli_changes import changes
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = "checks:\n  air: {outputs: out, ensemble: 'new_*'}\n"
FILE = Path("golden/air.ensemble.json")


def save_runs(prefix: str, count: int, seed: int, spread: float = 1.0, mean: float = 0.0) -> None:
    generator = np.random.default_rng(seed)
    for number in range(count):
        folder = Path(f"{prefix}_{number:02}/out")
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", mean + spread * generator.normal() + generator.normal(size=50))


def capture(prefix: str, *more: str) -> None:
    runs = sorted(map(str, Path().glob(f"{prefix}_*")))
    words = ["capture", "--ensemble", "air", *runs, "--replace", "--reason", "A new model", *more]
    assert run(words) == 0


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """With an ensemble of 30 members: features `x mean` and `x std`."""
    monkeypatch.chdir(tmp_path)
    made = GitRepository.make(tmp_path)
    Path(".gitignore").write_text("*/out/\n.ciwrap/\n")
    Path("ciwrap.yaml").write_text(CONFIG)
    save_runs("old", 30, 1)
    capture("old")
    made.commit("base", {})
    return made


def told(**wanted: bool | None) -> dict[str, dict[str, Any]]:
    """The changes by what they are of. wanted: whether each is wider. Beside them no more than by
    how much members vary more, as far as that may be chance.
    """
    found = changes()
    assert [one["check"] for one in found] == ["air"] * len(found)
    if "bound" not in wanted:
        found = [one for one in found if "may be by chance" not in one["text"]]
    assert {one["what"]: one["wider"] for one in found} == wanted
    assert len(found) == len(wanted)
    return {one["what"]: one for one in found}


def test_nothing() -> None:
    assert changes() == []


def test_members_that_are_like_the_old_ones() -> None:
    save_runs("like", 30, 2)
    capture("like")
    one = told(values=False)["values"]
    assert one["text"] == "ensemble replaced: 30 -> 30 members, 0 of them as they were"
    assert one["why"] == "A new model"
    assert one["who"]


def test_members_that_vary_more() -> None:
    """The way to make anything consistent: ten times the spread is told, with its feature."""
    save_runs("loose", 30, 2, spread=10)
    capture("loose")
    (one,) = [found for found in changes() if found["wider"]]
    assert one["what"] == "bound"
    said, _, number = one["text"].removesuffix(" times what it was").rpartition(" ")
    assert said == "standard deviation among members, more than by chance: x mean"
    assert 5 < float(number) < 20


def test_members_elsewhere() -> None:
    save_runs("far", 30, 2, mean=20)
    capture("far")
    texts = [one["text"] for one in changes() if not one["wider"]]
    assert len(texts) == len(changes())
    assert any("their means moved by more than runs vary: x mean " in one for one in texts)


def test_fewer_members() -> None:
    for number in range(20, 30):
        Path(f"old_{number}").rename(f"gone_{number}")
    capture("old")
    found = told(values=False, evidence=True)
    assert "30 -> 20 members, 20 of them as they were" in found["values"]["text"]
    assert found["evidence"]["text"] == "fewer members that differ, so more goes by: 30 -> 20"


def test_a_smaller_rate() -> None:
    capture("old", "--rate", "0.001")
    assert told(values=False, bound=True)["bound"]["text"] == (
        "rate of false alarms: 0.01 -> 0.001"
    )
    capture("old", "--rate", "0.05")
    told(values=False, bound=False)


def test_fewer_statistics() -> None:
    capture("old", "--features", "mean")
    assert told(values=False, evidence=True)["evidence"]["text"] == "statistics: mean, std -> mean"
    capture("old", "--features", "mean,std,lag")
    told(values=False, evidence=False)


def test_blocks(repository: GitRepository) -> None:
    capture("old", "--blocks", "4")
    told(values=False, evidence=False)
    repository.commit("blocks", {})
    capture("old", "--blocks", "2")
    assert told(values=False, evidence=True)["evidence"]["text"] == (
        "blocks of each variable: 4 -> 2"
    )


def test_a_variable_less() -> None:
    for folder in Path().glob("old_*/out"):
        np.save(folder / "y.npy", np.load(folder / "x.npy") * 2)
    capture("old")
    told(values=False)
    GitRepository(Path.cwd()).commit("two variables", {})
    for path in Path().glob("old_*/out/y.npy"):
        path.unlink()
    capture("old")
    one = told(values=False, variable=True)["variable"]
    assert one["text"] == "looked at no more: y mean, y std"


def test_an_ensemble_that_is_gone() -> None:
    FILE.unlink()
    assert told(check=True)["check"]["text"] == "its ensemble is gone"
    Path("ciwrap.yaml").write_text("checks:\n  sea: {outputs: out}\n")
    texts = [one["text"] for one in changes() if one["check"] == "air"]
    assert texts == ["the check is gone"]


def test_an_ensemble_that_is_new() -> None:
    Path("ciwrap.yaml").write_text(CONFIG + "  sea: {outputs: out, ensemble: 'new_*'}\n")
    assert run(["capture", "--ensemble", "sea", *map(str, Path().glob("old_*"))]) == 0
    found = [one for one in changes() if one["what"] == "values"]
    assert [one["text"] for one in found] == ["a first ensemble: 30 members, 2 features each"]


def test_an_ensemble_of_another_platform() -> None:
    capture("old", "--golden-dir", "golden/arm")
    (one,) = changes()
    assert (one["check"], one["what"]) == ("arm/air", "values")


def test_an_ensemble_that_somebody_edited() -> None:
    document = json.loads(FILE.read_text())
    document["rate"] = 1e-9
    FILE.write_text(json.dumps(document))
    assert told(check=False)["check"]["text"] == "its ensemble cannot be read"
    GitRepository(Path.cwd()).commit("edited", {})
    assert changes() == []
    capture("old")
    assert "in the place of one that could not be read" in told(values=None)["values"]["text"]


@pytest.mark.parametrize("members", [0, 1])
def test_an_ensemble_of_next_to_no_members(members: int) -> None:
    """Nobody makes one, but a commit can hold one; its digest is no secret."""
    from msgspec.structs import replace

    from ciwrap.studies.ensemble import read_ensemble, write_ensemble

    golden = read_ensemble(FILE)
    write_ensemble(replace(golden, members=golden.members[:members]), FILE)
    told(values=False, evidence=True)


def test_the_line_is_that_of_the_check() -> None:
    save_runs("loose", 30, 2, spread=10)
    capture("loose")
    assert {(one["file"], one["line"]) for one in changes()} == {("ciwrap.yaml", 2)}
