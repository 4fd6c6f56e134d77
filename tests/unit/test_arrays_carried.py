"""What a value carries beside its elements or its fields: compared, or refused, never dropped."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from ciwrap.api import compare_arrays
from ciwrap.base.errors import DuplicateVariableError, UnsupportedDtypeError
from ciwrap.pytest_plugin.fixture import catalog_of

X = np.array([1.0, 2.0])
RECORDS = np.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")])


def names_of(value: Any) -> list[str]:
    with catalog_of(value, "x") as catalog:
        assert not catalog.errors
        return sorted(identity.name for identity in catalog.entries)


class Slotted(np.ndarray):
    __slots__ = ("grid",)


class OwnMatrix(np.matrix):
    pass


class OwnRecords(np.recarray):
    pass


class OwnMasked(np.ma.MaskedArray):  # type: ignore[type-arg]
    pass


def carrying(array: Any, key: str = "grid", **more: Any) -> Any:
    for name, one in {key: "fine", **more}.items():
        setattr(array, name, one)
    return array


CARRYING = {
    "in a slot": lambda: carrying(X.view(Slotted)),
    "a matrix": lambda: carrying(X.view(np.matrix)),
    "a matrix of one's own": lambda: carrying(X.view(np.matrix).view(OwnMatrix)),
    "records of one's own": lambda: carrying(RECORDS.view(OwnRecords)),
    "a masked array": lambda: carrying(np.ma.array(X, mask=[0, 1])),
    "nothing masked": lambda: carrying(np.ma.array(X)),
    "a masked array of one's own": lambda: carrying(np.ma.array(X, mask=[0, 1]).view(OwnMasked)),
    "a unit, which it has no place for": lambda: carrying(np.ma.array(X), units="m"),
}


@pytest.mark.parametrize("case", CARRYING)
def test_an_array_that_carries_more_is_refused(case: str) -> None:
    value = CARRYING[case]()
    with pytest.raises(UnsupportedDtypeError, match="carries grid"):
        names_of(value)
    with pytest.raises(UnsupportedDtypeError):
        compare_arrays(value, value)


def test_the_same_classes_without_more_are_taken() -> None:
    matrix = X.view(np.matrix)
    matrix[0]  # after which it keeps that it is not being indexed
    for value in (X.view(Slotted), matrix, np.ma.array(X), np.ma.array(X, mask=[0, 1])):
        assert names_of(value)[0] == "x"
    assert names_of(RECORDS.view(OwnRecords)) == ["x.a", "x.b"]


@dataclasses.dataclass
class Result:
    x: float

    def __post_init__(self) -> None:
        self.error = self.x / 2
        self._log = print

    @functools.cached_property
    def double(self) -> float:
        return 2 * self.x


class Pair(NamedTuple):
    low: float
    high: float


class Fit(Pair):
    """As the results of SciPy's statistics are, which have more than they unpack to."""

    df: float


class Model:
    """As one of pydantic that allows fields which it does not define."""

    model_fields: ClassVar = {"a": None}

    def __init__(self, **more: float) -> None:
        self.a = 1.0
        self.__pydantic_extra__ = more


def test_what_an_object_has_beside_its_fields_is_compared() -> None:
    result = Result(1.0)
    assert names_of(result) == ["error", "x"]
    assert result.double == 2
    assert names_of(result) == ["error", "x"]  # it is worked out of the others
    fit = Fit(1.0, 2.0)
    fit.df = 3.0
    assert names_of(fit) == ["df", "high", "low"]
    assert names_of(Model(z=2.0)) == ["a", "z"]


def test_all_of_a_result_of_scipy_is_compared() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert "df" in names_of(stats.ttest_ind([1.0, 2, 3], [2.0, 3, 5]))
    assert "intercept_stderr" in names_of(stats.linregress([1.0, 2, 3], [2.0, 3, 5]))


@pytest.mark.parametrize("kind", ["f8", "i4"])
def test_a_field_of_records_and_a_key_of_one_name(kind: str) -> None:
    for value in ({"x": RECORDS, "x.a": np.ones(1, kind)}, {"x.a": np.ones(1, kind), "x": RECORDS}):
        with pytest.raises(DuplicateVariableError, match=r"x\.a: comes from two keys"):
            names_of(value)


def test_a_masked_record_by_itself() -> None:
    assert names_of(np.ma.array(RECORDS)[0]) == ["x.a", "x.b"]
    with pytest.raises(UnsupportedDtypeError, match="masked or missing"):
        names_of(np.ma.array(RECORDS, mask=[(False, True)])[0])


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]", "g"])
def test_either_byte_order_is_the_same_type(dtype: str) -> None:
    value = np.array([1, 2]).astype(dtype)
    swapped = value.astype(value.dtype.newbyteorder("S"))
    found = []
    for one in (value, swapped):
        with catalog_of(one, "x") as catalog:
            found.append([entry.info.labels for entry in catalog.entries.values()])
    assert found[0] == found[1]
    if dtype != "g":
        assert compare_arrays(value, swapped).verdict.value == "match"
