"""What to type if the new numbers are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model.commands import ProjectOptions, command_words

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult

_LONGEST_NAMES = 1000


def accept_command(run: RunResult, why: str = "WHY") -> str:
    """The command, or one in each line where checks have their goldens in several places; nothing
    if there is no golden to accept.
    """
    names: dict[ProjectOptions, list[str]] = {}
    for check in _to_accept(run):
        names.setdefault(check.accept_options or ProjectOptions(), []).append(check.name)
    return "\n".join(_command(some, options, why) for options, some in names.items())


def _to_accept(run: RunResult) -> list[CheckResult]:
    """The checks whose new numbers can be accepted: those with a golden. What `expect` and `range`
    say has none.
    """
    if run.kind not in ("check", "run"):
        return []
    return [one for one in run.checks if one.verdict.is_alarm and one.golden_path is not None]


def _command(names: list[str], options: ProjectOptions, why: str) -> str:
    given = f"{options} --reason '{why}'"
    words = command_words("ciwrap accept", list(dict.fromkeys(names)), given)
    if len(words) > _LONGEST_NAMES or not words.isprintable():
        # Without names all checks are meant; those that match stay as they are.
        return f"ciwrap accept{given}"
    return words
