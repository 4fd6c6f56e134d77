"""Enums whose members are words of documents; and what a word that is not known may have meant."""

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


# What other tools call it.
CALLED_ELSEWHERE = {
    **dict.fromkeys(("abs", "abs_tol", "epsilon", "tol", "tolerance"), "atol"),
    **dict.fromkeys(("absolute_tolerance", "absolute"), "atol"),
    **dict.fromkeys(("rel", "rel_tol", "relative", "relative_tolerance"), "rtol"),
    **dict.fromkeys(("list", "status"), "doctor"),
    **dict.fromkeys(("test", "verify"), "check"),
    **dict.fromkeys(("diff", "cmp"), "compare"),
    **dict.fromkeys(("approve", "update"), "accept"),
}


def nearest(word: str, words: list[str], cutoff: float = 0.5) -> str | None:
    """The one of the words that may have been meant."""
    import difflib

    if CALLED_ELSEWHERE.get(word) in words:
        return CALLED_ELSEWHERE[word]
    return next(iter(difflib.get_close_matches(word, words, 1, cutoff)), None)
