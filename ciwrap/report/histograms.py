"""How many elements moved how far: bars over the share of the bound, with counts as logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.details import BOUND_CLASS, NO_NUMBER, SHARE_CLASSES, SUSPECT
from ciwrap.report.svg import NARROW, Frame, axes, chart, join, line, power_label, rect, text
from ciwrap.report.text import percent_text, short_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

_HEIGHT = 260
_FRAME = Frame(left=60, top=20, right=NARROW - 12, bottom=_HEIGHT - 44)


def count_axis(frame: Frame, largest: int) -> tuple[Markup, float]:
    """Ticks of a logarithmic axis of counts from 1 to `largest`, and its decades."""
    decades = max(1.0, math.log10(largest) + 0.15) if largest > 0 else 1.0
    step = max(1, math.ceil(decades / 5))
    parts = []
    for exponent in range(0, int(decades) + 1, step):
        y = frame.y((exponent + 0.3) / (decades + 0.3))
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, power_label(exponent), "end"))
    return join(parts), decades


def count_height(count: int, decades: float) -> float:
    """How high a bar is, of 1; one element stays visible among a million."""
    return 0.0 if count <= 0 else (math.log10(count) + 0.3) / (decades + 0.3)


def share_histogram(counts: Sequence[int], label: str, lost: int = 0) -> Markup:
    """Elements by |difference| / bound, both axes logarithmic, the bound marked.

    lost: those of the last class that are NaN, infinite or missing on one side; they have no
    distance, and a bar of their own beyond a gap.
    """
    frame = _FRAME
    lost = min(lost, counts[-1])
    counts = [*counts[:-1], counts[-1] - lost]
    grid, decades = count_axis(frame, max(*counts, lost))
    used = [i for i, count in enumerate(counts) if count and i > 0]
    first = min([*used, BOUND_CLASS - 4])
    last = max([*used, BOUND_CLASS + 3])
    # One slot for equal elements and a gap, then the classes.
    slots = last - first + 1 + 1.6 + (1.8 if lost else 0)
    slot = (frame.right - frame.left) / slots

    def left_of(share_class: float) -> float:
        return frame.left + (1.6 + share_class - first) * slot

    def bar(x: float, count: int, class_: str, words: str) -> Markup:
        top = frame.y(count_height(count, decades))
        said = f"{words}: {count:,}"
        return rect(x + 0.5, top, max(slot - 1, 0.5), frame.bottom - top, class_, said)

    bars = []
    if counts[0]:
        bars.append(bar(frame.left, counts[0], "b0", "equal"))
    bars += [
        bar(left_of(i), counts[i], "bo" if i >= BOUND_CLASS else "bi", class_words(i))
        for i in range(max(first, 1), last + 1)
        if counts[i]
    ]
    ticks = [text(frame.left + slot / 2, frame.bottom + 15, "0")]
    if lost:
        bars.append(bar(left_of(last + 1.8), lost, "bx", "not a number on one side"))
        ticks.append(text(frame.right, frame.bottom + 28, "no number", "end"))
    low, high = (first - BOUND_CLASS) * math.log10(2), (last + 1 - BOUND_CLASS) * math.log10(2)
    step = max(1, math.ceil((high - low) / 5))
    for exponent in range(-step * 10, 40, step):
        if low + 0.1 <= exponent <= high:
            x = left_of(BOUND_CLASS + exponent / math.log10(2))
            ticks.append(text(x, frame.bottom + 15, power_label(exponent)))
            ticks.append(line(x, frame.bottom, x, frame.bottom + 4, "ax"))
    bound = _bound_line(frame, left_of(BOUND_CLASS))
    body = join((grid, *bars, bound, axes(frame, "|difference| / bound", "elements"), *ticks))
    return chart(label, body, width=NARROW, height=_HEIGHT)


def _bound_line(frame: Frame, x: float) -> Markup:
    name = text(x, frame.top - 7, "bound", "middle", "bl")
    return line(x, frame.top - 4, x, frame.bottom, "bd") + name


def class_words(share_class: int) -> str:
    if share_class == 0:
        return "equal"
    if share_class == 1:
        return "less than 0.00002 of the bound"
    if share_class == NO_NUMBER:
        return "NaN, infinite or missing on one side"
    if share_class == SUSPECT:
        return "suspect: how much is not known"
    if share_class == SHARE_CLASSES - 1:
        return "at least 33,000 x the bound"
    low = 2.0 ** (share_class - BOUND_CLASS)
    return f"{short_number(low)} to {short_number(2 * low)} x the bound"


def drift_histogram(counts: Sequence[int], label: str) -> Markup:
    """Elements by how many fine steps they drifted. A drift of k steps is one of k - 1 to k + 1 of
    them, so its bar stands about k; the bound is where the steps end.
    """
    frame = _FRAME
    grid, decades = count_axis(frame, max(counts))
    slot = (frame.right - frame.left - 10) / len(counts)
    parts = []
    for step, count in enumerate(counts):
        if not count:
            continue
        top = frame.y(count_height(count, decades))
        low, high = max(step - 1, 0) / len(counts), (step + 1) / len(counts)
        left = frame.left + max(step - 0.5, 0) * slot
        said = f"{percent_text(low).removesuffix(' %')} to {percent_text(high)} of the bound"
        words = f"{said if step > 1 else f'less than {percent_text(high)} of the bound'}: {count:,}"
        wide = max(frame.left + (step + 0.5) * slot - left - 1, 0.5)
        class_ = "bi" if step < 0.8 * len(counts) else "bn"
        parts.append(rect(left + 0.5, top, wide, frame.bottom - top, class_, words))
        # How far the elements of this bar may really have moved.
        least, most = frame.left + max(step - 1, 0) * slot, frame.left + (step + 1) * slot
        parts.append(line(least, top, most, top, "wh"))
    for part in (0, 25, 50, 75, 100):
        x = frame.left + slot * len(counts) * part / 100
        parts.append(text(x, frame.bottom + 15, f"{part} %"))
    bound = _bound_line(frame, frame.left + slot * len(counts))
    body = join((grid, *parts, bound, axes(frame, "share of the bound used", "elements")))
    return chart(label, body, width=NARROW, height=_HEIGHT)
