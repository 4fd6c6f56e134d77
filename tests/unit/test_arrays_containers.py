"""Values that are several arrays, by stand-ins that offer what the libraries' types offer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from ciwrap.api import compare_arrays, make_golden
from ciwrap.arrays.intake import parts_of
from ciwrap.base.errors import CiwrapError, UnsupportedDtypeError
from ciwrap.pytest_plugin.fixture import catalog_of

X = np.array([1.0, 2.0])


class Index:
    """As pandas has it."""

    __module__ = "pandas"
    nlevels = 1

    def __init__(self, values: Any = (0, 1), name: str | None = None) -> None:
        self.values, self.name = np.asarray(values), name
        self.dtype = self.values.dtype

    def get_level_values(self, _: int) -> Any:
        raise AssertionError

    def to_numpy(self) -> Any:
        return self.values


class Nullable:
    """A type of pandas' own for numbers, some of which are missing."""

    __module__ = "pandas"
    numpy_dtype = np.dtype("f8")

    def __str__(self) -> str:
        return "Float64"


class Series:
    __module__ = "pandas"

    def __init__(self, values: Any = X, index: Index | None = None, dtype: Any = None) -> None:
        self.values, self.index = values, index or Index()
        self.dtype = np.dtype("f8") if dtype is None else dtype
        self.attrs: dict[str, Any] = {}

    def to_numpy(self, dtype: Any = None, na_value: Any = None) -> Any:
        found = np.array(self.values, dtype=dtype)
        if na_value is not None:
            found[self.isna()] = na_value
        return found

    def isna(self) -> Any:
        return np.isnan(self.values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the index would be lost")


class DataFrame(Series):
    __module__ = "pandas.core.frame"

    def __init__(self, index: Index | None = None, **columns: Any) -> None:
        super().__init__(index=index)
        self.data = columns

    @property
    def columns(self) -> list[str]:
        return list(self.data)

    def __getitem__(self, name: str) -> Series:
        return Series(self.data[name], self.index)


class DataArray:
    """As xarray has it."""

    __module__ = "xarray"

    def __init__(self, data: Any, *dims: str, attrs: Any = None, **coords: DataArray) -> None:
        self.data, self.dims, self.attrs, self._coords = data, dims, attrs or {}, coords

    @property
    def coords(self) -> dict[str, DataArray]:
        return self._coords

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("everything but the numbers would be lost")


class Dataset(DataArray):
    __module__ = "xarray"

    def __init__(self, variables: dict[str, DataArray], children: Any = None, **more: Any) -> None:
        super().__init__(None, **more)
        self._variables, self.children = variables, children or {}

    @property
    def data_vars(self) -> dict[str, DataArray]:
        return self._variables


class Column(np.ndarray):
    """As astropy has it."""

    __module__ = "astropy.table.column"
    unit: Any


def column(unit: str | None = None) -> Any:
    found = X.view(Column)
    found.__dict__["_unit"] = found.__dict__["unit"] = unit
    return found


class Table(dict[str, Any]):
    """As astropy has it, but for the mapping, which saves writing its methods."""

    __module__ = "astropy.table.table"
    meta: ClassVar[dict[str, Any]] = {}

    @property
    def colnames(self) -> list[str]:
        return list(self)


T = DataArray(X, "t", attrs={"units": "s"})
K = DataArray(np.eye(2), "t", "x", attrs={"units": "K", "title": "a"}, t=T, x=DataArray(X, "x"))

PARTS: dict[str, tuple[Any, dict[str, tuple[str | None, tuple[str, ...], bool]]]] = {
    "an array": (X, {"v": (None, (), False)}),
    "a mapping": (
        {"a": {"b": X}, "c": 1.0},
        {"a/b": (None, (), False), "c": (None, (), False)},
    ),
    "a series": (Series(), {"v": (None, (), False), "index": (None, (), False)}),
    "a named index": (
        Series(index=Index(name="t")),
        {"v": (None, ("t",), False), "index": (None, ("t",), False)},
    ),
    "a frame": (
        DataFrame(a=X, b=X),
        {"a": (None, (), False), "b": (None, (), False), "index": (None, (), False)},
    ),
    "a frame in a mapping": (
        {"k": DataFrame(a=X)},
        {"k/a": (None, (), False), "k/index": (None, (), False)},
    ),
    "an index": (Index(name="t"), {"v": (None, ("t",), False)}),
    "a data array": (
        K,
        {
            "v": ("K", ("t", "x"), True),
            "coords/t": ("s", ("t",), False),
            "coords/x": (None, ("x",), False),
        },
    ),
    "a data array in a mapping": (
        {"k": K, "n": 1},
        {
            "k": ("K", ("t", "x"), True),
            "k/coords/t": ("s", ("t",), False),
            "k/coords/x": (None, ("x",), False),
            "n": (None, (), False),
        },
    ),
    "a quantity in a data array": (
        DataArray(column("km"), "t", attrs={"units": "ignored"}),
        {"v": ("km", ("t",), False)},
    ),
    "a dataset": (
        Dataset({"T": DataArray(X, "t")}, attrs={"made": "by hand"}, t=T),
        {"T": (None, ("t",), True), "coords/t": ("s", ("t",), False)},
    ),
    "a tree of datasets": (
        Dataset({}, {"a": Dataset({"T": DataArray(X, "t")}, t=T)}),
        {"a/T": (None, ("t",), False), "a/coords/t": ("s", ("t",), False)},
    ),
    "a table": (
        Table(a=column("km"), b=column()),
        {"v.a": ("km", (), False), "v.b": (None, (), False)},
    ),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_and_what_belongs_to_them(case: str) -> None:
    value, want = PARTS[case]
    found = {part.name: part.convert() for part in parts_of(value, "v")}
    assert {name: (one.unit, one.dims, one.left_out) for name, one in found.items()} == want
    assert all(type(one.array) is np.ndarray for one in found.values())


def test_text_of_an_index_becomes_fixed_width() -> None:
    names = np.array(["p", "long"], dtype=object)
    *_, index = parts_of(Series(index=Index(names)), "v")
    assert index.convert().array.dtype.str == "<U4"
    _, *parts = parts_of(Series(index=Index(np.array(["p", 1], dtype=object))), "v")
    assert [part.name for part in parts] == ["index/0", "index/1"]


def test_missing_elements_that_pandas_knows_of() -> None:
    values = np.array([1.0, np.nan])
    part, _ = parts_of(Series(values), "v")
    assert part.convert().array is not None  # NaN is a number like any other
    part, mask, _ = parts_of(Series(values, dtype=Nullable()), "v")
    assert part.convert().array.tolist() == [1.0, 0.0]
    assert part.labels == (("dtype", "Float64"), ("missing", "masked"))
    assert (mask.name, mask.convert().array.tolist()) == ("v.mask", [False, True])


def test_masked_records_are_taken_where_nothing_is_masked() -> None:
    plain = np.array([(1, 2.0), (3, 4.0)], dtype=[("i", "i4"), ("x", "f8", (2,))])
    for mask in (np.ma.nomask, [(False, False)] * 2):
        (part,) = parts_of(np.ma.array(plain, mask=mask), "v")
        assert part.convert().array.tobytes() == plain.tobytes()
    with pytest.raises(UnsupportedDtypeError, match=r"^v: an array .* has masked"):
        list(parts_of(np.ma.array(plain, mask=[(False, False), (False, True)]), "v"))


@pytest.mark.parametrize("value", [Series(), DataFrame(a=X), K, Table(a=column()), {"x": X}])
def test_the_api_takes_one_array_at_a_time(value: Any) -> None:
    """A result is of one variable; so nothing of the others may be left out."""
    for call in (
        lambda: compare_arrays(value, value),
        lambda: make_golden({"x": value}),
        lambda: make_golden({"x": X}).check("x", value),
    ):
        with pytest.raises(UnsupportedDtypeError, match="more than one array") as caught:
            call()
        assert caught.value.remedy == "give its arrays one by one"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"f": len, "x": X}, "leave it out: ignore=['f']"),
        (DataFrame(raw=np.zeros(2, "V3")), "leave it out: ignore=['raw']"),
        ({"a": [1.0, len, len], "x": X}, "leave it out: ignore=['a/*']"),
        ({"a": {"deep": {1}}, "x": X}, "leave it out: ignore=['a/deep']"),
    ],
)
def test_what_to_leave_out_is_said_as_a_test_says_it(value: Any, says: str) -> None:
    with pytest.raises(CiwrapError) as caught:
        catalog_of(value, "array")
    assert says in str(caught.value)
    assert "ciwrap.yaml" not in str(caught.value)
