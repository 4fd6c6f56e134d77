"""`{run}`, `{seed}` and `{inputs}` in commands and outputs: which of several runs is meant.

A command that runs once, as those of `ciwrap run` and `check` do, is run 1 with seed 1.
"""

from __future__ import annotations

import re

from ciwrap.structs import Struct

# `${run}` is a shell's own variable.
_PLACE = re.compile(r"(?<!\$)\{(run|seed|inputs)\}")


class RunPlace(Struct, frozen=True):
    """What `{run}`, `{seed}` and `{inputs}` stand for. inputs: the folder that input files are
    below; `.` for where they are anyhow.
    """

    number: int = 1
    seed: int = 1
    inputs: str = "."

    def filled(self, text: str) -> str:
        """The text with the placeholders replaced."""
        values = {"run": str(self.number), "seed": str(self.seed), "inputs": self.inputs}
        return _PLACE.sub(lambda match: values[match[1]], text)


def placeholders_in(*texts: str) -> frozenset[str]:
    """Which of `run`, `seed` and `inputs` are in the texts."""
    return frozenset(match[1] for text in texts for match in _PLACE.finditer(text))
