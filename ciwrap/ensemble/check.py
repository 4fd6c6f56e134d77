"""The runs of a check against its ensemble: a verdict on their statistics, never a match."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ciwrap.compare.ensemble_runs import folders_of_runs
from ciwrap.compare.law import failed_check
from ciwrap.ensemble.features import FeatureChoice
from ciwrap.ensemble.golden import read_ensemble
from ciwrap.ensemble.runs import features_of_runs
from ciwrap.errors import CiwrapError, CorruptGoldenError
from ciwrap.golden.paths import ensemble_path
from ciwrap.model import CheckResult, EnsembleFacts, Message, MessageLevel, Shift, Verdict
from ciwrap.report.ensemble_words import ensemble_sentence
from ciwrap.report.text import plural
from ciwrap.statistics.ensemble import EnsembleVerdict, compare_with_ensemble
from ciwrap.structs import replace

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.compare.work import Work
    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore

# Of random permutations: fixed, so that the same runs are always judged alike.
_SEED = 1
_VERDICTS = {
    EnsembleVerdict.CONSISTENT: (Verdict.CONSISTENT, MessageLevel.NOTE),
    EnsembleVerdict.INCONSISTENT: (Verdict.INCONSISTENT, MessageLevel.ERROR),
    EnsembleVerdict.TOO_SMALL: (Verdict.NOT_COMPARABLE, MessageLevel.ERROR),
}


def check_ensemble(check: Check, store: GoldenStore, _: Work) -> CheckResult:
    """Compares the runs that a check's `ensemble` names with its ensemble. Writes nothing.

    Consistent, inconsistent, or not comparable: where runs or members are too few to tell, where
    there are none, and where one could not be read. Raises UsageError for a configuration that
    cannot be used.
    """
    started = time.monotonic()
    path = ensemble_path(store.folder, check.name)
    try:
        result = _judge(check, path)
    except CiwrapError as error:
        return failed_check(check.name, error, str(path))
    return replace(result, seconds=time.monotonic() - started)


def _judge(check: Check, path: Path) -> CheckResult:
    golden = read_ensemble(path)
    if golden.check != check.name:
        raise CorruptGoldenError(f"it is the ensemble of check {golden.check!r}", file=path)
    folders = folders_of_runs(check)
    choice = FeatureChoice(golden.statistics, golden.blocks, golden.from_iteration)
    taken = features_of_runs(check, folders, choice, golden)
    untaken = taken.untaken
    found = compare_with_ensemble(golden.members, taken.rows, rate=golden.rate, seed=_SEED)
    facts = EnsembleFacts(
        members=found.members,
        runs=found.runs,
        features=len(golden.features),
        rate=found.rate,
        p=found.p,
        more_members=found.more_members,
        shifts=tuple(Shift(golden.features[one.feature], one.deviations) for one in found.shifts),
        without_statistics=tuple(sorted(untaken.others)),
        masked_elements=untaken.masked,
        filled=len(untaken.filled),
    )
    verdict, level = _VERDICTS[found.verdict]
    return CheckResult(
        check.name,
        verdict,
        golden_path=str(path),
        ignored_variables=tuple(sorted(untaken.ignored | untaken.early)),
        uncommon=len(untaken.early),
        excluded_files=untaken.excluded,
        messages=(
            *_repeated(len(taken.rows), found.runs),
            *(Message(MessageLevel.WARNING, text) for text in (*untaken.rounding, *untaken.notes)),
            Message(level, ensemble_sentence(facts)),
        ),
        golden_bytes=path.stat().st_size,
        golden_environment=dict(golden.environment),
        ensemble=facts,
    )


def _repeated(runs: int, distinct: int) -> tuple[Message, ...]:
    """A warning of runs with equal features, which count once."""
    if runs == distinct:
        return ()
    sets = "the same features" if distinct == 1 else f"{distinct} different sets of features"
    text = f"{plural(runs, 'run')} have {sets}; equal ones count once"
    return (Message(MessageLevel.WARNING, text),)
