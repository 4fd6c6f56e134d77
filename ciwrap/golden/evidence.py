"""From values to what a golden holds of them:

the tree, and the best evidence that fits its budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.errors import CiwrapError
from ciwrap.model import EvidencePolicy
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import Struct
from ciwrap.trees.build import DEFAULT_RESOURCES, build_tree, tree_parameters

if TYPE_CHECKING:
    from ciwrap.arrays.values import Values
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress
    from ciwrap.trees.build import Resources

# Data and residues are compressed on trial only if they are at most this many times their budget:
# beyond that hardly anything shrinks enough, and both trying and later decoding cost memory.
_TRIAL_FACTOR = 16


class Captured(Struct, frozen=True):
    """A variable ready for a golden.

    stored_bytes: its part of the file. engine: None if not from a file.
    """

    variable: _core.GoldenVariable
    stored_bytes: int
    engine: str | None = None


def capture(
    values: Values,
    settings: VariableSettings,
    identity: VariableId,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Captured:
    """Captures a variable by its evidence policy.

    `auto` takes the first that fits its budget, in compressed bytes of the golden: the data, the
    residues, and else the tree alone. Values are read once, or twice if the first choice did not
    fit. Raises UsageError for settings the dtype cannot have, and the errors of reading.
    """
    policy = settings.evidence
    data_trial = policy is EvidencePolicy.DATA or (
        policy is EvidencePolicy.AUTO
        and values.byte_count <= _TRIAL_FACTOR * settings.data_budget_bytes
    )
    if data_trial:
        found = _with_data(values, settings, identity, resources, progress)
        if policy is EvidencePolicy.DATA or found.stored_bytes <= settings.data_budget_bytes:
            return found
    plain = tree_parameters(values.dtype, settings, variable=identity.text)
    if policy is not EvidencePolicy.TREE:
        fine = tree_parameters(
            values.dtype, settings, residue_levels=settings.residue_levels, variable=identity.text
        )
        if fine.residue_levels > 1 and (
            policy is EvidencePolicy.RESIDUES
            or _packed_bytes(fine, values) <= _TRIAL_FACTOR * settings.residues_budget_bytes
        ):
            found = _with_tree(fine, values, identity, resources, progress)
            fits = found.stored_bytes <= settings.residues_budget_bytes
            if fits or policy is EvidencePolicy.RESIDUES:
                return found
    return _with_tree(plain, values, identity, resources, progress)


def _with_data(
    values: Values,
    settings: VariableSettings,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> Captured:
    parameters = tree_parameters(values.dtype, settings, variable=identity.text)
    data = values.read_all()
    progress.advance(len(data))
    try:
        tree = _core.build_tree(
            parameters, data, backend=resources.backend, threads=resources.threads
        )
        variable = _core.GoldenVariable(
            identity.name,
            values.shape,
            tree,
            iteration=identity.iteration,
            rank=identity.rank,
            data=data,
        )
        return Captured(variable, len(_core.encode_golden([variable])))
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise


def _with_tree(
    parameters: _core.TreeParameters,
    values: Values,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> Captured:
    tree, _, engine = build_tree(parameters, values, resources=resources, progress=progress)
    try:
        variable = _core.GoldenVariable(
            identity.name, values.shape, tree, iteration=identity.iteration, rank=identity.rank
        )
        return Captured(variable, len(_core.encode_golden([variable])), engine)
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise


def _packed_bytes(parameters: _core.TreeParameters, values: Values) -> int:
    """About how many bytes the packed residues take (cell-codes.md, section 8)."""
    packed = 1
    while parameters.residue_levels ** (packed + 1) <= 256:
        packed += 1
    return values.element_count * parameters.scalars_per_element // packed
