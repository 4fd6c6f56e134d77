"""The report: one self-contained HTML page, bounded in size, safe to open whatever it is made of.

Nothing is loaded from elsewhere; the page's own policy forbids it, and every script but its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import MessageLevel, Verdict
from ciwrap.model.coverage import grouped_plural
from ciwrap.report import findings
from ciwrap.report.cards import card_of
from ciwrap.report.ensemble_charts import MOST_SHIFTS, shift_bars
from ciwrap.report.ensemble_words import other_messages
from ciwrap.report.environment import Environment, differing_keys, environments_of
from ciwrap.report.page import render_page, templates, time_words
from ciwrap.report.paths import portable
from ciwrap.report.text import (
    bytes_text,
    capital,
    percent_text,
    safe_name,
    safe_text,
    seconds_text,
)
from ciwrap.report.view import Row, groups_of, row_of
from ciwrap.report.wording import accept_command, command_ending, counted_evidence
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CheckResult, CommandOutcome, RunResult
    from ciwrap.report.view import Group

MOST_CARDS = 60
MOST_MATCHING_CARDS = 4
MOST_CARD_BYTES = 2_600_000
MOST_ROW_BYTES = 2_000_000
MOST_CHECKS = 100
# So many matching variables are listed openly, more behind a click.
FEW_ROWS = 40
MOST_MESSAGES = 30
_TAIL_CHARACTERS = 4000
_MOST_LEFT_OUT = 8


class MessageView(Struct, frozen=True):
    level: str
    class_: str
    check: str
    text: str


class CommandView(Struct, frozen=True):
    command: str
    ending: str
    tail: str


class CheckView(Struct, frozen=True):
    name: str
    verdict: Verdict
    evidence: str
    not_compared: str
    golden: str
    read: str
    time: str


class EnsembleView(Struct, frozen=True):
    name: str
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    bars: Markup
    left_out: str


class Page(Struct, frozen=True):
    """All that the template shows."""

    title: str
    verdict: Verdict
    lead: tuple[str, ...]
    kind: str
    started: str
    started_iso: str
    commit: str
    version: str
    counts: tuple[tuple[Verdict, int], ...]
    check_count: int
    compared: str
    not_compared: str
    has_checks: bool
    environment_differs: tuple[str, ...]
    environments: tuple[Environment, ...]
    messages: tuple[MessageView, ...]
    more_messages: int
    commands: tuple[CommandView, ...]
    accept: str
    cards_title: str
    cards: Markup
    cards_left_out: str
    rows: Markup
    matching_rows: Markup
    matching_words: str
    matching_open: bool
    rows_left_out: str
    has_variables: bool
    ensembles: tuple[EnsembleView, ...]
    checks: tuple[CheckView, ...]
    checks_left_out: str
    evidence_notes: tuple[str, ...]

    @property
    def hue(self) -> str:
        """The class that colours the head of the page."""
        return self.verdict.value


def _matching_words(count: int) -> str:
    return f"{grouped_plural(count, 'variable')} that {'matches' if count == 1 else 'match'}"


def render_html(run: RunResult) -> str:
    """The page of a result. Absolute paths of the machine it was made on are shortened."""
    run = portable(run)
    groups = groups_of(run)
    several = len(run.checks) > 1
    cards, card_count, cards_left_out = _cards(groups, with_check=several)
    rows, matching_rows, rows_left_out = _rows(groups, card_count, with_check=several)
    messages = _messages(run)
    environments = environments_of(run)
    counts = run.verdict_counts
    coverage = run.coverage
    is_match = run.verdict.is_good
    page = Page(
        title=findings.title(run),
        verdict=run.verdict,
        lead=tuple(findings.lead(run)),
        kind=safe_name(run.kind),
        started=time_words(run.started_at),
        started_iso=safe_name(run.started_at, 40),
        commit=safe_name(run.environment.get("git_commit", ""), 20),
        version=safe_name(run.ciwrap_version),
        counts=tuple((verdict, counts[verdict]) for verdict in Verdict.worst_first()),
        check_count=len(run.checks),
        compared=capital(coverage.compared),
        not_compared=", ".join(coverage.not_compared),
        has_checks=several,
        environment_differs=differing_keys(environments) if not run.verdict.is_good else (),
        environments=environments,
        messages=messages[:MOST_MESSAGES],
        more_messages=max(0, len(messages) - MOST_MESSAGES),
        commands=tuple(_commands(run)),
        accept=accept_command(run),
        cards_title="Closest to their bounds" if is_match else "Findings",
        cards=cards,
        cards_left_out=cards_left_out,
        rows=Markup("\n").join(rows),
        matching_rows=Markup("\n").join(matching_rows),
        matching_words=_matching_words(len(matching_rows)),
        matching_open=len(matching_rows) <= FEW_ROWS,
        rows_left_out=rows_left_out,
        has_variables=bool(groups) or not any(check.ensemble for check in run.checks),
        ensembles=tuple(_ensembles(run)),
        checks=tuple(_check(check) for check in run.checks[:MOST_CHECKS]),
        checks_left_out=(
            f"... and {len(run.checks) - MOST_CHECKS:,} more checks; the JSON result has them all."
            if len(run.checks) > MOST_CHECKS
            else ""
        ),
        evidence_notes=_evidence_notes(run),
    )
    return render_page("report.html.j2", page)


def cards_of(run: RunResult) -> tuple[Markup, str]:
    """The cards of what does not match, and a word on those left out, for other pages."""
    cards, _, left_out = _cards(groups_of(run), with_check=len(run.checks) > 1)
    return cards, left_out


def _cards(groups: list[Group], *, with_check: bool) -> tuple[Markup, int, str]:
    """The cards of what does not match, as many as fit; of a run that matches, a few."""
    template = templates().get_template("card.html.j2")
    bad = [group for group in groups if group.verdict is not Verdict.MATCH]
    chosen = bad[:MOST_CARDS] or [group for group in groups if group.share][:MOST_MATCHING_CARDS]
    parts: list[str] = []
    size = 0
    for number, group in enumerate(chosen, 1):
        text = template.render(card=card_of(number, group, with_check=with_check))
        size += len(text.encode())
        if size > MOST_CARD_BYTES and parts:
            break
        parts.append(text)
    left_out = len(bad) - len(parts)
    words = ""
    if bad and left_out > 0:
        words = (
            f"... and {left_out:,} more variables that do not match, less far beyond their bounds:"
            " the table below lists them; the JSON result has everything."
        )
    return Markup("").join(Markup(text) for text in parts), len(parts), words


def _rows(
    groups: list[Group], card_count: int, *, with_check: bool
) -> tuple[list[Markup], list[Markup], str]:
    """Lines of what does not match, of what does, and a word on those left out."""
    bad_rows: list[Markup] = []
    matching_rows: list[Markup] = []
    size = 0
    for number, group in enumerate(groups, 1):
        text = _row(row_of(number, group), number <= card_count, with_check=with_check)
        size += len(text.encode())
        if size > MOST_ROW_BYTES:
            break
        (matching_rows if group.verdict is Verdict.MATCH else bad_rows).append(text)
    rest = groups[len(bad_rows) + len(matching_rows) :]
    words = ""
    if rest:
        bad = sum(group.verdict is not Verdict.MATCH for group in rest)
        what = f"{bad:,} of them do not match" if bad else "all of them match"
        words = (
            f"... and {len(rest):,} more variables are not listed here ({what}); the JSON result"
            " has them all."
        )
    return bad_rows, matching_rows, words


_ROW = Markup(
    '<tr data-v="{}"><td>{}</td>{}<td class="mono"><bdi>{}</bdi></td>'
    '<td class="r">{}</td><td class="r">{}</td><td>{}</td></tr>'
)


def _row(row: Row, has_card: bool, *, with_check: bool) -> Markup:
    check = Markup("<td><bdi>{}</bdi></td>").format(row.check) if with_check else Markup("")
    name: str | Markup = row.name
    if has_card:
        name = Markup('<a href="#c{}">{}</a>').format(row.number, row.name)
    return _ROW.format(
        row.verdict.value,
        row.verdict.words,
        check,
        name,
        row.count,
        row.share_words,
        row.summary,
    )


def _messages(run: RunResult) -> tuple[MessageView, ...]:
    order = (MessageLevel.ERROR, MessageLevel.WARNING, MessageLevel.NOTE)
    found = [("", message) for message in run.messages]
    found += [(check.name, message) for check in run.checks for message in other_messages(check)]
    found.sort(key=lambda pair: order.index(pair[1].level))
    return tuple(
        MessageView(
            level=message.level.value.capitalize(),
            class_="not_comparable" if message.level is MessageLevel.ERROR else "",
            check=safe_name(name, 80) if len(run.checks) > 1 else "",
            text=safe_name(message.text, 1000),
        )
        for name, message in found
    )


def _commands(run: RunResult) -> list[CommandView]:
    outcomes: list[CommandOutcome] = [] if run.command is None else [run.command]
    outcomes += [check.command for check in run.checks if check.command is not None]
    bad = [one for one in outcomes if one.exit_code != 0 or one.timed_out]
    return [
        CommandView(
            safe_name(one.command, 500),
            command_ending(one),
            "\n".join(safe_text(line) for line in one.output_tail[-_TAIL_CHARACTERS:].splitlines()),
        )
        for one in bad[:5]
    ]


def _ensembles(run: RunResult) -> Iterator[EnsembleView]:
    for check in run.checks[:MOST_CHECKS]:
        facts = check.ensemble
        if facts is None:
            continue
        p = "too few to tell" if facts.p is None else f"{facts.p:.3f}"
        more = len(facts.shifts) - MOST_SHIFTS
        yield EnsembleView(
            name=safe_name(findings.check_title(check), 120),
            verdict=check.verdict,
            facts=(
                ("new runs", str(facts.runs)),
                ("members", str(facts.members)),
                ("features", str(facts.features)),
                ("p", p),
                ("called inconsistent at", percent_text(facts.rate)),
            ),
            bars=shift_bars(facts.shifts) if facts.shifts else Markup(""),
            left_out=f"{more:,} more features moved less; the JSON result has them all."
            if more > 0
            else "",
        )


def _check(check: CheckResult) -> CheckView:
    golden = safe_name(check.golden_path or "", 120)
    if check.golden_bytes is not None:
        golden += f" ({bytes_text(check.golden_bytes)})"
    read = "" if check.bytes_read is None else bytes_text(check.bytes_read)
    if check.engine:
        read += f" with {safe_name(check.engine, 20)}"
    if check.history is not None and check.history.by_captures:
        read += f"; {grouped_plural(check.history.by_captures, 'variable')} by captures alone"
    return CheckView(
        name=safe_name(findings.check_title(check), 120),
        verdict=check.verdict,
        evidence=counted_evidence(check),
        not_compared=_not_compared(check),
        golden=golden,
        read=read,
        time=seconds_text(check.seconds),
    )


def _not_compared(check: CheckResult) -> str:
    """What the check did not look at, and the first few names of what was left out."""
    words = ", ".join(check.coverage.not_compared)
    names = [safe_name(one.text, 60) for one in check.left_out_variables[:_MOST_LEFT_OUT]]
    if not names:
        return words
    more = len(check.left_out_variables) - len(names)
    rest = f" and {more:,} more" if more else ""
    return f"{words}. Left out of the golden: {', '.join(names)}{rest}"


def _evidence_notes(run: RunResult) -> tuple[str, ...]:
    kinds = {
        variable.evidence.value
        for check in run.checks
        for variable in check.variables
        if variable.evidence is not None
    }
    notes = {
        "data": "data: the values of both sides were compared element by element; counts and"
        " indices are exact.",
        "residues": "residues only: the golden's values are not kept. A match is sure. In a suspect"
        " chunk an element lies near its bound or beyond it; which one, and how far a number beyond"
        " the bound moved, is not known.",
        "tree": "tree only: the golden's values are not kept. A match is sure; a suspect chunk may"
        " be a false alarm of values close to a cell's edge.",
    }
    return tuple(notes[kind] for kind in ("data", "residues", "tree") if kind in kinds)
