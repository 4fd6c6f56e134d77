"""`ciwrap report`: a page, a job summary, JUnit, SARIF and annotations of JSON results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import click

from ciwrap.base.errors import UsageError
from ciwrap.cli.commands import command
from ciwrap.report.document import from_document, load_document, merge_results, reading_result
from ciwrap.report.outputs import (
    write_junit,
    write_markdown,
    write_picture,
    write_report,
    write_sarif,
)

if TYPE_CHECKING:
    from ciwrap.cli.main import Session
    from ciwrap.model import RunResult


@command("report", example="ciwrap report result.json -o report.html")
@click.argument("results", nargs=-1, required=True, metavar="RESULT.json...")
@click.option("-o", "--output", metavar="FILE", help="The page (default: report.html).")
@click.option("--markdown", metavar="FILE", help="A job summary; '-' for stdout.")
@click.option("--junit", metavar="FILE", help="JUnit XML.")
@click.option("--sarif", metavar="FILE", help="SARIF 2.1.0.")
@click.option("--picture", metavar="FILE.png", help="Golden, new and difference of the first one.")
@click.option("--link", metavar="URL", help="Where the page will lie, for links in the summary.")
@click.option("--annotations", is_flag=True, help="Print GitHub annotations to stdout.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="What to call each result, in order (default: their files' names).",
)
@click.pass_obj
def report_command(
    session: Session,
    results: tuple[str, ...],
    output: str | None,
    markdown: str | None,
    junit: str | None,
    sarif: str | None,
    picture: str | None,
    link: str | None,
    annotations: bool,
    labels: tuple[str, ...],
) -> int:
    """Render what `--json` wrote; several results become one.

    With -o, or without any other output, an HTML page is written. The exit code is 0 whatever the
    verdict, so that a later step can judge; what is not a result of ciwrap is an error. With
    --link, the summary also shows the picture, if anything differs.

    Exit codes: 0 done, 2 usage, 3 a result could not be read or written.
    """
    if labels and len(labels) != len(results):
        raise UsageError(f"{len(results)} results, but {len(labels)} times --label")
    run = merge_results([read_result(Path(path)) for path in results], labels or _labels(results))
    if link is not None and not re.match("https?://", link):
        raise UsageError(f"--link {link}: is not an http address")
    if output is None and not (markdown or junit or sarif or picture or annotations):
        output = "report.html"
    has_picture = picture is not None and write_picture(picture, run)
    if markdown is not None:
        shown = ""
        if link is not None and picture is not None and has_picture:
            shown = urljoin(link, Path(picture).name)
        write_markdown(markdown, run, link or "", shown)
    for write, target in (
        (write_report, output),
        (write_junit, junit),
        (write_sarif, sarif),
    ):
        if target is not None:
            write(target, run)
    if annotations:
        from ciwrap.report.markdown import render_annotations

        click.echo(render_annotations(run), nl=False)
    elif output not in (None, "-") and "-" not in (markdown, junit, sarif):
        session.console.print(f"{run.verdict.words}: wrote {output}")
    return 0


def _labels(paths: tuple[str, ...]) -> list[str]:
    """File names without suffix; whole paths where those are not distinct."""
    stems = [Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def read_result(path: Path) -> RunResult:
    """A JSON result. Raises UnreadableFileError, InvalidResultError."""
    with reading_result(path, "check, run or compare"):
        return from_document(load_document(path))
