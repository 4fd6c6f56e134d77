"""Kinds of values that tests have at hand: how to make one, and one that must not match it.

The table of docs/reference/values.md is made of them (tools/generate-value-table).
"""

from __future__ import annotations

import array
import dataclasses
import datetime
import decimal
import enum
import fractions
import types
import uuid
import warnings
import zoneinfo
from collections import OrderedDict, deque, namedtuple
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ciwrap.base.errors import CiwrapError
from ciwrap.pytest_plugin.fixture import catalog_of

Pair = namedtuple("Pair", "low high")


@dataclasses.dataclass
class Result:
    x: Any
    ok: Any = True


@dataclasses.dataclass
class Nothing:
    pass


class Mesh:
    """A class that says what of it counts."""

    def __init__(self, nodes: Any) -> None:
        self.nodes = np.asarray(nodes)

    def __ciwrap__(self) -> Any:
        return {"nodes": self.nodes}


class Faced:
    """A class that shows its elements alone to NumPy."""

    def __init__(self, frames: Any, step: float) -> None:
        self.frames, self.step = frames, step

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, number: int) -> Any:
        return self.frames[number]


class Parameters(dict):  # type: ignore[type-arg]
    def __init__(self, **values: Any) -> None:
        super().__init__(values)
        self.fixed = True


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class State(enum.IntFlag):
    DONE = 1


class Order(enum.IntEnum):
    FIRST = 1


class OtherOrder(enum.IntEnum):
    FIRST = 2


OtherOrder.__name__ = "Order"


# Kind, the module that it needs ('' for none), a value, and one that differs from it; None instead
# of the latter: it is refused.
KINDS: list[tuple[str, str, str, str | None]] = [
    ("float", "", "1.5", "1.6"),
    ("integer", "", "3", "4"),
    ("complex number", "", "1 + 2j", "1 + 3j"),
    ("bool", "", "True", "False"),
    ("integer beyond 64 bits", "", "2**70", None),
    ("scalar of NumPy", "", "np.float32(1.5)", "np.float32(1.6)"),
    ("list of numbers", "", "[1.0, 2.0]", "[1.0, 2.5]"),
    ("list of lists", "", "[[1, 2], [3, 4]]", "[[1, 2], [3, 5]]"),
    ("list of texts", "", "['a', 'bc']", "['a', 'bd']"),
    ("tuple of numbers", "", "(1.0, 2.0)", "(2.0, 1.0)"),
    ("empty list", "", "[]", "[0.0]"),
    ("range", "", "range(3)", "range(1, 4)"),
    ("list of arrays of one shape", "", "[np.zeros(3), np.ones(3)]", "[np.zeros(3), np.zeros(3)]"),
    (
        "list of arrays of other shapes",
        "",
        "[np.zeros(3), np.zeros(5)]",
        "[np.zeros(3), np.ones(5)]",
    ),
    ("tuple of such arrays", "", "(np.zeros(3), np.zeros(5))", "(np.zeros(3), np.zeros(4))"),
    ("ragged list", "", "[[1, 2], [3]]", "[[1, 2], [4]]"),
    ("list of dicts", "", "[{'a': 1.0}, {'a': 2.0}]", "[{'a': 1.0}, {'a': 3.0}]"),
    ("numbers beside text", "", "[1, 2.5, 'x']", "[1, 2.5, 'y']"),
    ("bool beside numbers", "", "[1.0, True]", "[1.0, 1.0]"),
    ("None in a list", "", "[1.0, None]", "[1.0, 0.0]"),
    ("dict", "", "{'a': 1.0, 'b': [1, 2]}", "{'a': 1.0, 'c': [1, 2]}"),
    ("dict with numbers for keys", "", "{1: 1.0}", "{'1': 1.0}"),
    ("dict with tuples for keys", "", "{('a', 'b'): 1.0}", "{'a': {'b': 1.0}}"),
    ("dict of dicts", "", "{'a': {'b': 1.0}}", "{'a': {'b': 1.5}}"),
    ("OrderedDict", "", "OrderedDict(a=1.0)", "OrderedDict(a=2.0)"),
    ("empty dict in a dict", "", "{'a': {}, 'b': 1.0}", "{'a': None, 'b': 1.0}"),
    ("empty table in a dict", "astropy.table", "{'t': m.Table(), 'x': 1.0}", "{'x': 1.0}"),
    ("text in a dict", "", "{'x': 1.0, 'message': 'ok'}", "{'x': 1.0, 'message': 'no'}"),
    ("empty text in a dict", "", "{'x': 1.0, 'message': ''}", "{'x': 1.0, 'message': 'no'}"),
    ("bytes in a dict", "", "{'raw': b'ab'}", "{'raw': b'ac'}"),
    ("None in a dict", "", "{'x': 1.0, 'y': None}", "{'x': 1.0, 'y': 'None'}"),
    ("bool in a dict", "", "{'converged': True}", "{'converged': False}"),
    ("date in a dict", "", "{'day': datetime.date(2020, 1, 1)}", "{'day': '2020-01-01'}"),
    (
        "datetime in a dict",
        "",
        "{'at': datetime.datetime(2020, 1, 1)}",
        "{'at': datetime.date(2020, 1, 1)}",
    ),
    (
        "time zone in a dict",
        "",
        "{'at': datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris'))}",
        "{'at': datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))}",
    ),
    ("timedelta in a dict", "", "{'for': datetime.timedelta(1)}", "{'for': datetime.timedelta(2)}"),
    (
        "Decimal in a dict",
        "",
        "{'sum': decimal.Decimal('0.10')}",
        "{'sum': decimal.Decimal('0.1')}",
    ),
    (
        "Fraction in a dict",
        "",
        "{'part': fractions.Fraction(1, 3)}",
        "{'part': fractions.Fraction(1, 4)}",
    ),
    ("enum in a dict", "", "{'color': Color.RED}", "{'color': Color.BLUE}"),
    ("enum of integers", "", "{'order': Order.FIRST}", "{'order': OtherOrder.FIRST}"),
    ("flags without a name", "", "{'state': State(4)}", "{'state': State(8)}"),
    ("UUID in a dict", "", "{'id': uuid.UUID(int=1)}", "{'id': uuid.UUID(int=2)}"),
    ("data class", "", "Result([1.0, 2.0])", "Result([1.0, 2.0], ok=None)"),
    ("data class in a list", "", "[Result(1.0), Result([1, 2])]", "[Result(1.0), Result([1, 3])]"),
    ("named tuple", "", "Pair(1.0, 2.0)", "(1.0, 2.0)"),
    (
        "named tuples in a list",
        "",
        "[Pair(1.0, 2.0), Pair(3.0, 4.0)]",
        "[(1.0, 2.0), (3.0, 4.0)]",
    ),
    ("SimpleNamespace", "", "types.SimpleNamespace(a=1.0)", "types.SimpleNamespace(b=1.0)"),
    ("object of a class that says what counts", "", "Mesh([1.0, 2.0])", "Mesh([1.0, 3.0])"),
    ("list of such objects", "", "[Mesh([1.0]), Mesh([2.0])]", "[Mesh([1.0]), Mesh([3.0])]"),
    ("data class without fields in a dict", "", "{'a': Nothing(), 'b': 1.0}", "{'b': 1.0}"),
    ("deque", "", "deque([1.0, 2.0])", "[1.0, 3.0]"),
    ("array of the module array", "", "array.array('d', [1.0, 2.0])", "[1.0, 3.0]"),
    ("decimal", "", "decimal.Decimal('0.1')", "decimal.Decimal('0.2')"),
    (
        "polynomial",
        "",
        "np.polynomial.Polynomial([1.0, 2.0])",
        "np.polynomial.Polynomial([1.0, 2.0], domain=[0, 1])",
    ),
    ("poly1d", "", "np.poly1d([1.0, 2.0])", "np.poly1d([1.0, 2.0], variable='z')"),
    ("array of float16", "", "np.zeros(3, 'f2')", "np.zeros(3, 'f4')"),
    ("array of float64", "", "np.zeros(3)", "np.zeros((3, 1))"),
    ("array of complex64", "", "np.zeros(3, 'c8')", "np.full(3, 1j, 'c8')"),
    (
        "array of long double",
        "",
        "np.array([1, 3], 'g') + np.ldexp(np.array(1, 'g'), -60)",
        "np.array([1, 3]) / 3",
    ),
    ("array of big-endian numbers", "", "np.zeros(3, '>f8')", "np.ones(3, '>f8')"),
    ("array of bool", "", "np.array([True, False])", "np.array([True, True])"),
    ("array of fixed-width text", "", "np.array(['a', 'bc'])", "np.array(['a', 'bd'])"),
    (
        "array of texts of any length",
        "",
        "np.array(['a', 'bcd'], np.dtypes.StringDType())",
        "np.array(['a', 'bce'], np.dtypes.StringDType())",
    ),
    (
        "array of datetime64",
        "",
        "np.array(['2020-01-01', 'NaT'], 'M8[D]')",
        "np.array(['2020-01-02', 'NaT'], 'M8[D]')",
    ),
    ("array of timedelta64", "", "np.array([1, 2], 'm8[s]')", "np.array([1, 2], 'm8[ms]')"),
    ("structured array", "", "np.array([(1, 2.0)], 'i4,f8')", "np.array([(1, 2.5)], 'i4,f8')"),
    ("masked array", "", "np.ma.array([1.0, 2.0], mask=[0, 1])", "np.ma.array([1.0, 0.0])"),
    (
        "masked array, nothing masked",
        "",
        "np.ma.array([1.0, 2.0])",
        "np.ma.array([1.0, 2.0], mask=[1, 0])",
    ),
    (
        "array of objects: texts",
        "",
        "np.array(['a', 'bcd'], object)",
        "np.array(['a', None], object)",
    ),
    (
        "array of objects: arrays",
        "",
        "np.array([np.zeros(2), np.zeros(3), 0], object)",
        "np.array([np.zeros(2), np.ones(3), 0], object)",
    ),
    (
        "an object in an array without dimensions",
        "",
        "np.array({'a': 1.0}, object)",
        "np.array({'a': 2.0}, object)",
    ),
    ("memory view", "", "memoryview(b'abc')", "memoryview(b'abd')"),
    (
        "sparse matrix of SciPy",
        "scipy.sparse",
        "m.csr_matrix(np.diag([1.0, 2.0]))",
        "m.csc_matrix(np.fliplr(np.diag([2.0, 1.0])))",
    ),
    (
        "sparse array of SciPy",
        "scipy.sparse",
        "m.coo_array(np.eye(3)[:2])",
        "m.coo_array(np.eye(3))",
    ),
    (
        "dictionary of keys of SciPy",
        "scipy.sparse",
        "m.dok_matrix(np.diag([1.0, 2.0]))",
        "m.dok_matrix(np.diag([1.0, 3.0]))",
    ),
    (
        "result of SciPy's optimize",
        "scipy.optimize",
        "m.OptimizeResult(x=[1.0], message='ok', success=True)",
        "m.OptimizeResult(x=[1.0], message='ok', success=False)",
    ),
    (
        "series of pandas",
        "pandas",
        "m.Series([1.0, 2.0], index=['p', 'q'])",
        "m.Series([1.0, 2.0], index=['p', 'r'])",
    ),
    (
        "frame",
        "pandas",
        "m.DataFrame({'a': [1.0], 'n': [1]})",
        "m.DataFrame({'a': [1.0], 'n': [1]}, index=[1])",
    ),
    (
        "frame with text",
        "pandas",
        "m.DataFrame({'name': ['a', 'bc']})",
        "m.DataFrame({'name': ['a', 'bd']})",
    ),
    (
        "frame with text that is missing",
        "pandas",
        "m.DataFrame({'name': ['a', None]}, dtype=object)",
        "m.DataFrame({'name': ['a', '']}, dtype=object)",
    ),
    (
        "frame with nullable integers",
        "pandas",
        "m.DataFrame({'n': m.array([1, None], 'Int64')})",
        "m.DataFrame({'n': m.array([1, 0], 'Int64')})",
    ),
    (
        "frame with categories",
        "pandas",
        "m.DataFrame({'c': m.Categorical(['a', 'b'])})",
        "m.DataFrame({'c': ['a', 'b']})",
    ),
    (
        "frame with DatetimeIndex",
        "pandas",
        "m.DataFrame({'a': [1.0]}, index=m.to_datetime(['2020-01-01']))",
        "m.DataFrame({'a': [1.0]}, index=m.to_datetime(['2020-01-02']))",
    ),
    (
        "series with a time zone",
        "pandas",
        "m.Series(m.to_datetime(['2020-01-01']).tz_localize('UTC'))",
        "m.Series(m.to_datetime(['2020-01-01']))",
    ),
    (
        "frame with MultiIndex",
        "pandas",
        "m.DataFrame({'a': [1.0]}, index=m.MultiIndex.from_tuples([('p', 1)], names=['k', 'n']))",
        "m.DataFrame({'a': [1.0]}, index=m.MultiIndex.from_tuples([('p', 2)], names=['k', 'n']))",
    ),
    (
        "frame with columns of two levels",
        "pandas",
        "m.DataFrame([[1.0]], columns=m.MultiIndex.from_tuples([('a', 'b')]))",
        "m.DataFrame([[1.0]], columns=m.MultiIndex.from_tuples([('a', 'c')]))",
    ),
    (
        "frame with periods",
        "pandas",
        "m.DataFrame({'p': m.period_range('2020-01', periods=2, freq='M')})",
        "m.DataFrame({'p': m.period_range('2020-02', periods=2, freq='M')})",
    ),
    (
        "frame with two columns of one name",
        "pandas",
        "m.DataFrame([[1, 2]], columns=['a', 'a'])",
        None,
    ),
    (
        "frame with numbers for names",
        "pandas",
        "m.DataFrame({0: [1.0]})",
        "m.DataFrame({'0': [1.0]})",
    ),
    (
        "intervals",
        "pandas",
        "m.Series(m.interval_range(0.0, 2.0))",
        "m.Series(m.interval_range(0.0, 2.0, closed='both'))",
    ),
    (
        "sparse column",
        "pandas",
        "m.Series(m.arrays.SparseArray([0.0, 1.0]))",
        "m.Series([0.0, 1.0])",
    ),
    (
        "column of Arrow in pandas",
        "pandas",
        "m.Series([1.0, None], dtype='double[pyarrow]')",
        "m.Series([1.0, None], dtype='Float64')",
    ),
    ("column of objects", "pandas", "m.Series([1.0], dtype=object)", "m.Series([1.0])"),
    (
        "Period in a dict",
        "pandas",
        "{'p': m.Period('2020', 'Y-DEC')}",
        "{'p': m.Period('2020', 'Y-MAR')}",
    ),
    (
        "categories of pandas",
        "pandas",
        "m.Categorical([1, 2])",
        "m.Categorical([1, 2], categories=[2, 1])",
    ),
    (
        "nullable integers of pandas",
        "pandas",
        "m.array([1, None], dtype='Int64')",
        "m.array([1, 0], dtype='Int64')",
    ),
    (
        "Timestamp in a dict",
        "pandas",
        "{'at': m.Timestamp('2020-01-01')}",
        "{'at': m.Timestamp('2020-01-02')}",
    ),
    (
        "data array of xarray",
        "xarray",
        "m.DataArray([1.0, 2.0], dims='x', coords={'x': [10, 20]})",
        "m.DataArray([1.0, 2.0], dims='x', coords={'x': [10, 30]})",
    ),
    (
        "dataset with times",
        "xarray",
        "m.Dataset({'t': ('time', [1.0])}, coords={'time': np.array(['2020'], 'M8[ns]')})",
        "m.Dataset({'t': ('time', [1.0])}, coords={'time': np.array(['2021'], 'M8[ns]')})",
    ),
    (
        "names of dimensions",
        "xarray",
        "m.DataArray(np.eye(2), dims=('x', 'y'))",
        "m.DataArray(np.eye(2), dims=('y', 'x'))",
    ),
    ("quantity of astropy", "astropy.units", "[1.0, 2.0] * m.km", "[1.0, 2.0] * m.m"),
    ("list of quantities", "astropy.units", "[1.0 * m.km, 2.0 * m.s]", "[1.0 * m.km, 2.0 * m.m]"),
    (
        "quantity of pint",
        "pint",
        "m.UnitRegistry().Quantity(3.0, 'km')",
        "m.UnitRegistry().Quantity(3.0, 'm')",
    ),
    (
        "table of astropy",
        "astropy.table",
        "m.Table({'a': [1.0], 'name': ['M31']})",
        "m.Table({'a': [1.0], 'name': ['M33']})",
    ),
    (
        "masked column",
        "astropy.table",
        "m.Table({'a': m.MaskedColumn([1.0, 2.0], mask=[False, True])})",
        "m.Table({'a': m.MaskedColumn([1.0, 2.0], mask=[True, False])})",
    ),
    (
        "array of Dask",
        "dask.array",
        "m.from_array(np.arange(3.0))",
        "m.from_array(np.arange(3.0) + 1)",
    ),
    (
        "masked array of Dask",
        "dask.array",
        "m.ma.masked_greater(m.from_array(np.arange(3.0)), 1)",
        "m.ma.masked_greater(m.from_array(np.arange(3.0)), 0)",
    ),
    (
        "quantity in a scaled unit",
        "astropy.units",
        "m.Quantity([1.0], m.Unit(1.123456789 * m.m))",
        "m.Quantity([1.0], m.Unit(1.1234567891 * m.m))",
    ),
    (
        "TimeDelta of astropy",
        "astropy.time",
        "m.TimeDelta(1.0, format='jd', scale='tai')",
        "m.Time(1.0, format='jd', scale='tai')",
    ),
    (
        "Time of astropy",
        "astropy.time",
        "m.Time('2020-01-01', scale='utc')",
        "m.Time('2020-01-01', scale='tai')",
    ),
    (
        "table of pyarrow",
        "pyarrow",
        "m.table({'a': [1.0, 2.0], 'name': ['p', 'q']})",
        "m.table({'a': [1.0, 2.0], 'name': ['p', 'r']})",
    ),
    (
        "table of pyarrow with a time zone",
        "pyarrow",
        "m.table({'t': m.array([0], m.timestamp('us', 'UTC'))})",
        "m.table({'t': m.array([0], m.timestamp('us'))})",
    ),
    (
        "column of pyarrow with nulls",
        "pyarrow",
        "m.table({'a': [1, None]})",
        "m.table({'a': [1, 0]})",
    ),
    ("structs of pyarrow", "pyarrow", "m.array([{'a': 1, 'b': 2}])", "m.array([{'b': 1, 'a': 2}])"),
    ("lists of pyarrow", "pyarrow", "m.array([[1, 2], [3]])", "m.array([[1], [2, 3]])"),
    (
        "times of day of pyarrow",
        "pyarrow",
        "m.array([1], m.time64('ns'))",
        "m.array([2], m.time64('ns'))",
    ),
    (
        "decimals of pyarrow",
        "pyarrow",
        "m.array([decimal.Decimal('0.1')])",
        "m.array([decimal.Decimal('0.2')])",
    ),
    (
        "dictionary of pyarrow",
        "pyarrow",
        "m.array(['a', 'b']).dictionary_encode()",
        "m.array(['a', 'b'])",
    ),
    (
        "column of pyarrow that has no comparison",
        "pyarrow",
        "m.array([[('a', 1)]], m.map_(m.string(), m.int64()))",
        None,
    ),
    (
        "frame of Polars",
        "polars",
        "m.DataFrame({'a': [1.0], 'name': ['p']})",
        "m.DataFrame({'a': [1.0], 'name': ['q']})",
    ),
    (
        "column of Polars with nulls",
        "polars",
        "m.Series([2**53 + 1, None])",
        "m.Series([2**53, None])",
    ),
    (
        "structs of Polars",
        "polars",
        "m.Series([{'a': 1, 'b': 0.5}])",
        "m.Series([{'b': 1, 'a': 0.5}])",
    ),
    (
        "structs of Polars with nulls",
        "polars",
        "m.Series([{'a': None, 'b': 0.5}, {'a': 1.0, 'b': 0.5}])",
        "m.Series([{'a': float('nan'), 'b': 0.5}, {'a': 1.0, 'b': 0.5}])",
    ),
    ("lists of Polars", "polars", "m.Series([[1, 2], [3]])", "m.Series([[1], [2, 3]])"),
    (
        "arrays of Polars",
        "polars",
        "m.Series([[1.0, 2.0]], dtype=m.Array(m.Float64, 2))",
        "m.Series([[1.0, 2.0]])",
    ),
    (
        "categories of Polars",
        "polars",
        "m.Series(['a', 'b'], dtype=m.Enum(['a', 'b']))",
        "m.Series(['a', 'b'], dtype=m.Enum(['b', 'a']))",
    ),
    (
        "times of day of Polars",
        "polars",
        "m.Series([datetime.time(1)])",
        "m.Series([datetime.time(2)])",
    ),
    (
        "time zone of Polars",
        "polars",
        "m.Series([datetime.datetime(2020, 1, 1)]).dt.replace_time_zone('UTC')",
        "m.Series([datetime.datetime(2020, 1, 1)])",
    ),
    ("lazy frame of Polars", "polars", "m.LazyFrame({'a': [1.0]})", None),
    (
        "place of a Time",
        "astropy.time",
        "m.Time('2020-01-01', location=('1d', '2d'))",
        "m.Time('2020-01-01', location=('1d', '3d'))",
    ),
    ("coordinates of the sky", "astropy.coordinates", "m.SkyCoord('1d', '2d')", None),
    ("array of Zarr", "zarr", "m.array(np.arange(3.0))", "m.array(np.arange(3.0) + 1)"),
    (
        "datetime of cftime",
        "cftime",
        "{'at': m.DatetimeNoLeap(2020, 1, 1)}",
        "{'at': m.Datetime360Day(2020, 1, 1)}",
    ),
    (
        "sparse array of the library sparse",
        "sparse",
        "m.COO(np.eye(2))",
        "m.COO(np.eye(2), fill_value=1.0)",
    ),
    ("image of Pillow", "PIL.Image", "m.new('L', (2, 2))", "m.new('1', (2, 2))"),
    ("object with the face of an array", "", "Faced([1.0], 0.1)", None),
    ("list of such", "", "[Faced([1.0], 0.1)]", None),
    ("mapping of a class of its own that carries more", "", "Parameters(a=1.0)", None),
    ("graph of networkx", "networkx", "m.path_graph(4)", None),
    ("text", "", "'ok'", None),
    ("None", "", "None", None),
    ("set", "", "{1.0, 2.0}", None),
    ("generator", "", "(one for one in 'ab')", None),
    ("function", "", "len", None),
    ("object of another class", "", "object()", None),
    ("integers that float64 would round", "", "[2**63, 1]", None),
]
_MODULES = (array, dataclasses, datetime, decimal, fractions, types, uuid, zoneinfo)
_NAMES = {
    **{one.__name__: one for one in _MODULES},
    "np": np,
    "Pair": Pair,
    "Result": Result,
    "Nothing": Nothing,
    "Mesh": Mesh,
    "Faced": Faced,
    "Parameters": Parameters,
    "deque": deque,
    "Color": Color,
    "State": State,
    "Order": Order,
    "OtherOrder": OtherOrder,
    "OrderedDict": OrderedDict,
}


def make(module: str, expression: str) -> Any:
    """The value of an expression. Raises ImportError if its module is not there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {**_NAMES, "m": import_module(module)} if module else _NAMES
        return eval(expression, names)


def what_happens(value: Any) -> str:
    """The variables that a check of it compares, or why it is refused."""
    try:
        with catalog_of(value, "x") as catalog:
            return ", ".join(
                _variable(identity.name, entry.info) for identity, entry in catalog.entries.items()
            )
    except CiwrapError as error:
        return f"refused: {error.message}"


def _variable(name: str, info: Any) -> str:
    dtype = np.dtype(info.dtype)
    is_raw = dtype.kind == "S" and not any(key == "type" for key, _ in info.labels)
    kind = "bytes" if is_raw else "text" if dtype.kind in "SU" else dtype.name
    shape = "" if not info.shape else f" ({' x '.join(map(str, info.shape))})"
    labels = "".join(f", {key} `{text}`" for key, text in info.labels)
    return f"`{name}`: {kind}{shape}{labels}"


def table() -> list[str]:
    """The lines of the table in the reference."""
    lines = ["| kind | for example | compared |", "|---|---|---|"]
    for kind, module, expression, _ in KINDS:
        short = module.rpartition(".")[2]
        shown = expression.replace("m.", f"{short}.") if module else expression
        happens = what_happens(make(module, expression)).replace("|", r"\|")
        lines.append(f"| {kind} | `{shown}` | {happens} |")
    return lines


PAGE = Path(__file__).resolve().parents[1] / "docs/reference/values.md"
