"""Tables of runs (a row for each run), their configurations, and the space these lie in.

Rows may come from results of `ciwrap repeat` and `ciwrap time`. The space has one axis for each
parameter that changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ciwrap.base.documents import DocumentError, to_record
from ciwrap.base.errors import (
    CorruptFileError,
    InvalidResultError,
    NotComparableError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.base.late import numpy as np
from ciwrap.formats.find_outputs import reader_named
from ciwrap.formats.reader import InputFile
from ciwrap.formats.tables import Dialect, RowReader, parse_float
from ciwrap.model.repeat_result import RepeatResult
from ciwrap.report.document import load_document, reading_result
from ciwrap.report.text import plural, short_number
from ciwrap.statistics.spread import kurtosis_of, scipy
from ciwrap.studies.timing import TimingDocument

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    result = _read_result(path)
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


def _read_result(path: Path) -> RepeatResult | TimingDocument:
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


MOST_ROWS = 2_000_000
# Columns that number the repeats say nothing of the configuration.
_NUMBERS = frozenset({"run", "repeat", "repetition", "trial"})
_TIMES = frozenset({"seconds", "time_s"})
# Of runs side by side, such as run1, run2, run3; and what people write down of runs.
_NUMBERED = re.compile(r"(\D*)\d{1,4}")
_FEW_RUNS = 3
_OF_SUMMARIES = frozenset(
    {"std", "stdev", "stddev", "sd", "sigma", "deviation", "variance", "cov", "stderr"}
)
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
    tables = [_read_table(path) for path in paths]
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
    """Runs that are listed twice have not happened twice: sigma would look surer than it is."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise UsageError("this table is given twice", file=path, remedy="leave one out")
        seen.add(path.resolve())


def _read_table(path: Path) -> Table:
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
        text = f"has more than {MOST_ROWS} rows"
        raise CorruptFileError(text, file=path, remedy="give a part of it")


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


def _refuse_other_forms(path: Path, value: str, names: Sequence[str]) -> None:
    """Raises UsageError if the column that nobody chose looks like one of runs that stand side by
    side, or like a summary of runs.
    """
    remedy = "give a row for each run{how}, or say with --value which column was measured"
    numbered = _NUMBERED.fullmatch(value)
    alike = [
        name
        for name in names
        if numbered is not None
        and (other := _NUMBERED.fullmatch(name)) is not None
        and other[1] == numbered[1]
    ]
    if len(alike) >= _FEW_RUNS:
        raise UsageError(
            f"{path}: {alike[0]} to {value} look like runs of one configuration, side by side",
            remedy=remedy.format(how=", as pandas.melt makes them"),
        )
    if value.lower() in _OF_SUMMARIES:
        raise UsageError(
            f"{path}: {value} looks like what was worked out of runs, and the runs are needed",
            remedy=remedy.format(how=""),
        )


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
        free = [name for name in free if name not in self._ignored]
        self._value = roles.value or self._usual_value(free)
        if roles.value is None:
            _refuse_other_forms(first.path, self._value, free)
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
        # A category is a column that is said to be one, or holds nothing but text.
        texts = [
            name
            for name in kept
            if name in self._roles.categories
            or all(
                isinstance(cell, str) and cell and number_of(cell) is None
                for table in tables
                for cell in table.columns[name]
            )
        ]
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


if TYPE_CHECKING:
    Numbers = NDArray[np.float64]

# Parameters that span this factor or more count by their logarithm.
LOG_FACTOR = 8.0
# Levels closer than this share of an axis are one, if the others are much further apart.
NEAR_SHARE = 0.01
_MUCH = 5.0
_LEAST_PER_LEVEL = 3


class Axis(Struct, frozen=True, forbid_unknown_fields=True):
    """One parameter. low, high: its smallest and largest value. is_log: whether it counts by its
    logarithm.
    """

    name: str
    low: float
    high: float
    is_log: bool

    def unit(self, values: Numbers) -> Numbers:
        """The values' places between 0 (low) and 1 (high). For a logarithmic axis they must be
        above 0.
        """
        low, high = self.low, self.high
        if self.is_log:
            values, low, high = np.log2(values), np.log2(low), np.log2(high)
        placed: Numbers = (values - low) / (high - low)
        return placed

    def value(self, place: float) -> float:
        """The value at a place between 0 and 1."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** place)
        return float(self.low + (self.high - self.low) * place)


def axis_of(name: str, values: Numbers) -> Axis:
    """The axis of a parameter that has at least two values."""
    low, high = float(values.min()), float(values.max())
    return Axis(name, low, high, is_log=low > 0 and high / low >= LOG_FACTOR)


class Space(Struct, frozen=True):
    """All axes, in the order of the columns of a matrix of configurations."""

    axes: tuple[Axis, ...]

    def places(self, points: Numbers) -> Places:
        """points: a row for each configuration."""
        raw = np.asarray(points, dtype=np.float64)
        units = [axis.unit(raw[:, column]) for column, axis in enumerate(self.axes)]
        return Places(raw, np.column_stack(units))


class Places(Struct, frozen=True):
    """Configurations in the units of the parameters (raw) and in the unit cube (unit)."""

    raw: Numbers
    unit: Numbers

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, rows: NDArray[np.intp]) -> Places:
        return Places(self.raw[rows], self.unit[rows])


def space_of(names: Sequence[str], points: Numbers) -> Space:
    """The space that these configurations span. points: a row for each; every column varies."""
    return Space(tuple(axis_of(name, column) for name, column in zip(names, points.T, strict=True)))


def is_inside(unit: Numbers, place: Numbers) -> bool:
    """Whether a place is a mean of the measured ones with some weights: a linear program."""
    equal = np.vstack([unit.T, np.ones(len(unit))])
    found = scipy("optimize", "a variability map").linprog(
        np.zeros(len(unit)), A_eq=equal, b_eq=np.append(place, 1.0), method="highs"
    )
    return bool(found.status == 0)


def are_inside(unit: Numbers, places: Numbers) -> NDArray[np.bool_]:
    """Of each place whether it `is_inside`, by the faces of the hull as long as these are few."""
    # Configurations may lie in a plane, as where one parameter follows from others.
    centre = unit.mean(axis=0)
    _, sizes, directions = np.linalg.svd(unit - centre, full_matrices=False)
    across, rest = directions[sizes > _FLAT], directions[sizes <= _FLAT]
    is_level: NDArray[np.bool_] = np.all(np.abs((places - centre) @ rest.T) <= _FLAT, axis=1)
    flat, found = (unit - centre) @ across.T, (places - centre) @ across.T
    is_between: NDArray[np.bool_]
    if len(across) == 1:
        is_between = np.all((found >= flat.min()) & (found <= flat.max()), axis=1)
        return is_level & is_between
    if len(across) <= MOST_HULL_DIMENSIONS:
        faces = scipy("spatial", "a variability map").ConvexHull(flat).equations
        is_between = np.all(found @ faces[:, :-1].T + faces[:, -1] <= _FLAT, axis=1)
        return is_level & is_between
    return np.array([is_inside(unit, place) for place in places], dtype=bool)


def merged_levels(axis: Axis, values: Numbers) -> list[tuple[float, ...]]:
    """Groups of levels of one parameter that are nearly the same, each in rising order.

    Two levels are, if they lie within 1 % of the axis and within a fifth of the usual distance
    between neighbours. Beside a level, its near double would make local slopes explode. A parameter
    that was drawn at random, so that a level stands for fewer than three configurations, stays as
    it is.
    """
    levels = np.unique(values)
    if levels.size * _LEAST_PER_LEVEL > values.size:
        return []
    places = axis.unit(levels)
    gaps = np.diff(places)
    near = min(NEAR_SHARE, float(np.median(gaps)) / _MUCH) if gaps.size else 0.0
    groups: list[tuple[float, ...]] = []
    first = 0
    for position in range(1, len(levels) + 1):
        if position < len(levels) and places[position] - places[first] < near:
            continue
        if position - first > 1:
            groups.append(tuple(float(one) for one in levels[first:position]))
        first = position
    return groups


MOST_HULL_DIMENSIONS = 5
_FLAT = 1e-9
LEAST_CONFIGURATIONS = 10
MOST_CONFIGURATIONS = 1000
# Runs that differ by less count as equal: squares of squares of that are no numbers any more.
_LEAST_RANGE = 1e-70


class Measured(Struct, frozen=True, dict=True):
    """Configurations of one map. space: of the parameters that vary. points: a row for each
    configuration, in the order of the space's axes. runs: its measured values. seconds: how long
    each run took, () where that is not known. fixed: parameters with one value only.
    """

    space: Space
    points: Numbers
    runs: tuple[Numbers, ...]
    seconds: tuple[Numbers, ...] = ()
    fixed: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def places(self) -> Places:
        return self.space.places(self.points)

    @cached_property
    def sigma(self) -> Numbers:
        return np.array([one.std(ddof=1) for one in self.runs])

    @cached_property
    def means(self) -> Numbers:
        return np.array([one.mean() for one in self.runs])

    @cached_property
    def counts(self) -> Numbers:
        return np.array([float(one.size) for one in self.runs])

    @cached_property
    def kurtosis(self) -> float:
        """The median over the configurations; 3 where runs are too few to tell."""
        known = [one for one in map(kurtosis_of, self.runs) if one is not None]
        return float(np.median(known)) if known else 3.0

    def only(self, rows: Sequence[int]) -> Measured:
        """Some of the configurations, in the same space."""
        return Measured(
            self.space,
            self.points[list(rows)],
            tuple(self.runs[row] for row in rows),
            tuple(self.seconds[row] for row in rows) if self.seconds else (),
            self.fixed,
        )

    def row_of(self, point: Numbers) -> int | None:
        """The row of a configuration that was measured."""
        same = np.flatnonzero(np.all(np.isclose(self.points, point, rtol=1e-9, atol=0), axis=1))
        return int(same[0]) if same.size else None


class Prepared(Struct, frozen=True):
    """Configurations that a map can be fitted to, and what was done to make them so."""

    measured: Measured
    notes: tuple[str, ...]


def prepare(
    names: Sequence[str],
    points: Numbers,
    runs: Sequence[Numbers],
    seconds: Sequence[Numbers],
    *,
    where: str,
    seed: int,
) -> Prepared:
    """Leaves out parameters that never change and configurations that never vary, merges levels
    that are nearly the same, and draws 1000 configurations where there are more.

    where: the file and the category, for messages. Raises NotComparableError where too little is
    left.
    """
    notes: list[str] = []
    varied, fixed = _varying(names, points, notes)
    if not varied:
        raise NotComparableError(
            f"has one configuration, and a map takes {LEAST_CONFIGURATIONS}",
            file=where,
            remedy="measure others, too",
        )
    measured = Measured(
        space_of([names[one] for one in varied], points[:, varied]),
        points[:, varied],
        tuple(runs),
        tuple(seconds),
        fixed,
    )
    measured = _without_equal_runs(measured, notes, where)
    measured = _with_merged_levels(measured, notes)
    if len(measured) < LEAST_CONFIGURATIONS:
        raise NotComparableError(
            f"has {plural(len(measured), 'configuration')} that vary, and a map takes"
            f" {LEAST_CONFIGURATIONS}",
            file=where,
            remedy="measure more",
        )
    if len(measured) > MOST_CONFIGURATIONS:
        notes.append(
            f"of {len(measured)} configurations, {MOST_CONFIGURATIONS} drawn at random are used"
        )
        drawn = np.random.default_rng(seed).choice(
            len(measured), MOST_CONFIGURATIONS, replace=False
        )
        measured = measured.only(np.sort(drawn).tolist())
    return Prepared(measured, tuple(notes))


def _varying(
    names: Sequence[str], points: Numbers, notes: list[str]
) -> tuple[list[int], dict[str, float]]:
    varied = [column for column in range(len(names)) if np.ptp(points[:, column]) > 0]
    fixed = {
        name: float(points[0, column]) for column, name in enumerate(names) if column not in varied
    }
    if varied:
        notes += [
            f"{name} is {short_number(value)} in every row, so the map says nothing of other values"
            for name, value in fixed.items()
        ]
    return varied, fixed


def _without_equal_runs(measured: Measured, notes: list[str], where: str) -> Measured:
    differ = np.array([np.ptp(one) > _LEAST_RANGE for one in measured.runs])
    kept = np.flatnonzero(differ)
    gone = len(measured) - len(kept)
    if not gone:
        return measured
    if not len(kept):
        raise NotComparableError(
            "all runs of every configuration are equal, so nothing varies",
            file=where,
            remedy="is --value the column that was measured?",
        )
    equal = plural(gone, "configuration")
    notes.append(f"all runs of {equal} are equal, which no logarithm can show; left out")
    return _respaced(measured.only(kept.tolist()))


def _respaced(measured: Measured) -> Measured:
    """The same in the space that is left. A parameter may have one value now: its axis stays."""
    axes = tuple(
        axis_of(axis.name, column) if np.ptp(column) > 0 else axis
        for axis, column in zip(measured.space.axes, measured.points.T, strict=True)
    )
    return Measured(Space(axes), measured.points, measured.runs, measured.seconds, measured.fixed)


def _with_merged_levels(measured: Measured, notes: list[str]) -> Measured:
    points = measured.points.copy()
    merged = False
    for column, axis in enumerate(measured.space.axes):
        for group in merged_levels(axis, points[:, column]):
            # The level that most configurations have.
            level = max(group, key=lambda one: int(np.sum(points[:, column] == one)))
            texts = ", ".join(f"{one:.6g}" for one in group)
            notes.append(f"{axis.name}: {texts} are nearly the same and count as {level:.6g}")
            points[np.isin(points[:, column], group), column] = level
            merged = True
    if not merged:
        return measured
    return _respaced(_joined(measured, points))


def _joined(measured: Measured, points: Numbers) -> Measured:
    """Configurations that now are the same become one. Its runs keep their own deviations, about
    the common mean, so that a difference of the two is not taken for noise.
    """
    unique, numbers = np.unique(points, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    runs, seconds = [], []
    for number in range(len(unique)):
        rows = np.flatnonzero(numbers == number)
        mean = float(np.mean(measured.means[rows]))
        runs.append(
            np.concatenate([measured.runs[row] - measured.means[row] for row in rows]) + mean
        )
        if measured.seconds:
            seconds.append(np.concatenate([measured.seconds[row] for row in rows]))
    return Measured(measured.space, unique, tuple(runs), tuple(seconds), measured.fixed)
