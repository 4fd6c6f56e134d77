"""What `ciwrap accept --json` writes, as records; the action reads it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ciwrap.details import Number
from ciwrap.golden.manifest import Count, Root, VariableRow
from ciwrap.model import VariableResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.review.golden_change import GoldenChange, VariableChange

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


class AcceptDocument(msgspec.Struct, frozen=True):
    """What accept did, or with --dry-run would do."""

    schema_version: Literal[1]
    kind: Literal["accept"]
    dry_run: bool
    reason: str | None
    checks: tuple[AcceptedCheck, ...]


def accept_document(
    changes: Sequence[GoldenChange], *, reason: str | None, dry_run: bool
) -> AcceptDocument:
    checks = tuple(_check(change) for change in changes)
    return AcceptDocument(1, "accept", dry_run, reason, checks)


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
        variables=tuple(_variable(one) for one in change.changes),
        stale=change.stale,
        misspelt=change.misspelt,
    )


def _variable(change: VariableChange) -> AcceptedVariable:
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
