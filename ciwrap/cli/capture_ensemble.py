"""`ciwrap capture --ensemble`: the statistics of many runs of a chaotic program, as a golden."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.errors import UsageError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap.cli.session import Session
    from ciwrap.config import Check
    from ciwrap.ensemble.document import CaptureEnsembleDocument
    from ciwrap.ensemble.features import FeatureChoice
    from ciwrap.review.project import Project


class EnsembleOptions(Struct, frozen=True):
    """What the options of `ensemble_options` say."""

    features: str
    blocks: int
    from_iteration: int | None
    rate: float
    reason: str
    replace: bool
    golden_dir: str | None


_OPTIONS = (
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


def ensemble_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of an ensemble; the command takes all of them as `of_ensemble`."""
    names = ensemble_names()

    @wraps(function)
    def command(*arguments: Any, **given: Any) -> int:
        chosen = EnsembleOptions(**{name: given.pop(name) for name in names})
        return function(*arguments, of_ensemble=chosen, **given)

    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command


def ensemble_names() -> tuple[str, ...]:
    """The names of the options."""
    return EnsembleOptions.__struct_fields__


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
    from ciwrap.cli.load_project import load_project
    from ciwrap.compare.ensemble_runs import folders_of_runs
    from ciwrap.ensemble.features import FeatureChoice
    from ciwrap.golden.paths import ensemble_path

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
    from ciwrap.ensemble.features import STATISTICS

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
    from ciwrap.ensemble.document import CaptureEnsembleDocument
    from ciwrap.ensemble.golden import FORMAT_VERSION, EnsembleGolden, write_ensemble
    from ciwrap.ensemble.runs import features_of_runs
    from ciwrap.errors import NotComparableError
    from ciwrap.report.text import safe_text
    from ciwrap.repository import git_commit, git_user
    from ciwrap.statistics.ensemble import distinct_rows, least_runs

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
    from ciwrap.compare.outputs import files_of
    from ciwrap.snapshot.describe import describe_environment
    from ciwrap.snapshot.runs import environment_for_golden, snapshot_of_outputs
    from ciwrap.snapshot.store import SnapshotStore

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
    from ciwrap.report.ensemble_words import rate_text
    from ciwrap.report.text import plural, safe_text
    from ciwrap.statistics.ensemble import LEAST_MEMBERS

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
