"""GitHub annotations: workflow commands on stdout, no more than GitHub shows of them."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.model import MessageLevel, Verdict
from ciwrap.report import findings
from ciwrap.report.paths import portable
from ciwrap.report.sides import sides_of
from ciwrap.report.text import capital, safe_name
from ciwrap.report.view import groups_of, more_words

if TYPE_CHECKING:
    from ciwrap.model import RunResult
    from ciwrap.report.view import Group

# Per type and step; GitHub drops the rest without a word.
MOST_PER_TYPE = 10
_LONGEST = 2000


def render_annotations(run: RunResult) -> str:
    """Lines of `::error` and `::warning`: errors, then variables, worst first; the last one tells
    of what is left out.

    `::notice` says that the numbers match, and what was not compared. Nothing in a name or message
    can make a command.
    """
    portable_run = portable(run)
    # What could not be read is one line; what is missing because of it may be many.
    errors = _of_messages(portable_run, MessageLevel.ERROR)
    bad = [group for group in groups_of(portable_run) if group.verdict is not Verdict.MATCH]
    errors += [_of_group(portable_run, group) for group in bad]
    warnings = _of_messages(portable_run, MessageLevel.WARNING)
    lines = [*_limited("error", errors), *_limited("warning", warnings)]
    said = []
    if run.verdict.is_good:
        said.append(f"{findings.title(run)}: {findings.lead(portable_run)[0]}")
    if not run.coverage.is_whole:
        said.append(f"{capital(run.coverage.text)}.")
    if said:
        lines += _limited("notice", [("ciwrap", " ".join(said), None)])
    return "".join(f"{line}\n" for line in lines)


# Title, text, file.
_Annotation = tuple[str, str, "str | None"]


def _of_group(run: RunResult, group: Group) -> _Annotation:
    first = group.first
    named = findings.check_prefix(run, group.check, group.name) + safe_name(group.name, 80)
    title = f"ciwrap: {named} {group.verdict.words}"
    words = findings.sentence_on(first, sides_of(group.check, first))
    text = f"{findings.place(first)}: {words}"
    more = "; ".join(more_words(group))
    return title, f"{text}. {capital(more)}".strip(), findings.golden_file(group.check)


def _of_messages(run: RunResult, level: MessageLevel) -> list[_Annotation]:
    found: list[_Annotation] = [
        ("ciwrap", message.text, message.file) for message in run.messages if message.level is level
    ]
    for check in run.checks:
        title = f"ciwrap: {safe_name(findings.check_title(check), 80)}"
        texts = [message.text for message in check.messages if message.level is level]
        found += [(title, text, findings.golden_file(check)) for text in texts]
    return found


def _limited(kind: str, found: list[_Annotation]) -> list[str]:
    shown = found if len(found) <= MOST_PER_TYPE else found[: MOST_PER_TYPE - 1]
    lines = [_line(kind, *one) for one in shown]
    if len(found) > len(shown):
        rest = f"+{len(found) - len(shown):,} more; see the summary or the report"
        lines.append(_line(kind, "ciwrap", rest, None))
    return lines


def _line(kind: str, title: str, text: str, file: str | None) -> str:
    properties = [f"title={_property(title)}"]
    inside = _in_repository(file)
    if inside is not None:
        properties.insert(0, f"file={_property(inside)}")
    return f"::{kind} {','.join(properties)}::{_escaped(safe_name(text, _LONGEST))}"


def _in_repository(file: str | None) -> str | None:
    """The path from the root of the repository, as GitHub wants it; None if it is outside."""
    if file is None or file.startswith(("...", "/")):
        return None
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace:
        try:
            file = str((Path.cwd() / file).resolve().relative_to(Path(workspace).resolve()))
        except ValueError:
            return None
    path = PurePosixPath(file)
    return None if ".." in path.parts else str(path)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(safe_name(text)).replace(":", "%3A").replace(",", "%2C")
