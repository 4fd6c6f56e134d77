"""Which settings hold for a variable: layers, patterns, and what a dtype makes of them."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ciwrap.base.patterns import PathPattern
from ciwrap.model import ErrorBound, VariableId, VariableSettings, fit_fill_values
from ciwrap.project.config import load_text
from ciwrap.project.settings import Check, name_matches, unused_words


def check(text: str) -> Check:
    return load_text(text, Path("/project/ciwrap.yaml")).checks[0]


LAYERED = """
defaults: {rtol: 1e-3, residue_levels: 31, equal_nan: no}
checks:
  c:
    outputs: out
    atol: 1e-9
    variables:
      v*: {atol: 1, evidence: tree}
      "*y": {ulps: 2}
      vy: {evidence: data}
      "*": {residue_levels: 7}
      "iter 3 / *": {rtol: 0.5}
      "x[0]": {atol: 5}
"""


@pytest.mark.parametrize(
    ("variable", "bound", "evidence"),
    [
        (VariableId("x"), ErrorBound(atol=1e-9), "auto"),
        (VariableId("vx"), ErrorBound(atol=1), "tree"),
        (VariableId("y"), ErrorBound(ulps=2), "auto"),
        (VariableId("vy"), ErrorBound(ulps=2), "data"),
        (VariableId("V"), ErrorBound(atol=1e-9), "auto"),
        (VariableId("x", 3, 0), ErrorBound(rtol=0.5), "auto"),
        (VariableId("x", 4, 0), ErrorBound(atol=1e-9), "auto"),
        (VariableId("x[0]"), ErrorBound(atol=5), "auto"),
        (VariableId("x0"), ErrorBound(atol=5), "auto"),
    ],
)
def test_layers(variable: VariableId, bound: ErrorBound, evidence: str) -> None:
    settings = check(LAYERED).settings_for(variable)
    assert settings.bound == bound
    assert settings.evidence == evidence
    assert settings.residue_levels == 7
    assert settings.equal_nan is False


def test_an_exact_name_counts_before_later_patterns() -> None:
    text = "checks: {c: {outputs: x, variables: {a: {atol: 1}, '*': {atol: 2}}}}"
    assert check(text).settings_for(VariableId("a")).bound.atol == 1
    assert check(text).settings_for(VariableId("b")).bound.atol == 2


def test_a_name_with_brackets_counts_before_later_patterns() -> None:
    text = "checks: {c: {outputs: x, variables: {'x[0]': {atol: 1}, 'x*': {atol: 2}}}}"
    assert check(text).settings_for(VariableId("x[0]")).bound.atol == 1
    assert check(text).settings_for(VariableId("x[0]", 3, 1)).bound.atol == 1
    assert check(text).settings_for(VariableId("x0")).bound.atol == 2


def test_a_bound_is_set_as_a_whole() -> None:
    """`x: {atol: 1}` must not silently keep an rtol from further out."""
    text = "defaults: {rtol: 1, atol: 1}\nchecks: {c: {outputs: x, variables: {x: {atol: 0}}}}"
    assert check(text).settings_for(VariableId("x")).bound == ErrorBound()


def test_strictness_reaches_the_settings() -> None:
    settings = check("checks: {c: {outputs: x, strict: {dtype: no}}}").settings_for(VariableId("x"))
    assert (settings.strict_dtype.value, settings.strict_shape) == ("false", True)


def test_patterns() -> None:
    variable = VariableId("mesh/rho.x", 10, 0)
    for pattern in (
        "mesh/rho.x",
        "*",
        "mesh/*",
        "*.x",
        "mesh/rho.?",
        "iter 10 / *",
        "* / rank 0 / *",
    ):
        assert name_matches(pattern, variable), pattern
    for pattern in ("rho.x", "MESH/*", "mesh", "iter 1 / *", "rank 0 / *"):
        assert not name_matches(pattern, variable), pattern


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("[!x]", "yz^"),
        ("[^x]", "yz^"),
        ("[x^]", "x^"),
        ("[^^]", "xyz"),
        ("[!^x]", "yz"),
        ("[x[^y]", "xy^"),
        ("[^]", "^"),
        ("[!]", ""),
        ("[]x]", ""),
        ("[x", ""),
    ],
)
def test_sets_of_characters(pattern: str, meant: str) -> None:
    """As in the patterns of files, and as the recording library reads those of variables."""
    assert "".join(one for one in "xyz^" if name_matches(pattern, VariableId(one))) == meant
    assert "".join(one for one in "xyz^" if PathPattern(pattern).match(one)) == meant
    assert name_matches("a" + pattern, VariableId("a!")) == bool(
        PathPattern("a" + pattern).match("a!")
    )


def test_names_with_a_slash_between_blanks() -> None:
    assert name_matches("v in m / s", VariableId("v in m / s"))
    assert name_matches("v in m / s", VariableId("v in m / s", 3))
    assert name_matches("* / s", VariableId("v in m / s", 3))


def test_patterns_that_match_nothing_are_told() -> None:
    text = "checks: {c: {outputs: x, ignore: [gone], variables: {x: {atol: 1}, 'z*': {atol: 2}}}}"
    patterns = check(text).variable_patterns
    told = list(unused_words(patterns, [VariableId("x"), VariableId("y")], "here"))
    assert ["'z*' here" in told[0], "'gone' here" in told[1], len(told)] == [True, True, 2]


@pytest.mark.parametrize(
    ("dtype", "given_values", "held"),
    [
        ("<f8", (-1e18, 9), (-1e18, 9.0)),
        ("<f4", (-1e18,), (float(np.float32(-1e18)),)),
        ("<f4", (1e300, 1e-300), (0.0,)),
        ("<f4", (0.1, float(np.float32(0.1))), (float(np.float32(0.1)),)),
        ("<f2", (70000, 65504), (65504.0,)),
        ("<f8", (0, -0.0), (0.0,)),
        ("<bf2", (1e38, 3.4e38, 1.0), (struct.unpack("<f", b"\x00\x00\x96\x7e")[0], 1.0)),
        ("<c8", (0.5,), (0.5,)),
        ("<i4", (-999, 1.5, 1 << 31, -(1 << 31), math.nan, math.inf), (-999, -(1 << 31))),
        ("|u1", (255, 256, -1, 255.0), (255,)),
        ("<u8", (1 << 64, (1 << 64) - 1), ((1 << 64) - 1,)),
        ("|b1", (1,), ()),
        ("<U3", (1,), ()),
        ("<f8", (10**400, math.inf), (math.inf,)),
    ],
)
def test_fill_values_by_dtype(
    dtype: str, given_values: tuple[float, ...], held: tuple[float, ...]
) -> None:
    fitted = fit_fill_values(VariableSettings(fill_values=given_values), dtype).fill_values
    assert fitted == held
    assert [type(value) for value in fitted] == [type(value) for value in held]


def test_nan_is_held_once() -> None:
    fitted = fit_fill_values(VariableSettings(fill_values=(math.nan, -math.nan)), "<f4").fill_values
    assert len(fitted) == 1
    assert math.isnan(fitted[0])


@given(st.floats(allow_nan=False, width=64), st.sampled_from(["<f2", "<f4", "<f8"]))
def test_fill_values_round_as_numpy_does(value: float, dtype: str) -> None:
    fitted = fit_fill_values(VariableSettings(fill_values=(value,)), dtype).fill_values
    with np.errstate(over="ignore"):
        rounded = float(np.dtype(dtype).type(value))
    if math.isinf(rounded) and not math.isinf(value):
        assert fitted == ()
    else:
        assert fitted == (rounded,)


@given(st.floats(allow_nan=False) | st.floats(allow_nan=False, width=32))
@example(1 + 2.0**-8 + 2.0**-40)  # rounded to float32 first, it is half way
def test_bfloat16_fill_values_are_the_nearest(value: float) -> None:
    fitted = fit_fill_values(VariableSettings(fill_values=(value,)), "<bf2").fill_values
    if not fitted:
        assert abs(value) > 3.38e38
        return
    bits = struct.unpack("<I", struct.pack("<f", fitted[0]))[0]
    assert bits & 0xFFFF == 0
    if math.isfinite(value):
        spacing = math.ldexp(1.0, max(math.frexp(value)[1], -125) - 8)
        assert abs(Fraction(fitted[0]) - Fraction(value)) <= Fraction(spacing) / 2


COUNTED = """
defaults: {atol: 9, combine: either, period: 3, fill_values: [7, 8], mixed_precision: true}
checks:
  c:
    outputs: out.log
    format: log
    values: {e: {match: "E {e}", step: s}}
    steps: {s: "step {iteration:int}"}
    counts: {warnings: WARNING}
    variables: {"*": {rtol: 2}}
"""


@pytest.mark.parametrize("name", ["warnings", "e.step", "folder/warnings"])
def test_nothing_makes_two_counts_alike(name: str) -> None:
    settings = check(COUNTED).settings_for(VariableId(name))
    assert settings == VariableSettings()
    assert check(COUNTED).settings_for(VariableId("e")).fill_values == (7, 8)
