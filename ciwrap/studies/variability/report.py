"""What `ciwrap variability` shows: slices of maps, how good they are, what drives them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.base.late import numpy as np
from ciwrap.model.results import command_words, grouped_plural
from ciwrap.report.drawing import (
    NARROW,
    VALUE_PALETTE,
    WIDTH,
    Frame,
    axes,
    chart,
    css_colour,
    curve,
    data_uri,
    dot,
    element,
    join,
    line,
    number,
    palette_png,
    power_label,
    rect,
    text,
    value_lines,
)
from ciwrap.report.page import environment_rows, page_head, render_page
from ciwrap.report.text import (
    capital,
    percent_text,
    plural,
    safe_name,
    safe_text,
    seconds_text,
    short_number,
)
from ciwrap.studies.variability.predictors import GAUSSIAN_PROCESS
from ciwrap.studies.variability.runs import Axis

if TYPE_CHECKING:
    from ciwrap.studies.variability.quality import (
        Candidate,
        Curve,
        Influence,
        MapPoint,
        MapSummary,
        Prediction,
        Repeats,
        Score,
        Slice,
        VariabilityDocument,
    )

_RARE = 0.01
_MUCH_LEFT = 0.5


def category_words(category: Mapping[str, str]) -> str:
    """`scheduler=CFQ test=fread`; '' without categories."""
    return " ".join(
        f"{safe_name(name, 60)}={safe_name(text, 60)}" for name, text in category.items()
    )


def configuration_words(configuration: Mapping[str, float], category: Mapping[str, str]) -> str:
    """`threads=4 size=1024`."""
    numbers = " ".join(
        f"{safe_name(name, 60)}={number_words(value)}" for name, value in configuration.items()
    )
    words = category_words(category)
    return f"{words} {numbers}" if words else numbers


def number_words(value: float) -> str:
    """As it would be typed: `4`, `1048576`, `2.75`."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def error_words(error: float) -> str:
    """`5.6 %`, `340 %`."""
    return f"{short_number(float(f'{100 * error:.2g}'))} %"


def headline(document: VariabilityDocument) -> str:
    """The first sentence."""
    if document.did == "fit":
        return _fit_headline(document)
    if document.did == "predict":
        return prediction_words(document.predictions[0])
    if document.repeats:
        return repeats_words(document.repeats[0])
    if not document.candidates:
        return "there is no configuration to measure next"
    first = document.candidates[0]
    where = configuration_words(first.configuration, first.category)
    return f"measure {where} next: there the map knows sigma least"


def _fit_headline(document: VariabilityDocument) -> str:
    """What drives the variability, and how well it can be predicted."""
    maps, value = document.maps, safe_name(document.value, 60)
    total = grouped_plural(sum(one.configurations for one in maps), "configuration")
    rests_on = f"from {total} and {grouped_plural(sum(one.runs for one in maps), 'run')}"
    errors = [one.error for one in maps]
    if len(maps) > 1:
        best, worst = error_words(min(errors)), error_words(max(errors))
        return (
            f"{len(maps)} maps predict the variability of {value} to within {best} to {worst} in"
            f" the mean, {rests_on}"
        )
    terms = () if maps[0].influences is None else maps[0].influences.terms
    sure = [term for term in terms if term.p < _RARE]
    error = f"predicted to within {error_words(errors[0])} in the mean, {rests_on}"
    if not sure:
        return f"the variability of {value} is {error}"
    names = " with ".join(safe_name(name, 60) for name in sure[0].parameters)
    return f"the variability of {value} depends most on {names}; it is {error}"


def next_steps(document: VariabilityDocument) -> tuple[tuple[str, str], ...]:
    """The commands that look further, as (what for, the command)."""
    if document.did == "fit":
        map_file = safe_name(document.map_file or "MAP", 300)
        return (("what to measure next", command_words("ciwrap variability plan", [map_file])),)
    if document.candidates:
        words = "with the new runs in the table, a better map"
        return ((words, "ciwrap variability fit TABLE"),)
    if document.repeats and document.repeats[0].more_for_sigma:
        return (
            ("run it so often", f"ciwrap time COMMAND --pairs {document.repeats[0].for_sigma}"),
        )
    return ()


def fit_words(one: MapSummary) -> list[str]:
    """What a map is worth."""
    optimistic = ", probably optimistic with so few configurations" if one.few else ""
    unseen = "in the mean for configurations it has not seen"
    # The floor is estimated from the runs of each configuration, the error from those of others:
    # either may be the smaller one.
    floor = "sigma itself is uncertain: by estimate, a perfect map would be off by"
    floor += f" {error_words(one.floor)}"
    if one.floor >= one.error:
        floor += ", so this one cannot be distinguished from it"
    found = [f"{one.predictor}: off by {error_words(one.error)} {unseen}{optimistic}", floor]
    if one.factor is not None:
        found.append(
            f"90 % of unseen configurations lie within a factor of {one.factor:.2f} of what it says"
        )
    return found


def influence_words(one: MapSummary) -> list[str]:
    """Which parameters drive the variability, the strongest first."""
    found = one.influences
    if found is None:
        return ["too few configurations to tell which parameters drive the variability"]
    sure = [term for term in found.terms if term.p < _RARE]
    lines = [_influence_words(term) for term in sure]
    if not sure:
        lines.append("no parameter is seen to drive the variability")
    if found.left > _MUCH_LEFT:
        lines.append(
            f"{percent_text(found.left)} of the variance of log sigma is explained by none of these"
        )
    if found.grouped:
        names = ", ".join(safe_name(name, 60) for name in found.grouped)
        lines.append(
            f"neighbouring levels of {names} count as one here, since too few configurations were"
            " measured to tell all of them apart"
        )
    if not found.with_pairs:
        lines.append("there are too few configurations to look for interactions")
    return lines


def _influence_words(term: Influence) -> str:
    names = [safe_name(name, 60) for name in term.parameters]
    share = percent_text(term.share)
    change = f"{short_number(term.factor)}-fold"
    if len(names) == 1:
        return f"{names[0]}: {share} of the variance; sigma changes {change}"
    return f"{names[0]} with {names[1]}: {share}; beyond each alone, {change}"


def score_rows(one: MapSummary) -> list[tuple[str, str, str]]:
    """Predictor, error, and a remark, for a table."""
    rows = []
    for score in one.scores:
        if score.error is None or score.deviation is None:
            rows.append((score.predictor, "-", safe_name(score.reason or "", 200)))
            continue
        remark = _why_chosen(one) if score.predictor == one.predictor else ""
        error = f"{error_words(score.error)} \u00b1 {error_words(score.deviation)}"
        rows.append((score.predictor, error, remark))
    floor = "by estimate, what a perfect map would have"
    return [*rows, ("noise floor", error_words(one.floor), floor)]


def _why_chosen(one: MapSummary) -> str:
    """`chosen`, and why where another predictor has a smaller error (`_choice` in `quality`)."""
    best = min((score for score in one.scores if score.error is not None), key=_error_of)
    if best.predictor == one.predictor:
        return "chosen"
    mine = next(score for score in one.scores if score.predictor == one.predictor)
    is_near = _error_of(mine) <= _error_of(best) + (best.deviation or 0.0)
    if one.predictor == GAUSSIAN_PROCESS and is_near:
        return f"chosen: smooth, and within one standard error of {best.predictor}"
    return "asked for"


def _error_of(score: Score) -> float:
    return math.inf if score.error is None else score.error


def prediction_words(one: Prediction) -> str:
    """The first sentence about a configuration."""
    where = configuration_words(one.configuration, one.category)
    text = f"sigma of {where} is probably {short_number(one.sigma)}"
    if one.lower is not None and one.upper is not None:
        text += (
            f", between {short_number(one.lower)} and {short_number(one.upper)} with"
            f" {100 * one.confidence:g} % confidence"
        )
    return text


def prediction_notes(one: Prediction) -> list[str]:
    found = []
    if one.extrapolated:
        found.append(
            "extrapolated: it lies beyond what was measured, where neither the prediction nor its"
            " interval is to be trusted"
        )
    if one.lower is None:
        found.append(
            f"there are too few configurations for an interval with {100 * one.confidence:g} %"
            " confidence"
        )
    if one.measured_sigma is not None and one.measured_runs is not None:
        found.append(
            f"it was measured: sigma {short_number(one.measured_sigma)} from"
            f" {plural(one.measured_runs, 'run')}"
        )
    if one.mean is not None:
        found.append(
            f"that is {percent_text(one.sigma / one.mean)} of the mean, probably"
            f" {short_number(one.mean)}"
        )
    optimistic = " (probably optimistic: few configurations)" if one.few else ""
    found.append(
        f"{one.predictor}, off by {error_words(one.error)} in the mean for configurations it has"
        f" not seen{optimistic}"
    )
    return found


def repeats_words(one: Repeats) -> str:
    """The first sentence about a configuration's repeats."""
    where = configuration_words(one.configuration, one.category)
    return (
        f"sigma of {where} takes {plural(one.for_sigma, 'run')} to within"
        f" {100 * one.error:g} % with {100 * one.confidence:g} % confidence"
    )


def repeats_notes(one: Repeats) -> list[str]:
    """What it rests on, what it costs, and what the mean takes."""
    if one.is_measured:
        words = f"its runs so far give {short_number(one.sigma)}, to within"
        words = f"{words} {percent_text(one.half_width or 0.0)}"
    else:
        beyond = ", extrapolated beyond what was measured" if one.extrapolated else ""
        words = f"the map predicts {short_number(one.sigma)}{beyond}"
    found = [words + _still(one, one.more_for_sigma, one.seconds_for_sigma)]
    if one.for_mean is not None:
        wanted = f"the mean takes {plural(one.for_mean, 'run')} to within {100 * one.error:g} %"
        found.append(wanted + _still(one, one.more_for_mean or 0, one.seconds_for_mean))
    found.append(
        f"what 40 runs tell of sigma beyond 10, {one.curve.at_75} runs tell by three quarters, and"
        f" {one.curve.at_90} by nine tenths"
    )
    # What shape the runs have is not to be told from one number.
    found.append(
        f"the kurtosis of the runs is {one.kurtosis:.2g} (evenly spread noise has 1.8, normal noise"
        " 3; far outliers make it larger)"
    )
    return found


def _still(one: Repeats, more: int, seconds: float | None) -> str:
    """`: 12 more`, `: 12 more, 3.1 s in all`, `: that is enough`."""
    if one.is_measured and not more:
        return ", which its runs reach"
    cost = "" if seconds is None else f"; {_cost(seconds)}"
    return f", {plural(more, 'run')} more{cost}" if one.is_measured else cost


def _cost(seconds: float | None) -> str:
    return f"{seconds_text(seconds or 0.0)} in all"


def candidate_words(one: Candidate) -> str:
    text = (
        f"{configuration_words(one.configuration, one.category)}: sigma probably"
        f" {short_number(one.sigma)}, known within a factor of {one.uncertainty:.2f};"
        f" {plural(one.repeats, 'run')}"
    )
    return text if one.seconds is None else f"{text}, {_cost(one.seconds)}"


_MOST_DOTS = 1500
_LEVELS = 254
_LABEL_ROOM = 26.0
_ROW = 24.0


def sigma_range(one: MapSummary) -> tuple[float, float]:
    """Logarithms of the smallest and the largest sigma of all slices, which share their colours."""
    values = [sigma for each in one.slices for row in each.sigma for sigma in row]
    low, high = math.log(min(values)), math.log(max(values))
    return (low, high) if high > low else (low, low + 1e-9)


def slice_chart(one: Slice, summary: MapSummary) -> Markup:
    """The map over two parameters; dots have the colour of what was measured there."""
    low, high = sigma_range(summary)
    rows, columns = len(one.sigma), len(one.x_values)
    cells = bytes(_colour(sigma, low, high) for row in reversed(one.sigma) for sigma in row)
    frame = Frame(left=58, right=NARROW - 10, top=8, bottom=230 if one.y else 60)
    width, height = frame.right - frame.left, frame.bottom - frame.top
    x_levels = _levels(one.x, summary, 1.4 * _LABEL_ROOM / width)
    y_levels = _levels(one.y, summary, 16.0 / height) if one.y else []
    parts = [
        *_framed_image(cells, rows, columns, frame.left, frame.top, width, height),
        *_dots(one, summary, frame),
        *(text(frame.x(at), frame.bottom + 17, words) for at, words in x_levels),
        *(text(frame.left - 8, frame.y(at) + 4, words, "end") for at, words in y_levels),
        axes(frame, one.x, one.y),
    ]
    label = f"Sigma over {one.x}" + (f" and {one.y}" if one.y else "")
    return chart(label, join(parts), width=NARROW, height=frame.bottom + 42)


def _colour(sigma: float, low: float, high: float) -> int:
    """Its place in the palette; what lies beyond the slices has the colour of their ends."""
    return round(_LEVELS * min(max((math.log(sigma) - low) / (high - low), 0.0), 1.0))


def _place(name: str, summary: MapSummary, value: float) -> float:
    """Of a value of a parameter, between 0 and 1."""
    one = next(each for each in summary.parameters if each.name == name)
    return float(Axis(one.name, one.low, one.high, one.is_log).unit(np.array(value)))


def _levels(name: str, summary: MapSummary, room: float) -> list[tuple[float, str]]:
    """The levels of a parameter as far as there is room: the place of each, and its words."""
    column = next(n for n, one in enumerate(summary.parameters) if one.name == name)
    found: list[tuple[float, str]] = []
    for level in sorted({point.values[column] for point in summary.points}):
        place = _place(name, summary, level)
        if not found or place - found[-1][0] >= room:
            found.append((place, tick_words(level)))
    return found


def _framed_image(
    cells: bytes, rows: int, columns: int, x: float, y: float, width: float, height: float
) -> list[Markup]:
    shape = {"x": x, "y": y, "width": width, "height": height}
    href = data_uri(palette_png(cells, rows, columns, VALUE_PALETTE))
    return [
        element("image", href=href, **shape, preserveAspectRatio="none"),
        element("rect", **shape, class_="fr"),
    ]


def tick_words(value: float) -> str:
    """A level in few characters: `4096`, `1e6`."""
    words = number_words(value)
    return words if len(words) <= 5 else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


def _dots(one: Slice, summary: MapSummary, frame: Frame) -> list[Markup]:
    names = [each.name for each in summary.parameters]
    low, high = sigma_range(summary)
    found = []
    for point in summary.points:
        values = dict(zip(names, point.values, strict=True))
        if any(values[name] != value for name, value in one.held.items()):
            continue
        x = frame.x(_place(one.x, summary, values[one.x]))
        y = frame.y(_place(one.y, summary, values[one.y]) if one.y else 0.5)
        said = element("title", f"{_where(point, names)}: sigma {short_number(point.sigma)}")
        colour = css_colour(VALUE_PALETTE[_colour(point.sigma, low, high)])
        found.append(element("circle", said, cx=x, cy=y, r=4.2, fill=colour, class_="vr"))
    return found[:_MOST_DOTS]


def _where(point: MapPoint, names: Sequence[str]) -> str:
    return configuration_words(dict(zip(names, point.values, strict=True)), {})


def colour_bar(summary: MapSummary) -> Markup:
    """What the colours of the slices mean."""
    low, high = sigma_range(summary)
    cells = bytes(range(_LEVELS + 1))
    parts = _framed_image(cells, 1, len(cells), 20, 2, 420, 14)
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        words = short_number(math.exp(low + (high - low) * part))
        anchor = "start" if part == 0 else "end" if part == 1 else "middle"
        parts.append(text(20 + 420 * part, 32, words, anchor))
    return chart("Sigma by colour", join(parts), width=460, height=38)


def scatter_chart(one: MapSummary) -> Markup:
    """Predicted against measured sigma; the band holds 90 %."""
    logs = [math.log10(value) for point in one.points for value in (point.sigma, point.predicted)]
    low, high = min(logs), max(logs)
    room = max((high - low) * 0.04, 0.02)
    low, high = low - room, high + room
    frame = Frame(left=58, right=WIDTH - 10, top=8, bottom=330)

    def part(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    parts = [
        grid for value in _round_values(low, high) for grid in _grid_at(value, part(value), frame)
    ]
    if one.factor is not None:
        parts.append(_band(math.log10(one.factor) / (high - low), frame))
    parts.append(line(frame.left, frame.bottom, frame.right, frame.top, "lt"))
    names = [each.name for each in one.parameters]
    for point in one.points[:_MOST_DOTS]:
        said = (
            f"{_where(point, names)}: measured {short_number(point.sigma)},"
            f" predicted {short_number(point.predicted)}"
        )
        x, y = frame.x(part(point.sigma)), frame.y(part(point.predicted))
        parts.append(dot(x, y, 2.6, said, "cm"))
    parts.append(line(frame.left, frame.top, frame.left, frame.bottom, "ax"))
    parts.append(axes(frame, "measured sigma", "predicted sigma"))
    return chart("Predicted against measured sigma", join(parts), height=372)


def _round_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten between two logarithms; powers alone where these are many;
    the ends where nothing round lies between them.
    """
    digits = (1, 2, 5) if high - low < 1.7 else (1,)
    exponents = range(math.floor(low), math.ceil(high) + 1)
    values = [digit * 10.0**exponent for exponent in exponents for digit in digits]
    found = [value for value in values if low <= math.log10(value) <= high]
    return found or [10**low, 10**high]


def _grid_at(value: float, place: float, frame: Frame) -> tuple[Markup, ...]:
    exponent = math.log10(value)
    words = power_label(round(exponent)) if exponent.is_integer() else short_number(value)
    return (
        line(frame.left, frame.y(place), frame.right, frame.y(place), "gr"),
        line(frame.x(place), frame.top, frame.x(place), frame.bottom, "gr"),
        text(frame.left - 5, frame.y(place) + 4, words, "end"),
        text(frame.x(place), frame.bottom + 15, words),
    )


def _band(width: float, frame: Frame) -> Markup:
    """Between the diagonal shifted up and down by `width`, within the frame."""
    width = min(width, 1.0)
    corners = ((0, 0), (0, width), (1 - width, 1), (1, 1), (1, 1 - width), (width, 0))
    path = "L".join(f"{number(frame.x(x))} {number(frame.y(y))}" for x, y in corners)
    return element("path", d=f"M{path}z", class_="mg")


def score_chart(one: MapSummary) -> Markup:
    """The error of each predictor with its standard error; dashed the noise floor."""
    scores = [
        (score.predictor, score.error, score.deviation or 0.0)
        for score in one.scores
        if score.error is not None
    ]
    values = [one.floor, *(error + deviation for _, error, deviation in scores)]
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.12
    frame = Frame(left=126, right=WIDTH - 14, top=14, bottom=18 + _ROW * len(scores))

    def x_of(error: float) -> float:
        return frame.x((math.log10(max(error, 10**low)) - low) / (high - low))

    parts = [*_error_ticks(low, high, frame)]
    floor = x_of(one.floor)
    parts.append(line(floor, frame.top - 6, floor, frame.bottom, "bd"))
    for row, (name, error, deviation) in enumerate(scores):
        y = frame.top + _ROW * (row + 0.5)
        is_chosen = name == one.predictor
        parts.append(text(frame.left - 8, y + 4, name, "end", "lb" if is_chosen else "tk"))
        parts.append(line(x_of(error - deviation), y, x_of(error + deviation), y, "iv"))
        radius, hue = (5.0, "mo") if is_chosen else (4.0, "mi")
        parts.append(dot(x_of(error), y, radius, f"{name}: {100 * error:.3g} %", hue))
    parts.append(axes(frame, "mean error on unseen configurations", ""))
    label = "Errors of all predictors"
    return chart(label, join(parts), height=frame.bottom + 42)


def _error_ticks(low: float, high: float, frame: Frame) -> list[Markup]:
    found = []
    for value in _round_values(low, high):
        x = frame.x((math.log10(value) - low) / (high - low))
        found.append(line(x, frame.top, x, frame.bottom, "gr"))
        found.append(text(x, frame.bottom + 15, f"{100 * value:.4g} %"))
    return found


def influence_chart(terms: Sequence[Influence], left: float) -> Markup:
    """The share of each term as a bar, the largest first, and what none of them explains."""
    rows = [(" with ".join(term.parameters), term.share, "bi") for term in terms]
    rows.append(("unexplained", left, "b0"))
    frame = Frame(left=180, right=WIDTH - 56, top=4, bottom=8 + _ROW * len(rows))
    most = max(max(share for _, share, _ in rows), 1e-9)
    parts = []
    for row, (name, share, hue) in enumerate(rows):
        y = frame.top + _ROW * row + 3
        width = (frame.right - frame.left) * share / most
        parts.append(text(frame.left - 8, y + 13, safe_name(name, 27), "end"))
        parts.append(rect(frame.left, y, width, _ROW - 7, hue, rx=2))
        parts.append(text(frame.left + width + 5, y + 13, percent_text(share), "start"))
    parts.append(line(frame.left, frame.top, frame.left, frame.bottom, "ax"))
    label = "Share of the variance of log sigma"
    return chart(label, join(parts), height=frame.bottom + 6)


def curve_chart(found: Curve) -> Markup:
    """Half the width of sigma's interval by runs, with the two points of MOANA's figure 9."""
    frame = Frame(left=62)
    most = max(found.half_widths) * 1.05
    first, last = found.runs[0], found.runs[-1]

    def x_of(runs: float) -> float:
        return frame.x((runs - first) / (last - first))

    parts = value_lines(frame, most, lambda tick: f"{100 * tick:g} %")
    parts += [text(x_of(runs), frame.bottom + 15, runs) for runs in range(first, last + 1, 5)]
    heights = (frame.y(width / most) for width in found.half_widths)
    parts.append(curve(zip(map(x_of, found.runs), heights, strict=True), "lg"))
    for share, runs in ((75, found.at_75), (90, found.at_90)):
        y = frame.y(found.half_widths[runs - first] / most)
        parts.append(line(x_of(runs), y, x_of(runs), frame.bottom, "hz"))
        parts.append(dot(x_of(runs), y, 4.5, f"{share} % of the way after {runs} runs", "mo"))
        parts.append(text(x_of(runs), y - 10, f"{share} %"))
    parts.append(axes(frame, "runs", "half-width over sigma"))
    return chart("The interval of sigma by the number of runs", join(parts))


MOST_MAPS = 20
_MOST_TERMS = 10


def render_variability_html(document: VariabilityDocument) -> str:
    """The page of what `fit` or `plan` found, self-contained as that of a comparison is."""
    repeats = document.repeats[0] if document.repeats else None
    title, *more = headline(document).split("; ")
    page = SimpleNamespace(
        title=capital(title),
        lead=(*(f"{capital(text)}." for text in more), *_lead(document)),
        hue="vary",
        commands=next_steps(document),
        counts=tuple(_counts(document)),
        maps=tuple(_card(one) for one in document.maps[:MOST_MAPS]),
        maps_left_out=max(0, len(document.maps) - MOST_MAPS),
        curve=None if repeats is None else curve_chart(repeats.curve),
        candidates=tuple(candidate_words(one) for one in document.candidates),
        environment=environment_rows(document.environment),
    )
    head = page_head(
        f"variability {document.did}",
        document.started_at,
        document.ciwrap_version,
        document.environment,
    )
    return render_page("variability.html.j2", head, page)


def _lead(document: VariabilityDocument) -> Iterator[str]:
    if len(document.maps) == 1:
        yield from (f"{capital(text)}." for text in fit_words(document.maps[0]))
    for repeats in document.repeats:
        yield from (f"{capital(text)}." for text in repeats_notes(repeats))


def _counts(document: VariabilityDocument) -> Iterator[tuple[str, str]]:
    """Number and what is counted."""
    if document.maps:
        yield _counted(sum(one.configurations for one in document.maps), "configuration")
        yield _counted(sum(one.runs for one in document.maps), "run")
        yield _counted(len(document.maps[0].parameters), "parameter")
    if len(document.maps) > 1:
        yield _counted(len(document.maps), "map")


def _counted(count: int, noun: str) -> tuple[str, str]:
    number, _, words = grouped_plural(count, noun).partition(" ")
    return number, words


def _card(one: MapSummary) -> SimpleNamespace:
    terms = () if one.influences is None else one.influences.terms[:_MOST_TERMS]
    return SimpleNamespace(
        name=category_words(one.category),
        say=tuple(f"{capital(text)}." for text in fit_words(one)),
        slices=tuple(
            SimpleNamespace(
                caption=configuration_words(each.held, {}) if each.held else "all of it",
                chart=slice_chart(each, one),
            )
            for each in one.slices
        ),
        colours=colour_bar(one),
        scatter=scatter_chart(one),
        band="" if one.factor is None else f"a factor of {one.factor:.2f}, which holds 90 %",
        scores=score_chart(one),
        rows=tuple(score_rows(one)),
        influences=(
            None if one.influences is None else influence_chart(terms, one.influences.left)
        ),
        influence_words=tuple(f"{text}." for text in influence_words(one)),
        notes=tuple(f"{capital(safe_name(note, 1000))}." for note in one.notes),
    )


def lines_of(document: VariabilityDocument) -> Iterator[str]:
    """All of it. Names from files are made harmless."""
    yield headline(document)
    for one in document.maps:
        yield from _map_lines(one)
    for prediction in document.predictions:
        yield from (f"  {line}" for line in prediction_notes(prediction))
    for repeats in document.repeats:
        yield from (f"  {line}" for line in repeats_notes(repeats))
    for rank, candidate in enumerate(document.candidates, 1):
        yield f"  {rank}. {candidate_words(candidate)}"
    if document.map_file is not None:
        yield ""
        yield f"wrote {safe_text(document.map_file)}"


def _map_lines(one: MapSummary) -> Iterator[str]:
    words = category_words(one.category)
    yield ""
    if words:
        yield words
    yield from (f"  {line}" for line in fit_words(one))
    yield ""
    rows = score_rows(one)
    width = max(len(row[0]) for row in rows)
    middle = max(len(row[1]) for row in rows)
    yield f"  {'error on unseen configurations':<{width}}"
    for name, error, remark in rows:
        yield f"    {name:<{width}}  {error:>{middle}}  {remark}".rstrip()
    yield ""
    yield "  what drives it"
    yield from (f"    {line}" for line in influence_words(one))
    yield from (f"  note: {safe_text(note)}" for note in one.notes)
