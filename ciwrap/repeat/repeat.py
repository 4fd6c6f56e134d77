"""Runs the configured command several times, each time on its own, and measures what varies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.rules import Rules
from ciwrap.compare.check import arrangement_of, check_catalog, outputs_of
from ciwrap.config.placeholders import RunPlace
from ciwrap.errors import NotComparableError, OutputMissingError, UsageError
from ciwrap.model.repeat_result import RepeatedRun
from ciwrap.repeat.folders import RunFolders
from ciwrap.repeat.measure import Measurer, RunOutputs
from ciwrap.repeat.summary import names_that_vary
from ciwrap.running.run_command import ending_of, failure_of, run_command
from ciwrap.trees.build import DEFAULT_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from ciwrap.config import Check, CommandSettings, Config
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, CommandOutcome
    from ciwrap.repeat.plan import Plan, PlannedRun
    from ciwrap.trees.build import Resources

# A run that takes so many times the longest one before it, and at least a minute, never ends.
_PATIENCE = 20.0
_LEAST_SECONDS = 60.0


@dataclass(slots=True)
class Repetition:
    """All runs, and what was measured of each check."""

    runs: list[RepeatedRun] = field(default_factory=list)
    measurers: list[Measurer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HowToRepeat:
    """names: of the checks, in order. keeps: whether outputs of all runs stay. is_shown: whether
    the command's output goes to stderr. golden: where goldens are, if these are the reference.
    told: is called with every run that is over.
    """

    names: tuple[str, ...]
    keeps: bool = False
    is_shown: bool = False
    golden: GoldenStore | None = None
    resources: Resources = DEFAULT_RESOURCES
    told: Callable[[RepeatedRun], None] = lambda run: None  # noqa: ARG005


def repeat_command(
    config_of: Callable[[RunPlace], Config], plan: Plan, how: HowToRepeat
) -> Repetition:
    """Makes all runs of a plan, one after the other.

    config_of: what the configuration says of a run. Raises CommandFailedError or another
    NotComparableError if already the first run gives nothing to compare with, UsageError; a later
    run that fails is told of in its record, and the others are made all the same.
    """
    first = config_of(RunPlace(1, plan.runs[0].seed))
    _refuse_idle(first, how.names)
    found = Repetition()
    with RunFolders(first.root, keeps=how.keeps) as folders:
        for run in plan.runs:
            config = config_of(RunPlace(run.number, run.seed))
            checks = [config.check(name) for name in how.names]
            if not found.measurers:
                found.measurers = [measurer_of(one, how) for one in checks]
            folders.set_aside(checks)
            record = _one_run(config, checks, plan, run, how, found, folders)
            found.runs.append(record)
            how.told(record)
        for measurer in found.measurers:
            measurer.look_for_zeros(names_that_vary(measurer.measured))
    return found


def _refuse_idle(config: Config, names: Iterable[str]) -> None:
    """Raises UsageError if there is nothing to run, or all runs would write to one place."""
    commands = [config.command, *(config.check(name).command for name in names)]
    if not any(commands):
        raise UsageError(
            "the configuration has no command to run",
            file=config.path,
            remedy="give one under 'run', or give runs that are there with --runs",
        )
    for name in sorted(config.output_placeholders - config.placeholders):
        raise UsageError(
            f"{{{name}}} is in the outputs, but in no command: every run would write to one place",
            file=config.path,
            remedy=f"hand {{{name}}} to the command, too",
        )


def measurer_of(check: Check, how: HowToRepeat) -> Measurer:
    """What measures the runs of a configured check. Raises GoldenMissingError and the other errors
    of reading a golden, where that is the reference.
    """
    against = None
    if how.golden is not None:
        golden = how.golden.read(check.name)

        def against_golden(outputs: RunOutputs) -> CheckResult:
            with Catalog(outputs.found, arrangement_of(check)) as catalog:
                return check_catalog(check, golden, catalog, resources=how.resources)

        against = against_golden
    rules = Rules(
        check.settings_for, check.is_ignored, check.strict.variables, arrangement_of(check)
    )
    return Measurer(check.name, rules, against_golden=against, resources=how.resources)


def _one_run(
    config: Config,
    checks: Sequence[Check],
    plan: Plan,
    run: PlannedRun,
    how: HowToRepeat,
    found: Repetition,
    folders: RunFolders,
) -> RepeatedRun:
    outcomes = _run_commands(config, checks, plan, run, how, found.runs)
    record = RepeatedRun(
        run.number,
        run.seed,
        plan.states(run),
        sum(one.seconds for one in outcomes),
        outcomes[-1].exit_code,
        outcomes[-1].timed_out,
        output_tail=outcomes[-1].output_tail,
    )
    has_reference = bool(found.runs)
    places = [folders.take(run.number, check) for check in checks]
    if outcomes[-1].exit_code != 0:
        if not has_reference:
            raise failure_of(outcomes[-1])
        folders.drop(run.number)
        return replace(record, problem=f"the command {ending_of(outcomes[-1])}")
    problems = [
        problem
        for measurer, place in zip(found.measurers, places, strict=True)
        if (problem := _measure(measurer, run.number, place)) is not None
    ]
    if problems and not has_reference:
        raise NotComparableError(f"the first run is nothing to compare others with: {problems[0]}")
    if how.keeps:
        return replace(
            record, problem=next(iter(problems), None), folder=str(folders.run_folder(run.number))
        )
    if has_reference or how.golden is not None:
        folders.drop(run.number)
    return replace(record, problem=next(iter(problems), None))


def _measure(measurer: Measurer, number: int, place: Check) -> str | None:
    """Why a run could not be compared; None if it was. Its folder is the project's, as it says."""
    try:
        outputs = RunOutputs(place.root, outputs_of(place))
    except OutputMissingError:
        named = ", ".join(place.outputs)
        return f"{place.name}: the command wrote nothing that 'outputs' names ({named})"
    except NotComparableError as error:
        return _as_seen(str(error), place.root)
    problem = measurer.add(number, outputs)
    return None if problem is None else _as_seen(problem, place.root)


def _as_seen(text: str, folder: Path) -> str:
    """A message, as if the outputs were where the command wrote them."""
    return text.replace(f"{folder}/", "").replace(f"{folder}: ", "")


def _run_commands(
    config: Config,
    checks: Sequence[Check],
    plan: Plan,
    run: PlannedRun,
    how: HowToRepeat,
    earlier: Sequence[RepeatedRun],
) -> list[CommandOutcome]:
    """Runs the overall command and those of the checks; the first that fails is the last."""
    limit = _limit(earlier)
    outcomes = []
    for settings in (config.command, *(check.command for check in checks)):
        if settings is None:
            continue
        planned = _limited(plan.command(settings, run), limit)
        outcomes.append(run_command(planned, is_shown=how.is_shown))
        if outcomes[-1].exit_code != 0:
            break
    return outcomes


def _limit(earlier: Sequence[RepeatedRun]) -> float | None:
    seconds = [run.seconds for run in earlier if run.seconds is not None]
    return max(_LEAST_SECONDS, _PATIENCE * max(seconds)) if seconds else None


def _limited(settings: CommandSettings, limit: float | None) -> CommandSettings:
    """With a time limit, where the configuration has none."""
    if settings.timeout_seconds is not None:
        return settings
    return replace(settings, timeout_seconds=limit)
