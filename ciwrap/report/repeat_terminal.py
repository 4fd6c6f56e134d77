"""What repeated runs came to, on a terminal: the answer first, then each variable that varies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model.repeat_result import Behaviour
from ciwrap.report.console import Text
from ciwrap.report.repeat_words import (
    factor_words,
    has_several_checks,
    order_words,
    present_words,
    suggestion_words,
    variable_words,
)
from ciwrap.report.terminal import render_message
from ciwrap.report.text import capital, plural, safe_name, safe_text, seconds_text

if TYPE_CHECKING:
    from ciwrap.model.repeat_result import RepeatedVariable, RepeatResult
    from ciwrap.report.console import Console

_MOST_VARIABLES = 12
_STYLES = {
    Behaviour.EQUAL: "green",
    Behaviour.NOISE: "yellow",
    Behaviour.GROWING: "red",
    Behaviour.UNRELATED: "bold red",
    Behaviour.NOT_COMPARABLE: "bold magenta",
}


def render_repeat(result: RepeatResult, console: Console, *, verbose: bool = False) -> None:
    """Prints a result. verbose: every variable, and what each run took."""
    style = "bold magenta" if result.has_failed else "bold red" if result.exit_code else "bold"
    console.print(Text(safe_text(capital(result.headline)), style=style))
    for message in result.messages:
        render_message(message, console, indent=2)
    shown = [one for one in result.variables if verbose or one.varies]
    several = has_several_checks(result.variables)
    for one in shown if verbose else shown[:_MOST_VARIABLES]:
        _render_variable(one, console, has_checks=several)
    if not verbose and len(shown) > _MOST_VARIABLES:
        console.print(f"  ... and {plural(len(shown) - _MOST_VARIABLES, 'more variable')} (-v)")
    _render_factors(result, console)
    if verbose:
        _render_runs(result, console)


def _render_variable(one: RepeatedVariable, console: Console, *, has_checks: bool) -> None:
    name = f"{one.check}: {one.name}" if has_checks else one.name
    line = Text("  ").append(safe_name(name), _STYLES[one.kind])
    console.print(line.append(f"  {', '.join(map(safe_text, variable_words(one)))}"))
    if one.suggested_bound is not None:
        console.print(f"    {suggestion_words(one.suggested_bound)}")
    if present := present_words(one):
        console.print(f"    {present}")


def _render_factors(result: RepeatResult, console: Console) -> None:
    several = has_several_checks(result.factors)
    for name in dict.fromkeys(one.name for one in result.factors):
        console.print(Text(f"factor {safe_name(name)}", style="bold"))
        for one in result.factors:
            if one.name == name:
                console.print(f"  {factor_words(one, has_checks=several)}")


def _render_runs(result: RepeatResult, console: Console) -> None:
    if order := order_words(result):
        console.print(Text(order, style="dim"))
    for run in result.runs:
        states = " ".join(f"{name}={state}" for name, state in run.factors.items())
        seconds = "" if run.seconds is None else seconds_text(run.seconds)
        kept = "" if run.folder is None else f"in {safe_text(run.folder)}"
        words = [word for word in (states, seconds, kept) if word]
        console.print(Text(f"  run {run.number}: {', '.join(words)}", style="dim"))
