"""JUnit XML: a suite for each check, a case for each variable over all its checkpoints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ciwrap.model import MessageLevel, Verdict
from ciwrap.report import findings
from ciwrap.report.lead import worst_words
from ciwrap.report.paths import portable
from ciwrap.report.sides import sides_of
from ciwrap.report.text import safe_name, safe_text
from ciwrap.report.where import by_name
from ciwrap.report.wording import detail_lines, headline, unlisted_words
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult, VariableId, VariableResult

_LONGEST = 4000
_MOST_CHECKPOINTS = 20
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
        case = _error_case("ciwrap", run.kind, loose or ["nothing was compared"])
        suites.append(_finished("ciwrap", [case], run.seconds, run))
    root = ElementTree.Element("testsuites", name="ciwrap")
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    root.set("time", f"{run.seconds:.3f}")
    root.extend(suites)
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(check: CheckResult, run: RunResult) -> ElementTree.Element:
    name = safe_name(findings.check_title(check))
    ordered = by_name(sorted(check.variables, key=lambda one: one.id.sort_key)).values()
    cases = [_case(name, results, sides_of(check, results[0])) for results in ordered]
    errors = [message.text for message in check.messages if message.level is MessageLevel.ERROR]
    if check.verdict.is_statistical:
        # Of a check whose golden is an ensemble.
        cases, errors = [_error_case(name, "statistics", errors, check.verdict)], []
    if errors or not cases:
        cases.append(_error_case(name, "outputs", errors or ["nothing was compared"]))
    cases += [_skipped_case(name, one) for one in check.left_out_variables]
    suite = _finished(name, cases, check.seconds, run)
    suite.insert(0, _properties(check, run))
    return suite


def _properties(check: CheckResult, run: RunResult) -> ElementTree.Element:
    properties = ElementTree.Element("properties")
    unlisted = unlisted_words(replace(run, verdict=check.verdict, checks=(check,)))
    for key, value in (
        ("ciwrap verdict", check.verdict.words),
        ("ciwrap coverage", check.coverage.text),
        ("ciwrap not listed", unlisted),
    ):
        if value:
            ElementTree.SubElement(properties, "property", name=key, value=value)
    return properties


def _finished(
    name: str, cases: list[ElementTree.Element], seconds: float, run: RunResult
) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{seconds:.3f}")
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", run.started_at[:19]):
        suite.set("timestamp", run.started_at[:19])
    suite.extend(cases)
    return suite


def _case(check: str, results: list[VariableResult], sides: tuple[str, str]) -> ElementTree.Element:
    """Of one variable. How long each took is not known, so no case has a time."""
    is_alone = len(results) == 1
    name = results[0].id.text if is_alone else results[0].name
    case = _empty_case(check, name)
    bad = [one for one in results if one.verdict is not Verdict.MATCH]
    if not bad:
        return case
    verdict = Verdict.worst(one.verdict for one in bad)
    first = next(one for one in bad if one.verdict is verdict)
    words = findings.sentence_on(first, sides)
    if not is_alone:
        words = f"{len(bad):,} of {len(results):,} checkpoints, first {first.id.text}: {words}"
        words = "; ".join(filter(None, (words, worst_words(results))))
    lines = [line for one in bad[:_MOST_CHECKPOINTS] for line in _lines(one, sides, is_alone)]
    if len(bad) > _MOST_CHECKPOINTS:
        lines.append(f"... and {len(bad) - _MOST_CHECKPOINTS:,} more checkpoints")
    tag = "error" if verdict is Verdict.NOT_COMPARABLE else "failure"
    _add(case, tag, safe_text(words), "\n".join(lines), verdict.value)
    return case


def _lines(one: VariableResult, sides: tuple[str, str], is_alone: bool) -> list[str]:
    lines = [headline(one), *detail_lines(one, sides)]
    return lines if is_alone else [f"{safe_text(one.id.text)}: {lines[0]}", *lines[1:]]


def _skipped_case(check: str, variable: VariableId) -> ElementTree.Element:
    """What the golden holds and the configuration left out."""
    case = _empty_case(check, variable.text)
    ElementTree.SubElement(case, "skipped", message="not compared: left out by the configuration")
    return case


def _error_case(
    check: str, name: str, texts: list[str], verdict: Verdict = Verdict.NOT_COMPARABLE
) -> ElementTree.Element:
    """Of what is no variable; without texts nothing is wrong with it."""
    case = _empty_case(check, name)
    if texts:
        tag = "error" if verdict is Verdict.NOT_COMPARABLE else "failure"
        body = "\n".join(safe_text(text) for text in texts)
        _add(case, tag, safe_text(texts[0]), body, verdict.value)
    return case


def _empty_case(check: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=check, name=safe_name(name))


def _add(case: ElementTree.Element, tag: str, message: str, body: str, kind: str) -> None:
    child = ElementTree.SubElement(case, tag, message=_clean(message), type=kind)
    child.text = _clean(body)


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)[:_LONGEST]
