"""`ciwrap check-ensemble`: do new runs of a chaotic program belong to an ensemble?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.ensemble.document import EnsembleDocument
    from ciwrap.ensemble.golden import EnsembleGolden
    from ciwrap.statistics.ensemble import EnsembleTest

_MOST_SHIFTS = 5
# Of random permutations: fixed, so that the same runs are always judged alike.
_SEED = 1


@click.command(name="check-ensemble", short_help="Hold new runs against an ensemble.")
@click.argument("name", metavar="CHECK")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--seed", type=click.IntRange(0), default=_SEED, help="Of the permutations.")
@config_options
@json_option
@click.pass_obj
def command(
    session: Session,
    name: str,
    runs: tuple[str, ...],
    seed: int,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Say whether the statistics of new runs are those of the ensemble that `capture-ensemble`
    kept.

    The verdict is consistent, inconsistent, or that the ensemble is too small; never match, since
    no value is compared with another. Honest runs are called inconsistent as often as the ensemble
    says, usually once in a hundred times. Three new runs see much more than one.

    Exit codes: 0 consistent, 1 inconsistent, 2 usage or configuration, 3 too small, or a run could
    not be read.
    """
    from ciwrap.cli.load_project import load_project
    from ciwrap.ensemble.features import FeatureChoice
    from ciwrap.ensemble.golden import read_ensemble
    from ciwrap.ensemble.runs import features_of_runs
    from ciwrap.golden.paths import ensemble_path
    from ciwrap.statistics.ensemble import compare_with_ensemble

    project = load_project(config_path, golden_dir, (name,))
    path = ensemble_path(project.golden_dir, name)
    golden = read_ensemble(path)
    choice = FeatureChoice(golden.statistics, golden.blocks, golden.from_iteration)
    folders = [Path(run) for run in runs]
    _, rows = features_of_runs(project.checks[0], folders, choice, golden.features)
    found = compare_with_ensemble(golden.members, rows, rate=golden.rate, seed=seed)
    document = _document(session, project.root, golden, path, found, seed)
    session.emit_record(document)
    _tell(session, document)
    return document.exit_code


def _document(
    session: Session,
    root: Path,
    golden: EnsembleGolden,
    path: Path,
    found: EnsembleTest,
    seed: int,
) -> EnsembleDocument:
    from importlib.metadata import version

    from ciwrap.ensemble.document import EnsembleDocument, Shift
    from ciwrap.snapshot.describe import describe_environment
    from ciwrap.statistics.ensemble import EnsembleVerdict

    codes = {EnsembleVerdict.CONSISTENT: 0, EnsembleVerdict.INCONSISTENT: 1}
    code = codes.get(found.verdict)
    return EnsembleDocument(
        schema_version=1,
        kind="ensemble",
        exit_code=0 if code == 0 else 1 if code == 1 else 3,
        check=golden.check,
        verdict=found.verdict,
        golden_path=str(path),
        features=len(golden.features),
        members=found.members,
        runs=found.runs,
        rate=found.rate,
        seed=seed,
        environment=describe_environment(root),
        golden_environment=golden.environment,
        ciwrap_version=version("ciwrap"),
        started_at=session.started_at,
        p=found.p,
        more_members=found.more_members,
        shifts=tuple(Shift(golden.features[one.feature], one.deviations) for one in found.shifts),
    )


def _tell(session: Session, document: EnsembleDocument) -> None:
    from ciwrap.report.text import plural, safe_name, short_number
    from ciwrap.statistics.ensemble import EnsembleVerdict
    from ciwrap.timing.wording import percent

    console = session.console
    sizes = f"{plural(document.runs, 'new run')}, {plural(document.members, 'member')}"
    if document.verdict is EnsembleVerdict.TOO_SMALL:
        console.print(f"the ensemble is too small: {sizes} cannot tell at {percent(document.rate)}")
        console.print(
            f"  add {plural(document.more_members or 0, 'member')} that differ from the others, or"
            " hold more new runs against it"
        )
        return
    rate = percent(document.rate)
    if document.verdict is EnsembleVerdict.CONSISTENT:
        console.print(f"consistent with the ensemble at {rate} ({sizes}, p = {document.p:.3f})")
        return
    console.print(f"inconsistent with the ensemble at {rate} ({sizes}, p = {document.p:.3f})")
    console.print("  what moved most, in standard deviations of the mean of so many members:")
    for one in document.shifts[:_MOST_SHIFTS]:
        console.print(f"    {safe_name(one.feature)}: {short_number(one.deviations)}")
