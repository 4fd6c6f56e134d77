"""`ciwrap capture`: a whole run as trees in one file, or the statistics of many as an ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.capture_ensemble import (
    EnsembleOptions,
    capture_ensemble,
    ensemble_names,
    ensemble_options,
)
from ciwrap.cli.compare_options import own_files
from ciwrap.cli.options import json_option, resource_options, verbose_option
from ciwrap.cli.rules import RuleOptions, rule_options
from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.captures.capture import CaptureReport
    from ciwrap.captures.kept_snapshot import GivenSnapshot
    from ciwrap.cli.json_documents import CaptureDocument
    from ciwrap.cli.session import Session
    from ciwrap.readers.layout import FoundOutputs

_MOST_BOUNDS = 3
_MOST_NAMES = 4


@click.command(name="capture", short_help="Capture a whole run as trees.")
@click.argument("runs", nargs=-1, metavar="RUN...", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="The capture; default: .ciwrap.tree inside RUN.",
)
@click.option(
    "--residues",
    is_flag=True,
    help="Let other runs be captured against this one; about four bits a value.",
)
@click.option(
    "--against",
    type=click.Path(dir_okay=False),
    metavar="CAPTURE",
    help="Round relative to this capture of another run (made with --residues), so that noise"
    " within the bound raises no suspicion.",
)
@click.option(
    "--checksums", is_flag=True, help="Hash the files, too: captures of copies stay valid."
)
@click.option(
    "--chunk-bytes", type=int, help="Size of a chunk; default: that of --against, else 65536."
)
@click.option(
    "--settle",
    type=click.FloatRange(0, 3600),
    default=1.0,
    metavar="SECONDS",
    show_default=True,
    help="Files younger than this may still be written to.",
)
@click.option("--rebuild", is_flag=True, help="Begin anew instead of adding what is new.")
@click.option("--merge", is_flag=True, help="Pack the journals of a recorded run into one capture.")
@rule_options
@click.option(
    "--ensemble",
    "ensemble_check",
    metavar="CHECK",
    help="Keep the statistics of many runs as the golden of CHECK, in place of trees of one.",
)
@ensemble_options
@json_option
@verbose_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    runs: tuple[str, ...],
    output: str | None,
    residues: bool,
    against: str | None,
    checksums: bool,
    chunk_bytes: int | None,
    settle: float,
    rebuild: bool,
    merge: bool,
    chosen: RuleOptions,
    ensemble_check: str | None,
    of_ensemble: EnsembleOptions,
) -> int:
    """Capture the run in folder RUN: every checkpoint's variables as error-bounded trees.

    `ciwrap compare` then reads only what the trees leave open. Called again, it adds what is new
    and reads nothing twice. A checkpoint that is still being written is left alone and named.

    With --ensemble, each RUN is a folder that has the outputs of CHECK as the project's folder
    would (`ciwrap repeat --keep` leaves such folders); none stands for those that the check's
    `ensemble` names. Features of the runs become its golden, of some kilobytes. The runs must
    differ: give each its own seed, or perturb its initial values by a hair.

    Exit codes: 0 all captured, 2 usage, 3 something was left out, or a run could not be read.
    """
    _refuse_others(is_ensemble=ensemble_check is not None)
    if ensemble_check is not None:
        return capture_ensemble(session, ensemble_check, runs, chosen.config_path, of_ensemble)
    if len(runs) != 1:
        raise UsageError("capture takes one run", remedy="--ensemble takes many")
    (run,) = runs
    if merge:
        return _merge(session, Path(run), output)
    from ciwrap.captures.capture import CaptureOptions, capture_run
    from ciwrap.captures.listing import DEFAULT_INSIDE
    from ciwrap.cli.progress import progress_bar

    folder = Path(run)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{run} is not a folder", remedy="give the run's folder")
    rules = chosen.make_rules()
    target = folder / DEFAULT_INSIDE if output is None else Path(output)
    found = chosen.outputs_of(folder, leave_out=own_files(folder, target))
    with progress_bar() as progress:
        report = capture_run(
            folder,
            found,
            target,
            rules,
            CaptureOptions(
                chunk_bytes=chunk_bytes,
                residues=residues,
                against=None if against is None else Path(against),
                checksums=checksums,
                settle_seconds=settle,
                layout=chosen.layout or (chosen.check.layout if chosen.check else None),
                snapshot=_snapshot(found),
            ),
            rebuild=rebuild,
            resources=session.resources,
            progress=progress,
        )
    session.emit_record(_document(report, run, str(target)))
    _show(session, report, str(target))
    return int(ExitCode.NOT_COMPARABLE if report.left_alone else ExitCode.MATCH)


def _merge(session: Session, run: Path, output: str | None) -> int:
    from ciwrap.captures.journals import is_recording
    from ciwrap.captures.listing import capture_paths
    from ciwrap.captures.merge import merge_recording

    if not is_recording(run):
        raise UsageError("is not a recorded run", file=run, remedy="--merge takes one")
    # Beside the run: inside of it, it would be taken for the run itself.
    target = capture_paths(run)[-1] if output is None else Path(output)
    count = merge_recording(run, target)
    session.console.print(f"packed {count:,} checkpoints into {target}")
    return 0


def _snapshot(found: FoundOutputs) -> GivenSnapshot | None:
    """What made the files, where `ciwrap run` or `repeat` did; else what is here, and no program.

    None where the configuration says that nothing is to be kept.
    """
    from ciwrap.captures.kept_snapshot import GivenSnapshot
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.snapshot.runs import snapshot_of_outputs
    from ciwrap.snapshot.store import encoded, identity_of
    from ciwrap.snapshot.take import snapshot_of_machine

    config = load_config_if_any(None)
    if config is not None and not config.snapshot.objects:
        return None
    root = Path.cwd() if config is None else config.root
    known = snapshot_of_outputs(root, (file.path for file in found.files))
    taken = snapshot_of_machine(root) if known is None else known[1]
    return GivenSnapshot(identity_of(taken), encoded(taken))


def _refuse_others(*, is_ensemble: bool) -> None:
    """Raises UsageError for an option that belongs to the other kind of capture."""
    context = click.get_current_context()
    of_ensemble = {*ensemble_names(), "ensemble_check"}
    for one in context.command.params:
        if not one.expose_value or one.name in (None, "runs", "config_path"):
            continue
        is_given = context.get_parameter_source(one.name) is click.core.ParameterSource.COMMANDLINE
        if is_given and (one.name in of_ensemble) is not is_ensemble:
            words = "has no meaning with" if is_ensemble else "has no meaning without"
            raise UsageError(f"{one.opts[0]} {words} --ensemble")


def _bound_lines(report: CaptureReport) -> Iterator[str]:
    """The bound that the capture has as a whole, and who asked for it."""
    from ciwrap.captures.bounds import NONE_GIVEN
    from ciwrap.report.text import plural, safe_name

    header = report.header
    if header is None:
        return
    if header.origin == NONE_GIVEN:
        yield "bound: none given, captured exactly; another one needs --rebuild"
    else:
        known = [
            f"{row.text}"
            + ("" if row.names is None else f" ({plural(len(row.names), 'variable')})")
            for row in header.bounds[:_MOST_BOUNDS]
        ]
        more = ", ..." if len(header.bounds) > _MOST_BOUNDS else ""
        told = ", ".join(known) or "none that a capture can say"
        yield f"bound: {told}{more} ({safe_name(header.origin)})"
    if report.without_bound:
        names = ", ".join(safe_name(name) for name in report.without_bound[:_MOST_NAMES])
        yield f"captured exactly, since no bound is known for them: {names}"


def _without_tree_lines(report: CaptureReport, *, is_whole: bool) -> Iterator[str]:
    """What has no tree, and why: variables of one reason in one line."""
    from ciwrap.report.text import safe_name, safe_text

    reasons: dict[str, dict[str, None]] = {}
    for identity, reason in report.without_tree:
        reasons.setdefault(reason, {})[identity.text if is_whole else identity.name] = None
    for reason, names in reasons.items():
        shown = list(names) if is_whole else list(names)[:_MOST_NAMES]
        more = "" if len(shown) == len(names) else f" and {len(names) - len(shown)} more"
        yield f"{', '.join(map(safe_name, shown))}{more}: {safe_text(reason)}"


def _document(report: CaptureReport, run: str, target: str) -> CaptureDocument:
    from ciwrap.cli.json_documents import (
        CapturedBound,
        CaptureDocument,
        CheckpointFault,
        WithoutTree,
    )

    return CaptureDocument(
        schema_version=1,
        kind="capture",
        run=run,
        capture=target,
        identity=report.identity,
        captured=tuple(report.captured),
        kept=tuple(report.kept),
        dropped=tuple(report.dropped),
        left_alone=tuple(
            CheckpointFault(error.slug, str(error), error.file) for error in report.left_alone
        ),
        without_tree=tuple(
            WithoutTree(identity.text, reason) for identity, reason in report.without_tree
        ),
        bounds_from=None if report.header is None else report.header.origin,
        bounds=()
        if report.header is None
        else tuple(CapturedBound.of(row) for row in report.header.bounds),
        variable_count=report.variable_count,
        bytes_read=report.bytes_read,
        capture_bytes=report.capture_bytes,
        seconds=report.seconds,
        exit_code=3 if report.left_alone else 0,
    )


def _show(session: Session, report: CaptureReport, target: str) -> None:
    from ciwrap.compare.grouped_errors import grouped_messages
    from ciwrap.report.text import bytes_text, plural, safe_text, seconds_text

    print_line = session.console.print
    said = [f"{plural(len(report.captured), 'checkpoint')} captured"]
    if report.kept:
        said.append(f"{len(report.kept)} kept")
    if report.dropped:
        said.append(f"{len(report.dropped)} dropped (their files are gone)")
    print_line(f"{', '.join(said)}: {plural(report.variable_count, 'variable')}")
    for message in grouped_messages(report.left_alone):
        print_line(f"  NOT CAPTURED  {safe_text(message.text)}")
    for line in _without_tree_lines(report, is_whole=session.verbose):
        print_line(f"  without a tree, its data are compared: {line}")
    for line in _bound_lines(report):
        print_line(f"  {line}")
    print_line(
        f"  {safe_text(target)}: {bytes_text(report.capture_bytes)}, identity {report.identity},"
        f" {bytes_text(report.bytes_read)} read in {seconds_text(report.seconds)}"
    )
