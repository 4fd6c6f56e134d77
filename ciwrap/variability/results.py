"""Results of `ciwrap repeat` and `ciwrap time` as rows of a table: one for each run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciwrap.documents import DocumentError, to_record
from ciwrap.errors import InvalidResultError, NotComparableError
from ciwrap.model.repeat_result import RepeatResult
from ciwrap.report.document import load_document, reading_result
from ciwrap.timing.document import TimingDocument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECONDS = "seconds"
# NAME=4 in a file's name or before a command, --name 4, --name=4.
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_IN_NAME = re.compile(rf"([A-Za-z]\w*)=({_NUMBER})(?![\w.])")
_IN_COMMAND = re.compile(
    rf"(?:(?<!\S)([A-Za-z_]\w*)=|(?<!\S)--?([A-Za-z][\w-]*)[= ])({_NUMBER})(?!\S)"
)

Cell = str | float


def result_rows(path: Path) -> tuple[tuple[str, ...], list[Sequence[Cell]]]:
    """Names of the columns, the last of which is `seconds`, and a row for each run.

    Parameters stand in the file's name (`threads=4,size=1024.json`), are the factors of `ciwrap
    repeat` (1 on, 0 off), or stand in the commands that `ciwrap time` ran (`THREADS=4 ./solve
    --size 1024`). Raises UnreadableFileError, InvalidResultError, NotComparableError for runs that
    failed.
    """
    given = {name: float(number) for name, number in _IN_NAME.findall(path.stem)}
    result = _read(path)
    if isinstance(result, TimingDocument):
        found = [
            ({**given, **command_parameters(side.command)}, seconds)
            for side in result.sides
            for seconds in side.seconds
        ]
    else:
        found = [({**given, **switches}, seconds) for switches, seconds in _repeats(result, path)]
    names = tuple(dict.fromkeys(name for parameters, _ in found for name in parameters))
    if not names:
        raise InvalidResultError(
            "names no parameter of its configuration",
            file=path,
            remedy="put it into the file's name, as in threads=4,size=1024.json",
        )
    rows: list[Sequence[Cell]] = [
        [*(parameters.get(name, "") for name in names), seconds] for parameters, seconds in found
    ]
    return (*names, SECONDS), rows


def command_parameters(command: str) -> dict[str, float]:
    """Numbers that a command gives a name: `NAME=4`, `--name 4`, `--name=4`."""
    return {
        variable or option: float(number)
        for variable, option, number in _IN_COMMAND.findall(command)
    }


def _read(path: Path) -> RepeatResult | TimingDocument:
    with reading_result(path, "repeat or time"):
        document: Any = load_document(path)
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == "timing":
            return to_record(document, TimingDocument)
        if kind == "repeat":
            return to_record(document, RepeatResult)
        raise DocumentError("is of another kind")


def _repeats(result: RepeatResult, path: Path) -> list[tuple[dict[str, float], float]]:
    """The factors and the time of each run."""
    found = []
    for run in result.runs:
        if run.exit_code != 0 or run.timed_out or run.seconds is None:
            raise NotComparableError(
                f"run {run.number} did not end well, so its time says nothing",
                file=path,
                remedy="repeat it",
            )
        switches = {name: float(state == "on") for name, state in run.factors.items()}
        found.append((switches, float(run.seconds)))
    return found
