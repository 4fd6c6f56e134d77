"""Trees of values: what the core is asked for, and how values are streamed into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.errors import CiwrapError
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.arrays.values import Values
    from ciwrap.model import VariableSettings
    from ciwrap.progress import Progress

_FILE_STEP_BYTES = 256 << 20


class Resources(Struct, frozen=True):
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
    except CiwrapError as error:
        error.blame(variable=variable)
        raise


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


def tree_builder(
    parameters: _core.TreeParameters,
    values: Values,
    resources: Resources,
    golden: _core.Tree | None = None,
) -> _core.TreeBuilder:
    """What takes these values in order. golden: to round them by its residues, if it has any. An
    array on a device is hashed by that device, whatever `resources` say.
    """
    device = values.device
    return _core.TreeBuilder(
        parameters,
        values.element_count * parameters.scalars_per_element,
        golden=golden,
        backend=resources.backend if device is None else device.backend,
        threads=resources.threads,
    )


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

    read_again: as for `feed`. Raises CiwrapError naming the file: the core's errors, and the
    reader's.
    """
    region = values.region
    try:
        builder = tree_builder(parameters, values, resources, golden)
        engine = feed([builder], values, resources, progress, read_again=read_again)
        tree = builder.finish()
        return tree, builder.drift, engine
    except CiwrapError as error:
        error.blame(file=None if region is None else region.path)
        raise
