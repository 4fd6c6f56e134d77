"""Writing a golden that has been looked at, with a line in its log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ciwrap.environment import describe_environment, git_commit, git_user
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.review.golden_change import GoldenChange

FIRST_REASON = "first golden"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where outputs come from, and who accepts them. commit: None without git."""

    commit: str | None
    environment: Mapping[str, str]
    who: str


def origin_here(folder: Path) -> Origin:
    """The origin of outputs that were made here and now. folder: within the repository."""
    return Origin(git_commit(folder), describe_environment(folder), git_user(folder))


def write_change(
    change: GoldenChange, store: GoldenStore, reason: str | None, origin: Origin
) -> StoredGolden:
    """Writes a golden. The caller holds `store.locked()`, and has held it since `change.old` was
    read.

    reason: for the log; None only for a first golden. Raises WriteFailedError, UsageError.
    """
    entry = Acceptance(
        when=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
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
    )

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=change.name,
            binary=BinaryFile(change.path.name, root, byte_count),
            variables=rows_of(change.variables, change.labels),
            environment=dict(origin.environment),
            accepted=(*change.old.log, entry),
        )

    return store.write(change.name, change.variables, make_manifest)
