"""The line of a log that a template which finds nothing may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.readers.log_lines import Line, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers.files import InputFile

# Looking for it is to take no time that anybody notices.
_MOST_BYTES = 8 << 20
_LONGEST_WORD = 100
_MOST_WORDS = 20
_ENOUGH = 0.5


def nearest_line(file: InputFile, path: Path, words: tuple[str, ...]) -> Line | None:
    """The first line that holds the most of the words, in any case; None unless it holds half."""
    wanted = [one.lower().encode()[:_LONGEST_WORD] for one in words if len(one) > 2][:_MOST_WORDS]
    best: Line | None = None
    most = len(wanted) * _ENOUGH
    if not wanted:
        return None
    for block in blocks_of(file, path):
        offset = block.offset
        for position, line in enumerate(block.data.split(b"\n")):
            lower = line.lower()
            count = sum(one in lower for one in wanted)
            if count and (count > most or (best is None and count == most)):
                best, most = Line(line.rstrip(b"\r"), block.first_line + position, offset), count
            offset += len(line) + 1
        if block.offset + len(block.data) > _MOST_BYTES:
            break
    return best
