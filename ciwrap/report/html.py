"""The report: one self-contained HTML page, bounded in size, safe to open whatever it is made of.

Nothing is loaded from elsewhere; the page's own policy forbids it, and every script but its own.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import Verdict
from ciwrap.report import findings
from ciwrap.report.cards import card_of
from ciwrap.report.environment import differing_keys, environments_of
from ciwrap.report.lead import top_of_page
from ciwrap.report.matrix import has_thumbnail
from ciwrap.report.page import page_head, render_page, templates
from ciwrap.report.paths import portable
from ciwrap.report.rows import Columns, joined, rows_of
from ciwrap.report.sections import (
    MOST_CHECKS,
    check_view,
    commands_of,
    ensembles_of,
    evidence_notes,
    messages_of,
)
from ciwrap.report.text import capital, plural, safe_name
from ciwrap.report.to_accept import accept_command
from ciwrap.report.view import MOST_CARDS, bundles_of, groups_of
from ciwrap.report.views import palettes_text
from ciwrap.report.wording import unlisted_words
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import RunResult
    from ciwrap.report.view import Group

MOST_MATCHING_CARDS = 4
# So many cards are open at once; a click opens any other.
MOST_OPEN_CARDS = 3
MOST_CARD_BYTES = 1_000_000
_MOST_NAMES = 40
_MOST_ACCEPTS = 12
# So many matching variables are listed openly, more behind a click.
FEW_ROWS = 40
MOST_MESSAGES = 30
MOST_COMMANDS = 5


def render_html(run: RunResult) -> str:
    """The page of a result. Absolute paths of the machine it was made on are shortened."""
    run = portable(run)
    groups = groups_of(run)
    several = len(run.checks) > 1
    cards, card_of_group, cards_left_out = _cards(groups, with_check=several)
    columns = Columns(
        check=several,
        time=any(group.is_history for group in groups if group.verdict is not Verdict.MATCH),
        numbers=any(group.differing for group in groups),
        thumbs=any(has_thumbnail(group) for group in groups),
    )
    rows = rows_of(groups, card_of_group, columns)
    messages, commands = messages_of(run), commands_of(run)
    environments = environments_of(run)
    counts = Counter(group.verdict for group in groups)
    coverage = run.coverage
    is_match = run.verdict.is_good
    keys = [group.sort_key for group in groups]
    matching = counts[Verdict.MATCH]
    listed = f"The first {len(rows.matching):,} of " if len(rows.matching) < matching else ""
    verb = "matches" if matching == 1 else "match"
    more = len(run.checks) - MOST_CHECKS
    rest = f"... and {plural(more, 'more check')}; the JSON result has all."
    told = "what is told above, then the "
    page = SimpleNamespace(
        title=findings.title(run),
        hue=run.verdict.value,  # the class that colours the head of the page
        top=top_of_page(run),
        counts=tuple(
            (verdict, _chip_words(verdict, counts[verdict]))
            for verdict in Verdict.worst_first()
            if counts[verdict]
        ),
        units=_units(run, groups),
        compared=capital(coverage.compared),
        not_compared=", ".join(coverage.not_compared),
        has_checks=several,
        columns=columns,
        environment_differs=differing_keys(environments) if not run.verdict.is_good else (),
        environments=environments,
        messages=messages[:MOST_MESSAGES],
        more_messages=max(0, len(messages) - MOST_MESSAGES),
        commands=commands[:MOST_COMMANDS],
        more_commands=max(0, len(commands) - MOST_COMMANDS),
        accept=accept_command(run),
        accepts=_accepts(run),
        cards_title="Closest to their bounds" if is_match else "Findings",
        cards=cards,
        cards_left_out=cards_left_out,
        palettes=palettes_text() if "data-view=" in cards else "",
        # What the head of the page tells of stands first, though another variable may be worse.
        rows_title=f"Variables, {'' if keys == sorted(keys) else told}worst first",
        rows=joined(rows.bad),
        matching_rows=joined(rows.matching),
        matching_words=f"{listed}{plural(matching, 'variable')} that {verb}",
        matching_open=len(rows.matching) <= FEW_ROWS,
        rows_left_out=rows.left_out,
        has_variables=bool(groups) or not any(check.ensemble for check in run.checks),
        ensembles=tuple(ensembles_of(run)),
        checks=tuple(check_view(check) for check in run.checks[:MOST_CHECKS]),
        checks_left_out=rest if more > 0 else "",
        evidence_notes=evidence_notes(run),
    )
    head = page_head(run.kind, run.started_at, run.ciwrap_version, run.environment)
    return render_page("report.html.j2", head, page)


def _chip_words(verdict: Verdict, count: int) -> str:
    """`1 variable differs`, `12 variables are suspect`."""
    verb = verdict.words + ("es" if verdict is Verdict.MATCH else "s") * (count == 1)
    if verdict in (Verdict.SUSPECT, Verdict.NOT_COMPARABLE):
        verb = f"{'is' if count == 1 else 'are'} {verdict.words}"
    return f"{plural(count, 'variable')} {verb}"


def _units(run: RunResult, groups: list[Group]) -> tuple[str, ...]:
    """What the page speaks of, each count with its unit."""
    is_all = all(check.unlisted is None for check in run.checks)
    listed = plural(len(groups), "variable") + ("" if is_all else " listed")
    said = [listed] if groups else []
    arrays = sum(len(group.results) for group in groups)
    iterations = {one.iteration for group in groups for one in group.results} - {None}
    ranks = {one.rank for group in groups for one in group.results} - {None}
    if arrays > len(groups):
        if len(iterations) > 1:
            said.append(plural(len(iterations), "iteration"))
        if len(ranks) > 1:
            said.append(plural(len(ranks), "rank"))
    said.append(plural(len(run.checks), "check"))
    if run.all_errors:
        said.append(plural(len(run.all_errors), "error"))
    if unlisted := unlisted_words(run):
        said.append(unlisted)
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
    for number, places in enumerate(bundles_of(groups, bad or shown), 1):
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
            f"... and {plural(left_out, 'more variable')} that"
            f" {'does' if left_out == 1 else 'do'} not match; the JSON result has everything."
        )
    return Markup("").join(Markup(text) for text in parts), card_of_group, words
