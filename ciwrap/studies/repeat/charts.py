"""Charts of repeated runs: which runs are equal, how differences develop, how long runs took."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence

from markupsafe import Markup

from ciwrap.model.repeat_result import FactorFinding, RepeatedRun, RepeatedVariable
from ciwrap.report.drawing import (
    WIDTH,
    Frame,
    axes,
    beside_line,
    chart,
    curve,
    decade_lines,
    dot,
    element,
    join,
    line,
    rect,
    some_of,
    text,
    value_lines,
)
from ciwrap.report.text import percent_text, plural, safe_name, seconds_text, short_number

_HUES = 6  # classes 1 to 6 have a colour of their own, later ones repeat them
MOST_RUNS = 60
MOST_FACTOR_ROWS = 40
_ROW = 22.0
# Of the maps: what they are at most without their names, how long a name may be, and how wide a
# letter is, about.
# Room for `10\u207b\u00b9\u00b2` beside the name of the axis.
_SIZE_LABELS = 64.0
_CELLS_WIDTH, _LONGEST, _LETTER = 640.0, 24, 7.4


def class_map(variables: Sequence[RepeatedVariable], runs: Sequence[RepeatedRun]) -> Markup:
    """Variables by runs. Runs with the same number in a row have equal values there."""
    runs = runs[:MOST_RUNS]
    names, left = _row_names([(one.check, one.name) for one in variables])
    cell = max(11.0, min(26.0, _CELLS_WIDTH / max(1, len(runs))))
    height = 30 + len(variables) * _ROW
    parts = [
        text(left + (j + 0.5) * cell, 16, run.number)
        for j, run in enumerate(runs)
        if len(runs) <= 30 or run.number % 5 == 0
    ]
    for i, (name, variable) in enumerate(zip(names, variables, strict=True)):
        y = 24 + i * _ROW
        parts.append(_row_name(left, y, name))
        for j, (run, which) in enumerate(zip(runs, variable.classes, strict=False)):
            parts.append(_class_cell(left + j * cell, y, cell, which, run.number))
    label = "Which runs have equal results, for each variable"
    width = left + len(runs) * cell + 4
    return chart(label, join(parts), width=width, height=height, is_fixed=True)


def _row_names(rows: Sequence[tuple[str, str]]) -> tuple[list[str], float]:
    """What the rows of a map are called, with the check where there are several, and the room
    these names take.
    """
    several = len({check for check, _ in rows}) > 1
    names = [safe_name(f"{check}: {name}" if several else name, 200) for check, name in rows]
    longest = max((_letters(safe_name(name, _LONGEST)) for name in names), default=0)
    return names, 14 + longest * _LETTER


def _letters(name: str) -> float:
    """How wide a name is; capitals are wider than other letters, those of East Asia twice."""
    wide = (2.0 if unicodedata.east_asian_width(one) in "WF" else 1.0 for one in name)
    return sum(wide) + 0.3 * sum(one.isupper() for one in name)


def _row_name(left: float, y: float, name: str) -> Markup:
    """The name before a row; the whole of it under the pointer where it is cut."""
    words = safe_name(name, _LONGEST)
    body = words if words == name else element("title", name) + words
    return element("text", body, x=left - 8, y=y + 15, text_anchor="end", class_="lb")


def _class_cell(x: float, y: float, width: float, which: int, run: int) -> Markup:
    said = f"run {run}: no result" if which == 0 else f"run {run}: result {which}"
    hue = "k0" if which == 0 else f"k{(which - 1) % _HUES + 1}"
    cell = rect(x, y, width - 1.5, _ROW - 1.5, hue, said, rx=2)
    words = "\u2013" if which == 0 else which
    label = text(x + (width - 1.5) / 2, y + 15, words, class_="kt") if width >= 15 else ""
    return cell + label


def factor_map(findings: Sequence[FactorFinding]) -> Markup:
    """Variables by factors: the share of pairs of runs that differ, where runs differ in that
    factor alone; in the first column, where they differ in none. A frame marks what a factor
    changes, or spreads.
    """
    names = list(dict.fromkeys(one.name for one in findings))
    rows = list(dict.fromkeys((one.check, one.variable) for one in findings))[:MOST_FACTOR_ROWS]
    found = {(one.check, one.variable, one.name): one for one in findings}
    heads = ["no change", *(safe_name(name, 16) for name in names)]
    said, left = _row_names(rows)
    # As wide as the widest head, so that none runs into the next.
    width = max(64.0, 10 + _LETTER * max(map(_letters, heads)))
    parts = [text(left + (j + 0.5) * width, 16, head) for j, head in enumerate(heads)]
    for i, (check, variable) in enumerate(rows):
        y = 24 + i * _ROW
        parts.append(_row_name(left, y, said[i]))
        first = found[check, variable, names[0]]
        cells = [(first.repeat_differing, first.repeat_pairs, False)]
        for name in names:
            one = found[check, variable, name]
            cells.append((one.differing, one.pairs, one.acts))
        for j, (differing, pairs, is_marked) in enumerate(cells):
            x = left + j * width
            parts.append(_factor_cell(x, y, width, differing, pairs, is_marked=is_marked))
    label = "Which factor changes which variable"
    height = 30 + len(rows) * _ROW
    total = left + len(heads) * width + 4
    return chart(label, join(parts), width=total, height=height, is_fixed=True)


def _factor_cell(
    x: float, y: float, width: float, differing: int, pairs: int, *, is_marked: bool
) -> Markup:
    share = differing / pairs if pairs else 0.0
    said = f"{differing} of {plural(pairs, 'pair')} of runs differ"
    shape = {"x": x, "y": y, "width": width - 1.5, "height": _ROW - 1.5, "rx": 2}
    filled = {"class_": "fa", "fill_opacity": 0.1 + 0.6 * share} if pairs else {"class_": "k0"}
    parts = [element("rect", element("title", said), **shape, **filled)]
    parts += [element("rect", **shape, class_="fm")] if is_marked else []
    words = percent_text(share) if pairs else "\u2013"
    parts.append(text(x + (width - 1.5) / 2, y + 15, words, class_="lb"))
    return join(parts)


def spread_curve(variable: RepeatedVariable) -> Markup:
    """The largest and the typical difference of each iteration, with the bounds drawn in."""
    frame = Frame(left=_SIZE_LABELS)
    points = [one for one in variable.by_iteration if one.iteration is not None]
    steps = [one.iteration for one in points if one.iteration is not None]
    first, last = steps[0], steps[-1]
    levels = sorted(_levels(variable), key=lambda level: -level[1])
    sizes = [one.max_abs for one in points] + [one.typical for one in points]

    def x_of(iteration: float) -> float:
        part = (iteration - first) / (last - first) if last > first else 0.5
        return frame.x(0.03 + 0.94 * part)

    parts, y_of = _sizes_scale(frame, sizes, levels)
    parts += _level_lines(frame, [(words, y_of(size)) for words, size in levels], variable)
    if variable.compare_until is not None and first <= variable.compare_until <= last:
        x = x_of(variable.compare_until)
        parts.append(line(x, frame.top, x, frame.bottom, "hz"))
        words = f"compare up to {variable.compare_until}"
        parts.append(beside_line(frame, x, frame.bottom - 6, words, 5))
    for name, class_ in (("typical", "lt"), ("max_abs", "cv")):
        known = [(x_of(one.iteration or 0), getattr(one, name)) for one in points]
        drawn = [(x, y_of(size)) for x, size in known if size is not None and size < math.inf]
        if len(drawn) > 1:
            parts.append(curve(drawn, class_))
    for one in points:
        if one.max_abs is not None and one.max_abs < math.inf:
            said = f"iteration {one.iteration}: up to {short_number(one.max_abs)}"
            words = f"{said}, {one.distinct_results} different results"
            parts.append(dot(x_of(one.iteration or 0), y_of(one.max_abs), 2.6, words))
    parts += [text(x_of(step), frame.bottom + 15, step) for step in some_of(steps)]
    parts.append(axes(frame, "iteration", "|difference| between runs"))
    name = safe_name(variable.name, 60)
    return chart(f"Differences of {name} between runs, by iteration", join(parts))


def _sizes_scale(
    frame: Frame, sizes: Sequence[float | None], levels: Sequence[tuple[str, float]]
) -> tuple[list[Markup], Callable[[float], float]]:
    """Lines of decades, and where a size lies among them; 0 lies at the bottom."""
    logs = [
        math.log10(size)
        for size in (*sizes, *(size for _, size in levels))
        if size and 0 < size < math.inf
    ]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = max(high, low + 1)

    def y_of(size: float) -> float:
        if size <= 0:
            return frame.bottom
        return frame.y(0.1 + 0.86 * (math.log10(size) - low) / (high - low))

    return decade_lines(frame, low, high, y_of, has_zero=0.0 in sizes), y_of


def run_dots(variable: RepeatedVariable, runs: Sequence[RepeatedRun]) -> Markup | None:
    """The largest difference of each run, with the bounds: a run that is far from the others, or
    two groups of runs, are seen at once. None where nothing but 0 is known.
    """
    told = [
        (run.number, size)
        for run, size in zip(runs, variable.by_run, strict=False)
        if size is not None and size < math.inf
    ]
    if len(told) < 3 or not any(size for _, size in told):
        return None
    frame = Frame(left=_SIZE_LABELS)
    levels = sorted(_levels(variable), key=lambda level: -level[1])
    parts, y_of = _sizes_scale(frame, [size for _, size in told], levels)
    parts += _level_lines(frame, [(words, y_of(size)) for words, size in levels], variable)
    first, last = told[0][0], told[-1][0]
    labelled = some_of([run for run, _ in told])
    for run, size in told:
        x = frame.x_among(run, first, last)
        parts.append(dot(x, y_of(size), 3.4, f"run {run}: up to {short_number(size)}"))
        if run in labelled:
            parts.append(text(x, frame.bottom + 15, run))
    parts.append(axes(frame, "run", "largest |difference|"))
    return chart(f"Largest difference of {safe_name(variable.name, 60)}, by run", join(parts))


def _level_lines(
    frame: Frame, levels: list[tuple[str, float]], variable: RepeatedVariable
) -> list[Markup]:
    """Lines with their names, from the top down, where the curve leaves room for words."""
    parts = []
    # What grows is low on the left.
    is_left = variable.growth_rate is not None
    x, side = (frame.left + 4, "start") if is_left else (frame.right - 2, "end")
    above = -math.inf
    for words, y in levels:
        is_bound = words == "bound"
        parts.append(line(frame.left, y, frame.right, y, "bd" if is_bound else "sg"))
        at = y - 4 if y - 4 - above > 12 else y + 12
        above = at
        parts.append(text(x, at, words, side, "bl" if is_bound else "sl"))
    return parts


def _levels(variable: RepeatedVariable) -> list[tuple[str, float]]:
    """Heights worth a line: the configured bound, the suggested one, a tenth of the spread."""
    found: list[tuple[str, float]] = []
    present, suggested = variable.present_bound, variable.suggested_bound
    if present is not None and present.atol and not present.rtol:
        found.append(("bound", present.atol))
    if suggested is not None and suggested.atol:
        found.append(("suggested", suggested.atol))
    if variable.growth_rate is not None and variable.spread:
        found.append(("a tenth of the spread", variable.spread / 10))
    return found


def time_dots(runs: Sequence[RepeatedRun]) -> Markup:
    """The time of each run, in the order in which they ran, and their median."""
    frame = Frame()
    timed = [(run.number, run.seconds) for run in runs if run.seconds is not None]
    seconds = sorted(time for _, time in timed)
    high = seconds[-1] * 1.08 or 1.0
    median = (seconds[(len(seconds) - 1) // 2] + seconds[len(seconds) // 2]) / 2

    first, last = timed[0][0], timed[-1][0]
    parts = value_lines(frame, high, lambda tick: f"{tick:g} s")
    y = frame.y(median / high)
    parts.append(line(frame.left, y, frame.right, y, "sg"))
    labelled = some_of([run for run, _ in timed])
    for run, time in timed:
        x = frame.x_among(run, first, last)
        parts.append(dot(x, frame.y(time / high), 3.4, f"run {run}: {seconds_text(time)}"))
        if run in labelled:
            parts.append(text(x, frame.bottom + 15, run))
    parts.append(axes(frame, "run", ""))
    return chart("Time of each run, in the order in which they ran", join(parts), width=WIDTH)
