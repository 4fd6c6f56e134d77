"""The last step: fails the job if the status asks for it. What left no status has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.action.inputs import FailOn
from ciwrap.action.runner import command_line

if TYPE_CHECKING:
    from collections.abc import Mapping

# The worse, the later. A status that is none of these counts as an error.
_ORDER = ("match", "differ", "not-comparable", "error")
_FROM = {FailOn.DIFFER: 1, FailOn.NOT_COMPARABLE: 2, FailOn.ERROR: 3, FailOn.NEVER: len(_ORDER)}
_WORDS = {
    "match": "every number that was compared is within its error bound",
    "differ": "numbers moved beyond their error bounds",
    "not-comparable": "something was not compared, which is never a match",
    "error": "ciwrap came to no result",
}


def gate(status: str, fail_on: FailOn, environment: Mapping[str, str]) -> int:
    """The exit code of the job's last step."""
    known = status if status in _ORDER else "error"
    compared = environment.get("CIWRAP_COMPARED", "")
    if known == "match" and not (compared.isdigit() and int(compared) > 0):
        # A match of nothing is none, whoever says so.
        known = "not-comparable"
    failed = _ORDER.index(known) >= _FROM[fail_on]
    text = f"{known.replace('-', ' ')}: {_WORDS[known]}"
    if failed:
        print(command_line("error", text, title="ciwrap"))
        return 1
    if known != "match":
        print(command_line("warning", f"{text}; fail-on: {fail_on.value}", title="ciwrap"))
    else:
        print(text)
    return 0
