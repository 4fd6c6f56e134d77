"""Plain values as typed records: strict, and wrong ones said in one line with the way to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.documents import DocumentError, path_text, to_record


class Colour(str, Enum):
    RED = "red"


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    shape: tuple[int, ...] = ()
    colour: Colour | None = None
    name: Annotated[str, msgspec.Meta(min_length=1)] = "x"


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner
    by_name: dict[str, Inner] = field(default_factory=dict)
    deep: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    share: Real | None = None
    either: int | str = 0

    def __post_init__(self) -> None:
        if self.either == "bad":
            raise ValueError("either cannot be bad")


def outer(**more: Any) -> dict[str, Any]:
    return {"inner": {}, **more}


def test_a_whole_record() -> None:
    value = outer(
        inner={"count": 3, "shape": [1, 2], "colour": "red"}, by_name={"a": {"name": "b"}}, share=1
    )
    assert to_record(value, Outer) == Outer(
        Inner(3, (1, 2), Colour.RED), {"a": Inner(name="b")}, share=1.0
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "`inner` is missing"),
        ([], "it must be a mapping, not a list"),
        (outer(inner={"size": 1}), "`inner.size` is not known here"),
        (outer(inner={"count": "3"}), "`inner.count` must be an integer, not text"),
        (outer(inner={"count": True}), "`inner.count` must be an integer, not true or false"),
        (outer(inner={"count": -1}), "`inner.count` must be an integer >= 0"),
        (outer(inner={"shape": [1, 2.5]}), "`inner.shape[1]` must be an integer, not a number"),
        (outer(inner={"name": ""}), "`inner.name` must be text of length >= 1"),
        (outer(inner={"colour": "blue"}), "`inner.colour` cannot be 'blue'"),
        (outer(either=None), "`either` must be an integer or text, not null"),
        (outer(either="bad"), "it does not hold together: either cannot be bad"),
        (outer(share="much"), "`share` must be a number"),
        (outer(share=True), "`share` must be a number"),
        (outer(share=10**400), "`share` is out of range"),
        (outer(by_name={1: {}}), "`by_name` has a key that is not text"),
        (outer(inner={"\ud800": 1}), "it holds text that is not Unicode"),
        (outer(by_name={"a": {"\ud800": 1}, "b": 1}), "it holds text that is not Unicode"),
        (outer(inner={"colour": "\ud800"}), "it holds text that is not Unicode"),
        # msgspec does not tell which key of a mapping it was.
        (outer(by_name={"a": {}, "b": {"x": 1}}), "`by_name.*.x` is not known here"),
        (
            outer(deep={"a": {"b": [1]}, "c": {"d": [], "e": [1, "2"]}}),
            "`deep.*.*[1]` must be an integer, not text",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(value: Any, text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        to_record(value, Outer)
    assert str(caught.value) == text
    assert text.startswith(f"`{path_text(caught.value.path)}` " if caught.value.path else "it ")


def test_numbers_that_json_lacks() -> None:
    assert to_record(outer(share="inf"), Outer).share == math.inf
    assert to_record(outer(share="-inf"), Outer).share == -math.inf
    assert math.isnan(float(to_record(outer(share="nan"), Outer).share or 0))


_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["inner", "by_name", "deep", "share", "either", "count", "shape"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@given(_PLAIN)
def test_any_value_is_a_record_or_one_line(value: Any) -> None:
    try:
        found: object = to_record(value, Outer)
    except DocumentError as error:
        found = str(error)
    assert isinstance(found, Outer) or "`$" not in str(found)
