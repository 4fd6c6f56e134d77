"""Summary, annotations, JUnit, SARIF, merging, trimming: bounded, well-formed, never forged."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from msgspec.structs import replace
from report_scenarios import HOSTILE, hostile, many

from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    Details,
    ErrorBound,
    Message,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import ChunkMap
from ciwrap.report.document import MOST_DETAILED, merge_results, trimmed
from ciwrap.report.exports import render_junit, render_sarif
from ciwrap.report.markdown import (
    MOST_BYTES,
    MOST_PER_TYPE,
    escaped,
    render_annotations,
    render_markdown,
)
from ciwrap.report.page import render_html
from ciwrap.report.text import relative_to

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(os.environ.get("CIWRAP_SCHEMAS", ROOT / "build/report-tests/schemas"))


def differ(name: str = "x", **more: Any) -> VariableResult:
    facts = {"element_count": 10, "differing_count": 1, "bound": ErrorBound(1e-6), **more}
    return VariableResult(name, Verdict.DIFFER, **facts)


def match(name: str = "x", **more: Any) -> VariableResult:
    return VariableResult(name, Verdict.MATCH, element_count=10, differing_count=0, **more)


def check(name: str, *variables: VariableResult, **more: Any) -> CheckResult:
    return CheckResult(name, Verdict.worst(v.verdict for v in variables), variables, **more)


def run_of(*checks: CheckResult, **more: Any) -> RunResult:
    return RunResult(Verdict.worst(one.verdict for one in checks), checks, **more)


ALL = {
    "hostile": hostile,
    "many": lambda: many(2000, 300),
    "match": lambda: run_of(check("c", match())),
    "nothing": lambda: RunResult(
        Verdict.NOT_COMPARABLE, messages=(Message(MessageLevel.ERROR, "no such file"),)
    ),
}


# --- summary --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_summary_is_never_dropped_for_its_size(name: str) -> None:
    text = render_markdown(ALL[name]())
    assert len(text.encode()) <= MOST_BYTES < 1 << 20
    assert text.startswith("## ")


def test_the_summary_of_the_longest_names_fits() -> None:
    checks = [check("n\u00e9" * 5000 + str(i), differ("v" * 9000)) for i in range(3000)]
    text = render_markdown(run_of(*checks))
    assert len(text.encode()) <= MOST_BYTES
    assert "more variables that do not match" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_no_markdown(text: str) -> None:
    made = escaped(text)
    assert not re.search(r"[\n\r`*\[\]<>|\\]", made.replace("<!-- -->", ""))
    # Nobody is mentioned, no issue is linked, no address becomes a link.
    assert not re.search(r"@\w|#\d|://|(?i:\bgh-\d)", re.sub(r"&#\d+;", "", made))


def test_what_github_links_by_itself_is_parted() -> None:
    for text in ("GH-1", "see gh-22", "www.example.org"):
        assert escaped(text).replace("<!-- -->", "") == text
        assert "<!-- -->" in escaped(text)
    assert escaped("high-1") == "high-1"


def test_a_summary_shows_the_sentence_and_the_command() -> None:
    mesh = check("mesh", differ(max_bound_share=42.0), golden_path="golden/mesh.golden")
    text = render_markdown(run_of(mesh))
    assert (
        "**Difference: <code>x</code>: 1 of 10 values differs by more than the bound (atol=1e-6);"
        " up to 42 x" in text
    )
    assert "\nciwrap accept mesh --reason 'WHY'\n" in text


def test_names_in_a_summary_lead_to_the_cards_of_the_page() -> None:
    missing = [
        VariableResult(name, Verdict.NOT_COMPARABLE, reason="it is gone") for name in ("a", "b")
    ]
    worst = [differ(name, max_bound_share=share) for name, share in (("u", 9.0), ("v", 90.0))]
    run = run_of(check("mesh", *missing, *worst))
    text = render_markdown(run, "https://example.org/a b/(1).html", "https://example.org/d.png")
    page = render_html(run)
    for name in ("a", "b", "u", "v"):
        place = r"https://example\.org/a%20b/%281%29\.html#c(\d)"
        (number,) = re.findall(rf"\| \[{name}\]\({place}\)", text)
        row = page[: page.index(f"<bdi>{name}</bdi></a>")]
        assert row.endswith(f'<a href="#c{number}">')
    assert "![golden, new and difference](https://example.org/d.png)" in text
    assert "](" not in render_markdown(run)


# --- annotations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_annotations_are_as_many_as_github_shows(name: str) -> None:
    lines = render_annotations(ALL[name]()).splitlines()
    assert lines
    for kind in ("error", "warning", "notice"):
        own = [line for line in lines if line.startswith(f"::{kind} ")]
        assert len(own) <= MOST_PER_TYPE
    assert all(re.match(r"::(error|warning|notice) [^\n]*::", line) for line in lines)


def test_what_is_left_out_is_counted() -> None:
    run = run_of(*(check(f"c{i}", differ()) for i in range(25)))
    lines = render_annotations(run).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error title=ciwrap::+16 more; see the summary or the report"
    assert len(render_annotations(run_of(*run.checks[:10])).splitlines()) == 10


def test_checks_of_one_name_are_told_apart_everywhere() -> None:
    """The legs of a matrix: each has a check `c` with a variable `x`, and an error."""
    error = Message(MessageLevel.ERROR, "it is damaged")
    legs = [check("c", differ(), messages=(error,), label=label) for label in ("gcc", "clang")]
    run = run_of(*legs)
    results = json.loads(render_sarif(run))["runs"][0]["results"]
    texts = [one["message"]["text"] for one in results]
    prints = {one["partialFingerprints"]["ciwrap/v1"] for one in results}
    assert len(prints) == len(results) == 4
    for told in (render_annotations(run).splitlines(), texts):
        assert len(told) == len(set(told)) == 4
        for label in ("gcc", "clang"):
            assert sum(f"c ({label})" in one for one in told) == 2, told
    alone = run_of(check("c", differ()))
    assert "title=ciwrap%3A x differ" in render_annotations(alone)


def test_what_could_not_be_read_is_among_the_annotations() -> None:
    bad = tuple(replace(differ(), name=f"v{at}") for at in range(20))
    error = Message(MessageLevel.ERROR, "outputs/b.npz is no archive")
    run = run_of(replace(check("c", *bad, messages=(error,)), verdict=Verdict.NOT_COMPARABLE))
    lines = render_annotations(run).splitlines()
    assert lines[0].endswith("::outputs/b.npz is no archive")
    assert lines[MOST_PER_TYPE - 1].endswith("::+12 more; see the summary or the report")


def test_annotations_name_files_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    inside = run_of(check("c", differ(), golden_path="golden/c.golden"))
    assert "file=sub/golden/c.golden.yaml," in render_annotations(inside)
    outside = run_of(check("c", differ(), golden_path="../../c.golden"))
    assert "file=" not in render_annotations(outside)


# --- JUnit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_junit_is_well_formed_and_counts_add_up(name: str) -> None:
    run = ALL[name]()
    root = ElementTree.fromstring(render_junit(run))
    assert root.tag == "testsuites"
    for tag, key in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
        for element in (root, *root.iter("testsuite")):
            assert int(element.get(key, "-1")) == len(list(element.iter(tag)))
    is_good = not list(root.iter("failure")) and not list(root.iter("error"))
    assert is_good == (run.verdict is Verdict.MATCH)


def test_a_failed_check_without_variables_is_an_error_in_junit() -> None:
    failed = CheckResult(
        "c", Verdict.NOT_COMPARABLE, messages=(Message(MessageLevel.ERROR, "no golden"),)
    )
    (case,) = ElementTree.fromstring(render_junit(run_of(failed))).iter("testcase")
    error = case.find("error")
    assert error is not None
    assert error.get("message") == "no golden"


@pytest.mark.parametrize("name", ALL)
def test_junit_fits_the_common_schema(name: str) -> None:
    path = SCHEMAS / "junit-10.xsd"
    if not path.is_file():
        pytest.skip("no JUnit schema here (tools/report-tests)")
    from lxml import etree

    schema = etree.XMLSchema(etree.parse(path))
    schema.assertValid(etree.fromstring(render_junit(ALL[name]()).encode()))


# --- SARIF ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_sarif_has_a_result_for_all_that_does_not_match(name: str) -> None:
    run = ALL[name]()
    document = json.loads(render_sarif(run))
    (only,) = document["runs"]
    rules = [rule["id"] for rule in only["tool"]["driver"]["rules"]]
    for result in only["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[\w./%~-]+", uri)
        assert not uri.startswith("/")
    assert bool(only["results"]) == (run.verdict is not Verdict.MATCH)


def test_the_same_finding_keeps_its_fingerprint() -> None:
    def prints(run: RunResult) -> list[str]:
        results = json.loads(render_sarif(run))["runs"][0]["results"]
        return [result["partialFingerprints"]["ciwrap/v1"] for result in results]

    before = run_of(check("c", differ(max_bound_share=3.0), differ("y")))
    after = run_of(check("c", differ(max_bound_share=9.0), differ("y", differing_count=4)))
    assert sorted(prints(before)) == sorted(prints(after))
    assert len(set(prints(before))) == 2


@pytest.mark.parametrize("name", ALL)
def test_sarif_fits_its_schema(name: str) -> None:
    path = SCHEMAS / "sarif-2.1.0.json"
    if not path.is_file():
        pytest.skip("no SARIF schema here (tools/report-tests)")
    schema = json.loads(path.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(json.loads(render_sarif(ALL[name]())))


# --- merging --------------------------------------------------------------------------------------


def test_shards_come_together() -> None:
    one = run_of(check("a", match()), environment={"cpu": "x"}, seconds=1.0)
    other = run_of(check("b", differ()), environment={"cpu": "x"}, seconds=2.0)
    merged = merge_results([one, other])
    assert merged.verdict is Verdict.DIFFER
    assert [(c.name, c.label, c.environment) for c in merged.checks] == [
        ("a", None, {}),
        ("b", None, {}),
    ]
    assert (merged.environment, merged.seconds) == ({"cpu": "x"}, 3.0)


def test_legs_of_a_matrix_are_told_apart() -> None:
    legs = [
        run_of(check("a", match()), environment={"cpu": "x"}),
        run_of(check("a", differ()), environment={"cpu": "y"}),
    ]
    merged = merge_results(legs, ["gcc", "clang"])
    assert [(c.label, c.environment) for c in merged.checks] == [
        ("gcc", {"cpu": "x"}),
        ("clang", {"cpu": "y"}),
    ]
    suites = ElementTree.fromstring(render_junit(merged)).iter("testsuite")
    assert [suite.get("name") for suite in suites] == ["a (gcc)", "a (clang)"]


def test_a_result_without_a_verdict_is_never_lost() -> None:
    broken = RunResult(
        Verdict.NOT_COMPARABLE,
        messages=(Message(MessageLevel.ERROR, "bad configuration"),),
        command=CommandOutcome("make", ".", 2, 1.0),
    )
    merged = merge_results([run_of(check("a", match())), broken], ["one", "two"])
    assert merged.verdict is Verdict.NOT_COMPARABLE
    assert [message.text for message in merged.messages] == ["two: bad configuration"]
    assert merged.command == broken.command


def test_merging_needs_results_and_their_labels() -> None:
    with pytest.raises(ValueError, match="no result"):
        merge_results([])
    with pytest.raises(ValueError, match="labels"):
        merge_results([run_of(check("a", match()))], ["one", "two"])


# --- what leaves the machine ----------------------------------------------------------------------


def test_details_are_kept_for_the_worst_only() -> None:
    details = Details(chunk_map=ChunkMap(1, 1, 1, (0, 1)))
    variables = [
        differ(f"v{i:04d}", details=details, max_bound_share=float(i + 2)) for i in range(400)
    ]
    kept = [v for v in trimmed(run_of(check("c", *variables))).checks[0].variables if v.details]
    assert len(kept) == MOST_DETAILED
    assert {v.name for v in kept} >= {f"v{i:04d}" for i in range(300, 400)}


def test_trimming_changes_nothing_else() -> None:
    details = Details(chunk_map=ChunkMap(1, 1, 1, (0, 1)))
    run = run_of(*(check(f"c{i}", differ(details=details)) for i in range(300)))
    bare = [replace(v, details=None) for c in run.checks for v in c.variables]
    cut = trimmed(run)
    assert [replace(v, details=None) for c in cut.checks for v in c.variables] == bare


def test_paths_below_the_folder_are_relative(tmp_path: Path) -> None:
    inside = str(tmp_path / "golden" / "c.golden")
    run = run_of(
        check(
            "c",
            VariableResult("x", Verdict.NOT_COMPARABLE, reason=f"{inside}: bad"),
            golden_path=inside,
            command=CommandOutcome("make", str(tmp_path), 1, 0.0, output_tail=f"in {inside}"),
        )
    )
    (only,) = relative_to(run, tmp_path).checks
    assert only.golden_path == "golden/c.golden"
    assert only.variables[0].reason == "golden/c.golden: bad"
    assert only.command is not None
    assert (only.command.working_dir, only.command.output_tail) == (".", "in golden/c.golden")
