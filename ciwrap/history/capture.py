"""Capturing a run: the trees of its checkpoints in one file, new ones added as they come."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.compare.outputs import Catalog
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    ExitCode,
    OutputMissingError,
    StillWrittenError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
    from_core_error,
)
from ciwrap.golden.capture import DEFAULT_RESOURCES, Resources, tree_parameters
from ciwrap.golden.progress import NO_PROGRESS
from ciwrap.golden.values import as_bytes
from ciwrap.history.container import CaptureFile, CaptureWriter
from ciwrap.history.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    Directory,
    StoredTree,
    by_identity,
    encode_checkpoint,
    read_checkpoint,
    read_index,
    read_tree,
)
from ciwrap.history.listing import (
    by_checkpoint,
    checksum_of,
    relative_path,
    source_files,
    why_stale,
    youngest_ns,
)
from ciwrap.model import VariableSettings
from ciwrap.readers.layout import FoundOutputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ciwrap.compare.runs import Rules
    from ciwrap.golden.progress import Progress
    from ciwrap.golden.values import Values
    from ciwrap.history.index import CheckpointKey, SourceFile
    from ciwrap.model import VariableId
    from ciwrap.readers.base import VariableInfo
    from ciwrap.readers.layout import OutputFile

# Large enough for scattered reads at nearly the speed of a stream, and for trees of 1/4000 of the
# data; small enough that one differing number costs little to look at.
DEFAULT_CHUNK_BYTES = 64 * 1024
DEFAULT_SETTLE_SECONDS = 1.0
# So much work at most is lost to a crash.
_COMMIT_SECONDS = 2.0
_FILE_STEP_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How a run is captured.

    residues: whether other runs can be held against this capture. against: such a capture of
    another run. checksums: whether the files' bytes are hashed, too, so that a copy with other
    times is known again. settle_seconds: files younger than this are looked at last and waited for.
    """

    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    residues: bool = False
    against: Path | None = None
    checksums: bool = False
    settle_seconds: float = DEFAULT_SETTLE_SECONDS


@dataclass(slots=True)
class CaptureReport:
    """What `capture_run` did. left_alone: what is not in the capture, and why."""

    captured: list[CheckpointKey] = field(default_factory=list)
    kept: list[CheckpointKey] = field(default_factory=list)
    dropped: list[CheckpointKey] = field(default_factory=list)
    left_alone: list[CiwrapError] = field(default_factory=list)
    without_tree: list[tuple[VariableId, str]] = field(default_factory=list)
    variable_count: int = 0
    bytes_read: int = 0
    capture_bytes: int = 0
    seconds: float = 0.0
    root: str = ""


def capture_run(
    run: Path,
    found: FoundOutputs,
    target: Path,
    rules: Rules,
    options: CaptureOptions | None = None,
    *,
    rebuild: bool = False,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CaptureReport:
    """Brings the capture `target` up to date with the run's files.

    Checkpoints whose files look as they did are kept unread; those whose files have gone are
    dropped. rebuild: begin anew. Raises UsageError, WriteFailedError, LockBusyError, and the errors
    of opening `against`; what cannot be captured is in the report.
    """
    started = time.monotonic()
    options = CaptureOptions() if options is None else options
    work = target.with_name(target.name + ".new") if rebuild else target
    if rebuild:
        with contextlib.suppress(FileNotFoundError):
            work.unlink()
    report = CaptureReport()
    for path in found.unmatched:
        report.left_alone.append(
            UnsupportedFormatError(
                "is not captured: no reader knows its suffix, or no layout fits its path",
                file=path,
                remedy="leave it out with 'exclude', or give 'format' or 'layout'",
            )
        )
    with contextlib.ExitStack() as stack:
        against = None
        if options.against is not None:
            against = _Against(stack.enter_context(CaptureFile(options.against)))
        session = _Session(run, rules, options, against, resources, progress, report)
        old = _old_checkpoints(work)
        writer = stack.enter_context(CaptureWriter(work))
        index = session.update(writer, by_checkpoint(found), old)
        report.root = index.root.hex()
    if rebuild:
        try:
            work.replace(target)
        except OSError as error:
            raise WriteFailedError(error.strerror or str(error), file=target) from error
    report.capture_bytes = target.stat().st_size
    report.seconds = time.monotonic() - started
    return report


def _old_checkpoints(path: Path) -> dict[CheckpointKey, tuple[Directory, CapturedCheckpoint]]:
    """What an earlier call has captured; nothing if there is nothing that can be read."""
    try:
        with CaptureFile(path) as capture:
            index = read_index(capture)
            return {
                key: (directory, read_checkpoint(capture, directory))
                for key, directory in index.checkpoints.items()
            }
    except (OutputMissingError, CorruptCaptureError, UnsupportedFormatError):
        return {}


class _Against:
    """The other run's capture: its fine trees by variable."""

    def __init__(self, capture: CaptureFile) -> None:
        self._capture = capture
        self._variables: dict[VariableId, CapturedVariable] = {}
        index = read_index(capture)
        for directory in index.checkpoints.values():
            self._variables.update(by_identity(read_checkpoint(capture, directory).variables))
        if self._variables and all(one.fine is None for one in self._variables.values()):
            raise UsageError(
                "has no residues, so no run can be captured against it",
                file=capture.path,
                remedy="capture that run with --residues",
            )

    def fine(self, identity: VariableId) -> StoredTree | None:
        variable = self._variables.get(identity)
        return None if variable is None else variable.fine

    def tree(self, identity: VariableId) -> _core.Tree:
        variable = self._variables[identity]
        assert variable.fine is not None
        return read_tree(self._capture, variable, variable.fine)


@dataclass(slots=True)
class _Session:
    run: Path
    rules: Rules
    options: CaptureOptions
    against: _Against | None
    resources: Resources
    progress: Progress
    report: CaptureReport

    def update(
        self,
        writer: CaptureWriter,
        groups: dict[CheckpointKey, list[OutputFile]],
        old: dict[CheckpointKey, tuple[Directory, CapturedCheckpoint]],
    ) -> CaptureIndex:
        index = CaptureIndex({key: old[key][0] for key in groups if key in old})
        self.report.dropped = [key for key in old if key not in groups]
        pending: list[CheckpointKey] = []
        for key, files in groups.items():
            if key in old and self._is_current(files, old[key][1]):
                self.report.kept.append(key)
                self.report.variable_count += len(old[key][1].variables)
            else:
                index.checkpoints.pop(key, None)
                pending.append(key)
        committed = time.monotonic()
        total = sum(_sizes(groups[key]) for key in pending)
        self.progress.begin(str(self.run), total)
        try:
            for key in self._oldest_first(pending, groups):
                try:
                    checkpoint = self._capture(writer, key, groups[key])
                except CiwrapError as error:
                    if error.exit_code is ExitCode.USAGE or isinstance(error, WriteFailedError):
                        raise
                    self.report.left_alone.append(error)
                    continue
                section = writer.append_packed(encode_checkpoint(checkpoint))
                index.checkpoints[key] = Directory(key, section, checkpoint.digest)
                self.report.captured.append(key)
                self.report.variable_count += len(checkpoint.variables)
                if time.monotonic() - committed > _COMMIT_SECONDS:
                    writer.commit(index.encode())
                    committed = time.monotonic()
        finally:
            self.progress.end()
        writer.commit(index.encode())
        return index

    def _is_current(self, files: Sequence[OutputFile], checkpoint: CapturedCheckpoint) -> bool:
        try:
            now = source_files(self.run, files)
        except CiwrapError:
            return False
        if why_stale(checkpoint.files, now, self.run) is not None:
            return False
        if self.options.checksums and any(file.checksum is None for file in checkpoint.files):
            return False
        return all(self._is_as_asked(variable) for variable in checkpoint.variables)

    def _is_as_asked(self, variable: CapturedVariable) -> bool:
        settings = self.rules.settings_for(variable.identity, variable.dtype)
        if self.rules.is_ignored(variable.identity) or not has_own_tree(settings):
            return True
        if variable.plain is None:
            return False
        if variable.plain.parameters != self._parameters(variable.dtype, settings, 1):
            return False
        fine = self._parameters(variable.dtype, settings, settings.residue_levels)
        needs_fine = self.options.residues and fine.residue_levels > 1
        if needs_fine and (variable.fine is None or variable.fine.parameters != fine):
            return False
        if self.against is None:
            return True
        theirs = self.against.fine(variable.identity)
        ours = variable.relative
        return theirs is None or (ours is not None and ours.against == theirs.root)

    def _oldest_first(
        self, pending: Iterable[CheckpointKey], groups: dict[CheckpointKey, list[OutputFile]]
    ) -> list[CheckpointKey]:
        """So that the youngest, perhaps still being written, have the most time to settle."""

        def age(key: CheckpointKey) -> tuple[int, int]:
            try:
                young = youngest_ns(source_files(self.run, groups[key]))
            except CiwrapError:
                return (1, 0)
            return (int(time.time_ns() - young < self.options.settle_seconds * 1e9), young)

        ages = {key: age(key) for key in pending}
        settled = [key for key in ages if ages[key][0] == 0]
        return settled + sorted((key for key in ages if ages[key][0]), key=lambda key: ages[key][1])

    def _capture(
        self, writer: CaptureWriter, key: CheckpointKey, files: list[OutputFile]
    ) -> CapturedCheckpoint:
        before = self._settled(files)
        with Catalog(FoundOutputs(tuple(files))) as catalog:
            for error in catalog.errors:
                raise error
            variables = [self._variable(writer, identity, catalog) for identity in catalog.entries]
        if self.options.checksums:
            before = tuple(
                replace(file, checksum=checksum_of(self.run / file.path)) for file in before
            )
        self._refuse_change(before, files)
        return CapturedCheckpoint(key, before, tuple(variables))

    def _settled(self, files: Sequence[OutputFile]) -> tuple[SourceFile, ...]:
        """The files once the youngest is old enough, and no longer changes."""
        seen = source_files(self.run, files)
        age = (time.time_ns() - youngest_ns(seen)) / 1e9
        if age < self.options.settle_seconds:
            time.sleep(min(self.options.settle_seconds, self.options.settle_seconds - age))
            self._refuse_change(seen, files)
        return seen

    def _refuse_change(self, seen: Sequence[SourceFile], files: Sequence[OutputFile]) -> None:
        plain = [replace(file, checksum=None) for file in seen]
        reason = why_stale(plain, source_files(self.run, files), self.run)
        if reason is not None:
            raise StillWrittenError(
                f"was left alone, it is still being written: {reason}",
                file=files[0].path.parent,
                remedy="capture again once it is complete",
            )

    def _variable(
        self, writer: CaptureWriter, identity: VariableId, catalog: Catalog
    ) -> CapturedVariable:
        info = catalog.entries[identity].info
        shape = tuple(info.shape)
        if self.rules.is_ignored(identity):
            return CapturedVariable(identity, info.dtype, shape, reason="it is ignored")
        settings = self.rules.settings_for(identity, info.dtype)
        if info.fault is not None:
            self.report.without_tree.append((identity, info.fault))
            return CapturedVariable(identity, info.dtype, shape, reason=info.fault)
        if not has_own_tree(settings):
            reason = "it is compared in a way that trees do not know, such as with a mask"
            self.report.without_tree.append((identity, reason))
            return CapturedVariable(identity, info.dtype, shape, reason=reason)
        values = catalog.values(identity)
        plan = {"plain": self._parameters(info.dtype, settings, 1, identity)}
        fine = self._parameters(info.dtype, settings, settings.residue_levels, identity)
        if self.options.residues and fine.residue_levels > 1:
            plan["fine"] = fine
        golden = None
        theirs = None if self.against is None else self.against.fine(identity)
        if theirs is not None and self.against is not None and self._fits(theirs, fine):
            plan["relative"] = theirs.parameters
            golden = self.against.tree(identity)
            if golden.scalar_count != values.element_count * fine.scalars_per_element:
                del plan["relative"]
        trees = self._build(writer, plan, values, golden)
        self.report.bytes_read += values.byte_count
        return CapturedVariable(
            identity,
            info.dtype,
            shape,
            trees.get("plain"),
            trees.get("fine"),
            trees.get("relative"),
            region=self._region(info),
        )

    def _region(self, info: VariableInfo) -> tuple[str, int] | None:
        if info.region is None:
            return None
        return relative_path(self.run, info.region.path), info.region.offset

    @staticmethod
    def _fits(theirs: StoredTree, fine: _core.TreeParameters) -> bool:
        """Whether another run's tree was made with what is asked for now."""
        p = theirs.parameters
        return (p.dtype, p.atol, p.rtol, p.ulps, p.equal_nan, p.fill_values) == (
            fine.dtype,
            fine.atol,
            fine.rtol,
            fine.ulps,
            fine.equal_nan,
            fine.fill_values,
        )

    def _parameters(
        self,
        dtype: str,
        settings: VariableSettings,
        residue_levels: int,
        identity: VariableId | None = None,
    ) -> _core.TreeParameters:
        return tree_parameters(
            dtype,
            settings,
            residue_levels=residue_levels,
            chunk_bytes=self.options.chunk_bytes,
            variable=None if identity is None else identity.text,
        )

    def _build(
        self,
        writer: CaptureWriter,
        plan: dict[str, _core.TreeParameters],
        values: Values,
        golden: _core.Tree | None,
    ) -> dict[str, StoredTree]:
        """All trees of a variable in one go through its data."""
        region = values.region
        try:
            builders = {
                name: _core.TreeBuilder(
                    parameters,
                    values.element_count * parameters.scalars_per_element,
                    golden=golden if name == "relative" else None,
                    backend=self.resources.backend,
                    threads=self.resources.threads,
                )
                for name, parameters in plan.items()
            }
            if region is None or region.byte_count == 0:
                for _, slab in values.slabs():
                    for builder in builders.values():
                        builder.update(as_bytes(slab))
                    self.progress.advance(slab.nbytes)
            else:
                for start in range(0, region.byte_count, _FILE_STEP_BYTES):
                    count = min(_FILE_STEP_BYTES, region.byte_count - start)
                    for builder in builders.values():
                        builder.update_file(
                            region.path,
                            region.offset + start,
                            count,
                            engine=self.resources.engine,
                        )
                    self.progress.advance(count)
            return {
                name: _stored(writer, builder, golden if name == "relative" else None)
                for name, builder in builders.items()
            }
        except _core.CoreError as error:
            raise from_core_error(error, file=None if region is None else region.path) from error


def _stored(
    writer: CaptureWriter, builder: _core.TreeBuilder, golden: _core.Tree | None
) -> StoredTree:
    tree = builder.finish()
    drift = builder.drift
    residues = None if golden is not None or tree.residues is None else tree.residues
    return StoredTree(
        tree.parameters,
        tree.root.hex(),
        writer.append(tree.digests.tobytes()),
        None if residues is None else writer.append(residues.tobytes()),
        None if golden is None else golden.root.hex(),
        None if drift is None else float(drift.max_share),
    )


# What a tree knows of a variable's settings, and what does not change how it is compared.
_KNOWN_TO_TREES = frozenset(
    {
        *("bound", "residue_levels", "chunk_bytes", "evidence", "data_budget_bytes"),
        *("residues_budget_bytes", "equal_nan", "fill_values", "strict_dtype", "strict_shape"),
    }
)


def has_own_tree(settings: VariableSettings) -> bool:
    """Whether the variable is compared number by number with its namesake, so that trees tell; not
    with a mask, and not in any other way that looks beyond the variable itself.
    """
    plain = VariableSettings()
    return all(
        getattr(settings, item.name) == getattr(plain, item.name)
        for item in fields(settings)
        if item.name not in _KNOWN_TO_TREES
    )


def _sizes(files: Sequence[OutputFile]) -> int:
    total = 0
    for file in files:
        with contextlib.suppress(OSError):
            total += file.path.stat().st_size
    return total
