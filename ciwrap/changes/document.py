"""What `ciwrap changes --json` writes, as records; the action reads it back."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.details import Number
from ciwrap.documents.records import DocumentHead
from ciwrap.golden.manifest import Count

What = Literal["bound", "evidence", "ignore", "strict", "variable", "check", "values"]


class Change(msgspec.Struct, frozen=True):
    """One difference in what is checked.

    check, variable: what it concerns; None for all. text: the change in words. wider: whether less
    is checked than before; None where nothing tells. count: of checkpoints of the variable that it
    concerns. replaced: whether a golden or an ensemble took another one's place, so that numbers
    may have moved. file, line: where the configuration says so, from the top of the repository.
    who, why: of the acceptance. share: of the old bounds that the numbers moved by at most, as the
    manifest says; None where it does not.
    """

    check: str | None
    variable: str | None
    what: What
    text: str
    wider: bool | None
    count: Count = 1
    replaced: bool = False
    file: str | None = None
    line: int | None = None
    who: str | None = None
    why: str | None = None
    share: Number | None = None


class ChangesDocument(DocumentHead, frozen=True, kw_only=True):
    """What differs in what is checked. base: the commit that the files here are held against."""

    kind: Literal["changes"]
    base: str
    changes: tuple[Change, ...]
