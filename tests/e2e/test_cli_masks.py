"""Masks in `ciwrap check`, as people and scripts use them."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from e2e.cli_project import BASE, Project


def test_masks_ignored_and_relaxed_variables(project: Project) -> None:
    mask = np.zeros(BASE.shape, bool)
    mask[0] = True
    project.save("land", mask)
    project.configure(
        "    ignore: [wall*]\n    strict: {variables: false}\n"
        "    variables: {temperature: {mask: land}}\n"
    )
    project.save("wall_time", np.float64(1.0))
    project.accept()
    moved = BASE.copy()
    moved[0] = 1e9
    project.save("temperature", moved)
    project.save("wall_time", np.float64(2.0))
    project.save("extra", np.zeros(2))
    outcome = project.run("check")
    assert outcome.code == 0, outcome
    assert "not in the golden" in outcome.out
    assert outcome.document["checks"][0]["ignored_variables"] == [{"name": "wall_time"}]
    (project.folder / "out" / "land.npy").unlink()
    outcome = project.run("check")
    assert outcome.code == 3
    assert "mask 'land' is not among the outputs" in outcome.out


@pytest.mark.parametrize("mask", [BASE, np.zeros(3, bool)], ids=["dtype", "shape"])
def test_accept_names_the_variable_of_a_mask_that_is_none(project: Project, mask: Any) -> None:
    project.save("land", mask)
    project.configure("    variables: {temperature: {mask: land}}\n")
    outcome = project.run("accept")
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert line.startswith("error: temperature: the mask 'land' ")
    assert "; fix 'mask'" in line


def test_a_mask_that_is_not_compared_hides_nothing(project: Project) -> None:
    """An element that only the new mask takes out would count as the golden's zero."""
    values = BASE.copy()
    values.flat[3] = 0
    masked = "    variables: {temperature: {mask: land}}\n"
    project.save("temperature", values)
    project.save("land", np.zeros(BASE.shape, bool))
    project.configure(f"    ignore: [land]\n{masked}")
    assert project.run("accept", json_too=False).code == 3
    project.configure("    ignore: [land]\n")
    project.accept()
    project.configure("    strict: {variables: false}\n" + masked)
    values.flat[3] = 1e9
    project.save("temperature", values)
    project.save("land", values == 1e9)
    outcome = project.run("check")
    assert outcome.code == 3
    assert "its mask 'land' is not compared itself" in outcome.out


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_a_golden_tells_which_mask_it_was_made_with(project: Project, evidence: str) -> None:
    """It holds zeros where that was true, and so knows nothing of the values there."""
    masks = (None, "land", "sea")
    values = np.array([17.0, 0.0, 3.0])
    project.save("land", values == 17)
    project.save("sea", values == 0)

    def configure(mask: str | None) -> None:
        more = "" if mask is None else f", mask: {mask}"
        project.configure(
            "    ignore: [temperature, ids]\n"
            f"    variables: {{x: {{evidence: {evidence}{more}}}}}\n"
        )

    for made in masks:
        configure(made)
        project.save("x", values)
        project.accept("--reason", "test")
        for asked in masks:
            configure(asked)
            project.save("x", values * (values != 17))  # the golden's own numbers, masked by land
            if made == asked:
                assert project.run("check").code == (made != "land"), (made, asked)
                continue
            outcome = project.run("check")
            assert outcome.code == 3, (made, asked)
            assert f"the golden has {'none' if made is None else repr(made)}" in outcome.out


def test_a_mask_for_all_variables_is_compared_itself(project: Project) -> None:
    """It would be false everywhere as its own mask, whatever it takes out of the others."""
    values = BASE.copy()
    values.flat[3] = 0
    project.save("temperature", values)
    project.save("land", np.zeros(BASE.shape, bool))
    project.configure("    mask: land\n    ignore: [ids, pressure]\n")
    project.accept()
    assert project.run("check").code == 0
    values.flat[3] = 1e9
    project.save("temperature", values)
    project.save("land", values == 1e9)
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.variable("land")["differing_count"] == 1
    assert "mask" not in outcome.variable("land")
    shutil.copytree(project.folder / "out", project.folder / "later")
    project.save("temperature", BASE)
    project.save("land", np.zeros(BASE.shape, bool))
    compared = project.run("compare", "out", "later", "--check", "mesh")
    assert compared.code == 1
    assert compared.variable("land")["verdict"] == "differ"


def test_a_mask_that_has_a_mask_hides_nothing(project: Project) -> None:
    project.save("land", np.zeros(BASE.shape, bool))
    project.save("sea", np.zeros(BASE.shape, bool))
    project.configure("    ignore: [nothing]\n")
    project.accept()
    masks = "    variables: {temperature: {mask: land}, land: {mask: sea}}\n"
    project.configure(masks)
    outcome = project.run("check")
    assert outcome.code == 3
    told = "its mask 'land' has a mask itself, 'sea'"
    assert told in outcome.out
    assert project.run("accept", json_too=False).code == 3
    shutil.copytree(project.folder / "out", project.folder / "later")
    outcome = project.run("compare", "out", "later", "--check", "mesh")
    assert outcome.code == 3
    assert told in outcome.out


@pytest.mark.parametrize("more", ["", ", period: 10", ", combine: both, rtol: 1e-3"])
@pytest.mark.parametrize("kinds", [("<f4", "<f8"), ("<f8", "<f4"), ("<i4", "<f8")])
def test_masked_elements_of_another_type_are_counted(
    project: Project, kinds: tuple[str, str], more: str
) -> None:
    project.save("land", np.arange(5) < 2)
    strict = "    strict: {dtype: false}\n    ignore: [temperature, ids]\n"
    settings = "{mask: land, mixed_precision: true, atol: 1" + more + "}"
    project.configure(f"{strict}    variables: {{x: {settings}}}\n")
    project.save("x", np.arange(5, dtype=kinds[0]))
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "earlier")
    project.save("x", np.arange(5, dtype=kinds[1]))
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words)
        assert outcome.code == 0, outcome
        assert "compared 2 variables, 8 values; not compared: 2 values masked" in (
            outcome.out.replace("2 variables (ignore), ", "")
        )


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
@pytest.mark.parametrize("more", ["", ", period: 100", ", combine: both, rtol: 1e-3"])
def test_no_more_elements_differ_than_were_compared_where_masks_differ(
    project: Project, evidence: str, more: str
) -> None:
    """What one side alone masks is compared, as zero, so the mask did not take it out."""
    if more and evidence != "data":
        return  # both are of data
    project.save("land", np.zeros(5, bool))
    project.save("x", np.arange(1.0, 6.0))
    project.configure(
        f"    evidence: {evidence}\n    ignore: [temperature, ids]\n"
        f"    variables: {{x: {{mask: land, atol: 1e-6{more}}}}}\n"
    )
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "earlier")
    project.save("land", np.arange(5) < 4)
    project.save("x", np.arange(11.0, 16.0))
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words, "-v")
        assert outcome.code == 1, outcome
        assert "of 1 value" not in outcome.out
        assert "values masked" not in outcome.out
        assert "1 variable in part by a mask" in outcome.out
        assert "masked_count" not in outcome.variable("x")
