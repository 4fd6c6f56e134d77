"""Markdown and annotations of an outcome, as GitHub shows them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.action.runner import command_line
from ciwrap.model import MessageLevel, Verdict
from ciwrap.report import findings
from ciwrap.report.markdown import escaped, render_markdown
from ciwrap.report.paths import portable
from ciwrap.report.sides import sides_of
from ciwrap.report.text import safe_name
from ciwrap.report.view import groups_of, where_words
from ciwrap.report.wording import headline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ciwrap.action.inputs import Inputs
    from ciwrap.action.outcome import Outcome
    from ciwrap.config import Config
    from ciwrap.model import RunResult
    from ciwrap.report.view import Group

# GitHub keeps this many of each kind from a step and drops the rest without a word.
MOST_ANNOTATIONS = 10
_LONGEST_ANNOTATION = 1000
_LONGEST_LINE = 300


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
    head = f"_Platform: {escaped(inputs.platform_key)}_\n\n" if inputs.platform_key else ""
    if outcome.status == "error":
        head += f"**ciwrap: error.** {escaped(outcome.problem, 1000)}\n\n"
        head += _last_lines(outcome.last_lines)
    return head + (render_markdown(outcome.result) if outcome.result is not None else "")


def from_artifact(outcome: Outcome, inputs: Inputs, stage: Path) -> str:
    """How the numbers of this run become goldens; '' where none wait."""
    if outcome.result is None or not (stage / "pending").is_dir() or not inputs.upload:
        return ""
    name = inputs.artifact_name
    options = f" --config {shlex.quote(inputs.config)}" if inputs.config else ""
    folder = _golden_dir_words(outcome.result, inputs)
    words = f"ciwrap accept --from {name}.zip{options}{folder} --reason 'WHY'"
    fence = "`" * 8
    return (
        f"Of this very run, with the artifact `{name}` (its page is `report.html`) beside a clone:"
        f"\n\n{fence}sh\n{safe_name(words, _LONGEST_ANNOTATION)}\n{fence}\n"
    )


def _golden_dir_words(result: RunResult, inputs: Inputs) -> str:
    """The option that names the goldens of this platform, where they have a folder of their own."""
    paths = (check.golden_path for check in result.checks if check.golden_path is not None)
    path = next(paths, None)
    if path is None or not (inputs.golden_dir or inputs.platform_key):
        return ""
    return f" --golden-dir {shlex.quote(PurePosixPath(path).parent.as_posix())}"


def _last_lines(text: str) -> str:
    """What a program printed last, as text in which nothing has a meaning."""
    lines = [safe_name(line, _LONGEST_LINE) for line in text.splitlines()]
    if not lines:
        return ""
    ticks = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return "\n".join(["It printed last:", "", f"{fence}text", *lines, fence, "", ""])


def annotation_lines(outcome: Outcome, place: Place) -> Iterator[str]:
    """Workflow commands for what went wrong, worst first, as many as GitHub shows of a kind."""
    errors, warnings = [], []
    result = None if outcome.result is None else portable(outcome.result)
    if outcome.problem:
        errors.append(_annotation("error", outcome.problem, "ciwrap", place))
    if result is not None:
        bad = _bad(result)
        errors += [_of_group(group, place) for group in bad if group.verdict.is_alarm]
        # What could not be read, before what is missing because of that.
        if not outcome.problem:
            errors += _of_messages(result, MessageLevel.ERROR, place)
        errors += [_of_group(group, place) for group in bad if not group.verdict.is_alarm]
        warnings = _of_messages(result, MessageLevel.WARNING, place)
    yield from limited("error", errors)
    yield from limited("warning", warnings)


def _bad(result: RunResult) -> list[Group]:
    return [group for group in groups_of(result) if group.verdict is not Verdict.MATCH]


def _of_group(group: Group, place: Place) -> str:
    first = group.first
    known = group.verdict.is_alarm
    sides = sides_of(group.check, first)
    what = findings.difference_sentence(first, sides) if known else headline(first)
    more = where_words(group)
    text = f"{findings.place(first)}: {what}. {more[:1].upper()}{more[1:]}".strip()
    title = f"ciwrap: {group.name} {group.verdict.words}"
    return _annotation("error", text, title, place, group.check.name)


def _of_messages(result: RunResult, level: MessageLevel, place: Place) -> list[str]:
    kind = level.value
    found = [
        _annotation(kind, one.text, "ciwrap", place)
        for one in result.messages
        if one.level is level
    ]
    return found + [
        _annotation(kind, one.text, f"ciwrap: {check.name}", place, check.name)
        for check in result.checks
        for one in check.messages
        if one.level is level
    ]


def _annotation(kind: str, text: str, title: str, place: Place, check: str | None = None) -> str:
    return command_line(
        kind,
        safe_name(text, _LONGEST_ANNOTATION),
        title=safe_name(title),
        file=place.config,
        line=place.lines.get(check) if check is not None else None,
    )


def limited(kind: str, found: list[str]) -> Iterator[str]:
    yield from found[: MOST_ANNOTATIONS - (len(found) > MOST_ANNOTATIONS)]
    if len(found) > MOST_ANNOTATIONS:
        more = f"+{len(found) - MOST_ANNOTATIONS + 1} more: see the job summary"
        yield command_line(kind, more, title="ciwrap")
