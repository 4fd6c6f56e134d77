"""Throwing pending goldens away, with a line in `.ciwrap/rejected.jsonl`."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ciwrap.errors import PendingConflictError, WriteFailedError
from ciwrap.repository import git_user

if TYPE_CHECKING:
    from ciwrap.review.pending_goldens import PendingGolden
    from ciwrap.review.project import Project

_LOG_NAME = "rejected.jsonl"


def reject(
    project: Project, golden: PendingGolden, reason: str | None, who: str | None = None
) -> None:
    """Removes a pending golden.

    who: rejects it; None lets git be asked, which takes longer than all else. Raises
    PendingConflictError if another one waits in its place by now; WriteFailedError, LockBusyError.
    """
    entry = {
        "when": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
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
        try:
            with path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise WriteFailedError(error.strerror or str(error), file=path) from error
        project.pending.remove(golden.place)
