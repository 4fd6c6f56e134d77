"""The page of a map: every chart is well-formed, and says what the document says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

pytest.importorskip("scipy", reason="SciPy is not installed")

from ciwrap.studies.variability.quality import (
    Candidate,
    Curve,
    Influence,
    Influences,
    MapPoint,
    MapSummary,
    Parameter,
    Repeats,
    Score,
    Slice,
    VariabilityDocument,
)
from ciwrap.studies.variability.report import render_variability_html, score_rows

EVIL = '<script>alert(1)</script>"><img src=x>'


def summary(**more: Any) -> MapSummary:
    facts: dict[str, Any] = {
        "category": {}, "configurations": 4, "runs": 80, "predictor": "LSP", "error": 0.12,
        "floor": 0.05, "few": True, "factor": 1.4, "kurtosis": 3.0,
        "scores": (
            Score("LSP", 0.12, 0.01),
            Score("constant", 3.5, 0.4),
            Score("Delaunay", reason="the configurations lie in a plane"),
        ),
        "parameters": (Parameter("threads", 1, 8, 2, True), Parameter(EVIL, 0, 1, 2, False)),
        "fixed": {}, "notes": (EVIL,),
        "influences": Influences(
            (
                Influence(("threads",), 0.8, 1, 1e-9, 4.0),
                Influence(("threads", EVIL), 0.1, 1, 0.5, 2),
            ),
            0.1, 12, (), True,
        ),
        "points": tuple(
            MapPoint((threads, other), 20, 0.1 * threads, 0.11 * threads)
            for threads in (1.0, 8.0) for other in (0.0, 1.0)
        ),
        "slices": (Slice("threads", EVIL, {}, (1.0, 8.0), (0.0, 1.0), ((0.1, 0.8), (0.1, 0.9))),),
    }  # fmt: skip
    return MapSummary(**{**facts, **more})


def page(*maps: MapSummary, **more: Any) -> str:
    facts: dict[str, Any] = {
        "schema_version": 1, "kind": "variability", "did": "fit", "file": EVIL, "value": EVIL,
        "seed": 0, "maps": maps, "predictions": (), "repeats": (), "candidates": (),
        "environment": {EVIL: EVIL}, "ciwrap_version": "0.1.0", "seconds": 1.0,
        "started_at": "2026-11-22T07:00:00Z",
    }  # fmt: skip
    text = render_variability_html(VariabilityDocument(**{**facts, **more}))
    return text.replace("\u00a0", " ")  # where no line may break


def charts(text: str) -> dict[str, ET.Element]:
    found = [ET.fromstring(one) for one in re.findall(r'<svg [^>]*class="chart".*?</svg>', text)]
    return {str(one.findtext("title")): one for one in found}


def said(chart: ET.Element) -> list[str]:
    return [one.text or "" for one in chart.iter("title")]


def test_a_map_is_drawn() -> None:
    text = page(summary())
    drawn = charts(text)
    assert len(drawn) == 5
    slices = next(chart for name, chart in drawn.items() if name.startswith("Sigma over threads"))
    assert sum(one.get("class") == "vr" for one in slices.iter("circle")) == 4
    scatter = drawn["Predicted against measured sigma"]
    assert sum(one.get("class") == "cm" for one in scatter.iter("circle")) == 4
    assert "LSP: 12 %" in said(drawn["Errors of all predictors"])
    assert len(list(drawn["Share of the variance of log sigma"].iter("rect"))) == 3
    assert "the configurations lie in a plane" in text
    assert "probably optimistic" in text
    assert "threads: 80 % of the variance; sigma changes 4-fold." in text


def test_only_sure_influences_are_told() -> None:
    text = page(summary())
    assert "beyond each alone" not in text
    unsure = Influences((Influence(("threads",), 0.2, 1, 0.3, 2.0),), 0.8, 12, (), True)
    text = page(summary(influences=unsure))
    assert "no parameter is seen to drive the variability." in text
    assert "80 % of the variance of log sigma is explained by none of these." in text
    grouped = Influences((Influence(("threads",), 0.2, 1, 0.3, 2.0),), 0.8, 12, ("threads",), False)
    text = page(summary(influences=grouped))
    assert "neighbouring levels of threads count as one here" in text
    assert "there are too few configurations to look for interactions." in text
    assert "too few configurations to tell which parameters" in page(summary(influences=None))


def test_a_map_of_one_parameter_and_one_that_is_flat() -> None:
    one = summary(
        parameters=(Parameter("n", 1, 3, 3, False),),
        points=tuple(MapPoint((float(n),), 9, 0.5, 0.5) for n in (1, 2, 3)),
        slices=(Slice("n", "", {}, (1.0, 2.0, 3.0), (0.0,), ((0.5, 0.5, 0.5),)),),
        factor=None,
    )
    drawn = charts(page(one))
    assert sum(each.get("class") == "vr" for each in drawn["Sigma over n"].iter("circle")) == 3


def test_every_column_has_a_head() -> None:
    assert '<th scope="col"></th>' not in page(summary())


def test_one_of_anything_is_counted_as_one() -> None:
    one = summary(
        configurations=1, runs=1, parameters=(Parameter("n", 1, 3, 3, False),),
        points=(MapPoint((1.0,), 9, 0.5, 0.5),),
        slices=(Slice("n", "", {}, (1.0, 2.0, 3.0), (0.0,), ((0.5, 0.5, 0.5),)),),
    )  # fmt: skip
    text = page(one)
    for words in ("configuration", "run", "parameter"):
        assert f"<b>1</b> {words}</li>" in text


@pytest.mark.parametrize("sigmas", [(0.21, 0.9), (0.31, 0.32), (1e-6, 1e6)])
def test_the_axes_of_predicted_against_measured_have_numbers(sigmas: tuple[float, float]) -> None:
    points = tuple(MapPoint((1.0, 0.0), 9, one, one) for one in sigmas)
    drawn = charts(page(summary(points=points)))["Predicted against measured sigma"]
    numbers = [one.text for one in drawn.iter("text") if one.get("class") == "tk"]
    assert len(set(numbers)) >= 2
    assert 4 <= len(numbers) <= 30


def test_no_dot_leaves_its_chart() -> None:
    points = (
        MapPoint((1.0, 0.0), 9, 1e-9, 1e-3),
        MapPoint((8.0, 1.0), 9, 5.0, 1e6),
    )
    drawn = charts(page(summary(points=points)))["Predicted against measured sigma"]
    width, height = map(float, drawn.get("viewBox", "").split()[2:])
    for dot in drawn.iter("circle"):
        assert 0 <= float(dot.get("cx", "nan")) <= width
        assert 0 <= float(dot.get("cy", "nan")) <= height


def test_a_plan_is_drawn() -> None:
    widths = tuple(1 / n**0.5 for n in range(10, 41))
    repeats = Repeats(
        configuration={"threads": 4.0}, category={"disk": EVIL}, error=0.1, confidence=0.9,
        sigma=0.5, is_measured=True, extrapolated=False, kurtosis=1.4, for_sigma=28,
        more_for_sigma=8, curve=Curve(tuple(range(10, 41)), widths, 26, 34), half_width=0.12,
        for_mean=3, more_for_mean=0, seconds_per_run=2.0, seconds_for_sigma=16.0,
        seconds_for_mean=0.0,
    )  # fmt: skip
    text = page(did="plan", repeats=(repeats,))
    assert "Its runs so far give 0.5, to within 12 %, 8 runs more; 16.0 s in all." in text
    assert "The mean takes 3 runs to within 10 %, which its runs reach." in text
    assert "The kurtosis of the runs is 1.4 (evenly spread noise has 1.8, normal noise 3;" in text
    (chart,) = charts(text).values()
    assert "75 % of the way after 26 runs" in said(chart)
    candidate = Candidate({"threads": 16.0}, {}, 0.2, 1.5, 30, 61.0)
    text = page(did="plan", candidates=(candidate,))
    assert "threads=16: sigma probably 0.2, known within a factor of 1.50; 30 runs, 61.0 s" in text


def test_names_move_nothing() -> None:
    text = page(summary(), summary(category={EVIL: EVIL}))
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script>") == 1


def test_a_map_may_be_better_than_the_estimate_of_a_perfect_one() -> None:
    floor = "by estimate, a perfect map would be off by 23 %"
    above = page(summary(error=0.13, floor=0.23))
    assert f"{floor}, so this one cannot be distinguished from it" in above
    below = page(summary(error=0.31, floor=0.23))
    assert floor in below
    assert "cannot be distinguished from it" not in below


@pytest.mark.parametrize(
    ("chosen", "others", "remark"),
    [
        (
            Score("Gaussian process", 0.78, 0.05),
            (Score("log-quadratic", 0.73, 0.06), Score("MARS", reason="too few")),
            "chosen: smooth, and within one standard error of log-quadratic",
        ),
        (Score("Gaussian process", 0.78, 0.05), (Score("MARS", 0.79, 0.06),), "chosen"),
        (Score("MARS", 0.9, 0.05), (Score("Gaussian process", 0.7, 0.06),), "asked for"),
    ],
)
def test_a_map_that_is_not_the_best_says_why_it_was_chosen(
    chosen: Score, others: tuple[Score, ...], remark: str
) -> None:
    one = summary(predictor=chosen.predictor, scores=(*others, chosen))
    rows = {name: words for name, _, words in score_rows(one)}
    assert rows[chosen.predictor] == remark
    assert all(remark not in rows[other.predictor] for other in others)


def test_the_title_is_the_finding_and_the_next_step_a_command() -> None:
    text = page(summary(), map_file="m.json", value="seconds")
    found = re.search(r"<h1>.*?<span>(.*?)</span></h1>", text)
    assert found is not None
    assert found[1] == "The variability of seconds depends most on threads"
    assert "It is predicted to within 12 % in the mean, from 4 configurations and 80 runs." in text
    assert "What to measure next:" in text
    assert '<code id="next-1">ciwrap variability plan m.json</code>' in text
    silent = page(summary(influences=None), value="seconds")
    assert "The variability of seconds is predicted to within 12 %" in silent
