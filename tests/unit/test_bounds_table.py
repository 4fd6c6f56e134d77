"""The table of bounds that the recording library reads."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ciwrap.base.errors import UsageError
from ciwrap.model import SettingsLayer, VariableId
from ciwrap.project.config import load_text
from ciwrap.recording.native import bounds_table

if TYPE_CHECKING:
    from ciwrap.project.settings import Check

ROUNDED = (1 << 53) + 1


def check_of(variables: str) -> Check:
    text = f"checks: {{c: {{outputs: out, atol: 1, variables: {{{variables}}}}}}}"
    return load_text(text, Path("ciwrap.yaml").absolute()).checks[0]


@pytest.mark.parametrize("value", [ROUNDED, -ROUNDED, (1 << 63) - 1, (1 << 64) - 1])
def test_a_fill_value_that_a_double_rounds_is_refused(value: int) -> None:
    """2^53 would be the fill value in the place of 2^53 + 1."""
    with pytest.raises(UsageError, match=f"the fill value {value} of '\\*' is a whole number"):
        bounds_table(None, SettingsLayer.of({"fill_values": (value,)}))


@pytest.mark.parametrize("value", [1 << 53, -(1 << 62), -9999, 1e20])
def test_a_fill_value_that_a_double_holds_is_in_the_table(value: float) -> None:
    table = bounds_table(None, SettingsLayer.of({"fill_values": (value,)}))
    assert table is not None
    (line,) = table.splitlines()[1:]
    assert float(line.split("\t")[5]) == value


@pytest.mark.parametrize("name", ["x", "x[0]", "x0", "*", "x?", "y"])
@pytest.mark.parametrize(
    "variables",
    [
        "'x[0]': {atol: 2}",
        "'x[0]': {atol: 2}, 'x*': {atol: 3}, x: {atol: 4}",
        "x: {atol: 4}, 'x*': {atol: 3}, 'x?': {atol: 2}, '*': {atol: 5}",
    ],
)
def test_the_table_gives_a_variable_the_bound_that_the_check_does(
    name: str, variables: str
) -> None:
    """`x[0]` is a glob, and the name of a variable."""
    check = check_of(variables)
    table = bounds_table(check, SettingsLayer())
    assert table is not None
    bound = ""
    for line in table.splitlines()[1:]:
        kind, pattern, said, *_ = line.split("\t")
        if pattern == name if kind == "=" else fnmatchcase(name, pattern):
            bound = said
    assert float(bound.split()[0]) == check.settings_for(VariableId(name)).bound.atol


def test_fill_values_that_are_taken_back_are_refused() -> None:
    """The library would go on with those of the line before."""
    check = check_of("'*': {fill_values: [-999]}, x: {fill_values: []}")
    with pytest.raises(UsageError, match="`fill_values: \\[\\]` of 'x' takes fill values back"):
        bounds_table(check, SettingsLayer())
    assert bounds_table(check_of("x: {fill_values: []}"), SettingsLayer())


def test_what_is_left_out_stands_in_the_table() -> None:
    text = "checks: {c: {outputs: out, ignore: ['a*', 'iter 1 / b'], until_iteration: 7}}"
    check = load_text(text, Path("ciwrap.yaml").absolute()).checks[0]
    table = bounds_table(check, SettingsLayer())
    assert table is not None
    assert table.splitlines()[1:] == ["!\ta*", "!\titer 1 / b", ">\t7"]


@pytest.mark.parametrize("char", ["\t", "\n"])
def test_an_ignored_pattern_of_two_lines_is_refused(char: str) -> None:
    text = f'checks: {{c: {{outputs: out, ignore: ["a{char!r}b"]}}}}'.replace("'", "")
    check = load_text(text, Path("ciwrap.yaml").absolute()).checks[0]
    with pytest.raises(UsageError, match="holds a tab or a line break"):
        bounds_table(check, SettingsLayer())
