"""Which runs are made, and what the configuration says of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ciwrap.base.errors import ConfigError, UsageError
from ciwrap.project.config import load_config, load_runs, load_text
from ciwrap.project.settings import CommandSettings, RunPlace, placeholders_in
from ciwrap.studies.repeat.run import find_factors, make_plan

PATH = Path("/nowhere/ciwrap.yaml")


@pytest.mark.parametrize("count", [2, 3, 10])
def test_without_factors_there_are_as_many_runs_as_asked_for(count: int) -> None:
    plan = make_plan(count, (), "full", 1)
    assert [run.number for run in plan.runs] == list(range(1, count + 1))
    assert len({run.seed for run in plan.runs}) == count
    assert all(run.cell == () for run in plan.runs)


@pytest.mark.parametrize(("count", "runs"), [(2, 8), (8, 8), (9, 12), (12, 12)])
def test_every_cell_is_run_as_often_as_every_other(count: int, runs: int) -> None:
    plan = make_plan(count, find_factors(["A=0,1", "B=0,1"], ()), "full", 3)
    cells = [run.cell for run in plan.runs]
    assert len(cells) == runs
    assert {cells.count(cell) for cell in set(cells)} == {runs // 4}
    assert cells[0] == (False, False)


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_none_to_compare(count: int) -> None:
    with pytest.raises(UsageError, match="at least 2"):
        make_plan(count, (), "full", 1)


def test_a_fraction_of_few_factors_is_refused() -> None:
    with pytest.raises(UsageError, match="choose another 'design'"):
        make_plan(4, find_factors(["A=0,1"], ()), "fractional", 1)


@pytest.mark.linux
def test_a_factor_changes_the_command_only_as_it_says() -> None:
    plan = make_plan(4, find_factors(["A=low,high", "reserve-core"], ()), "full", 1)
    settings = CommandSettings("run me", PATH.parent, 60.0, {"KEPT": "1"})
    cores = os.sched_getaffinity(0)
    for run in plan.runs:
        made = plan.command(settings, run)
        states = plan.states(run)
        assert made.env == {"KEPT": "1", "A": "high" if states["A"] == "on" else "low"}
        assert (made.words, made.timeout_seconds) == ("run me", 60.0)
        if states["reserve-core"] == "on" and len(cores) > 1:
            assert made.cores is not None
            assert len(made.cores) == len(cores) - 1
        else:
            assert made.cores is None


def test_placeholders_are_filled_for_each_run() -> None:
    place = RunPlace(3, 77)
    assert place.filled("a_{run}/{seed} ${run} {name} {iteration:d}") == (
        "a_3/77 ${run} {name} {iteration:d}"
    )
    assert placeholders_in("x ${seed}", "{run}") == {"run"}


CONFIG = """\
run: {command: [prog, "{run}"], working_dir: "in_{run}", env: {SEED: "{seed}"}}
checks:
  a: {outputs: "out_{run}/iter_{iteration:d}/{name}.npy", exclude: "log_{run}"}
  b: {outputs: b, run: "other {seed}"}
"""


def test_what_a_configuration_says_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "ciwrap.yaml"
    path.write_text(CONFIG)
    config = load_runs(path)(RunPlace(3, 77))
    assert config.command is not None
    assert config.command.words == ("prog", "3")
    assert config.command.working_dir == tmp_path / "in_3"
    assert config.command.env == {"SEED": "77"}
    assert config.check("a").outputs == ("out_3/iter_{iteration:d}/{name}.npy",)
    assert config.check("a").exclude == ("log_3",)
    other = config.check("b").command
    assert other is not None
    assert other.words == "other 77"
    assert (config.placeholders, config.output_placeholders) == ({"run", "seed"}, {"run"})
    single = load_config(path)
    assert single.check("a").outputs == ("out_1/iter_{iteration:d}/{name}.npy",)
    assert single.command is not None
    assert single.command.env == {"SEED": "1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runs: 1", "must be from 2"),
        ("runs: many", "must be a whole number"),
        ("reference: last", "must be one of first, golden"),
        ("design: half", "must be one of full"),
        ("factors: {a: {off: {env: {X: 1}}}}", "is required"),
        ("factors: {a: {on: {enw: {X: 1}}}}", "env"),
    ],
)
def test_mistakes_in_the_section(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_text(f"repeat: {{{text}}}\nchecks: {{a: {{outputs: a}}}}\n", PATH)
