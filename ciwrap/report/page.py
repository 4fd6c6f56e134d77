"""The report: one self-contained HTML page, bounded in size, safe to open whatever it is made of.

Nothing is loaded from elsewhere; the page's own policy forbids it, and every script but its own.
The first difference can also be written as an image: golden | new | difference.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import Picture, cells
from ciwrap.report.cards import card_of
from ciwrap.report.charts import MOST_SHIFTS, shift_bars
from ciwrap.report.drawing import (
    SHARE_PALETTE,
    SIGNED_PALETTE,
    VALUE_PALETTE,
    Colour,
    palettes_text,
    rgb_png,
)
from ciwrap.report.environment import differing_keys, environments_of
from ciwrap.report.lead import (
    Group,
    check_title,
    groups_of,
    leading,
    other_messages,
    place,
    rate_text,
    title,
)
from ciwrap.report.terminal import accept_command, accept_when
from ciwrap.report.text import (
    bytes_text,
    capital,
    plural,
    portable,
    safe_name,
    safe_text,
    seconds_text,
    short_number,
)
from ciwrap.report.top import base_commit, commit_of, top_of_page
from ciwrap.report.view import MOST_CARDS, Row, bundles_of, has_thumbnail, row_of
from ciwrap.report.words import HINT, counted_evidence, sides_of, unlisted_words

if TYPE_CHECKING:
    import jinja2

# A word with letters that are written from right to left, without what follows it.
_RIGHT_TO_LEFT = re.compile(
    r"[^\s`]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc][^\s`]*?(?=[`:,.)]*(?:\s|$))"
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r"\[[^\[\]]{1,60}\]")
_EQUATION = re.compile(r"\b(new|B) = (.)")
_SHARES = re.compile(r"(?<=[<>]) (?=\d)|(?<=\d) (?=%)")
# What a hyphen would break: a number with an exponent, an option of a command.
_UNBROKEN = re.compile(r"\b\d[\d.]*e-\d+\b|(?<![^\s>`(])--?[A-Za-z][\w-]*")
_CODE = re.compile("`([^`]+)`")


class PageHead(Struct, frozen=True):
    """What the layout says of every page. kind: of the result. started: for people; started_iso:
    for programs. commit, base: of the run, and the one it is compared with; empty if none is known.
    version: of ciwrap. project: what was checked or compared.
    """

    kind: str
    started: str
    started_iso: str
    version: str
    commit: str = ""
    base: str = ""
    project: str = ""


def page_head(
    kind: str, started_at: str, version: str, environment: Mapping[str, str] | None = None
) -> PageHead:
    """The head of the page of one result. environment: where the commit stands, if it is known."""
    known = environment or {}
    # `-dirty` follows it where files had been changed.
    commit = commit_of(known) and commit_of(known) + "".join(known["git_commit"].partition("-")[1:])
    times = time_words(started_at), safe_name(started_at, 40)
    return PageHead(safe_name(kind), *times, safe_name(version), commit)


def render_page(template: str, head: PageHead, page: object) -> str:
    """A page in the common layout. page: what the template asks for, with a title and a hue."""
    # Our own style and script are the only texts that go into the page unescaped.
    style, script = Markup(_read("report.css")), Markup(_read("report.js") + _read("look.js"))
    assets: dict[str, str] = {"style": style, "script": script, "palettes": ""}
    hashes = {"style_hash": _hash(style), "script_hash": _hash(script)}
    cards = getattr(page, "cards", None)
    if isinstance(cards, str) and "data-view=" in cards:
        assets["palettes"] = palettes_text()
    return templates().get_template(template).render(head=head, page=page, **assets, **hashes)


@cache
def templates() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_writable,
    )
    environment.filters["nice"] = nice
    environment.filters["unbroken"] = unbroken
    environment.filters["counted"] = plural
    return environment


def _writable(value: object) -> object:
    """Half a surrogate pair, which no file can have, as its escape; all else as it is."""
    if isinstance(value, str) and not value.isascii() and _HALF_PAIR.search(value):
        return type(value)(value.encode("utf-8", "backslashreplace").decode("utf-8"))
    return value


def environment_rows(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Facts of a machine by name, for a table of two columns."""
    return tuple(
        (safe_name(key, 80), safe_name(value, 200)) for key, value in sorted(environment.items())
    )


def time_words(text: str) -> str:
    """`21 November 2026, 12:33 UTC`; what is no ISO time stays as it is."""
    try:
        when = datetime.fromisoformat(text).astimezone(timezone.utc)
    except ValueError:
        return safe_name(text, 40)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def nice(text: object) -> Markup:
    """The text as it breaks into lines: indices, shares and numbers stay whole, a minus is no
    hyphen, and a name that is written from right to left does not change places with the numbers
    after it. What stands between backticks is code.
    """
    whole = _BRACKETS.sub(lambda match: match[0].replace(" ", "\u00a0"), str(text))
    whole = _SHARES.sub("\u00a0", whole).replace(" x the", "\u00a0\u00d7 the")
    whole = _EQUATION.sub("\\1\u00a0=\u00a0\\2", whole.replace("= -golden", "= \u2212golden"))
    marked = _RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", str(escape(whole)))
    marked = _UNBROKEN.sub(r'<span class="nw">\g<0></span>', marked)
    return Markup(_CODE.sub(r"<code>\1</code>", marked))


def unbroken(command: str) -> Markup:
    """A command as it breaks into lines: not within an option."""
    return Markup(_UNBROKEN.sub(r'<span class="nw">\g<0></span>', str(escape(command))))


@cache
def _read(name: str) -> str:
    return (resources.files("ciwrap.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: Markup) -> str:
    return base64.b64encode(hashlib.sha256(str(text).encode()).digest()).decode("ascii")


MOST_CHECKS = 100
_TAIL_CHARACTERS = 4000
_MOST_LEFT_OUT = 8


def tail_text(text: str, most: int) -> str:
    """The end of what a command printed, line by line made safe."""
    return "\n".join(safe_text(line) for line in text[-most:].splitlines())


def messages_of(run: RunResult) -> tuple[SimpleNamespace, ...]:
    """Errors first."""
    order = (MessageLevel.ERROR, MessageLevel.WARNING, MessageLevel.NOTE)
    found = [("", message) for message in run.messages]
    found += [(check.name, message) for check in run.checks for message in other_messages(check)]
    found.sort(key=lambda pair: order.index(pair[1].level))
    return tuple(
        SimpleNamespace(
            level="Hint" if message.text.startswith(HINT) else message.level.value.capitalize(),
            class_="not_comparable" if message.level is MessageLevel.ERROR else "",
            check=safe_name(name, 80) if len(run.checks) > 1 else "",
            text=safe_name(message.text.removeprefix(HINT), 1000),
        )
        for name, message in found
    )


def commands_of(run: RunResult) -> tuple[SimpleNamespace, ...]:
    """Those that failed, and the end of what they printed."""
    outcomes: list[CommandOutcome] = [] if run.command is None else [run.command]
    outcomes += [check.command for check in run.checks if check.command is not None]
    bad = [one for one in outcomes if one.exit_code != 0 or one.timed_out]
    return tuple(
        SimpleNamespace(
            command=safe_name(one.command, 500),
            ending=one.ending,
            tail=tail_text(one.output_tail, _TAIL_CHARACTERS),
        )
        for one in bad
    )


def ensembles_of(run: RunResult) -> Iterator[SimpleNamespace]:
    """The statistics of each check whose golden is an ensemble."""
    for check in run.checks[:MOST_CHECKS]:
        facts = check.ensemble
        if facts is None:
            continue
        p = "too few to tell" if facts.p is None else short_number(facts.p)
        more = len(facts.shifts) - MOST_SHIFTS
        rest = f"... and {plural(more, 'more feature')}; the JSON result has all."
        yield SimpleNamespace(
            name=safe_name(check_title(check), 120),
            verdict=check.verdict,
            facts=(
                ("new runs", str(facts.runs)),
                ("members", str(facts.members)),
                ("features", str(facts.features)),
                ("p", p),
                ("called inconsistent at", rate_text(facts.rate)),
            ),
            bars=shift_bars(facts.shifts) if facts.shifts else Markup(""),
            left_out=rest if more > 0 else "",
        )


def check_view(check: CheckResult) -> SimpleNamespace:
    golden = safe_name(check.golden_path or "", 120)
    if check.golden_bytes is not None:
        golden += f" ({bytes_text(check.golden_bytes)})"
    read = "" if check.bytes_read is None else bytes_text(check.bytes_read)
    if check.engine:
        read += f" with {safe_name(check.engine, 20)}"
    if check.history is not None and check.history.by_captures:
        read += f"; {plural(check.history.by_captures, 'variable')} by captures alone"
    return SimpleNamespace(
        name=safe_name(check_title(check), 120),
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


def evidence_notes(run: RunResult) -> tuple[str, ...]:
    """What each kind of evidence that was used can tell."""
    kinds = {
        variable.evidence.value
        for check in run.checks
        for variable in check.variables
        if variable.evidence is not None and variable.verdict is not Verdict.NOT_COMPARABLE
    }
    notes = {
        "data": "data: the values of both sides were compared value by value; counts and"
        " indices are exact.",
        "residues": "residues only: the golden does not keep the values. A match is sure. In a"
        " block that may differ, a value is near its bound or beyond it. The page names the"
        " value where that could be found out, as where one or two of a block moved.",
        "tree": "tree only: the golden does not keep the values. A match is sure. A block that may"
        " differ may be a false alarm: noise at the edge of a cell.",
    }
    return tuple(notes[kind] for kind in ("data", "residues", "tree") if kind in kinds)


MOST_ROW_BYTES = 1_800_000


class Columns(Struct, frozen=True):
    """Which columns the table of variables has. numbers: how far what differs moved."""

    check: bool
    time: bool
    numbers: bool
    thumbs: bool


class Rows(Struct, frozen=True):
    """Lines of what does not match, of what does, and a word on those left out."""

    bad: tuple[str, ...]
    matching: tuple[str, ...]
    left_out: str


def rows_of(groups: Sequence[Group], card_of_group: Mapping[int, int], columns: Columns) -> Rows:
    """card_of_group: the number of the card of a group, by the group's place."""
    bad_rows: list[str] = []
    matching_rows: list[str] = []
    size = 0
    iterations = _iterations(groups)
    for at, group in enumerate(groups):
        row = row_of(card_of_group.get(at, 0), group, iterations.get(id(group.check), ()))
        is_match = group.verdict is Verdict.MATCH
        text = _matching_row(row, columns) if is_match else _row(row, columns)
        size += len(text.encode())
        if size > MOST_ROW_BYTES:
            break
        (matching_rows if is_match else bad_rows).append(text)
    rest = groups[len(bad_rows) + len(matching_rows) :]
    return Rows(tuple(bad_rows), tuple(matching_rows), _left_out_words(rest))


def _iterations(groups: Sequence[Group]) -> dict[int, list[int]]:
    """Of each run with more than one, all its iterations: the axis of all marks."""
    found: dict[int, set[int]] = {}
    for group in groups:
        if group.is_history:
            mine = {one.iteration for one in group.results if one.iteration is not None}
            found.setdefault(id(group.check), set()).update(mine)
    return {check: sorted(mine) for check, mine in found.items()}


def _left_out_words(rest: Sequence[Group]) -> str:
    if not rest:
        return ""
    bad = sum(group.verdict is not Verdict.MATCH for group in rest)
    what = f"not matching: {bad:,}" if bad else "matching"
    more = plural(len(rest), "more variable")
    return f"... and {more}, not listed here ({what}); the JSON result has all."


# Thousands of lines: put together as plain text, each part escaped, since Markup takes ten times
# as long.


def _row(row: Row, columns: Columns) -> str:
    verdict = row.verdict.value
    time = f'<td>{row.over_time}</td><td class="fs">{escape(row.first)}</td>'
    time = time if columns.time else ""
    numbers = ""
    thumb = f"<td>{row.thumb}</td>" if columns.thumbs else ""
    if columns.numbers:
        numbers = f'<td class="r ws">{escape(row.worst)}</td>'
        numbers += f'<td class="r ct">{escape(row.count)}</td>'
    return (
        f'<tr data-v="{verdict}"><td><svg class="ico" viewBox="0 0 16 16" aria-hidden="true">'
        f'<use href="#i-{verdict}"/></svg> {escape(row.verdict.words)}</td>'
        f'{_check_cell(row, columns)}<th scope="row" class="mono">{_name_cell(row)}</th>{time}'
        f'{numbers}<td class="pt">{escape(nice(row.pattern))}</td>{thumb}</tr>'
    )


def _matching_row(row: Row, columns: Columns) -> str:
    near = " near" if row.is_near else ""
    return (
        f'<tr data-v="match">{_check_cell(row, columns)}<td class="mono">{_name_cell(row)}</td>'
        f'<td class="r{near}">{escape(row.worst)}</td></tr>'
    )


def _check_cell(row: Row, columns: Columns) -> str:
    return f'<td class="ch"><bdi>{escape(row.check)}</bdi></td>' if columns.check else ""


def _name_cell(row: Row) -> str:
    name = f"<bdi>{escape(row.name)}</bdi>"
    return f'<a href="#c{row.number}">{name}</a>' if row.number else name


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
    top, commands = top_of_page(run), commands_of(run)
    # What the top says is not said again.
    said = {*top.earlier, *top.sentences}
    messages = [one for one in messages_of(run) if f"{one.text}." not in said]
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
    page = SimpleNamespace(
        title=title(run),
        hue=run.verdict.value,  # the class that colours the head of the page
        top=top,
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
        accept_when=capital(accept_when(run)),
        accepts=_accepts(run),
        cards_title="Closest to their bounds" if is_match else "Findings",
        cards=cards,
        cards_left_out=cards_left_out,
        # What the head of the page tells of stands first, though another variable may be worse.
        rows_title="Variables, "
        + ("worst first" if keys == sorted(keys) else "the first to differ, then the worst"),
        # Lines whose parts were escaped.
        rows=Markup("\n".join(rows.bad)),
        matching_rows=Markup("\n".join(rows.matching)),
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
    bases = {base_commit(check) for check in run.checks}
    base = bases.pop() if len(bases) == 1 else ""
    head = replace(head, base="" if base == commit_of(run.environment) else base, project=_of(run))
    return render_page("report.html.j2", head, page)


def _of(run: RunResult) -> str:
    """The project, and of two runs which these are."""
    if run.kind == "compare" and run.checks:
        sides = run.checks[0].golden_path, run.checks[0].source_path
        if None not in sides:
            return " and ".join(safe_name(side or "", 60) for side in sides)
    return safe_name(run.project, 60)


def _chip_words(verdict: Verdict, count: int) -> str:
    """`1 variable differs`, `12 variables are undecided`."""
    verb = verdict.words + ("es" if verdict is Verdict.MATCH else "s") * (count == 1)
    if verdict in (Verdict.UNDECIDED, Verdict.NOT_COMPARABLE):
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
    telling = [at for at, group in enumerate(groups) if group.share or group.leaves_out_text]
    shown = telling[:MOST_MATCHING_CARDS]
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
        verb = "does" if left_out == 1 else "do"
        words = f"... and {plural(left_out, 'more variable')} that {verb} not match"
        words += "; the JSON result has everything."
    return Markup("").join(Markup(text) for text in parts), card_of_group, words


_SIDE, _GAP, _LINE_WIDTH, _LINE_HEIGHT = 300, 12, 640, 48
_GROUND = (255, 255, 255)


class PictureFile(Struct, frozen=True):
    """png: its bytes. words: what it shows, from left to right, or from the top down."""

    png: bytes
    words: str


def picture_file(run: RunResult) -> PictureFile | None:
    """Of what differs first, else of the first variable that has a picture; None without any."""
    told = [(check, divergence.variable) for check, divergence in leading(run)]
    others = [(check, one) for check in run.checks for one in check.variables]
    for check, variable in (*told, *others):
        picture = None if variable.details is None else variable.details.picture
        shape = variable.golden_shape or variable.shape
        if picture is None or not picture.golden or shape is None:
            continue
        last_axis = max(picture.row_axis or 0, picture.column_axis)
        if variable.verdict.is_alarm and last_axis < len(shape):
            return _drawn(check, variable, picture, shape)
    return None


def _drawn(
    check: CheckResult, variable: VariableResult, picture: Picture, shape: tuple[int, ...]
) -> PictureFile:
    golden, new = sides_of(check, variable)
    what, third = "|difference| / bound", (picture.classes, SHARE_PALETTE)
    if picture.signed:
        what, third = f"{new} - {golden}", (picture.signed, SIGNED_PALETTE)
    panels = [(picture.golden, VALUE_PALETTE), (picture.new, VALUE_PALETTE), third]
    is_line = picture.row_axis is None
    size = (_LINE_HEIGHT, _LINE_WIDTH) if is_line else _size(picture, shape)
    drawn = [_panel(picture, text, palette, size) for text, palette in panels]
    gap_line = bytes(_GROUND) * size[1]
    if is_line:
        lines = [line for panel in drawn for line in (*panel, *[gap_line] * _GAP)][:-_GAP]
    else:
        gap = bytes(_GROUND) * _GAP
        lines = [gap.join(parts) for parts in zip(*drawn, strict=True)]
    return PictureFile(rgb_png(lines), f"{place(variable)}: {golden} | {new} | {safe_name(what)}")


def _size(picture: Picture, shape: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a panel, in the array's own proportions as far as these can be seen."""
    assert picture.row_axis is not None
    ratio = shape[picture.row_axis] / shape[picture.column_axis]
    ratio = min(max(ratio, 0.25), 4.0)
    return round(_SIDE * min(1.0, ratio)), round(_SIDE * min(1.0, 1 / ratio))


def _panel(
    picture: Picture, text: str, palette: Sequence[Colour], size: tuple[int, int]
) -> list[bytes]:
    """The lines of one panel, three bytes for each of its pixels."""
    height, width = size
    values = cells(text, picture.rows, picture.columns)
    colours = [_on_ground(colour) for colour in palette]
    columns = [x * picture.columns // width for x in range(width)]
    rows = [
        b"".join(colours[values[row * picture.columns + column]] for column in columns)
        for row in range(picture.rows)
    ]
    return [rows[y * picture.rows // height] for y in range(height)]


def _on_ground(colour: Colour) -> bytes:
    share = colour[3] / 255
    pairs = zip(colour[:3], _GROUND, strict=True)
    return bytes(round(one * share + other * (1 - share)) for one, other in pairs)
