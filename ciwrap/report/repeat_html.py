"""The page of repeated runs: one self-contained file without any script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode
from ciwrap.model import MessageLevel, Verdict
from ciwrap.report.html import MOST_MESSAGES, asset, hash_of, templates, time_words
from ciwrap.report.paths import portable
from ciwrap.report.repeat_charts import MOST_ROWS, MOST_RUNS, class_chart, spread_chart
from ciwrap.report.repeat_words import (
    factor_words,
    present_words,
    suggestion_words,
    variable_words,
)
from ciwrap.report.text import capital, plural, safe_name, seconds_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from ciwrap.model.repeat_result import RepeatedRun, RepeatedVariable, RepeatResult

MOST_CURVES = 24
_MOST_FACTORS = 400
_FEW_RUNS = 24
_VERDICTS = {0: Verdict.MATCH, int(ExitCode.DIFFER): Verdict.DIFFER}


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    kind: str
    words: str
    suggested: str
    present: str


@dataclass(frozen=True, slots=True)
class _Run:
    number: int
    factors: str
    took: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    words: str
    chart: Markup


def render_repeat_html(result: RepeatResult) -> str:
    """The page of repeated runs, bounded in size. Absolute paths are shortened."""
    result = portable(result)
    order = sorted(result.variables, key=lambda one: not one.varies)
    curves = [
        _Curve(_name(one, result), safe_name(", ".join(variable_words(one)), 600), drawn)
        for one in order
        if one.varies and (drawn := spread_chart(one)) is not None
    ]
    messages = result.messages[:MOST_MESSAGES]
    style = asset("report.css")
    return (
        templates()
        .get_template("repeat.html.j2")
        .render(
            title=safe_name(capital(result.headline.replace("`", "")), 1000),
            verdict=_VERDICTS.get(result.exit_code, Verdict.NOT_COMPARABLE).value,
            started=time_words(result.started_at) if result.started_at else "",
            version=safe_name(result.ciwrap_version),
            seed=result.seed,
            reference=safe_name(result.reference),
            messages=[
                (
                    one.level.value.capitalize(),
                    "not_comparable" if one.level is MessageLevel.ERROR else "",
                    safe_name(one.text, 1000),
                )
                for one in messages
            ],
            rows=[_row(one, result) for one in order[:MOST_ROWS]],
            rows_left_out=_left_out(len(order), MOST_ROWS, "variable"),
            classes=class_chart(order) if any(one.classes for one in order) else "",
            classes_size="many-runs" if len(result.runs) > _FEW_RUNS else "few-runs",
            runs_left_out=_left_out(len(result.runs), MOST_RUNS, "run"),
            curves=curves[:MOST_CURVES],
            curves_left_out=_left_out(len(curves), MOST_CURVES, "curve"),
            factors=[
                (safe_name(one.name), factor_words(one)) for one in result.factors[:_MOST_FACTORS]
            ],
            runs=[_run(one) for one in result.runs[:MOST_RUNS]],
            style=style,
            style_hash=hash_of(style),
        )
    )


def _name(one: RepeatedVariable, result: RepeatResult) -> str:
    has_checks = len({other.check for other in result.variables}) > 1
    return safe_name(f"{one.check}: {one.name}" if has_checks else one.name, 120)


def _row(one: RepeatedVariable, result: RepeatResult) -> _Row:
    suggested = one.suggested_bound
    return _Row(
        _name(one, result),
        one.kind.value.replace("_", " "),
        safe_name(", ".join(variable_words(one)), 600),
        "" if suggested is None else suggestion_words(suggested),
        present_words(one) or "",
    )


def _run(run: RepeatedRun) -> _Run:
    states = ", ".join(f"{safe_name(name, 60)} {state}" for name, state in run.factors.items())
    took = "" if run.seconds is None else seconds_text(run.seconds)
    return _Run(run.number, states, took, safe_name(run.problem or "", 500))


def _left_out(count: int, most: int, noun: str) -> str:
    if count <= most:
        return ""
    return f"... and {plural(count - most, f'more {noun}')}; the JSON result has everything."
