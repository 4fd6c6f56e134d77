"""How much of a result a document lists: what it leaves out, it counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace
from result_schema import validator

from ciwrap.cli.main import run as run_cli
from ciwrap.model import CheckResult, DifferingElement, Evidence, RunResult, VariableResult, Verdict
from ciwrap.model.results import MOST_WHOLE
from ciwrap.model.variable_result import HistoryFacts, PointState, Timeline, TimelinePoint
from ciwrap.report.document import MOST_LISTED, from_document, to_document, with_detail
from ciwrap.report.markdown import render_markdown
from ciwrap.report.page import render_html

if TYPE_CHECKING:
    from pathlib import Path

ELEMENT = DifferingElement((1,), "0.0", "1.0", 1.0, 2.0)


def variable(name: str, iteration: int, *, differs: bool, share: float = 0.5) -> VariableResult:
    return VariableResult(
        name,
        Verdict.DIFFER if differs else Verdict.MATCH,
        iteration=iteration,
        evidence=Evidence.DATA,
        element_count=10,
        differing_count=2 if differs else 0,
        first_differences=(ELEMENT, ELEMENT) if differs else (),
        bound_share_histogram=(1,) * 34,
        max_bound_share=share,
    )


def result(iterations: int, from_iteration: int) -> RunResult:
    """Two variables over iterations; one differs from an iteration on, most at the last but one."""
    variables, points = [], []
    for iteration in range(iterations):
        differs = iteration >= from_iteration
        share = 9.0 if iteration == iterations - 2 else 2.0
        variables.append(variable("u", iteration, differs=differs, share=share if differs else 0.5))
        variables.append(variable("v", iteration, differs=False, share=0.75))
        state = PointState.BEYOND if differs else PointState.MATCH
        points.append(TimelinePoint(iteration, None, state))
    check = CheckResult(
        "c",
        Verdict.worst(one.verdict for one in variables),
        tuple(variables),
        history=HistoryFacts((Timeline("u", tuple(points)),)),
    )
    return RunResult(check.verdict, (check,), kind="compare")


def read_back(run: RunResult) -> RunResult:
    document = json.loads(json.dumps(to_document(run)))
    validator().validate(document)
    return from_document(document)


@pytest.mark.parametrize("detail", ["summary", "differing", "all"])
@pytest.mark.parametrize("from_iteration", [0, 300, 598, 600])
def test_what_is_left_out_is_counted(detail: Any, from_iteration: int) -> None:
    run = result(600, from_iteration)
    found = read_back(with_detail(run, detail))
    assert found.verdict_counts == run.verdict_counts
    assert found.coverage == run.coverage
    assert found.verdict is run.verdict
    ours, theirs = run.checks[0], found.checks[0]
    assert theirs.variable_count == 1200
    assert theirs.max_drift_share == ours.max_drift_share
    for one in ("first_divergence", "first_numeric_divergence"):
        assert getattr(theirs, one) == getattr(ours, one)
    assert (theirs.unlisted is None) == (detail == "all")
    assert any("are listed" in one.text for one in theirs.messages) == (detail != "all")
    assert "1,200 arrays" in render_markdown(found)


def test_differing_lists_all_that_do_not_match_the_first_and_worst_in_full() -> None:
    check = with_detail(result(600, 300), "differing").checks[0]
    assert [one.iteration for one in check.variables] == [*range(300, 600)]
    whole = {one.iteration for one in check.variables if one.bound_share_histogram is not None}
    assert whole == {300, 598}
    assert {len(one.first_differences) for one in check.variables} == {1, 2}
    assert check.history is not None
    assert len(check.history.timelines[0].points) == 300


def test_of_what_is_not_listed_nothing_is_said_to_be_all() -> None:
    page = render_html(read_back(with_detail(result(600, 300), "differing")))
    assert "n all 300 iterations" not in page
    assert "In 300 iterations, first in 300" in page


def test_small_checks_are_listed_whole() -> None:
    run = result(MOST_WHOLE // 2, 3)
    assert with_detail(run, "differing") == run
    (check,) = with_detail(run, "summary").checks
    assert [one.iteration for one in check.variables] == [3]


def test_no_more_are_listed_than_a_document_holds() -> None:
    check = with_detail(result(MOST_LISTED + 10, 0), "differing").checks[0]
    assert len(check.variables) == MOST_LISTED
    assert check.unlisted is not None
    assert (check.unlisted.differ, check.unlisted.match) == (10, MOST_LISTED + 10)


def test_a_match_that_counts_a_difference_is_no_result() -> None:
    check = with_detail(result(600, 600), "differing").checks[0]
    assert (check.verdict, check.variables) == (Verdict.MATCH, ())
    assert check.unlisted is not None
    with pytest.raises(ValueError, match="not every variable matches"):
        replace(check, unlisted=replace(check.unlisted, differ=1))
    with pytest.raises(ValueError, match="not every variable matches"):
        replace(check, unlisted=replace(check.unlisted, match=0))


def test_compare_takes_the_option(tmp_path: Path) -> None:
    for run in ("a", "b"):
        for iteration in range(3):
            path = tmp_path / run / f"iter_{iteration}" / "x.npy"
            path.parent.mkdir(parents=True)
            np.save(path, np.zeros(3) + (run == "b" and iteration > 0))
    found = {}
    for detail in ("summary", "differing", "all"):
        target = tmp_path / f"{detail}.json"
        arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", str(target)]
        assert run_cli([*arguments, "--json-detail", detail]) == 1
        found[detail] = json.loads(target.read_text())
    assert [len(one["checks"][0]["variables"]) for one in found.values()] == [1, 3, 3]
    assert found["summary"]["checks"][0]["unlisted"]["differ"] == 1
    assert len({json.dumps(one["verdict_counts"]) for one in found.values()}) == 1
