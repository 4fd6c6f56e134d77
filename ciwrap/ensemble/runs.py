"""The features of several runs of one check, each in a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.ensemble.features import features_of
from ciwrap.ensemble.untaken import Untaken
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.report.text import plural
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ciwrap.config import Check
    from ciwrap.ensemble.features import FeatureChoice
    from ciwrap.ensemble.golden import EnsembleGolden

_MOST_NAMES = 3


class RunsFeatures(Struct, frozen=True):
    """names: of features. rows: of them, one for each run. numbers: how many numbers variables
    have, those of which all runs have as many. untaken: what the runs hold besides.
    """

    names: tuple[str, ...]
    rows: list[tuple[float, ...]]
    numbers: dict[str, int]
    untaken: Untaken


def features_of_runs(
    check: Check,
    folders: Sequence[Path],
    choice: FeatureChoice,
    like: EnsembleGolden | None = None,
) -> RunsFeatures:
    """The features of runs.

    folders: each has the outputs of a run as the project's folder would. like: the ensemble whose
    variables the runs must have; None for those of the first run. Runs must also have as many
    numbers as its members, as far as that is known, since a run that ended early has statistics,
    too. Raises UsageError for a folder that is named twice or is none, NotComparableError for a run
    with other features or other variables.
    """
    seen: set[Path] = set()
    rows = []
    untaken = Untaken()
    names, others = (None, None) if like is None else (like.features, like.others)
    wanted = {} if like is None else like.numbers or {}
    common: dict[str, int] | None = None
    for folder in folders:
        if not folder.is_dir():
            raise UsageError("there is no such folder of a run", file=folder)
        if folder.resolve() in seen:
            raise UsageError("this run is named twice", file=folder)
        seen.add(folder.resolve())
        found = features_of(replace(check, root=folder), choice)
        names = tuple(found.values) if names is None else names
        _refuse_others(folder, names, found.values)
        if others is None and like is None:
            others = found.untaken.other_names
        if others is not None:
            _refuse_others(folder, others, found.untaken.other_names)
        _refuse_other_size(folder, wanted, found.numbers)
        rows.append(tuple(found.values[name] for name in names))
        untaken.add(found.untaken)
        common = found.numbers if common is None else dict(common.items() & found.numbers.items())
    assert names is not None
    assert common is not None
    return RunsFeatures(names, rows, dict(sorted(common.items())), untaken)


def _refuse_other_size(folder: Path, wanted: Mapping[str, int], found: dict[str, int]) -> None:
    for name, count in wanted.items():
        if found.get(name) != count:
            raise NotComparableError(
                f"the run has {plural(found.get(name, 0), 'number')} of {name} in all, and every"
                f" member {count:,}",
                file=folder,
                remedy="let it run to its end, or capture the ensemble anew",
            )


def _refuse_others(folder: Path, names: tuple[str, ...], found: Collection[str]) -> None:
    for what, others in (
        ("lacks", [name for name in names if name not in found]),
        ("also has", [name for name in found if name not in names]),
    ):
        if others:
            more = ", ..." if len(others) > _MOST_NAMES else ""
            raise NotComparableError(
                f"the run {what} {', '.join(others[:_MOST_NAMES])}{more}",
                file=folder,
                remedy="members and new runs must write the same variables",
            )
