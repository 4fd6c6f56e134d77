"""Capturing a run: the trees of its checkpoints in one file, new ones added as they come."""

from __future__ import annotations

import contextlib
import time
from datetime import datetime, timezone
from importlib import metadata
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.captures.bounds import CaptureHeader
from ciwrap.captures.capture_trees import Against, TreeMaker
from ciwrap.captures.container import CaptureFile, was_completed
from ciwrap.captures.container_writer import CaptureWriter, replaced_capture
from ciwrap.captures.index import (
    CapturedCheckpoint,
    CaptureIndex,
    Directory,
)
from ciwrap.captures.index_codec import encode_checkpoint, encode_index, read_checkpoint, read_index
from ciwrap.captures.kept_snapshot import appended
from ciwrap.captures.left_out import NOT_TO_ITS_END, left_out_of
from ciwrap.captures.listing import by_checkpoint, sizes_of
from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.files import (
    checksum_of,
    source_files,
    why_stale,
    youngest_ns,
)
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    ExitCode,
    OutputMissingError,
    StillWrittenError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
)
from ciwrap.progress import NO_PROGRESS
from ciwrap.readers.layout import FoundOutputs
from ciwrap.structs import Struct, field
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.kept_snapshot import GivenSnapshot, KeptSnapshot
    from ciwrap.captures.left_out import LeftOut
    from ciwrap.catalog.files import SourceFile
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import VariableId
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import OutputFile

DEFAULT_SETTLE_SECONDS = 1.0
# So much work at most is lost to a crash, or as many times what a commit takes: each one writes the
# index of all that is there, so without a pause that grows with it the whole would grow with the
# square of the number of checkpoints.
_COMMIT_SECONDS = 2.0
_COMMIT_TIMES = 20


class CaptureOptions(Struct, frozen=True):
    """How a run is captured.

    chunk_bytes: None for those of `against`, of the capture that is there, or else the default.

    residues: whether other runs can be held against this capture. against: such a capture of
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
                "is not captured: no reader knows its suffix, or no layout fits its path",
                file=path,
                remedy="leave it out with 'exclude', or give 'format' or 'layout'",
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
        total = sum(size for key in pending for size in sizes_of(groups[key]))
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
            metadata.version("ciwrap"),
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
