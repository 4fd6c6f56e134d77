"""The page of repeated runs: what it says is what the result holds, whatever names are like."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace

from ciwrap.model import ErrorBound, Message, MessageLevel
from ciwrap.model.repeat_result import (
    Behaviour,
    BoundFit,
    BoundSuggestion,
    FactorFinding,
    IterationSpread,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
)
from ciwrap.report.text import relative_to
from ciwrap.studies.repeat.charts import class_map, factor_map
from ciwrap.studies.repeat.page import render_repeat_html, variable_words

EVIL = '<script>alert(1)</script>"><img src=x>'
CLASSES = (1, 2, 1, 0)


def runs() -> tuple[RepeatedRun, ...]:
    good = [RepeatedRun(n, 10 * n, {"threads": "on"}, 0.5 + n / 10, 0) for n in (1, 2, 3)]
    return (*good, RepeatedRun(4, 40, {}, 2.0, 1, problem="ended with 1", output_tail="boom <b>"))


def variable(name: str = "x", kind: Behaviour = Behaviour.GROWING) -> RepeatedVariable:
    steps = tuple(
        IterationSpread(i, 2, size, size / 3)
        for i, size in ((0, 0.0), (10, 1e-12), (20, 1e-6), (30, 3.0))
    )
    return RepeatedVariable(
        "c", name, kind, CLASSES, 2, 10, 3.0, 2, (4,), 0.7, 1.0, 5.0, steps, 0.8, 22.0, 28.0, 25,
        BoundSuggestion(0.02, 0.0, 3, 9, 0.95, 0.72, 7.0, 25), ErrorBound(1e-6), 3e6,
        BoundFit.TOO_TIGHT, 0.2,
    )  # fmt: skip


def result(*variables: RepeatedVariable, headline: str = "1 of 1 variable varies; x grows") -> str:
    return render_repeat_html(
        RepeatResult(headline, 0, seed=7, runs=runs(), variables=variables, ciwrap_version="0.1.0")
    )


def charts(page: str) -> list[ET.Element]:
    return [ET.fromstring(one) for one in re.findall(r'<svg [^>]*class="chart".*?</svg>', page)]


def test_all_that_is_known_of_a_variable_is_there() -> None:
    page = result(variable())
    assert "<h1>" in page
    assert "x grows." in page
    assert "atol: 0.02 would hold (3 x largest of 9 differences" in page.replace("\u00d7", "x")
    assert "is too tight (differences reach 3e6 times it)" in page
    assert "ended with 1" in page
    assert "boom &lt;b&gt;" in page
    assert "with the seed 7" in page


def test_equal_runs_have_one_number_in_the_map() -> None:
    (drawn, *_) = charts(result(variable()))
    said = [title.text for title in drawn.iter() if (title.text or "").startswith("run ")]
    assert said == ["run 1: result 1", "run 2: result 2", "run 3: result 1", "run 4: no result"]


def test_every_iteration_has_its_dot_and_every_bound_its_line() -> None:
    drawn = charts(result(variable()))[1]
    words = [one.text for one in drawn.iter() if one.text]
    assert sum(word.startswith("iteration ") for word in words) == 4
    assert {"bound", "suggested", "a tenth of the spread", "compare up to 25"} <= set(words)


def test_a_run_that_is_far_from_the_others_is_seen() -> None:
    """Of run 4 nothing is known; it has no dot."""
    drawn = charts(result(replace(variable(), by_run=(0.0, 1e-7, 3.0, None))))[2]
    words = [one.text or "" for one in drawn.iter()]
    assert [one for one in words if one.startswith("run ")] == [
        "run 1: up to 0",
        "run 2: up to 1e-7",
        "run 3: up to 3",
    ]
    assert {"bound", "suggested"} <= set(words)
    _, near, far = (float(one.get("cy", 0)) for one in drawn.iter() if one.tag.endswith("circle"))
    assert far < near
    # Where nothing but equality is known there is nothing to draw.
    assert len(charts(result(replace(variable(), by_run=(0.0, None, None, None))))) == 3


@pytest.mark.parametrize("kind", list(Behaviour))
def test_each_behaviour_is_counted_under_its_own_word(kind: Behaviour) -> None:
    page = result(replace(variable(kind=kind), reason="shapes differ"))
    words = "not comparable" if kind is Behaviour.NOT_COMPARABLE else kind.value
    assert re.search(rf"<b>1</b> {words}</li>", page)
    assert ('class="card' in page) == (kind is not Behaviour.EQUAL)


def test_nothing_varies() -> None:
    equal = RepeatedVariable("c", "x", Behaviour.EQUAL, (1, 1, 1, 1), 1)
    page = result(equal, headline="the variable is equal in 4 runs")
    assert '<body class="match">' in page
    assert "The variable is equal" in page
    assert 'class="card' not in page


def test_names_move_nothing() -> None:
    finding = FactorFinding(EVIL, "c", EVIL, 4, 2, 4, 0, max_abs=1e-3, changes=True)
    page = render_repeat_html(
        RepeatResult(
            f"1 of 1 variable varies; {EVIL} grows",
            3,
            runs=(*runs(), RepeatedRun(5, 1, {EVIL: EVIL}, problem=EVIL, output_tail=EVIL)),
            variables=(variable(EVIL), replace(variable(EVIL), reason=EVIL)),
            factors=(finding,),
            messages=(Message(MessageLevel.ERROR, EVIL),),
            environment={EVIL: EVIL},
            ciwrap_version="0.1.0",
        )
    )
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert '<body class="not_comparable">' in page
    for drawn in charts(page):
        assert drawn.find("title") is not None


def test_many_variables_and_runs_are_cut_and_counted() -> None:
    many = tuple(variable(f"v{n}") for n in range(250))
    page = result(*many)
    assert "and 210 more variables" in page
    assert "and 50 more variables" in page
    assert len(page) < 3_000_000


def test_thousands_of_variables_and_runs_fit() -> None:
    many = tuple(variable(f"v{number}") for number in range(3000))
    several = tuple(RepeatedRun(number, 0, seconds=1.0) for number in range(1, 2001))
    page = render_repeat_html(RepeatResult("x", 0, runs=several, variables=many))
    assert len(page) < 3_000_000
    assert "and 2,960 more variables" in page
    assert "and 1,000 more runs" in page


def test_paths_leave_the_machine_relative() -> None:
    folder = "/home/me/p/.ciwrap/repeat/run_1"
    failed = RepeatedRun(1, 1, problem="/home/me/p/out/x: bad", folder=folder)
    found = RepeatResult("x", 3, runs=(failed,), variables=(variable(),))
    (run,) = relative_to(found, Path("/home/me/p")).runs
    assert run.folder == ".ciwrap/repeat/run_1"
    assert run.problem == "out/x: bad"
    assert "/home/me" not in render_repeat_html(found)


def test_kinds_in_words() -> None:
    equal = RepeatedVariable("c", "x", Behaviour.EQUAL, (1, 1), 1)
    assert variable_words(equal) == ["equal in all runs"]
    words = variable_words(variable())
    assert words[:2] == ["2 different results from iteration 10 on", "up to 3 apart (run 2)"]
    assert "doubles every 0.866 iterations" in words
    assert variable_words(replace(variable(), common_digits=0.01))[4] == "with no digit in common"


def test_what_grows_comes_before_noise() -> None:
    page = result(variable("calm", Behaviour.NOISE), variable("wild"))
    assert re.findall(r'id="c\d"><?.*?<bdi>(\w+)</bdi>', page, re.DOTALL) == ["wild", "calm"]


def test_what_is_not_drawn_has_no_legend_and_no_column() -> None:
    """A frame is of a factor that acts; runs have factors only where these were switched."""
    plain = result(variable())
    assert "A frame marks" not in plain
    assert '<th scope="col">factors</th>' in plain
    found = RepeatResult("x", 0, runs=(RepeatedRun(1, 1, {}, 1.0, 0),), variables=(variable(),))
    assert '<th scope="col">factors</th>' not in render_repeat_html(found)
    acting = FactorFinding("threads", "c", "x", 4, 4, 2, 0, changes=True)
    framed = render_repeat_html(RepeatResult("x", 0, runs=runs(), factors=(acting,)))
    assert "A frame marks what a factor changes" in framed
    idle = replace(acting, differing=0, changes=False)
    assert "A frame" not in render_repeat_html(RepeatResult("x", 0, runs=runs(), factors=(idle,)))


def test_a_message_may_hold_code() -> None:
    message = Message(MessageLevel.WARNING, "give it an `atol` of <1e-9>")
    found = RepeatResult("x", 0, runs=runs(), variables=(variable(),), messages=(message,))
    page = render_repeat_html(found)
    assert 'give it an <code>atol</code> of &lt;<span class="nw">1e-9</span>&gt;' in page


def test_what_does_not_fit_is_said_to_be_left_out() -> None:
    several = tuple(RepeatedRun(n, n, {}, 1.0, 0) for n in range(1, 71))
    messages = tuple(Message(MessageLevel.WARNING, f"message {n}") for n in range(34))
    findings = tuple(
        FactorFinding(f"factor {n % 2}", "c", f"x{n // 2}", 4, n % 5, 2, 0, changes=n % 5 > 0)
        for n in range(410)
    )
    page = render_repeat_html(
        RepeatResult("1 of 1 variable varies", 0, runs=several, messages=messages,
                     factors=findings, variables=(replace(variable(), classes=(1,) * 70),))
    )  # fmt: skip
    assert "... and 4 more messages; the JSON result has them all." in page
    assert "... and 10 more runs, not drawn; the JSON result has them all." in page
    assert "... and 10 more findings; the JSON result has them all." in page
    assert "... and 165 more variables, not drawn; the JSON result has them all." in page


def test_the_factor_map_frames_what_changes() -> None:
    """Threads change `a` in all pairs; `b` is noise, which they spread; the seed does nothing."""
    findings = (
        FactorFinding("threads", "c", "a", 8, 8, 6, 0, changes=True),
        FactorFinding("seed", "c", "a", 8, 0, 6, 0, changes=False),
        FactorFinding("threads", "c", "b", 8, 8, 3, 3, 3, 3, effect=1.0, p=0.01),
        FactorFinding("seed", "c", "b", 0, 0, 3, 3, 3, 3, effect=0.1, p=0.6),
    )
    picture = ET.fromstring(str(factor_map(findings)))
    texts = [one.text for one in picture.iter("text")]
    assert texts[:3] == ["no change", "threads", "seed"]
    assert texts[3:] == ["a", "0 %", "100 %", "0 %", "b", "100 %", "100 %", "\u2013"]
    frames = [one for one in picture.iter("rect") if one.get("class") == "fm"]
    assert len(frames) == 2
    assert len({one.get("x") for one in frames}) == 1


def test_the_map_of_equal_runs_is_no_wider_than_its_names_and_runs() -> None:
    """Ten runs of short names fit a phone; letters stay as large as they are elsewhere."""
    ten = tuple(RepeatedRun(n, n) for n in range(1, 11))
    short = replace(variable("u"), classes=(1,) * 10)
    picture = ET.fromstring(str(class_map([short], ten)))
    assert float(picture.get("width", "0")) < 320
    assert picture.get("viewBox") == f"0 0 {picture.get('width')} {picture.get('height')}"
    wide = ET.fromstring(str(class_map([replace(short, name="\u6e29" * 20)], ten)))
    first = float(next(wide.iter("rect")).get("x", "0"))
    assert first > 20 * 12.5


def test_names_of_several_checks_are_told_apart_in_the_maps() -> None:
    two = [variable("u"), replace(variable("u"), check="d")]
    picture = ET.fromstring(str(class_map(two, runs())))
    names = [one.text for one in picture.iter("text") if one.get("class") == "lb"]
    assert names == ["c: u", "d: u"]
    found = [FactorFinding("threads", one, "u", 8, 8, 6, 0, changes=True) for one in "cd"]
    drawn = ET.fromstring(str(factor_map(found)))
    ends = [one.text for one in drawn.iter("text") if one.get("text-anchor") == "end"]
    assert ends == ["c: u", "d: u"]
    page = render_repeat_html(RepeatResult("x", 0, runs=runs(), factors=tuple(found)))
    assert "changes c: u" in page
    assert "changes d: u" in page


def test_a_name_that_is_cut_in_a_map_is_told_whole_under_the_pointer() -> None:
    name = "temperature_of_the_upper_wall_after_the_last_step"
    picture = ET.fromstring(str(class_map([variable(name)], runs())))
    assert name in [one.text for one in picture.iter("title")]


def test_heads_of_many_factors_do_not_run_into_each_other() -> None:
    names = [f"OMP_SETTING_{n:03}" for n in range(10)]
    found = [FactorFinding(name, "c", "u", 8, 8, 6, 0, changes=True) for name in names]
    picture = ET.fromstring(str(factor_map(found)))
    heads = [float(one.get("x", "0")) for one in picture.iter("text") if one.get("y") == "16"]
    assert heads[2] - heads[1] > 7 * len(names[0])


def test_one_that_is_left_out_is_told_as_one() -> None:
    several = tuple(RepeatedRun(n, n, {}, 1.0, 0) for n in range(1, 62))
    page = render_repeat_html(
        RepeatResult("x", 0, runs=several, variables=(replace(variable(), classes=(1,) * 61),))
    )
    assert "... and 1 more run, not drawn; the JSON result has it." in page
