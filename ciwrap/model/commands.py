"""The commands that messages propose, so that they can be typed as they are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProjectOptions(Struct, frozen=True):
    """What a command has to be told to find the same configuration and goldens; None for what it
    finds by itself.
    """

    config: str | None = None
    golden_dir: str | None = None

    def __str__(self) -> str:
        """As they are typed, each behind a space."""
        given = (("--config", self.config), ("--golden-dir", self.golden_dir))
        return "".join(f" {option} {_quoted(path)}" for option, path in given if path is not None)


def command_words(command: str, names: Sequence[str], options: str = "") -> str:
    """A command on names, quoted for a shell. options: text that is put as it is, each behind a
    space.
    """
    words = " ".join(map(_quoted, names))
    if any(name.startswith("-") for name in names):
        # Behind `--` nothing is an option.
        return f"{command}{options} -- {words}"
    return f"{command} {words}{options}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
