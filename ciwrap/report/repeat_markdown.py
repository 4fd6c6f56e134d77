"""What repeated runs came to, as a job summary in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import MessageLevel
from ciwrap.model.repeat_result import Behaviour
from ciwrap.report.markdown import escaped
from ciwrap.report.paths import portable
from ciwrap.report.repeat_words import (
    bound_text,
    factor_words,
    has_several_checks,
    present_words,
)
from ciwrap.report.text import capital, plural, size_text

if TYPE_CHECKING:
    from ciwrap.model.repeat_result import RepeatedVariable, RepeatResult

_MOST = 40


def repeat_summary(result: RepeatResult) -> str:
    """GitHub-flavoured Markdown: the first sentence, a table of what varies, factors."""
    result = portable(result)
    lines = [f"## ciwrap repeat: {plural(len(result.runs), 'run')}", ""]
    lines += [f"**{escaped(capital(result.headline), 900)}.**", ""]
    told = [one for one in result.messages if one.level is not MessageLevel.NOTE]
    lines += [f"- {one.level.value}: {escaped(one.text, 500)}" for one in told[:_MOST]]
    lines += [f"- ... and {len(told) - _MOST} more"] if len(told) > _MOST else []
    lines += [""] if told else []
    varying = [one for one in result.variables if one.kind is not Behaviour.EQUAL]
    if varying:
        lines += ["| variable | | at most | would hold | now |", "|---|---|--:|---|---|"]
    lines += [_row(one) for one in varying[:_MOST]]
    rest = len(varying) - _MOST
    lines += ["", f"... and {plural(rest, 'more variable')}."] if rest > 0 else [""]
    findings = [one for one in result.factors if one.changes or (one.p or 1.0) <= 0.05]
    several = has_several_checks(result.factors)
    lines += [
        f"- {escaped(one.name)}: {escaped(factor_words(one, has_checks=several))}"
        for one in findings[:_MOST]
    ]
    rest = len(findings) - _MOST
    lines += [f"- ... and {rest} more"] if rest > 0 else []
    return "\n".join(lines).rstrip() + "\n"


def _row(one: RepeatedVariable) -> str:
    size = "" if one.max_abs is None else size_text(one.max_abs)
    bound = "" if one.suggested_bound is None else f"`{bound_text(one.suggested_bound)}`"
    name = escaped(f"{one.check}: {one.name}", 80)
    return f"| {name} | {one.kind.words} | {size} | {bound} | {escaped(present_words(one) or '')} |"
