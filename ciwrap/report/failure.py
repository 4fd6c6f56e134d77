"""A failed check as a test's failure message: all that helps, in at most 20 lines."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence

from ciwrap.model import CheckResult, Evidence, VariableResult, Verdict, worst_first
from ciwrap.model.variable_result import Cause
from ciwrap.report.cause_words import cause_lines
from ciwrap.report.digest_words import decide_words
from ciwrap.report.text import (
    GOLDEN_AND_NEW,
    LEAST_TOLD_SHARE,
    dtype_words,
    index_text,
    plural,
    safe_name,
    safe_text,
    share_text,
)
from ciwrap.report.words import (
    arrays_words,
    detail_lines,
    fact_lines,
    headline,
    mean_text,
    own_sides,
    relative_text,
    used_share,
    used_words,
    variable_is_exact,
)

MOST_LINES = 20
_MOST_ELEMENTS = 4
_MOST_MESSAGES = 3
_LONGEST_LINE = 400
_NO_DATA = {
    Evidence.RESIDUES: "the golden keeps residues, not the values: which value, and how far it"
    " moved, is not known",
    Evidence.TREE: "the golden keeps a tree, not the values: which value, and how far it moved,"
    " is not known",
}


def failure_lines(
    title: str,
    check: CheckResult,
    tail: Sequence[str],
    sides: tuple[str, str] = GOLDEN_AND_NEW,
) -> list[str]:
    """The message, line by line, for people who read the first one only, too.

    title: what the check is called where the test is known. tail: where the golden lies and what to
    type; never cut. sides: what the two sides are called.
    """
    room = MOST_LINES - len(tail)
    if len(check.variables) == 1 and not check.messages:
        (variable,) = check.variables
        end = coverage_lines(check)
        own = variable_lines(variable, most_elements=_MOST_ELEMENTS, sides=sides)
        lines = own[: room - len(end)] + end
        lines[0] = lines[0].lstrip()
    else:
        lines = [f"{safe_name(title)}: {_summary(check)}", *_body(check, room - 1, sides)]
    return [
        line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."
        for line in (*lines, *tail)
    ]


def coverage_lines(check: CheckResult) -> list[str]:
    """What the check did not look at, in a line; none if it looked at everything."""
    coverage = check.coverage
    return [] if coverage.is_whole else [f"  {coverage.text}"]


def command_line(command: str, *arguments: str) -> str:
    """A command that can be typed as it is printed."""
    return " ".join([command, *(shlex.quote(safe_text(argument)) for argument in arguments)])


def _summary(check: CheckResult) -> str:
    counts = Counter(variable.verdict for variable in check.variables)
    bad = [
        verdict
        for verdict in Verdict.worst_first()
        if verdict is not Verdict.MATCH and counts[verdict]
    ]
    if not bad:
        return check.verdict.words
    all_of_them = arrays_words(len(check.variables), len({one.name for one in check.variables}))
    is_one = bad[0] is Verdict.DIFFER and counts[bad[0]] == 1
    said = [f"{counts[bad[0]]} of {all_of_them} {'differs' if is_one else bad[0].words}"]
    said += [f"{counts[verdict]} {verdict.words}" for verdict in bad[1:]]
    return _how_far(check.variables) + ", ".join(said)


def _how_far(variables: Sequence[VariableResult]) -> str:
    """`up to 40 x the bound: `; nothing where no number is beyond a bound by a known share.

    It comes first, since summaries of a run show the beginning of a message alone.
    """
    shares = [
        one.max_bound_share
        for one in variables
        if one.verdict is Verdict.DIFFER and not variable_is_exact(one) and one.max_bound_share
    ]
    # Of a share that is hardly more than 1 the rest says enough.
    if not shares or not math.isfinite(max(shares)) or max(shares) < LEAST_TOLD_SHARE:
        return ""
    is_one = len(variables) == 1 and variables[0].compared_elements == 1
    return f"{'' if is_one else 'up to '}{share_text(max(shares))}: "


def _body(check: CheckResult, room: int, sides: tuple[str, str]) -> list[str]:
    bad = [one for one in worst_first(check.variables) if one.verdict is not Verdict.MATCH]
    good = len(check.variables) - len(bad)
    messages = [
        f"  {message.level.value}: {safe_text(message.text)}"
        for message in check.messages[:_MOST_MESSAGES]
    ]
    if len(check.messages) > _MOST_MESSAGES:
        messages.append(f"  ... and {len(check.messages) - _MOST_MESSAGES} more messages")
    noun = check.coverage.unit
    end = [f"  {plural(good, f'other {noun}')} match{'es' if good == 1 else ''}"] if good else []
    end += coverage_lines(check)
    room -= len(messages) + len(end)
    lines: list[str] = []
    for number, variable in enumerate(bad):
        rest = len(bad) - number
        most = _MOST_ELEMENTS if len(bad) == 1 else 1
        own = variable_lines(variable, most_elements=most, sides=sides)
        # The first one is shown in full, later ones as far as there is room, one line at least.
        free = room - len(lines) - (1 if rest > 1 else 0)
        if free < 1:
            lines.append(f"  ... and {plural(rest, f'more {noun}')}")
            break
        lines += own[: max(1, free)] if number == 0 or free >= len(own) else own[:1]
    return messages + lines + end


def variable_lines(
    variable: VariableResult, *, most_elements: int = 1, sides: tuple[str, str] = GOLDEN_AND_NEW
) -> list[str]:
    """One variable: its headline, then what is known of where and how much."""
    sides = own_sides(variable, sides)
    head, how_far = headline(variable, with_percent=True), _how_far([variable])
    lines = [f"  {safe_name(variable.id.text)}: {how_far}{head}"]
    if variable.verdict is Verdict.NOT_COMPARABLE:
        return lines
    lines.append(f"    {_kind(variable, has_golden=sides == GOLDEN_AND_NEW)}")
    is_bound = [one.cause is Cause.WIDER_BOUND for one in variable.explanations]
    told = list(zip(is_bound, cause_lines(variable, sides), strict=True))
    if variable.text is None:
        lines += [f"    {line}" for is_last, line in told if not is_last]
        details = fact_lines(variable, sides, with_share=not how_far)
    else:
        details = detail_lines(variable, sides)
    lines += [f"    {line}" for line in details[:1]]
    lines += [
        f"      then {index_text(one.index)}: {sides[0]} {safe_name(one.golden)},"
        f" {sides[1]} {safe_name(one.new)}"
        for one in variable.first_differences[1:most_elements]
    ]
    lines += [f"    {line}" for line in details[1:]]
    lines += _mean_lines(variable)
    lines += [f"    {line}" for is_last, line in told if is_last]
    is_unknown = variable.differing_count is None and not variable.moved_elements
    if is_unknown and variable.evidence in _NO_DATA:
        lines.append(f"    {_NO_DATA[variable.evidence]}")
    if decide := decide_words([variable.verdict]):
        lines.append(f"    {decide}")
    return lines


def _kind(variable: VariableResult, *, has_golden: bool) -> str:
    single = "a single text" if (variable.dtype or "")[1:2] in ("U", "S") else "a single number"
    shape = f"shape {'x'.join(map(str, variable.shape))}" if variable.shape else single
    what = f"{dtype_words(variable.dtype)}, {shape}" if variable.text is None else "text"
    is_kept = has_golden and variable.evidence is not None
    evidence = f", golden keeps {variable.evidence}" if is_kept else ""
    # Where the count is known, the share of the bound has been told.
    used = used_words(used_share(variable)) if variable.differing_count is None else ""
    return f"{what}{evidence}{used}"


def _mean_lines(variable: VariableResult) -> list[str]:
    # A mean of 0 beside elements that differ is one of no pair that has a difference.
    mean = mean_text(variable.mean_abs_difference)
    if not mean or variable.compared_elements == 1:
        return []
    line = f"    mean |difference| {mean}"
    if relative := relative_text(variable.mean_rel_difference, variable.max_abs_difference):
        line += f", mean relative {relative}"
    return [line]
