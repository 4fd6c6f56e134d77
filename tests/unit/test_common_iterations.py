"""What `--common` leaves out, and what it says of that."""

from __future__ import annotations

from ciwrap.check.two_sides import Findings, uncompared
from ciwrap.model import VariableId, VariableResult
from ciwrap.runs.compare_runs import leave_out_uncommon


def results(*iterations: int) -> list[VariableResult]:
    return [uncompared(VariableId("x", one, 0), None, None) for one in iterations]


def test_what_was_not_compared_is_not_called_compared() -> None:
    """The comparison was ended after the first iteration, and after one of B alone."""
    outcome = Findings(results=results(0), extra=results(12))
    outcome.lost = [((one, 0), "ended") for one in range(1, 10)]
    told = leave_out_uncommon(outcome, (range(10), range(13)))
    assert [one.iteration for one in outcome.ignored] == [12]
    [text] = told
    assert text == (
        "left out is what lies beyond iterations 0 to 9, as far as both runs go (--common): 0"
        " variables of the first run, 1 variable of the second"
    )


def test_what_lacks_in_between_stays_missing_though_the_rest_is_lost() -> None:
    """As far as it is known both runs go on after it."""
    outcome = Findings(results=results(0, 1), missing=results(2))
    outcome.lost = [((3, 0), "ended")]
    assert leave_out_uncommon(outcome, (range(4), (0, 1, 3))) == []
    assert [one.iteration for one in outcome.missing] == [2]
