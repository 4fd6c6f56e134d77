"""ADIOS2 BP files and folders, through the adios2 package."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ciwrap.errors import ConfigError, CorruptFileError, OutputMissingError
from ciwrap.readers.base import Reader, Source, reading
from ciwrap.readers.boxes import FlatReader
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.history import OPTION_NAMES, IterationRule
from ciwrap.readers.optional import library
from ciwrap.readers.probe import look_first

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TYPES = {
    "int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4",
    "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8", "float": "f4", "double": "f8",
    "float complex": "c8", "double complex": "c16", "char": "i1",
}  # fmt: skip


# ADIOS2 waits without end for data that a file promises and does not hold.
_WAIT_SECONDS = 10


class Adios2Reader(Reader):
    """Every variable by its name, its steps as iterations; local arrays by the blocks (ranks) that
    wrote them. Attributes are compared only if `attributes` asks for it.
    """

    name: ClassVar[str] = "adios2"
    suffixes: ClassVar[tuple[str, ...]] = (".bp", ".bp4", ".bp5")
    option_names: ClassVar[tuple[str, ...]] = (*OPTION_NAMES, "attributes")
    is_folder: ClassVar[bool] = True

    def is_output(self, path: Path) -> bool:
        return path.suffix.lower() in self.suffixes or (path / "md.idx").is_file()

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - the file names its variables
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        given = dict(options or {})
        self.check_options(given, path)
        rule = IterationRule.of(given, path)
        if rule.axis not in ("auto", "none"):
            raise ConfigError("steps have no name here", file=path, key="options.iterations")
        with reading(path):
            if not path.exists():
                raise OutputMissingError(
                    "does not exist", file=path, remedy="run the program first"
                )
            if path.is_dir():
                held = list(path.iterdir())
                if not any(one.name == "md.idx" for one in held):
                    raise CorruptFileError("holds no md.idx, as an ADIOS2 output does", file=path)
        if not path.is_dir():
            from ciwrap.readers.hdf5 import check_is_file

            check_is_file(path)
        adios2 = library("adios2", "adios2", file=path)
        has_attributes = bool(given.get("attributes"))
        look_first(
            path,
            lambda: _source(adios2, path, rule, has_attributes=has_attributes),
            wait_seconds=_WAIT_SECONDS,
        )
        return _source(adios2, path, rule, has_attributes=has_attributes)


def _source(adios2: Any, path: Path, rule: IterationRule, *, has_attributes: bool) -> Source:
    with guarded(path):
        io = adios2.Adios().declare_io("ciwrap")
        # For what another program is still to write, ADIOS2 would wait.
        io.set_parameters({"OpenTimeoutSecs": "0.5"})
        file = adios2.FileReader(io, str(path))
    try:
        with guarded(path):
            listing = _listing(file, path, rule, has_attributes=has_attributes)
        return EntrySource(path, listing.entries, file.close)
    except BaseException:
        with contextlib.suppress(Exception):  # the error at hand is the one to tell
            file.close()
        raise


def _listing(file: Any, path: Path, rule: IterationRule, *, has_attributes: bool) -> Listing:
    listing = Listing(path)
    variables = file.available_variables()
    numbers: list[int] | None = None
    if rule.variable is not None:
        if rule.variable not in variables:
            raise ConfigError(
                f"there is no variable {rule.variable!r}",
                file=path,
                key="options.iteration_variable",
            )
        count = int(variables[rule.variable]["AvailableStepsCount"])
        values = [_scalar(file, rule.variable, step) for step in range(count)]
        numbers = rule.numbers(values, path, rule.variable)
    for name, facts in variables.items():
        count = int(facts["AvailableStepsCount"])
        if numbers is not None and len(numbers) != count:
            listing.add_fault(name, f"has {count} steps, {rule.variable!r} has {len(numbers)}")
            continue
        for step in range(count):
            iteration = None if not rule.is_on else step if numbers is None else numbers[step]
            _variable(file, listing, name, facts, step, iteration)
    if has_attributes:
        for name in file.available_attributes():
            listing.add_array(f"@{name}", file.read_attribute(name))
    return listing


def _scalar(file: Any, name: str, step: int) -> Any:
    return np.asarray(file.read(name, step_selection=[step, 1])).reshape(-1)[0]


def _variable(
    file: Any,
    listing: Listing,
    name: str,
    facts: Mapping[str, str],
    step: int,
    iteration: int | None,
) -> None:
    key = f"{name}[{step}]"
    place: dict[str, Any] = {"called": name, "iteration": iteration}
    if facts["Type"] == "string":
        listing.add_array(key, str(file.read(name, step_selection=[step, 1])), **place)
        return
    code = _TYPES.get(facts["Type"])
    if code is None:
        listing.add_fault(key, f"is of type {facts['Type']}, which is not compared", **place)
        return
    dtype = np.dtype(code)
    if facts.get("SingleValue") == "true":
        listing.add_array(key, np.asarray(_scalar(file, name, step), dtype=dtype), **place)
        return
    shape = tuple(int(n) for n in facts["Shape"].split(",") if n.strip())
    if shape:
        flat = FlatReader(shape, dtype, _box_reader(file, name, step))
        listing.add(key, dtype, shape, flat.read, **place)
        return
    for block, one in enumerate(file.engine.blocks_info(name, step)):
        lengths = tuple(int(n) for n in str(one["Count"]).split(",") if n.strip())
        values = np.asarray(file.read(name, block_id=block, step_selection=[step, 1]))
        listing.add_array(
            f"{key}/{block}", values.astype(dtype, copy=False).reshape(lengths), rank=block, **place
        )


def _box_reader(file: Any, name: str, step: int) -> Any:
    def read(start: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        return file.read(name, start=list(start), count=list(lengths), step_selection=[step, 1])

    return read
