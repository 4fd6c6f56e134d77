"""The lines of the table of all variables, as many as a page can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ciwrap.model import Verdict
from ciwrap.report.matrix import row_of
from ciwrap.report.page import nice
from ciwrap.report.text import plural
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.report.matrix import Row
    from ciwrap.report.view import Group

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
    return (
        f"... and {plural(len(rest), 'more variable')}, not listed here ({what}); the JSON"
        " result has all."
    )


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
    return f"<td><bdi>{escape(row.check)}</bdi></td>" if columns.check else ""


def _name_cell(row: Row) -> str:
    name = f"<bdi>{escape(row.name)}</bdi>"
    return f'<a href="#c{row.number}">{name}</a>' if row.number else name


def joined(rows: Sequence[str]) -> Markup:
    """Lines whose parts were escaped."""
    return Markup("\n".join(rows))
