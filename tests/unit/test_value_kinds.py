"""Every kind of value of the reference's table: equal ones match, and others do not."""

from __future__ import annotations

import collections
import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pytest
import value_kinds

from ciwrap.base.errors import CiwrapError
from ciwrap.model import ErrorBound, SettingsLayer
from ciwrap.project.settings import Check
from ciwrap.pytest_plugin.fixture import Repeats, catalog_of, rules_of

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


def verdict(golden: Any, new: Any, **bound: float) -> str:
    check = Check("x", Path(), (), layers=(SettingsLayer({"bound": ErrorBound(**bound)}),))
    repeats = Repeats(2)
    for number, value in enumerate((golden, new)):
        repeats.begin(number)
        with catalog_of(value, "x") as catalog:
            result, _ = repeats.compare(catalog.kept_exact(check), catalog, "test")
    return result.verdict.value


def made(module: str, expression: str) -> Any:
    try:
        return value_kinds.make(module, expression)
    except ImportError:
        pytest.skip("the extra arrays-test is not installed")


@pytest.mark.parametrize(
    ("module", "value", "other"),
    [row[1:] for row in value_kinds.KINDS],
    ids=[row[0] for row in value_kinds.KINDS],
)
def test_equal_values_match_and_others_do_not(module: str, value: str, other: str | None) -> None:
    if other is None:
        with pytest.raises(CiwrapError) as caught:
            catalog_of(made(module, value), "x")
        assert "\n" not in str(caught.value)
        assert caught.value.remedy
        return
    assert verdict(made(module, value), made(module, value)) == "match"
    for one, two in ((value, other), (other, value)):
        assert verdict(made(module, one), made(module, two)) in ("differ", "not_comparable")


@pytest.mark.parametrize(
    ("module", "value", "other"),
    [
        ("pandas", "m.Series([1.0, 2.0])", "m.Series([1.0, 2.0], index=[0, 2])"),
        ("pandas", "m.Series([1.0], index=m.to_datetime(['2020-01-01']))",
         "m.Series([1.0], index=m.to_datetime(['2020-01-02']))"),
        ("xarray", "m.DataArray([1.0], dims='x', coords={'x': [1]})",
         "m.DataArray([1.0], dims='x', coords={'x': [2]})"),
        ("scipy.sparse", "m.csr_array(np.eye(2))", "m.csr_array(np.fliplr(np.eye(2)))"),
        ("", "np.array(['2020-01-01'], 'M8[D]')", "np.array(['2020-01-02'], 'M8[D]')"),
        ("", "np.array([1], 'm8[s]')", "np.array([2], 'm8[s]')"),
        ("", "{'a': True}", "{'a': False}"),
        ("", "np.ma.array([1.0, 0.0], mask=[1, 0])", "np.ma.array([0.0, 1.0], mask=[0, 1])"),
    ],
)  # fmt: skip
def test_a_bound_for_all_is_none_for_what_says_where_things_stand(
    module: str, value: str, other: str
) -> None:
    assert verdict(made(module, value), made(module, other), atol=10.0) == "differ"


@dataclasses.dataclass
class Scaled(float):
    """A number that is a data class as well."""

    unit: str

    def __new__(cls, number: float, unit: str) -> Self:
        return super().__new__(cls, number)

    def __init__(self, number: float, unit: str) -> None:
        self.unit = unit


@dataclasses.dataclass
class Turned(complex):
    by: float = 0.0


@dataclasses.dataclass
class Path3(list):  # type: ignore[type-arg]
    closed: bool


@dataclasses.dataclass
class Marked(set):  # type: ignore[type-arg]
    by: str


class Vetted(collections.namedtuple("Vetted", "a b")):
    """A named tuple that may hold more than its names."""

    __slots__ = ()

    def __new__(cls, *values: float) -> Self:
        return tuple.__new__(cls, values)


@pytest.mark.parametrize("value", [Scaled(1.5, "m"), Turned(1.0), Path3(True), Marked("me")])
def test_what_is_more_than_its_fields_is_refused(value: Any) -> None:
    with pytest.raises(CiwrapError, match=r"lost|no defined comparison"):
        catalog_of(value, "x")


def test_a_named_tuple_with_more_than_its_names() -> None:
    assert verdict(Vetted(1.0, 2.0, 3.0), Vetted(1.0, 2.0, 3.0)) == "match"
    assert verdict(Vetted(1.0, 2.0, 3.0), Vetted(1.0, 2.0, 4.0)) == "differ"


@dataclasses.dataclass(slots=True)
class Slotted(Generic[T]):
    a: float
    b: T


class Inherited(Slotted[float]):
    """Has a `__dict__` beside the slots."""


def test_slots_and_a_dictionary_are_fields_and_no_more() -> None:
    for kind in (Slotted, Inherited):
        assert verdict(kind(1.0, 2.0), kind(1.0, 2.0)) == "match"
        assert verdict(kind(1.0, 2.0), kind(1.0, 3.0)) == "differ"


def test_attributes_of_a_mapping_are_not_lost() -> None:
    value = collections.OrderedDict(a=1.0)
    value.unit = "m"  # type: ignore[attr-defined]
    with pytest.raises(CiwrapError, match=r"OrderedDict carries unit, .*; give OrderedDict"):
        catalog_of(value, "x")


def test_a_slash_in_a_key_is_no_nesting() -> None:
    assert verdict({"a/b": 1.0}, {"a/b": 1.0}) == "match"
    assert verdict({"a/b": 1.0}, {"a": {"b": 1.0}}) == "not_comparable"


def test_two_halves_of_a_long_double_are_exact() -> None:
    golden = np.array([1.0], "g") / 3
    if np.dtype("g").itemsize == 8:
        pytest.skip("long double is float64 here")
    if np.finfo("g").nmant > 105:  # of 128 bits, on arm64
        with pytest.raises(CiwrapError, match="cannot hold"):
            catalog_of(golden, "x")
        golden = np.array([1.0], "g") + np.ldexp(np.array(1.0, "g"), -60)
    moved = golden + np.ldexp(np.array(1.0, "g"), -62)
    assert golden.astype("f8") == moved.astype("f8")
    assert verdict(golden, moved) == "differ"
    assert verdict(golden, moved, atol=1e-15) == "match"
    with pytest.raises(CiwrapError, match="cannot hold"):
        catalog_of(np.array([1e300], "g") * np.array([1e300], "g"), "x")


def test_the_table_of_the_reference() -> None:
    text = value_kinds.PAGE.read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if line.startswith("|")]
    for _, module, _, _ in value_kinds.KINDS:
        made(module, "None")
    # How pandas and NumPy call the same time units and wide floats differs by version and machine.
    plain = [re.sub(r"datetime64\[\w+\]|float128|float96", "", line) for line in found]
    want = [re.sub(r"datetime64\[\w+\]|float128|float96", "", one) for one in value_kinds.table()]
    assert plain == want, "run tools/generate-value-table"
    assert len(value_kinds.KINDS) >= 70


def test_a_bound_for_an_index_by_its_name() -> None:
    golden, new = {"index": [1, 2]}, {"index": [1, 3]}
    assert verdict(golden, new, atol=1.0) == "match"  # a key, and no index
    series = "m.Series([1.0, 2.0], index=[{}, 5])"
    check = Check("x", Path(), (), rules=rules_of({"ind*": 1}, "here"))
    for other, want in ((2, "match"), (3, "differ")):
        repeats = Repeats(2)
        for number, first in enumerate((1, other)):
            repeats.begin(number)
            with catalog_of(made("pandas", series.format(first)), "x") as catalog:
                result, _ = repeats.compare(catalog.kept_exact(check), catalog, "test")
        assert result.verdict.value == want
