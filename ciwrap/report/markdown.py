"""The job summary on GitHub, short and worst first, and annotations: no more than GitHub shows."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from ciwrap.model import MessageLevel, RunResult, Verdict
from ciwrap.model.results import names_text
from ciwrap.report.cause_words import remedy_words
from ciwrap.report.digest_words import decide_words
from ciwrap.report.environment import difference_line, worst_differences
from ciwrap.report.lead import (
    Group,
    check_prefix,
    check_title,
    error_sentence,
    golden_file,
    groups_of,
    lead,
    other_messages,
    place,
    sentence_on,
    title,
)
from ciwrap.report.terminal import accept_command, accept_when
from ciwrap.report.text import at_most_text, capital, counts_words, plural, portable, safe_name
from ciwrap.report.view import card_numbers, more_words, numbers_too_words, row_of
from ciwrap.report.words import HINT, detail_lines, headline, sides_of, unlisted_words

# GitHub drops a summary of more than 1 MiB as a whole, and all steps of a job share it.
MOST_BYTES = 128 * 1024
MOST_GROUPS = 50
MOST_CHECKS = 50
MOST_TEXTS = 10
_MOST_NAMES = 4
MOST_MESSAGES = 20
_GOOD, _BAD = "\u2705", "\u274c"
_MARKS = {
    Verdict.MATCH: _GOOD,
    Verdict.UNDECIDED: "\U0001f7e0",
    Verdict.DIFFER: _BAD,
    Verdict.NOT_COMPARABLE: "\u26a0\ufe0f",
    Verdict.CONSISTENT: _GOOD,
    Verdict.INCONSISTENT: _BAD,
}
MOST_DIFFERENCES = 8
# What Markdown could take for its own, and what GitHub makes links and mentions of.
_SPECIAL = re.compile(r"(?i)://|www(?=\.)|\bgh(?=-\d)|[\\`*_{}\[\]<>#|~&$^!@]")
_CODE = re.compile("&#96;(.+?)&#96;")
# An empty comment parts what would be one word to GitHub.
_PARTED = {"@": "@<!-- -->", "#": "&#35;<!-- -->", "://": ":<!-- -->//"}


def escaped(text: object, longest: int = 200) -> str:
    """The text as it is, on one line, in Markdown: no markup, no mention, no link."""
    return _SPECIAL.sub(_harmless, safe_name(text, longest))


def escaped_sentence(text: str, longest: int) -> str:
    """As `escaped`, with what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escaped(text, longest))


def _harmless(match: re.Match[str]) -> str:
    found = match[0]
    if found.isalpha():
        return f"{found}<!-- -->"
    return _PARTED.get(found, f"&#{ord(found[0])};")


def render_markdown(run: RunResult, link: str = "", picture: str = "") -> str:
    """GitHub-flavoured Markdown of at most `MOST_BYTES`.

    link: the address where the page will lie; names then lead to its cards. picture: the address of
    an image of the first difference.
    """
    run = portable(run)
    groups = groups_of(run)
    counts = Counter(group.verdict for group in groups)
    said = counts_words(counts)
    lines = [f"## {_MARKS[run.verdict]} ciwrap: {title(run)}", ""]
    sentences = lead(run)
    for sentence in sentences:
        lines += [f"**{escaped_sentence(sentence, 900)}**", ""]
    unlisted = unlisted_words(run)
    if said:
        noun = "variables listed" if unlisted else "variables"
        lines += [f"{plural(len(run.checks), 'check')}; {noun}: {said}.", ""]
    lines += [f"{capital(unlisted)}.", ""] if unlisted else []
    lines += [f"{capital(run.coverage.text)}.", ""]
    lines += _messages(run, sentences)
    lines += _environment(run)
    if picture:
        lines += [f"![golden, new and difference]({_address(picture)})", ""]
    lines += _groups(run, groups, link)
    lines += _remedies(run, groups)
    lines += _texts(run)
    lines += _checks(run)
    accept = accept_command(run)
    if accept:
        fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", accept))])
        lines += [f"{capital(accept_when(run))}:", "", f"{fence}sh", accept, fence, ""]
    return _first_lines(lines)


def _messages(run: RunResult, sentences: Sequence[str]) -> list[str]:
    """What is told of all checks, and errors and warnings of each, but for those that the sentences
    at the top have told.
    """
    of_checks = (message for check in run.checks for message in other_messages(check))
    loud = [
        message
        for message in of_checks
        if message.level is not MessageLevel.NOTE or message.text.startswith(HINT)
    ]
    found = [
        message
        for message in (*run.messages, *loud)
        if error_sentence(message.text) not in sentences
    ]
    found.sort(key=lambda message: message.level is not MessageLevel.ERROR)
    lines = []
    for message in found[:MOST_MESSAGES]:
        # A hint begins with its own name.
        level = "" if message.text.startswith(HINT) else f"{message.level.value}: "
        lines.append(f"- {level}{escaped(message.text, 500)}")
    if len(found) > len(lines):
        lines.append(f"- ... and {len(found) - len(lines)} more")
    return [*lines, ""] if lines else []


def _environment(run: RunResult) -> list[str]:
    """What differs from the golden's environment; nothing where all matches."""
    found = worst_differences(run)
    if not found:
        return []
    lines = ["The environment, as far as it was seen, is not that of the golden:", ""]
    for one in found[:MOST_DIFFERENCES]:
        prove = f"; to prove that it matters: {escaped(one.prove)}" if one.prove else ""
        lines.append(f"- {escaped(difference_line(one), 300)}{prove}")
    if len(found) > MOST_DIFFERENCES:
        lines.append(f"- ... and {len(found) - MOST_DIFFERENCES} more")
    return [*lines, ""]


def _groups(run: RunResult, groups: Sequence[Group], link: str) -> list[str]:
    numbers, address = card_numbers(groups), _address(link)
    bad = [at for at, group in enumerate(groups) if group.verdict is not Verdict.MATCH]
    if not bad:
        return []
    head = "| | variable | where | how many differ | largest, x the bound |"
    lines = [head, "|---|---|---|--:|--:|"]
    for at in bad[:MOST_GROUPS]:
        card = f"{address}#c{numbers[at]}" if link and at in numbers else address
        lines.append(_group(groups[at], with_check=len(run.checks) > 1, link=card))
    if len(bad) > MOST_GROUPS:
        lines += ["", f"... and {len(bad) - MOST_GROUPS:,} more variables that do not match."]
    return [*lines, ""]


def _remedies(run: RunResult, groups: Sequence[Group]) -> list[str]:
    """How to decide what is undecided, and the lines of configuration that would help."""
    lines = []
    if decide := decide_words(one.verdict for group in groups for one in group.results):
        lines += [f"{capital(decide)}.", ""]
    found: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        for one in group.first.explanations:
            if one.remedy:
                key = (one.remedy, remedy_words(one))
                found.setdefault(key, []).append(
                    check_prefix(run, group.check, group.name) + group.name
                )
    for (remedy, when), names in list(found.items())[:MOST_MESSAGES]:
        said = names_text([escaped(name, 60) for name in names], _MOST_NAMES)
        beside = f", {escaped(when)}" if when else ""
        lines.append(f"- **{escaped(remedy, 200)}** would help {said}{beside}")
    return [*lines, ""] if found else lines


def _address(url: str) -> str:
    """An address as it may stand in brackets: nothing in it ends them."""
    return quote(url, safe=":/?#@!$&'*+,;=%~-._")


def _group(group: Group, *, with_check: bool, link: str) -> str:
    first, row = group.first, row_of(0, group)
    parts = [numbers_too_words(group), headline(first)]
    if group.verdict is not Verdict.NOT_COMPARABLE:
        parts = [*more_words(group), row.pattern]
    where = "; ".join(part for part in parts if part)
    name = escaped(group.name, 80)
    if with_check and group.check.name != group.name:
        name = f"{escaped(check_title(group.check), 60)}: {name}"
    if link:
        name = f"[{name}]({link})"
    cells = (_MARKS[group.verdict], name, escaped_sentence(where, 200), row.count, row.worst)
    return f"| {' | '.join(cells)} |"


def _texts(run: RunResult) -> list[str]:
    """Where texts differ, for the first of them."""
    found = [
        (one, sides_of(check, one))
        for check in run.checks
        for one in check.variables
        if one.text is not None
    ]
    rows = [
        f"| {escaped(one.name, 60)} | {escaped(line.strip(), 300)} |"
        for one, sides in found[:MOST_TEXTS]
        for line in detail_lines(one, sides)
    ]
    return ["| text | where |", "|---|---|", *rows, ""] if rows else []


def _checks(run: RunResult) -> list[str]:
    if len(run.checks) < 2:
        return []
    lines = ["<details><summary>All checks</summary>", ""]
    lines += ["| | check | variables | at most used |", "|---|---|--:|--:|"]
    ordered = sorted(run.checks, key=lambda check: -check.verdict.severity)
    for check in ordered[:MOST_CHECKS]:
        share = None if check.verdict.severity else check.max_drift_share
        used = "" if share is None else at_most_text(share).removeprefix("at most ")
        name = escaped(check_title(check), 80)
        lines.append(f"| {_MARKS[check.verdict]} | {name} | {check.variable_count:,} | {used} |")
    lines.append("")
    if len(ordered) > MOST_CHECKS:
        lines += [f"... and {len(ordered) - MOST_CHECKS:,} more checks.", ""]
    return [*lines, "</details>", ""]


def _first_lines(lines: list[str]) -> str:
    """All lines, or as many as GitHub shows for sure."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode("utf-8")) + 1
        if size > MOST_BYTES - 200:
            kept += ["", "... and more: see the report."]
            break
        kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n"


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
    lines = [*_first_of_kind("error", errors), *_first_of_kind("warning", warnings)]
    said = []
    if run.verdict.is_good:
        said.append(f"{title(run)}: {lead(portable_run)[0]}")
    if not run.coverage.is_whole:
        said.append(f"{capital(run.coverage.text)}.")
    if said:
        lines += _first_of_kind("notice", [("ciwrap", " ".join(said), None)])
    return "".join(f"{line}\n" for line in lines)


# Title, text, file.
_Annotation = tuple[str, str, "str | None"]


def _of_group(run: RunResult, group: Group) -> _Annotation:
    first = group.first
    named = check_prefix(run, group.check, group.name) + safe_name(group.name, 80)
    title = f"ciwrap: {named} {group.verdict.words}"
    words = sentence_on(first, sides_of(group.check, first))
    text = f"{place(first)}: {words}"
    more = "; ".join(more_words(group))
    return title, f"{text}. {capital(more)}".strip(), golden_file(group.check)


def _of_messages(run: RunResult, level: MessageLevel) -> list[_Annotation]:
    found: list[_Annotation] = [
        ("ciwrap", message.text, message.file) for message in run.messages if message.level is level
    ]
    for check in run.checks:
        title = f"ciwrap: {safe_name(check_title(check), 80)}"
        texts = [message.text for message in check.messages if message.level is level]
        found += [(title, text, golden_file(check)) for text in texts]
    return found


def _first_of_kind(kind: str, found: list[_Annotation]) -> list[str]:
    shown = found if len(found) <= MOST_PER_TYPE else found[: MOST_PER_TYPE - 1]
    if len(found) > len(shown):
        rest = f"+{len(found) - len(shown):,} more; see the summary or the report"
        shown = [*shown, ("ciwrap", rest, None)]
    return [
        workflow_command(
            kind, safe_name(text, _LONGEST), file=_in_repository(file), title=safe_name(title)
        )
        for title, text, file in shown
    ]


def workflow_command(kind: str, message: str, **properties: object) -> str:
    """One workflow command, `::error file=a,line=3::message`; properties that are None are left
    out.
    """
    given = ",".join(
        f"{name}={_escaped(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value is not None
    )
    return f"::{kind}{' ' + given if given else ''}::{_escaped(message)}"


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
    return None if ".." in path.parts else safe_name(str(path))


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
