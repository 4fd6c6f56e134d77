"""What Python's values become as arrays: all of it is compared, or the value is refused.

Stand-ins have what the libraries' own types have; `test_arrays_libraries.py` has the libraries.
"""

from __future__ import annotations

import datetime
from collections import namedtuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap import CiwrapError
from ciwrap.api import build_tree, compare_arrays, make_golden
from ciwrap.base.errors import UsageError
from ciwrap.model import SettingsLayer
from ciwrap.pytest_plugin.fixture import catalog_of

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([1.0, 2.0, 3.0])


class Held(np.ndarray):
    """Somebody's own array that carries what it was computed on."""

    grid: Any


def held(grid: Any) -> Any:
    found = X.view(Held)
    found.grid = grid
    return found


class Quantity:
    """As pint has it."""

    __module__ = "pint"

    def __init__(self, units: str, magnitude: Any = X) -> None:
        self.units, self.magnitude = units, magnitude

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the unit would be lost")


class ArrayLike:
    """Whatever has an `__array__`, and says more beside it."""

    grid = "coarse"

    def __array__(self, *_: Any, **__: Any) -> Any:
        return X


class Interface:
    __array_interface__ = X.__array_interface__


class Sequence:
    def __len__(self) -> int:
        return 3

    def __getitem__(self, item: int) -> float:
        return X.tolist()[item]


class Mapping(dict[str, Any]):
    def __init__(self) -> None:
        self["a"] = 1.0
        self.grid = "coarse"


class Frozen(datetime.datetime):
    """As a library has it that stops the clock."""


class Place(datetime.datetime):
    where = ""


class Number(float):
    error = 0.0


class Sum(list[float]):
    __slots__ = ("low",)


def carrying(value: Any, key: str) -> Any:
    setattr(value, key, 0.5)
    return value


class Row:
    """A row of a table."""

    __module__ = "astropy.table.row"


def masked(*mask: bool) -> Any:
    return np.ma.array(X, mask=mask or np.ma.nomask)


RECORDS = np.ma.array([(1, 2.0)], mask=[(False, True)], dtype=[("i", "i4"), ("x", "f8")])


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "integers as floats": (lambda: [2**63, 1], "holds integers that no integer type of NumPy"),
    "of both signs": (lambda: [2**63, -1], "holds integers that no integer type of NumPy"),
    "scalars of NumPy": (lambda: [np.uint64(1), np.int64(1)], "no integer type of NumPy holds"),
    "arrays in a list": (lambda: [np.ones(2, "u8"), np.ones(2, "i8")], "no integer type of NumPy"),
    "integer and float": (lambda: [2**53 + 1, 0.5], "an integer beyond 2^53, which float64 would"),
    "a small one": (lambda: [[-(2**53) - 1], [0.5]], "an integer beyond 2^53, which float64 would"),
    "arrays of both": (lambda: [np.array([2**60]), np.array([0.5])], "an integer beyond 2^53"),
    "integer and complex": (lambda: [2**53 + 1, 1j], "an integer beyond 2^53"),
    "beyond any float": (lambda: [10**400, 0.5], "an integer beyond 2^53"),
    "beyond 64 bits": (lambda: [2**64], "an integer beyond 64 bits"),
    "one beyond 64 bits": (lambda: 2**64, "an integer beyond 64 bits"),
    "a zero at the end": (lambda: ["a\0"], "text that ends with a zero"),
    "bytes with a zero": (lambda: [b"a\0"], "text that ends with a zero"),
    "set": (lambda: {1.0, 2.0}, "a value of type set has no defined comparison"),
    "generator": (lambda: (one for one in X), "a value of type generator has no defined"),
    "a view": (lambda: {"a": 1.0}.values(), "a value of type dict_values has no defined"),
    "an array's face": (ArrayLike, "a value of type ArrayLike has no defined comparison"),
    "an interface": (Interface, "a value of type Interface has no defined comparison"),
    "a sequence": (Sequence, "a value of type Sequence has no defined comparison"),
    "a dict with more": (Mapping, "Mapping carries grid, which would be lost; give dict(...)"),
    "a number with more": (lambda: carrying(Number(1), "error"), "Number carries error, which"),
    "a list with more": (lambda: carrying(Sum([1.0]), "low"), "Sum carries low, which would be"),
    "masked records": (lambda: RECORDS, "has masked or missing values"),
    "a subclass that carries": (lambda: held("coarse"), "carries grid, which would be lost"),
    "a row": (Row, "comes without units and masks"),
}


def of_plugin(value: Any, name: str = "x") -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """What a test's check would compare."""
    with catalog_of(value, name) as catalog:
        assert not catalog.errors
        found = {}
        for identity, entry in catalog.entries.items():
            values = catalog.values(identity)
            found[identity.name] = (entry.info.dtype, entry.info.shape, values.read_all())
    return found


@pytest.mark.parametrize("case", REFUSED)
def test_these_are_refused_everywhere(case: str) -> None:
    make, says = REFUSED[case]
    told = []
    for call in (
        lambda: catalog_of(make(), "x"),
        lambda: catalog_of({"x": make(), "y": 1.0}, "array"),
        lambda: make_golden({"x": make()}),
        lambda: compare_arrays(make(), X, name="x"),
        lambda: compare_arrays(X, make(), name="x"),
        lambda: build_tree(make()),
    ):
        with pytest.raises(CiwrapError) as caught:
            call()
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.remedy
        told.append((type(caught.value), caught.value.message.replace("'array'", "'x'")))
    assert len(set(told)) == 1


Pair = namedtuple("Pair", "low high")

APART: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "text and numbers": (lambda: [1, 2.5, "x"], ["0", "1", "2"]),
    "text and bytes": (lambda: ["a", b"b"], ["0", "1"]),
    "bool and numbers": (lambda: [1, True], ["0", "1"]),
    "rows of bool and numbers": (lambda: [[1.0, 2.0], [True, False]], ["0", "1"]),
    "bool and numbers of NumPy": (lambda: [np.float64(1), np.True_], ["0", "1"]),
    "bool and numbers as objects": (lambda: np.array([1.0, True], dtype=object), ["0", "1"]),
    "named tuples": (lambda: [Pair(1.0, 2.0)], ["0/high", "0/low"]),
    "named tuples in a row": (lambda: [[Pair(1.0, 2.0)]], ["0/0/high", "0/0/low"]),
    "ragged": (lambda: [[1], [1, 2]], ["0", "1"]),
    "ragged arrays": (lambda: [np.ones(3), np.ones(5)], ["0", "1"]),
    "None in a list": (lambda: [1.0, None], ["0", "1"]),
    "a mapping in a list": (lambda: [{"a": 1.0}], ["0/a"]),
    "masked": (lambda: masked(False, True, False), ["x", "x.mask"]),
    "masked in a list": (lambda: [masked(False, True, False)], ["0", "0.mask"]),
    "units in a list": (lambda: [Quantity("km"), Quantity("m")], ["0", "1"]),
    "ragged arrays as objects": (lambda: np.array([X, 1.0], dtype=object), ["0", "1"]),
}


@pytest.mark.parametrize("case", APART)
def test_these_are_taken_apart_and_the_api_takes_one_array_at_a_time(case: str) -> None:
    make, names = APART[case]
    assert sorted(of_plugin(make())) == names
    for call in (
        lambda: make_golden({"x": make()}),
        lambda: compare_arrays(X, make(), name="x"),
        lambda: build_tree(make()),
    ):
        with pytest.raises(CiwrapError, match="is more than one array") as caught:
            call()
        assert caught.value.remedy == "give its arrays one by one"


class LazyFrame:
    """As Polars has it."""

    __module__ = "polars.lazyframe.frame"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (LazyFrame(), "LazyFrame has no numbers yet; give value.collect()"),
        ([*range(1001), "x"], "more than 1000 are not taken apart"),
        ([2**63, [1]], None),
        (np.array([object()]), "type object has no defined comparison"),
        ({"a": "b\0"}, "text that ends with a zero"),
        ({"a": Path("x")}, "text or a path"),
        ({"a": {1.0}}, "type set has no defined comparison"),
        ({}, "an empty mapping holds nothing"),
        ({"at": carrying(Place(2020, 1, 1), "where")}, "type Place has no defined comparison"),
        ([ArrayLike()], "type ArrayLike has no defined comparison"),
        ([carrying(Number(1), "error")], "Number carries error, which would be lost; give float"),
        ({"a": ArrayLike(), "b": 1.0}, "leave it out: ignore=['a']"),
    ],
)
def test_where_taking_apart_ends(value: Any, says: str | None) -> None:
    if says is None:
        assert sorted(of_plugin(value)) == ["0", "1"]
        return
    with pytest.raises(CiwrapError) as caught:
        catalog_of(value, "x")
    assert says in str(caught.value)
    assert caught.value.remedy or "holds nothing" in says


def test_a_class_derived_from_one_that_has_a_text() -> None:
    derived, plain = ({"at": kind(2020, 1, 1)} for kind in (Frozen, datetime.datetime))
    assert of_plugin(derived) == of_plugin(plain)


def test_a_list_that_holds_itself() -> None:
    value: list[Any] = [1.0]
    value.append(value)
    with pytest.raises(UsageError, match="nested deeper than 64 levels"):
        catalog_of(value, "x")


TAKEN: dict[str, tuple[Any, Any]] = {
    "floats": ([1.0, 2.0, 3.0], X),
    "a tuple": ((1.0, 2.0, 3.0), X),
    "mixed": ([1, 2.0, 3], np.array([1.0, 2.0, 3.0])),
    "exact integers": ([2**53, 0.5], np.array([2.0**53, 0.5])),
    "large integers": ([2**63, 2**64 - 1], np.array([2**63, 2**64 - 1], "u8")),
    "integers": ([-(2**63), 2**63 - 1], np.array([-(2**63), 2**63 - 1])),
    "booleans": ([True, False], np.array([True, False])),
    "nested": ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
    "rows": ([X, X], np.array([X, X])),
    "text": (["a", "bc"], np.array(["a", "bc"])),
    "bytes": ([b"a", b"bc"], np.array([b"a", b"bc"])),
    "a range": (range(3), np.arange(3)),
    "nothing": ([], np.array([])),
    "a number": (1.5, np.array(1.5)),
    "a scalar": (np.float32(1.5), np.array(1.5, "f4")),
    "a matrix": (X.reshape(1, 3).view(np.matrix), X.reshape(1, 3)),
    "no mask": (masked(), X),
    "a mask of nothing": (masked(False, False, False), X),
    "a ratio": (Quantity(""), X),
    "without dimension": (Quantity("dimensionless"), X),
    "a subclass that carries nothing": (held(None), X),
    "a list of a class of its own": (Sum(X.tolist()), X),
}


@pytest.mark.parametrize("case", TAKEN)
def test_these_are_the_same_everywhere(case: str) -> None:
    value, want = TAKEN[case]
    assert of_plugin(value) == {"x": (want.dtype.str, want.shape, want.tobytes())}
    assert of_plugin({"x": value}) == of_plugin(value)
    assert build_tree(value).root == build_tree(want).root
    golden = make_golden({"x": value}).variable("x")
    assert (golden.tree.parameters.dtype, tuple(golden.shape)) == (want.dtype.str, want.shape)
    assert compare_arrays(value, want).verdict == "match"


def test_a_large_list_costs_little() -> None:
    """Its types are looked at, not its values one by one."""
    values = X.tolist() * 100_000
    assert of_plugin(values)["x"][1] == (300_000,)


@pytest.mark.parametrize("number", [10**400, 10**5000], ids=["400", "5000"])
@pytest.mark.parametrize("key", ["atol", "rtol", "ulps", "fill_values"])
def test_settings_that_no_number_of_the_machine_can_be(key: str, number: int) -> None:
    settings: dict[str, Any] = {key: [number] if key == "fill_values" else number}
    for call in (
        lambda: compare_arrays(X, X, **settings),
        lambda: make_golden({"x": X}, **settings),
        lambda: build_tree(X, **settings),
        lambda: SettingsLayer.from_arguments(settings, "check()"),
    ):
        with pytest.raises(UsageError, match=key) as caught:
            call()
        assert len(str(caught.value)) < 200
