"""`ciwrap variability`: maps from a configuration to how much its runs vary."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap import __version__
from ciwrap.base.errors import UsageError
from ciwrap.cli.commands import CommandGroup
from ciwrap.cli.main import Session
from ciwrap.cli.options import json_option, report_option
from ciwrap.report.document import write_text
from ciwrap.snapshot.difference import describe_environment
from ciwrap.statistics.spread import scipy
from ciwrap.studies.variability.fit import (
    FittedMap,
    MapFile,
    fit_maps,
    map_of,
    plan_next,
    plan_repeats,
    read_map,
    write_map,
)
from ciwrap.studies.variability.predictors import PREDICTORS
from ciwrap.studies.variability.quality import VariabilityDocument
from ciwrap.studies.variability.report import lines_of, render_variability_html
from ciwrap.studies.variability.runs import Roles, read_runs

if TYPE_CHECKING:
    from ciwrap.studies.variability.runs import Numbers

_MAP = "variability-map.json"
_NEXT = 3  # how many configurations to measure next


@click.group(cls=CommandGroup, name="variability", no_args_is_help=False)
def variability_command() -> None:
    """Estimate how much runs of a configuration vary that nobody has run yet.

    `fit` makes a map of a table of runs, `predict` asks it, and `plan` says how often to repeat a
    configuration and which one to measure next. All need SciPy (pip install '.[stats]' in a clone).
    """
    # Before NumPy is loaded: for matrices this small, threads cost ten times what they bring,
    # above all on a busy machine.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@variability_command.command(
    name="fit",
    example="ciwrap variability fit runs.csv",
    short_help="Make a map of a table of runs.",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("-o", "--output", default=_MAP, metavar="FILE", help=f"The map (default: {_MAP}).")
@click.option(
    "--value", metavar="COLUMN", help="What was measured (default: seconds, else the last)."
)
@click.option("--seconds", metavar="COLUMN", help="How long a run took, to tell what repeats cost.")
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="COLUMN",
    help="A map for each of its values; columns of texts are categories anyway.",
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="COLUMN", help="A column that says nothing."
)
@click.option("--predictor", metavar="NAME", help="Use this one, instead of the best.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of all draws (default 0).")
@json_option
@report_option
@click.pass_obj
def fit(
    session: Session,
    tables: tuple[str, ...],
    output: str,
    value: str | None,
    seconds: str | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    predictor: str | None,
    seed: int,
) -> int:
    """Fit a map of the standard deviation over the repeats of each configuration.

    TABLE is a .csv, .tsv or .parquet file with a row for each run, or the JSON result of `ciwrap
    repeat` or `ciwrap time`. All columns are parameters, but for what was measured, texts
    (categories: separate maps), and those called run, repeat, repetition or trial.

    Several predictors are tried on configurations they have not seen; the table of all of them is
    printed beside the noise floor.

    Exit codes: 0 done, 2 usage, 3 a table could not be read or says too little.
    """
    session.kind = "variability"
    started = time.monotonic()
    _require_scipy()
    runs = read_runs([Path(table) for table in tables], Roles(value, seconds, categories, ignored))
    fitted = fit_maps(
        runs,
        seed=seed,
        only=_predictor(predictor),
        made=session.started_at,
        ciwrap_version=__version__,
        tell=_tell,
    )
    write_map(fitted.file, output)
    found = _document(
        session, "fit", runs.file, fitted.file, started, maps=fitted.summaries, map_file=output
    )
    return _end(session, found)


@variability_command.command(
    name="predict",
    example="ciwrap variability predict variability-map.json threads=8",
    short_help="Ask a map about a configuration.",
)
@click.argument("map_file", metavar="MAP")
@click.argument("configuration", nargs=-1, required=True, metavar="NAME=VALUE...")
@click.option("--confidence", type=float, default=0.9, help="Of the interval (default 0.9).")
@json_option
@click.pass_obj
def predict(
    session: Session, map_file: str, configuration: tuple[str, ...], confidence: float
) -> int:
    """Say which standard deviation a configuration probably has, with an interval.

    All parameters of the map are given as NAME=VALUE, and its categories, if any. The interval
    holds the standard deviation that so many repeats would show as often as it says. Beyond what
    was measured, the prediction is called extrapolated.

    Exit codes: 0 done, 2 usage, 3 the map could not be read.
    """
    session.kind = "variability"
    started = time.monotonic()
    _require_scipy()
    if not 0 < confidence < 1:
        raise UsageError("--confidence must be between 0 and 1")
    maps, fitted, point = _ask(map_file, configuration)
    predictions = (fitted.predict(point, confidence),)
    found = _document(session, "predict", map_file, maps, started, predictions=predictions)
    return _end(session, found)


@variability_command.command(
    name="plan",
    example="ciwrap variability plan variability-map.json",
    short_help="Say what to repeat, and what to measure next.",
)
@click.argument("map_file", metavar="MAP")
@click.argument("configuration", nargs=-1, metavar="[NAME=VALUE...]")
@click.option("--error", type=float, default=0.1, help="Wanted, as a share (default 0.1).")
@click.option("--confidence", type=float, default=0.9, help="Wanted (default 0.9).")
@click.option(
    "--next", "count", type=click.IntRange(1, 100), help="How many to measure next (default 3)."
)
@json_option
@report_option
@click.pass_obj
def plan(
    session: Session,
    map_file: str,
    configuration: tuple[str, ...],
    error: float,
    confidence: float,
    count: int | None,
) -> int:
    """Say how many repeats a configuration takes, or without one, which to measure next.

    A configuration that was measured is judged by its own runs, any other one by the map. Those to
    measure next are those of which the map knows least, each as if the ones before had been
    measured. Where the time of a run is known, the cost is reported.

    Exit codes: 0 done, 2 usage, 3 the map could not be read.
    """
    session.kind = "variability"
    started = time.monotonic()
    _require_scipy()
    wanted: dict[str, Any] = {"error": error, "confidence": confidence}
    if configuration and count is not None:
        raise UsageError("--next cannot be used with a configuration", remedy="leave one out")
    count = _NEXT if count is None else count
    if configuration:
        maps, fitted, point = _ask(map_file, configuration)
        repeats = (plan_repeats(fitted, point, seed=maps.seed, **wanted),)
        return _end(session, _document(session, "plan", map_file, maps, started, repeats=repeats))
    maps = read_map(Path(map_file))
    candidates = [
        one
        for stored in maps.maps
        for one in plan_next(FittedMap(stored), count, seed=maps.seed, **wanted)
    ]
    candidates.sort(key=lambda one: -one.uncertainty)
    first = tuple(candidates[:count])
    found = _document(session, "plan", map_file, maps, started, candidates=first)
    return _end(session, found)


def _require_scipy() -> None:
    scipy("linalg", "`ciwrap variability`")


def _tell(line: str) -> None:
    """Tells a person at a terminal how far it is."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _predictor(name: str | None) -> str | None:
    if name is None:
        return None
    for known in PREDICTORS:
        if known.lower() == name.lower():
            return known
    raise UsageError(f"there is no predictor {name!r}", remedy=f"there are {', '.join(PREDICTORS)}")


def _ask(map_file: str, configuration: Sequence[str]) -> tuple[MapFile, FittedMap, Numbers]:
    """The maps, the one that is meant, and the configuration's point. Raises UsageError."""
    maps = read_map(Path(map_file))
    texts = _assignments(configuration)
    names = {name for one in maps.maps for name in one.category}
    fitted = map_of(maps, {name: text for name, text in texts.items() if name in names})
    numbers = {name: _number(name, text) for name, text in texts.items() if name not in names}
    return maps, fitted, fitted.point(numbers)


def _assignments(configuration: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in configuration:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise UsageError(f"{word!r} is not NAME=VALUE")
        if name in found:
            raise UsageError(f"{name} is given twice")
        found[name] = text
    return found


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{name}={text}: {text!r} is not a number")
    return number


def _document(
    session: Session, did: Any, file: str, asked: MapFile, started: float, **found: Any
) -> VariabilityDocument:
    parts: dict[str, Any] = {"maps": (), "predictions": (), "repeats": (), "candidates": ()}
    return VariabilityDocument(
        schema_version=1,
        kind="variability",
        did=did,
        file=file,
        value=asked.value,
        seed=asked.seed,
        environment=describe_environment(Path.cwd()),
        ciwrap_version=__version__,
        started_at=session.started_at,
        seconds=time.monotonic() - started,
        **{**parts, **found},
    )


def _end(session: Session, found: VariabilityDocument) -> int:
    """Writes documents and prints."""
    session.emit_record(found)
    if session.report_target is not None:
        write_text(render_variability_html(found), session.report_target, "the report")
    for line in lines_of(found):
        session.console.print(line)
    return 0
