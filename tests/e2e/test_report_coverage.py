"""What the configuration leaves out is said wherever a verdict is read."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import Project

from ciwrap.report.document import from_document
from ciwrap.report.markdown import render_markdown

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cli_project import Outcome


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.save("mask", np.arange(600).reshape(20, 30) < 200)
    assert project.run("accept").code == 0
    return project


def page_of(project: Project) -> str:
    page = (project.folder / "r.html").read_text(encoding="utf-8")
    return unescape(re.sub("<[^>]*>", "", page))


def summary_of(outcome: Outcome) -> str:
    return render_markdown(from_document(outcome.document))


def test_all_is_all(project: Project) -> None:
    outcome = project.run("check", "--report", "r.html")
    assert outcome.code == 0
    assert outcome.out.startswith("match  all 3 variables\n")
    assert "    compared 3 variables, 1,300 values\n" in outcome.out
    for text in (page_of(project), summary_of(outcome)):
        assert "All numbers match" in text
        assert "Compared 3 variables, 1,300 values." in text


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_is_ignored_is_in_the_headline(project: Project, is_gone: bool) -> None:
    """Whether the run still writes it or not: the golden holds it, so it is to be accepted."""
    project.configure("    ignore: [temperature]\n")
    if is_gone:
        (project.folder / "out" / "temperature.npy").unlink()
    else:
        project.save("temperature", np.full((20, 30), np.nan))
    outcome = project.run("check", "--report", "r.html")
    assert outcome.code == 3
    assert (
        "the golden holds it, but the configuration ignores it"
        in outcome.variable("temperature")["reason"]
    )
    for text in (page_of(project), summary_of(outcome)):
        assert "Not everything could be compared" in text
        assert "numbers match" not in text.lower()
    assert project.run("accept", "--reason", "It is chaotic").code == 0
    assert project.run("check").code == 0
    text = next((project.folder / "golden").glob("*.yaml")).read_text()
    assert "ignored:\n- temperature\n" in text


def test_what_only_the_new_run_has_is_counted(project: Project) -> None:
    """The golden is as it was; there is something that nobody compared with anything."""
    project.save("wall_time", np.zeros(3))
    project.configure("    ignore: [wall_time]\n")
    outcome = project.run("check", "--report", "r.html")
    assert outcome.code == 0
    assert outcome.out.startswith("match  3 variables\n")
    assert "not compared: 1 variable (ignore)\n" in outcome.out
    assert "left_out_variables" not in outcome.document["checks"][0]
    assert "All compared numbers match" in page_of(project)


def test_a_masked_element_is_in_no_count_of_what_matches(project: Project) -> None:
    project.configure("    variables: {temperature: {mask: mask}}\n")
    assert project.run("accept", "--reason", "Mask it", "--force").code == 0
    outcome = project.run("check", "-v", "--report", "r.html")
    assert outcome.code == 0
    assert outcome.out.startswith("match  3 variables\n")
    assert "temperature [data]: all 400 values (200 more are masked) within" in outcome.out
    assert "compared 3 variables, 1,100 values; not compared: 200 values masked" in outcome.out
    assert outcome.variable("temperature")["masked_count"] == 200
    assert "All compared numbers match" in page_of(project)
