"""Mode check under act: every status, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from action.act_runs import ACTION_REF

if TYPE_CHECKING:
    from collections.abc import Callable

    from action.act_runs import Act, Job

WORDS = {
    "match": "All numbers match",
    "differ": "differ",
    "not-comparable": "could be compared",
    "error": "ciwrap: error",
}
CHECKOUT = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8"


def workflow(with_: str = "", uses: str = ACTION_REF) -> str:
    inputs = f"\n        with: {{{with_}}}" if with_ else ""
    return f"""\
name: numbers
on: push
permissions: {{}}
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: ciwrap
        uses: {uses}{inputs}
      - if: always()
        env:
          ALL: ${{{{ toJSON(steps.ciwrap.outputs) }}}}
        run: printf '%s' "$ALL" > "$ACT_ARTIFACTS/outputs.json"
"""


def outputs(act: Act) -> dict[str, str]:
    return json.loads((act.artifacts / "outputs.json").read_text())


def assert_told(act: Act, job: Job, status: str, *, failed: bool) -> None:
    assert job.result == ("failure" if failed else "success"), job.text
    assert job.step("Gate").result == ("failure" if failed else "success")
    assert job.step("Compare").result == "success"
    assert outputs(act)["status"] == status
    assert WORDS[status] in job.summary


def test_match(act: Act, project: Callable[..., Path]) -> None:
    run = act.run(project(workflow()))
    assert_told(act, run.job("check"), "match", failed=False)
    told = outputs(act)
    assert (told["compared"], told["matching"], told["differing"]) == ("2", "2", "0")
    assert run.job("check").annotations == []
    artifact = act.artifacts / "ciwrap"
    assert (artifact / "report.html").is_file()
    result = json.loads((artifact / "result.json").read_text())
    assert (result["kind"], result["verdict"]) == ("run", "match")
    assert len(bytes.fromhex(told["root"])) == 16
    assert Path(told["report-path"]).is_relative_to(Path(told["result-path"]).parent)


def test_differ(act: Act, project: Callable[..., Path]) -> None:
    run = act.run(project(workflow("run: python3 simulate.py 0.5")))
    job = run.job("check")
    assert_told(act, job, "differ", failed=True)
    assert outputs(act)["differing"] == "2"
    kinds = [kind for kind, _, _ in job.annotations]
    assert 0 < len(kinds) <= 11
    assert any(where.get("file") == "ciwrap.yaml" for _, where, _ in job.annotations)
    assert "temperature" in job.summary
    assert (act.artifacts / "ciwrap/result.json").is_file()


def test_two_paths_in_a_folder_of_the_repository(act: Act, project: Callable[..., Path]) -> None:
    files = {"sub/old.csv": "x\n1\n2\n", "sub/new.csv": "x\n1\n2.1\n"}
    paths = "working-directory: sub, result: new.csv, reference: old.csv"
    job = act.run(project(workflow(paths), goldens=False, **files)).job("check")
    assert_told(act, job, "differ", failed=True)


def test_differ_as_a_warning(act: Act, project: Callable[..., Path]) -> None:
    with_ = "run: python3 simulate.py 0.5, fail-on: not-comparable"
    job = act.run(project(workflow(with_))).job("check")
    assert_told(act, job, "differ", failed=False)
    assert "fail-on: not-comparable" in job.annotations[-1][2]


def test_no_golden_is_not_comparable(act: Act, project: Callable[..., Path]) -> None:
    job = act.run(project(workflow(), goldens=False)).job("check")
    assert_told(act, job, "not-comparable", failed=True)
    assert outputs(act)["compared"] == "0"
    assert "ciwrap accept" in job.summary.replace("&#45;", "-")


def test_a_program_that_fails_is_an_error(act: Act, project: Callable[..., Path]) -> None:
    # The outputs of an earlier run lie there, and would match.
    with_ = 'run: "python3 simulate.py && exit 3"'
    job = act.run(project(workflow(with_))).job("check")
    assert_told(act, job, "error", failed=True)


@pytest.mark.parametrize(
    ("with_", "files"),
    [
        ("", {"ciwrap.yaml": "version: 1\nchecks: {mesh: {outputs: out, atoll: 1}}\n"}),
        ("config: missing.yaml", {}),
        ("checks: other", {}),
    ],
    ids=["mistyped key", "no configuration", "no such check"],
)
def test_what_cannot_be_used_is_an_error(
    act: Act, project: Callable[..., Path], with_: str, files: dict[str, str]
) -> None:
    job = act.run(project(workflow(with_), **files)).job("check")
    assert_told(act, job, "error", failed=True)
    assert job.annotations[0][0] == "error"


@pytest.mark.parametrize("with_", ["fail-on: sometimes", "mode: chekc", 'platform-key: "../x"'])
def test_an_input_without_meaning_fails_whatever_fail_on_says(
    act: Act, project: Callable[..., Path], with_: str
) -> None:
    job = act.run(project(workflow(with_))).job("check")
    assert job.result == "failure"
    assert outputs(act)["status"] == "error"
    assert any("cannot be" in text for _, _, text in job.annotations)
