"""What `ciwrap time` says of a comparison, word by word."""

from __future__ import annotations

import re

import pytest

from ciwrap.statistics.spread import PairedComparison, TimingVerdict
from ciwrap.studies.timing_report import change_plot
from ciwrap.studies.timing_words import change_text, explanation, headline, interval_text


def comparison(verdict: str, **more: float | None) -> PairedComparison:
    return PairedComparison(
        **{
            "pairs": 10,
            "change": 0.098,
            "confidence": 0.95,
            "margin": 0.05,
            "verdict": TimingVerdict(verdict),
            "lower": 0.081,
            "upper": 0.114,
            "seen_in_half": 0.05,
            "seen_in_most": 0.061,
            **more,
        }
    )


def test_a_change() -> None:
    found = comparison("changed")
    assert headline(found) == "changed: B takes 9.8 % more time than A"
    assert explanation(found) == [
        "B takes between 8.1 % and 11.4 % more time than A, with 95 % confidence, from 10 pairs"
    ]


def test_no_change() -> None:
    found = comparison("not_changed", change=0.001, lower=-0.012, upper=0.02)
    assert headline(found) == "not changed: B takes as long as A, to within 5 %"
    first, second = explanation(found)
    assert first.startswith("B takes between 1.2 % less and 2 % more time than A, ")
    assert second == (
        "that many pairs detect a change of 5 % half of the time, and one of 6.1 % nine times in"
        " ten; changes below 5 % are ignored"
    )


def test_what_was_set_is_told_as_it_was_set() -> None:
    found = comparison("not_changed", confidence=0.99999, margin=0.0005, lower=-1e-5, upper=1e-5)
    assert headline(found).endswith(", to within 0.05 %")
    first, second = explanation(found)
    assert "with 99.999 % confidence" in first
    assert second.endswith("changes below 0.05 % are ignored")
    few = comparison("inconclusive", confidence=0.99999, lower=None, upper=None, more_pairs=8)
    assert explanation(few) == ["99.999 % confidence takes 18 pairs at least"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (24, "about 24 more pairs would settle it in nine of ten cases (--pairs 34)"),
        (None, "about as large as the margin"),
    ],
)
def test_not_enough_to_tell(more: int | None, words: str) -> None:
    found = comparison("inconclusive", lower=0.03, upper=0.062, more_pairs=more)
    assert headline(found).startswith("inconclusive: ")
    assert words in explanation(found)[-1]
    # A test has arguments, and no options.
    assert words.replace("--pairs ", "pairs=") in explanation(found, is_call=True)[-1]


def test_times_that_vary_too_much_are_not_blamed_on_the_margin() -> None:
    noisy = {"change": 0.3, "lower": -0.3, "upper": 1.43, "seen_in_half": 0.86}
    found = comparison("inconclusive", **noisy)
    assert explanation(found)[-1].startswith("the times vary too much for more pairs to settle it")


def test_sides_of_a_change() -> None:
    assert change_text(-0.12) == "12 % less time"
    assert change_text(1.5) == "150 % more time"
    assert interval_text(-0.2, -0.1) == "between 10 % and 20 % less time"
    assert interval_text(-0.2, 0.1) == "between 20 % less and 10 % more time"


def test_the_margin_is_one_of_the_slower_side() -> None:
    """B may take 4.8 % less time: A then takes 5 % more. So the band is no wider to the left."""
    found = comparison("changed", change=-0.048, lower=-0.0481, upper=-0.0479)
    said = str(change_plot(found))
    assert "changes below 5 % are ignored" in said
    x, width = (float(re.findall(f' {name}="([0-9.]+)"', said)[0]) for name in ("x", "width"))
    zero = float(re.findall(r'd="M([0-9.]+) [^"]*" class="ax"', said)[0])
    assert (zero - x) / (x + width - zero) == pytest.approx(1 / 1.05, abs=0.005)
