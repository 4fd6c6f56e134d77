"""What `ciwrap bisect` found, as the record that its JSON document is made of."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.bisect.search import Commit
from ciwrap.documents.records import DocumentHead
from ciwrap.model import RunResult, Verdict


class Step(msgspec.Struct, frozen=True):
    """A commit that was looked at. reason: why it could not be compared."""

    commit: Commit
    verdict: Verdict
    seconds: float
    reason: str | None = None


class BisectDocument(DocumentHead, frozen=True):
    """What bisect found. good, bad: the full names of the commits between which it looked. found:
    the commit that moved a number. candidates: those that it is among, where the rest could not be
    compared. steps: all commits that were looked at, in that order. result: what the commit that
    was found left, against the goldens of the good one.
    """

    kind: Literal["bisect"]
    exit_code: Literal[0, 3]
    good: str
    bad: str
    steps: tuple[Step, ...]
    seconds: float
    ciwrap_version: str
    started_at: str
    found: Commit | None = None
    candidates: tuple[Commit, ...] = ()
    result: RunResult | None = None
