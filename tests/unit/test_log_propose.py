"""Values that are proposed for a log of which two runs are at hand."""

from __future__ import annotations

import pytest

from ciwrap.formats.log_template import Template, propose


@pytest.mark.parametrize("counter", ["{0}/5", "{0}", "1:{0}0", "12-{0}", "0..{0}"])
def test_lines_with_a_counter_are_of_one_kind(counter: str) -> None:
    lines = [f"step {counter.format(at)} energy = -1.2345678{at} Ha".encode() for at in range(5)]
    (found,) = propose(lines, lines)
    assert (found.text, found.column, found.count, found.digits) == ("^step", 5, 5, 9)
    assert Template(found.text).match(lines[0]) == ()
    assert lines[0].split()[4] == b"-1.23456780"


def test_a_counter_is_no_number_of_other_lines() -> None:
    lines = [b"Energy 3 and 1.2345678", b"Energy 3/4 and 1.2345678", b"Energy 3,4.5 and 1.2345678"]
    found = propose(lines, lines)
    assert [(one.text, one.column, one.count) for one in found] == [("^Energy", 4, 1)] * 3
