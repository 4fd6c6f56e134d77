"""The page of `ciwrap repeat`: what varies, by how much, why, and which bound would hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import MessageLevel
from ciwrap.model.repeat_result import Behaviour
from ciwrap.report.document import write_text
from ciwrap.report.page import environment_rows, page_head, render_page
from ciwrap.report.paths import portable
from ciwrap.report.repeat_charts import (
    MOST_FACTOR_ROWS,
    class_map,
    factor_map,
    spread_curve,
    time_dots,
)
from ciwrap.report.repeat_charts import MOST_RUNS as MOST_MAP_RUNS
from ciwrap.report.repeat_words import (
    factor_words,
    has_several_checks,
    order_words,
    present_words,
    suggestion_words,
    variable_words,
)
from ciwrap.report.sections import tail_text
from ciwrap.report.text import capital, safe_name, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import Message
    from ciwrap.model.repeat_result import (
        FactorFinding,
        RepeatedRun,
        RepeatedVariable,
        RepeatResult,
    )

MOST_CARDS = 40
MOST_ROWS = 200
MOST_RUNS = 1000
_MOST_MESSAGES = 30
_MOST_FACTORS = 400
_TAIL_CHARACTERS = 2000
# The colours of verdicts, which people know from the other pages.
KIND_CLASS = {
    Behaviour.EQUAL: "match",
    Behaviour.NOISE: "match",
    Behaviour.GROWING: "differ",
    Behaviour.UNRELATED: "differ",
    Behaviour.NOT_COMPARABLE: "not_comparable",
}


def write_repeat_report(path: str, result: RepeatResult) -> None:
    """Writes the page of repeated runs, atomically; `-` is stdout. Raises WriteFailedError."""
    write_text(render_repeat_html(result), path, "the report")


def render_repeat_html(result: RepeatResult) -> str:
    """The page of a result, self-contained as that of a comparison is. Absolute paths are
    shortened.
    """
    result = portable(result)
    title, _, rest = result.headline.partition("; ")
    varying = [one for one in result.variables if one.kind is not Behaviour.EQUAL]
    shown = varying[:MOST_CARDS]
    factor_rows = len({(one.check, one.variable) for one in result.factors})
    timed = [run for run in result.runs if run.seconds is not None]
    page = SimpleNamespace(
        title=capital(safe_name(title, 500)),
        lead=_code(f"{rest}.") if rest else Markup(""),
        hue=_hue(result),
        counts=tuple(_counts(result)),
        messages=tuple(map(_message, result.messages[:_MOST_MESSAGES])),
        more_messages=max(0, len(result.messages) - _MOST_MESSAGES),
        classes=_classes(result),
        classes_left_out=max(0, len(result.variables) - MOST_ROWS),
        map_runs_left_out=max(0, len(result.runs) - MOST_MAP_RUNS),
        cards=tuple(_card(one, result) for one in shown),
        cards_left_out=len(varying) - len(shown),
        factor_map=factor_map(_worst_factors(result)) if result.factors else None,
        factors=tuple(_factors(result)),
        factors_left_out=max(0, len(result.factors) - _MOST_FACTORS),
        factor_rows_left_out=max(0, factor_rows - MOST_FACTOR_ROWS),
        times=time_dots(timed) if len(timed) > 2 else None,
        runs=tuple(_run(run) for run in result.runs[:MOST_RUNS]),
        runs_left_out=max(0, len(result.runs) - MOST_RUNS),
        order=order_words(result),
        environment=environment_rows(result.environment),
    )
    head = page_head("repeat", result.started_at, result.ciwrap_version, result.environment)
    return render_page("repeat.html.j2", head, page)


def _message(message: Message) -> tuple[str, str, str]:
    """Level, class and text."""
    class_ = "not_comparable" if message.level is MessageLevel.ERROR else ""
    return message.level.value.capitalize(), class_, safe_name(message.text, 1000)


def _hue(result: RepeatResult) -> str:
    """The class that colours the head of the page. That something varies is no verdict."""
    if result.has_failed:
        return "not_comparable"
    if result.exit_code:
        return "differ"
    return "vary" if any(one.varies for one in result.variables) else "match"


def _code(sentence: str) -> Markup:
    """What stands between backticks, as code."""
    parts = safe_name(sentence, 1000).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def _counts(result: RepeatResult) -> Iterator[tuple[str, int, str]]:
    """Label, count and class of each."""
    failed = sum(run.problem is not None for run in result.runs)
    yield "runs" if len(result.runs) != 1 else "run", len(result.runs), ""
    if failed:
        yield "not compared", failed, "not_comparable"
    for kind in Behaviour:
        count = sum(one.kind is kind for one in result.variables)
        if count or kind is Behaviour.EQUAL:
            yield kind.words, count, KIND_CLASS[kind]


def _card(one: RepeatedVariable, result: RepeatResult) -> SimpleNamespace:
    several = has_several_checks(result.variables)
    points = [p for p in one.by_iteration if p.iteration is not None and p.max_abs is not None]
    has_curve = len(points) > 1 and any(p.max_abs for p in points)
    bound = one.suggested_bound
    return SimpleNamespace(
        name=safe_name(f"{one.check}: {one.name}" if several else one.name, 120),
        kind=one.kind.words,
        class_=KIND_CLASS[one.kind],
        say=f"{capital(', '.join(safe_name(word, 500) for word in variable_words(one)))}.",
        bound="" if bound is None else f"{suggestion_words(bound)}.",
        present=f"{capital(present_words(one) or '')}." if present_words(one) else "",
        curve=spread_curve(one) if has_curve else None,
    )


def _worst_factors(result: RepeatResult) -> list[FactorFinding]:
    """All findings, those of variables that a factor changes first."""
    changed = {(one.check, one.variable) for one in result.factors if one.changes or one.differing}
    return sorted(result.factors, key=lambda one: (one.check, one.variable) not in changed)


def _factors(result: RepeatResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    findings = _worst_factors(result)[:_MOST_FACTORS]
    several = has_several_checks(result.factors)
    for name in dict.fromkeys(one.name for one in findings):
        words = (factor_words(one, has_checks=several) for one in findings if one.name == name)
        yield safe_name(name, 80), tuple(words)


def _classes(result: RepeatResult) -> Markup | None:
    """The map of equal results, what varies first."""
    ordered = sorted(result.variables, key=lambda one: one.kind is Behaviour.EQUAL)[:MOST_ROWS]
    has_any = any(one.classes for one in ordered)
    return class_map(ordered, result.runs) if result.runs and has_any else None


def _run(run: RepeatedRun) -> SimpleNamespace:
    return SimpleNamespace(
        number=run.number,
        seed=run.seed,
        factors=", ".join(f"{safe_name(k, 40)} {safe_name(v, 40)}" for k, v in run.factors.items()),
        seconds="" if run.seconds is None else seconds_text(run.seconds),
        ending=safe_name(run.problem, 500) if run.problem else "compared",
        tail=tail_text(run.output_tail, _TAIL_CHARACTERS) if run.problem else "",
    )
