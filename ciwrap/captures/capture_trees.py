"""The trees of one variable of a run, as they go into its capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures.bounds import Bounds, rules_with
from ciwrap.captures.index import (
    BY_STEP,
    IGNORED,
    IN_AN_ORDER,
    IN_ANOTHER_WAY,
    CapturedVariable,
    FineIdentity,
    MadeWith,
    StoredTree,
    read_tree,
)
from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.catalog.files import relative_path
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.trees.bounds import describe_bound
from ciwrap.trees.build import Resources, feed, tree_parameters

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.arrays.values import Values
    from ciwrap.captures.bounds import CaptureHeader
    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.container_writer import CaptureWriter
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress
    from ciwrap.readers.base import VariableInfo


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

    residues: whether other runs can be held against this one. against: such a run. earlier: what
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

    def _settings_of(self, identity: VariableId, dtype: str) -> VariableSettings:
        """Raises UsageError if the capture that is there was made with another bound."""
        settings = self._rules.settings_for(identity, dtype)
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
        settings = self._settings_of(variable.identity, variable.dtype)
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
        settings = self._settings_of(identity, info.dtype)
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

    Those that are asked for; else those of the capture to be held against; else those that the
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
            f"--chunk-bytes {asked}, but the capture to hold the run against has chunks"
            f" of {theirs.chunk_bytes} bytes",
            remedy="leave --chunk-bytes out",
        )
    inherited = theirs or earlier
    found = DEFAULT_CHUNK_BYTES if inherited is None else inherited.chunk_bytes
    found = found if asked is None else asked
    if earlier is not None and not is_anew and found != earlier.chunk_bytes:
        raise UsageError(
            f"the existing capture has chunks of {earlier.chunk_bytes} bytes, but {found} are asked"
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
    drift = builder.drift
    digests = writer.append(tree.digests.tobytes())
    residues = None
    if against is None and tree.parameters.residue_levels > 1:
        # An array of nothing has none, and is held against all the same.
        residues = writer.append(b"" if tree.residues is None else tree.residues.tobytes())
    return StoredTree(
        MadeWith.of(tree.parameters),
        tree.root,
        digests,
        residues,
        against,
        None if drift is None else float(drift.max_share),
    )
