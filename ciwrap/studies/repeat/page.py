"""What repeated runs came to: page, terminal and job summary, and most words of all three."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

from markupsafe import Markup

from ciwrap.model import Message, MessageLevel
from ciwrap.model.repeat_result import (
    Behaviour,
    BoundFit,
    BoundSuggestion,
    CostEffect,
    FactorFinding,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
    RunCost,
)
from ciwrap.report.console import Console, Text
from ciwrap.report.document import write_text
from ciwrap.report.markdown import escaped
from ciwrap.report.page import environment_rows, page_head, render_page, tail_text
from ciwrap.report.terminal import render_message
from ciwrap.report.text import (
    bytes_text,
    capital,
    percent_text,
    plural,
    portable,
    safe_name,
    safe_text,
    seconds_text,
    short_number,
    size_text,
    time_text,
)
from ciwrap.report.words import relative_text
from ciwrap.statistics.factors import LEVEL
from ciwrap.studies.repeat.bounds import bound_reason, bound_text
from ciwrap.studies.repeat.charts import (
    MOST_FACTOR_ROWS,
    class_map,
    factor_map,
    run_dots,
    spread_curve,
    time_dots,
)
from ciwrap.studies.repeat.charts import MOST_RUNS as MOST_MAP_RUNS
from ciwrap.studies.repeat.costs import COST_WORDS
from ciwrap.studies.repeat.result import reach_words

_LEAST_DIGITS = 0.05
_FIT_WORDS = {
    BoundFit.FITS: "fits",
    BoundFit.TOO_TIGHT: "is too tight",
    BoundFit.TOO_WIDE: "is too wide",
}


def variable_words(one: RepeatedVariable) -> list[str]:
    """What is said of a variable, in clauses; its name is not among them."""
    if one.kind is Behaviour.NOT_COMPARABLE:
        return [f"not comparable: {one.reason}"]
    if one.kind is Behaviour.EQUAL:
        return ["equal in all runs"]
    words = [_results_words(one)]
    if one.first_iteration is not None:
        words[0] += f" from iteration {one.first_iteration} on"
    if one.max_abs is not None:
        run = "" if one.max_abs_run is None else f" (run {one.max_abs_run})"
        words.append(f"{reach_words('up to', one.max_abs)} apart{run}")
    if relative := relative_text(one.max_rel, one.max_abs):
        words.append(f"relative {relative}")
    if one.varying_share is not None:
        words.append(f"in {percent_text(one.varying_share)} of the values")
    if one.common_digits is not None:
        words.append(_digits_words(one.common_digits))
    return words + _growth_of(one)


def _digits_words(digits: float) -> str:
    if digits < _LEAST_DIGITS:
        return "with no digit in common"
    return f"95 % of the values agree to {digits:.1f} digits or more"


def order_words(result: RepeatResult) -> str:
    """Of which order the runs were; nothing of runs that were there already."""
    if all(run.seconds is None for run in result.runs):
        return ""
    return f"The order of the runs was drawn with the seed {result.seed}."


def _results_words(one: RepeatedVariable) -> str:
    """How many results the runs have: a single one where all differ from the golden alike."""
    if one.distinct_results != 1:
        return f"{one.distinct_results} different results"
    if one.max_abs:
        return "one result in all runs, which is not the golden's"
    return "one result in all runs" + ("" if one.breaks_bound else ", within the golden's bound")


def _growth_of(one: RepeatedVariable) -> list[str]:
    if one.growth_rate is None:
        return []
    words = [f"doubles every {short_number(math.log(2) / one.growth_rate)} iterations"]
    reached = [
        f"{what} at iteration {iteration:.0f}"
        for what, iteration in (
            ("the bound", one.horizon),
            ("a tenth of the spread", one.spread_horizon),
        )
        if iteration is not None
    ]
    return [*words, f"typical differences reach {' and '.join(reached)}"] if reached else words


def present_words(one: RepeatedVariable) -> str | None:
    """What the configured bound is to what was seen; None if there is nothing to say."""
    if one.present_bound is None or (one.present_fit is None and not one.breaks_bound):
        return None
    if one.present_bound.is_exact:
        return "no bound is configured, so any difference fails"
    if one.present_fit is None:
        return f"the present bound {one.present_bound} does not hold, or may not"
    share, where = one.present_share, ""
    if one.early_share is not None and not one.is_compared_to_the_end:
        share, where = one.early_share, f" up to iteration {one.compare_until}"
    said = "" if share is None else f" ({_used_words(share)})"
    word = _FIT_WORDS[one.present_fit]
    if one.present_fit is BoundFit.TOO_TIGHT and share is not None and share <= 1:
        word = "leaves too little room"
        if one.suggested_bound is not None:
            factor = one.suggested_bound.factor
            said = f" ({_used_words(share)}, and {factor} times as much should have room)"
    if where and (one.present_share or 0.0) > 1:
        said += f"{_beyond_words(one.present_fit, share)} ({_used_words(one.present_share or 0.0)})"
    return f"the present bound {one.present_bound} {word}{where}{said}"


def _beyond_words(fit: BoundFit, share: float | None) -> str:
    """What a bound is after the iteration up to which it is judged, where differences pass it."""
    if fit is BoundFit.FITS:
        return ", and does not beyond"
    if fit is BoundFit.TOO_TIGHT and (share or 0.0) > 1:
        return ", and beyond"
    return ", and is too tight beyond"


def _used_words(share: float) -> str:
    if share <= 1:
        return f"{percent_text(share)} used"
    return f"differences reach {short_number(share)} times it"


def suggestion_words(bound: BoundSuggestion) -> str:
    """`atol: 2e-6 would hold (3 x largest of 9 differences, 14 times the typical noise)`."""
    more = ""
    if bound.noise_multiple is not None:
        more += f", {short_number(bound.noise_multiple)} times the typical noise"
    if bound.until_iteration is not None:
        more += f", up to iteration {bound.until_iteration}"
    return f"{bound_text(bound)} would hold ({bound_reason(bound)}{more})"


def has_several_checks(found: Iterable[FactorFinding | RepeatedVariable]) -> bool:
    """Whether these are of several checks, so that a name alone does not tell which variable it is
    of.
    """
    return len({one.check for one in found}) > 1


def factor_words(one: FactorFinding, *, has_checks: bool = False) -> str:
    """What a factor does to a variable. has_checks: as `has_several_checks` says."""
    name = safe_name(one.variable, 40)
    if has_checks:
        name = f"{safe_name(one.check, 40)}: {name}"
    if one.changes is not None:
        share = f"{one.differing} of {plural(one.pairs, 'pair')} of runs differ"
        size = f", {reach_words('up to', one.max_abs)} apart" if one.max_abs else ""
        if one.changes:
            return f"changes {name}: {share}{size}"
        return f"does not change {name}" + (f": {share}" if one.pairs else "")
    if one.p is None or one.effect is None:
        return f"{name}: not known, since no runs that were compared can tell"
    levels = (
        f"of runs with equal settings, {_level_words('off', one.off_pairs, one.off_differing)},"
        f" {_level_words('on', one.on_pairs, one.on_differing)}"
    )
    p = f"p = {short_number(one.p)}"
    if one.acts:
        word = "larger" if one.effect > 0 else "smaller"
        return f"acts on {name}: the differences are {word} with it on ({p}); {levels}"
    if not one.power:
        return f"{name}: so few runs cannot show an effect, make more ({p}); {levels}"
    power = f"so many runs find a five-fold spread in {100 * one.power:.0f} % of cases"
    return f"no effect on {name} found ({p}; {power}); {levels}"


def _level_words(level: str, pairs: int, differing: int) -> str:
    """`off: 0 of 10 pairs differ`."""
    return f"{level}: {differing} of {plural(pairs, 'pair')} differ"


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


_WORST_FIRST = (
    Behaviour.NOT_COMPARABLE,
    Behaviour.UNRELATED,
    Behaviour.GROWING,
    Behaviour.NOISE,
)


def write_repeat_report(path: str, result: RepeatResult) -> None:
    """Writes the page of repeated runs, atomically; `-` is stdout. Raises WriteFailedError."""
    write_text(render_repeat_html(result), path, "the report")


def _commands(result: RepeatResult) -> tuple[tuple[str, str], ...]:
    """What to do with what was found."""
    is_suggested = any(one.suggested_bound is not None for one in result.variables)
    command = "ciwrap repeat --write-bounds"
    return (("write the suggested bounds", command),) if is_suggested else ()


def render_repeat_html(result: RepeatResult) -> str:
    """The page of a result, self-contained as that of a comparison is. Absolute paths are
    shortened.
    """
    result = portable(result)
    title, _, rest = result.headline.partition("; ")
    varying = [one for one in result.variables if one.kind is not Behaviour.EQUAL]
    varying.sort(key=lambda one: _WORST_FIRST.index(one.kind))
    shown = varying[:MOST_CARDS]
    factor_rows = len({(one.check, one.variable) for one in result.factors})
    timed = [run for run in result.runs if run.seconds is not None]
    page = SimpleNamespace(
        title=capital(safe_name(title, 500)),
        has_frame=any(one.acts for one in result.factors),
        has_factors=any(run.factors for run in result.runs),
        lead=f"{safe_name(rest, 1000)}." if rest else "",
        commands=_commands(result),
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
        costs=tuple(f"{capital(cost_words(one))}." for one in result.costs),
        cost_notes=tuple(f"{capital(one)}." for one in _cost_notes(result)),
        cost_effects=tuple(
            f"{safe_name(name, 80)} {words}." for name, words in cost_effects(result)
        ),
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
        by_run=run_dots(one, result.runs),
    )


def _worst_factors(result: RepeatResult) -> list[FactorFinding]:
    """All findings, those of variables that a factor changes first."""
    changed = {(one.check, one.variable) for one in result.factors if one.acts or one.differing}
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
    findings = [one for one in result.factors if one.acts]
    several = has_several_checks(result.factors)
    lines += [
        f"- {escaped(one.name)}: {escaped(factor_words(one, has_checks=several))}"
        for one in findings[:_MOST]
    ]
    rest = len(findings) - _MOST
    lines += [f"- ... and {rest} more"] if rest > 0 else []
    lines += [f"- {escaped(name)} {words}" for name, words in cost_effects(result)]
    lines += [f"- {one}" for one in _cost_notes(result)]
    return "\n".join(lines).rstrip() + "\n"


def _row(one: RepeatedVariable) -> str:
    size = "" if one.max_abs is None else size_text(one.max_abs)
    bound = "" if one.suggested_bound is None else f"`{bound_text(one.suggested_bound)}`"
    name = escaped(f"{one.check}: {one.name}", 80)
    return f"| {name} | {one.kind.words} | {size} | {bound} | {escaped(present_words(one) or '')} |"


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
    _render_costs(result, console, verbose=verbose)
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


def cost_text(name: str, value: float) -> str:
    """A cost with its unit."""
    if name.endswith("seconds"):
        return time_text(value)
    if name != "peak_bytes":
        return f"{value:,.0f}"
    return bytes_text(int(value)) if value else "no more than ciwrap's own"


def cost_words(one: RunCost) -> str:
    """`time: 0.3 s in the median, 0.26 s to 0.69 s`."""
    median, least, most = (cost_text(one.name, x) for x in (one.median, one.smallest, one.largest))
    return f"{COST_WORDS[one.name]}: {median} in the median, {least} to {most}"


def _cost_notes(result: RepeatResult) -> list[str]:
    return [one for one in (result.cost_note, result.hour_note) if one is not None]


def cost_effects(result: RepeatResult) -> list[tuple[str, str]]:
    """Each factor that acts on a cost, and how."""
    return [
        (one.name, _effect_words(cost.name, one))
        for cost in result.costs
        for one in cost.factors
        if one.p <= LEVEL
    ]


def _effect_words(cost: str, one: CostEffect) -> str:
    off, on = cost_text(cost, one.off), cost_text(cost, one.on)
    p = short_number(one.p)
    return f"acts on {COST_WORDS[cost]} (p = {p}): off {off}, on {on} in the median"


def _render_costs(result: RepeatResult, console: Console, *, verbose: bool) -> None:
    if not result.costs:
        return
    console.print(Text("what runs took", style="bold"))
    for cost in result.costs if verbose else result.costs[:1]:
        console.print(f"  {cost_words(cost)}")
    for note in _cost_notes(result):
        console.print(f"  {note}")
    for name, words in cost_effects(result):
        console.print(f"  {safe_name(name, 40)} {words}")


def _render_runs(result: RepeatResult, console: Console) -> None:
    if order := order_words(result):
        console.print(Text(order, style="dim"))
    for run in result.runs:
        states = " ".join(f"{name}={state}" for name, state in run.factors.items())
        seconds = "" if run.seconds is None else seconds_text(run.seconds)
        kept = "" if run.folder is None else f"in {safe_text(run.folder)}"
        words = [word for word in (states, seconds, kept) if word]
        console.print(Text(f"  run {run.number}: {', '.join(words)}", style="dim"))
