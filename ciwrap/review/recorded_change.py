"""The change that accepting a recorded run makes: its trees become a golden, which has no data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures.checkpoint import fitting
from ciwrap.captures.index import read_tree
from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.captures.recording import RecordedCapture
from ciwrap.compare.recorded import compare_recorded, refuse_what_needs_data
from ciwrap.compare.work import Work
from ciwrap.errors import NotComparableError, ParameterMismatchError
from ciwrap.golden.variables import golden_id
from ciwrap.model import EvidencePolicy
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of, describe_bound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.captures.index import CapturedVariable, StoredTree
    from ciwrap.config import Check
    from ciwrap.model import VariableId, VariableResult, VariableSettings
    from ciwrap.review.golden_change import OldGolden
    from ciwrap.trees.build import Resources


def golden_of_recorded(check: Check, run: Path, old: OldGolden) -> list[_core.GoldenVariable]:
    """What a golden keeps of a recorded run: its residues as far as they are there and asked for,
    else its digests. old: the golden that it replaces.

    Raises NotComparableError for a run that is not all there, or without residues that it needs,
    StillWrittenError for one that still runs or was killed, ParameterMismatchError for other bounds
    than the check's, and the errors of reading journals.
    """
    refuse_what_needs_data(check)
    with RecordedCapture(run) as capture:
        capture.refuse_parts("record the run to its end", check.is_ignored)
        wanted = [
            one
            for directory in read_index(capture).checkpoints.values()
            for one in read_checkpoint(capture, directory).variables
            if not capture.leaves_out(one.identity, check.is_ignored)
        ]
        wanted.sort(key=lambda one: one.identity.sort_key)
        has_residues = {
            golden_id(one)
            for one in (() if old.golden is None else old.golden.variables)
            if one.evidence == "residues"
        }
        return [
            _golden_variable(check, capture, one, needs_residues=one.identity in has_residues)
            for one in wanted
        ]


def moved_since(
    check: Check, run: Path, old: OldGolden, resources: Resources
) -> Callable[[VariableId, _core.GoldenVariable, _core.GoldenVariable], VariableResult | None]:
    """How far each variable of a recorded run moved from the old golden, by that golden's bounds;
    None where trees do not tell.
    """
    found: dict[VariableId, VariableResult] = {}
    if old.golden is not None:
        bounds = {one.name: bound_of(one.tree.parameters) for one in old.golden.variables}

        def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
            settings = check.settings_for(identity, dtype)
            return replace(settings, bound=bounds.get(identity.name, settings.bound))

        result = compare_recorded(check, old.golden, run, Work(resources), settings_for)
        found = {one.id: one for one in result.variables}
    return lambda identity, _old, _new: found.get(identity)


def _golden_variable(
    check: Check, capture: RecordedCapture, one: CapturedVariable, *, needs_residues: bool
) -> _core.GoldenVariable:
    identity = one.identity
    settings = check.settings_for(identity, one.dtype)
    if one.any_tree is None:
        raise NotComparableError(
            f"was not recorded: {one.reason}", file=capture.path, variable=identity.text
        )
    fit = fitting(one, settings, identity)
    if fit is None or not settings.has_own_trees:
        made = describe_bound(one.any_tree.parameters)
        raise ParameterMismatchError(
            f"was recorded with {made}, and the check asks for something else",
            file=capture.path,
            variable=identity.text,
            remedy=f"record it with `ciwrap record --check {check.name}`",
        )
    stored = _wanted(fit, settings.evidence)
    if stored is fit.plain and needs_residues and settings.evidence is EvidencePolicy.AUTO:
        raise NotComparableError(
            "the golden keeps residues of it, and this run has none of its own",
            file=capture.path,
            variable=identity.text,
            remedy="record it with --residues and without --against, or set 'evidence: tree'",
        )
    if stored is None:
        raise NotComparableError(
            f"a recorded run does not have the evidence {settings.evidence.value!r}",
            file=capture.path,
            variable=identity.text,
            remedy="record it with --residues and without --against, or set 'evidence: auto'",
        )
    return _core.GoldenVariable(
        identity.name,
        one.shape,
        read_tree(capture, one, stored),
        iteration=identity.iteration,
        rank=identity.rank,
    )


def _wanted(one: CapturedVariable, policy: EvidencePolicy) -> StoredTree | None:
    """The tree that a golden of this evidence keeps; None if the run does not have it."""
    if policy is EvidencePolicy.DATA:
        return None
    if policy is EvidencePolicy.TREE:
        return one.plain
    if policy is EvidencePolicy.RESIDUES and one.any_tree is not None:
        is_exact = one.any_tree.parameters.kind == "exact"
        return one.plain if is_exact else one.fine
    return one.fine or one.plain
