"""Looking at pending goldens, and accepting them, or outputs: what was shown is what is done.

All are looked at before one is written. An error between two of them says which were written.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.base.documents import DocumentError, DocumentHead
from ciwrap.base.errors import PendingConflictError, UnreadableFileError, UsageError
from ciwrap.base.files import read_regular
from ciwrap.base.progress import NO_PROGRESS, Progress
from ciwrap.base.repository import DIRTY, ask_git, git_commit, git_user
from ciwrap.check.check import needs_golden
from ciwrap.check.judge import check_golden
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer
from ciwrap.formats.reader import as_elements
from ciwrap.golden.goldens_of_tests import telling_what_is_done
from ciwrap.golden.manifest import Count, PendingOrigin, Root, VariableRow
from ciwrap.golden.places import Place, TestPlace
from ciwrap.golden.show import shared_stores
from ciwrap.golden.store import GoldenStore, StoredGolden
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import CheckResult, VariableId, VariableResult, Verdict
from ciwrap.model.variable_result import Number
from ciwrap.project.outputs import Outputs
from ciwrap.report.document import from_document
from ciwrap.review.artifact import ALLOWED_WORDS, refuse_less
from ciwrap.review.change import (
    GoldenChange,
    Moved,
    OldGolden,
    Origin,
    Status,
    VariableChange,
    bounds_change,
    capture_change,
    demand_reason,
    origin_of,
    write_change,
)
from ciwrap.review.pending import WAS_REPLACED, PendingGolden
from ciwrap.snapshot.difference import carry_snapshot
from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from ciwrap.project.settings import Check
    from ciwrap.review.project import Project

_DIGITS = 12


class Checkout(Struct, frozen=True):
    """What lies here. head: None without git. is_clean: without any changes. changed: tracked files
    with changes, but for goldens, and when each was written last, in seconds since 1970.
    """

    head: str | None
    is_clean: bool
    changed: dict[str, float]


def checkout_of(project: Project) -> Checkout:
    """Asks git about the project's folder, once for all that waits."""
    commit = git_commit(project.root)
    if commit is None:
        return Checkout(None, True, {})
    names = ask_git(project.root, "diff", "--name-only", "--relative", "-z", "HEAD", "--", ".")
    goldens = project.golden_dir_text
    changed = {}
    for name in (names or "").split("\0"):
        path = project.root / name
        if name and name != goldens and not name.startswith(f"{goldens}/"):
            changed[name] = path.stat().st_mtime if path.exists() else 0.0
    return Checkout(commit.removesuffix(DIRTY), not commit.endswith(DIRTY), changed)


def why_stale(origin: PendingOrigin, here: Checkout) -> str | None:
    """Why a golden may be of other code than what lies here; None if nothing says so."""
    if origin.commit is None or here.head is None:
        return None
    commit, was_dirty = origin.commit.removesuffix(DIRTY), origin.commit.endswith(DIRTY)
    if commit != here.head:
        return (
            f"it was made from commit {commit[:_DIGITS]}, and {here.head[:_DIGITS]} is checked out"
        )
    if was_dirty and here.is_clean:
        return "it was made with changes that are no longer here"
    made = datetime.strptime(origin.created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    # Times are of whole seconds there.
    newer = [name for name, when in here.changed.items() if when >= made.timestamp() + 1]
    if newer:
        return f"{newer[0]} has changed since it was made"
    return None


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
    store = project.goldens.at(place)
    change = _change(stored, store, place, lambda: recorded_result(project, golden))
    looked = PendingChange(golden, stored, place, golden.origin, change)
    _refuse_stale(looked, change)
    return looked if variant is None else _for_variant(project, looked, variant)


def look_at_all(
    project: Project, goldens: Sequence[PendingGolden], variant: str | None = None
) -> list[PendingChange]:
    """As `look_at`; also says which of them may be of other code than what lies here."""
    looked = [look_at(project, golden, variant) for golden in goldens]
    if not looked or not project.is_own:
        return looked  # the commit of somebody else's run is compared with what is here
    here = checkout_of(project)
    return [with_stale_reason(one, here) for one in looked]


def as_it_counts(project: Project, looked: PendingChange) -> PendingChange:
    """The change against what counts there now: for one kind of machine, where there is no golden
    for it yet, that is the common one.
    """
    old, common = looked.change.old, looked.place.for_variant(None)
    if common == looked.place or old.golden is not None or old.problem is not None:
        return looked
    change = _change(looked.stored, project.goldens.at(common), common)
    return replace(looked, change=change)


def with_stale_reason(looked: PendingChange, here: Checkout) -> PendingChange:
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
                raise _conflict(looked, WAS_REPLACED, "look at it again")
            _refuse_stale(looked, current)
            snapshots = SnapshotStore.of_goldens(project.golden_dir)
            carry_snapshot(origin.environment, [project.pending.snapshots], snapshots)
            write_change(replace(looked.change, old=current.old), store, reason, origin)
        else:  # finishes an accept that was killed
            store.settle(looked.stored.check)
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


_ACCEPTED = "accepted"


def accept_outputs(
    project: Project,
    reason: str | None,
    *,
    force: bool = False,
    bounds_only: bool = False,
    dry_run: bool = False,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> list[GoldenChange]:
    """Makes the outputs of the project's checks their goldens; what that changes, or would.

    All are captured before one is written. bounds_only: the goldens keep their values, and are made
    with the bounds that are asked for now. Raises as `capture_change`, `bounds_change` and
    `write_change` do, UsageError if one replaces a golden and there is no reason, LockBusyError.
    """
    # Without those of which the configuration itself says what all values have to be; all of them
    # if there are no others, so that capturing tells.
    checks = [one for one in project.checks if not one.expected or _has_open_values(one)]
    checks = checks or [*project.checks]
    lock = contextlib.nullcontext() if dry_run else project.store.locked()
    with lock:
        changes = [
            bounds_change(check, project.store, resources=resources)
            if bounds_only
            else capture_change(
                check, project.store, force=force, resources=resources, progress=progress
            )
            for check in checks
        ]
        if not dry_run:
            demand_reason(changes, reason)
            keeps = project.config is None or project.config.snapshot.objects
            snapshots = SnapshotStore.of_goldens(project.golden_dir) if keeps else None
            with telling_what_is_done(_ACCEPTED) as done:
                for check, change in zip(checks, changes, strict=True):
                    if change.needs_writing:
                        origin = origin_of(check, project.root, snapshots)
                        write_change(change, project.store, reason, origin)
                        done.append(check.name)
                    else:  # finishes an accept that was killed
                        project.store.settle(check.name)
    return changes


def accept_pending(
    project: Project,
    patterns: Sequence[str],
    reason: str | None,
    *,
    dry_run: bool = False,
    variant: str | None = None,
    allowed: Sequence[str] = ALLOWED_WORDS,
) -> list[GoldenChange]:
    """Accepts the pending goldens that are meant; what that changes, or would.

    All are read and verified before one is written. variant: the kind of machine they are to be
    goldens for, if not what they were made as. allowed: in which ways they may check less. Raises
    as `look_at` and `accept` do, UsageError if one replaces a golden and there is no reason,
    ArtifactError for one that checks less than it may.
    """
    if not dry_run:
        for _, store in shared_stores(project.golden_dir):
            # Accepted already, by a run that was killed.
            store.put_in_place()
    looked = look_at_all(project, project.pending.select(patterns), variant)
    refuse_less((as_it_counts(project, one) for one in looked), allowed)
    if looked and not dry_run:
        demand_reason([one.change for one in looked], reason)
        with project.indexed() if project.is_own else contextlib.nullcontext():
            _accept_all(project, looked, reason)
    return [one.change for one in looked]


def _accept_all(project: Project, looked: Sequence[PendingChange], reason: str | None) -> None:
    who = git_user(project.root)
    with (
        telling_what_is_done(_ACCEPTED) as done,
        project.goldens.kept(),
        project.pending.kept(),
    ):
        for one in looked:
            accept(project, one, reason, who)
            done.append(one.change.check)


def _has_open_values(check: Check) -> bool:
    with Outputs(check) as catalog:
        # What could not be read may need one.
        return bool(catalog.errors) or needs_golden(check, catalog)


Change = Literal["added", "removed", "redefined", "changed", "within", "equal"]
StatusWord = Literal["created", "replaced", "same", "kept"]


class AcceptedVariable(msgspec.Struct, frozen=True):
    """What becomes of one variable.

    change: redefined is another dtype, shape, bound or evidence; changed is beyond the old bound,
    or not known to be within. bound_widened: the new bound lets pass what the old one did not.
    evidence_lowered: the new golden keeps less. moved: the new values against the old golden, by
    its own bound.
    """

    name: str
    iteration: int | None
    rank: int | None
    change: Change
    bound_widened: bool
    old: VariableRow | None
    new: VariableRow | None
    moved: VariableResult | None
    evidence_lowered: bool = False


class AcceptedCheck(msgspec.Struct, frozen=True):
    """What becomes of one golden.

    largest_bound_share: of the old bounds, used up by the variable that moved most; None where the
    old evidence could not tell. old_problem: why the golden that is replaced could not be read.
    stale: why it may be of other code than what lies here. misspelt: a warning for each pattern
    and name of the configuration that has no effect on the outputs.
    """

    name: str
    status: StatusWord
    golden_path: str
    old_root: Root | None
    new_root: Root
    old_bytes: Count | None
    new_bytes: Count
    largest_bound_share: Number | None
    old_problem: str | None
    variables: tuple[AcceptedVariable, ...]
    stale: str | None = None
    misspelt: tuple[str, ...] = ()


class AcceptDocument(DocumentHead, frozen=True):
    """What accept did, or with --dry-run would do."""

    kind: Literal["accept"]
    dry_run: bool
    reason: str | None
    checks: tuple[AcceptedCheck, ...]


def accept_document(
    changes: Sequence[GoldenChange], *, reason: str | None, dry_run: bool
) -> AcceptDocument:
    return AcceptDocument(1, "accept", dry_run, reason, tuple(map(_check, changes)))


def _check(change: GoldenChange) -> AcceptedCheck:
    old = change.old.golden
    return AcceptedCheck(
        name=change.check,
        status=change.status.value,
        golden_path=str(change.path),
        old_root=change.old.root,
        new_root=change.root,
        old_bytes=None if old is None else old.byte_count,
        new_bytes=change.byte_count,
        largest_bound_share=change.largest_bound_share,
        old_problem=change.old.problem,
        variables=tuple(_accepted_variable(one) for one in change.changes),
        stale=change.stale,
        misspelt=change.misspelt,
    )


def _accepted_variable(change: VariableChange) -> AcceptedVariable:
    return AcceptedVariable(
        name=change.identity.name,
        iteration=change.identity.iteration,
        rank=change.identity.rank,
        change=change_word(change),
        bound_widened=change.is_bound_wider,
        old=change.old,
        new=change.new,
        moved=change.moved,
        evidence_lowered=change.lowered_evidence is not None,
    )


def change_word(change: VariableChange) -> Change:
    """added, removed, redefined (dtype, shape, bound or evidence), changed, within, equal."""
    if change.old is None:
        return "added"
    if change.new is None:
        return "removed"
    if not change.is_described_alike:
        return "redefined"
    if change.moved is None or change.moved.verdict is not Verdict.MATCH:
        return "changed"
    return "equal" if change.old.root == change.new.root else "within"


def likeness(change: GoldenChange) -> Hashable:
    """Equal for changes that look alike: to the same variables, of the same kinds, with the same
    bounds, and moved by the same power of ten of them; with the same warnings.
    """
    variables = tuple(_variable(one) for one in change.changes)
    return change.status, change.old.problem is None, change.warnings, variables


def _variable(change: VariableChange) -> Hashable:
    share = change.used_share
    if share is not None and 0 < share < math.inf:
        share = math.floor(math.log10(share))
    return change.identity, change_word(change), _told(change), share


def _told(change: VariableChange) -> Hashable:
    """What is said of a variable beside its numbers."""
    rows = (change.old, change.new)
    if change_word(change) in ("changed", "within", "equal"):
        return tuple(None if row is None else row.bound for row in rows)
    # It matters in what: other evidence is not another shape.
    return tuple(
        None if row is None else repr(replace(row, name="", iteration=None, rank=None, root=""))
        for row in rows
    )


def alike(changes: Iterable[VariableChange]) -> list[list[VariableChange]]:
    """Changes of which the same is to be said, each group with its largest one first: of one
    variable in several checkpoints, or of several that have the same causes.
    """
    groups: dict[Hashable, list[VariableChange]] = {}
    for change in changes:
        causes: Hashable = ()
        if change.moved is not None:
            known = [(one.cause, one.values, one.axes) for one in change.moved.explanations]
            causes = tuple(known) or change.identity.name
        groups.setdefault((change_word(change), _told(change), causes), []).append(change)
    return [sorted(group, key=lambda one: -_size(one)) for group in groups.values()]


def _size(change: VariableChange) -> float:
    """In units of the bound, as far as it is known."""
    if change.moved is None:
        return 0.0
    share = change.moved.max_bound_share
    return (change.moved.known_share or 0.0) if share is None else share


_MOST_BYTES = 4 << 20
_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def source_of(place: Place, root: Path) -> str:
    """The function that makes a check, as its file has it, decorators and all.

    root: of the project. Raises UsageError for a check of no test, UnreadableFileError where its
    file or the function is not there any more.
    """
    test = TestPlace.of(place)
    if test is None:
        raise UsageError(f"{place.check!r} is not a check of a test, so there is no source to show")
    path = root / test.module
    try:
        text = read_regular(path, _MOST_BYTES).decode()
        nodes: list[ast.AST] = [ast.parse(text)]
    except (FileNotFoundError, SyntaxError, ValueError):
        raise UnreadableFileError("is not there, or is not Python", file=path) from None
    for name in test.test.split("::"):
        children = [one for node in nodes for one in ast.iter_child_nodes(node)]
        nodes = [one for one in children if isinstance(one, _Node) and one.name == name]
    if not nodes:
        raise UnreadableFileError(f"has no {test.test}; it may be inherited", file=path)
    node = nodes[-1]
    assert isinstance(node, _Node)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
