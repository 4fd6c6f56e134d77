"""`ciwrap time`, `bisect`, `selftest` and `changes`."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ciwrap import __version__
from ciwrap.base.errors import ExitCode, NotComparableError, UsageError
from ciwrap.base.processes import ends_are_interrupts
from ciwrap.base.repository import Repository
from ciwrap.cli.check import run_and_check, with_command
from ciwrap.cli.commands import command
from ciwrap.cli.main import Session
from ciwrap.cli.options import (
    check_option,
    config_options,
    host,
    json_option,
    keep_host_option,
    markdown_option,
    report_option,
    resource_options,
    section_options,
)
from ciwrap.model import MessageLevel, RunResult, Verdict
from ciwrap.project.config import load_config
from ciwrap.project.run_command import all_cores_but_one
from ciwrap.project.schema import TIMING
from ciwrap.project.settings import CommandSettings, Config, TimingSettings
from ciwrap.report.console import Text
from ciwrap.report.document import plain, to_document, trimmed, write_text
from ciwrap.report.terminal import render
from ciwrap.report.text import plural, relative_to, safe_name, safe_text, seconds_text
from ciwrap.review.project import Project, load_config_if_any, load_project, project_of
from ciwrap.snapshot.difference import describe_environment, environment_of_program
from ciwrap.snapshot.take import ProgramWatcher
from ciwrap.statistics.spread import scipy
from ciwrap.studies.bisect import (
    BisectDocument,
    Search,
    Step,
    describe_commit,
    found_text,
    not_found_text,
    reference_of,
    refuse_files_in_the_way,
    refuse_unless_ready,
    render_bisect_html,
)
from ciwrap.studies.changes.find import WIDER, find_changes, line_of, mark_of, markdown_table, title
from ciwrap.studies.changes.state import (
    ChangesDocument,
    CommitTree,
    Where,
    WorkingTree,
    below,
    state_of,
)
from ciwrap.studies.repeat.run import RunFolders
from ciwrap.studies.selftest import (
    Damage,
    Planted,
    SelftestCheck,
    SelftestDocument,
    temporary_folder,
    try_check,
)
from ciwrap.studies.timing import (
    Recipe,
    TimedCommand,
    TimingDocument,
    chosen_timing,
    revision_side,
    take_until_decided,
    timing_document,
    working_tree_side,
)
from ciwrap.studies.timing_report import (
    lead,
    notes,
    render_timing_html,
    side_text,
    table_of,
    timing_summary,
)


@command("time", example="ciwrap time --base main")
@click.argument("commands", nargs=-1, metavar="[A [B]]")
@click.option("--base", metavar="REF", help="Take the command in this revision as A.")
@click.option("--head", metavar="REF", help="And in this one as B, instead of the working tree.")
@section_options(
    TIMING,
    *("pairs", "until_decided", "margin", "confidence", "decides", "gate"),
    *("warm_up", "reserve_core", "duet"),
    *("timeout_seconds", "max_seconds", "max_memory"),
)
@click.option(
    "--concurrent",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="M",
    help="Run M of a side at once; the slowest of them counts.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of the random order; else a new one.")
@keep_host_option
@click.option("--config", "config_path", type=click.Path(), help="The configuration, if any.")
@markdown_option
@json_option
@report_option
@click.pass_obj
def time_command(
    session: Session,
    /,
    commands: tuple[str, ...],
    base: str | None,
    head: str | None,
    concurrent: int,
    seed: int | None,
    keep_host: bool,
    config_path: str | None,
    **given: Any,
) -> int:
    """Run two commands in pairs, in random order, and say whether the second one takes longer.

    A and B are texts for the shell. With --base REF, A is the configured command in that revision,
    built in a working tree of its own by the `build` of `timing`, and B the same command in the
    working tree as it is; one command may then be given instead of the configured one. One command
    without --base, or the configured one, is run alone, and the spread of its times is shown.

    The verdict is changed, not changed, or inconclusive, and says what it rests on. A run that
    fails ends it all.

    Exit codes: 0 whatever the verdict; 1 with --gate if B takes longer, or if it takes more than
    --max-seconds or --max-memory; 2 usage or configuration, 3 a run or a build failed.
    """
    session.kind = "timing"
    config = load_config_if_any(config_path, needs_checks=False)
    settings = chosen_timing(config, given)
    if base is None and len(commands) < 2:
        settings = _settings_alone(settings, given)
    if settings.duet and concurrent > 1:
        raise UsageError("a duet is one run of each side, so --concurrent has no meaning in it")
    if settings.until_decided is not None and settings.until_decided < settings.pairs:
        raise UsageError(
            f"at most {settings.until_decided} pairs are allowed, but the first decision takes"
            f" {settings.pairs}",
            remedy="raise --until-decided, or lower --pairs",
        )
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    with ends_are_interrupts(), _sides(commands, base, head, config, settings) as sides:
        # They look at both sides in their first warm-up run.
        keeps = config is not None and config.snapshot.objects and settings.warm_up
        watchers = tuple(ProgramWatcher() for _ in sides) if keeps else ()
        found = _measure(session, sides, settings, seed, concurrent, watchers)
    if keep_host:
        found = replace(found, environment={**found.environment, **host()})
    session.emit_record(found)
    session.emit_summary(timing_summary(found))
    if session.report_target is not None:
        write_text(render_timing_html(found), session.report_target, "the report")
    _print(session, found)
    return found.exit_code


@contextlib.contextmanager
def _sides(
    commands: tuple[str, ...],
    base: str | None,
    head: str | None,
    config: Config | None,
    settings: TimingSettings,
) -> Iterator[tuple[TimedCommand, ...]]:
    """Both sides, or the only one, for as long as they can be run."""
    if any(not text.strip() for text in commands):
        raise UsageError("a command is empty")
    if base is None:
        if head is not None:
            raise UsageError("--head needs --base")
        if len(commands) > 2:
            raise UsageError(
                f"it compares two commands, but {len(commands)} are given",
                remedy="put each in quotes, or compare revisions with --base",
            )
        if len(commands) < 2:
            yield (_alone(commands, config, settings),)
            return
        a, b = (_fitted(_here(config, text), settings) for text in commands)
        yield TimedCommand("A", a), TimedCommand("B", b)
        return

    recipe = _recipe(commands, config, settings)
    repository = Repository.around(recipe.timed.working_dir)
    for reference in (base, head):
        if reference is not None:
            repository.commit(reference)  # before anything is built
    with revision_side("A", base, repository, recipe) as first:
        if head is None:
            with working_tree_side("B", repository, recipe) as second:
                yield first, second
        else:
            with revision_side("B", head, repository, recipe) as second:
                yield first, second


def _settings_alone(settings: TimingSettings, given: dict[str, Any]) -> TimingSettings:
    """Without what only a comparison has. Raises UsageError where an option asks for that."""
    for name in ("gate", "duet", "until_decided", "margin", "decides"):
        if given[name]:
            raise UsageError(
                f"--{name.replace('_', '-')} is of two sides, and there is one command",
                remedy="give another command, or a revision with --base",
            )
    return replace(settings, gate=False, duet=False, until_decided=None)


def _alone(
    commands: tuple[str, ...], config: Config | None, settings: TimingSettings
) -> TimedCommand:
    return TimedCommand("A", _fitted(_timed(commands, config, settings), settings))


def _recipe(commands: tuple[str, ...], config: Config | None, settings: TimingSettings) -> Recipe:
    if len(commands) > 1:
        raise UsageError("with --base, one command is timed in both revisions")
    timed = _timed(commands, config, settings)
    root = Path.cwd() if config is None else config.root
    build = (
        None if settings.build is None else replace(timed, words=settings.build, working_dir=root)
    )
    return Recipe(_fitted(timed, settings), build)


def _timed(
    commands: tuple[str, ...], config: Config | None, settings: TimingSettings
) -> CommandSettings:
    """What is run in both revisions: as given, as configured for timing, or as for `run`."""
    if commands:
        return _here(config, commands[0])
    usual = None if config is None else config.command
    if config is not None and settings.command is not None:
        place = usual or _here(config, "")
        return replace(place, words=settings.command, working_dir=place.working_dir)
    if usual is None:
        raise UsageError(
            "there is no command to time",
            remedy="give one, or configure 'command' under 'timing' or 'run'",
        )
    return usual


def _here(config: Config | None, text: str) -> CommandSettings:
    usual = None if config is None else config.command
    return CommandSettings(text, Path.cwd(), env={} if usual is None else usual.env)


def _fitted(timed: CommandSettings, settings: TimingSettings) -> CommandSettings:
    """The command with the time limit and the cores that runs are given."""
    return replace(
        timed,
        timeout_seconds=settings.timeout_seconds or timed.timeout_seconds,
        cores=all_cores_but_one() if settings.reserve_core else timed.cores,
    )


def _print_timing(line: str) -> None:
    """Tells a person at a terminal how far it is."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _measure(
    session: Session,
    sides: tuple[TimedCommand, ...],
    settings: TimingSettings,
    seed: int,
    concurrent: int,
    watchers: Sequence[ProgramWatcher],
) -> TimingDocument:
    scipy("stats", "`ciwrap time`")  # before anything has run for an hour
    load = os.getloadavg()[0]
    started = time.monotonic()
    taken = take_until_decided(
        sides,
        settings,
        seed=seed,
        size=concurrent,
        tell=_print_timing,
        watchers=watchers or (None, None),
    )
    environments = [
        environment_of_program(Path.cwd(), watcher, side.command.text)
        for side, watcher in zip(sides, watchers, strict=False)
    ]
    return timing_document(
        sides,
        taken,
        settings=settings,
        seed=seed,
        environment=environments[0] if environments else describe_environment(Path.cwd()),
        ciwrap_version=__version__,
        started_at=session.started_at,
        seconds=time.monotonic() - started,
        load=load,
        snapshots=[one.get("snapshot") for one in environments] or [None for _ in sides],
    )


def _print(session: Session, found: TimingDocument) -> None:
    console = session.console
    first, *more = lead(found)
    console.print(first)
    for line in more:
        console.print(f"  {line}")
    console.print()
    for side in found.sides:
        console.print(side_text(side))
    rows = [("", *(side.name for side in found.sides)), *table_of(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(f"  {'  '.join(cells)}".rstrip())
    for note in notes(found):
        console.print(f"note: {note}")
    if found.comparison is not None:
        console.print(f"order of runs: seed {found.seed}")
    if found.gate:
        console.print(f"gate: exit code {found.exit_code}")


@command("bisect", example="ciwrap bisect v1.0 HEAD -- ./simulate")
@click.argument("good")
@click.argument("bad")
@click.argument("words", nargs=-1, metavar="[-- COMMAND]")
@check_option
@config_options
@json_option
@report_option
@resource_options
@click.pass_obj
def bisect_command(
    session: Session,
    good: str,
    bad: str,
    words: tuple[str, ...],
    check_names: tuple[str, ...],
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Find the first commit after GOOD whose outputs differ from the goldens of GOOD.

    At each commit that git's bisection asks for, the command of `run` (or COMMAND, which should
    build the program and run it) runs in the working tree, and `ciwrap run` judges what it wrote.
    A commit that cannot be compared (exit code 3), say since it does not build, is passed over.
    Configuration and goldens are those of GOOD at every commit.

    The working tree must have no changes, and in the end is what it was, also after Ctrl-C.

    Exit codes: 0 found, 2 usage or configuration, 3 not found, since too much could not be
    compared.
    """
    started = time.monotonic()
    repository = Repository.around(Path.cwd())
    first, last = repository.commit(good), repository.commit(bad)
    refuse_unless_ready(repository, first, last)
    with (
        ends_are_interrupts(),
        reference_of(repository, first, config_path, golden_dir) as reference,
        _working_at(repository.top),
    ):
        project = project_of(reference.config, reference.golden_dir, check_names)
        if words:
            project = with_command(project, words[0] if len(words) == 1 else words)
        with (
            # Runs that `repeat --keep` has kept stay.
            RunFolders(project.root, prefix="commit", by_ensemble=True) as folders,
            Search(repository, first, last) as search,
        ):
            for note in folders.notes:
                session.console.print(f"warning: {safe_text(note)}")
            folders.set_aside(project.checks)
            refuse_files_in_the_way(repository, first, last)
            finding = _Finding(session, project, search, folders, reference.golden_text)
            document = finding.run(started)
    session.emit_document(_plain(document))
    if session.report_target is not None:
        write_text(render_bisect_html(document), session.report_target, "the report")
    return _print_bisection(session, document)


def _plain(document: BisectDocument) -> dict[str, Any]:
    if document.result is None:
        return plain(document)  # type: ignore[no-any-return]
    return {**plain(document), "result": to_document(document.result)}


@contextlib.contextmanager
def _working_at(folder: Path) -> Iterator[None]:
    """The folder that this was called in may not be there in every commit."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(before)


class _Finding:
    """One search, commit by commit."""

    def __init__(
        self,
        session: Session,
        project: Project,
        search: Search,
        folders: RunFolders,
        golden_text: str,
    ) -> None:
        self._session = session
        self._project = project
        self._search = search
        self._folders = folders
        self._golden_text = golden_text
        self._steps: list[Step] = []
        self._results: dict[str, RunResult] = {}

    def run(self, started: float) -> BisectDocument:
        """Searches to the end. Raises UsageError if GOOD or BAD is not what it should be, and
        NotComparableError if that cannot be said.
        """
        search = self._search
        search.begin()
        while not search.is_over:
            search.mark(self._look(search.here).verdict)
        found = search.found
        if found is None:
            self._check_sides()
        else:
            self._check_ends(found)
        result = None if found is None else self._as_told(self._results[found])
        return BisectDocument(
            schema_version=1,
            kind="bisect",
            exit_code=3 if found is None else 0,
            good=search.good,
            bad=search.bad,
            found=None if found is None else describe_commit(search.repository, found),
            candidates=tuple(describe_commit(search.repository, one) for one in search.possible),
            steps=tuple(self._steps),
            result=result,
            seconds=time.monotonic() - started,
            ciwrap_version=__version__,
            started_at=self._session.started_at,
        )

    def _as_told(self, result: RunResult) -> RunResult:
        """The result, which names where the goldens are from and no folder of this machine."""
        checks = tuple(
            replace(check, golden_path=f"{self._golden_text}/{Path(check.golden_path).name}")
            if check.golden_path is not None
            else check
            for check in result.checks
        )
        return relative_to(trimmed(replace(result, checks=checks, kind="bisect")), Path.cwd())

    def _look(self, commit: str) -> RunResult:
        """Runs and checks the commit that is checked out."""
        started = time.monotonic()
        number = len(self._steps) + 1
        try:
            result, _ = run_and_check(self._session, self._project)
        finally:
            self._folders.take(number, self._project.checks)
            self._folders.drop(number)
        seconds = time.monotonic() - started
        described = describe_commit(self._search.repository, commit)
        reason = _reason(result) if result.verdict is Verdict.NOT_COMPARABLE else None
        self._steps.append(Step(described, result.verdict, seconds, reason))
        self._results[commit] = result
        self._session.console.print(
            f"{number}  {commit[:10]}  {result.verdict.words:<14}  {seconds_text(seconds):>7}"
            f"  {safe_name(described.title, 60)}"
        )
        return result

    def _check_ends(self, found: str) -> None:
        """Looks at BAD, or at GOOD, where the answer rests on it and nobody has."""
        search = self._search
        if found not in self._results:
            self._require(found, "BAD", is_good=False)
        parents = search.repository.git("rev-parse", f"{found}^@").split()
        if search.good in parents and search.good not in self._results:
            self._require(search.good, "GOOD", is_good=True)

    def _check_sides(self) -> None:
        """Looks at GOOD and BAD unless some commit was good, and some other one bad: that a number
        moved between commits that cannot be compared rests on it.
        """
        told = [one.verdict for one in self._steps if one.verdict is not Verdict.NOT_COMPARABLE]
        if all(one.is_good for one in told):
            self._require(self._search.bad, "BAD", is_good=False)
        if not any(one.is_good for one in told):
            self._require(self._search.good, "GOOD", is_good=True)

    def _require(self, commit: str, name: str, *, is_good: bool) -> None:
        self._search.look_at(commit)
        result = self._look(commit)
        if result.verdict is Verdict.NOT_COMPARABLE:
            raise NotComparableError(
                f"{name} ({commit[:10]}) cannot be compared: {_reason(result)}"
            )
        if result.verdict.is_good is not is_good:
            raise UsageError(
                f"{name} ({commit[:10]}) {_THIRD_PERSON[result.verdict]} the goldens that commits"
                " are compared with, so there is nothing to find between GOOD and BAD"
            )


_THIRD_PERSON = {
    "match": "matches",
    "undecided": "may differ from",
    "differ": "differs from",
    "consistent": "is consistent with",
    "inconsistent": "is inconsistent with",
}


def _reason(result: RunResult) -> str:
    """Why a commit could not be compared: the first reason."""
    messages = [*result.messages, *(one for check in result.checks for one in check.messages)]
    reasons = [one.text for one in messages if one.level is MessageLevel.ERROR]
    reasons += [
        f"{variable.id.text}: {variable.reason}"
        for check in result.checks
        for variable in check.variables
        if variable.verdict is Verdict.NOT_COMPARABLE
    ]
    return reasons[0] if reasons else "nothing was compared"


def _print_bisection(session: Session, document: BisectDocument) -> int:
    console = session.console
    runs = plural(len(document.steps), "run")
    if document.found is None or document.result is None:
        console.print(f"{not_found_text(document)} ({runs})")
        for one in document.candidates:
            console.print(f"  {one.name[:10]}  {safe_name(one.title, 80)}")
        reason = next((step.reason for step in document.steps if step.reason), None)
        if reason:
            console.print(f"  the first reason: {safe_text(reason)}")
        return document.exit_code
    found = document.found
    console.print()
    console.print(f"found: {found_text(document)} ({runs})")
    console.print(f"  {safe_name(found.title, 120)}")
    console.print(f"  {safe_name(found.author)}, {found.when}")
    console.print()
    render(document.result, console, verbose=session.verbose)
    return document.exit_code


_MOST_LINES = 12


@command("selftest", example="ciwrap selftest")
@check_option
@config_options
@json_option
@resource_options
@click.pass_obj
def selftest_command(
    session: Session,
    check_names: tuple[str, ...],
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Plant differences in copies of the outputs that are there, and see whether the configuration
    catches each: the nearest value beyond the bound, a NaN, a flipped sign, a lost variable,
    another unit, a truncated file.

    The outputs are only read, and so are the goldens: copies are compared with a golden of the
    outputs as they are, made for this in a temporary folder.

    Exit codes: 0 all caught, 1 some not caught, 2 usage or configuration, 3 could not try.
    """
    project = load_project(config_path, golden_dir, check_names)
    tried = []
    with ends_are_interrupts():
        for check in project.checks:
            with temporary_folder() as folder:
                tried.append(try_check(check, folder, resources=session.resources))
    if any(one.problem is not None or not one.planted for one in tried):
        code = ExitCode.NOT_COMPARABLE
    else:
        code = ExitCode.DIFFER if any(one.missed for one in tried) else ExitCode.MATCH
    session.emit_record(SelftestDocument(1, "selftest", tuple(tried), int(code)))  # type: ignore[arg-type]
    for one in tried:
        _print_selftest(session, one)
    return int(code)


def _print_selftest(session: Session, tried: SelftestCheck) -> None:
    console = session.console
    name = safe_name(tried.name, 60)
    if tried.problem is not None:
        console.print(f"{name}: could not be tried: {safe_text(tried.problem)}")
        return
    caught = sum(one.caught for one in tried.planted)
    console.print(f"{name}: {caught} of {plural(len(tried.planted), 'planted difference')} caught")
    for damage in Damage:
        some = [one.caught for one in tried.planted if one.damage is damage]
        if some:
            console.print(f"  {damage.value:15} {sum(some)} of {len(some)}")
    for lines, heading in (
        (_missed(tried.missed), "not caught:"),
        ([safe_text(text) for text in tried.not_tried], "not tried:"),
    ):
        if lines:
            console.print(f"  {heading}")
        for line in lines[:_MOST_LINES]:
            console.print(f"    {line}")
        if len(lines) > _MOST_LINES:
            console.print(f"    ... and {len(lines) - _MOST_LINES} more (--json)")


def _missed(planted: list[Planted]) -> list[str]:
    """A line for each variable, damage and reason, whatever the checkpoint."""
    counts: dict[tuple[str, str, str], int] = {}
    for one in planted:
        key = (one.name, one.damage.value, one.reason or "")
        counts[key] = counts.get(key, 0) + 1
    return [
        safe_text(f"{name}: {damage} ({plural(count, 'time')}): {reason}")
        for (name, damage, reason), count in counts.items()
    ]


@command("changes", example="ciwrap changes --base main")
@click.option("--base", required=True, metavar="REF", help="The commit, branch or tag to look at.")
@markdown_option
@config_options
@json_option
@click.pass_obj
def changes_command(
    session: Session, base: str, config_path: str | None, golden_dir: str | None
) -> int:
    """Compare what is checked here with what was checked at REF: bounds, ignored variables, masks,
    strictness, evidence, checks, variables, and goldens that were replaced.

    Configuration and manifests of REF are read through git; the working tree stays as it is. If REF
    has moved on, the commit counts where this branch left it: what others tightened there since
    then is not loosened here. WIDER marks what checks less than at REF, and ? what nobody can tell.

    Exit codes: 0 done, whatever was found; 2 usage or configuration; 3 git failed.
    """
    start = Path.cwd() if config_path is None else Path(config_path).absolute().parent
    repository = Repository.around(start)
    commit = repository.common_commit(repository.commit(base))
    where = _where(repository, config_path, golden_dir)
    new = state_of(WorkingTree(repository.top), where)
    if new.problem is not None and new.config_name is not None:
        load_config(where.top / new.config_name)  # raises ConfigError, with its line
    tree = CommitTree(repository, commit)
    old = state_of(tree, where)
    if old.problem is not None:  # where it had its goldens cannot be read either
        old = state_of(tree, where, new.golden_dir)
    document = ChangesDocument(
        schema_version=1, kind="changes", base=commit, changes=find_changes(old, new)
    )
    session.emit_record(document)
    session.emit_summary(markdown_table(document.changes))
    _print_changes(session, document)
    return 0


def _where(repository: Repository, config_path: str | None, golden_dir: str | None) -> Where:
    top = repository.top
    return Where(
        top=top,
        start=below(Path.cwd(), top) if config_path is None else "",
        config_name=None if config_path is None else below(Path(config_path).absolute(), top),
        golden_dir=None if golden_dir is None else below(Path(golden_dir).absolute(), top),
    )


def _print_changes(session: Session, document: ChangesDocument) -> None:
    console = session.console
    console.print(Text(f"{title(document.changes)} (since {document.base[:12]})"))
    for change in document.changes:
        console.print(Text(f"  {mark_of(change):<{len(WIDER)}}  {line_of(change)}"))
