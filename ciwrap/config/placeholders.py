"""`{run}` and `{seed}` in commands and outputs: which of several runs is meant.

A command that runs once, as those of `ciwrap run` and `check` do, is run 1 with seed 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# `${run}` is a shell's own variable.
_PLACE = re.compile(r"(?<!\$)\{(run|seed)\}")


@dataclass(frozen=True, slots=True)
class RunPlace:
    """What `{run}` and `{seed}` stand for."""

    number: int = 1
    seed: int = 1

    def filled(self, text: str) -> str:
        """The text with the placeholders replaced."""
        values = {"run": str(self.number), "seed": str(self.seed)}
        return _PLACE.sub(lambda match: values[match[1]], text)


def placeholders_in(*texts: str) -> frozenset[str]:
    """Which of `run` and `seed` are in the texts."""
    return frozenset(match[1] for text in texts for match in _PLACE.finditer(text))
