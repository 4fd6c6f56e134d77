"""XYZ and extended XYZ trajectories: atoms in rows, one frame after the other."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import ConfigError, CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, Source
from ciwrap.readers.entries import Entry, Listing, opened
from ciwrap.readers.frames import MOST_COLUMNS, TEXT_DTYPE, Column, Frame, Lines, frame_entries
from ciwrap.readers.history import IterationRule
from ciwrap.readers.text_cells import parse_floats

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers.base import Labels
    from ciwrap.readers.files import InputFile
_MOST_BRACKETS = 6


def _nested(opening: str, closing: str) -> str:
    """A pattern of what stands between brackets, which may hold such brackets again."""
    begin, end = re.escape(opening), re.escape(closing)
    other = f"[^{begin}{end}]"
    pattern = f"{begin}{other}*{end}"
    for _ in range(_MOST_BRACKETS):
        pattern = f"{begin}(?:{other}|{pattern})*{end}"
    return pattern


_KEY = r"[^\W\d][\w.\-()\[\]/^%]*"
_QUOTED = r"\"((?:[^\"\\]|\\.)*)\""
# A comma within a word ends it only before another key: `1,5` is no 1.
_COMMA = rf",(?=[^\s,])(?!{_KEY}\s*[=:])"
# A sign apart from its digits, and an exponent apart from them, as of what was filled up between.
_PARTED = r"(?<=[=:\s][+\-\u2212])\s+(?=\.?\d)|(?<=\d)\s+(?=[eEdDqQ][+\-]\d+(?:[\s,]|$))"
_VALUE = (
    rf"(?:(?:{_QUOTED}|'([^']*)'|({_nested('{', '}')})|({_nested('[', ']')}))(?![^\s,])"
    # Whatever comes behind what has no end, or goes on behind it, belongs to it.
    r"|([\"{\[].*)"
    rf"|((?:[^\s,\"{{}}]|{_COMMA})(?:[^\s,]|{_COMMA}|{_PARTED})*))"
)
# `energy=-1.5`, `Lattice="1 0 0 ..."`, CP2K's `i = 3, time = 1.5`, LAMMPS's `Timestep: 50`,
# `virial=[[1, 2], [3, 4]]`, ASE's `"my key"=5` and `info="_JSON {\"a\": 1}"`.
_FACT = re.compile(rf"(?:(?<=[\s,])|^)(?:{_QUOTED}\s*=|({_KEY})\s*[=:])\s*{_VALUE}")
# What else says something of a key, such as `k+1=5`.
_OTHER = re.compile(rf"(?<!\S)[^\s=]*\s{{0,9}}=\s{{0,9}}{_VALUE}?")
_OTHER_NAME = "comment"
_BRACKETS = re.compile(r"[\[\],\s]+")
_TYPES = {"R": "<f8", "I": "<i8", "L": "|b1", "S": TEXT_DTYPE}
_PLAIN = (Column("species", TEXT_DTYPE), Column("pos", "<f8", 3))


class XyzReader(CheckedReader):
    """Frames as iterations: `species` and `pos` (atoms, 3), or the columns that `Properties` of
    extended XYZ names; and every `key=value` of the line of comment.
    """

    name: ClassVar[str] = "xyz"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["xyz"].suffixes
    option_names: ClassVar[tuple[str, ...]] = ("iteration_variable", "iteration_step")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options, path)
        return opened(path, lambda file: _entries(path, file, rule))


def _entries(path: Path, file: InputFile, rule: IterationRule) -> list[Entry]:
    frames = _frames(path, file)
    return frame_entries(Listing(path), file, frames, _steps(frames, rule, path))


def _frames(path: Path, file: InputFile) -> list[Frame]:
    lines = Lines(file)
    found: list[Frame] = []
    while not lines.is_done:
        head = lines.next()
        if found and not head.strip():
            continue  # some programs end their files with blank lines
        count = lines.whole(head, file.byte_count)
        comment = lines.next()
        facts = _facts(comment)
        properties = facts.pop("Properties", None)
        at, number = lines.at, lines.number
        columns = None if properties is None else _columns(lines, str(properties))
        if count and columns is None:
            width = len(lines.next().split())
            if not 4 <= width <= MOST_COLUMNS:
                raise lines.error(f"has {width} words where an atom and x, y, z are expected")
            more = (Column("more", "<f8", width - 4),) if width > 4 else ()
            columns = (*_PLAIN, *more)
            lines.skip(count - 1)
        else:
            lines.skip(count)
        taken = {column.name for column in columns or _PLAIN}
        # A key that is called like a column is told apart from it.
        arrays: dict[str, tuple[Any, Labels]] = {
            f"{name}=" if name in taken else name: (value, ()) for name, value in facts.items()
        }
        found.append(Frame(count, columns or _PLAIN, at, lines.at, number, arrays))
    if not found:
        raise CorruptFileError("holds no frames", file=path)
    return found


def _facts(comment: str) -> dict[str, Any]:
    """What a line of comment says as `key=value`: numbers, arrays of them, or texts. A key that
    comes again is told apart: `E`, `E.2`.
    """
    found: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for quoted, plain, *values in _FACT.findall(comment):
        key = quoted or plain
        times[key] += 1
        name = key if times[key] == 1 else f"{key}.{times[key]}"
        text = next(filter(None, values), "")
        found[name] = text if name == "Properties" else _fact(text)
    others = " ".join(one[0].strip() for one in _OTHER.finditer(_FACT.sub(" ", comment)))
    if others:
        times[_OTHER_NAME] += 1
        count = times[_OTHER_NAME]
        found[_OTHER_NAME if count == 1 else f"{_OTHER_NAME}.{count}"] = _text(others)
    return found


def _fact(text: str) -> Any:
    """A number, an array of them, or a text."""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    words = _BRACKETS.split(text.strip("[] ")) if text.startswith("[") else text.split()
    numbers = parse_floats(words)
    if not numbers:
        return _text(text)
    array = np.array(numbers, dtype=np.float64)
    return array if len(numbers) > 1 else array[0]


def _text(text: str) -> Any:
    return np.array(text, dtype=f"<U{-(-max(1, len(text)) // 16) * 16}")


def _columns(lines: Lines, properties: str) -> tuple[Column, ...]:
    """The columns that `species:S:1:pos:R:3` names. Raises CorruptFileError."""
    words = properties.split(":")
    found: list[Column] = []
    for name, kind, width in zip(words[::3], words[1::3], words[2::3], strict=False):
        count = int(width) if width.isascii() and width.isdecimal() and len(width) < 6 else 0
        if not name or kind not in _TYPES or not 0 < count <= MOST_COLUMNS:
            raise lines.error(f"has Properties {name[:40]}:{kind[:8]}:{width[:8]}, which is none")
        found.append(Column(name, _TYPES[kind], count if count > 1 else None))
    if len(words) % 3 or len({column.name for column in found}) != len(found):
        raise lines.error("has Properties that are not names, types and numbers of columns")
    return tuple(found)


def _steps(frames: list[Frame], rule: IterationRule, path: Path) -> list[int]:
    if rule.variable is None:
        return list(range(len(frames)))
    values = [frame.facts.get(rule.variable, (None, ()))[0] for frame in frames]
    if any(value is None or np.ndim(value) for value in values):
        raise ConfigError(
            f"not every frame's comment says {rule.variable!r} as one number",
            file=path,
            key="options.iteration_variable",
        )
    return rule.numbers(np.array(values), path, rule.variable)
