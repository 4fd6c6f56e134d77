"""`ciwrap demo`: a noisy simulation against its golden, then the same with a planted defect."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import json_option, resource_options, verbose_option
from ciwrap.errors import ExitCode, UsageError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.model import RunResult


@click.command(name="demo", short_help="See it work: a noisy simulation and a defect.")
@click.option(
    "--simulation-threads",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Threads of the simulation; from two on it is noisy.",
)
@click.option(
    "--keep",
    "folder",
    type=click.Path(file_okay=False),
    help="Keep everything in this new folder, to play with.",
)
@json_option
@verbose_option
@resource_options
@click.pass_obj
def command(session: Session, simulation_threads: int, folder: str | None) -> int:
    """Run a small simulation with real floating-point noise, and check it against its golden.

    First the unchanged program, which must match; then one with a planted defect, which must not.
    Exit code 0 if both come out so, else 1.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="ciwrap-demo-") as temporary:
            return _run(session, Path(temporary) / "demo", simulation_threads)
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise UsageError("is not empty", file=target, remedy="choose a new folder")
    code = _run(session, target.absolute(), simulation_threads)
    session.console.print(f"\nEverything is kept in {target}: try `ciwrap check -v` there.")
    return code


def _run(session: Session, folder: Path, threads: int) -> int:
    from ciwrap.demo.story import run_demo
    from ciwrap.report.document import SCHEMA_VERSION, to_document
    from ciwrap.report.terminal import render

    def say(text: str) -> None:
        session.console.print(text)

    def show(result: RunResult) -> None:
        render(_from(folder, result), session.console, verbose=session.verbose)

    demonstration = run_demo(
        folder, say=say, show=show, threads=threads, resources=session.resources
    )
    session.emit_document(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": "demo",
            "as_expected": demonstration.is_as_expected,
            "good": to_document(demonstration.good),
            "defective": to_document(demonstration.defective),
        }
    )
    if demonstration.is_as_expected:
        say("\nAs it should be: the noise passes, the defect does not.")
        return int(ExitCode.MATCH)
    say(
        "\nNOT as it should be: expected match, then differ; found"
        f" {demonstration.good.verdict.words}, then {demonstration.defective.verdict.words}."
    )
    return int(ExitCode.DIFFER)


def _from(folder: Path, result: RunResult) -> RunResult:
    """The result with its goldens named from the demonstration's folder."""
    checks = tuple(
        replace(check, golden_path=str(Path(check.golden_path).relative_to(folder)))
        if check.golden_path
        else check
        for check in result.checks
    )
    return replace(result, checks=checks)
