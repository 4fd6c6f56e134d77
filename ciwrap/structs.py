"""Plain data: what the records of the whole package are made of.

`class Name(Struct, frozen=True)` is what a frozen dataclass with slots would be. Making such a
class takes a fiftieth of the time, since nothing is compiled for it; dataclasses alone took a
quarter of a second of processor time before a command did anything. Types are not looked at here,
and may be imported for type checkers alone. Records that documents are read into say
`msgspec.Struct`, and need their types.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct, field
from msgspec.structs import asdict, astuple, force_setattr, replace

__all__ = ["Struct", "Word", "asdict", "astuple", "field", "force_setattr", "replace"]


class Word(str, Enum):
    """One of a few words that documents hold; its text is what they write."""

    def __str__(self) -> str:
        return str(self.value)

    @property
    def words(self) -> str:
        """For people: `not comparable`."""
        return str(self.value).replace("_", " ")
