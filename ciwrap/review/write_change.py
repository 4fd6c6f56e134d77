"""Writing a golden that has been looked at, with a line in its log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ciwrap.compare.outputs import files_of
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, now_text, rows_of
from ciwrap.repository import git_commit, git_user
from ciwrap.review.ci_job import ci_job
from ciwrap.snapshot.describe import describe_environment
from ciwrap.snapshot.runs import environment_for_golden, environment_of_outputs
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.store import GoldenStore
    from ciwrap.review.golden_change import GoldenChange
    from ciwrap.snapshot.store import SnapshotStore

FIRST_REASON = "first golden"


class Origin(Struct, frozen=True):
    """Where outputs come from, and who accepts them. commit: None without git."""

    commit: str | None
    environment: Mapping[str, str]
    who: str


def origin_here(folder: Path, environment: Mapping[str, str] | None = None) -> Origin:
    """The origin of outputs that were made here and now. folder: within the repository.

    environment: what they were made with, where that is known; else it is what is here.
    """
    known = describe_environment(folder) if environment is None else environment
    return Origin(git_commit(folder), known, git_user(folder))


def origin_of(check: Check, root: Path, snapshots: SnapshotStore | None) -> Origin:
    """The origin of a check's outputs: what `ciwrap run` made them with, if nothing has written
    them since; else what is here.

    root: the project's folder, where runs leave their snapshots. snapshots: where the one of these
    outputs is kept; None for nowhere.
    """
    files = files_of(check)
    if snapshots is None:
        return origin_here(root, environment_of_outputs(root, files))
    return origin_here(root, environment_for_golden(root, files, snapshots))


def write_change(
    change: GoldenChange, store: GoldenStore, reason: str | None, origin: Origin
) -> StoredGolden:
    """Writes a golden. The caller holds `store.locked()`, and has held it since `change.old` was
    read.

    reason: for the log; None only for a first golden. Raises WriteFailedError, UsageError.
    """
    ci = ci_job(os.environ)
    entry = Acceptance(
        when=now_text(),
        who=origin.who,
        why=FIRST_REASON if reason is None else reason,
        commit=origin.commit,
        old_root=change.old.root,
        new_root=change.root,
        largest_bound_share=change.largest_bound_share,
        bounds=tuple(
            f"{one.identity.text}: {one.bound_change}"
            for one in change.changes
            if one.bound_change is not None
        ),
        actor=ci.actor,
        run=ci.run,
    )

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=change.name,
            binary=BinaryFile(change.path.name, root, byte_count),
            variables=rows_of(change.variables, change.labels),
            environment=dict(origin.environment),
            accepted=(*change.old.log, entry),
            ignored=change.ignored,
        )

    return store.write(change.name, change.variables, make_manifest)
