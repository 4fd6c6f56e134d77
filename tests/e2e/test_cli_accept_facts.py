"""What a golden tells of its acceptance, and what is accepted at all."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from e2e.cli_project import BASE, Project, manifest_of

from ciwrap.golden.places import LOCK_NAME
from ciwrap.review import accept as accept_goldens

ACTIONS = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "mona",
    "GITHUB_SERVER_URL": "https://forge.example",
    "GITHUB_REPOSITORY": "mona/model",
    "GITHUB_RUN_ID": "7",
}


def test_who_started_the_job_stands_in_the_log(project: Project) -> None:
    assert project.run("accept", "--in-ci", **ACTIONS).code == 0
    (entry,) = manifest_of(project)["accepted"]
    assert entry["actor"] == "mona"
    assert entry["run"] == "https://forge.example/mona/model/actions/runs/7"
    project.save("temperature", BASE + 1)
    assert project.run("accept", "--reason", "by hand", GITHUB_ACTIONS="").code == 0
    *_, entry = manifest_of(project)["accepted"]
    assert not {"actor", "run"} & {key for key, value in entry.items() if value is not None}


def test_what_was_left_out_stands_in_the_golden(project: Project) -> None:
    project.configure("    ignore: [ids]\n")
    project.accept()
    assert manifest_of(project)["ignored"] == ["ids"]


@pytest.mark.parametrize("is_dry", [False, True])
def test_outputs_are_looked_at_under_the_lock(
    project: Project, is_dry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks before would write over what others accept meanwhile; a dry run writes nothing."""
    seen = []
    look = accept_goldens.capture_change

    def looking(*arguments: Any, **more: Any) -> Any:
        seen.append((project.folder / "golden" / LOCK_NAME).exists())
        return look(*arguments, **more)

    monkeypatch.setattr(accept_goldens, "capture_change", looking)
    project.accept(*(["--dry-run"] if is_dry else []))
    assert seen == [not is_dry]


EXPECTED = """\
  log:
    outputs: log.txt
    format: log
    values:
      energy: {match: 'energy = {energy}', expect: 1.5}
"""


def test_a_check_whose_values_the_configuration_knows_needs_no_golden(project: Project) -> None:
    (project.folder / "log.txt").write_text("energy = 1.5\nmass = 2.5\n")
    project.configure(EXPECTED)
    document = project.accept().document
    assert [one["name"] for one in document["checks"]] == ["mesh"]
    assert not (project.folder / "golden/log.golden").exists()
    assert project.run("check").code == 0
    # With one value that it does not know, it does.
    project.configure(EXPECTED + "      mass: {match: 'mass = {mass}'}\n")
    assert project.run("check").code == 3
    project.accept("--reason", "mass, too")
    text = (project.folder / "golden/log.golden.yaml").read_text()
    assert [one["name"] for one in yaml.safe_load(text)["variables"]] == ["mass"]
    assert project.run("check").code == 0


def test_a_pattern_that_no_file_fits_is_told(project: Project) -> None:
    project.configure("    formats: {'*.dat': raw}\n")
    outcome = project.accept()
    assert "'*.dat'" in str(outcome.document["checks"][0]["misspelt"])


def test_snapshots_are_kept_only_if_they_are_wanted(project: Project) -> None:
    text = (project.folder / "ciwrap.yaml").read_text() + "run: {command: [touch, out/ids.npy]}\n"
    for is_wanted in (False, True):
        said = f"snapshot: {{objects: {str(is_wanted).lower()}}}\n"
        (project.folder / "ciwrap.yaml").write_text(text + said)
        project.save("temperature", BASE + is_wanted)
        project.run("run")
        project.accept("--reason", "again")
        assert (project.folder / "golden/.snapshots").exists() == is_wanted
        assert ("snapshot" in manifest_of(project)["environment"]) == is_wanted
