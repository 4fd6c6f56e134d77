"""Runs the configured command several times, each time on its own, and measures what varies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.rules import Rules
from ciwrap.compare.check import check_catalog
from ciwrap.compare.explaining import explainer
from ciwrap.compare.outputs import arrangement_of, files_of, outputs_of
from ciwrap.compare.work import Work
from ciwrap.config.placeholders import RunPlace
from ciwrap.errors import NotComparableError, OutputMissingError, UsageError
from ciwrap.interrupts import ends_are_interrupts
from ciwrap.model.repeat_result import RepeatedRun
from ciwrap.repeat.folders import RunFolders
from ciwrap.repeat.measure import Measurer, RunOutputs
from ciwrap.repeat.perturb import write_inputs
from ciwrap.repeat.summary import names_that_vary
from ciwrap.running.run_command import ending_of, failure_of, last_words, run_command
from ciwrap.running.together import together
from ciwrap.snapshot.program import ProgramWatcher
from ciwrap.snapshot.runs import environment_of_program, note_outputs
from ciwrap.structs import Struct, field, replace
from ciwrap.trees.build import DEFAULT_RESOURCES

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ciwrap.config import Check, CommandSettings, Config
    from ciwrap.config.settings import PerturbSettings
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, CommandOutcome
    from ciwrap.repeat.plan import Plan, PlannedRun
    from ciwrap.trees.build import Resources

# A run that takes so many times the longest one before it, and at least a minute, never ends.
_PATIENCE = 20.0
_LEAST_SECONDS = 60.0


class Repetition(Struct):
    """All runs, and what was measured of each check. notes: what to tell besides. environment:
    what the first run ran with, where it was looked at.
    """

    runs: list[RepeatedRun] = field(default_factory=list)
    measurers: list[Measurer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: Mapping[str, str] | None = None


class HowToRepeat(Struct, frozen=True):
    """names: of the checks, in order. perturb: the inputs to perturb for all runs but the first.
    keeps: whether outputs of all runs stay. is_shown: whether
    the command's output goes to stderr. concurrent: how many runs at a time. golden: where goldens
    are, if these are the reference. told: is called with every run that is over.
    """

    names: tuple[str, ...]
    perturb: PerturbSettings | None = None
    keeps: bool = False
    is_shown: bool = False
    concurrent: int = 1
    golden: GoldenStore | None = None
    resources: Resources = DEFAULT_RESOURCES
    told: Callable[[RepeatedRun], None] = lambda run: None  # noqa: ARG005


def repeat_command(
    config_of: Callable[[RunPlace], Config], plan: Plan, how: HowToRepeat
) -> Repetition:
    """Makes all runs of a plan, one after the other or several at a time.

    config_of: what the configuration says of a run. Raises CommandFailedError or another
    NotComparableError if already the first run gives nothing to compare with, UsageError; a later
    run that fails is told of in its record, and the others are made all the same.
    """
    first = config_of(RunPlace(1, plan.runs[0].seed))
    _refuse_idle(first, how)
    with ends_are_interrupts(), RunFolders(first.root, keeps=how.keeps) as folders:
        return _Repeater(config_of, plan, how, folders, first.root).run_all()


class _Ready(Struct, frozen=True):
    """A run that can begin: what the configuration says of it."""

    run: PlannedRun
    commands: tuple[CommandSettings, ...]
    checks: tuple[Check, ...]
    watcher: ProgramWatcher | None


class _Repeater:
    """Makes the runs of one plan."""

    def __init__(
        self,
        config_of: Callable[[RunPlace], Config],
        plan: Plan,
        how: HowToRepeat,
        folders: RunFolders,
        root: Path,
    ) -> None:
        self._root = root
        self._config_of = config_of
        self._plan = plan
        self._how = how
        self._folders = folders
        self._found = Repetition(notes=folders.notes)

    def run_all(self) -> Repetition:
        runs, step = self._plan.runs, self._how.concurrent
        for first in range(0, len(runs), step):
            batch = [self._prepared(run) for run in runs[first : first + step]]
            for ready, outcomes in zip(batch, self._run(batch), strict=True):
                record = self._taken(ready, outcomes)
                self._found.runs.append(record)
                self._how.told(record)
        for measurer in self._found.measurers:
            measurer.look_for_zeros(names_that_vary(measurer.measured))
        return self._found

    def _prepared(self, run: PlannedRun) -> _Ready:
        config = self._config_of(RunPlace(run.number, run.seed, self._inputs_of(run)))
        checks = tuple(config.check(name) for name in self._how.names)
        if not self._found.measurers:
            self._found.measurers = [measurer_of(one, self._how) for one in checks]
        self._folders.set_aside(checks)
        limit = _limit(self._found.runs)
        commands = tuple(
            _limited(self._plan.command(settings, run), limit)
            for settings in (config.command, *(check.command for check in checks))
            if settings is not None
        )
        watcher = ProgramWatcher() if config.snapshot.objects else None
        return _Ready(run, commands, checks, watcher)

    def _inputs_of(self, run: PlannedRun) -> str:
        """The folder that a run takes its inputs from."""
        if self._how.perturb is None:
            return "."
        target = self._folders.inputs_folder(run.number).absolute()
        seed = None if run.number == self._plan.runs[0].number else run.seed
        write_inputs(self._root, self._how.perturb, target, seed)
        return str(target)

    def _run(self, batch: Sequence[_Ready]) -> list[list[CommandOutcome]]:
        """What became of the commands of these runs, which run at the same time."""
        return together([partial(self._run_one, ready) for ready in batch])

    def _run_one(self, ready: _Ready, stop: threading.Event | None) -> list[CommandOutcome]:
        """Runs the overall command and those of the checks; the first that fails is the last."""
        outcomes = []
        for settings in ready.commands:
            watcher = ready.watcher
            outcome = run_command(settings, is_shown=self._how.is_shown, stop=stop, watcher=watcher)
            outcomes.append(outcome)
            if outcomes[-1].exit_code != 0:
                break
        return outcomes

    def _kept(self, ready: _Ready) -> str | None:
        """Keeps the snapshot of a run, and returns its identity."""
        if ready.watcher is None:
            return None
        command = "; ".join(one.text for one in ready.commands)
        found = environment_of_program(self._root, ready.watcher, command)
        if self._found.environment is None:
            self._found.environment = found
        return found.get("snapshot")

    def _taken(self, ready: _Ready, outcomes: Sequence[CommandOutcome]) -> RepeatedRun:
        """Measures what a run has written, and puts it away."""
        number, last = ready.run.number, outcomes[-1]
        self._folders.drop_inputs(number)
        record = RepeatedRun(
            number,
            ready.run.seed,
            self._plan.states(ready.run),
            sum(one.seconds for one in outcomes),
            last.exit_code,
            last.timed_out,
            output_tail=last.output_tail,
        )
        is_first = not self._found.runs
        if is_first and last.exit_code is None and not last.timed_out:
            raise failure_of(last)  # it never began, so what earlier calls have kept stays
        record = replace(record, snapshot=self._kept(ready))
        places = self._folders.take(number, ready.checks)
        if last.exit_code != 0:
            if is_first:
                raise failure_of(last, was_shown=self._how.is_shown)
            problems = [f"the command {ending_of(last)}{last_words(last)}"]
        else:
            measured = zip(self._found.measurers, places, strict=True)
            told = [_measure(measurer, number, place) for measurer, place in measured]
            problems = [problem for problem in told if problem is not None]
        if problems and is_first:
            raise NotComparableError(f"the first run gives nothing to compare with: {problems[0]}")
        folder = None
        if self._how.keeps:
            folder = str(self._folders.run_folder(number))
            kept = {} if record.snapshot is None else {"snapshot": record.snapshot}
            outputs = {f"{one.name}, run {number} of repeat": files_of(one) for one in places}
            note_outputs(self._root, kept, outputs)
        elif not is_first or self._how.golden is not None:
            self._folders.drop(number)
        return replace(record, problem=next(iter(problems), None), folder=folder)


def _refuse_idle(config: Config, how: HowToRepeat) -> None:
    """Raises UsageError if there is nothing to run, or runs would write to one place."""
    commands = [config.command, *(config.check(name).command for name in how.names)]
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
    if how.perturb is not None and "inputs" not in config.placeholders:
        raise UsageError(
            "no command has {inputs}, the folder that perturbed files are below",
            file=config.path,
            remedy="write {inputs}/FILE where the command names the file",
        )
    if how.concurrent > 1 and not config.output_placeholders:
        raise UsageError(
            "runs at the same time would write to one place",
            file=config.path,
            remedy="put {run} into the command and into 'outputs'",
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
                return check_catalog(check, golden, catalog, Work(how.resources, explain=explainer))

        against = against_golden
    rules = Rules(
        check.settings_for, check.is_ignored, check.strict.variables, arrangement_of(check)
    )
    return Measurer(check.name, rules, against_golden=against, resources=how.resources)


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


def _limit(earlier: Sequence[RepeatedRun]) -> float | None:
    seconds = [run.seconds for run in earlier if run.seconds is not None]
    return max(_LEAST_SECONDS, _PATIENCE * max(seconds)) if seconds else None


def _limited(settings: CommandSettings, limit: float | None) -> CommandSettings:
    """With a time limit, where the configuration has none."""
    if settings.timeout_seconds is not None:
        return settings
    return replace(settings, timeout_seconds=limit)
