"""One of the two runs to compare: its files by checkpoint, and its capture as far as that holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.captures.container import CaptureFile
from ciwrap.captures.index import CapturedCheckpoint
from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.captures.left_out import faults_of
from ciwrap.captures.listing import by_checkpoint, capture_paths
from ciwrap.catalog.files import source_files, why_stale
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    NotComparableError,
    OutputMissingError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.readers.layout import FoundOutputs
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ciwrap.captures.bounds import CaptureHeader
    from ciwrap.captures.index import CaptureIndex, CheckpointKey
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.catalog.files import SourceFile
    from ciwrap.catalog.rows import Arrangement
    from ciwrap.model import VariableId
    from ciwrap.readers.layout import OutputFile

WHOLE_RUN: CheckpointKey = (None, None)


class Run(Struct):
    """A run, or a single file: a run of one checkpoint. capture: open, or None; index: what it
    holds. arrangement: how rows are aligned, which only whole runs can be. is_fingerprint: whether
    the capture is all that there is of the run; then it is believed whatever lies there. notes:
    what else is to be told of it.
    """

    path: Path
    found: FoundOutputs
    groups: dict[CheckpointKey, list[OutputFile]]
    capture: CaptureFile | None = None
    index: CaptureIndex | None = None
    verify_checksums: bool = False
    fault: CiwrapError | None = None  # why a capture that is there is not used
    arrangement: Arrangement | None = None
    header: CaptureHeader | None = None  # of the capture, whether or not its trees are of use
    is_fingerprint: bool = False
    is_whole: bool = False  # whether WHOLE_RUN is all that there is, not what no path tells of
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()  # what the run lacks

    @property
    def excluded_files(self) -> int:
        """How many of the run's own files were left out; captures are none of them."""
        own = {path.name for path in capture_paths(self.path)}
        if self.capture is not None:
            own.add(self.capture.path.name)
        return sum(Path(name).name not in own for name in self.found.excluded)

    @property
    def is_recorded(self) -> bool:
        """Whether it is known by the journals that the program itself wrote."""
        return self.capture is not None and self.capture.is_recording

    @property
    def is_single(self) -> bool:
        """Whether there is but one checkpoint, of which the paths say nothing."""
        return list(self.groups) == [WHOLE_RUN]

    @property
    def has_iterations_in_paths(self) -> bool:
        """Whether every file is of an iteration that its path tells. A fingerprint has no files."""
        files = self.found.files
        return not self.is_fingerprint and all(file.iteration is not None for file in files)

    def take_whole(self, arrangement: Arrangement | None, *, by_iteration: bool) -> None:
        """From now on all files of an iteration are one checkpoint, or all files of the run, whose
        variables then tell their iterations; ranks are told by variables in either case. Captures,
        which are of single checkpoints, are of no use then.
        """
        if not self.is_fingerprint:
            self.close()
            self.capture = self.index = None
        self.arrangement = arrangement
        self.is_whole = not by_iteration
        if self.is_whole:
            self.groups = {WHOLE_RUN: list(self.found.files)}
            return
        self.groups = {}
        for file in self.found.files:
            self.groups.setdefault((file.iteration, None), []).append(file)

    def prefetch(self, keys: Iterable[CheckpointKey]) -> None:
        """Has the system fetch what the capture says of these checkpoints, all at once."""
        if self.capture is None or self.index is None:
            return
        found = (self.index.checkpoints[key] for key in keys if key in self.index.checkpoints)
        self.capture.prefetch((one.section.offset, one.section.byte_count) for one in found)

    def captured(
        self, key: CheckpointKey
    ) -> tuple[tuple[SourceFile, ...] | None, CapturedCheckpoint | None, str | None]:
        """What a checkpoint's files look like now (None: they cannot be looked at); what the
        capture says of it, None if it is not in it, or no longer holds; and why that is.
        """
        if self.is_fingerprint:
            return None, self._believed(key), None
        directory = None if self.index is None else self.index.checkpoints.get(key)
        try:
            now = source_files(self.path, self.groups[key])
        except CiwrapError as error:
            return None, None, None if directory is None else str(error)
        if self.capture is None or directory is None:
            return now, None, None
        try:
            checkpoint = read_checkpoint(self.capture, directory)
            reason = why_stale(
                checkpoint.files, now, self.path, verify_checksums=self.verify_checksums
            )
        except CiwrapError as error:
            reason = str(error)
        return (now, checkpoint, None) if reason is None else (now, None, reason)

    def _believed(self, key: CheckpointKey) -> CapturedCheckpoint:
        """What a fingerprint says of one checkpoint, or of all. Raises CorruptCaptureError."""
        assert self.capture is not None
        assert self.index is not None
        if not self.is_whole:
            directory = self.index.checkpoints.get(key)
            if directory is None:
                raise CorruptCaptureError(
                    "no longer has what it had when the comparison began", file=self.capture.path
                )
            return read_checkpoint(self.capture, directory)
        variables = [
            one
            for directory in self.index.checkpoints.values()
            for one in read_checkpoint(self.capture, directory).variables
        ]
        return CapturedCheckpoint(key, (), tuple(variables))

    def catalog(self, key: CheckpointKey) -> Catalog:
        """The checkpoint's variables, from its files."""
        from ciwrap.catalog.catalog import Catalog

        return Catalog(FoundOutputs(tuple(self.groups[key])), self.arrangement)

    @property
    def capture_bytes_read(self) -> int:
        return 0 if self.capture is None else self.capture.bytes_read

    def close(self) -> None:
        if self.capture is not None:
            self.capture.close()


def open_run(
    run: Path,
    found: FoundOutputs,
    capture_path: Path | None = None,
    *,
    use_capture: bool = True,
    verify_checksums: bool = False,
) -> Run:
    """A run, with its capture if there is one that can be read.

    capture_path: where it is; then it has to be there (raises OutputMissingError and the other
    errors of `CaptureFile`). Else it is looked for inside and beside the run, and one that cannot
    be read is a `fault` of the side. Raises UsageError if checksums are to be verified that nobody
    has taken.
    """
    side = Run(run, found, by_checkpoint(found), verify_checksums=verify_checksums)
    if not use_capture:
        return side
    for path in (capture_path,) if capture_path is not None else capture_paths(run):
        try:
            capture = CaptureFile(path)
        except OutputMissingError:
            if capture_path is not None:
                raise
            continue
        except (CorruptCaptureError, UnsupportedFormatError) as error:
            if capture_path is not None:
                raise
            side.fault = error
            continue
        try:
            side.index = read_index(capture)
        except CorruptCaptureError as error:
            capture.close()
            if capture_path is not None:
                raise
            side.fault = error
            continue
        side.capture, side.header = capture, side.index.header
        if verify_checksums and not side.header.has_checksums:
            side.close()
            raise UsageError(
                "--verify-checksums, but the capture has no checksums of its files",
                file=path,
                remedy="capture the run with --checksums, or compare with --no-captures",
            )
        break
    return side


def open_fingerprint(
    run: Path, capture_path: Path, open_capture: Callable[[Path], CaptureFile] = CaptureFile
) -> Run:
    """A run of which there is a capture alone. run: what the user calls it.

    Raises the errors of `CaptureFile`, and CorruptCaptureError for an index that is damaged.
    """
    capture = open_capture(capture_path)
    try:
        index = read_index(capture)
    except BaseException:
        capture.close()
        raise
    return Run(
        run,
        FoundOutputs(()),
        {key: [] for key in index.checkpoints},
        capture,
        index,
        header=index.header,
        is_fingerprint=True,
        notes=capture.notes,
        faults=(*capture.faults, *faults_of(capture_path, index.header.left_out)),
    )


def recorded_again(run: Path, identity: VariableId) -> NotComparableError:
    """Why a second recording of a variable, which is not as the first one, is no variable of its
    own that a run may have or lack.
    """
    return NotComparableError(
        "was recorded twice, and not the same",
        file=run,
        variable=identity.text,
        remedy="record the run in one go, and each iteration once",
    )
