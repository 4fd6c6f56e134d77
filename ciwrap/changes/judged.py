"""How one variable is judged, and in what two ways of judging it differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.arrays.values import TEXT_LABEL
from ciwrap.errors import UsageError
from ciwrap.golden.manifest import evidence_rank
from ciwrap.model import EvidencePolicy, VariableId
from ciwrap.structs import Struct, replace
from ciwrap.trees.bounds import EXACT, describe_bound, is_wider, settings_text
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.changes.document import What
    from ciwrap.config import Check
    from ciwrap.golden.manifest import VariableRow
    from ciwrap.model import VariableSettings

_NUMBERS = "<f8"
# The smaller one of atol and rtol |golden|, the larger one, their sum.
_COMBINED = ("both", "either", "sum")


class Judged(Struct, frozen=True):
    """stored: the bound that the golden was made with, in words. asked: the one that the
    configuration asks for, where one does. evidence: what the golden keeps. settings: None without
    a configuration. aligns: whether the check puts any rows in order.
    """

    stored: str
    asked: str | None
    evidence: str
    settings: VariableSettings | None
    aligns: bool = False


def judged(row: VariableRow, check: Check | None, identity: VariableId) -> Judged:
    if check is None:
        return Judged(row.bound, None, row.evidence, None)
    settings = check.settings_for(identity, row.dtype)
    # A golden holds the bytes of a text, which have no bound; its numbers have.
    is_text = TEXT_LABEL in row.labels.items()
    asked = settings_text(settings) if is_text else _asked(row.dtype, settings)
    return Judged(row.bound, asked, row.evidence, settings, check.aligns)


def _asked(dtype: str, settings: VariableSettings) -> str | None:
    try:
        return describe_bound(tree_parameters(dtype, settings))
    except UsageError:  # a bound that the type cannot have, which a check tells better
        return None


def judged_by_configuration(check: Check, name: str) -> Judged:
    """How numbers are judged that the configuration itself states."""
    settings = check.settings_for(VariableId(name), _NUMBERS)
    asked = _asked(_NUMBERS, settings)
    # No golden keeps anything of them.
    return Judged(EXACT, asked, "data", replace(settings, evidence=EvidencePolicy.DATA))


def judgement_changes(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    """What differs, in words, and whether less is checked."""
    yield from _bounds(old, new)
    yield from _evidence(old, new)
    if old.settings is None or new.settings is None:
        return
    was, now = old.settings, new.settings
    if was.combine != now.combine:
        wider = _COMBINED.index(now.combine) > _COMBINED.index(was.combine)
        yield "bound", f"combine: {was.combine} -> {now.combine}", wider
    if was.mask != now.mask:
        yield (
            "variable",
            f"mask: {was.mask or 'none'} -> {now.mask or 'none'}",
            now.mask is not None,
        )
    if was.period != now.period:
        yield "bound", f"period: {_numbers(was.period)} -> {_numbers(now.period)}", bool(now.period)
    if was.mixed_precision != now.mixed_precision:
        word = "allowed" if now.mixed_precision else "refused"
        yield "bound", f"float32 against float64 is {word} now", now.mixed_precision
    if was.across_ranks != now.across_ranks:
        text = f"rows of all ranks are aligned {'together' if now.across_ranks else 'by rank'} now"
        yield "variable", text, now.across_ranks
    if was.align_by != now.align_by:
        text = f"rows aligned by: {was.align_by or 'none'} -> {now.align_by or 'none'}"
        # Rows may come in any order now; or the ids alone may, and these have lost them.
        yield "variable", text, now.align_by is not None or new.aligns


def _bounds(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    """The bounds asked for, or those that the goldens were made with where these alone are others,
    or alone are wider.
    """
    pairs = [(old.stored, new.stored)]
    if old.asked is not None and new.asked is not None:
        pairs.insert(0, (old.asked, new.asked))
    found = [(was, now, is_wider(was, now)) for was, now in pairs if was != now]
    if found:
        was, now, wider = next((one for one in found if one[2]), found[0])
        yield "bound", f"{was} -> {now}", wider


def _evidence(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    if old.evidence != new.evidence:
        is_lower = evidence_rank(new.evidence) < evidence_rank(old.evidence)
        yield "evidence", f"{old.evidence} -> {new.evidence}", is_lower
    elif old.settings is not None and new.settings is not None:
        was, now = old.settings.evidence, new.settings.evidence
        if was is not now:
            text = f"asked for: {was} -> {now} (the golden keeps {new.evidence})"
            yield "evidence", text, False


def _numbers(period: tuple[float, ...]) -> str:
    return ", ".join(f"{one:g}" for one in period) or "none"
