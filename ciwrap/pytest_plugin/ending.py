"""The end of a session: what all tests together say of the goldens, and which are unused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap import __version__
from ciwrap.base.errors import CiwrapError, CorruptFileError, UsageError, WriteFailedError
from ciwrap.base.files import keep_out_of_git
from ciwrap.golden.git_files import add_git_files
from ciwrap.golden.places import Place, TestPlace, is_shortened, writer_lock
from ciwrap.golden.show import (
    ProjectState,
    UnusedGolden,
    UnusedList,
    delete_goldens,
    list_path,
    read_unused,
    shared_stores,
    stored_places,
    write_unused,
)
from ciwrap.model import Coverage, Message, MessageLevel, RunResult, Verdict
from ciwrap.pytest_plugin.collect import FAILED, LATE, Collected, Results, TestFile
from ciwrap.pytest_plugin.one_check import EXPECTED, NEW, WRITTEN, TestedProject, find_project
from ciwrap.pytest_plugin.options import unused_mode
from ciwrap.report.document import SCHEMA_VERSION, from_document, to_document, write_document
from ciwrap.report.outputs import write_report
from ciwrap.report.text import plural, safe_text
from ciwrap.report.words import left_out_words
from ciwrap.review.project_state import lacking_files, other_state_words, state_of, touched_since
from ciwrap.snapshot.difference import environment_of_process


def used_places(results: Results) -> set[Place]:
    """Places of all goldens that tests asked for, whatever became of the checks."""
    return {
        Place(*record["place"]).for_variant(None)
        for record in results.records()
        if record["place"] is not None
    }


def find_unused(
    project: TestedProject, results: Results, collected: Collected, config: pytest.Config
) -> list[Place]:
    """Goldens whose test is gone, or ran to its end without using them.

    Nothing is said of files of which not all tests were collected, nor of a test that did not pass:
    it may have ended before its check.
    """
    used = used_places(results)
    # By folder of goldens: one with a shortened name does not tell its file.
    files: dict[str, TestFile] = {}
    for path, found in collected.tests.items():
        try:
            folder = TestPlace(project.module_of(Path(path)), "").place.folder
        except UsageError:
            continue
        file = files.setdefault(folder, TestFile(Path(path)))
        file.add(found, is_partial=path in collected.partial)
    test_names = config.getini("python_files")
    unused, gone = [], []
    # Of a damaged file each check is reported when it is made.
    for place in stored_places(project.golden_dir, faults=[]):
        plain = place.for_variant(None)
        test = TestPlace.of(place) if place.folder else None
        if test is None or plain in used:
            continue
        # Of a docstring, `test_a.area`, the file's other tests do not tell whether it is there.
        is_doctest = "." in test.test
        if is_doctest and not config.getoption("doctestmodules", False):
            continue
        if plain.folder in files:
            is_for_us = place.variant is None or place.variant in project.variants
            if files[plain.folder].does_not_use(test, results, is_for_us=is_for_us):
                unused.append(place)
        elif not is_doctest and not any(map(PurePosixPath(test.module).match, test_names)):
            continue  # The golden of a check of the configuration, in the folder of a platform.
        elif not is_shortened(plain.folder) and _is_gone(project.root / test.module, config):
            gone.append((place, test.module))
    # A sparse checkout lacks files that nobody has deleted.
    lacking = set(lacking_files(project)) if gone else set()
    return sorted([*unused, *(place for place, module in gone if module not in lacking)])


def moved_goldens(
    project: TestedProject, unused: Iterable[Place], results: Results
) -> list[tuple[str, Place]]:
    """New checks, each with the one unused golden that has the same numbers: perhaps its old one.

    Goldens of one root hold the same variables, compared by the same bounds.
    """
    olds: dict[str, list[Place]] = {}
    for place in unused:
        root = _root(project, place)
        if root is not None:
            olds.setdefault(root, []).append(place)
    found = []
    for record in results.records() if olds else ():
        if record["outcome"] != NEW or not record["pending"]:
            continue
        place = Place(*record["place"])
        root = project.pending.store(place).root_of(place.name)
        if root is not None and len(olds.get(root, ())) == 1:
            found.append((record["check"], olds[root][0]))
    return found


def _is_gone(file: Path, config: pytest.Config) -> bool:
    """Whether the file of a test is deleted, and would have been collected if it were not."""
    if file.exists():
        return False
    folders = [Path(config.invocation_params.dir, str(one).split("::")[0]) for one in config.args]
    return any(file.is_relative_to(folder) for folder in folders)


def note_unused(project: TestedProject, unused: list[Place], results: Results) -> None:
    """Keeps the list for `ciwrap prune`. What earlier sessions found of the same tests stays,
    unless it is used.
    """
    path = list_path(project.root)
    if not unused and not path.exists():
        return
    used = used_places(results)
    state = state_of(project)
    keep_out_of_git(path.parent)
    with writer_lock(path.parent, doing="noting unused goldens"):
        kept = {
            one.place: one
            for one in _noted(project, state)
            if one.place.for_variant(None) not in used and _root(project, one.place) == one.root
        }
        kept |= {one.place: one for one in unused_goldens(project, unused)}
        write_unused(project.root, UnusedList(state=state, unused=tuple(sorted(kept.values()))))


def _noted(project: TestedProject, state: ProjectState) -> tuple[UnusedGolden, ...]:
    """What is known already of the tests as they are."""
    try:
        before = read_unused(project.root)
    except CorruptFileError:
        return ()
    return () if before is None or other_state_words(before.state, state) else before.unused


def unused_goldens(project: TestedProject, places: Iterable[Place]) -> list[UnusedGolden]:
    return [UnusedGolden(one.folder, one.name, _root(project, one)) for one in places]


def _root(project: TestedProject, place: Place) -> str | None:
    return project.goldens.at(place).root_of(place.name)


_MOST_NAMES = 10
# In the order of the summary, with the words for it.
_WORDS = {
    "matched": "matched",
    "repeated": "reproducible from run to run",
    "differ": "differ",
    "not_repeated": "not reproducible from run to run",
    "not_comparable": "not comparable",
    "new": "new",
    "refused": "refused",
    "expected": "differ as expected",
    "written": "written",
}


class Ending(Struct):
    """What is printed at the end."""

    counts: Counter[str]
    coverage: Coverage | None = None  # None: nothing was compared with a golden
    written: list[str] = field(default_factory=list)
    pending_count: int = 0
    earlier_count: int = 0  # of these, left by an earlier run
    unused: list[str] = field(default_factory=list)
    unused_word: str = "unused"
    can_prune: bool = True  # whether `ciwrap prune` will know of what is unused
    moved: list[str] = field(default_factory=list)
    unused_mode: str = ""
    timings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cut_short: list[str] = field(default_factory=list)  # tests; pytest itself prints these
    not_run: list[str] = field(default_factory=list)  # tests, after an interrupt or with -x
    files: list[tuple[str, str]] = field(default_factory=list)

    def tell(self, reporter: pytest.TerminalReporter) -> None:
        parts = [f"{self.counts[key]} {words}" for key, words in _WORDS.items() if self.counts[key]]
        if self.unused:
            parts.append(f"{len(self.unused)} {self.unused_word}")
        if self.timings:
            parts.append(f"{len(self.timings)} timed")
        if not (parts or self.problems or self.files):
            return
        reporter.section("ciwrap", sep="=")
        bad = bool(self.problems) or any(self.counts[key] for key in FAILED)
        color = {"red": True} if bad else {"yellow": True} if self.unused else {"green": True}
        head = f"ciwrap: {', '.join(parts) or 'no checks'}"
        if self.coverage is not None and self.coverage.left_out:
            head += f"; {left_out_words(self.coverage, 'pytest')}"
        reporter.write_line(head, **color)
        if self.coverage is not None:
            reporter.write_line(f"  {self.coverage.text}")
        for line in self.timings[:_MOST_NAMES]:
            reporter.write_line(f"  time: {safe_text(line)}")
        if len(self.timings) > _MOST_NAMES:
            more = plural(len(self.timings) - _MOST_NAMES, "more timing")
            reporter.write_line(f"  ... and {more} (--ciwrap-json has them all)")
        for line in self.written:  # all of them: nothing is written unnamed
            reporter.write_line(f"  {line}")
        for one in self.unused[:_MOST_NAMES]:
            reporter.write_line(f"  {self.unused_word}: {safe_text(one)}")
        if len(self.unused) > _MOST_NAMES:
            reporter.write_line(f"  ... and {len(self.unused) - _MOST_NAMES} more")
        for one in self.moved[:_MOST_NAMES]:
            reporter.write_line(f"  {safe_text(one)}", yellow=True)
        if len(self.moved) > _MOST_NAMES:
            reporter.write_line(f"  ... and {len(self.moved) - _MOST_NAMES} more of these")
        if self.unused and self.unused_word == "unused":
            if self.can_prune:
                reporter.write_line("  to delete what no test uses: ciwrap prune")
            if self.unused_mode == "warn":
                reporter.write_line("  to let them fail the run: ciwrap_unused = fail")
        if self.pending_count:
            verb = "waits" if self.pending_count == 1 else "wait"
            earlier = f", {self.earlier_count} of an earlier run" if self.earlier_count else ""
            count = plural(self.pending_count, "golden")
            reporter.write_line(f"  {count} {verb} for review{earlier}: ciwrap review")
        for warning in self.warnings[:_MOST_NAMES]:
            reporter.write_line(f"  warning: {safe_text(warning)}", yellow=True)
        if len(self.warnings) > _MOST_NAMES:
            reporter.write_line(f"  ... and {len(self.warnings) - _MOST_NAMES} more warnings")
        for what, path in self.files:
            reporter.write_line(f"  {what}: {safe_text(path)}")
        for problem in self.problems:
            reporter.write_line(f"  error: {safe_text(problem)}", red=True)


def finish(session: pytest.Session, results: Results, collected: Collected) -> Ending | None:
    """Judges unused goldens, brings the index of pending ones up to date, writes the results."""
    config = session.config
    records = list(results.records())
    ending = Ending(Counter(record["outcome"] for record in records), _coverage(records))
    ending.timings = results.timings()
    ending.problems += [*results.untold(), *config.stash[LATE]]
    ending.cut_short = results.cut_short()
    ending.not_run = results.not_run(collected.users)
    try:
        project = find_project(config)
        _note_written(ending, records, project)
        if ending.written:
            said = add_git_files(project.golden_dir)
            ending.written += [f"written for git: {safe_text(path)}" for path in said]
        _see_to_leftovers(ending, project, config.option.ciwrap_update)
        pending = project.pending.write_index(project.golden_dir_text)
        ending.pending_count = len(pending) if records else 0
        left = {Place(*one["place"]).for_variant(None) for one in records if one["pending"]}
        ending.earlier_count = sum(one.place.for_variant(None) not in left for one in pending)
        _judge_unused(session, project, results, collected, ending)
    except CiwrapError as error:
        if str(error) not in ending.problems:  # it may have been met when writing ended
            ending.problems.append(str(error))
        project = None
    _write_results(config, project, records, ending)
    if results.has_told_of_failures and _is_to_pass(session):
        ending.warnings.append("checks failed, so the session does not end with 0 as it would have")
        _fail(session)
    if ending.problems:
        _fail(session)
    return ending


def _coverage(records: list[dict[str, Any]]) -> Coverage | None:
    """Of all checks that have a verdict; one that has only been written matches itself."""
    judged = [
        Coverage(**record["coverage"])
        for record in records
        if record["outcome"] not in (EXPECTED, NEW, WRITTEN)
    ]
    return sum(judged, Coverage()) if judged else None


def _is_to_pass(session: pytest.Session) -> bool:
    return session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def _fail(session: pytest.Session) -> None:
    if _is_to_pass(session):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _see_to_leftovers(ending: Ending, project: TestedProject, mode: str) -> None:
    """Puts in place what workers left that died, and what an earlier run left; or tells of it."""
    for _, store in shared_stores(project.golden_dir):
        if store.leftover is None:
            continue
        if mode != "none":
            store.put_in_place()
            continue
        ending.warnings.append(
            f"{project.shown(store.leftover)} holds goldens of a run that was killed; they count"
            " here, and are not in the file that is committed: `ciwrap accept --pending` or the"
            " next --ciwrap-update puts them there"
        )


def _note_written(ending: Ending, records: list[dict[str, Any]], project: TestedProject) -> None:
    for record in records:
        if record["written"]:
            where = project.where(Place(*record["place"]))
            ending.written.append(f"{record['written']}: {safe_text(where)}")
        ending.warnings += [
            f"{record['check']}: {message['text']}"
            for message in record["result"]["messages"]
            if message["level"] == MessageLevel.WARNING.value
        ]


def _judge_unused(
    session: pytest.Session,
    project: TestedProject,
    results: Results,
    collected: Collected,
    ending: Ending,
) -> None:
    mode = unused_mode(session.config)
    if mode == "ignore" or session.config.option.collectonly or not collected.is_known:
        return
    ending.unused_mode = mode
    unused = find_unused(project, results, collected, session.config)
    ending.unused = [project.where(place) for place in unused]
    ending.moved = [
        f"{check} has the same numbers as the unused {project.where(place)}: moved?"
        for check, place in moved_goldens(project, unused, results)
    ]
    if mode == "fail" and unused:
        _fail(session)
    unsure = _why_unsure(project, collected) if unused else None
    if unsure is not None:
        what = "deleted" if mode == "delete" else "noted for `ciwrap prune`"
        ending.can_prune = False
        ending.warnings.append(
            f"{unsure}: nobody knows which goldens the tests use that are there now, so none is"
            f" {what}"
        )
        unused = []
    elif mode == "delete":
        delete_goldens(project.golden_dir, unused_goldens(project, unused))
        ending.unused_word = "unused and deleted"
        unused = []
    try:
        note_unused(project, unused, results)
    except WriteFailedError as error:
        if list_path(project.root).exists():
            raise  # what it says of goldens is no longer so
        ending.can_prune = False
        ending.warnings.append(f"what is unused is not noted for `ciwrap prune`: {error}")


def _why_unsure(project: TestedProject, collected: Collected) -> str | None:
    """Why the tests that ran are not all there are; None if they are."""
    touched = touched_since(project, collected.began_ns)
    if touched is not None:
        return f"{touched} has changed while the tests ran"
    lacking = lacking_files(project)
    return f"the sparse checkout leaves out {plural(len(lacking), 'file')}" if lacking else None


def _write_results(
    config: pytest.Config,
    project: TestedProject | None,
    records: list[dict[str, Any]],
    ending: Ending,
) -> None:
    json_path, report_path = config.option.ciwrap_json, config.option.ciwrap_report
    if not (json_path or report_path):
        return
    run = _run_result(project, records, ending)
    if json_path:
        _write(ending, "JSON", json_path, lambda: write_document(to_document(run), json_path))
    if report_path:
        _write(ending, "report", report_path, lambda: write_report(Path(report_path), run))


def _write(ending: Ending, what: str, path: str, write: Callable[[], None]) -> None:
    """Writes one file; the other one is written, or reported, whatever becomes of it."""
    try:
        write()
    except CiwrapError as error:
        ending.problems.append(str(error))
    else:
        ending.files.append((what, path))


def _verdict(of_checks: Verdict, ending: Ending) -> Verdict:
    is_part = ending.cut_short or ending.not_run
    lost = ending.problems or (is_part and of_checks.is_good)
    return Verdict.NOT_COMPARABLE if lost else of_checks


def _not_run_words(tests: list[str]) -> Iterator[str]:
    for test in tests[:_MOST_NAMES]:
        yield f"{test} was not run to its end, and what it checks is not compared"
    if len(tests) > _MOST_NAMES:
        yield f"... and {plural(len(tests) - _MOST_NAMES, 'more test')}"


def _run_result(
    project: TestedProject | None, records: list[dict[str, Any]], ending: Ending
) -> RunResult:
    """All checks as one result; without any it is not comparable."""
    messages = [Message(MessageLevel.ERROR, text) for text in ending.problems]
    messages += [
        Message(MessageLevel.ERROR, f"{test} failed, and what it did not reach is not compared")
        for test in ending.cut_short
    ]
    messages += [Message(MessageLevel.ERROR, text) for text in _not_run_words(ending.not_run)]
    expected = [record for record in records if record["outcome"] == EXPECTED]
    if expected:
        records = [record for record in records if record["outcome"] != EXPECTED]
        text = f"{plural(len(expected), 'check')} left out: found to differ, as the test expects"
        messages.append(Message(MessageLevel.NOTE, text))
    if not records:
        messages.append(Message(MessageLevel.ERROR, "no test made a check"))
    messages += [
        Message(MessageLevel.WARNING, f"no test uses the golden {path}", file=path)
        for path in ending.unused
    ]
    messages += [Message(MessageLevel.NOTE, text) for text in ending.moved]
    messages += [Message(MessageLevel.NOTE, f"time: {text}") for text in ending.timings]
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "pytest",
        "verdict": Verdict.worst(Verdict(record["result"]["verdict"]) for record in records).value,
        "checks": [record["result"] for record in records],
    }
    run = from_document(document)
    return replace(
        run,
        verdict=_verdict(run.verdict, ending),
        messages=tuple(messages),
        environment={} if project is None else environment_of_process(project.root),
        ciwrap_version=__version__,
        started_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=sum(check.seconds for check in run.checks),
    )
