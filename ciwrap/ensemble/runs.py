"""The features of several runs of one check, each in a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.ensemble.features import features_of
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.report.text import plural
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.config import Check
    from ciwrap.ensemble.features import FeatureChoice

_MOST_NAMES = 3


def features_of_runs(
    check: Check,
    folders: Sequence[Path],
    choice: FeatureChoice,
    names: tuple[str, ...] | None = None,
    numbers: Mapping[str, int] | None = None,
) -> tuple[tuple[str, ...], list[tuple[float, ...]], dict[str, int]]:
    """The names of features, a row of them for each run, and how many numbers variables have, those
    of which all runs have as many.

    folders: each has the outputs of a run as the project's folder would. names: that the runs must
    have; None for those of the first run. numbers: how many of a variable runs must have, as far as
    that is known, since a run that ended early has statistics, too. Raises
    UsageError for a folder that is named twice or is none, NotComparableError for a run with other
    features.
    """
    seen: set[Path] = set()
    rows = []
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
        _refuse_other_size(folder, numbers or {}, found.numbers)
        rows.append(tuple(found.values[name] for name in names))
        common = found.numbers if common is None else dict(common.items() & found.numbers.items())
    assert names is not None
    assert common is not None
    return names, rows, dict(sorted(common.items()))


def _refuse_other_size(folder: Path, wanted: Mapping[str, int], found: dict[str, int]) -> None:
    for name, count in wanted.items():
        if found.get(name) != count:
            raise NotComparableError(
                f"the run has {plural(found.get(name, 0), 'number')} of {name} in all, and every"
                f" member {count:,}",
                file=folder,
                remedy="let it run to its end, or capture the ensemble anew",
            )


def _refuse_others(folder: Path, names: tuple[str, ...], found: dict[str, float]) -> None:
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
