"""Enums whose members are words of documents."""

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """One of a few words that documents hold; its text is what they write."""

    def __str__(self) -> str:
        return str(self.value)

    @property
    def words(self) -> str:
        """For people: `not comparable`."""
        return str(self.value).replace("_", " ")
