"""Making and replacing goldens: first a candidate and what it changes, then the write."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import structs

from ciwrap import _core
from ciwrap.catalog.catalog import Catalog
from ciwrap.compare.judge import check_golden, golden_id
from ciwrap.compare.work import Work
from ciwrap.environment import describe_environment, git_commit, git_user
from ciwrap.errors import (
    CiwrapError,
    CorruptGoldenError,
    GoldenMissingError,
    NotComparableError,
    PeriodError,
)
from ciwrap.golden.evidence import capture
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, VariableRow, rows_of
from ciwrap.model import ErrorBound, VariableId, VariableResult, Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.arrays.values import Labels
    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.progress import Progress

FIRST_REASON = "first golden"


class Status(str, Enum):
    """What accepting does to a golden.

    SAME: the candidate is the golden, to the byte. KEPT: every variable matches within its bound
    and nothing was asked for anew, so the golden stays; replacing it would let it drift with the
    noise.
    """

    CREATED = "created"
    REPLACED = "replaced"
    SAME = "same"
    KEPT = "kept"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class VariableChange:
    """What becomes of one variable.

    old, new: None where the golden has, or had, no such variable. moved: the new values against the
    old golden by its own bound; None where they cannot be compared.
    """

    identity: VariableId
    old: VariableRow | None
    new: VariableRow | None
    old_bound: ErrorBound | None = None
    new_bound: ErrorBound | None = None
    has_same_parameters: bool = False
    moved: VariableResult | None = None

    @classmethod
    def between(
        cls,
        identity: VariableId,
        old: _core.GoldenVariable | None,
        new: _core.GoldenVariable | None,
        moved: VariableResult | None,
    ) -> VariableChange:
        """The change from one golden's variable to another's."""
        return cls(
            identity,
            None if old is None else VariableRow.of(old),
            None if new is None else VariableRow.of(new),
            None if old is None else bound_of(old.tree.parameters),
            None if new is None else bound_of(new.tree.parameters),
            old is not None and new is not None and old.tree.parameters == new.tree.parameters,
            moved,
        )

    @property
    def is_described_alike(self) -> bool:
        """Whether all but the root is as before: bound, evidence, chunk size and the rest."""
        if self.old is None or self.new is None or not self.has_same_parameters:
            return False
        return structs.replace(self.old, root="") == structs.replace(self.new, root="")

    @property
    def is_bound_wider(self) -> bool:
        """Whether the new bound lets something pass that the old one did not."""
        old, new = self.old_bound, self.new_bound
        if old is None or new is None:
            return False
        if old.is_exact or new.is_exact:
            return not new.is_exact
        if bool(old.ulps) != bool(new.ulps):
            return True
        return new.ulps > old.ulps or new.atol > old.atol or new.rtol > old.rtol

    @property
    def bound_change(self) -> str | None:
        """`atol=1e-6 rtol=0 -> atol=1e-3 rtol=0 (wider)`; None if the bound is as before."""
        if self.old is None or self.new is None or self.old.bound == self.new.bound:
            return None
        return f"{self.old.bound} -> {self.new.bound}{' (wider)' if self.is_bound_wider else ''}"

    @property
    def used_share(self) -> float | None:
        """Share of the old bound that the values moved by; None where the old evidence cannot
        tell.
        """
        if self.moved is None:
            return None
        if self.moved.max_bound_share is not None:
            return self.moved.max_bound_share
        return self.moved.max_drift_share if self.moved.verdict is Verdict.MATCH else None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where outputs come from: commit (None without git) and machine.

    who: accepts them; None: whoever git says.
    """

    commit: str | None
    environment: Mapping[str, str]
    who: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A golden that could be written. old_problem: why the one that lies there cannot be read.

    labels: of its variables, where they have any.
    """

    check: Check
    path: Path
    status: Status
    variables: tuple[_core.GoldenVariable, ...]
    changes: tuple[VariableChange, ...]
    root: str
    byte_count: int
    old: StoredGolden | None = None
    old_problem: str | None = None
    history: tuple[Acceptance, ...] = ()
    labels: Mapping[VariableId, Labels] = field(default_factory=dict)

    @property
    def needs_writing(self) -> bool:
        return self.status in (Status.CREATED, Status.REPLACED)

    @property
    def old_root(self) -> str | None:
        return None if self.old is None else self.old.root

    @property
    def largest_bound_share(self) -> float | None:
        """Of all variables on both sides; None if one of them cannot be told."""
        shares = [one.used_share for one in self.changes if one.old and one.new]
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None


def prepare(
    check: Check,
    store: GoldenStore,
    *,
    force: bool = False,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Candidate:
    """Captures a check's outputs and finds out what accepting them changes. Writes nothing.

    force: replace a golden even if everything matches it. Raises the errors of reading outputs
    (one is enough: a golden of half the outputs would be none), UsageError, UnsupportedFormatError
    if the golden there is of a newer version.
    """
    from ciwrap.compare.check import arrangement_of, outputs_of

    with Catalog(outputs_of(check), arrangement_of(check)) as catalog:
        return prepare_catalog(
            check, store, catalog, force=force, resources=resources, progress=progress
        )


def prepare_catalog(
    check: Check,
    store: GoldenStore,
    catalog: Catalog,
    *,
    force: bool = False,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Candidate:
    """As `prepare`, for outputs that have been listed."""
    old, problem, history = old_golden(check.name, store)
    if catalog.errors:
        raise catalog.errors[0]
    wanted = [identity for identity in catalog.entries if not check.is_ignored(identity)]
    if not wanted:
        raise NotComparableError(
            f"check {check.name!r} has no variables to accept",
            remedy="mend 'outputs' or 'ignore'",
        )
    progress.begin(
        f"capturing {check.name}",
        sum(catalog.entries[identity].info.byte_count for identity in wanted),
    )
    try:
        variables = [_capture(check, catalog, identity, resources, progress) for identity in wanted]
    finally:
        progress.end()
    try:
        encoded = _core.encode_golden(variables)
        root = _core.golden_root(encoded).hex()
    except CiwrapError as error:
        error.blame(file=store.path(check.name))
        raise
    labels = {identity: catalog.entries[identity].info.labels for identity in wanted}
    # A golden of an earlier release says nothing of labels, and stays as it is.
    says_so = old is None or old.manifest.labels in (None, labels)
    is_same = old is not None and old.root == root and says_so
    changes = () if is_same else _changes(old, variables, catalog, check, resources)
    return Candidate(
        check=check,
        path=store.path(check.name),
        status=_status(old, problem, is_same, changes, force or not says_so),
        variables=tuple(variables),
        changes=changes,
        root=root,
        byte_count=len(encoded),
        old=old,
        old_problem=problem,
        history=history,
        labels=labels,
    )


def origin_here(folder: Path) -> Origin:
    """The origin of outputs that were made here and now; `folder` lies in the repository."""
    return Origin(git_commit(folder), describe_environment(folder))


def write(
    candidate: Candidate, store: GoldenStore, reason: str | None, origin: Origin | None = None
) -> StoredGolden:
    """Writes a candidate; the caller holds `store.locked()` and has held it since `prepare`.

    reason: for the history; None only for a first golden. origin: None for outputs made here.
    Raises WriteFailedError, UsageError.
    """
    check = candidate.check
    made = origin_here(check.root) if origin is None else origin
    entry = Acceptance(
        when=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        who=git_user(check.root) if made.who is None else made.who,
        why=FIRST_REASON if reason is None else reason,
        commit=made.commit,
        old_root=candidate.old_root,
        new_root=candidate.root,
        largest_bound_share=candidate.largest_bound_share,
        bounds=tuple(
            f"{change.identity.text}: {change.bound_change}"
            for change in candidate.changes
            if change.bound_change is not None
        ),
    )

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=check.name,
            binary=BinaryFile(candidate.path.name, root, byte_count),
            variables=rows_of(candidate.variables, candidate.labels),
            environment=dict(made.environment),
            accepted=(*candidate.history, entry),
        )

    return store.write(check.name, candidate.variables, make_manifest)


def old_golden(
    name: str, store: GoldenStore
) -> tuple[StoredGolden | None, str | None, tuple[Acceptance, ...]]:
    """The golden to be replaced, or why it cannot be read; and its history as far as that can."""
    try:
        old = store.read(name)
    except CorruptGoldenError as error:
        return None, str(error), store.history(name)
    except GoldenMissingError as error:
        # Half a golden is not a missing one: replacing it takes a reason.
        is_half = store.contains(name)
        return None, str(error) if is_half else None, store.history(name)
    return old, None, old.manifest.accepted


def _status(
    old: StoredGolden | None,
    problem: str | None,
    is_same: bool,
    changes: tuple[VariableChange, ...],
    force: bool,
) -> Status:
    if old is None:
        return Status.CREATED if problem is None else Status.REPLACED
    if is_same:
        return Status.SAME
    is_within = all(
        change.is_described_alike
        and change.moved is not None
        and change.moved.verdict is Verdict.MATCH
        for change in changes
    )
    return Status.KEPT if is_within and not force else Status.REPLACED


def _capture(
    check: Check,
    catalog: Catalog,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> _core.GoldenVariable:
    info = catalog.entries[identity].info
    settings = check.settings_for(identity, info.dtype)
    values = catalog.values(identity, settings.mask)
    found = capture(values, settings, identity, resources=resources, progress=progress).variable
    if settings.period and found.data is None:
        raise PeriodError(
            "only a golden that keeps the data can be compared modulo a period, and they do not fit"
            f" 'data_budget_bytes' ({settings.data_budget_bytes})",
            variable=identity.text,
            remedy="set 'evidence: data' for it, or 'ignore' it here and use 'ciwrap compare'",
        )
    return found


def _changes(
    old: StoredGolden | None,
    variables: list[_core.GoldenVariable],
    catalog: Catalog,
    check: Check,
    resources: Resources,
) -> tuple[VariableChange, ...]:
    before = {} if old is None else {golden_id(one): one for one in old.variables}
    after = {golden_id(one): one for one in variables}
    return tuple(
        _change(identity, before.get(identity), after.get(identity), catalog, check, resources)
        for identity in sorted({*before, *after})
    )


def _change(
    identity: VariableId,
    old: _core.GoldenVariable | None,
    new: _core.GoldenVariable | None,
    catalog: Catalog,
    check: Check,
    resources: Resources,
) -> VariableChange:
    moved = None
    if old is not None and new is not None:
        settings = check.settings_for(identity, catalog.entries[identity].info.dtype)
        values = catalog.values(identity, settings.mask)
        # By the old golden's own bound: the question is how far the values moved, not what is
        # asked.
        if settings.period and old.data is not None:
            settings = replace(settings, bound=bound_of(old.tree.parameters))
            moved = check_golden(old, values, settings, work=Work(resources))
        else:
            moved = check_golden(old, values, None, work=Work(resources))
    return VariableChange.between(identity, old, new, moved)
