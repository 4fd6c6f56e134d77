"""Values that are proposed for a log of which two runs are at hand."""

from __future__ import annotations

import pytest

from ciwrap.formats.log_template import Template, propose


@pytest.mark.parametrize("counter", ["{0}/5", "{0}", "1:{0}0", "12-{0}", "0..{0}"])
def test_lines_with_a_counter_are_of_one_kind(counter: str) -> None:
    lines = [f"step {counter.format(at)} energy = -1.2345678{at} Ha".encode() for at in range(5)]
    (found,) = propose(lines, lines)
    step = " {iteration:int}" if counter == "{0}" else ""
    assert (found.name, found.text) == ("energy", f"^step{step} {{*}} energy = {{energy}}")
    assert (found.column, found.count, found.digits) == (None, 5, 9)
    places = Template(found.text).match(lines[0])
    assert isinstance(places, tuple)
    assert lines[0][places[-1].start : places[-1].end] == b"-1.23456780"


def test_a_counter_is_no_number_of_other_lines() -> None:
    lines = [b"Energy 3 and 1.2345678", b"Energy 3/4 and 1.2345678", b"Energy 3,4.5 and 1.2345678"]
    found = propose(lines, lines)
    assert [(one.text, one.count) for one in found] == [
        (f"^Energy {{*}} and {{{name}}}", 1) for name in ("and", "and_2", "and_3")
    ]


def bounds(*values: str, other: float = 0.0) -> list[float]:
    """Of what is proposed for a residual that is printed so, in a second run with `other` added."""
    lines = [f"Residual norm = {one}".encode() for one in values]
    again = [f"Residual norm = {float(one) + other:.12g}".encode() for one in values]
    return [one.atol for one in propose(lines, again if other else lines)]


def test_bounds_are_of_the_finest_printed_place() -> None:
    """The first one is often printed as a plain 1."""
    assert bounds("1", "0.0123456789", "0.0001234567") == [1.5e-10]
    assert bounds("-17.1645739", "-17.2", "-18") == [1.5e-7]


def test_no_bound_is_wide_beside_what_the_values_go_through() -> None:
    assert bounds("1.0000000", "0.5000000", "0.2500000", other=1e-5) == [1e-4]
    assert bounds("1.0000000", "0.5000000", "0.2500000", other=2e-4) == [7.5e-4]
    assert bounds("1.0000000", "0.5000000", "0.2500000", other=1e-3) == []
    # One value, whatever its last digits: its size counts.
    assert bounds("17.1645739", "17.1645738", other=1e-5) == [1e-4]
