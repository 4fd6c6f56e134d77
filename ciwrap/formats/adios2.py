"""ADIOS2 BP files and folders, through the adios2 package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from ciwrap.arrays.values import Labels
from ciwrap.base.errors import ConfigError, CorruptFileError, StillWrittenError
from ciwrap.base.late import numpy as np
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import (
    EntrySource,
    FlatReader,
    HistoryReader,
    IterationRule,
    Listing,
    Place,
    are_filled,
)
from ciwrap.formats.openpmd import add_openpmd
from ciwrap.formats.reader import (
    AttributeRule,
    Source,
    add_attributes,
    check_is_file,
    guarded,
    library,
    not_there,
)

_TYPES = {
    "int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4",
    "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8", "float": "f4", "double": "f8",
    "float complex": "c8", "double complex": "c16", "char": "i1",
}  # fmt: skip
# For what another program is still to write, ADIOS2 would wait.
_WAIT_SECONDS = 0.5
_PARAMETERS = {"OpenTimeoutSecs": str(_WAIT_SECONDS)}
# Nothing that ADIOS2 opens is closed: when it closes a file that it has read, it leaves another one
# in /tmp, and no parameter keeps it from doing so. All of it ends with the process.
_never_closed: list[Any] = []


class Adios2Reader(HistoryReader):
    """Every variable by its name, its steps as iterations; local arrays by the blocks (ranks) that
    wrote them. Attributes (`NAME/units` is one of the variable NAME) are labels or variables as
    those of HDF5 are. ADIOS2 crashes on most damage and waits without end for data that a file
    promises and does not hold, so it only ever runs in a process of its own.
    """

    name: ClassVar[str] = "adios2"
    is_folder: ClassVar[bool] = True

    def is_output(self, path: Path) -> bool:
        return path.suffix.lower() in self.suffixes or (path / "md.idx").is_file()

    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        if rule.axis not in ("auto", "none"):
            raise ConfigError(
                "must be auto or none, since steps have no name here", key="options.iterations"
            )
        if not path.exists():
            raise not_there(path)
        if not path.is_dir():
            check_is_file(path)
        elif not (path / "md.idx").is_file():
            raise CorruptFileError("holds no md.idx, as an ADIOS2 output does")
        _library(path)
        return SourceApart(path, partial(_source, path, rule, attributes), bytes_below(path))


def _library(path: Path) -> Any:
    return library("adios2", file=path)


def _source(path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
    adios2 = _library(path)
    with guarded(path):
        io = adios2.Adios().declare_io("ciwrap")
        io.set_parameters(_PARAMETERS)
        file = adios2.FileReader(io, str(path))
        _never_closed.append(file)
        listing = _Contents(adios2, file, path, rule, attributes).listing()
        add_openpmd(listing, _Attributes(file), attributes)
        add_attributes(listing, _Attributes(file), (), lambda _, name: Place(name), attributes)
    return EntrySource(path, listing.entries, attributes_left_out=listing.left_out)


class _Attributes(Mapping[str, Any]):
    """The attributes of a file, or of one variable, read when they are asked for."""

    def __init__(self, file: Any, variable: str = "") -> None:
        self._file = file
        self._variable = variable
        self._names = dict.fromkeys(file.available_attributes(variable))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._file.read_attribute(name, self._variable)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Step(Struct, frozen=True):
    """A variable in one step. own: the how-manieth of the steps that have it, as reading counts
    them. blocks: the lengths of what each writer wrote of it; starts: where it did so, of
    several blocks, None where ADIOS2 cannot tell.
    """

    name: str
    facts: Mapping[str, str]
    own: int
    blocks: tuple[tuple[int, ...], ...]
    starts: tuple[tuple[int, ...], ...] | None


class _Contents:
    def __init__(
        self,
        adios2: Any,
        file: Any,
        path: Path,
        rule: IterationRule,
        attributes: AttributeRule,
    ) -> None:
        self._file = file
        self._attributes = attributes
        self._labels: dict[str, Labels] = {}
        self._rule = rule
        self._steps = _steps(adios2, path)
        if not any(self._steps):
            raise CorruptFileError("holds no data")
        self._listing = Listing(path)
        self._stored_bytes = bytes_below(path)

    def listing(self) -> Listing:
        numbers = self._numbers()
        for number, step in enumerate(self._steps):
            for one in step.values():
                iteration: int | None = None
                if self._rule.is_on:
                    iteration = number if numbers is None else numbers.get(number)
                    if iteration is None:
                        self._listing.add_fault(
                            f"{one.name}[{one.own}]",
                            f"is in step {number}, in which {self._rule.variable!r} is not",
                            called=one.name,
                        )
                        continue
                place = {"called": one.name, "iteration": iteration}
                with self._listing.one(f"{one.name}[{one.own}]", **place):
                    self._add(one, {**place, "labels": self._labels_of(one.name)})
        return self._listing

    def _labels_of(self, name: str) -> Labels:
        if name not in self._labels:
            known = _Attributes(self._file, name)
            self._labels[name] = self._attributes.labels(None, known)
        return self._labels[name]

    def _numbers(self) -> dict[int, int] | None:
        """The iteration of each step that has the iteration variable."""
        variable = self._rule.variable
        if variable is None:
            return None
        at = [number for number, step in enumerate(self._steps) if variable in step]
        if not at:
            raise ConfigError(
                f"there is no variable {variable!r}", key="options.iteration_variable"
            )
        values = [self._scalar(variable, own) for own in range(len(at))]
        return dict(zip(at, self._rule.numbers(values, variable), strict=True))

    def _scalar(self, name: str, own: int) -> Any:
        return np.asarray(self._file.read(name, step_selection=[own, 1])).reshape(-1)[0]

    def _add(self, one: _Step, place: dict[str, Any]) -> None:
        key = f"{one.name}[{one.own}]"
        kind = one.facts["Type"]
        if kind == "string":
            text = str(self._file.read(one.name, step_selection=[one.own, 1]))
            self._listing.add_array(key, text, **place)
            return
        if kind not in _TYPES:
            self._listing.add_fault(key, f"is of type {kind}, which is not compared", **place)
            return
        dtype = np.dtype(_TYPES[kind])
        if one.facts.get("SingleValue") == "true":
            value = np.asarray(self._scalar(one.name, one.own), dtype=dtype)
            self._listing.add_array(key, value, **place)
            return
        shape = _lengths(one.facts["Shape"])
        if not shape:
            for block, lengths in enumerate(one.blocks):
                self._put(f"{key}/{block}", one, lengths, dtype, {**place, "rank": block}, block)
            return
        unwritten = _unwritten(shape, one)
        if unwritten is not None:
            # ADIOS2 would give zeros, or whatever is in memory.
            self._listing.add_fault(key, unwritten, **place)
            return
        self._put(key, one, shape, dtype, place, None)

    def _put(
        self,
        key: str,
        one: _Step,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        place: dict[str, Any],
        block: int | None,
    ) -> None:
        whose = {} if block is None else {"block_id": block}

        def read(start: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
            found = self._file.read(
                one.name,
                start=list(start),
                count=list(lengths),
                step_selection=[one.own, 1],
                **whose,
            )
            return np.asarray(found).astype(dtype, copy=False)

        flat = FlatReader(shape, dtype, read)
        self._listing.add(key, dtype, shape, flat.read, stored_bytes=self._stored_bytes, **place)


def _steps(adios2: Any, path: Path) -> list[dict[str, _Step]]:
    """What each step holds. Only a reader that goes from step to step learns all shapes: one with
    access to all steps at once gives every step the shape of the first, or the last.
    """
    io = adios2.Adios().declare_io("ciwrap")
    io.set_parameters(_PARAMETERS)
    engine = io.open(str(path), adios2.bindings.Mode.Read)
    status = adios2.bindings.StepStatus
    _never_closed.append(engine)
    steps: list[dict[str, _Step]] = []
    seen: dict[str, int] = {}
    while True:
        found = engine.begin_step(adios2.bindings.StepMode.Read, _WAIT_SECONDS)
        if found == status.EndOfStream:
            return steps
        if found != status.OK:
            raise StillWrittenError(
                f"has no end after {len(steps)} steps",
                remedy="has the program finished writing it?",
            )
        step: dict[str, _Step] = {}
        for name, facts in io.available_variables().items():
            is_array = facts.get("SingleValue") != "true" and facts["Type"] in _TYPES
            blocks = tuple(_blocks(io.inquire_variable(name))) if is_array else ()
            starts = _starts(engine, name) if len(blocks) > 1 else None
            step[name] = _Step(name, facts, seen.get(name, 0), blocks, starts)
            seen[name] = seen.get(name, 0) + 1
        steps.append(step)
        engine.end_step()


def _blocks(variable: Any) -> Iterator[tuple[int, ...]]:
    """The lengths of what the writers wrote, one after the other."""
    for block in itertools.count():
        variable.set_block_selection(block)
        try:
            lengths = variable.count()
        except ValueError:  # beyond the last one
            variable.set_block_selection(0)  # BP4 would look for it again in the next step
            return
        yield tuple(int(length) for length in lengths)


def _starts(engine: Any, name: str) -> tuple[tuple[int, ...], ...] | None:
    """Where the blocks of a variable begin in this step."""
    try:
        blocks = engine.blocks_info(name, engine.current_step())
    except UnicodeDecodeError:
        return None  # it makes text of the smallest and the largest byte, too
    found = [(_lengths(one["Start"]), one.get("IsReverseDims") == "True") for one in blocks]
    return tuple(start[::-1] if is_reversed else start for start, is_reversed in found)


def _unwritten(shape: tuple[int, ...], one: _Step) -> str | None:
    """What of an array no writer wrote; None if its blocks, which may overlap, are all of it."""
    total, written = math.prod(shape), sum(math.prod(lengths) for lengths in one.blocks)
    if written < total:
        return f"has {total} elements, of which {written} were written"
    if len(one.blocks) == 1 or total == 0:
        return None
    if one.starts is None:
        return None if written == total else f"has {total} elements, some of them written twice"
    blocks = [
        [(at, at + length) for at, length in zip(start, lengths, strict=True)]
        for start, lengths in zip(one.starts, one.blocks, strict=True)
        if 0 not in lengths
    ]
    if are_filled([(0, length) for length in shape], blocks):
        return None
    return "has elements that were written twice, and others that were not"


def _lengths(text: object) -> tuple[int, ...]:
    return tuple(int(number) for number in str(text).split(",") if number.strip())
