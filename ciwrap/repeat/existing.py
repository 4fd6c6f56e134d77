"""Runs that are there already: folders, or files, that several runs of one program have left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.catalog.rules import Rules
from ciwrap.compare.ensemble_runs import natural
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.model import VariableSettings
from ciwrap.model.repeat_result import RepeatedRun
from ciwrap.readers.layout import find_in, outputs_within
from ciwrap.repeat.measure import Measurer, RunOutputs
from ciwrap.repeat.repeat import Repetition, measurer_of
from ciwrap.repeat.summary import names_that_vary
from ciwrap.report.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.config import Check
    from ciwrap.readers.layout import FoundOutputs
    from ciwrap.repeat.repeat import HowToRepeat

_LEAST_RUNS = 2
NO_CHECK = "runs"


def existing_runs(patterns: Sequence[str]) -> list[Path]:
    """The files or folders that the globs mean, run_2 before run_10. Raises UsageError for fewer
    than two.
    """
    found = dict.fromkeys(
        path for pattern in patterns for path in sorted(_matches(pattern), key=natural)
    )
    if len(found) < _LEAST_RUNS:
        said = " ".join(patterns)
        remedy = "name at least two: --runs 'run_*'"
        if said.isdecimal():
            remedy += f"; to run the program that many times: -n {said}"
        raise UsageError(
            f"--runs {said} names {plural(len(found), 'run')}",
            remedy=remedy,
        )
    return list(found)


def _matches(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.exists():
        return [path]
    root = Path(path.anchor) if path.is_absolute() else Path()
    relative = str(path.relative_to(path.anchor)) if path.is_absolute() else pattern
    return list(root.glob(relative))


def measure_existing(
    paths: Sequence[Path], checks: Sequence[Check], how: HowToRepeat
) -> Repetition:
    """Measures these runs. checks: none where there is no configuration; then numbers have to be
    equal.

    A run is found as the check's outputs in it, or as all of its files. Raises UsageError, and
    NotComparableError if the first run gives nothing to compare with.
    """
    sources: list[Check | None] = [*checks] or [None]
    found = Repetition(
        measurers=[
            Measurer(NO_CHECK, _plain_rules(), resources=how.resources)
            if check is None
            else measurer_of(check, how)
            for check in sources
        ]
    )
    for number, path in enumerate(paths, 1):
        problem = None
        for check, measurer in zip(sources, found.measurers, strict=True):
            problem = problem or _measure(measurer, number, path, check)
        if problem is not None and number == 1:
            raise NotComparableError(
                f"the first run gives nothing to compare with: {problem}", file=path
            )
        record = RepeatedRun(number, 0, problem=problem, folder=str(path))
        found.runs.append(record)
        how.told(record)
    for measurer in found.measurers:
        measurer.look_for_zeros(names_that_vary(measurer.measured))
    return found


def _plain_rules() -> Rules:
    settings = VariableSettings()
    return Rules(lambda identity, dtype: settings, lambda identity: False)  # noqa: ARG005


def _measure(measurer: Measurer, number: int, path: Path, check: Check | None) -> str | None:
    try:
        return measurer.add(number, RunOutputs(path, _outputs(path, check)))
    except NotComparableError as error:
        return str(error)


def _outputs(path: Path, check: Check | None) -> FoundOutputs:
    if check is None:
        return find_in(path, name=NO_CHECK)
    outputs, exclude = outputs_within((path,), check.outputs, check.exclude)
    return find_in(
        path,
        outputs=outputs,
        layout=check.layout,
        format_name=check.format,
        options=check.options,
        exclude=exclude,
        formats=check.formats,
        name=check.name,
    )
