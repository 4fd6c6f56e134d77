"""Completion in bash, zsh and fish: the scripts, and the answers that they ask for.

click writes both. Where it knows nothing to offer, a file is completed, as a shell does by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from ciwrap.base.errors import ExitCode, UsageError
from ciwrap.cli.commands import group

if TYPE_CHECKING:
    from typing import Any

_SHELLS = ("bash", "zsh", "fish")


def answer(variable: str, instruction: str) -> int:
    """Prints a shell's script (`bash_source`), or what may follow the words that the shell has put
    into the environment (`bash_complete`). variable: where the instruction stands. Raises
    UsageError.
    """
    shell, _, wanted = instruction.partition("_")
    known = get_completion_class(shell) if shell in _SHELLS else None
    if known is None or wanted not in ("source", "complete"):
        wanted_words = ", ".join(f"{one}_source" for one in _SHELLS)
        raise UsageError(f"{variable}={instruction} is none of {wanted_words}")

    class Completion(known):  # type: ignore[valid-type, misc]
        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
            try:
                found: list[CompletionItem[Any]] = super().get_completions(args, incomplete)
            except click.UsageError:  # a command that there is not
                found = []
            return found or [CompletionItem(incomplete, type="file")]

    made = Completion(group, {}, "ciwrap", variable)
    click.echo(made.source() if wanted == "source" else made.complete())
    return int(ExitCode.MATCH)
