"""Markdown, HTML and annotations of an outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from ciwrap.action.runner import command_line
from ciwrap.model import MessageLevel, Verdict
from ciwrap.report.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ciwrap.action.inputs import Inputs
    from ciwrap.action.outcome import Outcome
    from ciwrap.config import Config
    from ciwrap.model import CheckResult, RunResult

# GitHub keeps this many of each kind from a step and drops the rest without a word.
MOST_ANNOTATIONS = 10
_MOST_ROWS = 50
_LONGEST_ANNOTATION = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """Where annotations point to: the configuration, relative to the repository, and the line of
    each check in it. None where there is none within the repository.
    """

    config: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def place_of(config: Config | None, workspace: Path) -> Place:
    if config is None or not config.path.is_relative_to(workspace):
        return Place()
    lines = {check.name: check.line for check in config.checks if check.line is not None}
    return Place(config.path.relative_to(workspace).as_posix(), lines)


def markdown(outcome: Outcome, inputs: Inputs) -> str:
    """For the job summary and comments."""
    name = f" ({inputs.platform_key})" if inputs.platform_key else ""
    lines = [f"### ciwrap{name}: {outcome.status.replace('-', ' ')}", ""]
    if outcome.problem:
        lines += [plain(outcome.problem), ""]
    for check in outcome.result.checks if outcome.result else ():
        lines += _check_lines(check)
    return "\n".join(lines) + "\n"


def plain(text: object) -> str:
    """Text from outside as Markdown that shows it and does nothing else."""
    shown = escape(safe_name(text), quote=True)
    return "".join(f"&#{ord(char)};" if char in "\\`*_{}[]()#+-.!|~@:/" else char for char in shown)


def _check_lines(check: CheckResult) -> list[str]:
    lines = [f"**{plain(check.name)}**: {check.verdict.words}", ""]
    lines += [f"- {plain(message.text)}" for message in check.messages[:_MOST_ROWS]]
    others = [one for one in check.variables if one.verdict is not Verdict.MATCH]
    if others:
        lines += ["", "| variable | verdict | |", "|---|---|---|"]
        for variable in others[:_MOST_ROWS]:
            why = variable.reason or f"{variable.differing_count or 'some'} elements"
            lines.append(f"| {plain(variable.id.text)} | {variable.verdict.words} | {plain(why)} |")
        if len(others) > _MOST_ROWS:
            lines.append(f"\n+{len(others) - _MOST_ROWS} more")
    return [*lines, ""]


def write_html(path: Path, result: RunResult) -> None:
    body = escape(safe_name(result.verdict.words))
    path.write_text(f"<!doctype html><meta charset=utf-8><title>ciwrap</title><p>{body}\n")


def annotation_lines(outcome: Outcome, place: Place) -> Iterator[str]:
    """Workflow commands for what went wrong, worst first, as many as GitHub shows."""
    found: list[str] = []
    if outcome.problem:
        found.append(_annotation(outcome.problem, "ciwrap", place, None))
    checks = outcome.result.checks if outcome.result else ()
    for check in sorted(checks, key=lambda one: one.verdict is not Verdict.NOT_COMPARABLE):
        if check.verdict is Verdict.MATCH:
            continue
        errors = [one.text for one in check.messages if one.level is MessageLevel.ERROR]
        others = [one for one in check.variables if one.verdict is not Verdict.MATCH]
        texts = errors + [f"{one.id.text}: {one.verdict.words}" for one in others]
        found += [_annotation(text, check.name, place, check.name) for text in texts]
    yield from found[: MOST_ANNOTATIONS - (len(found) > MOST_ANNOTATIONS)]
    if len(found) > MOST_ANNOTATIONS:
        more = f"+{len(found) - MOST_ANNOTATIONS + 1} more: see the job summary"
        yield command_line("error", more, title="ciwrap")


def _annotation(text: str, title: str, place: Place, check: str | None) -> str:
    return command_line(
        "error",
        safe_name(text, _LONGEST_ANNOTATION),
        title=safe_name(title),
        file=place.config,
        line=place.lines.get(check) if check is not None else None,
    )
