"""How bad a difference is: one order, and the same worst one in every output."""

from __future__ import annotations

import io
import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest

from ciwrap.check.findings import fewer_details
from ciwrap.model import (
    CheckResult,
    Details,
    DifferingElement,
    ErrorBound,
    Evidence,
    MovedElement,
    RunResult,
    VariableResult,
    Verdict,
    severity,
    worst_first,
    worst_of,
)
from ciwrap.model.results import with_brief_ones
from ciwrap.model.variable_result import ShareMap, cells_text
from ciwrap.report.console import make_console
from ciwrap.report.document import trimmed, with_detail
from ciwrap.report.exports import render_junit, render_sarif
from ciwrap.report.failure import failure_lines
from ciwrap.report.markdown import render_annotations, render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.terminal import render

if TYPE_CHECKING:
    from collections.abc import Iterable

EXACT, HALF = ErrorBound(), ErrorBound(0.5)
DETAILS = Details(share_maps=(ShareMap(0, 1, 4, cells_text(bytes((0, 0, 0, 20)))),))
# Of iterations 1, 2 and 3: the largest difference, and how many elements differ. 2 is the worst.
SIZES = ((10.0, 1), (1e6, 1), (1.0, 5))


def differing(iteration: int, size: float, count: int, bound: ErrorBound) -> VariableResult:
    share = float("inf") if bound.is_exact else size / bound.atol
    elements = tuple(
        DifferingElement((at,), "1.0", repr(1.0 + size), size, share) for at in range(2)
    )
    return VariableResult(
        "x",
        Verdict.DIFFER,
        iteration=iteration,
        evidence=Evidence.DATA,
        dtype="<f8",
        shape=(100,),
        bound=bound,
        element_count=100,
        differing_count=count,
        first_index=(0,),
        first_differences=elements,
        max_abs_difference=size,
        max_abs_index=(0,),
        max_bound_share=share,
        details=DETAILS,
    )


def three(bound: ErrorBound, *more: VariableResult) -> RunResult:
    variables = tuple(differing(at, *one, bound) for at, one in enumerate(SIZES, 1))
    check = CheckResult("c", Verdict.DIFFER, (*variables, *more), golden_path="g.golden")
    return RunResult(Verdict.DIFFER, (check,))


def detailed(results: Iterable[VariableResult]) -> list[int | None]:
    return [one.iteration for one in results if one.details is not None]


@pytest.mark.parametrize(("bound", "size"), [(EXACT, "largest |difference| 1e6"), (HALF, "2e6 x")])
def test_all_outputs_name_the_same_worst_one(bound: ErrorBound, size: str) -> None:
    run = three(bound)
    told = re.compile(rf"the worst at iteration 2: (up to )?{re.escape(size)}")
    document = json.loads(render_sarif(run))
    assert told.search(document["runs"][0]["results"][0]["message"]["text"])
    markdown = render_markdown(run).replace("&#124;", "|")
    for text in (markdown, render_junit(run), render_annotations(run)):
        assert told.search(text)
    stream = io.StringIO()
    render(run, make_console(stream, color=False))
    assert re.search(
        rf"x: in all 3 iterations; .*{re.escape(size)}.* \(iter 2\)", stream.getvalue()
    )
    page = re.sub(r"<[^>]*>", "", render_html(run)).replace("\u00a0", " ").replace("\u00d7", "x")
    assert re.search(rf"at first, (up to )?{re.escape(size)}( the bound)? at iteration 2", page)
    assert "Largest difference iteration 2, x" in page
    (worst, *_) = (one for one in failure_lines("t", run.checks[0], ()) if "iter" in one)
    assert "iter 2 / x" in worst, "the message of a failed test"


@pytest.mark.parametrize("bound", [EXACT, HALF])
def test_what_is_kept_is_of_the_first_and_of_the_same_worst_one(
    bound: ErrorBound, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = VariableResult("y", Verdict.MATCH, evidence=Evidence.DATA, differing_count=0)
    run = three(bound, match)
    variables = run.checks[0].variables
    assert detailed(trimmed(run).checks[0].variables) == [1, 2]
    assert detailed(fewer_details(variables)) == [1, 2]
    monkeypatch.setattr("ciwrap.model.results.MOST_WHOLE", 2)
    monkeypatch.setattr("ciwrap.report.document.MOST_WHOLE", 2)
    assert detailed(with_brief_ones(variables)) == [1, 2]
    assert detailed(with_detail(run, "differing").checks[0].variables) == [1, 2]


def test_the_order_is_verdict_share_size_count() -> None:
    lost = VariableResult("a", Verdict.NOT_COMPARABLE, reason="gone")
    undecided = VariableResult(
        "a", Verdict.UNDECIDED, bound=HALF, suspect_chunks=1, guaranteed_share=0.9
    )
    moved = VariableResult(
        "a",
        Verdict.UNDECIDED,
        bound=HALF,
        suspect_chunks=1,
        guaranteed_share=0.9,
        moved_elements=(MovedElement((0,), "1", share_from=0.95, share_to=1.1),),
    )
    match = VariableResult("a", Verdict.MATCH, differing_count=0, element_count=1)
    ordered = [
        lost,
        differing(2, 1e6, 1, EXACT),
        differing(1, 10.0, 1, EXACT),
        differing(3, 1.0, 5, EXACT),
        differing(1, 10.0, 9, HALF),
        differing(1, 10.0, 1, HALF),
        moved,
        undecided,
        match,
    ]
    assert all(severity(one) > severity(other) for one, other in itertools.pairwise(ordered))
    assert worst_first(ordered[::-1]) == ordered
    assert worst_of(ordered[::-1]) is ordered[1], "what was not compared has no numbers"
    assert worst_of([match, lost]) is lost


def test_equally_bad_ones_stand_in_the_order_of_checkpoints() -> None:
    same = [differing(at, 1.0, 1, HALF) for at in (3, 1, 2)]
    assert [one.iteration for one in worst_first(same)] == [1, 2, 3]
    assert worst_of(same).iteration == 1


def test_a_document_that_claims_nan_has_an_order() -> None:
    nan = float("nan")
    claimed = [differing(at, size, 1, HALF) for at, size in ((1, nan), (2, 1.0), (3, nan))]
    assert [one.iteration for one in worst_first(claimed)] == [2, 1, 3]
