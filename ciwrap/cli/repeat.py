"""`ciwrap repeat`: run the command several times; what varies, and which bound would hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from secrets import randbelow
from typing import cast

import click
from msgspec.structs import replace

from ciwrap import __version__
from ciwrap.base.errors import UsageError
from ciwrap.cli.commands import command, complete_checks, verbosity_options
from ciwrap.cli.main import Session
from ciwrap.cli.options import (
    config_options,
    host,
    json_option,
    keep_host_option,
    markdown_option,
    report_option,
    resource_options,
)
from ciwrap.model import Message, MessageLevel
from ciwrap.model.repeat_result import RepeatedRun, RepeatResult
from ciwrap.project.config import load_runs
from ciwrap.project.settings import Config, RunPlace
from ciwrap.report.document import repeat_document, write_text
from ciwrap.report.text import relative_to, safe_text, seconds_text
from ciwrap.review.project import Project, load_project, load_project_if_any, near
from ciwrap.snapshot.difference import describe_environment
from ciwrap.statistics.factors import Design
from ciwrap.studies.repeat.edit_config import changed_config
from ciwrap.studies.repeat.page import render_repeat, repeat_summary, write_repeat_report
from ciwrap.studies.repeat.result import make_result
from ciwrap.studies.repeat.run import (
    HowToRepeat,
    Plan,
    existing_runs,
    find_factors,
    make_plan,
    measure_existing,
)

_MOST_IN_FULL = 4


@command("repeat", example="ciwrap repeat --write-bounds")
@click.argument("names", nargs=-1, metavar="[CHECK]...", shell_complete=complete_checks)
@click.option("-n", "--count", type=click.IntRange(2, 2000), metavar="N", help="How many runs.")
@click.option(
    "--runs",
    "run_globs",
    multiple=True,
    metavar="GLOB",
    help="Run nothing: compare these folders, each of which is a run.",
)
@click.option(
    "--vary",
    "factor_names",
    multiple=True,
    metavar="FACTOR",
    help="Switch a factor off and on: threads, hash-seed, reserve-core, one of ciwrap.yaml, or"
    " VARIABLE=OFF,ON.",
)
@click.option(
    "--reference",
    type=click.Choice(["first", "golden"]),
    help="Compare runs with the first one, or with the golden.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of the order, and of {seed}.")
@click.option(
    "--perturb",
    "is_perturbed",
    is_flag=True,
    help="Change the input files that 'perturb' names by a hair, for each run but the first.",
)
@click.option(
    "--concurrent",
    type=click.IntRange(1, 256),
    default=1,
    metavar="M",
    help="How many runs at a time; they need {run} in their outputs.",
)
@click.option("--write-bounds", is_flag=True, help="Write the suggested bounds to ciwrap.yaml.")
@click.option(
    "--dry-run", is_flag=True, help="Show the runs; with --write-bounds, the bounds; write nothing."
)
@click.option("--keep", is_flag=True, help="Keep what each run wrote, in .ciwrap/repeat/run_N.")
@keep_host_option
@click.option("--check", "is_checked", is_flag=True, help="Exit with 1 if a bound does not hold.")
@config_options
@json_option
@markdown_option
@report_option
@verbosity_options
@resource_options
@click.pass_obj
def repeat_command(
    session: Session,
    names: tuple[str, ...],
    count: int | None,
    run_globs: tuple[str, ...],
    factor_names: tuple[str, ...],
    reference: str | None,
    seed: int | None,
    is_perturbed: bool,
    concurrent: int,
    write_bounds: bool,
    dry_run: bool,
    keep: bool,
    keep_host: bool,
    is_checked: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Run the command of ciwrap.yaml several times; say what varies from run to run, by how much,
    and which error bounds would hold.

    Each run's outputs are moved to a folder of their own, and compared with those of the first one
    (or with the golden). What lay there before is back afterwards. {run} and {seed} in the command
    and in the outputs stand for the run's number and a seed of its own.

    Exit codes: 0 whatever varies; 1 with --check, if a bound does not hold; 2 usage; 3 if a run
    failed or could not be compared.
    """
    started = time.monotonic()
    if run_globs:
        of_runs_made = {
            "count": count is not None,
            "vary": bool(factor_names),
            "seed": seed is not None,
            "keep": keep,
            "perturb": is_perturbed,
            "concurrent": concurrent != 1,
            "keep-host": keep_host,
            "dry-run": dry_run and not write_bounds,
        }
        for option, is_given in of_runs_made.items():
            if is_given:
                raise UsageError(f"--{option} cannot be used with --runs, which runs nothing")
        existing = load_project_if_any(config_path, golden_dir, names)
        result = _existing_runs(session, existing, run_globs, reference, is_checked=is_checked)
        return finish(session, existing, result, started, write_bounds, is_dry=dry_run)
    project = load_project(config_path, golden_dir, names)
    settings = project.own_config.repeat
    reference = reference or settings.reference
    if is_perturbed and settings.perturb is None:
        raise UsageError(
            "the configuration names no input files to perturb",
            file=project.own_config.path,
            remedy="give 'perturb' under 'repeat'",
        )
    factors = find_factors(factor_names, settings.factors)
    usual = "full" if len(factors) <= _MOST_IN_FULL else "fractional"
    plan = make_plan(
        count or settings.runs,
        factors,
        cast("Design", settings.design or usual),
        randbelow(1 << 31) if seed is None else seed,
    )
    if dry_run and not write_bounds:
        return _show_plan(session, plan)
    how = HowToRepeat(
        names=tuple(check.name for check in project.checks),
        perturb=settings.perturb if is_perturbed else None,
        keeps=keep,
        is_shown=session.verbose,
        concurrent=concurrent,
        keeps_host=keep_host,
        golden=project.store if reference == "golden" else None,
        resources=session.resources,
        on_run=teller(session, len(plan.runs)),
    )
    result = _planned_runs(session, project, plan, how, is_checked=is_checked)
    return finish(session, project, result, started, write_bounds, is_dry=dry_run)


def _planned_runs(
    session: Session, project: Project, plan: Plan, how: HowToRepeat, *, is_checked: bool
) -> RepeatResult:
    from ciwrap.studies.repeat.run import repeat_command

    found = repeat_command(config_of_runs(project), plan, how)
    session.environment = found.environment
    if how.keeps_host:
        session.environment = {**(found.environment or describe_environment(Path.cwd())), **host()}
    return make_result(
        found.measurers,
        found.runs,
        plan=plan,
        reference="first" if how.golden is None else "golden",
        is_checked=is_checked,
        messages=[Message(MessageLevel.WARNING, text) for text in found.notes],
    )


def _existing_runs(
    session: Session,
    project: Project | None,
    run_globs: tuple[str, ...],
    reference: str | None,
    *,
    is_checked: bool,
) -> RepeatResult:
    if reference == "golden" and project is None:
        raise UsageError("without a configuration there is no golden")
    paths = existing_runs(run_globs)
    how = HowToRepeat(
        names=(),
        golden=project.store if project is not None and reference == "golden" else None,
        resources=session.resources,
        on_run=teller(session, len(paths)),
    )
    found = measure_existing(paths, () if project is None else project.checks, how)
    return make_result(
        found.measurers, found.runs, reference=reference or "first", is_checked=is_checked
    )


def _write_bounds(
    session: Session, project: Project | None, result: RepeatResult, *, is_dry: bool
) -> None:
    """Shows what the suggested bounds change in ciwrap.yaml, then writes it.

    Raises ConfigError, WriteFailedError, and UsageError where there is no configuration.
    """
    if project is None:
        raise UsageError("there is no ciwrap.yaml to write to", remedy="'ciwrap init' writes one")
    path = project.own_config.path
    change = changed_config(result, path)
    console = session.console
    if change is None:
        console.print("there is no bound to write: none is suggested, or they fit already")
        return
    for line in change.diff:
        console.print(safe_text(line))
    if is_dry:
        console.print("dry run: nothing was written")
        return
    write_text(change.text, str(path), "the configuration")
    console.print(f"written to {safe_text(near(path))}")
    if any(project.store.path(check.name).exists() for check in project.checks):
        console.print(
            "checks judge by these bounds from now on; goldens that keep no data decide more surely"
            " once they are made with them: ciwrap accept --bounds-only --reason '...'"
        )


def config_of_runs(project: Project) -> Callable[[RunPlace], Config]:
    """What the configuration says of each run, with paths as the user would type them."""
    read = load_runs(project.own_config.path)

    def config_of(place: RunPlace) -> Config:
        config = read(place)
        checks = tuple(replace(check, root=near(check.root)) for check in config.checks)
        return replace(config, root=near(config.root), checks=checks)

    return config_of


def teller(session: Session, count: int) -> Callable[[RepeatedRun], None]:
    """Says on stderr which runs are over, to those who watch."""

    def tell(run: RepeatedRun) -> None:
        took = "" if run.seconds is None else f" ({seconds_text(run.seconds)})"
        problem = "" if run.problem is None else f": {run.problem}"
        print(f"run {run.number} of {count}{took}{problem}", file=sys.stderr)

    return tell if session.verbose or sys.stderr.isatty() else lambda run: None  # noqa: ARG005


def _show_plan(session: Session, plan: Plan) -> int:
    """The runs that would be made, in their order."""
    session.console.print(f"{len(plan.runs)} runs, in this order (--seed {plan.seed}):")
    for run in plan.runs:
        states = " ".join(f"{name}={state}" for name, state in plan.states(run).items())
        session.console.print(f"  run {run.number}  {states}".rstrip())
    return 0


def finish(
    session: Session,
    project: Project | None,
    result: RepeatResult,
    started: float,
    write_bounds: bool = False,
    *,
    is_dry: bool = False,
) -> int:
    """Tells what was found, writes bounds if asked for, and returns the exit code."""
    result = replace(
        result,
        environment=session.environment or describe_environment(Path.cwd()),
        ciwrap_version=__version__,
        started_at=session.started_at,
        seconds=time.monotonic() - started,
    )
    portable = relative_to(result, Path.cwd())  # what leaves this machine names no folder of it
    try:
        session.emit_document(repeat_document(portable))
        session.emit_summary(repeat_summary(portable))
        if session.report_target is not None:
            write_repeat_report(session.report_target, portable)
    finally:
        render_repeat(result, session.console, verbose=session.verbose)
    if write_bounds and result.has_failed:
        # What would have been seen is not known; the result says so, and its exit code is 3.
        session.console.print("no bound was written, since not everything was compared")
    elif write_bounds:
        _write_bounds(session, project, result, is_dry=is_dry)
    return result.exit_code
