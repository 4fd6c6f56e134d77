"""SARIF 2.1.0, for code scanning: a result for each variable that does not match."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ciwrap.model import MessageLevel, Verdict
from ciwrap.report import findings
from ciwrap.report.paths import portable
from ciwrap.report.sides import sides_of
from ciwrap.report.text import safe_name, safe_text
from ciwrap.report.view import groups_of, more_words
from ciwrap.report.wording import unlisted_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ciwrap.model import Message, RunResult
    from ciwrap.report.view import Group

SCHEMA_URL = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub takes 25,000 results of a run and shows 5,000 of them.
MOST_RESULTS = 5000
_LONGEST = 2000
_RULES = (
    ("differ", "Numbers differ", "A number moved beyond its error bound."),
    (
        "suspect",
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
        title, said = findings.check_title(check), findings.check_prefix(run, check)
        results += _of_messages(check.messages, title, said, rule)
    left_out = len(results) - MOST_RESULTS
    notes = [_note(f"{left_out} more results are left out here")] if left_out > 0 else []
    if unlisted := unlisted_words(run):
        notes.append(_note(unlisted))
    if not run.coverage.is_whole:
        notes.append(_note(run.coverage.text))
    document = {
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(run)},
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
                "columnKind": "unicodeCodePoints",
                "results": results[:MOST_RESULTS],
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _of_messages(
    messages: Iterable[Message], check: str, said: str, rule: str
) -> Iterator[dict[str, Any]]:
    """said: what the text begins with."""
    for message in messages:
        if message.level is MessageLevel.ERROR:
            text = said + safe_text(message.text)
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
    words = findings.sentence_on(first, sides_of(group.check, first))
    place = findings.check_prefix(run, group.check, group.name) + findings.place(first)
    text = "; ".join([f"{place}: {words}", *more_words(group)])
    key = (findings.check_title(group.check), group.name)
    file = findings.golden_file(group.check) or group.check.golden_path
    return _result(rule, text, file, key)


def _result(rule: str, text: str, file: str | None, key: tuple[str, str]) -> dict[str, Any]:
    # The same finding in the next run has the same print, whatever its numbers.
    fingerprint = hashlib.sha256("\0".join((rule, *key)).encode("utf-8", "surrogatepass"))
    return {
        "ruleId": rule,
        "ruleIndex": [one for one, _, _ in _RULES].index(rule),
        "level": "error",
        "message": {"text": safe_name(text, _LONGEST)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(file)},
                    "region": {"startLine": 1},
                }
            }
        ],
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
