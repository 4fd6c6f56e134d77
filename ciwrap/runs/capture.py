"""Captures a run: the trees of its checkpoints in one file, new ones added as they come."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap import __version__, _core
from ciwrap.arrays.values import Shaped, Values
from ciwrap.base.errors import (
    CiwrapError,
    CorruptCaptureError,
    ExitCode,
    OutputMissingError,
    StillWrittenError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.progress import NO_PROGRESS, Progress
from ciwrap.formats.catalog import Catalog, Rules
from ciwrap.formats.find_outputs import FoundOutputs, OutputFile
from ciwrap.formats.reader import VariableInfo
from ciwrap.formats.source_files import (
    CheckpointKey,
    SourceFile,
    checksum_of,
    relative_path,
    source_files,
    statuses_of,
    why_stale,
    youngest_ns,
)
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources, describe_bound, feed, tree_parameters
from ciwrap.model import VariableId, VariableSettings
from ciwrap.runs.capture_file import CaptureFile, CaptureWriter, replaced_capture, was_completed
from ciwrap.runs.capture_index import (
    BY_STEP,
    IGNORED,
    IN_AN_ORDER,
    IN_ANOTHER_WAY,
    NOT_TO_ITS_END,
    Bounds,
    CapturedCheckpoint,
    CapturedVariable,
    CaptureHeader,
    CaptureIndex,
    Directory,
    FineIdentity,
    GivenSnapshot,
    KeptSnapshot,
    LeftOut,
    MadeWith,
    StoredTree,
    appended,
    encode_checkpoint,
    encode_index,
    left_out_of,
    read_checkpoint,
    read_index,
    read_tree,
    rules_with,
)
from ciwrap.runs.sides import by_checkpoint

# Large enough for scattered reads at nearly the speed of a stream, and for trees of 1/4000 of the
# data; small enough that one differing number costs little to look at.
DEFAULT_CHUNK_BYTES = 64 * 1024

# Why a variable has no tree that nobody asked for.


class Against:
    """The other run's capture: its trees by variable."""

    def __init__(self, capture: CaptureFile) -> None:
        self._capture = capture
        self._variables: dict[VariableId, CapturedVariable] = {}
        index = read_index(capture)
        for directory in index.checkpoints.values():
            for one in read_checkpoint(capture, directory).variables:
                self._variables[one.identity] = one
        plain = [one.plain.parameters for one in self._variables.values() if one.plain is not None]
        # What is compared exactly needs no residues.
        needs_residues = any(parameters.kind != "exact" for parameters in plain)
        if needs_residues and all(one.fine is None for one in self._variables.values()):
            raise UsageError(
                "has no residues, so no run can be captured against it",
                file=capture.path,
                remedy="capture that run with --residues",
            )
        self.header = index.header

    def fine(self, identity: VariableId) -> StoredTree | None:
        """The variable's tree with residues."""
        variable = self._variables.get(identity)
        return None if variable is None else variable.fine

    def tree(self, identity: VariableId) -> _core.Tree:
        """The variable's tree with residues, read. Raises CorruptCaptureError."""
        variable = self._variables[identity]
        assert variable.fine is not None
        return read_tree(self._capture, variable, variable.fine)


class TreeMaker:
    """Makes the trees that a capture is to have; counts what it reads.

    residues: whether other runs can be compared with this one. against: such a run. earlier: what
    the capture that is there says of itself. is_anew: whether that one is given up; then only what
    nobody asks for otherwise is taken from it. without_bound: names of variables for which no bound
    is known where others have one.
    """

    def __init__(
        self,
        run: Path,
        rules: Rules,
        *,
        chunk_bytes: int | None,
        residues: bool,
        against: Against | None,
        resources: Resources,
        progress: Progress,
        earlier: CaptureHeader | None = None,
        is_anew: bool = False,
    ) -> None:
        self._run = run
        self._kept = None if earlier is None or is_anew else Bounds.of_header(earlier)
        theirs = None if against is None else against.header
        self.bounds, self._rules = _bounds_of(rules, theirs, earlier, self._kept)
        self.chunk_bytes = _chunk_bytes_of(chunk_bytes, theirs, earlier, is_anew=is_anew)
        self._residues = residues
        self._against = against
        self._resources = resources
        self._progress = progress
        self._seen: dict[tuple[str, str], VariableSettings] = {}
        self.bytes_read = 0
        self.without_tree: list[tuple[VariableId, str]] = []
        self.without_bound: dict[str, None] = {}

    def _settings_of(self, identity: VariableId, what: Shaped) -> VariableSettings:
        """Raises UsageError if the capture that is there was made with another bound."""
        settings, dtype = self._rules.settings_for(identity, what), what.dtype
        name = identity.text if self.bounds.by_place else identity.name
        if self._seen.get((name, dtype)) == settings:
            return settings
        if self._kept is not None:
            self._kept.refuse_other(settings, identity, dtype)
        if self._rules.bounds_are_given and self.bounds.origin != self._rules.bounds_from:
            known = self.bounds.settings_for(settings, identity, dtype)
            if known is None and settings.bound.is_exact:
                self.without_bound[identity.name] = None
        self.bounds.note(settings, identity, dtype)
        self._seen[name, dtype] = settings
        return settings

    def is_as_asked(self, variable: CapturedVariable) -> bool:
        """Whether an earlier capture's trees are those that would be made now."""
        if self._rules.is_ignored(variable.identity):
            return True
        settings = self._settings_of(variable.identity, variable.signature)
        if not settings.has_own_trees:
            return True
        if variable.plain is None:
            return variable.reason == BY_STEP
        if variable.plain.parameters != self._parameters(variable.dtype, settings, 1):
            return False
        fine = self._parameters(variable.dtype, settings, settings.residue_levels)
        needs_fine = self._residues and fine.residue_levels > 1
        if needs_fine and (variable.fine is None or variable.fine.parameters != fine):
            return False
        if self._against is None:
            return True
        theirs = self._against.fine(variable.identity)
        ours = variable.relative
        return theirs is None or (ours is not None and ours.against == theirs.identity)

    def make(
        self, writer: CaptureWriter, identity: VariableId, catalog: Catalog
    ) -> CapturedVariable:
        """A variable's trees, appended to `writer`, or why it has none."""
        info = catalog.entries[identity].info
        shape = tuple(info.shape)
        if self._rules.is_ignored(identity):
            return _without_tree(identity, info, IGNORED)
        settings = self._settings_of(identity, info)
        if info.fault is not None:
            self.without_tree.append((identity, info.fault))
            return _without_tree(identity, info, info.fault)
        if not settings.has_own_trees:
            reason = _beyond_trees(settings)
            self.without_tree.append((identity, reason))
            return _without_tree(identity, info, reason)
        values = catalog.values(identity)
        if values.series is not None and values.series.steps is not None:
            self.without_tree.append((identity, BY_STEP))
            return _without_tree(identity, info, BY_STEP)
        plan = {"plain": self._parameters(info.dtype, settings, 1, identity)}
        fine = self._parameters(info.dtype, settings, settings.residue_levels, identity)
        if self._residues and fine.residue_levels > 1:
            plan["fine"] = fine
        golden = None
        theirs = None if self._against is None else self._against.fine(identity)
        if theirs is not None and self._against is not None:
            self._refuse_other_bound(theirs, fine, identity)
            plan["relative"] = theirs.parameters
            golden = self._against.tree(identity)
            if (
                golden.parameters.dtype != info.dtype
                or golden.scalar_count != values.element_count * fine.scalars_per_element
            ):
                del plan["relative"]
        trees = self._build(
            writer, plan, values, golden, None if theirs is None else theirs.identity
        )
        self.bytes_read += values.byte_count
        return CapturedVariable(
            identity,
            info.dtype,
            shape,
            trees.get("plain"),
            trees.get("fine"),
            trees.get("relative"),
            region=self._region(info),
            labels=info.labels,
        )

    def _region(self, info: VariableInfo) -> tuple[str, int] | None:
        if info.region is None:
            return None
        return relative_path(self._run, info.region.path), info.region.offset

    @staticmethod
    def _refuse_other_bound(
        theirs: StoredTree, fine: _core.TreeParameters, identity: VariableId
    ) -> None:
        """Raises UsageError if another bound is asked for than the other run was captured with."""
        p = theirs.parameters
        # In words, which are exact: a fill value that is NaN does not equal itself.
        asked, known = describe_bound(fine), describe_bound(p)
        if p.dtype == fine.dtype and asked != known:
            raise UsageError(
                f"{asked} is asked for, but the run to compare it with was captured with {known}",
                variable=identity.text,
                remedy="leave the bound out to take that run's, or capture that run anew",
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
            chunk_bytes=self.chunk_bytes,
            variable=None if identity is None else identity.text,
        )

    def _build(
        self,
        writer: CaptureWriter,
        plan: dict[str, _core.TreeParameters],
        values: Values,
        golden: _core.Tree | None,
        against: FineIdentity | None,
    ) -> dict[str, StoredTree]:
        """All trees of a variable in one go through its data."""
        region = values.region
        try:
            builders = {
                name: _core.TreeBuilder(
                    parameters,
                    values.element_count * parameters.scalars_per_element,
                    golden=golden if name == "relative" else None,
                    backend=self._resources.backend,
                    threads=self._resources.threads,
                    summaries=True,
                )
                for name, parameters in plan.items()
            }
            feed(list(builders.values()), values, self._resources, self._progress)
            return {
                name: _stored(writer, builder, against if name == "relative" else None)
                for name, builder in builders.items()
            }
        except CiwrapError as error:
            error.blame(file=None if region is None else region.path)
            raise


def _bounds_of(
    rules: Rules,
    theirs: CaptureHeader | None,
    earlier: CaptureHeader | None,
    kept: Bounds | None,
) -> tuple[Bounds, Rules]:
    """What the capture's bounds are to be, and the rules with them.

    Those that are asked for; else those of the capture to be compared with; else those that the
    capture has already.
    """
    if rules.bounds_are_given:
        return kept or Bounds.of_rules(rules), rules
    inherited = theirs or earlier
    if inherited is None:
        return Bounds.of_rules(rules), rules
    bounds = Bounds.of_header(inherited)
    if theirs is not None:
        bounds.origin = "taken from --against"
    return bounds, rules_with(rules, bounds, "a capture")


def _chunk_bytes_of(
    asked: int | None,
    theirs: CaptureHeader | None,
    earlier: CaptureHeader | None,
    *,
    is_anew: bool,
) -> int:
    """The size of a chunk. Raises UsageError for one that would make trees that do not fit."""
    if asked is not None and theirs is not None and asked != theirs.chunk_bytes:
        raise UsageError(
            f"--chunk-bytes {asked}, but the capture to compare the run with has blocks"
            f" of {theirs.chunk_bytes} bytes",
            remedy="leave --chunk-bytes out",
        )
    inherited = theirs or earlier
    found = DEFAULT_CHUNK_BYTES if inherited is None else inherited.chunk_bytes
    found = found if asked is None else asked
    if earlier is not None and not is_anew and found != earlier.chunk_bytes:
        raise UsageError(
            f"the existing capture has blocks of {earlier.chunk_bytes} bytes, but {found} are asked"
            " for",
            remedy="leave --chunk-bytes out to keep them, or begin anew with --rebuild",
        )
    return found


def _beyond_trees(settings: VariableSettings) -> str:
    """Why a variable has no tree that would be of use."""
    if settings.align_by is not None:
        return (
            f"{IN_AN_ORDER}{settings.align_by!r}, of which trees of the files as they are say"
            " nothing"
        )
    return IN_ANOTHER_WAY


def _without_tree(identity: VariableId, info: VariableInfo, reason: str) -> CapturedVariable:
    return CapturedVariable(
        identity, info.dtype, tuple(info.shape), reason=reason, labels=info.labels
    )


def _stored(
    writer: CaptureWriter, builder: _core.TreeBuilder, against: FineIdentity | None
) -> StoredTree:
    tree = builder.finish()
    drift, summaries = builder.drift, builder.summaries
    digests = writer.append(tree.digests.tobytes())
    residues = None
    if against is None and tree.parameters.residue_levels > 1:
        # An array of nothing has none, and is compared with all the same.
        residues = writer.append(b"" if tree.residues is None else tree.residues.tobytes())
    return StoredTree(
        MadeWith.of(tree.parameters),
        tree.root,
        digests,
        residues,
        against,
        None if drift is None else float(drift.max_share),
        None if summaries is None else writer.append_packed(summaries.tobytes()),
    )


DEFAULT_SETTLE_SECONDS = 1.0
# So much work at most is lost to a crash, or as many times what a commit takes: each one writes the
# index of all that is there, so without a pause that grows with it the whole would grow with the
# square of the number of checkpoints.
_COMMIT_SECONDS = 2.0
_COMMIT_TIMES = 20


class CaptureOptions(Struct, frozen=True):
    """How a run is captured.

    chunk_bytes: None for those of `against`, of the capture that is there, or else the default.

    residues: whether other runs can be compared with this capture. against: such a capture of
    another run. checksums: whether the files' bytes are hashed, too, so that a copy with other
    times is known again. settle_seconds: files younger than this are looked at last and waited for.
    snapshot: of the environment; it is kept if anything is captured anew.
    """

    chunk_bytes: int | None = None
    residues: bool = False
    against: Path | None = None
    checksums: bool = False
    settle_seconds: float = DEFAULT_SETTLE_SECONDS
    layout: str | None = None
    snapshot: GivenSnapshot | None = None


class CaptureReport(Struct):
    """What `capture_run` did. left_alone: what is not in the capture, and why. header: what the
    capture now says of itself. without_bound: as in `TreeMaker`.
    """

    captured: list[CheckpointKey] = field(default_factory=list)
    kept: list[CheckpointKey] = field(default_factory=list)
    dropped: list[CheckpointKey] = field(default_factory=list)
    left_alone: list[CiwrapError] = field(default_factory=list)
    without_tree: list[tuple[VariableId, str]] = field(default_factory=list)
    variable_count: int = 0
    bytes_read: int = 0
    capture_bytes: int = 0
    seconds: float = 0.0
    identity: str = ""
    header: CaptureHeader | None = None
    without_bound: tuple[str, ...] = ()


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
    dropped. The bound and the size of chunks are the capture's as a whole: what nobody asks for is
    as in `against`, or else as it was. rebuild: begin anew. Raises UsageError, also if something
    else is asked for than the capture was made with and it is not to be begun anew,
    WriteFailedError, LockBusyError, and the errors of opening `against`; what cannot be captured is
    in the report.
    """
    started = time.monotonic()
    options = CaptureOptions() if options is None else options
    earlier = _earlier(target, may_be_lost=rules.bounds_are_given or rebuild)
    report = CaptureReport()
    for path in found.unmatched:
        report.left_alone.append(
            UnsupportedFormatError(
                "is not captured: no layout fits its path",
                file=path,
                remedy="fix the layout, or leave it out with --exclude",
            )
        )
    with contextlib.ExitStack() as stack:
        against = None
        if options.against is not None:
            against = Against(stack.enter_context(CaptureFile(options.against)))
        maker = TreeMaker(
            run,
            rules,
            chunk_bytes=options.chunk_bytes,
            residues=options.residues,
            against=against,
            resources=resources,
            progress=progress,
            earlier=None if earlier is None else earlier.header,
            is_anew=rebuild,
        )
        former = None if rebuild or earlier is None else earlier.header
        known = None if former is None else former.snapshot
        session = _Session(run, options, maker, progress, report, known)
        old = {} if rebuild or earlier is None else earlier.checkpoints
        written = replaced_capture(target) if rebuild else CaptureWriter(target)
        writer = stack.enter_context(written)
        index = session.update(writer, by_checkpoint(found), old)
        report.identity = index.identity.hex()
        report.header, report.without_bound = index.header, tuple(maker.without_bound)
        report.without_tree, report.bytes_read = maker.without_tree, maker.bytes_read
    report.capture_bytes = target.stat().st_size
    report.seconds = time.monotonic() - started
    return report


class _Earlier(Struct, frozen=True):
    """What an earlier call has captured."""

    header: CaptureHeader
    checkpoints: dict[CheckpointKey, tuple[Directory, CapturedCheckpoint]]


def _earlier(path: Path, *, may_be_lost: bool) -> _Earlier | None:
    """What already exists; None if nothing was ever completed.

    may_be_lost: whether nothing is to be kept of a capture that is there and cannot be read.
    Raises UsageError else, since its bound would be lost unseen.
    """
    try:
        with CaptureFile(path) as capture:
            index = read_index(capture)
            try:
                found = {
                    key: (directory, read_checkpoint(capture, directory))
                    for key, directory in index.checkpoints.items()
                }
            except CorruptCaptureError:
                found = {}
            return _Earlier(index.header, found)
    except OutputMissingError:
        return None
    except (CorruptCaptureError, UnsupportedFormatError) as error:
        if may_be_lost or not was_completed(path):
            return None
        raise UsageError(
            f"{error.message}, so the bound that it was made with is not known",
            file=path,
            remedy="give the bound, or begin anew with --rebuild",
        ) from error


class _Session(Struct):
    run: Path
    options: CaptureOptions
    maker: TreeMaker
    progress: Progress
    report: CaptureReport
    snapshot: KeptSnapshot | None

    def update(
        self,
        writer: CaptureWriter,
        groups: dict[CheckpointKey, list[OutputFile]],
        old: dict[CheckpointKey, tuple[Directory, CapturedCheckpoint]],
    ) -> CaptureIndex:
        kept: list[CapturedCheckpoint] = []
        known = {key: old[key][0] for key in groups if key in old}
        index = CaptureIndex(self._header(kept, ()), known)
        self.report.dropped = [key for key in old if key not in groups]
        pending: list[CheckpointKey] = []
        for key, files in groups.items():
            if key in old and self._is_current(files, old[key][1]):
                self.report.kept.append(key)
                kept.append(old[key][1])
                self.report.variable_count += len(old[key][1].variables)
            else:
                index.checkpoints.pop(key, None)
                pending.append(key)
        next_commit = time.monotonic() + _COMMIT_SECONDS
        total = sum(one.st_size for key in pending for one in statuses_of(groups[key]))
        self.progress.begin(str(self.run), total)
        try:
            for key in self._oldest_first(pending, groups):
                try:
                    checkpoint = self._capture(writer, key, groups[key])
                    row = encode_checkpoint(checkpoint, self.run)
                except CiwrapError as error:
                    if error.exit_code is ExitCode.USAGE or isinstance(error, WriteFailedError):
                        raise
                    self.report.left_alone.append(_of_checkpoint(error, groups[key]))
                    continue
                section = writer.append_packed(row)
                index.checkpoints[key] = Directory(key, section, checkpoint.digest)
                kept.append(checkpoint)
                self.report.captured.append(key)
                self.snapshot = appended(writer, self.options.snapshot, self.snapshot)
                self.report.variable_count += len(checkpoint.variables)
                if time.monotonic() > next_commit:
                    next_commit = self._commit(writer, index, kept, (NOT_TO_ITS_END,))
        finally:
            self.progress.end()
        self._commit(writer, index, kept, left_out_of(self.run, self.report.left_alone))
        return index

    def _commit(
        self,
        writer: CaptureWriter,
        index: CaptureIndex,
        kept: Sequence[CapturedCheckpoint],
        left_out: tuple[LeftOut, ...],
    ) -> float:
        """Makes what is captured so far count; returns when to do so again (`time.monotonic`)."""
        began = time.monotonic()
        index.header = self._header(kept, left_out)
        writer.commit(encode_index(index))
        ended = time.monotonic()
        return ended + max(_COMMIT_SECONDS, _COMMIT_TIMES * (ended - began))

    def _header(
        self, checkpoints: Iterable[CapturedCheckpoint], left_out: tuple[LeftOut, ...]
    ) -> CaptureHeader:
        """What the capture says of itself with these checkpoints."""
        return CaptureHeader(
            self.maker.bounds.origin,
            self.maker.chunk_bytes,
            self.maker.bounds.rows,
            all(file.checksum is not None for one in checkpoints for file in one.files),
            self.options.layout,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            __version__,
            self.snapshot,
            left_out,
        )

    def _is_current(self, files: Sequence[OutputFile], checkpoint: CapturedCheckpoint) -> bool:
        try:
            now = source_files(self.run, files)
        except CiwrapError:
            return False
        # Checksums are not asked: reading a copy for its own captures it at once, too.
        if why_stale(_without_checksums(checkpoint.files), now, self.run) is not None:
            return False
        if self.options.checksums and any(file.checksum is None for file in checkpoint.files):
            return False
        return all(self.maker.is_as_asked(variable) for variable in checkpoint.variables)

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
            variables = [self.maker.make(writer, identity, catalog) for identity in catalog.entries]
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
        reason = why_stale(_without_checksums(seen), source_files(self.run, files), self.run)
        if reason is not None:
            raise StillWrittenError(
                f"was left alone, it is still being written: {reason}",
                file=files[0].path.parent,
                remedy="capture again once it is complete",
            )


def _without_checksums(files: Sequence[SourceFile]) -> list[SourceFile]:
    return [replace(file, checksum=None) for file in files]


def _of_checkpoint(error: CiwrapError, files: Sequence[OutputFile]) -> CiwrapError:
    """The error of one file, which says that it keeps others out, too, if there are any."""
    # What is still being written is named as a whole already.
    if len(files) > 1 and not isinstance(error, StillWrittenError):
        error.message += ", so nothing of its checkpoint is captured"
    return error
