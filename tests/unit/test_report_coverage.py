"""What a verdict covers is counted once, and every output says it."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from result_schema import validator

from ciwrap.model import (
    CheckResult,
    Coverage,
    ErrorBound,
    Evidence,
    RunResult,
    VariableId,
    VariableResult,
    Verdict,
)
from ciwrap.report.cards import facts_of
from ciwrap.report.console import make_console
from ciwrap.report.document import from_document, to_document
from ciwrap.report.exports import render_junit, render_sarif
from ciwrap.report.failure import MOST_LINES, failure_lines
from ciwrap.report.figures import histogram_of
from ciwrap.report.markdown import render_annotations, render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.terminal import render


def match(name: str = "x", **more: Any) -> VariableResult:
    facts = {"element_count": 1000, "differing_count": 0, "suspect_chunks": 0, **more}
    return VariableResult(name, Verdict.MATCH, evidence=Evidence.DATA, **facts)


def lost(name: str) -> VariableResult:
    return VariableResult(name, Verdict.NOT_COMPARABLE, reason="gone", element_count=1000)


def ids(*names: str) -> tuple[VariableId, ...]:
    return tuple(VariableId(name) for name in names)


def test_everything_compared_is_one_short_line() -> None:
    check = CheckResult("c", Verdict.MATCH, (match("x"), match("y", element_count=203)))
    assert check.coverage == Coverage(
        compared_variables=2, compared_elements=1203, compared_names=2
    )
    assert check.coverage.text == "compared 2 variables, 1,203 values"


def test_each_reason_has_a_part_of_the_line() -> None:
    check = CheckResult(
        "c",
        Verdict.NOT_COMPARABLE,
        (
            match("x", mask="land", masked_count=40, has_fill_values=True),
            match("y", mask="land"),
            lost("bad"),
            lost("gone"),
            lost("new"),
        ),
        missing_variables=ids("gone"),
        extra_variables=ids("new"),
        ignored_variables=ids("i", "j", "k"),
        left_out_variables=ids("i"),
        excluded_files=2,
        attributes="none",
    )
    assert check.coverage.text == (
        "compared 2 variables, 1,960 values; not compared: 1 variable not comparable,"
        " 1 variable missing, 1 variable extra, 3 variables (ignore), 40 values masked,"
        " 1 variable in part by a mask, fill values of 1 variable, 2 files (exclude),"
        " attributes"
    )
    assert (check.coverage.left_out, check.coverage.let_go) == (1, 0)


def test_what_was_not_comparable_counts_nothing_as_compared() -> None:
    check = CheckResult("c", Verdict.NOT_COMPARABLE, (lost("x"),))
    assert check.coverage.text == "compared nothing; not compared: 1 variable not comparable"
    none = CheckResult("c", Verdict.NOT_COMPARABLE)
    assert none.coverage.text == "compared nothing"


def test_what_is_gone_without_a_verdict_was_left_out_whoever_says_so() -> None:
    check = CheckResult("c", Verdict.MATCH, (match(),), missing_variables=ids("gone"))
    assert (check.coverage.left_out, check.coverage.let_go) == (1, 1)
    told = CheckResult(
        "c",
        Verdict.MATCH,
        (match(),),
        missing_variables=ids("gone"),
        left_out_variables=ids("gone"),
    )
    assert told.coverage == check.coverage


def test_a_match_with_every_element_masked_is_refused() -> None:
    with pytest.raises(ValueError, match="no value to compare"):
        match(mask="land", masked_count=1000)
    assert match(element_count=0, masked_count=0).compared_elements == 0
    assert match(masked_count=999).compared_elements == 1


def test_the_document_counts_for_each_check_and_for_all() -> None:
    checks = (
        CheckResult("a", Verdict.MATCH, (match(masked_count=1),)),
        CheckResult("b", Verdict.MATCH, (match(),), ignored_variables=ids("i")),
    )
    run = RunResult(Verdict.MATCH, checks)
    document = to_document(run)
    validator().validate(document)
    assert [one["coverage"]["compared_elements"] for one in document["checks"]] == [999, 1000]
    assert document["coverage"]["compared_variables"] == 2
    assert document["coverage"]["ignored"] == document["coverage"]["masked_elements"] == 1
    assert document["coverage"]["text"] == run.coverage.text


def test_a_forged_coverage_is_worked_out_anew() -> None:
    run = RunResult(Verdict.MATCH, (CheckResult("a", Verdict.MATCH, (match(masked_count=1),)),))
    document = to_document(run)
    document["coverage"] = {"text": "compared everything"}
    document["checks"][0]["coverage"] = {"text": "compared everything"}
    assert to_document(from_document(document))["coverage"]["masked_elements"] == 1


# --- what every output says of it -----------------------------------------------------------------


def terminal(run: RunResult) -> str:
    stream = io.StringIO()
    render(run, make_console(stream))
    return stream.getvalue()


def page(run: RunResult) -> str:
    text = re.sub(r"<(style|script)>.*?</\1>", "", render_html(run), flags=re.DOTALL)
    return unescape(re.sub("<[^>]*>", "", text))


def failure(run: RunResult) -> str:
    return "\n".join(line for one in run.checks for line in failure_lines("title", one, ()))


OUTPUTS = {
    "terminal": terminal,
    "json": lambda run: json.dumps(to_document(run)),
    "page": page,
    "markdown": lambda run: re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), render_markdown(run)),
    "junit": render_junit,
    "sarif": render_sarif,
    "annotations": render_annotations,
}
LEFT_OUT = {"ignored_variables": ids("i", "j"), "left_out_variables": ids("i")}
# Checks that match, and did not compare everything: what has to be said.
PARTIAL: dict[str, tuple[CheckResult, str]] = {
    "ignored": (CheckResult("c", Verdict.MATCH, (match(),), **LEFT_OUT), "2 variables (ignore)"),
    "of other iterations": (
        CheckResult("c", Verdict.MATCH, (match(),), ignored_variables=ids("i", "j"), uncommon=1),
        "1 variable (ignore), 1 variable of iterations left out",
    ),
    "ignored in the new run": (
        CheckResult("c", Verdict.MATCH, (match(),), ignored_variables=ids("i")),
        "1 variable (ignore)",
    ),
    "let go": (
        CheckResult("c", Verdict.MATCH, (match(),), missing_variables=ids("i")),
        "1 variable missing",
    ),
    "new": (
        CheckResult("c", Verdict.MATCH, (match(),), extra_variables=ids("i")),
        "1 variable extra",
    ),
    "masked": (
        CheckResult("c", Verdict.MATCH, (match(mask="land", masked_count=400),)),
        "400 values masked",
    ),
    "masked, and nobody counted": (
        CheckResult("c", Verdict.MATCH, (match(mask="land"),)),
        "1 variable in part by a mask",
    ),
    "excluded": (
        CheckResult("c", Verdict.MATCH, (match(),), excluded_files=1),
        "1 file (exclude)",
    ),
    "fill values": (
        CheckResult("c", Verdict.MATCH, (match(has_fill_values=True),)),
        "fill values of 1 variable",
    ),
}
# Sentences that are true only if every number was compared.
CLAIMS = re.compile(r"(?i)all numbers|all 1,?000 values(?! \(less)|everything match|every number")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("case", PARTIAL)
def test_no_output_claims_more_than_was_compared(output: str, case: str) -> None:
    check, words = PARTIAL[case]
    run = RunResult(Verdict.MATCH, (check, CheckResult("other", Verdict.MATCH, (match(),))))
    text = OUTPUTS[output](run)
    assert words in text
    is_masked = "masked" in case
    for claim in CLAIMS.finditer(text):
        assert "elements" in claim[0], claim
        # The other check has compared all of its elements; the masked variable has not.
        assert not is_masked or output in ("page", "terminal"), claim
    assert run.verdict.exit_code == 0


@pytest.mark.parametrize("output", OUTPUTS)
def test_what_compared_everything_says_so(output: str) -> None:
    run = RunResult(Verdict.MATCH, (CheckResult("c", Verdict.MATCH, (match(), match("y"))),))
    text = OUTPUTS[output](run)
    assert "not compared" not in text.replace("was not compared is not a match", "").replace(
        "Not compared", ""
    )
    said = {"terminal": "match  all 2 variables", "json": '"text": "compared 2 variables, 2,000 v'}
    if output in ("page", "markdown", "annotations"):
        assert "All numbers match" in text
    elif output in said:
        assert said[output] in text


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("check", LEFT_OUT, "1 variable of the golden was not compared (ignore)"),
        ("compare", LEFT_OUT, "1 variable of A was not compared (ignore)"),
        ("record", LEFT_OUT, "1 variable of A was not compared (ignore)"),
        (
            "pytest",
            {"missing_variables": ids("a", "b")},
            "2 variables of the golden were not compared (gone, not strict)",
        ),
        (
            "check",
            {**LEFT_OUT, "missing_variables": ids("a")},
            "2 variables of the golden were not compared (ignore; gone, not strict)",
        ),
    ],
)
def test_the_headline_names_what_of_the_golden_was_left_out(
    kind: str, more: Any, words: str
) -> None:
    run = RunResult(Verdict.MATCH, (CheckResult("c", Verdict.MATCH, (match(),), **more),), kind)
    assert terminal(run).splitlines()[0] == f"match, but {words}  1 variable"
    assert f"Numbers match, but {words}" in page(run)
    assert f"Numbers match, but {words}" in OUTPUTS["markdown"](run).splitlines()[0]
    assert f"Numbers match, but {words}" in render_annotations(run)


@pytest.mark.parametrize("verdict", [Verdict.DIFFER, Verdict.NOT_COMPARABLE])
@pytest.mark.parametrize("output", [*OUTPUTS, "failure"])
def test_a_mismatch_says_what_was_not_compared_besides(output: str, verdict: Verdict) -> None:
    bad = VariableResult(
        "bad",
        verdict,
        reason="why",
        evidence=Evidence.DATA,
        element_count=10,
        masked_count=4,
        mask="land",
        differing_count=6,
    )
    check = CheckResult("c", verdict, (bad, match()), **LEFT_OUT)
    run = RunResult(verdict, (check,))
    text = failure(run) if output == "failure" else OUTPUTS[output](run)
    assert "2 variables (ignore)" in text
    if verdict is Verdict.DIFFER:
        assert "4 values masked" in text
        if output in ("terminal", "page", "junit", "failure"):
            assert "6 values (4 more are masked) differ" in text.replace("100 %; ", "")
    if output == "failure":
        assert len(text.splitlines()) <= MOST_LINES


def test_what_was_left_out_of_the_golden_is_skipped_in_junit() -> None:
    run = RunResult(Verdict.MATCH, (PARTIAL["ignored"][0],))
    (suite,) = ElementTree.fromstring(render_junit(run)).iter("testsuite")
    assert (suite.get("tests"), suite.get("skipped")) == ("2", "1")
    (case,) = (one for one in suite.iter("testcase") if one.find("skipped") is not None)
    assert case.get("name") == "i"


def test_names_are_told_in_json_and_by_verbose() -> None:
    check = PARTIAL["ignored"][0]
    run = RunResult(Verdict.MATCH, (check,))
    (told,) = to_document(run)["checks"]
    assert told["ignored_variables"] == [{"name": "i"}, {"name": "j"}]
    assert told["left_out_variables"] == [{"name": "i"}]
    stream = io.StringIO()
    render(run, make_console(stream), verbose=True)
    assert "left out: i\n" in stream.getvalue()
    assert "Left out of the golden: i" in page(run)


def test_masked_elements_did_not_stay_where_they_were() -> None:
    """The bar of those that did not move has none that nobody looked at."""
    histogram = (10, *[0] * 17, 5, *[0] * 15)
    variable = match(
        mask="land",
        element_count=15,
        masked_count=8,
        bound=ErrorBound(1.0),
        bound_share_histogram=histogram,
    )
    figure = histogram_of(variable)
    assert figure is not None
    assert ": 2</title>" in figure.image
    assert ": 10</title>" not in figure.image


def test_a_mask_of_unknown_extent_is_no_part_of_a_percentage() -> None:
    variable = VariableResult(
        "x",
        Verdict.DIFFER,
        evidence=Evidence.DATA,
        element_count=5,
        mask="land",
        differing_count=4,
    )
    run = RunResult(Verdict.DIFFER, (CheckResult("c", Verdict.DIFFER, (variable,)),))
    assert "4 of 5 values (less those masked) differ" in failure(run)
    assert ("mask", "land: what both sides mask is not compared") in list(
        facts_of(variable, ("golden", "new"))
    )
