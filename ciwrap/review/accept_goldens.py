"""Accepting: of outputs that lie there, and of goldens that wait.

All are looked at before one is written. An error between two of them says which were written.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.compare.check import needs_golden
from ciwrap.compare.outputs import Outputs
from ciwrap.golden.listing import shared_stores
from ciwrap.golden.part_done import telling_what_is_done
from ciwrap.progress import NO_PROGRESS
from ciwrap.repository import git_user
from ciwrap.review.capture_change import capture_change
from ciwrap.review.golden_change import GoldenChange, demand_reason
from ciwrap.review.pending_artifact import ALLOWED_WORDS, refuse_less
from ciwrap.review.pending_change import accept, as_it_counts, look_at_all
from ciwrap.review.write_change import origin_of, write_change
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.config import Check
    from ciwrap.progress import Progress
    from ciwrap.review.pending_change import PendingChange
    from ciwrap.review.project import Project

_ACCEPTED = "accepted"


def accept_outputs(
    project: Project,
    reason: str | None,
    *,
    force: bool = False,
    dry_run: bool = False,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> list[GoldenChange]:
    """Makes the outputs of the project's checks their goldens; what that changes, or would.

    All are captured before one is written. Raises as `capture_change` and `write_change` do,
    UsageError if one replaces a golden and there is no reason, LockBusyError.
    """
    checks = _that_need_goldens(project.checks)
    lock = contextlib.nullcontext() if dry_run else project.store.locked()
    with lock:
        changes = [
            capture_change(
                check, project.store, force=force, resources=resources, progress=progress
            )
            for check in checks
        ]
        if not dry_run:
            demand_reason(changes, reason)
            with telling_what_is_done(_ACCEPTED) as done:
                for check, change in zip(checks, changes, strict=True):
                    if change.needs_writing:
                        origin = origin_of(check, project.root, _snapshots_of(project))
                        write_change(change, project.store, reason, origin)
                        done.append(check.name)
    return changes


def accept_pending(
    project: Project,
    patterns: Sequence[str],
    reason: str | None,
    *,
    dry_run: bool = False,
    variant: str | None = None,
    allowed: Sequence[str] = ALLOWED_WORDS,
) -> list[GoldenChange]:
    """Accepts the pending goldens that are meant; what that changes, or would.

    All are read and verified before one is written. variant: the kind of machine they are to be
    goldens for, if not what they were made as. allowed: in which ways they may check less. Raises
    as `look_at` and `accept` do, UsageError if one replaces a golden and there is no reason,
    ArtifactError for one that checks less than it may.
    """
    if not dry_run:
        for _, store in shared_stores(project.golden_dir):
            # Accepted already, by a run that was killed.
            store.put_in_place()
    looked = look_at_all(project, project.pending.select(patterns), variant)
    refuse_less((as_it_counts(project, one) for one in looked), allowed)
    if looked and not dry_run:
        demand_reason([one.change for one in looked], reason)
        with project.indexed() if project.is_own else contextlib.nullcontext():
            _accept_all(project, looked, reason)
    return [one.change for one in looked]


def _accept_all(project: Project, looked: Sequence[PendingChange], reason: str | None) -> None:
    who = git_user(project.root)
    with (
        telling_what_is_done(_ACCEPTED) as done,
        project.goldens.kept(),
        project.pending.kept(),
    ):
        for one in looked:
            accept(project, one, reason, who)
            done.append(one.change.check)


def _snapshots_of(project: Project) -> SnapshotStore | None:
    """Where snapshots of goldens are kept; None where the configuration says not to take any."""
    if project.config is not None and not project.config.snapshot.objects:
        return None
    return SnapshotStore.of_goldens(project.golden_dir)


def _that_need_goldens(checks: tuple[Check, ...]) -> list[Check]:
    """Without those of which the configuration itself says what all values have to be; all of them
    if there are no others, so that capturing tells.
    """
    kept = [check for check in checks if not check.expected or _has_open_values(check)]
    return kept or [*checks]


def _has_open_values(check: Check) -> bool:
    with Outputs(check) as catalog:
        # What could not be read may need one.
        return bool(catalog.errors) or needs_golden(check, catalog)
