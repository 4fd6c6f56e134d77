"""`ciwrap values`: what a configuration finds in a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.readers.log import LogSource

_TITLES = ("name", "matches", "first", "last", "line")


@click.command(name="values", short_help="Print what a configuration finds in a log.")
@click.argument("file", type=click.Path())
@click.option("--check", "check_name", metavar="NAME", help="The check whose rules are tried.")
@click.option("--config", "config_path", type=click.Path(), help="Where that check is configured.")
@click.option("--use", metavar="CODE", help="Try shipped rules: cp2k, lammps, pyscf or qe.")
@click.pass_obj
def command(
    session: Session, file: str, check_name: str | None, config_path: str | None, use: str | None
) -> int:
    """Print what the rules of a check find in FILE: how often, the first and the last value, and
    the line of the first.

    Without --check, the one check with `format: log` is taken. Writes nothing and compares nothing.

    Exit codes: 0 all rules find something, 2 usage or configuration, 3 one finds nothing, or what
    it finds is no number.
    """
    from ciwrap.readers.registry import reader_named
    from ciwrap.report.text import safe_text

    options = _options(check_name, config_path, use)
    with reader_named("log").open(Path(file), options=options) as source:
        rows, problems = _found(source)  # type: ignore[arg-type]
        problems += [str(error) for error in source.faults]
        for line in _table(rows):
            session.console.print(safe_text(line))
        for text in (*source.notes, *problems):
            session.console.print(safe_text(text))
    return int(ExitCode.NOT_COMPARABLE if problems else ExitCode.MATCH)


def _options(check_name: str | None, config_path: str | None, use: str | None) -> dict[str, Any]:
    """The rules that are asked for. Raises UsageError, ConfigError."""
    from ciwrap.cli.load_project import load_project

    if use is not None:
        if check_name is not None or config_path is not None:
            raise UsageError("--use says nothing beside --check and --config")
        from ciwrap.config.loading import options_of_preset

        return options_of_preset(use)
    project = load_project(config_path, None, () if check_name is None else (check_name,))
    checks = [check for check in project.checks if check.format == "log"]
    if len(checks) != 1:
        names = ", ".join(check.name for check in checks) or "none"
        raise UsageError(
            f"one check with 'format: log' is needed (there is: {names})",
            remedy="name it with --check, or try the rules of a code with --use",
        )
    return dict(checks[0].options)


def _found(source: LogSource) -> tuple[list[tuple[str, ...]], list[str]]:
    """A row for each value, and what is wrong with some."""
    rows: list[tuple[str, ...]] = []
    problems = []
    for name, series in source.series.items():
        values = source.elements_of(name)
        line = series.place(0)[0].line if series.count else None
        first, last = (str(values[0]), str(values[-1])) if series.count else ("", "")
        unit = " ".join(text for text, _ in series.units.values())
        rows.append(
            (name, str(series.found_count), first, f"{last} {unit}".strip(), str(line or ""))
        )
        if series.fault is not None:
            problems.append(f"{name}: {series.fault}")
    for counter in source.counters:
        line = None if counter.first is None else counter.first.number
        rows.append((counter.name, str(counter.count), "", "", str(line or "")))
    return rows, problems


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns side by side, names to the left, numbers to the right."""
    lines = [_TITLES, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_TITLES))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
