"""`ciwrap init --logs`: a configuration from what two logs of one program have in common."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from ciwrap.config.starter import Starter, StarterCheck
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.logs.propose import Proposal, propose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_LIVE = 10
_HEAD = """\
# What ciwrap looks for in the log, and how closely. Two runs were compared with each other: a bound
# is 10 times what they differ by, and at least 1.5 units of the last printed place.
# `ciwrap values {path}` shows what is found, `ciwrap accept` makes the golden.
version: 1

checks:
  {name}:
    format: log
    outputs: {path}
"""
# A step that is there again, as after `reset_timestep`, counts again.
_TABLE = {"header": "Step *", "end": "Loop time of", "iteration": "Step", "duplicates": "all"}
_TABLES = f"""\
    # A table by steps; its bounds were not measured.
    tables:
      thermo: {{{", ".join(f"{key}: {json.dumps(said)}" for key, said in _TABLE.items())}}}
"""
# LAMMPS: a line of names that begins with Step, and the line after the rows.
_IS_HEADER = re.compile(rb"\s*Step\s+[A-Za-z_]\S*(\s+[A-Za-z_]\S*)*\s*$")
_IS_END = re.compile(rb"Loop time of ")


def starter_for_logs(paths: Sequence[Path]) -> Starter:
    """A starter for the first of two logs.

    Raises UsageError unless there are two, NotComparableError if they have nothing in common, and
    the errors of reading them.
    """
    if len(paths) != 2:
        raise UsageError(
            f"--logs needs the logs of two runs, not {len(paths)}",
            remedy="ciwrap init --logs run1.log run2.log",
        )
    found = _that_work(propose(_lines(paths[0]), _lines(paths[1])), paths)
    has_table = all(
        any(map(one.match, _lines(path))) for path in paths for one in (_IS_HEADER, _IS_END)
    )
    if not found and not has_table:
        raise NotComparableError(
            "the two logs have no number in common that looks like a result (7 digits or more, a"
            " word of two letters before it, within 1 % of each other, no time, memory or rank)",
            file=paths[0],
            remedy="name the values by hand (docs/how-to/logs.md)",
        )
    name = re.sub(r"[^A-Za-z0-9_-]", "_", paths[0].stem) or "log"
    text = _HEAD.format(name=json.dumps(name), path=json.dumps(paths[0].as_posix()))
    text += "" if not found else "    values:\n"
    text += "".join(_line(one, is_live=at < MOST_LIVE) for at, one in enumerate(found))
    text += _TABLES if has_table else ""
    count = _count_found(found[:MOST_LIVE], paths[0], has_table=has_table)
    check = StarterCheck(name, (paths[0].as_posix(),), 1, count, count)
    return Starter((check,), text)


def _count_found(found: Sequence[Proposal], path: Path, *, has_table: bool) -> int:
    """How many variables the rules that were written find: of a table each column is one."""
    from ciwrap.readers.log import LogReader

    options: dict[str, Any] = {"values": {one.name: _rule(one) for one in found}}
    if has_table:
        options["tables"] = {"thermo": _TABLE}
    with LogReader().open(path, options=options) as source:
        return len(source.variables)


def _lines(path: Path) -> Iterator[bytes]:
    from ciwrap.readers.files import InputFile
    from ciwrap.readers.log_lines import blocks_of

    file = InputFile(path)
    blocks = blocks_of(file, path)
    return chain.from_iterable(block.data.splitlines() for block in blocks)


def _that_work(proposals: list[Proposal], paths: Sequence[Path]) -> list[Proposal]:
    """Those that find the same lines in both logs, no more and no fewer, when they are tried."""
    from ciwrap.readers.log import LogReader

    if not proposals:
        return []
    options = {"values": {one.name: _rule(one) for one in proposals}}
    counts = []
    for path in paths:
        with LogReader().open(path, options=options) as source:
            counts.append(
                {
                    name: one.count if one.fault is None else -1
                    for name, one in source.series.items()
                }
            )
    return [one for one in proposals if all(found[one.name] == one.count for found in counts)]


def _rule(one: Proposal) -> dict[str, Any]:
    if one.column is None:
        return {"match": one.text}
    return {"line": one.text, "column": one.column}


def _line(one: Proposal, *, is_live: bool) -> str:
    rule = ", ".join(f"{key}: {json.dumps(said)}" for key, said in _rule(one).items())
    mark = "" if is_live else "# "
    times = "1 match" if one.count == 1 else f"{one.count} matches"
    return (
        f"      {mark}{one.name}: {{{rule}, atol: {one.atol:g}}}  # {times}, {one.digits} digits\n"
    )
