"""Tables of runs: a row for each run, a column for each parameter and for what was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError, UnsupportedFormatError, UsageError
from ciwrap.late import numpy as np
from ciwrap.readers.files import InputFile
from ciwrap.readers.registry import reader_named
from ciwrap.readers.text_cells import parse_float
from ciwrap.readers.text_rows import Dialect, RowReader
from ciwrap.report.text import plural
from ciwrap.structs import Struct, field
from ciwrap.variability.results import result_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ciwrap.variability.space import Numbers

Cell = str | float
MOST_ROWS = 2_000_000
# Columns that number the repeats say nothing of the configuration.
_NUMBERS = frozenset({"run", "repeat", "repetition", "trial"})
_TIMES = frozenset({"seconds", "time_s"})
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# The square of a square, as of a kurtosis, must be a number, too.
_LARGEST = 1e70
_PARQUET = frozenset({".parquet", ".pq"})


class Table(Struct, frozen=True):
    """One file. columns: their cells, by name; "" for a missing one. labels: how a message names
    each row.
    """

    path: Path
    columns: Mapping[str, Sequence[Cell]]
    labels: list[str]


class Roles(Struct, frozen=True):
    """What the columns are. value: what was measured; None for `seconds`, or the last column.
    seconds: how long a run took. categories: whose texts make separate maps. ignored: that say
    nothing.
    """

    value: str | None = None
    seconds: str | None = None
    categories: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class Group(Struct):
    """The runs of one map, by configuration.

    category: its text in each column of categories. runs, seconds: by the values of the parameters.
    rows: how a message names the first row of each.
    """

    category: dict[str, str]
    runs: dict[tuple[float, ...], list[float]] = field(default_factory=dict)
    seconds: dict[tuple[float, ...], list[float]] = field(default_factory=dict)
    rows: dict[tuple[float, ...], str] = field(default_factory=dict)

    @property
    def points(self) -> Numbers:
        return np.array(list(self.runs), dtype=np.float64)


class Runs(Struct, frozen=True):
    """All runs of a table. parameters: names, in the order of a configuration's values. value: the
    column that was measured. has_seconds: whether the time of each run is known. ignored: columns
    that were left out without being asked to.
    """

    file: str
    parameters: tuple[str, ...]
    value: str
    has_seconds: bool
    groups: tuple[Group, ...]
    ignored: tuple[str, ...]


def read_runs(paths: Sequence[Path], roles: Roles) -> Runs:
    """Reads tables with the same columns: .csv, .tsv, .parquet, or results of `ciwrap repeat` and
    `ciwrap time` (.json).

    Raises UsageError for a column that is not there and a file that is given twice,
    CorruptFileError for a cell that has no meaning, UnsupportedFormatError for another kind of
    file, NotComparableError for a result with runs that failed.
    """
    _refuse_repeated(paths)
    tables = [_read(path) for path in paths]
    first = tables[0]
    for other in tables[1:]:
        if other.columns.keys() != first.columns.keys():
            raise CorruptFileError(
                f"has the columns {', '.join(other.columns)}, and {first.path} has"
                f" {', '.join(first.columns)}",
                file=other.path,
                remedy="give tables with the same columns",
            )
    return _Sorter(first, roles).sorted(tables)


def _refuse_repeated(paths: Sequence[Path]) -> None:
    """Runs that are told twice have not happened twice: sigma would look surer than it is."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise UsageError("this table is given twice", file=path, remedy="leave one out")
        seen.add(path.resolve())


def _read(path: Path) -> Table:
    suffix = path.suffix.lower()
    if suffix == ".json":
        names, rows = result_rows(path)
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        return Table(path, columns, [f"run {number}" for number in range(1, len(rows) + 1)])
    if suffix in _PARQUET:
        return _read_parquet(path)
    if suffix in _DELIMITERS:
        return _read_text(path, _DELIMITERS[suffix])
    raise UnsupportedFormatError(
        "is not a table",
        file=path,
        remedy="give a .csv, .tsv or .parquet file, or a result of `ciwrap repeat` or `time`",
    )


def _read_text(path: Path, delimiter: str) -> Table:
    file = InputFile(path)
    try:
        rows: list[Sequence[Cell]] = []
        labels: list[str] = []
        dialect = Dialect(delimiter, final_newline=False)
        for block in RowReader(file, dialect, if_binary="save it as UTF-8 text").blocks():
            rows += [[cell.strip() for cell in row] for row in block.rows]
            labels += [f"line {number}" for number in block.lines]
            _check_count(path, len(rows))
    finally:
        file.close()
    if len(rows) < 2:
        raise CorruptFileError(
            "holds no runs", file=path, remedy="a first line names the columns, others are runs"
        )
    names = tuple(str(cell) for cell in rows[0])
    _check_names(path, names)
    for row, label in zip(rows, labels, strict=True):
        if len(row) != len(names) or len(row) == 1:
            raise CorruptFileError(
                f"{label}: has {plural(len(row), 'cell')},"
                f" and the first line names {plural(len(names), 'column')}",
                file=path,
                remedy="write commas, or tabs in a .tsv file, and quote cells that hold one",
            )
    columns = dict(zip(names, zip(*rows[1:], strict=True), strict=True))
    return Table(path, columns, labels[1:])


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names, 1):
        if not name or number_of(name) is not None:
            raise CorruptFileError(
                f"line 1, column {number}: {name!r} names no column",
                file=path,
                remedy="let the first line name the columns",
            )
        if names.count(name) > 1:
            raise CorruptFileError(
                f"two columns are called {name!r}", file=path, remedy="rename one"
            )


def _check_count(path: Path, count: int) -> None:
    if count > MOST_ROWS:
        raise CorruptFileError(
            f"has more than {MOST_ROWS} rows", file=path, remedy="give a part of it"
        )


def _read_parquet(path: Path) -> Table:
    with reader_named("parquet", file=path).open(path) as source:
        columns: dict[str, Sequence[Cell]] = {}
        nulls: dict[str, Any] = {}
        for info in source.variables:
            _check_count(path, info.element_count)
            if info.fault is not None or len(info.shape) != 1:
                raise CorruptFileError(
                    info.fault or "is a column of lists",
                    file=path,
                    variable=info.name,
                    remedy="give a table of numbers and texts",
                )
            if not info.element_count:
                continue
            values = np.concatenate(list(source.slabs(info.name)))
            if info.name.endswith(".is_null"):
                nulls[info.name.removesuffix(".is_null")] = values
            else:
                cell = str if values.dtype.kind in "US" else float
                columns[info.name] = [cell(one) for one in values]
    for name, missing in nulls.items():
        cells = zip(columns[name], missing, strict=True)
        columns[name] = ["" if is_missing else one for one, is_missing in cells]
    if not columns:
        raise CorruptFileError("holds no runs", file=path)
    count = len(next(iter(columns.values())))
    return Table(path, columns, [f"row {one}" for one in range(1, count + 1)])


def number_of(cell: Cell) -> float | None:
    """A cell's number; None for text. Infinite where it is too large."""
    if isinstance(cell, float):
        return cell
    try:
        return parse_float(cell)
    except OverflowError:
        return math.inf


class _Sorter:
    """Sorts rows by category and configuration."""

    def __init__(self, first: Table, roles: Roles) -> None:
        self._roles = roles
        self._names = tuple(first.columns)
        self._path = first.path
        named = {roles.value, roles.seconds, *roles.categories, *roles.ignored} - {None}
        for name in named.difference(self._names):
            raise UsageError(
                f"{first.path}: there is no column {name!r}",
                remedy=f"there are {', '.join(self._names)}",
            )
        free = [name for name in self._names if name not in named]
        self._ignored = tuple(name for name in free if name.lower() in _NUMBERS)
        self._value = roles.value or self._usual_value(
            [name for name in free if name not in self._ignored]
        )
        self._seconds = roles.seconds or (self._value if self._value.lower() in _TIMES else None)

    def _usual_value(self, free: list[str]) -> str:
        """`seconds` if there is such a column, else the last one that has no other role."""
        times = [name for name in free if name.lower() in _TIMES]
        if not free:
            raise UsageError(f"{self._path}: no column is left for what was measured")
        return times[0] if times else free[-1]

    def sorted(self, tables: Sequence[Table]) -> Runs:
        left_out = {*self._roles.ignored, *self._ignored, self._value, self._seconds}
        kept = [name for name in self._names if name not in left_out]
        texts = [name for name in kept if self._is_category(name, tables)]
        parameters = [name for name in kept if name not in texts]
        if not parameters:
            raise UsageError(
                f"{self._path}: no column is left for a parameter",
                remedy="say with --value which one was measured",
            )
        groups: dict[tuple[str, ...], Group] = {}
        for table in tables:
            rows = zip(*table.columns.values(), strict=True)
            for label, row in zip(table.labels, rows, strict=True):
                cells = dict(zip(table.columns, row, strict=True))
                key = tuple(self._text(table, label, name, cells[name]) for name in texts)
                group = groups.get(key)
                if group is None:
                    group = groups[key] = Group(dict(zip(texts, key, strict=True)))
                self._add(group, table, label, cells, parameters)
        return Runs(
            ", ".join(str(table.path) for table in tables),
            tuple(parameters),
            self._value,
            self._seconds is not None,
            tuple(groups.values()),
            self._ignored,
        )

    def _is_category(self, name: str, tables: Sequence[Table]) -> bool:
        """Whether a column holds nothing but text, or is said to be a category."""
        return name in self._roles.categories or all(
            isinstance(cell, str) and cell and number_of(cell) is None
            for table in tables
            for cell in table.columns[name]
        )

    def _add(
        self,
        group: Group,
        table: Table,
        label: str,
        cells: dict[str, Cell],
        parameters: Iterable[str],
    ) -> None:
        point = tuple(self._number(table, label, name, cells[name]) for name in parameters)
        value = self._number(table, label, self._value, cells[self._value])
        group.runs.setdefault(point, []).append(value)
        group.rows.setdefault(point, f"{table.path}: {label}")
        if self._seconds is not None:
            seconds = self._number(table, label, self._seconds, cells[self._seconds])
            if seconds < 0:
                problem = f"{cells[self._seconds]} is negative, and no run takes less than no time"
                raise _cell_error(table, label, self._seconds, problem, "fix it")
            group.seconds.setdefault(point, []).append(seconds)

    def _number(self, table: Table, label: str, name: str, cell: Cell) -> float:
        number = number_of(cell)
        if number is not None and abs(number) <= _LARGEST:
            return number
        if number is not None:
            problem = f"{cell} is not a finite number of up to {_LARGEST:g}"
            raise _cell_error(table, label, name, problem, "fix it, or give another unit")
        if cell == "":
            raise _empty_cell(table, label, name)
        remedy = "write a number"
        if name not in (self._value, self._seconds):
            remedy += f", or make separate maps with --category {name}"
        raise _cell_error(table, label, name, f"{str(cell)[:40]!r} is not a number", remedy)

    def _text(self, table: Table, label: str, name: str, cell: Cell) -> str:
        if cell == "" or cell != cell:
            raise _empty_cell(table, label, name)
        return f"{cell:.10g}" if isinstance(cell, float) else cell


def _empty_cell(table: Table, label: str, name: str) -> CorruptFileError:
    remedy = "fill it in, or leave out the row"
    return _cell_error(table, label, name, "the cell is empty", remedy)


def _cell_error(table: Table, label: str, name: str, problem: str, remedy: str) -> CorruptFileError:
    return CorruptFileError(f"{label}: {problem}", file=table.path, variable=name, remedy=remedy)
