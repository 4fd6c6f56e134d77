"""What `ciwrap selftest` found, as the record that its JSON document is made of."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.documents.records import DocumentHead
from ciwrap.structs import Word


class Damage(Word):
    """What is planted. BEYOND: the nearest representable value beyond the bound. MASKED: the same,
    in an element that a mask takes out. LOST: the variable is gone. TRUNCATED: half of the file is
    gone.
    """

    BEYOND = "beyond-bound"
    NAN = "nan"
    SIGN = "sign"
    MASKED = "masked"
    LOST = "lost-variable"
    UNIT = "unit"
    TRUNCATED = "truncated-file"


class Planted(msgspec.Struct, frozen=True):
    """One damage to one variable of one checkpoint, or to a file (then name is its path).

    reason: why it was not caught.
    """

    damage: Damage
    name: str
    caught: bool
    iteration: int | None = None
    rank: int | None = None
    reason: str | None = None


class SelftestCheck(msgspec.Struct, frozen=True):
    """What was planted in one check. not_tried: what could not be planted, and why; problem: why
    nothing could.
    """

    name: str
    planted: tuple[Planted, ...] = ()
    not_tried: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def missed(self) -> list[Planted]:
        return [one for one in self.planted if not one.caught]


class SelftestDocument(DocumentHead, frozen=True):
    """All checks. exit_code: 0 all caught, 1 some were not, 3 a check could not be tried."""

    kind: Literal["selftest"]
    checks: tuple[SelftestCheck, ...]
    exit_code: Literal[0, 1, 3]
