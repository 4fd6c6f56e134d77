"""Looking at a pending golden, and accepting it: what was shown is what is done."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING

from ciwrap.arrays.values import ArrayValues
from ciwrap.compare.explaining import explainer
from ciwrap.compare.judge import check_golden
from ciwrap.compare.work import Work
from ciwrap.documents import DocumentError
from ciwrap.errors import PendingConflictError, UsageError
from ciwrap.readers.base import as_elements
from ciwrap.report.document import from_document
from ciwrap.repository import git_user
from ciwrap.review.golden_change import GoldenChange, OldGolden, Status
from ciwrap.review.stale import Checkout, checkout_of, why_stale
from ciwrap.review.write_change import Origin, write_change
from ciwrap.snapshot.runs import carry_snapshot
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap import _core
    from ciwrap.golden.manifest import PendingOrigin
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.places import Place
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, VariableId, VariableResult
    from ciwrap.review.golden_change import Moved
    from ciwrap.review.pending_files import PendingGolden
    from ciwrap.review.project import Project


class PendingChange(Struct, frozen=True):
    """A pending golden as it was looked at, and what accepting it changes.

    pending: as it waits. stored: its binary and its manifest, verified. place: where it goes, which
    is another one than where it waits if it is accepted for one kind of machine. base: what it has
    to be made against.
    """

    pending: PendingGolden
    stored: StoredGolden
    place: Place
    base: PendingOrigin
    change: GoldenChange


def look_at(project: Project, golden: PendingGolden, variant: str | None = None) -> PendingChange:
    """Reads and verifies a pending golden, and finds out what accepting it changes.

    variant: the kind of machine it is to be a golden for, if not what it was made as. Raises
    CorruptGoldenError and the like; PendingConflictError if it was made against another golden than
    the one that lies there; UsageError for a variant of a check that has none.
    """
    place = golden.place
    stored = project.pending.store(place).read(place.name)
    change = _change(
        stored,
        project.goldens.at(place),
        place,
        lambda: recorded_result(project, golden),
    )
    looked = PendingChange(golden, stored, place, golden.origin, change)
    _refuse_stale(looked, change)
    return looked if variant is None else _for_variant(project, looked, variant)


def look_at_all(
    project: Project, goldens: Sequence[PendingGolden], variant: str | None = None
) -> list[PendingChange]:
    """As `look_at`; also says which of them may be of other code than what lies here."""
    looked = [look_at(project, golden, variant) for golden in goldens]
    if not looked or not project.is_own:
        return looked  # the commit of somebody else's run is held against what is here
    here = checkout_of(project)
    return [told_if_stale(one, here) for one in looked]


def as_it_counts(project: Project, looked: PendingChange) -> PendingChange:
    """The change against what counts there now: for one kind of machine, where there is no golden
    for it yet, that is the common one.
    """
    old, common = looked.change.old, looked.place.for_variant(None)
    if common == looked.place or old.golden is not None or old.problem is not None:
        return looked
    change = _change(looked.stored, project.goldens.at(common), common)
    return replace(looked, change=change)


def told_if_stale(looked: PendingChange, here: Checkout) -> PendingChange:
    change = replace(looked.change, stale=why_stale(looked.pending.origin, here))
    return replace(looked, change=change)


def accept(
    project: Project, looked: PendingChange, reason: str | None, who: str | None = None
) -> None:
    """Makes a pending golden the golden of its check; it then waits no longer.

    who: accepts; None lets git be asked, which takes longer than all else. Under the locks of both
    folders all is looked at again. Raises PendingConflictError if another process has replaced the
    golden, or what waits; WriteFailedError, LockBusyError.
    """
    store = project.goldens.at(looked.place)
    waiting = project.pending.store(looked.pending.place)
    origin = Origin(
        looked.pending.origin.commit,
        looked.stored.manifest.environment,
        git_user(project.root) if who is None else who,
    )
    with store.locked(), waiting.locked() if project.is_own else contextlib.nullcontext():
        still_waits = project.pending.still_waits(looked.pending)
        # How far values moved has been found out; what lies there has not changed since, or else.
        current = _change(looked.stored, store, looked.place)
        if current.needs_writing:
            if not still_waits:
                raise _conflict(looked, "another one waits by now, or none", "look at it again")
            _refuse_stale(looked, current)
            snapshots = SnapshotStore.of_goldens(project.golden_dir)
            carry_snapshot(origin.environment, [project.pending.snapshots], snapshots)
            write_change(replace(looked.change, old=current.old), store, reason, origin)
        if still_waits and project.is_own:
            project.pending.remove(looked.pending.place)


def _not_asked(*_: object) -> None:
    """Of a change that is not shown."""


def _moved_from(old: OldGolden, recorded: Callable[[], CheckResult | None]) -> Moved:
    """How far the values of a pending golden lie from those of the old one.

    recorded: gives what the run that made it found, which tells where the pending golden does not
    hold its values; it is asked for at most once.
    """

    @cache
    def by_id() -> dict[VariableId, VariableResult]:
        # A result is of this golden only if it was made against this very one: a tree's root,
        # which each variable has, does not tell goldens apart whose residues are others.
        found = recorded()
        is_of_old = found is not None and found.golden_root == old.root
        return {one.id: one for one in found.variables} if found and is_of_old else {}

    def moved(
        identity: VariableId, before: _core.GoldenVariable, after: _core.GoldenVariable
    ) -> VariableResult | None:
        if after.data is None:
            return by_id().get(identity)
        dtype = after.tree.parameters.dtype
        elements = as_elements(after.data, dtype).reshape(tuple(after.shape))
        return check_golden(
            before, ArrayValues(elements, dtype), None, work=Work(explain=explainer)
        )

    return moved


def _change(
    stored: StoredGolden,
    store: GoldenStore,
    place: Place,
    recorded: Callable[[], CheckResult | None] | None = None,
) -> GoldenChange:
    """What accepting a pending golden changes now.

    store: of the goldens, where it goes. recorded: what the run found; without it nobody asks how
    far values moved. Raises UnsupportedFormatError if the golden there is of a newer version.
    """
    old = OldGolden.of(stored.check, store)
    change = GoldenChange(
        check=place.check,
        name=stored.check,
        path=store.path_for(stored.check, stored.variables),
        variables=stored.variables,
        root=stored.root,
        byte_count=stored.byte_count,
        old=old,
        labels=stored.manifest.labels or {},
        ignored=stored.manifest.ignored,
    )
    return change.compared(_not_asked if recorded is None else _moved_from(old, recorded))


def _refuse_stale(looked: PendingChange, change: GoldenChange) -> None:
    if change.status is Status.SAME:
        return
    base, old = looked.base, change.old
    is_repair = base.kind == "changed" and base.base_root is None
    # Of a shared file what was damaged is gone as soon as one of its goldens has been accepted.
    fits = old.golden is None if is_repair else base.base_root == old.root and old.problem is None
    if not fits:
        raise _conflict(
            looked,
            "the golden there has changed since this one was made",
            "run the check again",
        )


def _conflict(looked: PendingChange, message: str, remedy: str) -> PendingConflictError:
    return PendingConflictError(
        message, file=looked.change.path, variable=looked.pending.check, remedy=remedy
    )


def _for_variant(project: Project, looked: PendingChange, variant: str) -> PendingChange:
    """The same numbers as the golden of one kind of machine, instead of whatever is there."""
    place = looked.place.for_variant(variant)
    if not place.folder.rpartition("/")[0]:
        raise UsageError(
            f"{looked.pending.check!r} is not a check of a test; only those have goldens for one"
            " kind of machine"
        )
    store = project.goldens.at(place)
    change = _change(looked.stored, store, place, lambda: None)
    is_there = change.old.golden is not None or change.old.problem is not None
    base = replace(looked.base, base_root=change.old.root, kind="changed" if is_there else "new")
    return replace(looked, place=place, base=base, change=change)


def recorded_result(project: Project, golden: PendingGolden) -> CheckResult | None:
    """What the run found; None if its document is not there or is none."""
    try:
        run = from_document(project.pending.read_result(golden.place))
    except DocumentError:
        return None
    return run.checks[0] if len(run.checks) == 1 else None
