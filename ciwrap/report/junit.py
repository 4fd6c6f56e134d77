"""JUnit XML: a suite for each check, a case for each variable and checkpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ciwrap.model import MessageLevel, Verdict
from ciwrap.report import findings
from ciwrap.report.paths import portable
from ciwrap.report.text import safe_name, safe_text
from ciwrap.report.wording import detail_lines, headline

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult, VariableId, VariableResult

_LONGEST = 4000
# XML 1.0 has no place for them, not even escaped; the rest of what is unprintable is visible.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(run: RunResult) -> str:
    """A variable that differs is a failure, one that is not comparable an error, and what the
    configuration left out of the golden was skipped.
    """
    run = portable(run)
    suites = [_suite(check, run) for check in run.checks]
    loose = [message.text for message in run.messages if message.level is MessageLevel.ERROR]
    if loose or not suites:
        suites.append(_loose_suite(run, loose or ["nothing was compared"]))
    root = ElementTree.Element(
        "testsuites",
        name="ciwrap",
        tests=_total(suites, "tests"),
        failures=_total(suites, "failures"),
        errors=_total(suites, "errors"),
        time=f"{run.seconds:.3f}",
    )
    root.extend(suites)
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _total(suites: list[ElementTree.Element], key: str) -> str:
    return str(sum(int(suite.get(key, "0")) for suite in suites))


def _suite(check: CheckResult, run: RunResult) -> ElementTree.Element:
    name = safe_name(findings.check_title(check))
    cases = [_case(name, variable) for variable in check.variables]
    errors = [message.text for message in check.messages if message.level is MessageLevel.ERROR]
    if errors or not cases:
        texts = errors or ["nothing was compared"]
        cases.append(_error_case(name, "outputs", texts))
    cases += [_skipped_case(name, one) for one in check.left_out_variables]
    suite = _finished(name, cases, check.seconds, run)
    suite.insert(0, _properties(check))
    return suite


def _properties(check: CheckResult) -> ElementTree.Element:
    properties = ElementTree.Element("properties")
    for key, value in (
        ("ciwrap verdict", check.verdict.words),
        ("ciwrap coverage", check.coverage.text),
    ):
        ElementTree.SubElement(properties, "property", name=key, value=value)
    return properties


def _loose_suite(run: RunResult, texts: list[str]) -> ElementTree.Element:
    return _finished("ciwrap", [_error_case("ciwrap", run.kind, texts)], run.seconds, run)


def _finished(
    name: str, cases: list[ElementTree.Element], seconds: float, run: RunResult
) -> ElementTree.Element:
    counts = {
        tag: sum(case.find(tag) is not None for case in cases)
        for tag in ("failure", "error", "skipped")
    }
    suite = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
        skipped=str(counts["skipped"]),
        time=f"{seconds:.3f}",
    )
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", run.started_at[:19]):
        suite.set("timestamp", run.started_at[:19])
    suite.extend(cases)
    return suite


def _case(check: str, variable: VariableResult) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=check, name=safe_name(variable.id.text), time="0"
    )
    if variable.verdict.is_alarm:
        words = findings.difference_sentence(variable)
        body = "\n".join([headline(variable), *detail_lines(variable)])
        _add(case, "failure", words, body, variable.verdict.value)
    elif variable.verdict is Verdict.NOT_COMPARABLE:
        _add(case, "error", headline(variable), headline(variable), "not_comparable")
    return case


def _skipped_case(check: str, variable: VariableId) -> ElementTree.Element:
    """What the golden holds and the configuration left out."""
    case = ElementTree.Element("testcase", classname=check, name=safe_name(variable.text), time="0")
    ElementTree.SubElement(case, "skipped", message="not compared: left out by the configuration")
    return case


def _error_case(check: str, name: str, texts: list[str]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=check, name=safe_name(name), time="0")
    body = "\n".join(safe_text(text) for text in texts)
    _add(case, "error", safe_text(texts[0]), body, "not_comparable")
    return case


def _add(case: ElementTree.Element, tag: str, message: str, body: str, kind: str) -> None:
    child = ElementTree.SubElement(case, tag, message=_clean(message), type=kind)
    child.text = _clean(body)


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)[:_LONGEST]
