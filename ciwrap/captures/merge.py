"""Packing the journals of a recorded run into one capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.captures.container_writer import replaced_capture
from ciwrap.captures.index import CapturedCheckpoint, CaptureIndex, Directory, StoredTree
from ciwrap.captures.index_codec import append_checkpoint, encode_index, read_checkpoint, read_index
from ciwrap.captures.kept_snapshot import appended
from ciwrap.captures.recording import RecordedCapture, snapshot_of_run
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.container_writer import CaptureWriter
    from ciwrap.captures.index import CapturedVariable, CheckpointKey


def merge_recording(run: Path, target: Path) -> int:
    """Writes all trees of a recorded run into a capture; the number of its checkpoints.

    Elements that were kept of suspect chunks stay behind. Raises what `refuse_parts` does, since a
    capture could not tell of it, UsageError for a file that already exists, WriteFailedError, and
    the errors of reading journals.
    """
    if target.exists():
        raise UsageError("already exists", file=target, remedy="give another name with -o")
    with RecordedCapture(run) as capture:
        capture.refuse_parts("compare the folder as it is")
        index = read_index(capture)
        with replaced_capture(target) as writer:
            directories: dict[CheckpointKey, Directory] = {}
            for key, directory in index.checkpoints.items():
                held = read_checkpoint(capture, directory)
                copied = tuple(_copied(one, capture, writer) for one in held.variables)
                checkpoint = CapturedCheckpoint(key, (), copied)
                directories[key] = append_checkpoint(writer, checkpoint, run)
            kept = appended(writer, snapshot_of_run(run), None)
            header = replace(index.header, snapshot=kept)
            writer.commit(encode_index(CaptureIndex(header, directories)))
    return len(directories)


def _copied(one: CapturedVariable, capture: CaptureFile, writer: CaptureWriter) -> CapturedVariable:
    def tree(stored: StoredTree | None) -> StoredTree | None:
        if stored is None:
            return None
        residues = stored.residues
        return replace(
            stored,
            digests=writer.append(capture.section(stored.digests)),
            residues=None if residues is None else writer.append(capture.section(residues)),
        )

    return replace(one, plain=tree(one.plain), fine=tree(one.fine), relative=tree(one.relative))
