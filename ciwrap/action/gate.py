"""The last step: fails the job if the status asks for it. What left no status has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.action.inputs import FailOn
from ciwrap.action.runner import command_line
from ciwrap.action.status import ERROR, GOOD, NOT_COMPARABLE, STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

# What fails, by the input. A status that is none of STATUSES counts as an error.
_FAILS = {
    FailOn.DIFFER: STATUSES[STATUSES.index("inconsistent") :],
    FailOn.NOT_COMPARABLE: (NOT_COMPARABLE, ERROR),
    FailOn.ERROR: (ERROR,),
    FailOn.NEVER: (),
}
_WORDS = {
    "match": "every number that was compared is within its error bound",
    "consistent": "no number differs, and the statistics of the runs are those of the ensemble",
    "done": "what was measured is in the job summary",
    "slower": "side B takes longer than side A, by the margin or more",
    "inconsistent": "the statistics of the runs are not those of the ensemble",
    "suspect": "numbers may be beyond their error bounds: the goldens keep too little to tell",
    "differ": "numbers are beyond their error bounds",
    "not-comparable": "something was not compared, which is never a match",
    "error": "ciwrap came to no result",
}


_WIDER_WORDS = (
    "less is checked than before, or nobody knows whether it is (fail-on-wider): see the table of"
    " changes in the job summary"
)


def _is_refused_wider(environment: Mapping[str, str]) -> bool:
    """Whether the job is to fail for what is checked less; '' is known of no pull request."""
    is_asked = environment.get("CIWRAP_INPUT_FAIL_ON_WIDER", "").strip().lower() == "true"
    return is_asked and environment.get("CIWRAP_WIDER", "") not in ("", "0")


def gate(status: str, fail_on: FailOn, environment: Mapping[str, str]) -> int:
    """The exit code of the job's last step."""
    known = status if status in STATUSES else ERROR
    compared = environment.get("CIWRAP_COMPARED", "")
    if known == "match" and not (compared.isdigit() and int(compared) > 0):
        # A match of nothing is none, whoever says so.
        known = NOT_COMPARABLE
    text = f"{known.replace('-', ' ')}: {_WORDS[known]}"
    is_refused = _is_refused_wider(environment)
    if is_refused:
        print(command_line("error", _WIDER_WORDS, title="ciwrap"))
    if known in _FAILS[fail_on]:
        print(command_line("error", text, title="ciwrap"))
        return 1
    if known not in GOOD:
        print(command_line("warning", f"{text}; fail-on: {fail_on.value}", title="ciwrap"))
    else:
        print(text)
    return int(is_refused)
