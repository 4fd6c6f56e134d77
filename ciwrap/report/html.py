"""The report: one self-contained HTML page, bounded in size, safe to open whatever it is made of.

Nothing is loaded from elsewhere; the page's own policy forbids it, and every script but its own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import MessageLevel, Verdict
from ciwrap.model.coverage import grouped_plural
from ciwrap.report import findings
from ciwrap.report.cards import card_of
from ciwrap.report.ensemble_charts import MOST_SHIFTS, shift_bars
from ciwrap.report.ensemble_words import other_messages
from ciwrap.report.environment import Environment, differing_keys, environments_of
from ciwrap.report.lead import Top, top_of_page
from ciwrap.report.matrix import Row, row_of
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
from ciwrap.report.view import groups_of
from ciwrap.report.wording import accept_command, command_ending, counted_evidence, headline
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ciwrap.model import CheckResult, CommandOutcome, RunResult
    from ciwrap.report.view import Group

MOST_CARDS = 60
MOST_MATCHING_CARDS = 4
# So many cards are open at once; a click opens any other.
MOST_OPEN_CARDS = 3
MOST_CARD_BYTES = 1_000_000
MOST_ROW_BYTES = 1_800_000
_MOST_NAMES = 40
_MOST_ACCEPTS = 12
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


class RowShape(Struct, frozen=True):
    """Which columns the table of variables has."""

    with_check: bool
    with_time: bool


class Page(Struct, frozen=True):
    """All that the template shows."""

    title: str
    verdict: Verdict
    top: Top
    kind: str
    started: str
    started_iso: str
    commit: str
    version: str
    counts: tuple[tuple[Verdict, str], ...]
    units: tuple[str, ...]
    compared: str
    not_compared: str
    has_checks: bool
    has_time: bool
    environment_differs: tuple[str, ...]
    environments: tuple[Environment, ...]
    messages: tuple[MessageView, ...]
    more_messages: int
    commands: tuple[CommandView, ...]
    accept: str
    accepts: tuple[tuple[str, str], ...]
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
    cards, card_of_group, cards_left_out = _cards(groups, with_check=several)
    with_time = any(group.is_history for group in groups if group.verdict is not Verdict.MATCH)
    shape = RowShape(with_check=several, with_time=with_time)
    rows, matching_rows, rows_left_out = _rows(groups, card_of_group, shape)
    messages = _messages(run)
    environments = environments_of(run)
    counts = Counter(group.verdict for group in groups)
    coverage = run.coverage
    is_match = run.verdict.is_good
    page = Page(
        title=findings.title(run),
        verdict=run.verdict,
        top=top_of_page(run),
        kind=safe_name(run.kind),
        started=time_words(run.started_at),
        started_iso=safe_name(run.started_at, 40),
        commit=safe_name(run.environment.get("git_commit", ""), 20),
        version=safe_name(run.ciwrap_version),
        counts=tuple(
            (verdict, _chip_words(verdict, counts[verdict]))
            for verdict in Verdict.worst_first()
            if counts[verdict]
        ),
        units=_units(run, groups),
        compared=capital(coverage.compared),
        not_compared=", ".join(coverage.not_compared),
        has_checks=several,
        has_time=with_time,
        environment_differs=differing_keys(environments) if not run.verdict.is_good else (),
        environments=environments,
        messages=messages[:MOST_MESSAGES],
        more_messages=max(0, len(messages) - MOST_MESSAGES),
        commands=tuple(_commands(run)),
        accept=accept_command(run),
        accepts=_accepts(run),
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


def _chip_words(verdict: Verdict, count: int) -> str:
    """`1 variable differs`, `12 variables are suspect`."""
    verb = verdict.words + ("es" if verdict is Verdict.MATCH else "s") * (count == 1)
    if verdict in (Verdict.SUSPECT, Verdict.NOT_COMPARABLE):
        verb = f"{'is' if count == 1 else 'are'} {verdict.words}"
    return f"{grouped_plural(count, 'variable')} {verb}"


def _units(run: RunResult, groups: list[Group]) -> tuple[str, ...]:
    """What the page speaks of, each count with its unit."""
    is_all = all(check.unlisted is None for check in run.checks)
    listed = grouped_plural(len(groups), "variable") + ("" if is_all else " listed")
    said = [listed] if groups else []
    arrays = sum(len(group.results) for group in groups)
    iterations = {one.iteration for group in groups for one in group.results} - {None}
    ranks = {one.rank for group in groups for one in group.results} - {None}
    if arrays > len(groups):
        if len(iterations) > 1:
            said.append(grouped_plural(len(iterations), "iteration"))
        if len(ranks) > 1:
            said.append(grouped_plural(len(ranks), "rank"))
    said.append(grouped_plural(len(run.checks), "check"))
    errors = sum(
        message.level is MessageLevel.ERROR
        for messages in (run.messages, *(check.messages for check in run.checks))
        for message in messages
    )
    if errors:
        said.append(grouped_plural(errors, "error"))
    return tuple(said)


def _accepts(run: RunResult) -> tuple[tuple[str, str], ...]:
    """The command for each check, where there are several and not too many."""
    bad = [check for check in run.checks if check.verdict.is_alarm]
    if not 1 < len(bad) <= _MOST_ACCEPTS:
        return ()
    single = [(check, accept_command(replace(run, checks=(check,)))) for check in bad]
    return tuple((safe_name(check.name, 80), command) for check, command in single if command)


def cards_of(run: RunResult) -> tuple[Markup, str]:
    """The cards of what does not match, and a word on those left out, for other pages."""
    cards, _, left_out = _cards(groups_of(run), with_check=len(run.checks) > 1)
    return cards, left_out


def _cards(groups: list[Group], *, with_check: bool) -> tuple[Markup, dict[int, int], str]:
    """The cards of what does not match, as many as fit; of a run that matches, a few.

    Variables that were not compared for one and the same reason share a card. Also returns the
    number of the card of each group, by the group's place, and a word on those left out.
    """
    template = templates().get_template("card.html.j2")
    bad = [at for at, group in enumerate(groups) if group.verdict is not Verdict.MATCH]
    shown = [at for at, group in enumerate(groups) if group.share][:MOST_MATCHING_CARDS]
    parts: list[str] = []
    card_of_group: dict[int, int] = {}
    size = 0
    for number, places in enumerate(_bundles(groups, bad or shown), 1):
        others = [safe_name(groups[at].name, 80) for at in places[1:]]
        card = card_of(
            number,
            groups[places[0]],
            with_check=with_check,
            others=tuple(others[:_MOST_NAMES]),
            more_others=max(0, len(others) - _MOST_NAMES),
            is_folded=number > MOST_OPEN_CARDS,
        )
        text = template.render(card=card)
        size += len(text.encode())
        if number > MOST_CARDS or (size > MOST_CARD_BYTES and parts):
            break
        parts.append(text)
        card_of_group |= dict.fromkeys(places, number)
    left_out = len(bad) - len(card_of_group)
    words = ""
    if bad and left_out > 0:
        words = (
            f"... and {left_out:,} more variables that do not match, less far beyond their bounds:"
            " the table above lists them; the JSON result has everything."
        )
    return Markup("").join(Markup(text) for text in parts), card_of_group, words


def _bundles(groups: list[Group], places: list[int]) -> list[list[int]]:
    """Places of groups, those together that were not compared for the same reason."""
    found: dict[object, list[int]] = {}
    for at in places:
        group = groups[at]
        key: object = at
        if group.verdict is Verdict.NOT_COMPARABLE and not group.differing:
            key = headline(group.first)
        found.setdefault(key, []).append(at)
    return list(found.values())


def _rows(
    groups: list[Group], card_of_group: Mapping[int, int], shape: RowShape
) -> tuple[list[Markup], list[Markup], str]:
    """Lines of what does not match, of what does, and a word on those left out."""
    bad_rows: list[Markup] = []
    matching_rows: list[Markup] = []
    size = 0
    for at, group in enumerate(groups):
        number = card_of_group.get(at, 0)
        row = row_of(number, group)
        is_match = group.verdict is Verdict.MATCH
        text = _matching_row(row, shape) if is_match else _row(row, shape)
        size += len(text.encode())
        if size > MOST_ROW_BYTES:
            break
        (matching_rows if is_match else bad_rows).append(text)
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
    '<tr data-v="{}"><td><svg class="ico" viewBox="0 0 16 16" aria-hidden="true">'
    '<use href="#i-{}"/></svg> {}</td>{}<th scope="row" class="mono">{}</th>{}'
    '<td class="r">{}</td><td class="r">{}</td><td>{}</td><td>{}</td></tr>'
)
_MATCHING_ROW = Markup('<tr data-v="match">{}<td class="mono">{}</td><td class="r">{}</td></tr>')


def _row(row: Row, shape: RowShape) -> Markup:
    time = Markup("<td>{}</td><td>{}</td>").format(row.over_time, row.first)
    return _ROW.format(
        row.verdict.value,
        row.verdict.value,
        row.verdict.words,
        _check_cell(row, shape),
        _name_cell(row),
        time if shape.with_time else "",
        row.worst,
        row.count,
        row.pattern,
        row.thumb,
    )


def _matching_row(row: Row, shape: RowShape) -> Markup:
    check = _check_cell(row, shape)
    return _MATCHING_ROW.format(check, _name_cell(row), row.worst)


def _check_cell(row: Row, shape: RowShape) -> Markup:
    return Markup("<td><bdi>{}</bdi></td>").format(row.check) if shape.with_check else Markup("")


def _name_cell(row: Row) -> Markup:
    name: str | Markup = Markup("<bdi>{}</bdi>").format(row.name)
    return Markup('<a href="#c{}">{}</a>').format(row.number, name) if row.number else Markup(name)


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
