"""What a check says of logs over what it includes: its bound and its reference, each as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ciwrap.base.errors import ConfigError
from ciwrap.model import ErrorBound, VariableId
from ciwrap.project.config import load_text
from ciwrap.project.settings import Expectation

if TYPE_CHECKING:
    from ciwrap.project.settings import Check

INCLUDED = 'patterns: {P: {match: "E = {E}", atol: 1, expect: 5, equal_nan: no}}\n'


def check(values: str) -> Check:
    text = "checks: {a: {format: log, outputs: x, include: i.yaml, values: {E: {like: P%s}}}}"
    return load_text(text % values, Path("/p/ciwrap.yaml"), lambda _: INCLUDED).checks[0]


@pytest.mark.parametrize(
    ("own", "bound", "expected"),
    [
        ("", ErrorBound(atol=1), Expectation((5.0,))),
        (", rtol: 1e-3", ErrorBound(rtol=1e-3), Expectation((5.0,))),
        (", ulps: 3", ErrorBound(ulps=3), Expectation((5.0,))),
        (", atol: 0", ErrorBound(), Expectation((5.0,))),
        (", range: [0, 1]", ErrorBound(atol=1), Expectation(None, 0, 1)),
        (", expect: 7", ErrorBound(atol=1), Expectation((7.0,))),
    ],
)
def test_what_is_like_a_pattern(own: str, bound: ErrorBound, expected: Expectation) -> None:
    """Neither a part of its bound nor its reference is left over from the pattern."""
    found = check(own)
    settings = found.settings_for(VariableId("E"))
    assert settings.bound == bound
    assert settings.equal_nan is False
    assert found.expected == {"E": expected}


@pytest.mark.parametrize("key", ["values: {t: {match: 'E = {t}',", "tables: {t: {header: 'a b',"])
def test_contradictions_are_told_with_their_line(key: str) -> None:
    text = f"checks: {{a: {{format: log, outputs: x, {key} ulps: 3, atol: 1}}}}}}}}\n"
    with pytest.raises(ConfigError, match=r"ciwrap.yaml:1:\d+: .*t.ulps: ulps excludes atol"):
        load_text(text, Path("/p/ciwrap.yaml"))
