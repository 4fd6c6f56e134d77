"""What becomes of a variable that a run recorded twice, as after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciwrap.model import VariableId

if TYPE_CHECKING:
    from ciwrap.captures.index import CapturedVariable


def keep(
    found: dict[str, CapturedVariable], one: CapturedVariable, attempt: int
) -> VariableId | None:
    """Keeps a variable; of an iteration that was recorded twice, the second one if it differs.

    Returns what it is called, or None if it was not kept.
    """
    name = one.identity.name
    known = found.get(name)
    if known is None:
        found[name] = one
        return one.identity
    is_same = known.signature == one.signature and known.all_digests == one.all_digests
    if is_same and one.any_tree is not None:
        found[name] = _with_larger_share(known, one)
        return None
    other = f"{name} (attempt {attempt})"
    while other in found:
        other += "'"
    identity = VariableId(other, one.identity.iteration, one.identity.rank)
    found[other] = msgspec.structs.replace(one, identity=identity)
    return identity


def _with_larger_share(known: CapturedVariable, one: CapturedVariable) -> CapturedVariable:
    """Two recordings of one cells: told is the larger share of the bound that either moved."""
    if known.relative is None or one.relative is None:
        return known
    shares = [known.relative.max_share, one.relative.max_share]
    largest = max((share for share in shares if share is not None), default=None)
    relative = msgspec.structs.replace(known.relative, max_share=largest)
    return msgspec.structs.replace(known, relative=relative)
