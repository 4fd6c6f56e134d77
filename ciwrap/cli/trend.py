"""`ciwrap trend`: what moves from result to result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option, markdown_option, report_option
from ciwrap.cli.section_options import section_options
from ciwrap.config.schema import TIMING

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.golden.manifest import Manifest
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.trend.document import ShareSeries, TrendDocument

_MOST_VARIABLES = 12


@click.command(name="trend", short_help="Say what moves from result to result.")
@click.argument("results", nargs=-1, required=True, metavar="RESULT.json...")
@section_options(TIMING, "margin")
@markdown_option
@config_options
@json_option
@report_option
@click.pass_obj
def command(
    session: Session,
    results: tuple[str, ...],
    margin: float | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Read JSON results of many runs, and say which variables come nearer to their bounds, when a
    command became slower, and how far goldens have moved by being accepted.

    Results are those of check, run, compare and time, in any order; their own times count. Nothing
    is compared, so the exit code is 0 whatever is found; warnings are in the JSON document, too.

    Exit codes: 0 done, 2 usage, 3 a result could not be read.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.config.loading import timing_settings
    from ciwrap.trend.collect import collect
    from ciwrap.trend.find import find_trends
    from ciwrap.trend.summary import trend_summary

    config = load_config_if_any(config_path)
    folder = None if config is None else config.golden_dir
    folder = folder if golden_dir is None else Path(golden_dir)
    settings = timing_settings() if config is None else config.timing
    document = find_trends(
        collect([Path(result) for result in results]),
        [] if folder is None else _manifests(folder),
        margin=settings.margin if margin is None else margin,
        snapshots=_snapshots(Path.cwd() if config is None else config.root, folder),
    )
    session.emit_record(document)
    session.emit_summary(trend_summary(document))
    if session.report_target is not None:
        from ciwrap.report.document import write_text
        from ciwrap.trend.trend_page import render_trend_html

        write_text(render_trend_html(document), session.report_target, "the report")
    _tell(session, document)
    return 0


def _snapshots(root: Path, golden_dir: Path | None) -> list[SnapshotStore]:
    """Where snapshots of results may lie: beside goldens, and where runs here have left them."""
    from ciwrap.snapshot.store import SnapshotStore

    stores = [SnapshotStore.of_project(root)]
    return stores if golden_dir is None else [SnapshotStore.of_goldens(golden_dir), *stores]


def _manifests(folder: Path) -> list[Manifest]:
    """The manifests of all goldens. Raises CorruptGoldenError."""
    from ciwrap.golden.listing import stored_places
    from ciwrap.golden.stores import GoldenStores

    stores = GoldenStores(folder)
    return [stores.at(place).read(place.name).manifest for place in stored_places(folder)]


def _tell(session: Session, document: TrendDocument) -> None:
    from ciwrap.report.text import plural, safe_name
    from ciwrap.trend.wording import change_lines, walk_words

    console = session.console
    days = f"{document.first[:10]} to {document.last[:10]}"
    console.print(f"{plural(document.results, 'result')}, {days}")
    for warning in document.warnings:
        console.print(f"warning: {warning}")
    if not document.warnings:
        console.print("nothing to warn of")
    if document.shares:
        console.print("\nshare of the bound used, at its worst checkpoint")
        for row in _aligned([_share_row(one) for one in document.shares[:_MOST_VARIABLES]]):
            console.print(f"  {row}")
        rest = len(document.shares) - _MOST_VARIABLES
        if rest > 0:
            console.print(f"  ... and {plural(rest, 'more variable')} with no larger share")
    for one in document.times:
        console.print(f"\n{safe_name(one.command, 80)} on {safe_name(one.cpu, 60)}")
        for line in change_lines(one):
            console.print(f"  {line}")
    if document.goldens:
        console.print("\ngoldens")
        for walk in document.goldens:
            console.print(f"  {walk_words(walk)}")


def _share_row(one: ShareSeries) -> tuple[str, ...]:
    from ciwrap.report.text import safe_name
    from ciwrap.trend.wording import bars, most_text, now_text, slope_words

    return (
        f"{safe_name(one.check, 30)}: {safe_name(one.variable, 30)}",
        now_text(one),
        most_text(one),
        slope_words(one),
        f"|{bars(one)}|" if len(one.points) > 1 else "",
    )


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
