"""`ciwrap capture-ensemble`: the statistics of many runs of a chaotic program, as a golden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.config import Check
    from ciwrap.ensemble.document import CaptureEnsembleDocument
    from ciwrap.ensemble.features import FeatureChoice


@click.command(name="capture-ensemble", short_help="Keep the statistics of many runs.")
@click.argument("name", metavar="CHECK")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--features",
    default="mean,std",
    show_default=True,
    metavar="LIST",
    help="Of mean, std and lag (the mean product of neighbours).",
)
@click.option(
    "--blocks",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Cut each variable into so many stretches, and take features of each.",
)
@click.option(
    "--from-iteration", type=int, metavar="N", help="Leave out checkpoints of earlier iterations."
)
@click.option(
    "--rate",
    type=click.FloatRange(0.0001, 0.5),
    default=0.01,
    show_default=True,
    help="How often honest runs may be called inconsistent.",
)
@click.option("--reason", default="", help="Why, for the record.")
@click.option("--replace", is_flag=True, help="Replace an ensemble that is there.")
@config_options
@json_option
@click.pass_obj
def command(
    session: Session,
    name: str,
    runs: tuple[str, ...],
    features: str,
    blocks: int,
    from_iteration: int | None,
    rate: float,
    reason: str,
    replace: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Take features of many runs of a check, each in a folder of its own, and keep them as a
    golden of some kilobytes.

    Each RUN is a folder that has the outputs of the check as the project's folder would;
    `ciwrap repeat --keep` leaves such folders. The runs must differ: give each its own seed, or
    perturb its initial values by a hair. `ciwrap check-ensemble` holds new runs against them.

    Exit codes: 0 done, 2 usage or configuration, 3 a run could not be read.
    """
    from ciwrap.cli.load_project import load_project
    from ciwrap.ensemble.features import FeatureChoice
    from ciwrap.golden.paths import ensemble_path

    project = load_project(config_path, golden_dir, (name,))
    path = ensemble_path(project.golden_dir, name)
    if path.exists() and not replace:
        raise UsageError("there is an ensemble already", file=path, remedy="--replace replaces it")
    choice = FeatureChoice(_statistics(features), blocks, from_iteration)
    document = _capture(session, project.root, project.checks[0], runs, choice, rate, reason, path)
    session.emit_record(document)
    _tell(session, document, rate)
    return 0


def _statistics(text: str) -> tuple[str, ...]:
    from ciwrap.ensemble.features import STATISTICS

    wanted = [word.strip() for word in text.split(",")]
    for word in wanted:
        if word not in STATISTICS:
            raise UsageError(f"there is no feature {word!r} (there is: {', '.join(STATISTICS)})")
    return tuple(one for one in STATISTICS if one in wanted)


def _capture(
    session: Session,
    root: Path,
    check: Check,
    runs: tuple[str, ...],
    choice: FeatureChoice,
    rate: float,
    reason: str,
    path: Path,
) -> CaptureEnsembleDocument:
    from ciwrap.ensemble.document import CaptureEnsembleDocument
    from ciwrap.ensemble.golden import FORMAT_VERSION, EnsembleGolden, write_ensemble
    from ciwrap.ensemble.runs import features_of_runs
    from ciwrap.errors import NotComparableError
    from ciwrap.repository import git_commit, git_user
    from ciwrap.snapshot.describe import describe_environment
    from ciwrap.statistics.ensemble import distinct_rows, least_runs

    names, rows = features_of_runs(check, [Path(run) for run in runs], choice)
    distinct = len(distinct_rows(rows, "members"))
    if distinct < 2:
        raise NotComparableError(
            "all runs are equal to the bit, so they tell nothing about chance",
            remedy="perturb their initial values, or give each its own seed",
        )
    golden = EnsembleGolden(
        format=FORMAT_VERSION,
        check=check.name,
        statistics=choice.statistics,
        blocks=choice.blocks,
        from_iteration=choice.from_iteration,
        rate=rate,
        features=names,
        members=tuple(rows),
        made=session.started_at,
        who=git_user(root),
        why=reason,
        commit=git_commit(root),
        environment=describe_environment(root),
    )
    write_ensemble(golden, path)
    return CaptureEnsembleDocument(
        1,
        "capture-ensemble",
        check.name,
        str(path),
        len(rows),
        distinct,
        names,
        least_runs(distinct, rate),
    )


def _tell(session: Session, document: CaptureEnsembleDocument, rate: float) -> None:
    from ciwrap.report.text import plural, safe_text
    from ciwrap.statistics.ensemble import LEAST_MEMBERS
    from ciwrap.timing.wording import percent

    console = session.console
    console.print(
        f"{safe_text(document.golden_path)}: {plural(document.members, 'member')},"
        f" {plural(len(document.features), 'feature')} each"
    )
    if document.distinct < document.members:
        console.print(
            f"warning: only {document.distinct} of them differ from each other; the others do not"
            " count"
        )
    if document.least_runs is None:
        console.print(
            f"warning: an ensemble takes {LEAST_MEMBERS} members that differ; add"
            f" {LEAST_MEMBERS - document.distinct} more"
        )
    else:
        console.print(
            f"new runs can be held against it from {plural(document.least_runs, 'run')} at once"
            f" (false alarms: {percent(rate)})"
        )
