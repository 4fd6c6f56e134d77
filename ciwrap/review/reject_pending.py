"""Throwing pending goldens away, with a line in `.ciwrap/rejected.jsonl`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ciwrap.errors import PendingConflictError
from ciwrap.files import writing
from ciwrap.golden.lock import writer_lock
from ciwrap.golden.manifest import now_text
from ciwrap.golden.part_done import telling_what_is_done
from ciwrap.repository import git_user

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.review.pending_files import PendingGolden
    from ciwrap.review.project import Project

_LOG_NAME = "rejected.jsonl"


def reject_all(project: Project, goldens: Iterable[PendingGolden], reason: str | None) -> None:
    """Removes pending goldens. Raises as `reject`, and then says which were removed before."""
    who = git_user(project.root)
    with telling_what_is_done("rejected") as done, project.pending.kept():
        for golden in goldens:
            reject(project, golden, reason, who)
            done.append(golden.check)


def reject(
    project: Project, golden: PendingGolden, reason: str | None, who: str | None = None
) -> None:
    """Removes a pending golden.

    who: rejects it; None lets git be asked, which takes longer than all else. Raises
    PendingConflictError if another one waits in its place by now; WriteFailedError, LockBusyError.
    """
    entry = {
        "when": now_text(),
        "who": git_user(project.root) if who is None else who,
        "why": reason,
        "check": golden.check,
        "root": golden.root,
        "base_root": golden.origin.base_root,
        "commit": golden.origin.commit,
    }
    path = project.pending.folder.parent / _LOG_NAME
    with project.pending.store(golden.place).locked():
        if not project.pending.still_waits(golden):
            raise PendingConflictError(
                "another golden waits by now, or none",
                file=golden.path,
                variable=golden.check,
                remedy="look at it again",
            )
        project.pending.remove(golden.place)
        # Only now: what could not be removed was not rejected.
        with (
            writer_lock(path.parent, doing="noting what is rejected"),
            writing(path),
            path.open("a", encoding="utf-8") as stream,
        ):
            stream.write(json.dumps(entry) + "\n")
