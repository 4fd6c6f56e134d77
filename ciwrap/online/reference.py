"""What a running program is held against, in the form that the recording library reads: journals.

The library reads one format alone. Captures and goldens are turned into journals before the program
starts, of their trees with residues; a recorded run is one already, and may still grow.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

from ciwrap.captures.fingerprints import capture_of, refuse_other_data
from ciwrap.captures.index import IGNORED, MadeWith, parameters_of
from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.captures.journal import FINE, PLAIN, JournalReader
from ciwrap.captures.journal_writer import JournalWriter
from ciwrap.captures.journals import is_recording, journal_paths
from ciwrap.captures.open_capture import open_capture
from ciwrap.captures.recording import RecordedCapture
from ciwrap.captures.side import open_fingerprint
from ciwrap.compare.recorded import golden_run
from ciwrap.errors import NotComparableError, OutputMissingError
from ciwrap.golden.golden_file import read_golden_file
from ciwrap.golden.paths import BINARY_SUFFIX, MANIFEST_SUFFIX
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.index import CaptureIndex, StoredTree
    from ciwrap.captures.side import Run
    from ciwrap.model import VariableId


class HeldTrees(Struct, frozen=True):
    """A variable's trees, on their way into a journal: kind, digests and residues."""

    identity: VariableId
    made_with: MadeWith
    shape: tuple[int, ...]
    trees: tuple[tuple[int, bytes], ...]


class Reference(Struct, frozen=True):
    """A run to hold another one against. named: as the user calls it. journals: the folder that the
    library reads.
    """

    named: Path
    journals: Path

    def open(self) -> Run:
        """As one side of a comparison. Raises the errors of `open_fingerprint`."""
        return open_fingerprint(self.named, self.journals, RecordedCapture)


@contextlib.contextmanager
def prepared(path: Path, work: Path) -> Iterator[Reference]:
    """A golden, a capture or a recorded run, in the form that the library reads.

    work: a folder to be made, which is removed in the end. Raises OutputMissingError if there is
    none of these, NotComparableError if nothing of it can be held against, or if the capture of a
    run with data no longer tells of these, and the errors of reading it.
    """
    capture = capture_of(path) if path.exists() else None
    if capture is not None and is_recording(capture):
        yield _recorded(path, capture)
        return
    if capture is not None:
        refuse_other_data(path, capture)
    golden = None if capture is not None else golden_file_of(path)
    if capture is None and golden is None:
        raise OutputMissingError(
            "is not a golden, a capture or a recorded run",
            file=path,
            remedy="record that run first, with --residues",
        )
    shutil.rmtree(work, ignore_errors=True)
    try:
        held = _of_golden(golden) if golden is not None else _of_capture(capture or path)
        _write_journals(path, held, work)
        yield Reference(path, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _recorded(path: Path, run: Path) -> Reference:
    """Raises NotComparableError if nothing of its first checkpoint can be held against."""
    first = next(JournalReader(journal_paths(run)[0]).checkpoints(), None)
    if first is not None and not any(
        FINE in one.trees or (PLAIN in one.trees and _is_exact(one.variable.made_with))
        for one in first.states
    ):
        raise _unfit(path)
    return Reference(path, run)


def _is_exact(made: MadeWith) -> bool:
    return parameters_of(made).kind == "exact"


def _unfit(path: Path) -> NotComparableError:
    return NotComparableError(
        "has no residues, so no run can be compared with it while it runs",
        file=path,
        remedy="record or capture that run with --residues, or accept it with `evidence: residues`",
    )


def golden_file_of(path: Path) -> Path | None:
    """The file of a golden that is named by itself, by its manifest or without a suffix."""
    names = [path, path.with_name(path.name + BINARY_SUFFIX)] if path.name else []
    if path.name.endswith(MANIFEST_SUFFIX):
        names.append(path.with_name(path.name.removesuffix(MANIFEST_SUFFIX) + BINARY_SUFFIX))
    return next((one for one in names if one.name.endswith(BINARY_SUFFIX) and one.is_file()), None)


def _of_capture(path: Path) -> Iterator[HeldTrees]:
    with open_capture(path) as capture:
        yield from _held_trees(capture, read_index(capture))


def _of_golden(path: Path) -> Iterator[HeldTrees]:
    side = golden_run(path, read_golden_file(path)[0])
    assert side.capture is not None
    assert side.index is not None
    with side.capture:
        yield from _held_trees(side.capture, side.index)


def _held_trees(capture: CaptureFile, index: CaptureIndex) -> Iterator[HeldTrees]:
    for directory in index.checkpoints.values():
        for one in read_checkpoint(capture, directory).variables:
            best = one.fine or one.plain
            if best is None and one.reason != IGNORED:
                raise NotComparableError(
                    f"has no tree of it, so no run can be compared with it: {one.reason}",
                    file=capture.path,
                    variable=one.identity.text,
                    remedy="capture that run with it under --ignore",
                )
            if best is None:
                continue
            bodies = tuple(
                (kind, _body(capture, tree))
                for kind, tree in ((PLAIN, one.plain), (FINE, one.fine))
                if tree is not None
            )
            yield HeldTrees(one.identity, best.made_with, one.shape, bodies)


def _body(capture: CaptureFile, tree: StoredTree) -> bytes:
    residues = b"" if tree.residues is None else capture.section(tree.residues)
    return capture.section(tree.digests) + residues


def _write_journals(path: Path, held: Iterable[HeldTrees], target: Path) -> None:
    """Raises NotComparableError if nothing of it can be held against, WriteFailedError."""
    by_rank: dict[int, list[HeldTrees]] = {}
    for one in held:
        if one.identity.iteration is None:
            raise NotComparableError(
                "says no iterations, by which a running program is compared with it",
                file=path,
                variable=one.identity.text,
            )
        by_rank.setdefault(one.identity.rank or 0, []).append(one)
    fits = (
        any(kind == FINE for kind, _ in one.trees) or _is_exact(one.made_with)
        for some in by_rank.values()
        for one in some
    )
    if not any(fits):
        raise _unfit(path)
    for rank in range(max(by_rank) + 1):
        where = target / f"{rank // 1000:03d}" / f"rank-{rank:06d}.cwr"
        with JournalWriter(
            where, rank, max(by_rank) + 1, program=path.name, made_by="reference"
        ) as writer:
            _write_rank(writer, by_rank.get(rank, []))
            writer.end()


def _write_rank(writer: JournalWriter, held: Iterable[HeldTrees]) -> None:
    places: dict[tuple[int, str], list[tuple[str, HeldTrees]]] = {}
    for one in held:
        name, _, point = one.identity.name.rpartition("@")
        if not (name and point):  # an '@' of the name's own
            name, point = one.identity.name, ""
        places.setdefault((one.identity.iteration or 0, point), []).append((name, one))
    for (iteration, point), some in sorted(places.items()):
        for name, one in some:
            writer.tree(iteration, point, (name, one.made_with), one.shape, one.trees)
        writer.complete(iteration, point)
