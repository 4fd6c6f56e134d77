"""From values to what a golden holds of them:

the tree, and the best evidence that fits its budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.core_errors import from_core_error
from ciwrap.golden.progress import NO_PROGRESS
from ciwrap.golden.values import as_bytes
from ciwrap.model import EvidencePolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.golden.progress import Progress
    from ciwrap.golden.values import Values
    from ciwrap.model import VariableId, VariableSettings

# Data and residues are compressed on trial only if they are at most this many times their budget:
# beyond that hardly anything shrinks enough, and both trying and later decoding cost memory.
_TRIAL_FACTOR = 16
_FILE_STEP_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Resources:
    """What the core may use. engine: "auto", "io_uring" or "pread"; threads: 0 for all."""

    backend: str = "auto"
    threads: int = 0
    engine: str = "auto"

    @property
    def backend_used(self) -> str:
        """The backend by its own name: `auto` is OpenMP where there is more than one thread."""
        if self.backend != "auto":
            return self.backend
        openmp = [item for item in _core.backends() if item["name"] == "openmp" and item["usable"]]
        threads = self.threads or max((int(item["concurrency"]) for item in openmp), default=1)
        return "openmp" if openmp and threads > 1 else "serial"


DEFAULT_RESOURCES = Resources()


@dataclass(frozen=True, slots=True)
class Captured:
    """A variable ready for a golden.

    stored_bytes: its part of the file. engine: None if not from a file.
    """

    variable: _core.GoldenVariable
    stored_bytes: int
    engine: str | None = None


def tree_parameters(
    dtype: str,
    settings: VariableSettings,
    *,
    residue_levels: int = 1,
    chunk_bytes: int | None = None,
    arity: int = 16,
    variable: str | None = None,
) -> _core.TreeParameters:
    """The core's parameters for a variable of that dtype. Raises UsageError naming the variable."""
    bound = settings.bound
    try:
        return _core.TreeParameters(
            dtype,
            atol=bound.atol,
            rtol=bound.rtol,
            ulps=bound.ulps,
            residue_levels=residue_levels,
            chunk_bytes=settings.chunk_bytes if chunk_bytes is None else chunk_bytes,
            arity=arity,
            equal_nan=settings.equal_nan,
            fill_values=settings.fill_values,
        )
    except _core.CoreError as error:
        raise from_core_error(error, variable=variable) from error


def feed(
    builders: Sequence[_core.TreeBuilder],
    values: Values,
    resources: Resources,
    progress: Progress = NO_PROGRESS,
    *,
    read_again: bool = False,
) -> str | None:
    """Streams all values, once, into several builders; memory is bounded.

    What lies on a device is hashed there; the builders have to be of that device's backend.
    read_again: the values will be, so a file is read through the system's cache. Returns the read
    engine, if one was used.
    """
    if values.device is not None:
        for builder in builders:
            builder.update_device(values.device.array)
        progress.advance(values.byte_count)
        return None
    region = values.region
    if region is None or region.byte_count == 0:
        for _, slab in values.slabs():
            data = as_bytes(slab)
            for builder in builders:
                builder.update(data)
            progress.advance(slab.nbytes)
        return None
    engine = None
    for start in range(0, region.byte_count, _FILE_STEP_BYTES):
        count = min(_FILE_STEP_BYTES, region.byte_count - start)
        engine = _core.update_builders(
            builders,
            region.path,
            region.offset + start,
            count,
            engine=resources.engine,
            direct="never" if read_again else "auto",
        )
        progress.advance(count)
    return engine


def build_tree(
    parameters: _core.TreeParameters,
    values: Values,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    golden: _core.Tree | None = None,
    progress: Progress = NO_PROGRESS,
    read_again: bool = False,
) -> tuple[_core.Tree, _core.Drift | None, str | None]:
    """The tree of the values, the drift against `golden` if that has residues, and the engine used.

    read_again: as for `feed`. An array on a device is hashed by that device, whatever `resources`
    say. Raises the errors of `from_core_error` naming the file, and those of the reader.
    """
    region = values.region
    device = values.device
    try:
        builder = _core.TreeBuilder(
            parameters,
            values.element_count * parameters.scalars_per_element,
            golden=golden,
            backend=resources.backend if device is None else device.backend,
            threads=resources.threads,
        )
        engine = feed([builder], values, resources, progress, read_again=read_again)
        tree = builder.finish()
        return tree, builder.drift, engine
    except _core.CoreError as error:
        raise from_core_error(error, file=None if region is None else region.path) from error


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
    except _core.CoreError as error:
        raise from_core_error(error, variable=identity.text) from error


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
    except _core.CoreError as error:
        raise from_core_error(error, variable=identity.text) from error


def _packed_bytes(parameters: _core.TreeParameters, values: Values) -> int:
    """About how many bytes the packed residues take (cell-codes.md, section 8)."""
    packed = 1
    while parameters.residue_levels ** (packed + 1) <= 256:
        packed += 1
    return values.element_count * parameters.scalars_per_element // packed
