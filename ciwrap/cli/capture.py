"""`ciwrap capture`: a whole run as trees in one file, or the statistics of many as an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import ExitCode, NotComparableError, UsageError
from ciwrap.base.repository import git_commit, git_user
from ciwrap.check.findings import grouped_messages
from ciwrap.cli.commands import command, section, verbosity_options
from ciwrap.cli.compare import own_files
from ciwrap.cli.json_documents import CapturedBound, CaptureDocument, CheckpointFault, WithoutTree
from ciwrap.cli.main import Session
from ciwrap.cli.options import json_option, resource_options
from ciwrap.cli.rule_options import RuleOptions, rule_options
from ciwrap.cli.terminal import progress_bar
from ciwrap.formats.find_outputs import FoundOutputs
from ciwrap.golden.places import ensemble_path
from ciwrap.project.outputs import files_of, folders_of_runs, is_recording
from ciwrap.project.settings import Check
from ciwrap.recording.recorded_run import merge_recording
from ciwrap.report.lead import rate_text
from ciwrap.report.text import bytes_text, plural, safe_name, safe_text, seconds_text
from ciwrap.review.project import Project, load_config_if_any, load_project
from ciwrap.runs.capture import CaptureOptions, CaptureReport, capture_run
from ciwrap.runs.capture_index import NONE_GIVEN, GivenSnapshot
from ciwrap.runs.sides import DEFAULT_INSIDE, capture_paths
from ciwrap.snapshot.difference import (
    describe_environment,
    environment_for_golden,
    snapshot_of_outputs,
)
from ciwrap.snapshot.store import SnapshotStore, encoded, identity_of
from ciwrap.snapshot.take import snapshot_of_machine
from ciwrap.statistics.factors import LEAST_MEMBERS, distinct_rows, least_runs
from ciwrap.studies.ensemble import (
    FORMAT_VERSION,
    STATISTICS,
    CaptureEnsembleDocument,
    EnsembleGolden,
    FeatureChoice,
    features_of_runs,
    write_ensemble,
)


class EnsembleOptions(Struct, frozen=True):
    """What those options of `capture` say that are of an ensemble."""

    features: str
    blocks: int
    from_iteration: int | None
    rate: float
    reason: str
    replace: bool
    golden_dir: str | None


def capture_ensemble(
    session: Session,
    name: str,
    runs: Sequence[str],
    config_path: str | None,
    chosen: EnsembleOptions,
) -> int:
    """Keeps the features of many runs of a check; the exit code.

    runs: folders, each of which has the outputs of the check; none for those that the check names.
    Raises UsageError for an ensemble that already exists, OutputMissingError where the check
    names runs that are not there, and as `features_of_runs` does.
    """
    project = load_project(config_path, chosen.golden_dir, (name,))
    check = project.checks[0]
    path = ensemble_path(project.golden_dir, name)
    if path.exists() and not chosen.replace:
        raise UsageError("there is an ensemble already", file=path, remedy="--replace replaces it")
    folders = [Path(run) for run in runs]
    if not folders and check.ensemble:
        folders = folders_of_runs(check)
    if not folders:
        raise UsageError(
            "which runs?", remedy="name their folders, or give 'ensemble' in the check"
        )
    choice = FeatureChoice(_statistics(chosen.features), chosen.blocks, chosen.from_iteration)
    document = _capture(session, project, check, folders, choice, chosen, path)
    session.emit_record(document)
    _tell(session, document, chosen.rate)
    if not check.ensemble:
        session.console.print(
            "`ciwrap check` judges new runs once the check names their folders: 'ensemble: new_*'"
        )
    return 0


def _statistics(text: str) -> tuple[str, ...]:
    wanted = [word.strip() for word in text.split(",")]
    for word in wanted:
        if word not in STATISTICS:
            raise UsageError(f"there is no feature {word!r} (known: {', '.join(STATISTICS)})")
    return tuple(one for one in STATISTICS if one in wanted)


def _capture(
    session: Session,
    project: Project,
    check: Check,
    folders: Sequence[Path],
    choice: FeatureChoice,
    chosen: EnsembleOptions,
    path: Path,
) -> CaptureEnsembleDocument:
    root = project.root
    taken = features_of_runs(check, folders, choice)
    untaken = taken.untaken
    distinct = len(distinct_rows(taken.rows, "members"))
    if distinct < 2:
        why = "".join(f"; {text}" for text in untaken.rounding)
        raise NotComparableError(
            f"all runs have the same features, so they tell nothing about chance{why}",
            remedy="perturb their initial values, or give each its own seed",
        )
    golden = EnsembleGolden(
        format=FORMAT_VERSION,
        check=check.name,
        statistics=choice.statistics,
        blocks=choice.blocks,
        from_iteration=choice.from_iteration,
        rate=chosen.rate,
        features=taken.names,
        members=tuple(taken.rows),
        made=session.started_at,
        who=git_user(root),
        why=chosen.reason,
        commit=git_commit(root),
        environment=_environment(project, check, folders),
        numbers=taken.numbers,
        others=untaken.other_names,
    )
    write_ensemble(golden, path)
    for text in (*untaken.rounding, *untaken.notes):
        session.console.print(f"warning: {safe_text(text)}")
    return CaptureEnsembleDocument(
        1,
        "capture-ensemble",
        check.name,
        str(path),
        len(taken.rows),
        distinct,
        taken.names,
        least_runs(distinct, chosen.rate),
        untaken.other_names,
        tuple(sorted(untaken.rounded)),
    )


def _environment(project: Project, check: Check, folders: Sequence[Path]) -> dict[str, str]:
    """What the first member was made with of which that is known, else what is here. Its snapshot
    is kept with the goldens, unless the configuration says to keep none.
    """
    if not project.own_config.snapshot.objects:
        return describe_environment(project.root)
    members = [list(files_of(replace(check, root=folder, ensemble=()))) for folder in folders]
    together = [path for files in members for path in files]
    known = (
        files
        for files in (together, *members)
        if snapshot_of_outputs(project.root, files) is not None
    )
    store = SnapshotStore.of_goldens(project.golden_dir)
    return environment_for_golden(project.root, next(known, []), store)


def _tell(session: Session, document: CaptureEnsembleDocument, rate: float) -> None:
    console = session.console
    console.print(
        f"{safe_text(document.golden_path)}: {plural(document.members, 'member')},"
        f" {plural(len(document.features), 'feature')} each"
    )
    if document.without_statistics:
        names = ", ".join(map(safe_text, document.without_statistics))
        console.print(f"not taken, since it has no statistics: {names}")
    if document.distinct < document.members:
        console.print(
            f"warning: they have {plural(document.distinct, 'different set')} of features; equal"
            " ones count once"
        )
    if document.least_runs is None:
        console.print(
            f"warning: an ensemble takes {LEAST_MEMBERS} members that differ; add"
            f" {LEAST_MEMBERS - document.distinct} more"
        )
    else:
        console.print(
            f"new runs can be compared with it from {plural(document.least_runs, 'run')} at once"
            f" (false alarms: {rate_text(rate)})"
        )


_MOST_BOUNDS = 3
_MOST_NAMES = 4


@command("capture", example="ciwrap capture run --atol 1e-9")
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
    help="Allow capturing other runs against this one; about four bits a value.",
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
    "--chunk-bytes", type=int, help="Size of a block; default: that of --against, else 65536."
)
@click.option(
    "--settle",
    type=click.FloatRange(0, 3600),
    default=1.0,
    metavar="SECONDS",
    show_default=True,
    help="Files younger than this may still be written to.",
)
@click.option("--rebuild", is_flag=True, help="Start over instead of adding what is new.")
@click.option("--merge", is_flag=True, help="Pack the journals of a recorded run into one capture.")
@rule_options
@section(
    "The ensemble",
    click.option(
        "--ensemble",
        "ensemble_check",
        metavar="CHECK",
        help="Keep the statistics of many runs as the golden of CHECK, in place of trees of one.",
    ),
    click.option(
        "--features",
        default="mean,std",
        show_default=True,
        metavar="LIST",
        help="Of mean, std and lag (the mean product of neighbours).",
    ),
    click.option(
        "--blocks",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        help="Cut each variable into this many stretches, and take features of each.",
    ),
    click.option(
        "--from-iteration",
        type=int,
        metavar="N",
        help="Leave out checkpoints of earlier iterations.",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(0.0001, 0.5),
        default=0.01,
        show_default=True,
        help="How often honest runs may be called inconsistent.",
    ),
    click.option("--reason", default="", help="Why the ensemble is made, for the record."),
    click.option("--replace", is_flag=True, help="Replace an ensemble that is there."),
    click.option(
        "--golden-dir",
        type=click.Path(file_okay=False),
        help="Folder of the ensemble, instead of the configured one of the goldens.",
    ),
)
@json_option
@verbosity_options
@resource_options
@click.pass_obj
def capture_command(
    session: Session,
    /,
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
    **of_ensemble: Any,
) -> int:
    """Capture the run in folder RUN: every checkpoint's variables as error-bounded trees.

    `ciwrap compare` then reads only what the trees leave open. Called again, it adds what is new
    and reads nothing twice. A checkpoint that is still being written is left alone and named.

    With --ensemble, each RUN is a folder that has the outputs of CHECK as the project's folder
    would (`ciwrap repeat --keep` leaves such folders); without any, the check's `ensemble` names
    them. Features of the runs become its golden, of some kilobytes. The runs must
    differ: give each its own seed, or perturb its initial values by a hair.

    Exit codes: 0 all captured, 2 usage, 3 something was left out, or a run could not be read.
    """
    _refuse_others(is_ensemble=ensemble_check is not None)
    if ensemble_check is not None:
        options = EnsembleOptions(**of_ensemble)
        return capture_ensemble(session, ensemble_check, runs, chosen.config_path, options)
    if len(runs) != 1:
        raise UsageError("capture takes one run", remedy="--ensemble takes many")
    (run,) = runs
    if merge:
        return _merge(session, Path(run), output)

    folder = Path(run)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{run} is not a folder", remedy="give the run's folder")
    rules = chosen.make_rules()
    target = folder / DEFAULT_INSIDE if output is None else Path(output)
    found = chosen.outputs_of(folder, leave_out=own_files(folder, target))
    chosen.refuse_unused_options([found])
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
    of_ensemble = {*EnsembleOptions.__struct_fields__, "ensemble_check"}
    for one in context.command.params:
        if not one.expose_value or one.name in (None, "runs", "config_path"):
            continue
        is_given = context.get_parameter_source(one.name) is click.core.ParameterSource.COMMANDLINE
        if is_given and (one.name in of_ensemble) is not is_ensemble:
            words = "has no meaning with" if is_ensemble else "has no meaning without"
            raise UsageError(f"{one.opts[0]} {words} --ensemble")


def _bound_lines(report: CaptureReport) -> Iterator[str]:
    """The bound that the capture has as a whole, and who asked for it."""
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
    reasons: dict[str, dict[str, None]] = {}
    for identity, reason in report.without_tree:
        reasons.setdefault(reason, {})[identity.text if is_whole else identity.name] = None
    for reason, names in reasons.items():
        shown = list(names) if is_whole else list(names)[:_MOST_NAMES]
        more = "" if len(shown) == len(names) else f" and {len(names) - len(shown)} more"
        yield f"{', '.join(map(safe_name, shown))}{more}: {safe_text(reason)}"


def _document(report: CaptureReport, run: str, target: str) -> CaptureDocument:
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
