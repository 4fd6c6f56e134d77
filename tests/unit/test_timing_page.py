"""The page of a timing: the verdict, and charts that show what was measured."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from ciwrap.statistics.spread import compare_pairs, spread_of
from ciwrap.studies.timing import TimedSide, TimingDocument
from ciwrap.studies.timing_report import render_timing_html

pytest.importorskip("scipy", reason="SciPy is not installed")
A = (1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.03)
EVIL = '<script>alert(1)</script>"><img src=x>'


def page(b: tuple[float, ...], a: tuple[float, ...] = A, **more: Any) -> str:
    sides = tuple(
        TimedSide(name=name, command=EVIL, seconds=times, spread=spread_of(times, seed=1))
        for name, times in (("A", a[: len(b)]), ("B", b))
    )
    facts: dict[str, Any] = {
        "schema_version": 1, "kind": "timing", "exit_code": 0,
        "comparison": compare_pairs(a[: len(b)], b, margin=0.05, confidence=0.95),
        "sides": sides, "order": ("A",) * len(b), "seed": 7, "warm_up": 1, "reserve_core": False,
        "gate": False, "environment": {EVIL: EVIL}, "ciwrap_version": "0.1.0",
        "started_at": "2026-11-22T07:00:00Z", "seconds": 9.0,
    }  # fmt: skip
    return render_timing_html(TimingDocument(**{**facts, **more}))


def charts(text: str) -> list[ET.Element]:
    return [ET.fromstring(one) for one in re.findall(r'<svg [^>]*class="chart".*?</svg>', text)]


@pytest.mark.parametrize(
    ("factor", "hue", "words"),
    [
        (1.5, "differ", "Changed: B takes 50 % more time than A"),
        (0.5, "match", "Changed: B takes 50 % less time than A"),
        (1.0, "match", "Not changed"),
    ],
)
def test_the_verdict_colours_the_head(factor: float, hue: str, words: str) -> None:
    text = page(tuple(factor * one for one in A))
    assert f'<body class="{hue}">' in text
    assert words in text


def test_an_open_question_has_no_verdicts_colour() -> None:
    text = page(tuple(one * (2 if n % 2 else 0.6) for n, one in enumerate(A)))
    assert '<body class="vary">' in text
    assert "Inconclusive" in text


def test_what_a_duet_hides_is_told() -> None:
    """Two that slow each other by 30 %: who is left runs on faster, and 10 % more look like 8."""
    alone = np.exp(0.03 * np.random.default_rng(1).normal(size=(2, 200))) * [[1.0], [1.1]]
    both = 1.3 * alone.min(axis=0)
    seen = np.where(alone == alone.min(axis=0), both, both + np.ptp(alone, axis=0))
    assert 0.07 < np.median(seen[1] / seen[0]) - 1 < 0.085
    words = "if they slow each other, the change is larger than what is reported"
    assert words in page(A, duet=True)
    assert words not in page(A)


def test_every_run_is_drawn_and_labels_differ() -> None:
    drawn = charts(page(tuple(1.5 * one for one in A)))[1]
    said = [one.text or "" for one in drawn.iter()]
    assert sum(text.startswith("pair ") for text in said) == 2 * len(A)
    axis = [one.text for one in drawn.iter("text") if one.get("text-anchor") == "end"]
    assert len(axis) == len(set(axis)) >= 3


def test_sorted_times_rise_to_all_runs_at_the_longest() -> None:
    b = tuple(1.5 * one for one in A)
    drawn = charts(page(b))[2]
    paths = [one.get("d") or "" for one in drawn.iter("path") if one.get("class") in ("lt", "cv")]
    assert len(paths) == 2
    ends = []
    for path, seconds in zip(paths, (A, b), strict=True):
        xs = [float(step.split("V")[0]) for step in path.split("H")[1:]]
        assert xs == sorted(xs)
        assert len(xs) == len(seconds)
        ends.append(xs[-1])
    labels = [one for one in drawn.iter("text") if one.text in ("A", "B")]
    assert [float(one.get("x", "nan")) for one in labels] == pytest.approx(ends)


def test_the_interval_is_drawn_where_there_is_one() -> None:
    with_it, without = (charts(page(b))[0] for b in (tuple(1.5 * one for one in A), (1.5, 1.6)))
    lines = [sum(one.get("class") == "iv" for one in each.iter()) for each in (with_it, without)]
    assert lines == [3, 0]


def test_a_change_far_out_stays_on_the_page() -> None:
    drawn = charts(page(tuple(900 * one for one in A)))[0]
    (dot,) = (one for one in drawn.iter("circle"))
    assert float(dot.get("cx", "nan")) <= 460


def test_names_move_nothing() -> None:
    text = page(A)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script>") == 1


def test_pairs_that_are_not_drawn_are_told() -> None:
    assert "pairs are drawn" not in page(A)
    assert "the first 400 pairs are drawn" in page(A * 51, A * 51)


def test_every_column_has_a_head() -> None:
    assert '<th scope="col"></th>' not in page(A)


def test_the_next_step_is_a_command() -> None:
    def step(text: str) -> str:
        (said,) = re.findall(r"<dt>Next</dt><dd><div class=.step.><p>(.*?)</button>", text)
        return re.sub("<.*?>", "", said).replace("Copy", "")

    slower = tuple(1.5 * one for one in A)
    assert step(page(slower)).startswith("Have CI fail where B takes longer:ciwrap time ")
    assert step(page(slower)).endswith(" --gate")
    open_ = page(tuple(one * (1.2 if n % 2 else 0.95) for n, one in enumerate(A)))
    assert re.search(r" --pairs \d+$", step(open_))
    # What was asked for is asked for again.
    found = compare_pairs(A, slower, margin=0.1, confidence=0.9)
    told = step(page(slower, comparison=found, decides="cpu", duet=True))
    assert told.endswith(" --margin 0.1 --confidence 0.9 --decides cpu --duet --gate")
    commits = tuple(
        TimedSide(
            name=name, command="./run", seconds=times, spread=spread_of(times, seed=1),
            revision=revision, commit=commit,
        )
        for name, times, revision, commit in (
            ("A", A, "main (aaaa)", "a" * 40),
            ("B", slower, "working tree (bbbb)", "b" * 40),
        )
    )  # fmt: skip
    assert f"ciwrap time --base {'a' * 12} ./run --gate" in step(page(slower, sides=commits))
    alone = page(A, comparison=None, sides=commits[:1])
    assert "ciwrap time ./run OTHER" in alone
    assert 'class="lt"' not in alone  # dotted beside another one only
    assert ", dotted A, solid B" not in alone
