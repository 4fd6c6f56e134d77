"""`ciwrap capture --ensemble`, and `check` of an ensemble: a chaotic program by its statistics."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest
from e2e.cli_project import Outcome, Project
from msgspec.structs import replace

from ciwrap.golden.places import escape_name
from ciwrap.studies.ensemble import read_ensemble, write_ensemble

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
        self.configure_runs("new_*")

    def configure_runs(self, *globs: str) -> None:
        text = json.dumps({"checks": {"air": {"outputs": "out", "ensemble": globs}}})
        (self.folder / "ciwrap.yaml").write_text(f"{text}\n")

    def judge(self, *folders: str, command: tuple[str, ...] = ("check",)) -> Outcome:
        """Checks these runs, and no others."""
        self.configure_runs(*folders)
        return self.run(*command)

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
    outcome = project.run("capture", "--ensemble", "air", *members, *options)
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


def facts(outcome: Outcome) -> dict:
    return outcome.document["checks"][0]["ensemble"]


@pytest.mark.parametrize("first", [0, 3, 6])
def test_honest_runs_are_consistent_and_another_forcing_is_not(
    chaotic: Chaotic, first: int
) -> None:
    numbers = range(first, first + 3)
    honest = chaotic.judge(*runs("honest", *numbers))
    assert (honest.code, honest.document["verdict"]) == (0, "consistent"), honest
    assert honest.out.startswith(
        "consistent  1 check\n  consistent  air  (golden/air.ensemble.json)"
    )
    assert "3 new runs are consistent with the ensemble at 1 % (60 members, 24 features, p =" in (
        honest.out
    )
    forced = chaotic.judge("forced_*", command=("check", "air"))
    assert facts(forced)["runs"] == 9
    forced = chaotic.judge(*runs("forced", *numbers))
    assert (forced.code, forced.document["verdict"]) == (1, "inconsistent"), forced
    assert facts(forced)["p"] <= 0.01
    assert "are inconsistent with the ensemble at 1 % (60 members, 24 features, p = " in forced.out
    assert facts(forced)["shifts"][0]["feature"] in forced.out
    assert "accept" not in forced.out
    for outcome in (honest, forced):
        assert "match" not in outcome.out
        said = json.dumps({**outcome.document, "verdict_counts": None})
        assert '"match"' not in said


def test_too_few_members_or_runs_say_so(chaotic: Chaotic) -> None:
    one = chaotic.judge("honest_00")
    assert (one.code, one.document["verdict"]) == (3, "not_comparable")
    assert facts(one)["more_members"] == 39
    assert "p" not in facts(one)
    assert "the ensemble is too small: 1 new run and 60 members cannot tell at 1 %" in one.out
    few = chaotic.run(
        "capture", "--ensemble", "air", *runs("member", *range(10)), "--replace", "--rate", "0.05"
    )
    assert few.code == 0
    assert few.document["least_runs"] is None
    assert "an ensemble takes 20 members that differ; add 10 more" in few.out
    small = chaotic.judge(*runs("forced", 0, 1, 2))
    assert (small.code, facts(small)["more_members"]) == (3, 10)


def test_a_run_that_is_repeated_to_the_bit_counts_once(chaotic: Chaotic) -> None:
    shutil.copytree(chaotic.folder / "honest_00", chaotic.folder / "again_00")
    outcome = chaotic.judge("honest_00", "again_00")
    assert (outcome.code, facts(outcome)["runs"]) == (3, 1)
    assert "2 runs have the same features; equal ones count once" in outcome.out
    twice = chaotic.run("capture", "--ensemble", "air", "honest_00", "again_00", "--replace")
    assert twice.code == 3
    assert "all runs have the same features" in twice.err


def test_rare_alarms_and_chances_are_told_as_they_are(chaotic: Chaotic) -> None:
    """One in ten thousand is neither `< 0.1 %`, nor is a p of 1e-5 nothing."""
    members = runs("member", *range(60))
    options = ("--features", "mean", "--rate", "0.0001", "--replace")
    made = chaotic.run("capture", "--ensemble", "air", *members, *options)
    assert "(false alarms: 0.01 %)" in made.out
    for run in runs("forced", *range(9)):
        path = chaotic.folder / run / "out/x.npy"
        np.save(path, np.load(path) + 9)
    outcome = chaotic.judge(*runs("forced", *range(9)))
    assert outcome.code == 1, outcome
    assert "inconsistent with the ensemble at 0.01 % (60 members, 1 feature, p = 1e-5)" in (
        " ".join(outcome.out.split())
    )


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.7e308])
def test_a_run_with_what_has_no_mean_is_told_in_one_line(chaotic: Chaotic, value: float) -> None:
    path = chaotic.folder / "honest_00/out/x.npy"
    x = np.load(path)
    x[:2, :2] = value
    np.save(path, x)
    outcome = chaotic.judge(*runs("honest", 0, 1, 2))
    assert outcome.code == 3
    assert "is not finite" in outcome.out
    assert "Warning" not in outcome.err


def test_an_ensemble_is_replaced_only_if_asked(chaotic: Chaotic) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    before = path.read_bytes()
    members = runs("member", *range(30))
    refused = chaotic.run("capture", "--ensemble", "air", *members)
    assert refused.code == 2
    assert "there is an ensemble already; --replace replaces it" in refused.err
    assert path.read_bytes() == before
    broken = chaotic.run("capture", "--ensemble", "air", *members, "nowhere", "--replace")
    assert broken.code == 2
    assert path.read_bytes() == before
    assert chaotic.run("capture", "--ensemble", "air", *members, "--replace").code == 0
    assert len(json.loads(path.read_text())["members"]) == 30


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace('"rate": 0.01', '"rate": 0.5'), "damaged, or somebody has"),
        (lambda text: text[:-40], "is not an ensemble"),
        (lambda _: "version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (lambda text: text.replace('"format": 1', '"format": 9'), "update ciwrap"),
        (lambda text: text.replace('"check": "air"', '"check": "sea"'), "damaged, or somebody has"),
        (None, "there is no ensemble; `ciwrap capture --ensemble` makes one"),
    ],
)
def test_an_ensemble_that_cannot_be_trusted(chaotic: Chaotic, damage: object, words: str) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    if callable(damage):
        path.write_text(damage(path.read_text()))
    else:
        path.unlink()
    outcome = chaotic.judge(*runs("honest", 0, 1, 2))
    assert outcome.code == 3
    assert words in outcome.out
    assert outcome.document["verdict"] == "not_comparable"


def test_the_ensemble_of_another_check_is_none(chaotic: Chaotic) -> None:
    path = chaotic.folder / "golden/air.ensemble.json"
    path.rename(path.with_name("sea.ensemble.json"))
    text = json.dumps({"checks": {"sea": {"outputs": "out", "ensemble": "honest_*"}}})
    (chaotic.folder / "ciwrap.yaml").write_text(text)
    outcome = chaotic.run("check")
    assert outcome.code == 3
    assert "it is the ensemble of check 'air'" in outcome.out


@pytest.mark.parametrize(
    ("folders", "code", "words"),
    [
        (("honest_00", "./honest_00"), 2, "this run is named twice"),
        (("nowhere_*",), 3, "there are no runs: no folder is called nowhere_*"),
        (("strange",), 3, "the run also has y mean, block 1 of 8"),
        (("wild",), 3, "is not finite"),
        (("honest_*", "empty"), 3, "out: does not exist"),
    ],
)
def test_runs_that_cannot_be_held_against_it(
    chaotic: Chaotic, folders: tuple[str, ...], code: int, words: str
) -> None:
    for name in ("strange", "wild"):
        shutil.copytree(chaotic.folder / "honest_00", chaotic.folder / name)
    (chaotic.folder / "empty").mkdir()
    np.save(chaotic.folder / "strange/out/y.npy", np.ones(40))
    np.save(chaotic.folder / "wild/out/x.npy", np.full((40, 40), np.nan))
    outcome = chaotic.judge(*folders)
    assert outcome.code == code, outcome
    assert words in outcome.err + outcome.out
    assert outcome.document["verdict"] == "not_comparable"


def test_a_check_that_names_no_runs_is_told_how_to(chaotic: Chaotic) -> None:
    shutil.copytree(chaotic.folder / "honest_00/out", chaotic.folder / "out")
    (chaotic.folder / "ciwrap.yaml").write_text("checks: {air: {outputs: out}}\n")
    outcome = chaotic.run("check")
    assert outcome.code == 3
    assert "name the folders of new runs under 'ensemble' in ciwrap.yaml" in outcome.out


def test_ensembles_that_no_check_uses_are_told_of_and_pruned(tmp_path: Path) -> None:
    """Also with a name so long that its file's is shortened."""
    project = Project(tmp_path / "p")
    long = "x" * 300
    golden = project.folder / "golden"
    golden.mkdir()
    names = {"gone": "gone", "mesh": "mesh", "long": escape_name(long)}
    files = {name: golden / f"{stem}.ensemble.json" for name, stem in names.items()}
    for path in files.values():
        path.write_text("{}")
    kept = json.dumps({"outputs": "out", "ensemble": "r*"})
    (project.folder / "ciwrap.yaml").write_text(
        f'checks:\n  mesh: {{outputs: out}}\n  ? "{long}"\n  : {kept}\n'
    )
    told = [one["text"] for one in project.run("check", "mesh").document["messages"]]
    unused, gone = told
    assert unused == "the ensemble of 'mesh' is not used; name its runs by 'ensemble' in the check"
    assert gone == (
        "the ensemble of 'gone' belongs to no check of the configuration; delete it, or fix the"
        " check's name"
    )
    shown = project.run("prune", "--dry-run")
    assert "unused  golden/gone.ensemble.json" in shown.out
    assert files["gone"].exists()
    pruned = project.run("prune", "--yes")
    assert pruned.document["deleted"] == ["golden/gone.ensemble.json"]
    assert not files["gone"].exists()
    assert files["mesh"].exists()
    assert files["long"].exists()


def test_accept_leaves_an_ensemble_alone(chaotic: Chaotic) -> None:
    before = (chaotic.folder / "golden/air.ensemble.json").read_bytes()
    refused = chaotic.judge("forced_*", command=("accept", "air", "--reason", "no"))
    assert refused.code == 2
    assert "is an ensemble, which is captured from many runs; ciwrap capture --ensemble air" in (
        refused.err
    )
    (chaotic.folder / "sea").mkdir()
    np.save(chaotic.folder / "sea/z.npy", np.arange(5.0))
    checks = {"air": {"outputs": "out", "ensemble": "honest_*"}, "sea": {"outputs": "sea"}}
    (chaotic.folder / "ciwrap.yaml").write_text(json.dumps({"checks": checks}))
    assert chaotic.run("accept").code == 0
    both = chaotic.run("check")
    assert (both.code, both.document["verdict"]) == (0, "consistent")
    assert [one["verdict"] for one in both.document["checks"]] == ["consistent", "match"]
    np.save(chaotic.folder / "sea/z.npy", np.arange(5.0) + 1)
    differs = chaotic.run("check", "--pending")
    assert (differs.code, differs.document["verdict"]) == (1, "differ")
    assert "air" not in [path.name for path in (chaotic.folder / ".ciwrap/pending").rglob("*")]
    assert (chaotic.folder / "golden/air.ensemble.json").read_bytes() == before


def test_every_report_tells_of_the_statistics(chaotic: Chaotic) -> None:
    """Page, summary, JUnit, annotations and SARIF of runs that are and are not consistent."""
    for prefix, word in (("honest", "consistent"), ("forced", "inconsistent")):
        outcome = chaotic.judge(f"{prefix}_*", command=("check", "--report", "page.html"))
        (chaotic.folder / "r.json").write_text(json.dumps(outcome.document))
        made = chaotic.run(
            *("report", "r.json", "-o", "again.html", "--markdown", "s.md", "--junit", "j.xml"),
            *("--sarif", "s.sarif", "--annotations"),
            json_too=False,
        )
        is_good = word == "consistent"
        page = (chaotic.folder / "page.html").read_text()
        assert f"<span>{word.capitalize()} with the ensemble</span>" in page
        assert page.count(f"are {word} with the ensemble at 1") == 1
        assert (chaotic.folder / "again.html").read_text().count('class="sb"') == 12
        summary = (chaotic.folder / "s.md").read_text()
        assert f"ciwrap: {word.capitalize()} with the ensemble" in summary
        assert "ciwrap accept" not in summary
        cases = ElementTree.parse(chaotic.folder / "j.xml").getroot()
        counted = (cases.get("tests"), cases.get("failures"), cases.get("errors"))
        assert counted == ("1", "0" if is_good else "1", "0")
        results = json.loads((chaotic.folder / "s.sarif").read_text())["runs"][0]["results"]
        assert [one["ruleId"] for one in results] == ([] if is_good else ["inconsistent"])
        assert made.out.startswith("::notice" if is_good else "::error"), made


def test_run_judges_the_runs_that_its_command_made(tmp_path: Path) -> None:
    """Runs that the command did not write again are of an earlier call, and never judged."""
    project = Chaotic(tmp_path / "p")
    (project.folder / "noise.py").write_text(
        "import os, sys\nimport numpy as np\n"
        "for run in range(int(sys.argv[1])):\n"
        "    os.makedirs(f'new_{run}/out', exist_ok=True)\n"
        "    np.save(f'new_{run}/out/x.npy', np.random.default_rng(run).normal(size=500))\n"
    )

    def configure(count: int) -> None:
        command = [sys.executable, "noise.py", str(count)]
        check = {"outputs": "out", "ensemble": "new_*"}
        text = json.dumps({"run": command, "checks": {"air": check}})
        (project.folder / "ciwrap.yaml").write_text(text)

    configure(30)
    assert project.run("run").code == 3
    made = project.run("capture", "--ensemble", "air")
    assert (made.code, made.document["members"]) == (0, 30), made
    assert project.run("run").document["verdict"] == "consistent"
    configure(5)
    stale = project.run("run")
    assert stale.code == 3
    assert "was not written by this run, but left from an earlier one" in stale.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ensemble", "air"), "which runs?"),
        (("--ensemble", "sea", "honest_00"), "there is no check 'sea'"),
        (("--ensemble", "air", "honest_00", "--residues"), "--residues has no meaning with"),
        (("--ensemble", "air", "honest_00", "--atol", "1"), "--atol has no meaning with"),
        (("honest_00", "--blocks", "2"), "--blocks has no meaning without --ensemble"),
        (("honest_00", "honest_01"), "capture takes one run; --ensemble takes many"),
        ((), "capture takes one run"),
    ],
)
def test_captures_that_make_no_sense(
    chaotic: Chaotic, arguments: tuple[str, ...], words: str
) -> None:
    (chaotic.folder / "ciwrap.yaml").write_text("checks: {air: {outputs: out}}\n")
    (chaotic.folder / "golden/air.ensemble.json").unlink()
    outcome = chaotic.run("capture", *arguments)
    assert outcome.code == 2, outcome
    assert words in outcome.err


def test_no_ensemble_is_made_of_runs_that_are_not_there(chaotic: Chaotic) -> None:
    """As `ciwrap check` says it."""
    chaotic.configure_runs("old_*")
    outcome = chaotic.run("capture", "--ensemble", "air", "--replace")
    assert outcome.code == 3
    words = "there are no runs: no folder is called old_*; have the program make them, or fix"
    assert words in outcome.err
    assert words in chaotic.run("check").out


def test_a_feature_that_does_not_exist(chaotic: Chaotic) -> None:
    outcome = chaotic.run(
        "capture", "--ensemble", "air", "member_00", "--features", "mode", "--replace"
    )
    assert outcome.code == 2
    assert "there is no feature 'mode' (known: mean, std, lag)" in outcome.err


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
            f"run: {command}\nchecks: {{air: {{outputs: out, ensemble: .ciwrap/repeat/run_*}}}}\n"
        )
        count = 24 if code == 0 else 3
        kept = project.run(
            "repeat", "-n", str(count), "--seed", str(count), "--keep", json_too=False
        )
        assert kept.code == 0, kept
        folders = [f".ciwrap/repeat/run_{number}" for number in range(1, count + 1)]
        if code == 0:
            made = project.run("capture", "--ensemble", "air", *folders[:21])
            assert made.code == 0, made
            for folder in folders[:21]:
                shutil.rmtree(project.folder / folder)
        outcome = project.run("check")
        assert (outcome.code, facts(outcome)["runs"]) == (code, 3), outcome


def test_values_that_a_check_states_are_not_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "ciwrap.yaml").write_text(
        "checks:\n  heat:\n    format: log\n    outputs: o.txt\n    ensemble: ['new_*']\n"
        '    values: {e: "E {e}", n: {match: "N {n}", expect: 3}}\n'
    )
    (folder / "new_1").mkdir()
    (folder / "new_1/o.txt").write_text("E 1\nN 4\n")
    project = Project.__new__(Project)
    project.folder = folder
    outcome = project.run("capture", "--ensemble", "heat", "new_1", json_too=False)
    assert outcome.code == 2
    assert "of which statistics say nothing" in outcome.err


def test_a_run_that_ended_early_is_not_consistent(chaotic: Chaotic) -> None:
    """A part of a run has statistics, too, which may be those of the ensemble."""
    for name in runs("honest", 0, 1, 2):
        path = chaotic.folder / name / "out/x.npy"
        np.save(path, np.load(path)[:, : CHECKPOINTS // 2])
    outcome = chaotic.judge(*runs("honest", 0, 1, 2))
    assert (outcome.code, outcome.document["verdict"]) == (3, "not_comparable"), outcome
    assert "the run has 800 numbers of x in all, and every member 1,600" in outcome.out
    # An ensemble that was made before this was kept says nothing of it.
    path = chaotic.folder / "golden/air.ensemble.json"
    write_ensemble(replace(read_ensemble(path), numbers=None), path)
    assert '"numbers"' not in path.read_text()
    assert chaotic.judge(*runs("honest", 0, 1, 2)).document["verdict"] != "not_comparable"
    # Nor does one whose members are not of one size.
    members = runs("member", *range(60))
    again = ["capture", "--ensemble", "air", *members, "--replace", "--blocks", "8"]
    short = chaotic.folder / members[0] / "out/x.npy"
    np.save(short, np.load(short)[:, :-1])
    assert chaotic.run(*again).code == 0
    assert chaotic.judge(*runs("honest", 0, 1, 2)).document["verdict"] != "not_comparable"
