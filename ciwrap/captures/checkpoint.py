"""The variables of one checkpoint of one run, and which of its trees may be used."""

from __future__ import annotations

import os
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.arrays.values import FileRegion
from ciwrap.catalog.files import change_since
from ciwrap.errors import (
    CorruptCaptureError,
    CorruptFileError,
    DuplicateVariableError,
    NotComparableError,
    UsageError,
)
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap import _core
    from ciwrap.arrays.values import Signature, Values
    from ciwrap.captures.index import (
        CapturedVariable,
        CheckpointKey,
        StoredTree,
    )
    from ciwrap.captures.side import Run
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.catalog.files import SourceFile
    from ciwrap.catalog.rows import RowOrder
    from ciwrap.errors import CiwrapError
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.readers.layout import OutputFile


class Look:
    """A first look at a checkpoint's files, and whether any of their data were read after it."""

    def __init__(self, side: Run, key: CheckpointKey, seen: tuple[SourceFile, ...] | None) -> None:
        self.run = side
        self.key = key
        self.has_read = False
        self._seen = seen

    def change(self) -> str | None:
        """What has happened to the files since, if data were read; None if nothing has."""
        if not self.has_read:
            return None
        return change_since(self._seen, self.run.groups[self.key], self.run.path)


class Variables:
    """A checkpoint of one run: from its capture, its files opened only if they have to be.

    has_data: whether there are files behind what its capture says. captured: what that says of each
    variable, {} if it has none or that no longer holds.
    stale: why it does not. look: at its files, before anything of them was read. errors: files that
    could not be read; notes: what was chosen among copies.
    """

    def __init__(self, side: Run, key: CheckpointKey) -> None:
        self.run = side
        self._key = key
        self._catalog: Catalog | None = None
        self._named: dict[str, OutputFile] | None = None  # files by the one variable they hold
        self.errors: list[CiwrapError] = []
        self.notes: list[str] = []
        self.has_data = not side.is_fingerprint
        try:
            seen, checkpoint, self.stale = side.captured(key)
        except CorruptCaptureError as error:  # of a fingerprint, in whose place there is nothing
            self.errors.append(error)
            seen, checkpoint, self.stale = None, None, None
        self.look = Look(side, key, seen)
        variables = () if checkpoint is None else checkpoint.variables
        self.captured = {one.identity: one for one in variables}
        if len(self.captured) < len(variables):
            self.errors += self._claimed_twice(variables)
        is_known = bool(self.captured) or not self.has_data
        self.identities = set(self.captured if is_known else self.catalog.entries)

    def _claimed_twice(self, variables: Sequence[CapturedVariable]) -> list[CiwrapError]:
        """An error for each variable that several checkpoints of a fingerprint hold, which are one
        here since paths tell of the other run's less: one of them alone is compared.
        """
        counts = Counter(one.identity for one in variables)
        return [
            DuplicateVariableError(
                "is in several of its checkpoints, of which the other run makes one",
                file=None if self.run.capture is None else self.run.capture.path,
                variable=identity.text,
                remedy="leave one of the files out with --exclude, and capture the run again",
            )
            for identity in self.captured
            if counts[identity] > 1
        ]

    @property
    def catalog(self) -> Catalog:
        self._refuse_fingerprint()
        if self._catalog is None:
            self._catalog = self.run.catalog(self._key)
            self.errors.extend(self._catalog.errors)
            self.notes.extend(self._catalog.notes)
            self.look.has_read = True
        return self._catalog

    @property
    def has_files_open(self) -> bool:
        return self._catalog is not None

    def signature(self, identity: VariableId) -> Signature:
        """What the variable is, as far as no data have to be read for that."""
        captured = self.captured.get(identity)
        if captured is not None:
            return captured.signature
        return self.catalog.signature(identity)

    def path_of(self, identity: VariableId) -> str:
        """The file that holds it; the checkpoint's folder where the file was not opened."""
        if not self.has_data and self.run.capture is not None:
            return str(self.run.capture.path)
        if self._catalog is not None and identity in self._catalog.entries:
            return self._catalog.path_of(identity)
        files = self.run.groups[self._key]
        if self._named is None:
            self._named = {one.label: one for one in files if not one.reader.names_inside}
        return str(self._named.get(identity.name, files[0]).path)

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        """Why nothing can be read of the variable, as far as its file was opened."""
        catalog = self._catalog
        if catalog is None or identity not in catalog.entries:
            return None
        return catalog.fault_of(identity)

    def refuse_fault(self, identity: VariableId) -> None:
        """Raises UnsupportedDtypeError for a variable that no reader can read, NotComparableError
        for one of which there is neither a tree nor data.
        """
        captured = self.captured.get(identity)
        if captured is not None and captured.any_tree is not None:
            return
        if not self.has_data and captured is not None:
            raise NotComparableError(
                f"only its capture is at hand, which has no tree of it: {captured.reason}",
                file=self.path_of(identity),
                remedy="compare where its data are",
            )
        entry = self.catalog.entries.get(identity)
        if entry is not None and entry.info.fault is not None:
            self.catalog.values(identity)  # raises

    def region(self, identity: VariableId) -> FileRegion | None:
        """Where the variable's bytes lie, if back to back in a file. Raises CorruptFileError if it
        is not what it was in the capture.
        """
        self._refuse_fingerprint()
        captured = self.captured.get(identity)
        if captured is not None and captured.region is not None and self._catalog is None:
            path, offset = captured.region
            self.look.has_read = True
            return FileRegion(
                os.path.join(self.run.path, path),  # noqa: PTH118 - for every variable of a run
                offset,
                captured.byte_count,
            )
        self._refuse_change(identity)
        info = self.catalog.entries[identity].info
        if info.fault is not None:
            self.catalog.values(identity)  # raises
        return info.region

    def values(self, identity: VariableId, mask: str | None = None) -> Values:
        """The variable's values. Raises CorruptFileError as `region` does."""
        self._refuse_change(identity)
        return self.catalog.values(identity, mask)

    def is_series(self, identity: VariableId) -> bool:
        """Whether the variable was found element by element in a text, which is at hand; of one
        that has a tree it does not matter, for steps are not told of its elements.
        """
        captured = self.captured.get(identity)
        if not self.has_data or (captured is not None and captured.any_tree is not None):
            return False
        return self.catalog.is_series(identity)

    def is_aligned(self, identity: VariableId) -> bool:
        """Whether the variable's rows are put in order."""
        return self.run.arrangement is not None and self.catalog.is_aligned(identity)

    def order_of(self, identity: VariableId) -> RowOrder | None:
        """The order of the variable's rows; None if it is not aligned. Raises AlignmentError."""
        if self.run.arrangement is None:
            return None
        found = self.catalog.order_of(identity)
        self.notes += [note for note in self.catalog.notes if note not in self.notes]
        return found

    def _refuse_change(self, identity: VariableId) -> None:
        entry = self.catalog.entries.get(identity)
        if entry is None or entry.info.signature != self.signature(identity):
            raise CorruptFileError(
                "the file changed while it was being compared",
                file=self.path_of(identity),
                remedy="let the program finish first",
            )

    def _refuse_fingerprint(self) -> None:
        if not self.has_data:
            raise NotComparableError(
                "only its capture is at hand, and trees alone do not tell",
                file=None if self.run.capture is None else self.run.capture.path,
                remedy="compare where its data are",
            )

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None


def fitting(
    captured: CapturedVariable | None, settings: VariableSettings, identity: VariableId
) -> CapturedVariable | None:
    """The captured variable if its trees were made with the bound that is now asked for."""
    tree = None if captured is None else captured.any_tree
    if captured is None or tree is None:
        return None
    fine = captured.fine or tree
    made_with = tree.parameters, fine.parameters
    try:
        fits = [
            p == _asked_for(p.dtype, settings, p.requested_residue_levels, p.chunk_bytes, p.arity)
            for p in made_with
        ]
    except UsageError as error:
        error.variable = identity.text
        raise
    if not fits[0]:
        return None
    return captured if fits[1] else replace(captured, fine=None)


# There are few kinds of variables, and many of each.
@lru_cache(maxsize=1024)
def _asked_for(
    dtype: str, settings: VariableSettings, residue_levels: int, chunk_bytes: int, arity: int
) -> _core.TreeParameters:
    return tree_parameters(
        dtype, settings, residue_levels=residue_levels, chunk_bytes=chunk_bytes, arity=arity
    )


def usable_residues(captured: CapturedVariable, *, is_reference: bool) -> StoredTree | None:
    """The tree with residues that the other run's values can be rounded relative to.

    A relative bound is one of the first run's values: then only that run's residues serve. An
    absolute one, and one in floats, is the same from either side.
    """
    fine = captured.fine
    return fine if fine is not None and (is_reference or fine.made_with.rtol == 0) else None


def comparable_trees(
    mine: CapturedVariable, other: CapturedVariable
) -> tuple[StoredTree, StoredTree] | None:
    """The best two trees whose digests may be compared: relative to the first run, else plain.

    Two trees with residues of their own tell only that they are the same.
    """
    if mine.fine is not None and other.relative is not None:
        same = other.relative.parameters == mine.fine.parameters
        if same and other.relative.against == mine.fine.identity:
            return mine.fine, other.relative
    if mine.fine is not None and other.fine is not None:
        same = other.fine.parameters == mine.fine.parameters
        if same and other.fine.identity == mine.fine.identity:
            return mine.fine, other.fine
    if mine.plain is None or other.plain is None:
        return None
    return (mine.plain, other.plain) if mine.plain.parameters == other.plain.parameters else None
