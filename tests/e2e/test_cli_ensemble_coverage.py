"""What checks of ensembles leave out: counted as not compared in every output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import Outcome, Project

from ciwrap.studies.ensemble import read_ensemble

if TYPE_CHECKING:
    from pathlib import Path


def facts(outcome: Outcome) -> dict:
    return outcome.document["checks"][0]["ensemble"]


class Numbered(Project):
    """A project of many small runs, each with a variable of random numbers and others besides."""

    def __init__(self, folder: Path, others: str = "") -> None:
        folder.mkdir()
        self.folder = folder
        self.others = others
        self.name_runs("new_*")

    def name_runs(self, glob: str) -> None:
        text = f'checks: {{air: {{outputs: out, ensemble: "{glob}"{self.others}}}}}\n'
        (self.folder / "ciwrap.yaml").write_text(text)

    def make_runs(self, prefix: str, count: int, **others: object) -> list[str]:
        generator = np.random.default_rng(len(prefix))
        for number in range(count):
            out = self.folder / f"{prefix}_{number:02}" / "out"
            out.mkdir(parents=True)
            np.save(out / "x.npy", generator.normal(size=500))
            for name, values in others.items():
                np.save(out / f"{name}.npy", values(generator) if callable(values) else values)
        return [f"{prefix}_{number:02}" for number in range(count)]

    def capture(self, *members: str) -> Outcome:
        return self.run("capture", "--ensemble", "air", *members)


@pytest.mark.parametrize("values", [np.ones(3, bool), np.array(["a", "b"]), np.empty(0)])
def test_what_has_no_statistics_is_counted_and_said_everywhere(
    tmp_path: Path, values: np.ndarray
) -> None:
    project = Numbered(tmp_path / "p", ", ignore: [gone]")
    made = project.capture(*project.make_runs("member", 30, flags=values, gone=np.ones(2)))
    assert made.document["without_statistics"] == ["flags"]
    assert "not taken, since it has no statistics: flags" in " ".join(made.out.split())
    project.make_runs("new", 3, flags=values, gone=np.ones(2))
    outcome = project.run("check", "--report", "page.html")
    assert outcome.document["verdict"] == "consistent", outcome
    said = "not compared: 1 variable (ignore), 1 variable without statistics"
    assert said in outcome.out
    coverage = outcome.document["checks"][0]["coverage"]
    assert (coverage["without_statistics"], coverage["ignored"]) == (1, 1)
    assert coverage["text"].endswith(said)
    assert facts(outcome)["without_statistics"] == [{"name": "flags"}]
    assert "1 variable without statistics" in (project.folder / "page.html").read_text()


def test_runs_with_another_set_of_variables_without_statistics_are_not_comparable(
    tmp_path: Path,
) -> None:
    project = Numbered(tmp_path / "p")
    assert project.capture(*project.make_runs("member", 30, flags=np.ones(3, bool))).code == 0
    project.make_runs("new", 3, flags=np.ones(3, bool), words=np.array(["a"]))
    more = project.run("check")
    assert (more.code, more.document["verdict"]) == (3, "not_comparable"), more
    assert "the run also has words" in more.out
    project.make_runs("bare", 3)
    project.name_runs("bare_*")
    fewer = project.run("check")
    assert fewer.code == 3
    assert "the run lacks flags" in fewer.out


def test_checkpoints_that_are_left_out_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    project = Project.__new__(Project)
    project.folder = folder
    outputs = "out/iter_{iteration:d}/{name}.npy"
    (folder / "ciwrap.yaml").write_text(
        f'checks: {{air: {{outputs: "{outputs}", ensemble: "new_*"}}}}\n'
    )
    generator = np.random.default_rng(5)
    for run in [*(f"m_{number}" for number in range(30)), "new_1", "new_2", "new_3"]:
        for iteration in (1, 2, 3):
            path = folder / run / f"out/iter_{iteration}/x.npy"
            path.parent.mkdir(parents=True)
            np.save(path, generator.normal(size=50))
    members = [f"m_{number}" for number in range(30)]
    assert project.run("capture", "--ensemble", "air", *members, "--from-iteration", "2").code == 0
    outcome = project.run("check")
    assert outcome.code == 0, outcome
    assert "not compared: 1 array of iterations left out" in outcome.out


def test_masked_elements_and_fill_values_have_no_part_in_statistics(tmp_path: Path) -> None:
    """A fill value of 1e36 would swallow all else of a mean."""
    mask = np.arange(500) < 100

    def with_fill(one: np.random.Generator) -> np.ndarray:
        return np.where(mask, 1e36, one.normal(size=500))

    others = ", variables: {h: {mask: dry}, t: {fill_values: [1.0e36]}}"
    project = Numbered(tmp_path / "p", others)
    members = project.make_runs("member", 30, h=with_fill, dry=mask, t=with_fill)
    assert project.capture(*members).code == 0
    golden = read_ensemble(project.folder / "golden/air.ensemble.json")
    assert golden.numbers == {"h": 400, "t": 400, "x": 500}
    kept = np.load(project.folder / "member_03/out/t.npy")[~mask]
    at = golden.features.index("t mean")
    assert golden.members[3][at] == pytest.approx(kept.mean())
    project.make_runs("new", 3, h=with_fill, dry=mask, t=with_fill)
    outcome = project.run("check")
    assert outcome.code == 0, outcome
    assert "300 values masked, fill values of 1 variable" in outcome.out


def test_integers_beyond_doubles_are_told_of(tmp_path: Path) -> None:
    project = Numbered(tmp_path / "p")

    def large(one: np.random.Generator) -> np.ndarray:
        return (1 << 60) + one.integers(0, 9, 50)

    made = project.capture(*project.make_runs("member", 30, n=large))
    words = "n has integers beyond 2^53, of which statistics see no difference of their last digits"
    assert words in " ".join(made.out.split())
    assert made.document["rounded"] == ["n"]
    project.make_runs("new", 3, n=large)
    outcome = project.run("check")
    assert words in " ".join(outcome.out.split())
    for folder in project.folder.glob("member_*"):
        (folder / "out/x.npy").unlink()
    alone = project.run("capture", "--ensemble", "air", "member_00", "member_01", "--replace")
    assert alone.code == 3
    assert words in alone.err
