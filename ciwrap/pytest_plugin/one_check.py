"""One check of a test: find its golden, compare, and keep, propose or write a golden.

Read first `Checker`. What it found are plain values that can be sent to another process.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from ciwrap.base.errors import (
    CiwrapError,
    ConfigMissingError,
    ExitCode,
    GoldenMissingError,
    GoldenToMendError,
    NotComparableError,
    UsageError,
)
from ciwrap.base.files import PENDING_DIR
from ciwrap.check.check import check_catalog
from ciwrap.check.two_sides import Work, failed_check, message_of
from ciwrap.explain.across import explainer
from ciwrap.golden.places import Place, TestPlace
from ciwrap.golden.store import GoldenStores
from ciwrap.golden.trees import Resources
from ciwrap.model import CheckResult, Message, MessageLevel, RunResult, Verdict
from ciwrap.project.config import find_config, load_config
from ciwrap.project.settings import DEFAULT_GOLDEN_DIR, Check
from ciwrap.pytest_plugin.collect import test_name
from ciwrap.pytest_plugin.unmet import ForkedChecks, in_forked
from ciwrap.report.document import document_text, plain, to_document
from ciwrap.report.failure import command_line, failure_lines
from ciwrap.report.text import plural, safe_name, safe_text
from ciwrap.report.words import used_share, used_words
from ciwrap.review.change import Origin, change_of_catalog, origin_here, write_change
from ciwrap.review.pending import keep
from ciwrap.review.project import Project, root_without_config
from ciwrap.snapshot.difference import carry_snapshot, environment_of_process
from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    import pytest

    from ciwrap.formats.catalog import Catalog
    from ciwrap.golden.store import GoldenStore


# Threads do not pay for the small arrays of most tests, and starting them for each does cost.
_SMALL_BYTES = 4 << 20
_SERIAL = Resources(backend="serial", threads=1)
_ALL = Resources()

MATCHED, DIFFER, NOT_COMPARABLE = "matched", "differ", "not_comparable"
NEW, WRITTEN, EXPECTED = "new", "written", "expected"


class TestOutcome(Struct, frozen=True):
    """What became of one check.

    word: matched, differ, not_comparable, new (there is no golden), written (one has been), or
    expected (it differs, as the test says). place: of the golden looked at, or written. pending:
    whether one waits for review now. problem: why none does, if none could be made.
    """

    __test__ = False  # pytest takes classes called Test... for tests

    word: str
    result: CheckResult
    place: Place
    golden_path: Path
    written: str | None = None
    pending: bool = False
    problem: str | None = None

    @property
    def has_failed(self) -> bool:
        return self.word not in (MATCHED, WRITTEN)  # also if that is expected: it ends the block


class Checker:
    """Makes the checks of one process. mode, reason: as --ciwrap-update, --ciwrap-reason.

    shared_ids: those that several tests of the session have, so that a golden would have two.
    """

    def __init__(self, project: TestedProject, mode: str, reason: str | None) -> None:
        self.project = project
        self._mode = mode
        self._reason = reason
        self.forked = ForkedChecks()
        self.test_count = 0
        self.shared_ids: set[str] = set()

    def close(self) -> None:
        """Ends the session's writing. Raises UsageError for a check that a forked process was to
        make, and that no test heard of.
        """
        with contextlib.ExitStack() as ends:
            ends.callback(self.project.pending.close)
            ends.callback(self.project.goldens.close)
        if self.forked.take():
            raise in_forked("a test that had ended")

    @cached_property
    def origin(self) -> Origin:
        """Found out once: git is slow in large repositories."""
        golden_dir = None if self._mode == "none" else self.project.golden_dir
        return origin_here(self.project.root, environment_of_process(self.project.root, golden_dir))

    def _carry_snapshot(self) -> None:
        """Keeps the snapshot of this process beside pending goldens, too."""
        pending, root = self.project.pending, self.project.root
        taken = [SnapshotStore.of_project(root), SnapshotStore.of_goldens(self.project.golden_dir)]
        carry_snapshot(self.origin.environment, taken, pending.snapshots)

    def check(self, test: TestPlace, check: Check, catalog: Catalog, test_id: str) -> TestOutcome:
        """Compares, and writes what the mode asks for. Raises UsageError."""
        found = self.compare(test, check, catalog, test_id)
        resources = resources_for(catalog)
        own = self.project.own_variant
        target = found.place if own is None else found.place.for_variant(own)
        is_failed = found.word not in (NEW, MATCHED)
        is_written = self._mode == "all" or (self._mode == "failed" and is_failed)
        if is_written or (self._mode != "none" and found.word == NEW):
            written = self._write(check, target, catalog, resources, found)
            # Another process may have made it since we looked: then it is new no more.
            return written or self.check(test, check, catalog, test_id)
        if found.word == MATCHED:
            self.project.pending.discard(target)
            return found
        try:
            store = self.project.goldens.at(target)
            change = change_of_catalog(
                replace(check, name=target.name),
                store,
                catalog,
                with_details=False,
                resources=resources,
            )
            if found.word == NEW:  # only now it is known where that will lie
                none = _none_yet(check, self.project.shown(change.path))
                result = replace(found.result, messages=none.messages, golden_path=none.golden_path)
                found = replace(found, result=result, golden_path=change.path)
            document = to_document(RunResult(found.result.verdict, (found.result,), kind="pytest"))
            self._carry_snapshot()
            keep(change, target, self.project.pending, self.origin, document_text(document))
        except CiwrapError as error:
            if isinstance(error, GoldenToMendError) and target == found.place:
                return found  # the result has reported it
            return replace(found, problem=str(error))
        return replace(found, pending=True)

    def compare(self, test: TestPlace, check: Check, catalog: Catalog, test_id: str) -> TestOutcome:
        """Compares, and leaves everything as it is. Raises UsageError."""
        place = self._place(test.place)
        store = self.project.goldens.at(place)
        result, path = self._compare(check, place, store, catalog, resources_for(catalog))
        result = replace(result, test_id=test_id, variant=place.variant)
        if path is None:
            return TestOutcome(NEW, result, place, store.path(place.name))
        return TestOutcome(_word(result), result, place, path)

    def _place(self, place: Place) -> Place:
        """Where the golden lies; if there is none, where a new one belongs."""
        for one in self.project.candidates(place):
            if self.project.goldens.at(one).contains(one.name):
                return one
        return place.for_variant(self.project.own_variant)

    def _compare(
        self,
        check: Check,
        place: Place,
        store: GoldenStore,
        catalog: Catalog,
        resources: Resources,
    ) -> tuple[CheckResult, Path | None]:
        """The result, and where the golden lies; None if there is none."""
        try:
            golden = store.read(place.name)
            if golden.was_interrupted and self._mode != "none":
                with store.locked():
                    store.settle(place.name)
                golden = store.read(place.name)
            result = check_catalog(check, golden, catalog, Work(resources, explain=explainer))
        except CiwrapError as error:
            if error.exit_code is ExitCode.USAGE:
                raise
            path = store.path(place.name)
            shown = self.project.shown(path)
            if not store.contains(place.name):
                return _none_yet(check, shown), None
            return failed_check(check.name, error, shown), path
        return replace(result, golden_path=self.project.shown(golden.path)), golden.path

    def _write(
        self,
        check: Check,
        place: Place,
        catalog: Catalog,
        resources: Resources,
        found: TestOutcome,
    ) -> TestOutcome | None:
        """Writes the golden, then compares with it as every later run does: there are values that
        do not match themselves. None if there was none, and is one now: nothing is written.
        """
        store = self.project.goldens.at(place)
        stored_as = replace(check, name=place.name)
        before = found.result
        with store.locked():
            if found.word == NEW and store.contains(place.name):
                return None
            change = change_of_catalog(
                stored_as, store, catalog, force=True, with_details=False, resources=resources
            )
            if change.needs_writing:
                write_change(change, store, self._reason, self.origin)
        self.project.pending.discard(place)
        result, _ = self._compare(check, place, store, catalog, resources)
        result = replace(result, test_id=before.test_id, variant=place.variant)
        if not change.needs_writing:
            return TestOutcome(_word(result), result, place, change.path)
        note = Message(
            MessageLevel.NOTE,
            f"golden {change.status}: {self.project.where(place)} (it was: {before.verdict.words})",
            file=self.project.shown(change.path),
        )
        result = replace(result, messages=(*result.messages, note))
        word = WRITTEN if result.verdict is Verdict.MATCH else _word(result)
        return TestOutcome(word, result, place, change.path, written=str(change.status))


def _none_yet(check: Check, path: str) -> CheckResult:
    missing = GoldenMissingError("there is no golden yet", file=path)
    return failed_check(check.name, missing, path)


def _word(result: CheckResult) -> str:
    return {
        Verdict.MATCH: MATCHED,
        Verdict.UNDECIDED: DIFFER,
        Verdict.DIFFER: DIFFER,
        Verdict.NOT_COMPARABLE: NOT_COMPARABLE,
    }[result.verdict]


def resources_for(catalog: Catalog) -> Resources:
    """Few resources for small arrays."""
    total = sum(entry.info.byte_count for entry in catalog.entries.values())
    return _SERIAL if total <= _SMALL_BYTES else _ALL


class TestedProject(Project, frozen=True, kw_only=True):
    """A project as its tests see it.

    root: without a ciwrap.yaml, pytest's; without a configuration of pytest, the repository's,
    since pytest's would follow the current folder. variants: whose goldens are looked for before
    the common ones; own_variant: what this machine was called by --ciwrap-variant.
    """

    __test__ = False  # pytest takes classes called Test... for tests

    variants: tuple[str, ...] = ()
    own_variant: str | None = None

    def module_of(self, path: Path) -> str:
        """A test file's path in the project, with '/'. Raises UsageError for one outside it."""
        try:
            if path.is_relative_to(self.root):
                return path.relative_to(self.root).as_posix()
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise UsageError(
                f"the test lies outside the project, {self.root}",
                file=path,
                remedy="put a ciwrap.yaml, or pytest's configuration, above all tests",
            ) from None

    def test_place(self, item: pytest.Item, name: str | None) -> TestPlace:
        test, param = test_name(item)
        return TestPlace(self.module_of(item.path), test, param, name)

    def shown(self, path: Path) -> str:
        """A path as people read it: relative to the project if it lies in it."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    def where(self, place: Place) -> str:
        """Where a golden lies, as people read it; with its name, if it shares a file."""
        return self.shown(Path(self.goldens.at(place).shown(place.name)))

    def candidates(self, place: Place) -> list[Place]:
        """Where a golden may lie, the best place first."""
        return [place.for_variant(variant) for variant in (*self.variants, None)]


def find_project(config: pytest.Config) -> TestedProject:
    """Raises ConfigError for a ciwrap.yaml that cannot be used, UsageError."""
    try:
        own = load_config(find_config(config.rootpath))
    except ConfigMissingError:
        own = None
    root = config.rootpath if own is None else own.root
    is_fixed = config.inipath is not None or (root / "setup.py").exists()
    if own is None and not is_fixed:
        root = root_without_config(root)
    named = config.getini("ciwrap_golden_dir")
    if named:
        golden_dir = Path(config.inipath.parent if config.inipath else config.rootpath, named)
    else:
        golden_dir = root / DEFAULT_GOLDEN_DIR if own is None else own.golden_dir
    golden_dir = Path(os.path.normpath(golden_dir))
    own_variant = config.option.ciwrap_variant or None
    chain = [own_variant] if own_variant else []
    chain += [_fill(text) for text in config.getini("ciwrap_variants")]
    project = TestedProject(
        root=root,
        golden_dir=golden_dir,
        goldens=GoldenStores(golden_dir, is_kept=True),
        pending_dir=root / PENDING_DIR,
        keeps_pending=True,
        config=own,
        variants=tuple(dict.fromkeys(chain)),
        own_variant=own_variant,
    )
    _ = project.golden_dir_text
    _ = project.pending  # one for all threads that tests may start
    return project


def _fill(text: str) -> str:
    facts = {
        "system": platform.system().lower(),
        "machine": platform.machine().lower(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
    }
    try:
        return text.format(**facts)
    except (KeyError, ValueError, IndexError, AttributeError):
        raise UsageError(
            f"ciwrap_variants: {text!r} has an unknown field",
            remedy="the fields are {system}, {machine} and {python}",
        ) from None


def failure_text(title: str, outcome: TestOutcome, project: TestedProject) -> str:
    """The message of a check that failed, of at most 20 lines."""
    result = outcome.result
    variant = f" (for {safe_text(result.variant)})" if result.variant else ""
    tail = []
    if outcome.word != NEW:
        tail.append(f"  golden: {safe_text(result.golden_path)}{variant}")
    if outcome.pending:
        place = outcome.place
        waiting = project.pending.store(place).path(place.name)
        tail.append(f"  the new numbers wait in {safe_text(project.shown(waiting))}")
        accept = command_line("ciwrap accept", result.name)
        reason = "" if outcome.word == NEW else " --reason '...'"
        tail.append(f"  if they are right: {accept}{reason}  (to look closer: ciwrap review)")
    elif outcome.problem is not None:
        tail.append(f"  no golden can be made from this: {safe_text(outcome.problem)}")
    if outcome.word == NEW:
        # Where it will lie depends on its size, which nobody knows if none can be made.
        where = f" ({safe_text(result.golden_path)})" if outcome.pending else ""
        first = f"{safe_name(title)}: there is no golden yet{where}"
        return "\n".join([first, *tail])
    return "\n".join(failure_lines(title, result, tail))


def property_of(check: str, word: str, result: CheckResult) -> tuple[str, str]:
    """A property of the test in JUnit's file: how each of its checks ended."""
    said = word.replace("_", " ")
    if result.variables:
        shares = [share for one in result.variables if (share := used_share(one)) is not None]
        said += (
            f", {plural(len(result.variables), 'variable')}{used_words(max(shares, default=None))}"
        )
    if not result.coverage.is_whole:
        said += f"; {result.coverage.text}"
    if result.variant:
        said += f", golden for {result.variant}"
    return f"ciwrap {safe_text(check)}", safe_text(said)


class Records:
    """Keeps a record for each check of a test. Safe for threads."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._lock = threading.Lock()
        self._records: list[dict[str, Any]] = []
        self._timings: list[str] = []

    def add_timing(self, name: str | None, lines: Sequence[str]) -> None:
        """What `time()` found, in words, the verdict first."""
        test = self._item.nodeid + (f"::{name}" if name else "")
        with self._lock:
            self._timings.append(f"{test}: {'; '.join(lines)}")
        self._item.user_properties.append((f"ciwrap time {test}", lines[0]))

    def take_timings(self) -> list[str]:
        """What was timed since the last call, a line for each."""
        with self._lock:
            taken, self._timings = self._timings, []
        return taken

    def add_outcome(self, outcome: TestOutcome, check: str) -> None:
        self._add(
            check,
            outcome.word,
            outcome.result,
            place=[outcome.place.folder, outcome.place.name],
            written=outcome.written,
            pending=outcome.pending,
        )
        self._note_property(check, outcome.word, outcome.result)

    def add_repeat(self, result: CheckResult) -> None:
        """Of all runs, one record is kept for each check: the last one, or one that failed."""
        word = "repeated" if result.verdict.exit_code == 0 else "not_repeated"
        with self._lock:
            known = [one for one in self._records if one["check"] == result.name]
            if any(one["outcome"] == "not_repeated" for one in known):
                return
            self._records = [one for one in self._records if one["check"] != result.name]
        self._add(result.name, word, result)

    def add_refused(self, name: object, error: BaseException) -> None:
        """A check that ended before it had compared anything."""
        if not isinstance(error, CiwrapError):
            error = NotComparableError(f"{type(error).__name__}: {error}")
        check = self._item.nodeid + (f"::{name}" if isinstance(name, str) else "")
        # A mistake ends its test, as it ends a command; the session's result says that nothing of
        # it was compared.
        messages = (message_of(error),)
        result = CheckResult(check, Verdict.NOT_COMPARABLE, messages=messages)
        self._add(check, "refused", result)
        self._note_property(check, "refused", result)

    def take(self, *, are_repeated: bool) -> list[dict[str, Any]]:
        """What was added since the last call."""
        with self._lock:
            taken, self._records = self._records, []
        if are_repeated:
            for record in taken:
                if record["outcome"] != "refused":
                    name = f"ciwrap {record['check']}"
                    self._item.user_properties.append((name, record["outcome"]))
        return taken

    def _add(
        self,
        check: str,
        word: str,
        result: CheckResult,
        *,
        place: list[str] | None = None,
        written: str | None = None,
        pending: bool = False,
    ) -> None:
        record = {
            "test": self._item.nodeid,
            "check": check,
            "module": str(self._item.path),
            "place": place,
            "outcome": word,
            "written": written,
            "pending": pending,
            "result": plain(result),
            "coverage": asdict(result.coverage),
        }
        with self._lock:
            self._records.append(record)

    def _note_property(self, check: str, word: str, result: CheckResult) -> None:
        self._item.user_properties.append(property_of(check, word, result))
