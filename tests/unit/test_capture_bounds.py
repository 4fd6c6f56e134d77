"""The bounds that a capture says of itself, by name and by type."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from ciwrap.arrays.values import Signature
from ciwrap.base.errors import UsageError
from ciwrap.formats.catalog import Rules
from ciwrap.model import ErrorBound, VariableId, VariableSettings
from ciwrap.runs.capture_index import Bounds, CaptureHeader, rules_with

X, Y = VariableId("x", 1, 0), VariableId("y", 1, 0)


def settings(atol: float) -> VariableSettings:
    return VariableSettings(bound=ErrorBound(atol))


def kept(bounds: Bounds) -> Bounds:
    """As they are read from a capture."""
    return Bounds.of_header(CaptureHeader(bounds.origin, 4096, bounds.rows))


def atol(bounds: Bounds, identity: VariableId, dtype: str) -> float | None:
    found = bounds.settings_for(VariableSettings(), identity, dtype)
    return None if found is None else found.bound.atol


@dataclass
class Asked:
    """Rules whose bounds depend on the type."""

    by_dtype: dict[str, float] = field(default_factory=lambda: {"<f4": 0.5, "<f8": 0.25})
    are_given: bool = True
    general: VariableSettings | None = None

    @property
    def rules(self) -> Rules:
        return Rules(
            lambda _, what: settings(self.by_dtype[what.dtype]),
            lambda _: False,
            bounds_are_given=self.are_given,
            bounds_from="check a",
            general=self.general,
        )


def test_one_name_has_a_bound_for_each_of_its_types() -> None:
    bounds = Bounds.of_rules(Asked().rules)
    for dtype in ("<f4", "<f8"):
        bounds.note(Asked().rules.settings_for(X, Signature(dtype, ())), X, dtype)
    for one in (bounds, kept(bounds)):
        assert [row.dtype for row in one.rows] == ["<f4", "<f8"]
        assert [atol(one, X, dtype) for dtype in ("<f4", "<f8", "<i4")] == [0.5, 0.25, 0.5]
        assert atol(one, Y, "<f4") is None
        one.refuse_other(settings(0.25), X, "<f8")
        one.refuse_other(settings(0.25), Y, "<f8")  # of which nothing is known
        with pytest.raises(UsageError, match=r"atol=0\.25 .* is asked for, .* made with atol=0\.5"):
            one.refuse_other(settings(0.25), X, "<f4")


@pytest.mark.parametrize("bound", [ErrorBound(0.5, 0.25), ErrorBound(ulps=3)])
def test_a_row_keeps_all_that_decides(bound: ErrorBound) -> None:
    asked = VariableSettings(bound=bound, equal_nan=False, fill_values=(-9.0, math.inf))
    bounds = Bounds("given")
    bounds.note(asked, X, "<f4")
    found = kept(bounds).settings_for(VariableSettings(chunk_bytes=64), X, "<f4")
    assert found == replace(asked, chunk_bytes=64)


def test_variables_of_one_bound_stand_together() -> None:
    bounds = Bounds.of_rules(Asked().rules)
    for identity in (Y, X):
        bounds.note(settings(0.5), identity, "<f4")
    (row,) = bounds.rows
    assert (row.names, row.dtype, row.atol) == (("x", "y"), "<f4", 0.5)


@pytest.mark.parametrize("are_given", [True, False])
def test_what_is_asked_of_all_is_said_once(are_given: bool) -> None:
    bounds = Bounds.of_rules(Asked(are_given=are_given, general=settings(0.5)).rules)
    assert bounds.origin == ("check a" if are_given else "none given")
    bounds.note(settings(0.5), X, "<f4")
    (row,) = bounds.rows
    assert (row.names, row.dtype, row.atol) == (None, None, 0.5)
    bounds.note(settings(0.125), Y, "<f8")
    assert [atol(kept(bounds), one, "<f8") for one in (X, Y)] == [0.5, 0.125]


def test_rules_take_a_captures_bounds_and_say_whose_they_are() -> None:
    asked = Asked(are_given=False, general=settings(0.5))
    bounds = Bounds.of_rules(asked.rules)
    bounds.note(settings(0.125), X, "<f8")
    rules = rules_with(asked.rules, kept(bounds), "of the capture")
    assert (rules.bounds_from, rules.bounds_are_given, rules.general) == (
        "of the capture",
        True,
        None,
    )
    asked_of = (Signature(dtype, ()) for dtype in ("<f4", "<f8"))
    assert [rules.settings_for(X, what).bound.atol for what in asked_of] == [0.125, 0.125]
    unknown = rules_with(asked.rules, Bounds("check b"), "of the capture")
    assert unknown.settings_for(X, Signature("<f8", ())).bound.atol == 0.25
