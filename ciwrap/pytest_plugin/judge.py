"""One check of a test: find its golden, compare, and keep, propose or write a golden."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING

from ciwrap.compare.check import check_catalog
from ciwrap.compare.explaining import explainer
from ciwrap.compare.law import failed_check
from ciwrap.compare.work import Work
from ciwrap.errors import CiwrapError, ExitCode, GoldenMissingError, GoldenToMendError
from ciwrap.model import CheckResult, Message, MessageLevel, RunResult, Verdict
from ciwrap.pytest_plugin.unmet import ForkedChecks, in_forked
from ciwrap.report.document import document_text, to_document
from ciwrap.review.capture_change import change_of_catalog
from ciwrap.review.keep_pending import keep
from ciwrap.review.write_change import Origin, origin_here, write_change
from ciwrap.snapshot.runs import carry_snapshot, environment_of_process
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.structs import Struct, replace
from ciwrap.trees.build import Resources

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.golden.places import Place, TestPlace
    from ciwrap.golden.store import GoldenStore
    from ciwrap.pytest_plugin.tested_project import TestedProject

# Threads do not pay for the small arrays of most tests, and starting them for each does cost.
_SMALL_BYTES = 4 << 20
_SERIAL = Resources(backend="serial", threads=1)
_ALL = Resources()

MATCHED, DIFFER, NOT_COMPARABLE, NEW, WRITTEN, EXPECTED = (
    "matched",
    "differ",
    "not_comparable",
    "new",
    "written",
    "expected",
)


class Outcome(Struct, frozen=True):
    """What became of one check.

    word: matched, differ, not_comparable, new (there is no golden), written (one has been), or
    expected (it differs, as the test says).
    place: of the golden looked at, or written. pending: whether one waits for review now.
    problem: why none does, if none could be made.
    """

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


class Judge:
    """Judges the checks of one process. mode, reason: as --ciwrap-update, --ciwrap-reason.

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
        make, and that no test was told of.
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

    def judge(self, test: TestPlace, check: Check, catalog: Catalog, test_id: str) -> Outcome:
        """Compares, and writes what the mode asks for. Raises UsageError."""
        found = self.compare(test, check, catalog, test_id)
        resources = resources_for(catalog)
        own = self.project.own_variant
        target = found.place if own is None else found.place.for_variant(own)
        if _is_to_be_written(self._mode, found.word):
            written = self._write(check, target, catalog, resources, found)
            # Another process may have made it since we looked: then it is new no more.
            return written or self.judge(test, check, catalog, test_id)
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
            if found.word == NEW:
                found = self._new_at(found, check, change.path)
            document = to_document(RunResult(found.result.verdict, (found.result,), kind="pytest"))
            self._carry_snapshot()
            keep(change, target, self.project.pending, self.origin, document_text(document))
        except CiwrapError as error:
            if isinstance(error, GoldenToMendError) and target == found.place:
                return found  # the result has told of it
            return replace(found, problem=str(error))
        return replace(found, pending=True)

    def _new_at(self, found: Outcome, check: Check, path: Path) -> Outcome:
        """The outcome of a check without a golden, once it is known where that will lie."""
        none = _none_yet(check, self.project.shown(path))
        result = replace(found.result, messages=none.messages, golden_path=none.golden_path)
        return replace(found, result=result, golden_path=path)

    def compare(self, test: TestPlace, check: Check, catalog: Catalog, test_id: str) -> Outcome:
        """Compares, and leaves everything as it is. Raises UsageError."""
        place = self._place(test.place)
        store = self.project.goldens.at(place)
        result, path = self._compare(check, place, store, catalog, resources_for(catalog))
        result = replace(result, test_id=test_id, variant=place.variant)
        if path is None:
            return Outcome(NEW, result, place, store.path(place.name))
        return Outcome(_word(result), result, place, path)

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
        found: Outcome,
    ) -> Outcome | None:
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
            return Outcome(_word(result), result, place, change.path)
        note = Message(
            MessageLevel.NOTE,
            f"golden {change.status}: {self.project.where(place)} (it was: {before.verdict.words})",
            file=self.project.shown(change.path),
        )
        result = replace(result, messages=(*result.messages, note))
        word = WRITTEN if result.verdict is Verdict.MATCH else _word(result)
        return Outcome(word, result, place, change.path, written=str(change.status))


def _none_yet(check: Check, path: str) -> CheckResult:
    missing = GoldenMissingError("there is no golden yet", file=path)
    return failed_check(check.name, missing, path)


def _word(result: CheckResult) -> str:
    return {
        Verdict.MATCH: MATCHED,
        Verdict.SUSPECT: DIFFER,
        Verdict.DIFFER: DIFFER,
        Verdict.NOT_COMPARABLE: NOT_COMPARABLE,
    }[result.verdict]


def _is_to_be_written(mode: str, word: str) -> bool:
    if mode == "none":
        return False
    return word == NEW or mode == "all" or (mode == "failed" and word != MATCHED)


def resources_for(catalog: Catalog) -> Resources:
    """Few resources for small arrays."""
    total = sum(entry.info.byte_count for entry in catalog.entries.values())
    return _SERIAL if total <= _SMALL_BYTES else _ALL
