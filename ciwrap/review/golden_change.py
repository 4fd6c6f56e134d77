"""What accepting changes: of one golden, and of each of its variables."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptGoldenError, GoldenMissingError, GoldenToMendError, UsageError
from ciwrap.golden.manifest import VariableRow, evidence_rank
from ciwrap.golden.variables import golden_id
from ciwrap.model import VariableId, VariableResult, Verdict
from ciwrap.structs import Struct, field, replace
from ciwrap.trees.bounds import is_wider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ciwrap import _core
    from ciwrap.arrays.values import Labels
    from ciwrap.golden.manifest import Acceptance
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.store import GoldenStore

    # How far a variable moved, of its old and its new golden; None where nobody can tell.
    Moved = Callable[
        [VariableId, _core.GoldenVariable, _core.GoldenVariable], VariableResult | None
    ]


class Status(str, Enum):
    """What accepting does to a golden.

    SAME: the new golden is the old one, to the byte. KEPT: every variable matches within its bound
    and nothing was asked for anew, so the golden stays; replacing it would let it drift with the
    noise.
    """

    CREATED = "created"
    REPLACED = "replaced"
    SAME = "same"
    KEPT = "kept"

    def __str__(self) -> str:
        return self.value


class VariableChange(Struct, frozen=True):
    """What becomes of one variable.

    old, new: None where the golden has, or had, no such variable. moved: the new values against the
    old golden by its own bound; None where they cannot be compared.
    """

    identity: VariableId
    old: VariableRow | None
    new: VariableRow | None
    has_same_parameters: bool = False
    moved: VariableResult | None = None

    @classmethod
    def between(
        cls,
        identity: VariableId,
        old: _core.GoldenVariable | None,
        new: _core.GoldenVariable | None,
        moved: VariableResult | None,
        labels: tuple[Labels, Labels] = ((), ()),
    ) -> VariableChange:
        """The change between two goldens. labels: the old ones, the new ones."""
        return cls(
            identity,
            None if old is None else VariableRow.of(old, labels[0]),
            None if new is None else VariableRow.of(new, labels[1]),
            old is not None and new is not None and old.tree.parameters == new.tree.parameters,
            moved,
        )

    @property
    def is_described_alike(self) -> bool:
        """Whether all but the root is as before: bound, evidence, labels and the rest."""
        if self.old is None or self.new is None or not self.has_same_parameters:
            return False
        return replace(self.old, root="") == replace(self.new, root="")

    @property
    def is_within(self) -> bool:
        """Whether the values match the old golden, and nothing else is asked of them."""
        matches = self.moved is not None and self.moved.verdict is Verdict.MATCH
        return self.is_described_alike and matches

    @property
    def is_bound_wider(self) -> bool:
        """Whether the new bound, and all that goes with it, lets something pass that the old one
        did not.
        """
        old, new = self.old, self.new
        return old is not None and new is not None and is_wider(old.bound, new.bound)

    @property
    def lowered_evidence(self) -> str | None:
        """`data -> tree`; None if the golden keeps at least what it kept."""
        if self.old is None or self.new is None:
            return None
        is_lower = evidence_rank(self.new.evidence) < evidence_rank(self.old.evidence)
        return f"{self.old.evidence} -> {self.new.evidence}" if is_lower else None

    @property
    def bound_change(self) -> str | None:
        """`atol=1e-6 rtol=0 -> atol=1e-3 rtol=0 (wider)`; None if the bound is as before."""
        if self.old is None or self.new is None or self.old.bound == self.new.bound:
            return None
        return f"{self.old.bound} -> {self.new.bound}{' (wider)' if self.is_bound_wider else ''}"

    @property
    def used_share(self) -> float | None:
        """The share of the old bound that the values moved by at most; None where the old
        evidence cannot tell.
        """
        if self.moved is None:
            return None
        if self.moved.max_bound_share is None and self.moved.verdict is not Verdict.MATCH:
            return None
        return None if self.moved.used_interval is None else self.moved.used_interval[1]


class OldGolden(Struct, frozen=True):
    """The golden that accepting replaces.

    golden: None if there is none, or it cannot be read; problem then says why. log: its acceptances
    so far, also of a golden that is damaged.
    """

    golden: StoredGolden | None
    problem: str | None
    log: tuple[Acceptance, ...]

    @classmethod
    def of(cls, name: str, store: GoldenStore) -> OldGolden:
        """Raises UnsupportedFormatError for a golden of a newer version, GoldenToMendError for one
        that no new golden may replace.
        """
        if not store.contains(name):
            return cls(None, None, ())
        try:
            golden = store.read(name)
        except GoldenToMendError:
            raise
        except CorruptGoldenError as error:
            return cls(None, str(error), store.history(name))
        except GoldenMissingError as error:
            # Half a golden is not a missing one: replacing it takes a reason.
            is_half = store.contains(name)
            return cls(None, str(error) if is_half else None, store.history(name))
        return cls(golden, None, golden.manifest.accepted)

    @property
    def root(self) -> str | None:
        return None if self.golden is None else self.golden.root

    def is_same_as(self, root: str, labels: Mapping[VariableId, Labels]) -> bool:
        """Whether a golden of this root and these labels is this one."""
        if self.golden is None or self.golden.root != root:
            return False
        # A golden of an earlier release says nothing of labels, and stays as it is.
        return self.golden.manifest.labels in (None, labels)

    def status_after(self, changes: Sequence[VariableChange], *, keeps_matching: bool) -> Status:
        """What becomes of it by these changes. keeps_matching: as of `GoldenChange.compared`."""
        if self.golden is None:
            return Status.CREATED if self.problem is None else Status.REPLACED
        is_kept = keeps_matching and all(one.is_within for one in changes)
        return Status.KEPT if is_kept else Status.REPLACED

    def changes_to(
        self,
        variables: Sequence[_core.GoldenVariable],
        labels: Mapping[VariableId, Labels],
        moved: Moved,
    ) -> tuple[VariableChange, ...]:
        """What becomes of each variable. moved: how far one moved that is on both sides."""
        golden = self.golden
        before = {} if golden is None else {golden_id(one): one for one in golden.variables}
        said = labels if golden is None else golden.manifest.labels
        old_labels = labels if said is None else said
        after = {golden_id(one): one for one in variables}
        changes = []
        for identity in sorted({*before, *after}):
            old, new = before.get(identity), after.get(identity)
            result = moved(identity, old, new) if old is not None and new is not None else None
            both = (old_labels.get(identity, ()), labels.get(identity, ()))
            changes.append(VariableChange.between(identity, old, new, result, both))
        return tuple(changes)


class GoldenChange(Struct, frozen=True):
    """A golden that could be written, and what that changes. Nothing is written yet.

    check: what people call it. name: its name in its folder. path: of its binary. labels: of its
    variables, where they have any. ignored: what of the outputs is left out, as patterns. stale:
    why it may be of other code than what lies here. misspelt: a warning for each pattern and
    name of the configuration that has no effect on the outputs.
    """

    check: str
    name: str
    path: Path
    variables: tuple[_core.GoldenVariable, ...]
    root: str
    byte_count: int
    old: OldGolden
    status: Status = Status.SAME
    changes: tuple[VariableChange, ...] = ()
    labels: Mapping[VariableId, Labels] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    stale: str | None = None
    misspelt: tuple[str, ...] = ()

    def compared(self, moved: Moved, *, keeps_matching: bool = False) -> GoldenChange:
        """With its status, and what becomes of each variable.

        moved: how far one moved that is on both sides. keeps_matching: whether a golden stays that
        everything matches, as it does for outputs.
        """
        old = self.old
        if old.is_same_as(self.root, self.labels):
            return replace(self, status=Status.SAME, changes=())
        changes = old.changes_to(self.variables, self.labels, moved)
        return replace(
            self, status=old.status_after(changes, keeps_matching=keeps_matching), changes=changes
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever accepts it should know, a line for each."""
        return self.misspelt if self.stale is None else (self.stale, *self.misspelt)

    @property
    def needs_writing(self) -> bool:
        return self.status in (Status.CREATED, Status.REPLACED)

    @property
    def largest_bound_share(self) -> float | None:
        """Of all variables on both sides; None if one of them cannot be told."""
        shares = [one.used_share for one in self.changes if one.old and one.new]
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None


def demand_reason(changes: Iterable[GoldenChange], reason: str | None) -> None:
    """Raises UsageError if one of the changes replaces a golden and nobody says why."""
    replaced = [one.check for one in changes if one.status is Status.REPLACED]
    if replaced and reason is None:
        raise UsageError(
            f"replacing the golden of {', '.join(replaced)} needs a reason; nothing was written",
            remedy="add --reason 'why the new numbers are right' (--dry-run shows what changes)",
        )
