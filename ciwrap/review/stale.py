"""Whether what waits to be accepted is of the code that lies here: it may be of an earlier run."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ciwrap.repository import DIRTY, ask_git, git_commit
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from ciwrap.golden.manifest import PendingOrigin
    from ciwrap.review.project import Project

_DIGITS = 12


class Checkout(Struct, frozen=True):
    """What lies here. head: None without git. is_clean: without any changes. changed: tracked files
    with changes, but for goldens, and when each was written last, in seconds since 1970.
    """

    head: str | None
    is_clean: bool
    changed: dict[str, float]


def checkout_of(project: Project) -> Checkout:
    """Asks git about the project's folder, once for all that waits."""
    commit = git_commit(project.root)
    if commit is None:
        return Checkout(None, True, {})
    names = ask_git(project.root, "diff", "--name-only", "--relative", "-z", "HEAD", "--", ".")
    goldens = project.golden_dir_text
    changed = {}
    for name in (names or "").split("\0"):
        path = project.root / name
        if name and name != goldens and not name.startswith(f"{goldens}/"):
            changed[name] = path.stat().st_mtime if path.exists() else 0.0
    return Checkout(commit.removesuffix(DIRTY), not commit.endswith(DIRTY), changed)


def why_stale(origin: PendingOrigin, here: Checkout) -> str | None:
    """Why a golden may be of other code than what lies here; None if nothing says so."""
    if origin.commit is None or here.head is None:
        return None
    commit, was_dirty = origin.commit.removesuffix(DIRTY), origin.commit.endswith(DIRTY)
    if commit != here.head:
        return (
            f"it was made from commit {commit[:_DIGITS]}, and {here.head[:_DIGITS]} is checked out"
        )
    if was_dirty and here.is_clean:
        return "it was made with changes that are no longer here"
    made = datetime.strptime(origin.created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    # Times are of whole seconds there.
    newer = [name for name, when in here.changed.items() if when >= made.timestamp() + 1]
    if newer:
        return f"{newer[0]} has changed since it was made"
    return None
