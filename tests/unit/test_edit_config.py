"""Bounds are put into a ciwrap.yaml, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciwrap.base.errors import ConfigError
from ciwrap.model import ErrorBound, VariableId
from ciwrap.project.config import load_text
from ciwrap.studies.repeat.edit_config import BoundEdit, IterationEdit, edited

PATH = Path("/nowhere/ciwrap.yaml")
CHECK = "checks:\n  mesh:\n    outputs: out\n"
VARIABLES = f"{CHECK}    variables:\n"
NOTE = "3 x largest of 9 differences, 2026-11-22"


def put(text: str, *names: str, bound: ErrorBound | None = None) -> str:
    bound = bound or ErrorBound(atol=2e-6)
    new = edited(text, [BoundEdit("mesh", name, bound, NOTE) for name in names], PATH)
    for name in names:
        assert load_text(new, PATH).check("mesh").settings_for(VariableId(name)).bound == bound
    return new


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (  # nothing is said of variables
            "checks:\n  mesh:\n    outputs: out  # where\n# the end\n",
            (
                "checks:\n  mesh:\n    outputs: out  # where\n    variables:\n"
                f"      x: {{atol: 2e-6}}  # {NOTE}\n# the end\n"
            ),
        ),
        (  # of others only
            VARIABLES + "      y: {atol: 1}\n\n  b:\n    outputs: b\n",
            VARIABLES + "      y: {atol: 1}\n"
            f"      x: {{atol: 2e-6}}  # {NOTE}\n\n  b:\n    outputs: b\n",
        ),
        (  # in one line
            "checks: {mesh: {outputs: out}}\n",
            f"checks: {{mesh: {{outputs: out, variables: {{x: {{atol: 2e-6}}}}}}}}  # {NOTE}\n",
        ),
        (
            "checks:\n  mesh: {outputs: out, variables: {y: {atol: 1}}}  # mine\n",
            (
                "checks:\n  mesh: {outputs: out, variables: {y: {atol: 1}, x: {atol: 2e-6}}}"
                f"  # mine; {NOTE}\n"
            ),
        ),
        (  # the entry is there
            VARIABLES + "      x: {rtol: 1e-3, atol: 1, evidence: tree}\n",
            VARIABLES + f"      x: {{atol: 2e-6, evidence: tree}}  # {NOTE}\n",
        ),
        (
            VARIABLES + "      x: {evidence: tree}\n",
            VARIABLES + f"      x: {{evidence: tree, atol: 2e-6}}  # {NOTE}\n",
        ),
        (
            VARIABLES + "      x:\n        ulps: 4  # by hand\n        evidence: tree\n",
            VARIABLES + "      x:\n"
            f"        atol: 2e-6  # by hand; {NOTE}\n        evidence: tree\n",
        ),
        (
            VARIABLES + "      x:\n        atol: 1\n        rtol: 1e-9\n        evidence: tree\n",
            VARIABLES + f"      x:\n        atol: 2e-6  # {NOTE}\n        evidence: tree\n",
        ),
        (
            VARIABLES + "      x:\n        evidence: tree\n",
            VARIABLES + f"      x:\n        atol: 2e-6  # {NOTE}\n        evidence: tree\n",
        ),
        (  # an earlier comment of ours is replaced
            VARIABLES + "      x: {atol: 1}  # 5 x largest of 4 differences, 2025-01-31\n",
            VARIABLES + f"      x: {{atol: 2e-6}}  # {NOTE}\n",
        ),
        (  # a list of checks
            "checks:\n- name: other\n  outputs: o\n- outputs: out\n  name: mesh\n",
            (
                "checks:\n- name: other\n  outputs: o\n- outputs: out\n  name: mesh\n  variables:\n"
                f"    x: {{atol: 2e-6}}  # {NOTE}\n"
            ),
        ),
        (  # without a last line break
            "checks:\n  mesh:\n    outputs: out",
            VARIABLES + f"      x: {{atol: 2e-6}}  # {NOTE}",
        ),
        (  # of another system
            "checks:\r\n  mesh:\r\n    outputs: out\r\n",
            (
                "checks:\r\n  mesh:\r\n    outputs: out\r\n    variables:\r\n"
                f"      x: {{atol: 2e-6}}  # {NOTE}\r\n"
            ),
        ),
    ],
)
def test_a_bound_finds_its_place(text: str, wanted: str) -> None:
    assert put(text, "x") == wanted


def test_doing_it_again_changes_nothing() -> None:
    text = (
        "# head\nchecks:\n  mesh:\n    outputs: [a, b]\n    atol: 1e-9\n"
        "    variables:\n      '*': {atol: 1}\n"
    )
    once = put(text, "x", "fields/y", "a: b")
    assert put(once, "x", "fields/y", "a: b") == once


def test_a_relative_bound_replaces_an_absolute_one() -> None:
    text = "checks:\n  mesh: {outputs: out, variables: {x: {atol: 1}}}\n"
    new = put(text, "x", bound=ErrorBound(rtol=5e-9))
    assert "{x: {rtol: 5e-9}}" in new


@pytest.mark.parametrize("name", ["x*", "x[0]"])
def test_a_name_that_would_be_a_pattern_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="would be a pattern"):
        edited(
            "checks: {mesh: {outputs: out}}",
            [BoundEdit("mesh", name, ErrorBound(atol=1), NOTE)],
            PATH,
        )


def test_an_alias_that_two_checks_share_is_refused() -> None:
    """A bound of one of them would be one of the other, too."""
    text = (
        "checks:\n  a: {outputs: a, variables: &v {y: {atol: 1}}}\n"
        "  mesh: {outputs: b, variables: *v}\n"
    )
    with pytest.raises(ConfigError, match="form that bounds cannot be put into"):
        put(text, "x")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (CHECK, f"{CHECK}    until_iteration: 30  # why\n"),
        (f"{CHECK}    until_iteration: 7\n", f"{CHECK}    until_iteration: 30  # why\n"),
        (
            "checks: {mesh: {outputs: out}}\n",
            "checks: {mesh: {outputs: out, until_iteration: 30}}  # why\n",
        ),
    ],
)
def test_the_last_iteration_finds_its_place(text: str, wanted: str) -> None:
    assert edited(text, [], PATH, [IterationEdit("mesh", 30, "why")]) == wanted


def test_later_iterations_are_ignored() -> None:
    check = load_text(f"{CHECK}    until_iteration: 30\n", PATH).check("mesh")
    assert not check.is_ignored(VariableId("x", 30, 2))
    assert check.is_ignored(VariableId("x", 31, 2))
    assert not check.is_ignored(VariableId("x"))
