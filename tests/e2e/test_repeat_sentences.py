"""`ciwrap repeat`: sentences are true also where little was compared, or where nothing varies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.repeated import with_program
from e2e.test_repeat_existing import variable

if TYPE_CHECKING:
    from e2e.cli_project import Project

EQUAL = 'np.save("out/x.npy", x)'


def with_golden(project: Project, code: str, evidence: str) -> None:
    with_program(project, code, check=f"outputs: out, atol: 1e-6, evidence: {evidence}")
    project.save("x", np.linspace(1.0, 2.0, 500))
    project.accept()


def test_runs_that_equal_the_golden_do_not_vary(project: Project) -> None:
    with_golden(project, EQUAL, "data")
    outcome = project.run("repeat", "-n", "3", "--reference", "golden")
    assert outcome.code == 0, outcome
    assert variable(outcome, "x")["kind"] == "equal"
    assert outcome.document["headline"] == "the variable is equal to the golden in 3 runs"
    # Three runs and no fourth: the golden is none. 1 - 0.05^(1/3).
    assert "3 runs equal to the golden: a further one differs with a chance of up to 63.2 %" in (
        outcome.out
    )


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("evidence", "headline", "words"),
    [
        (
            "data",
            "1 of 1 variable differs from the golden, at most 1e-8;",
            "one result in all runs, which is not the golden's",
        ),
        (
            "residues",
            "1 of 1 variable differs from the golden, or may;",
            "one result in all runs, within the golden's bound",
        ),
    ],
)
def test_equal_runs_that_are_not_the_golden(
    project: Project, evidence: str, headline: str, words: str
) -> None:
    with_golden(project, 'np.save("out/x.npy", x + 1e-8)', evidence)
    outcome = project.run("repeat", "-n", "3", "--reference", "golden")
    assert outcome.code == 0, outcome
    assert outcome.document["headline"].startswith(headline)
    assert words in outcome.out
    assert "different result" not in outcome.out


def test_one_run_alone_is_equal_to_nothing(project: Project) -> None:
    with_program(project, f"if run > 1: sys.exit(4)\n{EQUAL}")
    outcome = project.run("repeat", "-n", "3", "-v")
    assert outcome.code == 3
    assert variable(outcome, "x")["kind"] == "not_comparable"
    assert " equal " not in outcome.out
    assert "x  not comparable: no other run could be compared with the first one" in outcome.out


def test_a_bound_for_some_variables_is_not_told_of_all(project: Project) -> None:
    code = 'np.save("out/x.npy", x + 1e-9 * run); np.save("out/flag.npy", np.arange(9) < run)'
    with_program(project, code)
    outcome = project.run("repeat", "-n", "5")
    assert outcome.code == 0, outcome
    assert "`atol: 2e-8` would hold for 1 of them" in outcome.document["headline"]


def test_digits_are_none_and_not_less(project: Project) -> None:
    with_program(project, 'np.save("out/n.npy", np.full(4, 1 + (run > 1)))')
    outcome = project.run("repeat", "-n", "3")
    assert outcome.code == 0, outcome
    assert "with no digit in common" in outcome.out
    assert "-0.0" not in outcome.out


def test_a_difference_that_no_double_holds_in_a_job_summary(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", np.full(4, 1.7e308) * (-1) ** run)')
    outcome = project.run("repeat", "-n", "3", "--markdown", "summary.md")
    assert outcome.code == 0, outcome
    summary = (project.folder / "summary.md").read_text()
    assert "over 1.79e308" in summary.partition("|---|")[2]
    assert "inf" not in summary


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("scale", ["1e-200", "1e200"])
def test_a_seed_left_open_is_seen_at_any_scale(project: Project, scale: str) -> None:
    """Two draws lie 1.4 standard deviations apart, whose squares are no doubles here."""
    with_program(project, f'np.save("out/x.npy", {scale} * noise.normal(size=2000))')
    outcome = project.run("repeat", "-n", "4")
    found = variable(outcome, "x")
    assert found["kind"] == "unrelated"
    assert found["suggested_bound"] is None
    assert re.search(r"runs differ by 1[34]\d % of the spread of the values", outcome.out)
