"""`ciwrap trend`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from ciwrap.base.errors import UsageError
from ciwrap.cli.commands import command
from ciwrap.cli.main import Session
from ciwrap.cli.options import (
    config_options,
    json_option,
    markdown_option,
    report_option,
    section_options,
)
from ciwrap.golden.manifest import Manifest
from ciwrap.golden.show import stored_places
from ciwrap.golden.store import GoldenStores
from ciwrap.project.config import timing_settings
from ciwrap.project.schema import TIMING
from ciwrap.report.document import write_text
from ciwrap.report.text import plural, safe_name
from ciwrap.review.project import load_config_if_any
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.studies.observed import Observed, collect, read_results
from ciwrap.studies.result_store import labelled, store_at
from ciwrap.studies.trend import (
    MeasuredSeries,
    ShareSeries,
    TrendDocument,
    find_trends,
)
from ciwrap.studies.trend_report import (
    bars,
    change_lines,
    check_name,
    most_text,
    now_text,
    render_trend_html,
    slope_words,
    trend_summary,
    verdict_marks,
    verdict_words,
    walk_words,
)

_MOST_VARIABLES = 12


@command("trend", example="ciwrap trend results/*.json")
@click.argument("results", nargs=-1, metavar="[RESULT.json...]")
@click.option(
    "--store",
    metavar="BRANCH|FOLDER",
    help="Add the results to those kept there, and read all of them.",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Keep at most so many results in the store; the oldest go first.",
)
@click.option("--label", metavar="NAME", help="What the results are of: a platform, say.")
@click.option("--push", is_flag=True, help="Read and write the branch of origin.")
@section_options(TIMING, "margin")
@markdown_option
@config_options
@json_option
@report_option
@click.pass_obj
def trend_command(
    session: Session,
    results: tuple[str, ...],
    store: str | None,
    keep: int,
    label: str | None,
    *,
    push: bool,
    margin: float | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Read JSON results of many runs, and say which variables come nearer to their bounds, when a
    command became slower, and how far goldens have moved by being accepted.

    Results are those of check, run, compare and time, in any order; their own times count. Nothing
    is compared, so the exit code is 0 whatever is found; warnings are in the JSON document, too.

    A store keeps what matters of each commit's results; a commit that comes again replaces its own.

    Exit codes: 0 done, 2 usage, 3 a result could not be read.
    """
    if store is None and (push or label is not None):
        raise UsageError(f"{'--push' if push else '--label'} needs --store")
    if store is None and not results:
        raise UsageError("there are no results", remedy="name JSON results, or --store")
    config = load_config_if_any(config_path, needs_checks=False)
    folder = None if config is None else config.golden_dir
    folder = folder if golden_dir is None else Path(golden_dir)
    settings = timing_settings() if config is None else config.timing
    manifests = [] if folder is None else _manifests(folder)
    # Snapshots of results lie beside goldens, and where runs here have left them.
    snapshots = [
        *([] if folder is None else [SnapshotStore.of_goldens(folder)]),
        SnapshotStore.of_project(Path.cwd() if config is None else config.root),
    ]

    def told(found: Iterable[Observed], repeated: int = 0) -> TrendDocument:
        collected = collect(found, repeated)
        margin_used = settings.margin if margin is None else margin
        return find_trends(collected, manifests, margin=margin_used, snapshots=snapshots)

    new, repeated = read_results([Path(result) for result in results])
    if store is None:
        document = told(new, repeated)
    else:
        place = store_at(store, is_pushed=push)
        if new:
            place.add(labelled(new, label), keep, lambda kept: trend_summary(told(kept)))
        document = told(place.read())
    session.emit_record(document)
    session.emit_summary(trend_summary(document))
    if session.report_target is not None:
        write_text(render_trend_html(document), session.report_target, "the report")
    _print_trend(session, document)
    return 0


def _manifests(folder: Path) -> list[Manifest]:
    """The manifests of all goldens. Raises CorruptGoldenError."""
    stores = GoldenStores(folder)
    return [stores.at(place).read(place.name).manifest for place in stored_places(folder)]


def _print_trend(session: Session, document: TrendDocument) -> None:
    console = session.console
    days = f"{document.first[:10]} to {document.last[:10]}"
    console.print(f"{plural(document.results, 'result')}, {days}")
    for warning in document.warnings:
        console.print(f"warning: {warning}")
    if not document.warnings:
        console.print("nothing to warn of")
    if document.shares:
        console.print("\nshare of the bound used, at its worst checkpoint")
        rows = [_share_row(one) for one in document.shares[:_MOST_VARIABLES]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            console.print(f"  {'  '.join(cells)}".rstrip())
        rest = len(document.shares) - _MOST_VARIABLES
        if rest > 0:
            console.print(f"  ... and {plural(rest, 'more variable')} with no larger share")
    told = [one for one in document.checks if not all(at.verdict.is_good for at in one.points)]
    if told:
        console.print("\nverdicts")
    for check in told:
        marks = f"  |{verdict_marks(check)}|" if len(check.points) > 1 else ""
        console.print(f"  {check_name(check)}  {verdict_words(check)}{marks}")
    for series in (document.times, document.memory):
        _print_measured(session, series)
    if document.goldens:
        console.print("\ngoldens")
        for walk in document.goldens:
            console.print(f"  {walk_words(walk)}")


def _print_measured(session: Session, series: Sequence[MeasuredSeries]) -> None:
    for one in series:
        head = f"{safe_name(one.command, 80)} on {safe_name(one.cpu, 60)}"
        session.console.print(f"\n{'memory of ' if one.noun == 'memory' else ''}{head}")
        for line in change_lines(one):
            session.console.print(f"  {line}")


def _share_row(one: ShareSeries) -> tuple[str, ...]:
    return (
        f"{safe_name(one.check, 30)}: {safe_name(one.variable, 30)}",
        now_text(one),
        most_text(one),
        slope_words(one),
        f"|{bars(one)}|" if len(one.points) > 1 else "",
    )
