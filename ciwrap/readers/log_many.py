"""Logs in which nearly every line counts: values and rows of many lines at once.

What is found is what the listeners find line by line; where that is not certain, nothing is taken,
and the lines are handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.logs.rules import STEP
from ciwrap.readers.log_series import Places

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ciwrap.logs.found import Field
    from ciwrap.logs.template import Template
    from ciwrap.readers.log_lines import Block
    from ciwrap.readers.log_series import Series

# With fewer lines in a block, one after the other is as fast.
_FEWEST_LINES = 500
_WHITE = b" \t\r\f\v\n"


class ManyLines:
    """Takes all matches of a template in a block at once. is_absolute: as in `ValueRule`."""

    def __init__(
        self, template: Template, series: Mapping[str, Series], *, is_absolute: bool
    ) -> None:
        self._template = template
        self._series = series
        self._is_absolute = is_absolute
        self._pattern: re.Pattern[bytes] | None = None
        self._is_made = False

    def take(self, block: Block) -> bool:
        """Whether all that matches in the block was taken; else nothing was."""
        literal = self._template.literal
        if literal is None or block.data.count(literal) < _FEWEST_LINES or block.has_pieces():
            return False
        if not self._is_made:
            self._pattern, self._is_made = self._template.over_lines(), True
        if self._pattern is None:
            return False
        found = list(self._pattern.finditer(block.data))
        if not found or any(one.end(1) < 0 for one in found):
            return False  # a line that only `match` can tell about
        return self._take_all(block, found)

    def _take_all(self, block: Block, found: Sequence[re.Match[bytes]]) -> bool:
        breaks = block.line_breaks()
        labels: NDArray[np.int64] | None = None
        parsed: list[tuple[Series, NDArray[Any], list[bytes], Places]] = []
        for number, field in enumerate(self._template.fields, 1):
            texts = [one[number] for one in found]
            series = self._series.get(field.name)
            if field.name == STEP:
                labels = _steps(texts)
                if labels is None:
                    return False
            elif series is None:
                if not self._fits_unit(field, texts):
                    return False
            else:
                values = series.parsed(texts)
                if values is None:
                    return False
                starts = _all([one.start(number) for one in found])
                lengths = _all([len(one) for one in texts])
                parsed.append((series, values, texts, _places(block, breaks, starts, lengths)))
        for series, values, texts, places in parsed:
            series.add_many(values, texts, places, is_absolute=self._is_absolute)
            if labels is not None:
                series.labels.frombytes(labels.tobytes())
        return True

    def _fits_unit(self, field: Field, texts: Sequence[bytes]) -> bool:
        """Whether the word beside the value is what it was before, everywhere."""
        first = texts[0].decode("utf-8", "replace")
        known = [one.units.get(field.name) for one in self._series.values()]
        return len({*texts}) == 1 and all(one is not None and one[0] == first for one in known)


def rows_of(
    block: Block, begin: int, end: int, columns: Sequence[Series], label: int | None
) -> bool:
    """Takes the lines from begin to before end as rows of a table, if they are nothing else.

    label: which column holds steps. Whether they were taken; else nothing was.
    """
    data = block.data[begin:end]
    rows = data.count(b"\n")
    if rows < _FEWEST_LINES or b"_" in data or not data.endswith(b"\n"):
        return False
    words = data.split()
    width = len(columns)
    if len(words) != rows * width:
        return False
    starts, lengths = _word_places(data)
    breaks = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    # The first word of each row is the first one behind a line break.
    firsts = np.searchsorted(starts, np.concatenate(([0], breaks[:-1] + 1)))
    if starts.size != len(words) or not np.array_equal(firsts, np.arange(rows) * width):
        return False
    steps = None if label is None else _steps(words[label::width])
    if label is not None and steps is None:
        return False
    texts = [words[at::width] for at in range(width)]
    values = [one.parsed(some) for one, some in zip(columns, texts, strict=True)]
    if any(one is None for one in values):
        return False
    all_breaks = block.line_breaks()
    for at, series in enumerate(columns):
        found = values[at]
        assert found is not None
        places = _places(block, all_breaks, starts[at::width] + begin, lengths[at::width])
        series.add_many(found, texts[at], places, is_absolute=False)
        if steps is not None and series.steps is not None:
            series.labels.frombytes(steps.tobytes())
    return True


def _steps(texts: Sequence[bytes]) -> NDArray[np.int64] | None:
    """Steps from 0 on; None if one of them is something else."""
    if not all(one.isdigit() and len(one) <= 18 for one in texts):
        return None
    return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))


def _all(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _word_places(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where words begin, and how long they are."""
    is_white = np.zeros(256, dtype=bool)
    is_white[list(_WHITE)] = True
    white = np.concatenate(([True], is_white[np.frombuffer(data, dtype=np.uint8)], [True]))
    edges = np.flatnonzero(white[1:] != white[:-1])
    return edges[::2], edges[1::2] - edges[::2]


def _places(
    block: Block,
    breaks: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> Places:
    """starts: ascending, within the block. breaks: where its lines end."""
    before = np.searchsorted(breaks, starts)
    lines = np.concatenate(([0], breaks + 1))[before]
    return Places(block.first_line + before, block.offset + starts, starts - lines + 1, lengths)
