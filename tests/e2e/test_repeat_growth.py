"""`ciwrap repeat` of programs that write a history: chaos is told from noise."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from e2e.cli_project import Project
from e2e.repeated import with_program

if TYPE_CHECKING:
    from e2e.cli_project import Outcome

HISTORY = """\
def write(iteration, values):
    folder = pathlib.Path(f"out/iter_{iteration:04d}")
    folder.mkdir()
    np.save(folder / "x.npy", values)
"""
LOGISTIC = f"""{HISTORY}
values = np.random.default_rng(1).uniform(0.1, 0.9, 200) + 1e-14 * noise.normal(size=200)
for iteration in range(61):
    if iteration % 2 == 0:
        write(iteration, values)
    values = 4 * values * (1 - values)
"""
WALK = f"""{HISTORY}
values = np.linspace(1, 2, 200)
for iteration in range(0, 61, 2):
    write(iteration, values)
    values = values + 1e-9 * noise.normal(size=200)
"""


def variable(outcome: Outcome) -> Any:
    (found,) = outcome.document["variables"]
    return found


def test_a_chaotic_program_grows_at_its_rate(project: Project) -> None:
    with_program(project, LOGISTIC, check="outputs: out, atol: 1e-6")
    outcome = project.run("repeat", "-n", "6")
    assert outcome.code == 0, outcome
    found = variable(outcome)
    assert found["kind"] == "growing"
    assert found["growth_rate"] == pytest.approx(math.log(2), rel=0.03)
    reached = next(one["iteration"] for one in found["by_iteration"] if one["typical"] > 1e-6)
    assert abs(found["horizon"] - reached) <= 3
    assert found["horizon"] < found["spread_horizon"]
    assert f"compare up to iteration {found['compare_until']}" in outcome.out
    assert found["suggested_bound"]["until_iteration"] == found["compare_until"]


@pytest.mark.slow
@pytest.mark.parametrize("atol", [1e-20, 1.0])
def test_a_bound_that_growing_differences_never_reach(project: Project, atol: float) -> None:
    """They passed the one before the first iteration, and stop growing long before the other."""
    with_program(project, LOGISTIC, check=f"outputs: out, atol: {atol}")
    outcome = project.run("repeat", "-n", "6")
    found = variable(outcome)
    assert found["kind"] == "growing"
    assert found.get("horizon") is None
    assert "typical differences reach a tenth of the spread at iteration" in outcome.out


@pytest.mark.slow
def test_nothing_is_said_of_iterations_that_there_are_not(project: Project) -> None:
    """Three digits of the spread are left to the end: there is no beyond."""
    program = LOGISTIC.replace(
        "values = 4 * values", "if iteration == 20: break\n    values = 4 * values"
    )
    with_program(project, program, check="outputs: out, atol: 1e-17")
    outcome = project.run("repeat", "-n", "6")
    found = variable(outcome)
    assert found["compare_until"] == max(one["iteration"] for one in found["by_iteration"])
    assert "is too tight (differences reach" in outcome.out
    assert "beyond" not in outcome.out
    assert "x grows exponentially\n" in outcome.out
    assert "until_iteration" not in project.run("repeat", "-n", "6", "--write-bounds").out


@pytest.mark.slow
def test_the_suggested_iteration_can_be_configured_and_then_holds(project: Project) -> None:
    with_program(project, LOGISTIC)
    suggested = variable(project.run("repeat", "-n", "10", "--write-bounds"))
    until = suggested["compare_until"]
    text = (project.folder / "ciwrap.yaml").read_text()
    assert f"until_iteration: {until}" in text
    later = project.run("repeat", "-n", "6", "--check")
    assert later.code == 0, later
    assert max(one["iteration"] for one in variable(later)["by_iteration"]) == until


@pytest.mark.slow
def test_a_bound_is_judged_up_to_the_iteration_that_it_is_for(project: Project) -> None:
    """The suggested bound, once it is configured, fits; what comes later is another matter."""
    with_program(project, LOGISTIC)
    suggested = variable(project.run("repeat", "-n", "10", "--write-bounds"))
    path = project.folder / "ciwrap.yaml"
    config = yaml.safe_load(path.read_text())
    del config["checks"]["mesh"]["until_iteration"]
    path.write_text(yaml.safe_dump(config))
    again = project.run("repeat", "-n", "10", "--check")
    found, until = variable(again), suggested["compare_until"]
    assert found["present_bound"]["atol"] == suggested["suggested_bound"]["atol"]
    assert abs(found["compare_until"] - until) <= 4
    early = [one["max_abs"] for one in found["by_iteration"]
             if one["iteration"] <= found["compare_until"]]  # fmt: skip
    assert found["early_share"] == pytest.approx(max(early) / found["present_bound"]["atol"])
    assert found["present_share"] > 100
    # Checks compare all iterations as long as the configuration does not say otherwise.
    assert again.code == 1
    assert f"up to iteration {found['compare_until']} (" in again.out
    assert ", and does not beyond (differences reach" in again.out
    before = path.read_text()
    assert project.run("repeat", "-n", "10", "--write-bounds").code == 0
    added = set(path.read_text().splitlines()) - set(before.splitlines())
    assert any("until_iteration" in line for line in added)
    if found["present_fit"] == "fits":
        assert not any("atol" in line for line in added), added


def test_a_random_walk_is_noise(project: Project) -> None:
    with_program(project, WALK)
    outcome = project.run("repeat", "-n", "6")
    assert variable(outcome)["kind"] == "noise"
    assert "growth_rate" not in variable(outcome)
    assert "no exponential growth seen" in outcome.out


def test_the_first_iteration_that_varies_is_named(project: Project) -> None:
    with_program(
        project,
        f"{HISTORY}\nfor iteration in (10, 20, 30):\n"
        "    write(iteration, x + (1e-9 * run if iteration > 10 else 0))\n",
    )
    outcome = project.run("repeat", "-n", "4")
    found = variable(outcome)
    assert found["first_iteration"] == 20
    assert [one["distinct_results"] for one in found["by_iteration"]] == [1, 4, 4]
    assert "4 different results from iteration 20 on" in outcome.out


@pytest.mark.slow
def test_the_how_to_works_in_an_empty_folder(tmp_path: Path) -> None:
    """Its program and configuration as they stand on the page, then the bounds that it writes."""
    page = (Path(__file__).parents[2] / "docs/how-to/chaotic-codes.md").read_text()
    project = Project(tmp_path / "p")
    shutil.rmtree(project.folder / "out")
    (project.folder / "flow.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    config = page.partition("```yaml\n")[2].partition("```")[0]
    text = config.replace("python ", f"{sys.executable} ")
    (project.folder / "ciwrap.yaml").write_text(text)
    first = project.run("repeat", "-n", "10", "--write-bounds")
    assert first.code == 0, first
    assert "x grows exponentially, compare up to iteration 3" in first.out
    again = project.run("repeat", "-n", "4", "--check")
    assert again.code == 0, again
