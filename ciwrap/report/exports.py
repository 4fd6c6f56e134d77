"""JUnit XML (a suite for each check, a case for each variable over checkpoints), SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from msgspec.structs import replace

from ciwrap.model import (
    CheckResult,
    Message,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.report.lead import (
    Group,
    check_prefix,
    check_title,
    golden_file,
    groups_of,
    sentence_on,
)
from ciwrap.report.lead import place as findings_place
from ciwrap.report.text import portable, safe_name, safe_text
from ciwrap.report.top import worst_words
from ciwrap.report.view import more_words
from ciwrap.report.where import by_name
from ciwrap.report.words import detail_lines, headline, sides_of, unlisted_words

_LONGEST_JUNIT_TEXT = 4000
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
    name = safe_name(check_title(check))
    ordered = by_name(sorted(check.variables, key=lambda one: one.id.sort_key)).values()
    cases = [_case(name, results, sides_of(check, results[0])) for results in ordered]
    errors = [message.text for message in check.messages if message.level is MessageLevel.ERROR]
    if check.verdict.is_statistical:
        # Of a check whose golden is an ensemble.
        cases, errors = [_error_case(name, "statistics", errors, check.verdict)], []
    if errors or not cases:
        cases.append(_error_case(name, "outputs", errors or ["nothing was compared"]))
    for one in check.left_out_variables:
        # What the golden holds and the configuration left out.
        cases.append(_empty_case(name, one.text))
        words = "not compared: left out by the configuration"
        ElementTree.SubElement(cases[-1], "skipped", message=words)
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
    words = sentence_on(first, sides)
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
    return _NOT_XML.sub("?", text)[:_LONGEST_JUNIT_TEXT]


SCHEMA_URL = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub takes 25,000 results of a run and shows 5,000 of them.
MOST_RESULTS = 5000
_LONGEST_SARIF_TEXT = 2000
_RULES = (
    ("differ", "Numbers differ", "A number moved beyond its error bound."),
    (
        "undecided",
        "Numbers may differ",
        "Digests differ; without the golden's data nobody can tell whether a number does.",
    ),
    ("not-comparable", "Not compared", "What was not compared is not a match."),
    ("inconsistent", "Statistics moved", "The statistics of runs are not those of the ensemble."),
)


def render_sarif(run: RunResult) -> str:
    """One run; a variable of a history is one result, at its first divergence."""
    run = portable(run)
    bad = [group for group in groups_of(run) if group.verdict is not Verdict.MATCH]
    results = [_of_group(run, group) for group in bad]
    results += list(_of_messages(run.messages, "", "", "not-comparable"))
    for check in run.checks:
        is_moved = check.verdict is Verdict.INCONSISTENT
        rule = "inconsistent" if is_moved else "not-comparable"
        title, said = check_title(check), check_prefix(run, check)
        results += _of_messages(check.messages, title, said, rule)
    left_out = len(results) - MOST_RESULTS
    notes = [_note(f"{left_out} more results are left out here")] if left_out > 0 else []
    if unlisted := unlisted_words(run):
        notes.append(_note(unlisted))
    if not run.coverage.is_whole:
        notes.append(_note(run.coverage.text))
    one_run = {
        "tool": {"driver": _driver(run)},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "columnKind": "unicodeCodePoints",
        "results": results[:MOST_RESULTS],
    }
    document = {"$schema": SCHEMA_URL, "version": "2.1.0", "runs": [one_run]}
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _of_messages(
    messages: Iterable[Message], check: str, prefix: str, rule: str
) -> Iterator[dict[str, Any]]:
    """prefix: what the text begins with."""
    for message in messages:
        if message.level is MessageLevel.ERROR:
            text = prefix + safe_text(message.text)
            yield _result(rule, text, message.file, (check, "message"))


def _driver(run: RunResult) -> dict[str, Any]:
    driver: dict[str, Any] = {
        "name": "ciwrap",
        "rules": [
            {
                "id": rule,
                "name": title.title().replace(" ", ""),
                "shortDescription": {"text": title},
                "fullDescription": {"text": text},
                "defaultConfiguration": {"level": "error"},
            }
            for rule, title, text in _RULES
        ],
    }
    if run.ciwrap_version:
        driver["version"] = safe_name(run.ciwrap_version)
    return driver


def _note(text: str) -> dict[str, Any]:
    return {"level": "note", "message": {"text": text}}


def _of_group(run: RunResult, group: Group) -> dict[str, Any]:
    first = group.first
    rule = group.verdict.value if group.verdict.is_alarm else "not-comparable"
    words = sentence_on(first, sides_of(group.check, first))
    place = check_prefix(run, group.check, group.name) + findings_place(first)
    text = "; ".join([f"{place}: {words}", *more_words(group)])
    key = (check_title(group.check), group.name)
    file = golden_file(group.check) or group.check.golden_path
    return _result(rule, text, file, key)


def _result(rule: str, text: str, file: str | None, key: tuple[str, str]) -> dict[str, Any]:
    # The same finding in the next run has the same print, whatever its numbers.
    fingerprint = hashlib.sha256("\0".join((rule, *key)).encode("utf-8", "surrogatepass"))
    place = {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}
    return {
        "ruleId": rule,
        "ruleIndex": [one for one, _, _ in _RULES].index(rule),
        "level": "error",
        "message": {"text": safe_name(text, _LONGEST_SARIF_TEXT)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"ciwrap/v1": fingerprint.hexdigest()},
    }


def _uri(file: str | None) -> str:
    """A path as a relative reference; GitHub wants a location for every result."""
    text = file or "ciwrap.yaml"
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "backslashreplace")
    return quote(raw.lstrip(b"/")) or "."
