"""Accepting: reasons, and what changed."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, litter, manifest_of


def test_a_first_golden_needs_no_reason(project: Project) -> None:
    outcome = project.accept()
    assert outcome.document["checks"][0]["status"] == "created"
    entry = manifest_of(project)["accepted"][0]
    assert entry["why"] == "first golden"
    assert (entry["old_root"], entry["new_root"]) == (None, manifest_of(project)["binary"]["root"])
    assert project.run("check").code == 0


def test_a_pattern_that_matches_nothing_is_told_of_however_accepting_ends(
    project: Project,
) -> None:
    project.configure(
        "    ignore: [wall_tmie]\n    variables: {temprature: {atol: 1e-3}, 'ids': {atol: 0}}\n"
    )
    for status in ("created", "same"):
        outcome = project.accept()
        (check,) = outcome.document["checks"]
        assert check["status"] == status
        assert [word.split("'")[1] for word in check["misspelt"]] == ["temprature", "wall_tmie"]
        assert outcome.out.count("warning: the pattern ") == 2
    # A name that the configuration rightly leaves out is there, and is not told of.
    project.save("wall_tmie", np.zeros(2))
    project.save("temprature", np.zeros(2))
    outcome = project.accept("--reason", "they are there now")
    assert "misspelt" not in outcome.document["checks"][0]
    assert "warning" not in outcome.out


def test_replacing_needs_a_reason_and_keeps_the_history(project: Project) -> None:
    project.accept()
    first = manifest_of(project)["binary"]["root"]
    moved = BASE.copy()
    moved[3, 7] += 1e-3
    project.save("temperature", moved)
    before = project.snapshot()
    refused = project.run("accept")
    assert refused.code == 2
    assert "--reason" in refused.err
    assert project.snapshot() == before
    outcome = project.accept("--reason", "new heat flux")
    (check,) = outcome.document["checks"]
    assert (check["status"], check["old_root"]) == ("replaced", first)
    changed = {v["name"]: v["change"] for v in check["variables"]}
    assert changed == {"ids": "equal", "temperature": "changed"}
    moved_result = next(v["moved"] for v in check["variables"] if v["name"] == "temperature")
    assert (moved_result["differing_count"], moved_result["first_index"]) == (1, [3, 7])
    assert check["largest_bound_share"] == pytest.approx(1000, rel=1e-3)
    history = manifest_of(project)["accepted"]
    assert [entry["why"] for entry in history] == ["first golden", "new heat flux"]
    assert history[1]["old_root"] == first
    assert history[1]["largest_bound_share"] == pytest.approx(1000, rel=1e-3)
    assert project.run("check").code == 0
    assert litter(project) == []


def test_dry_run_writes_nothing(project: Project) -> None:
    outcome = project.accept("--dry-run")
    assert "would be created" in outcome.out
    assert not (project.folder / "golden").exists()
    project.accept()
    project.save("temperature", BASE + 1)
    before = project.snapshot()
    outcome = project.accept("--dry-run")
    assert outcome.document["dry_run"] is True
    assert "would be replaced" in outcome.out
    assert project.snapshot() == before


def test_what_matches_is_kept_unless_forced(project: Project) -> None:
    project.accept()
    before = project.snapshot()
    project.save("temperature", BASE + 3e-7)
    outcome = project.accept("--reason", "noise")
    assert outcome.document["checks"][0]["status"] == "kept"
    assert "30.1 % of the bound used" in outcome.out
    assert project.snapshot() == before
    outcome = project.accept("--reason", "noise", "--force")
    assert outcome.document["checks"][0]["status"] == "replaced"
    assert project.accept("--force").document["checks"][0]["status"] == "same"


@pytest.mark.parametrize(
    ("bound", "is_wider"),
    [
        ("atol: 1e-3", True),
        ("atol: 1e-9", False),
        ("atol: 0", False),
        ("ulps: 2", True),
        ("rtol: 1e-9", True),
        ("atol: 1e-6, rtol: 1e-6", True),
    ],
)
def test_a_wider_bound_is_called_so(project: Project, bound: str, is_wider: bool) -> None:
    project.accept()
    project.configure(bound=bound)
    outcome = project.accept("--reason", "another bound")
    found = {v["name"]: v for v in outcome.document["checks"][0]["variables"]}
    assert found["temperature"]["change"] == "redefined"
    assert found["temperature"]["bound_widened"] is is_wider
    assert ("(WIDER)" in outcome.out) is is_wider


def test_another_chunk_size_takes_effect(project: Project) -> None:
    project.accept()
    project.configure(bound="atol: 1e-6, chunk_bytes: 1024")
    assert project.run("check").code == 0
    outcome = project.accept("--reason", "smaller blocks")
    assert outcome.document["checks"][0]["status"] == "replaced"
    shown = project.run("show", "mesh").document
    assert {variable["chunk_bytes"] for variable in shown["variables"]} == {1024}


def test_added_removed_and_redefined_variables(project: Project) -> None:
    project.accept()
    (project.folder / "out" / "ids.npy").unlink()
    project.save("fresh", np.zeros(3))
    project.save("temperature", BASE.astype("f4"))
    outcome = project.accept("--reason", "another model")
    changes = {v["name"]: v["change"] for v in outcome.document["checks"][0]["variables"]}
    assert changes == {"ids": "removed", "fresh": "added", "temperature": "redefined"}
    assert "dtype <f8 -> <f4" in outcome.out
    assert project.run("check").code == 0


def test_a_damaged_golden_can_be_replaced_with_a_reason(project: Project) -> None:
    project.accept()
    project.golden.write_bytes(project.golden.read_bytes()[:-5])
    assert project.run("accept").code == 2
    outcome = project.accept("--reason", "disk fault")
    assert outcome.document["checks"][0]["old_problem"]
    assert [entry["why"] for entry in manifest_of(project)["accepted"]] == [
        "first golden",
        "disk fault",
    ]


def test_all_checks_or_none(project: Project) -> None:
    (project.folder / "ciwrap.yaml").write_text(
        "checks:\n  good: {outputs: out}\n  bad: {outputs: missing}\n"
    )
    outcome = project.run("accept")
    assert outcome.code == 3
    assert not (project.folder / "golden").exists()
    assert project.run("accept", "good").code == 0
    assert project.run("check", "--check", "good").code == 0
    assert project.run("check").code == 3


def test_goldens_are_the_same_bytes_however_made(project: Project) -> None:
    rng = np.random.default_rng(3)
    project.save("noise", rng.normal(size=300_000))
    project.configure(bound="rtol: 1e-9, atol: 1e-12, evidence: residues")
    project.accept()
    first = project.golden.read_bytes()
    for extra in (
        ("--engine", "pread"),
        ("--threads", "1"),
        ("--backend", "serial"),
    ):
        project.golden.unlink()
        project.accept("--reason", "again", "--force", *extra)
        assert project.golden.read_bytes() == first


def commands_in(text: str, start: str) -> list[list[str]]:
    """What a text proposes to type, without the reason's dots."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line[line.index(start) :] for line in lines if start in line]
    return [shlex.split(one.replace("'...'", "because"))[1:] for one in found]


def test_review_proposes_to_accept_what_it_shows(project: Project) -> None:
    """And not what the program has written since, or into another folder."""
    project.accept()
    project.save("temperature", BASE + 1)
    project.run("check", "--pending", "--golden-dir", "golden/arm")
    shown = project.run("review", json_too=False)
    assert "would be created  mesh  (golden/arm/mesh.golden)" in shown.out
    before = manifest_of(project)
    project.save("temperature", BASE + 2)
    proposed, all_of_them = commands_in(shown.out, "ciwrap accept ")
    assert "--pending" in proposed
    assert "golden/arm" in all_of_them
    assert project.run(*proposed).code == 0
    assert manifest_of(project) == before
    project.save("temperature", BASE + 1)
    assert project.run("check", "--golden-dir", "golden/arm").code == 0


def test_the_proposed_command_does_what_it_says(project: Project) -> None:
    """With goldens in another folder, another configuration, and a name like an option."""
    project.accept()
    text = (project.folder / "ciwrap.yaml").read_text().replace("mesh:", "-mesh:")
    (project.folder / "other.yaml").write_text(text)
    where = ("--config", "other.yaml", "--golden-dir", "golden/other")
    missing = project.run("check", *where)
    (proposed,) = commands_in(missing.out.replace("`", "\n"), "ciwrap accept ")
    assert project.run(*proposed, json_too=False).code == 0
    project.save("temperature", BASE + 1)
    differs = project.run("check", *where)
    assert differs.code == 1
    options = {"config": "other.yaml", "golden_dir": "golden/other"}
    assert differs.document["checks"][0]["accept_options"] == options
    (proposed,) = commands_in(differs.out, "ciwrap accept ")
    assert project.run(*proposed, json_too=False).code == 0
    assert project.run("check", *where).code == 0
    assert project.run("check").code == 1
