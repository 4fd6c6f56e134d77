"""`ciwrap values`: what a configuration finds in a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.options import json_option
from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ciwrap.cli.json_documents import FoundValue
    from ciwrap.cli.session import Session
    from ciwrap.readers.log import LogSource

_TITLES = ("name", "matches", "first", "last", "line")


@click.command(name="values", short_help="Print what a configuration finds in a log.")
@click.argument("file", type=click.Path())
@click.option("--check", "check_name", metavar="NAME", help="The check whose rules are tried.")
@click.option("--config", "config_path", type=click.Path(), help="Where that check is configured.")
@click.option("--use", metavar="CODE", help="Try shipped rules: cp2k, lammps, pyscf or qe.")
@json_option
@click.pass_obj
def command(
    session: Session, file: str, check_name: str | None, config_path: str | None, use: str | None
) -> int:
    """Print what the rules of a check find in FILE: how often, the first and the last value, and
    the line of the first.

    Without --check, the one check with `format: log` is taken. Writes nothing and compares nothing.

    Exit codes: 0 all rules find something, but for `optional` ones, 2 usage or configuration, 3 one
    finds nothing, or what it finds is not a number.
    """
    from ciwrap.cli.json_documents import ValuesDocument
    from ciwrap.readers.log import LogReader
    from ciwrap.report.text import safe_text

    options = _options(check_name, config_path, use)
    with LogReader().open(Path(file), options=options) as source:
        found = tuple(_found(source))
        problems = [f"{one.name}: {one.fault}" for one in found if one.fault is not None]
        problems += [str(error) for error in source.faults]
        told = (*source.notes, *problems)
    session.emit_record(ValuesDocument(1, "values", file, found, told))
    for line in (*_table(found), *told):
        session.console.print(safe_text(line))
    return int(ExitCode.NOT_COMPARABLE if problems else ExitCode.MATCH)


def _options(check_name: str | None, config_path: str | None, use: str | None) -> dict[str, Any]:
    """The rules that are asked for. Raises UsageError, ConfigError."""
    from ciwrap.cli.load_project import load_project

    if use is not None:
        if check_name is not None or config_path is not None:
            raise UsageError("--use has no meaning beside --check and --config")
        from ciwrap.config.loading import options_of_preset

        return options_of_preset(use)
    project = load_project(config_path, None, () if check_name is None else (check_name,))
    checks = [check for check in project.checks if check.format == "log"]
    if check_name is not None and not checks:
        raise UsageError(
            f"the check {check_name!r} has no 'format: log', so it has no rules of logs",
            remedy="name another one, or try the rules of a code with --use",
        )
    if len(checks) != 1:
        names = ", ".join(check.name for check in checks) or "none"
        raise UsageError(
            f"one check with 'format: log' is needed (known: {names})",
            remedy="name it with --check, or try the rules of a code with --use",
        )
    return dict(checks[0].options)


def _found(source: LogSource) -> Iterator[FoundValue]:
    """What each rule finds."""
    from ciwrap.cli.json_documents import FoundValue

    for name, series in source.series.items():
        values = source.elements_of(name)
        line = series.place(0)[0].line if series.count else None
        first = str(values[0]) if series.count else None
        last = str(values[-1]) if series.count else None
        unit = " ".join(text for text, _ in series.units.values()) or None
        yield FoundValue(name, series.found_count, first, last, line, unit, series.fault)
    for counter in source.counters:
        line = None if counter.first is None else counter.first.number
        yield FoundValue(counter.name, counter.count, None, None, line)


def _table(found: Iterable[FoundValue]) -> list[str]:
    """Columns side by side, names to the left, numbers to the right."""
    lines = [_TITLES]
    for one in found:
        last = " ".join(text for text in (one.last, one.unit) if text)
        lines.append((one.name, str(one.matches), one.first or "", last, str(one.line or "")))
    widths = [max(len(line[at]) for line in lines) for at in range(len(_TITLES))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
