"""`ciwrap capture-ensemble` and `check-ensemble`: a chaotic program, judged by its statistics."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import Project

if TYPE_CHECKING:
    from pathlib import Path

PLACES, CHECKPOINTS = 40, 40


def tendency(x: np.ndarray, forcing: float) -> np.ndarray:
    around = np.roll(x, -1, axis=0) - np.roll(x, 2, axis=0)
    return around * np.roll(x, 1, axis=0) - x + forcing


def lorenz(runs: int, forcing: float, seed: int) -> np.ndarray:
    """Runs of Lorenz-96 that begin 1e-14 apart; shape (places, runs, checkpoints)."""
    generator = np.random.default_rng(seed)
    x = np.full((PLACES, runs), 8.0)
    x[0] += 0.01
    x *= 1 + 1e-14 * generator.uniform(-1, 1, x.shape)
    states = []
    for step in range(1000 + 10 * CHECKPOINTS):
        a = tendency(x, forcing)
        b = tendency(x + 0.025 * a, forcing)
        c = tendency(x + 0.025 * b, forcing)
        d = tendency(x + 0.05 * c, forcing)
        x = x + 0.05 / 6 * (a + 2 * b + 2 * c + d)
        if step >= 1000 and step % 10 == 9:
            states.append(x)
    return np.stack(states, axis=2)


class Chaotic(Project):
    """A project with members and new runs of a chaotic program, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "ciwrap.yaml").write_text("checks: {air: {outputs: out}}\n")

    def save_runs(self, prefix: str, histories: np.ndarray) -> list[str]:
        names = []
        for number in range(histories.shape[1]):
            path = self.folder / f"{prefix}_{number:02}" / "out"
            path.mkdir(parents=True)
            np.save(path / "x.npy", histories[:, number])
            names.append(path.parent.name)
        return names


@pytest.fixture(scope="session")
def chaotic_once(tmp_path_factory: pytest.TempPathFactory) -> Chaotic:
    project = Chaotic(tmp_path_factory.mktemp("chaotic") / "p")
    members = project.save_runs("member", lorenz(60, 8.0, 1))
    project.save_runs("honest", lorenz(9, 8.0, 2))
    project.save_runs("forced", lorenz(9, 8.4, 3))
    options = ("--features", "mean,std,lag", "--blocks", "8", "--reason", "first")
    outcome = project.run("capture-ensemble", "air", *members, *options)
    assert outcome.code == 0, outcome
    return project


@pytest.fixture
def chaotic(chaotic_once: Chaotic, tmp_path: Path) -> Chaotic:
    project = Chaotic.__new__(Chaotic)
    project.folder = tmp_path / "p"
    shutil.copytree(chaotic_once.folder, project.folder)
    return project


def runs(prefix: str, *numbers: int) -> list[str]:
    return [f"{prefix}_{number:02}" for number in numbers]


def test_an_ensemble_is_small_and_says_what_it_is(chaotic: Chaotic) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    assert path.stat().st_size < 60_000
    document = json.loads(path.read_text())
    assert (document["check"], document["why"], document["rate"]) == ("air", "first", 0.01)
    assert len(document["members"]) == 60
    assert document["features"][:2] == ["x mean, block 1 of 8", "x std, block 1 of 8"]
    assert len(document["features"]) == 24
    array = np.load(chaotic.folder / "member_07/out/x.npy")[5:10]
    assert document["members"][7][3] == pytest.approx(array.mean())  # block 2


@pytest.mark.parametrize("first", [0, 3, 6])
def test_honest_runs_are_consistent_and_another_forcing_is_not(
    chaotic: Chaotic, first: int
) -> None:
    numbers = range(first, first + 3)
    honest = chaotic.run("check-ensemble", "air", *runs("honest", *numbers))
    assert (honest.code, honest.document["verdict"]) == (0, "consistent"), honest
    assert honest.out.startswith("consistent with the ensemble at 1 % (3 new runs, 60 members, p =")
    forced = chaotic.run("check-ensemble", "air", *runs("forced", *numbers))
    assert (forced.code, forced.document["verdict"]) == (1, "inconsistent"), forced
    assert forced.document["p"] <= 0.01
    assert "inconsistent with the ensemble at 1 %" in forced.out
    assert forced.document["shifts"][0]["feature"] in forced.out
    for outcome in (honest, forced):
        assert "match" not in outcome.out
        assert "match" not in json.dumps(outcome.document)


def test_too_few_members_or_runs_say_so(chaotic: Chaotic) -> None:
    one = chaotic.run("check-ensemble", "air", *runs("honest", 0))
    assert (one.code, one.document["verdict"], one.document["more_members"]) == (3, "too_small", 39)
    assert "the ensemble is too small: 1 new run, 60 members cannot tell at 1 %" in one.out
    few = chaotic.run(
        "capture-ensemble", "air", *runs("member", *range(10)), "--replace", "--rate", "0.05"
    )
    assert few.code == 0
    assert few.document["least_runs"] is None
    assert "an ensemble takes 20 members that differ; add 10 more" in few.out
    small = chaotic.run("check-ensemble", "air", *runs("forced", 0, 1, 2))
    assert (small.code, small.document["verdict"], small.document["more_members"]) == (
        3,
        "too_small",
        10,
    )


def test_a_run_that_is_repeated_to_the_bit_counts_once(chaotic: Chaotic) -> None:
    shutil.copytree(chaotic.folder / "honest_00", chaotic.folder / "again_00")
    outcome = chaotic.run("check-ensemble", "air", "honest_00", "again_00")
    assert (outcome.code, outcome.document["runs"]) == (3, 1)
    twice = chaotic.run("capture-ensemble", "air", "honest_00", "again_00", "--replace")
    assert twice.code == 3
    assert "all runs are equal to the bit" in twice.err


def test_an_ensemble_is_replaced_only_if_asked(chaotic: Chaotic) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    before = path.read_bytes()
    members = runs("member", *range(30))
    refused = chaotic.run("capture-ensemble", "air", *members)
    assert refused.code == 2
    assert "there is an ensemble already; --replace replaces it" in refused.err
    assert path.read_bytes() == before
    broken = chaotic.run("capture-ensemble", "air", *members, "nowhere", "--replace")
    assert broken.code == 2
    assert path.read_bytes() == before
    assert chaotic.run("capture-ensemble", "air", *members, "--replace").code == 0
    assert len(json.loads(path.read_text())["members"]) == 30


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace('"rate": 0.01', '"rate": 0.5'), "damaged, or somebody has"),
        (lambda text: text[:-40], "is no ensemble"),
        (lambda text: text.replace('"format": 1', '"format": 9'), "update ciwrap"),
        (None, "there is no ensemble; `ciwrap capture-ensemble` makes one"),
    ],
)
def test_an_ensemble_that_cannot_be_trusted(chaotic: Chaotic, damage: object, words: str) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    if callable(damage):
        path.write_text(damage(path.read_text()))
    else:
        path.unlink()
    outcome = chaotic.run("check-ensemble", "air", *runs("honest", 0, 1, 2))
    assert outcome.code == 3
    assert words in outcome.err
    assert outcome.document["verdict"] == "not_comparable"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("air", "honest_00", "honest_00"), 2, "this run is named twice"),
        (("air", "nowhere"), 2, "there is no such folder of a run"),
        (("water", "honest_00"), 2, "there is no check 'water'"),
        (("air", "strange"), 3, "the run also has y mean, block 1 of 8"),
        (("air", "wild"), 3, "is not finite"),
        (("air", "empty"), 3, "out"),
    ],
)
def test_runs_that_cannot_be_held_against_it(
    chaotic: Chaotic, arguments: tuple[str, ...], code: int, words: str
) -> None:
    for name in ("strange", "wild"):
        shutil.copytree(chaotic.folder / "honest_00", chaotic.folder / name)
    (chaotic.folder / "empty").mkdir()
    np.save(chaotic.folder / "strange/out/y.npy", np.ones(40))
    np.save(chaotic.folder / "wild/out/x.npy", np.full((40, 40), np.nan))
    outcome = chaotic.run("check-ensemble", *arguments)
    assert outcome.code == code, outcome
    assert words in outcome.err


def test_check_says_which_command_an_ensemble_takes(chaotic: Chaotic) -> None:
    shutil.copytree(chaotic.folder / "honest_00/out", chaotic.folder / "out")
    outcome = chaotic.run("check")
    assert outcome.code == 3
    assert "there is an ensemble: `ciwrap check-ensemble air RUN...` takes new runs" in outcome.out


def test_a_feature_that_does_not_exist(chaotic: Chaotic) -> None:
    outcome = chaotic.run("capture-ensemble", "air", "member_00", "--features", "mode", "--replace")
    assert outcome.code == 2
    assert "there is no feature 'mode' (there is: mean, std, lag)" in outcome.err


def test_runs_that_repeat_has_kept(tmp_path: Path) -> None:
    """From a program with a seed to a verdict, with commands alone."""
    project = Chaotic(tmp_path / "p")
    (project.folder / "noise.py").write_text(
        "import os, sys\nimport numpy as np\n"
        "generator = np.random.default_rng(int(sys.argv[1]))\n"
        "os.makedirs('out', exist_ok=True)\n"
        "np.save('out/x.npy', float(sys.argv[2]) * generator.normal(size=500))\n"
    )
    for scale, code in ((1.0, 0), (1.4, 1)):
        command = json.dumps([sys.executable, "noise.py", "{seed}", str(scale)])
        (project.folder / "ciwrap.yaml").write_text(
            f"run: {command}\nchecks: {{air: {{outputs: out}}}}\n"
        )
        count = 24 if code == 0 else 3
        kept = project.run("repeat", "-n", str(count), "--keep", json_too=False)
        assert kept.code == 0, kept
        folders = [f".ciwrap/repeat/run_{number}" for number in range(1, count + 1)]
        if code == 0:
            made = project.run("capture-ensemble", "air", *folders[:21])
            assert made.code == 0, made
            folders = folders[21:]
        outcome = project.run("check-ensemble", "air", *folders)
        assert outcome.code == code, outcome
