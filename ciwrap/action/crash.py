"""A program that fails is an error, whatever mode it failed in and whatever was compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.errors import CommandFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CommandOutcome, Message, RunResult

_MOST_LINES = 20
_LONGEST_COMMAND = 200


@dataclass(frozen=True, slots=True)
class Crash:
    """problem: which command ended how. last_lines: the end of what it printed."""

    problem: str
    last_lines: str = ""


def crash_of(result: RunResult) -> Crash | None:
    """The first command of a result that failed; None if none did."""
    for command in _commands(result):
        if command.exit_code != 0:
            name = " ".join(command.command.split())[:_LONGEST_COMMAND]
            lines = command.output_tail.rstrip().splitlines()[-_MOST_LINES:]
            return Crash(f"the command {name!r} {command.ending}", "\n".join(lines))
    failed = [one for one in _messages(result) if one.slug == CommandFailedError.slug]
    return Crash(failed[0].text) if failed else None


def _commands(result: RunResult) -> Iterator[CommandOutcome]:
    for one in (result.command, *(check.command for check in result.checks)):
        if one is not None:
            yield one


def _messages(result: RunResult) -> Iterator[Message]:
    yield from result.messages
    for check in result.checks:
        yield from check.messages
