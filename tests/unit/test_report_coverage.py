"""What a verdict covers is counted once, and every output says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ciwrap.model import (
    CheckResult,
    Coverage,
    Evidence,
    RunResult,
    VariableId,
    VariableResult,
    Verdict,
)
from ciwrap.report.document import from_document, to_document

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs/reference/result.schema.json").read_text(encoding="utf-8")
)


def match(name: str = "x", **more: Any) -> VariableResult:
    facts = {"element_count": 1000, "differing_count": 0, "suspect_chunks": 0, **more}
    return VariableResult(name, Verdict.MATCH, evidence=Evidence.DATA, **facts)


def lost(name: str) -> VariableResult:
    return VariableResult(name, Verdict.NOT_COMPARABLE, reason="gone", element_count=1000)


def ids(*names: str) -> tuple[VariableId, ...]:
    return tuple(VariableId(name) for name in names)


def test_everything_compared_is_one_short_line() -> None:
    check = CheckResult("c", Verdict.MATCH, (match("x"), match("y", element_count=203)))
    assert check.coverage == Coverage(compared_variables=2, compared_elements=1203)
    assert check.coverage.text == "compared 2 variables, 1,203 elements"


def test_each_reason_has_a_part_of_the_line() -> None:
    check = CheckResult(
        "c",
        Verdict.NOT_COMPARABLE,
        (
            match("x", mask="land", masked_count=40, filled_count=7),
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
        hidden_links=("/a",),
        attributes="none",
    )
    assert check.coverage.text == (
        "compared 2 variables, 1,953 elements; not compared: 1 variable not comparable,"
        " 1 variable missing, 1 variable extra, 3 variables by ignore, 40 elements masked,"
        " 1 variable in part by a mask, 7 elements with fill values, 2 files by exclude,"
        " 1 link not followed, attributes"
    )
    assert check.coverage.left_out == 1


def test_what_was_not_comparable_counts_nothing_as_compared() -> None:
    check = CheckResult("c", Verdict.NOT_COMPARABLE, (lost("x"),))
    assert check.coverage.text == "compared nothing; not compared: 1 variable not comparable"
    none = CheckResult("c", Verdict.NOT_COMPARABLE)
    assert none.coverage.text == "compared nothing"


def test_what_is_gone_without_a_verdict_was_left_out_whoever_says_so() -> None:
    check = CheckResult("c", Verdict.MATCH, (match(),), missing_variables=ids("gone"))
    assert check.coverage.left_out == 1
    told = CheckResult(
        "c",
        Verdict.MATCH,
        (match(),),
        missing_variables=ids("gone"),
        left_out_variables=ids("gone"),
    )
    assert told.coverage == check.coverage


def test_a_match_with_every_element_masked_is_refused() -> None:
    with pytest.raises(ValueError, match="no element to compare"):
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
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
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
