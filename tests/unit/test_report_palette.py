"""Colours: told apart by all, and in the order of what they stand for."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from ciwrap.model.variable_result import BOUND_CLASS, SHARE_CLASSES, SUSPECT
from ciwrap.report.drawing import VALUE_PALETTE, share_colour

CSS = (Path(__file__).parents[2] / "ciwrap/report/templates/report.css").read_text(encoding="utf-8")

# Rows of a matrix in linear RGB: what is seen without one kind of cone (Vienot, Brettel, Mollon).
VISION = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
    "no green": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
}


def linear(part: int) -> float:
    share = part / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def seen(colour: tuple[int, ...], vision: str) -> tuple[float, ...]:
    """The colour as somebody sees it, in parts that are about evenly spaced to the eye."""
    rgb = [linear(part) for part in colour[:3]]
    return tuple(
        max(sum(m * c for m, c in zip(row, rgb, strict=True)), 0.0) ** (1 / 2.4)
        for row in VISION[vision]
    )


def distance(one: tuple[int, ...], other: tuple[int, ...], vision: str) -> float:
    pairs = zip(seen(one, vision), seen(other, vision), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def lightness(colour: tuple[int, ...]) -> float:
    red, green, blue = (linear(part) for part in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("vision", VISION)
def test_within_and_beyond_the_bound_are_told_apart(vision: str) -> None:
    within = [share_colour(i) for i in range(1, BOUND_CLASS)]
    beyond = [share_colour(i) for i in range(BOUND_CLASS, SHARE_CLASSES)]
    assert min(distance(a, b, vision) for a in within for b in beyond) > 0.25
    assert min(distance(a, share_colour(SUSPECT), vision) for a in within) > 0.25


def test_more_is_darker() -> None:
    for classes in (range(1, BOUND_CLASS), range(BOUND_CLASS, SHARE_CLASSES)):
        found = [lightness(share_colour(i)) for i in classes]
        assert found == sorted(found, reverse=True)


def test_values_go_from_dark_to_bright() -> None:
    found = [lightness(colour) for colour in VALUE_PALETTE[:255]]
    assert all(b >= a - 0.002 for a, b in pairwise(found))
    assert found[-1] - found[0] > 0.6


def variables(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", block))


def rgb(text: str) -> tuple[int, ...]:
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    return tuple(int(digits[i : i + 2], 16) for i in (0, 2, 4))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(scheme: str) -> None:
    """4.5 to 1, as WCAG asks of small text."""
    light, dark = CSS.split("@media (prefers-color-scheme: dark)", 1)
    colours = variables(light)
    if scheme == "dark":
        colours |= variables(dark.split("}", 1)[0])
    pairs = [(text, ground) for text in ("ink", "soft", "link") for ground in ("bg", "card")]
    pairs += [(word, f"{word}-bg") for word in ("match", "differ", "none")]
    pairs += [("differ", "card"), ("ink", "code"), ("ink", "mark")]
    for text, ground in pairs:
        one, other = sorted((lightness(rgb(colours[text])), lightness(rgb(colours[ground]))))
        assert (other + 0.05) / (one + 0.05) >= 4.5, (text, ground)
