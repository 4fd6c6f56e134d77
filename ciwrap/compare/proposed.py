"""Pending goldens: what accepting one would change, as for outputs that lie there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ciwrap.arrays.values import ArrayValues
from ciwrap.compare.accept import Candidate, Status, VariableChange, old_golden
from ciwrap.compare.judge import check_golden, golden_id
from ciwrap.config import Check
from ciwrap.readers.base import as_elements

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap import _core
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.model import CheckResult, VariableResult


def candidate_of(
    pending: StoredGolden,
    store: GoldenStore,
    root: Path,
    recorded: CheckResult | None,
) -> Candidate:
    """What accepting a pending golden would change.

    store: of the goldens, at the pending one's place. recorded: what the run that made it found; it
    tells how far values moved where the pending golden does not hold them itself. Raises
    UnsupportedFormatError if the golden there is of a newer version.
    """
    old, problem, history = old_golden(pending.check, store)
    before = {} if old is None else {golden_id(one): one for one in old.variables}
    after = {golden_id(one): one for one in pending.variables}
    found = {} if recorded is None else {result.id: result for result in recorded.variables}
    changes = tuple(
        VariableChange.between(
            identity,
            before.get(identity),
            after.get(identity),
            _moved(before.get(identity), after.get(identity), found.get(identity)),
        )
        for identity in sorted({*before, *after})
    )
    if old is None:
        status = Status.CREATED if problem is None else Status.REPLACED
    else:
        is_same = old.root == pending.root and old.manifest.labels == pending.manifest.labels
        status = Status.SAME if is_same else Status.REPLACED
    return Candidate(
        check=Check(pending.check, root, ()),
        path=store.path(pending.check),
        status=status,
        variables=pending.variables,
        changes=changes,
        root=pending.root,
        byte_count=pending.byte_count,
        old=old,
        old_problem=problem,
        history=history,
        labels=pending.manifest.labels or {},
    )


def named_for_people(candidate: Candidate, name: str) -> Candidate:
    """The candidate as it is to be shown, its check called `name`."""
    return replace(candidate, check=replace(candidate.check, name=name))


def _moved(
    old: _core.GoldenVariable | None,
    new: _core.GoldenVariable | None,
    recorded: VariableResult | None,
) -> VariableResult | None:
    """How far the values moved: seen here if the new golden holds them, else as recorded."""
    if old is None or new is None:
        return None
    if new.data is not None:
        dtype = new.tree.parameters.dtype
        elements = as_elements(new.data, dtype).reshape(tuple(new.shape))
        return check_golden(old, ArrayValues(elements, dtype), None)
    if recorded is not None and recorded.golden_root == old.tree.root.hex():
        return recorded
    return None
