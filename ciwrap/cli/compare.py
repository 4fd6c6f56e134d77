"""`ciwrap compare`: two files or folders against each other, the data of both at hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import (
    json_option,
    report_option,
    resource_options,
    verbose_option,
)
from ciwrap.cli.session import Session  # noqa: TC001 - as in the other commands
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from ciwrap.compare.runs import Rules
    from ciwrap.config import Check
    from ciwrap.model import ErrorBound


@click.command(name="compare", short_help="Compare two files or folders with each other.")
@click.argument("golden", metavar="A", type=click.Path())
@click.argument("new", metavar="B", type=click.Path())
@click.option("--atol", type=float, help="Absolute error bound.")
@click.option("--rtol", type=float, help="Relative error bound (of the values in A).")
@click.option("--ulps", type=int, help="Bound in units in the last place; instead of the others.")
@click.option("--check", "check_name", metavar="NAME", help="Take bounds and layout of this check.")
@click.option("--config", "config_path", type=click.Path(), help="Where that check is configured.")
@click.option("--layout", metavar="PATTERN", help="Where iteration and rank stand in the paths.")
@click.option(
    "--format", "format_name", metavar="NAME", help="Reader, where the suffix tells none."
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these files out.")
@click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave these variables out.")
@json_option
@report_option
@verbose_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    golden: str,
    new: str,
    atol: float | None,
    rtol: float | None,
    ulps: int | None,
    check_name: str | None,
    config_path: str | None,
    layout: str | None,
    format_name: str | None,
    exclude: tuple[str, ...],
    ignore: tuple[str, ...],
) -> int:
    """Compare file or folder A with B, element by element where trees leave any doubt.

    Without bounds the numbers have to be equal. A value v of B differs from g of A unless
    |v - g| <= atol + rtol * |g|. In folders, files are paired by iteration, rank and name.

    Exit codes: 0 match, 1 differ, 2 usage, 3 could not compare.
    """
    from importlib.metadata import version

    from ciwrap.cli.progress import progress_bar
    from ciwrap.compare.runs import compare_runs
    from ciwrap.golden.environment import describe_environment
    from ciwrap.model import ErrorBound, RunResult
    from ciwrap.readers.layout import find_in

    check = _configured(check_name, config_path)
    bound = None
    if (atol, rtol, ulps) != (None, None, None):
        bound = ErrorBound(atol or 0.0, rtol or 0.0, ulps or 0)
    rules = _rules(check, bound, ignore)
    started = time.monotonic()
    ours, theirs = Path(golden), Path(new)
    if ours.exists() and theirs.exists() and ours.is_dir() != theirs.is_dir():
        raise UsageError(
            f"{golden} is a {'folder' if ours.is_dir() else 'file'}, {new} is not",
            remedy="give two files or two folders",
        )
    sides = [
        find_in(
            path,
            layout=layout or (check.layout if check else None),
            format_name=format_name or (check.format if check else None),
            options=check.options if check else None,
            exclude=(*exclude, *(check.exclude if check else ())),
            # Two single arrays are held against each other whatever their files are called.
            name=ours.stem,
        )
        for path in (ours, theirs)
    ]
    with progress_bar() as progress:
        result = compare_runs(
            f"{golden} : {new}",
            sides[0],
            sides[1],
            rules,
            golden_path=golden,
            source_path=new,
            resources=session.resources,
            progress=progress,
        )
    return session.emit(
        RunResult(
            verdict=result.verdict,
            checks=(result,),
            kind=session.kind,
            environment=describe_environment(Path.cwd()),
            ciwrap_version=version("ciwrap"),
            started_at=session.started_at,
            seconds=time.monotonic() - started,
        )
    )


def _configured(check_name: str | None, config_path: str | None) -> Check | None:
    if check_name is None:
        if config_path is not None:
            raise UsageError("--config says nothing without --check", remedy="name a check of it")
        return None
    from ciwrap.cli.project import load_project

    return load_project(config_path, None, (check_name,)).checks[0]


def _rules(check: Check | None, bound: ErrorBound | None, ignore: tuple[str, ...]) -> Rules:
    from dataclasses import replace

    from ciwrap.compare.runs import Rules
    from ciwrap.config import fit_to_dtype, name_matches
    from ciwrap.model import VariableId, VariableSettings

    def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
        settings = VariableSettings() if check is None else check.settings_for(identity)
        if bound is not None:
            settings = replace(settings, bound=bound)
        return fit_to_dtype(settings, dtype)

    def is_ignored(identity: VariableId) -> bool:
        if any(name_matches(pattern, identity) for pattern in ignore):
            return True
        return check is not None and check.is_ignored(identity)

    return Rules(settings_for, is_ignored, strict_variables=check is None or check.strict.variables)
