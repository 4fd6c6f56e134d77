"""Small things that readers of a report stumble over."""

from __future__ import annotations

import html
import io
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap import api
from ciwrap.model import (
    CheckResult,
    DifferingElement,
    ErrorBound,
    Evidence,
    NewValues,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import Cause, Explanation
from ciwrap.report.cause_words import cause_words
from ciwrap.report.console import make_console
from ciwrap.report.exports import render_junit
from ciwrap.report.markdown import render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.terminal import render
from ciwrap.report.text import axes_words, common_start, scale_ticks, share_text
from ciwrap.report.where import where_text


def run_of(*variables: VariableResult, kind: str = "check") -> RunResult:
    verdict = Verdict.worst(one.verdict for one in variables)
    return RunResult(verdict, (CheckResult("all", verdict, tuple(variables)),), kind=kind)


def compared(golden: Any, new: Any, atol: float = 1e-6) -> RunResult:
    return run_of(api.compare_arrays(np.asarray(golden), np.asarray(new), atol=atol))


def undecided(**more: Any) -> VariableResult:
    return VariableResult(
        "x",
        Verdict.UNDECIDED,
        evidence=Evidence.RESIDUES,
        bound=ErrorBound(1e-6),
        element_count=1000,
        chunk_count=10,
        suspect_chunks=2,
        guaranteed_share=0.875,
        **more,
    )


def test_a_command_that_decides_is_introduced_once() -> None:
    page = render_html(run_of(undecided()))
    assert page.count("o decide") == 1


def test_nan_is_no_share_of_a_bound() -> None:
    new = NewValues(100, 8, 0, 0.0, 1.0, 0.5)
    page = render_html(run_of(undecided(new_values=new)))
    assert "of the 100 new values there, 8 NaN" in page.lower().replace("nan", "NaN")


@pytest.mark.parametrize(
    ("one", "other", "start"),
    [
        ("0.3924", "0.3988", 4),
        ("12.5", "13.5", 1),
        ("-1.5", "1.5", 0),
        ("1e-9", "1.5", 0),
        ("9.5", "10.5", 0),
        ("1.5", "1.55", 3),
        ("nan", "1.0", 0),
    ],
)
def test_where_two_numbers_part(one: str, other: str, start: int) -> None:
    assert common_start(one, other) == start


def test_digits_are_marked_from_where_the_values_part() -> None:
    run = compared([1.0, 2.25, 3.0], [1.0, 2.26, 3.0])
    assert "2.2<b>5</b>" in render_html(run)
    assert "2.2<b>6</b>" in render_html(run)
    stream = io.StringIO()
    render(run, make_console(stream, color=True))
    assert re.search(r"2\.2\x1b\[1;4m5\x1b\[0m", stream.getvalue())
    assert re.search(r"2\.2\x1b\[1;4m6\x1b\[0m", stream.getvalue())


def test_a_flipped_sign_has_no_count_of_floats_between() -> None:
    assert "e18" not in render_html(compared([1.0, 2.0, 3.0], [1.0, -2.0, 3.0]))


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (range(21, 60), "ranks 21 to 59"),
        ([1, 2], "ranks 1, 2"),
        ([1, 2, 3, 7], "ranks 1 to 3, 7"),
        (range(0, 64, 2), "ranks 0, 2, 4, 6, 8, 10 and more"),
    ],
)
def test_ranks_are_told_as_ranges(ranks: Any, words: str) -> None:
    results = [
        VariableResult(
            "u",
            verdict,
            iteration=1,
            rank=rank,
            element_count=1,
            differing_count=int(rank in ranks),
        )
        for rank in range(64)
        for verdict in [Verdict.DIFFER if rank in ranks else Verdict.MATCH]
    ]
    assert where_text(results) == f"on {words}"


def test_a_box_around_nearly_everything_is_no_place() -> None:
    new = np.zeros(55_296)
    new[24:] = 1
    run = compared(np.zeros(55_296), new)
    assert "spread over nearly the whole array" in render_html(run)
    assert "[24:55296]" not in render_html(run)


def test_shares_have_one_notation() -> None:
    assert share_text(937_000) == "937,000 x the bound"
    run = compared([1.0], [1 + 1e-12])
    stream = io.StringIO()
    render(run, make_console(stream, color=False))
    assert "less than 0.1 % of the bound used" in stream.getvalue()
    assert "at most <" not in stream.getvalue() + render_html(run)


def test_what_is_close_to_its_bound_stands_out() -> None:
    assert 'class="r near"' in render_html(compared([1.0], [1 + 9e-7]))
    assert 'class="r near"' not in render_html(compared([1.0], [1 + 3e-7]))


def test_one_check_is_not_named_in_each_row() -> None:
    assert "all: x" not in render_markdown(run_of(undecided()))


def test_an_environment_of_one_side_has_one_column() -> None:
    page = render_html(replace(compared([1.0], [1.0]), environment={"cpu": "some"}))
    assert "not recorded</td>" not in page
    assert ">some</td>" in page


def test_differences_of_which_the_same_is_told_are_told_once() -> None:
    golden = np.random.default_rng(0).random(50)
    results = [
        api.compare_arrays(golden, golden + 1, atol=1e-6, name=f"x{number:02d}")
        for number in range(40)
    ]
    stream = io.StringIO()
    render(run_of(*results), make_console(stream, color=False))
    text = stream.getvalue()
    assert "x00, x01, x02, x03 and 36 more" in text
    assert text.count("in all 50 values that differ, ") == 1


def test_counts_and_fill_values_are_told_to_the_last_digit() -> None:
    golden = np.random.default_rng(0).random(50)
    new = golden.copy()
    new[3:8] = -9999.0
    page = render_html(compared(golden, new))
    assert "-9999, beyond all other finite values, as fill values are" in page
    told = Explanation(Cause.OTHER_ITERATION, 5, 5, values=(123_457.0,))
    assert cause_words(told, ("A", "B"), "x") == "B is A of iteration 123457"


def test_junit_has_a_case_for_each_variable() -> None:
    element = DifferingElement((1,), "1.0", "2.0", 1.0, 1e6)
    results = [
        VariableResult(
            name,
            Verdict.DIFFER if bad else Verdict.MATCH,
            iteration=iteration,
            bound=ErrorBound(1e-6),
            element_count=5,
            differing_count=int(bad),
            first_index=(1,) if bad else None,
            first_differences=(element,) if bad else (),
        )
        for name in ("u", "v")
        for iteration in range(400)
        for bad in [name == "u" and iteration >= 100]
    ]
    text = render_junit(run_of(*results))
    cases = list(ElementTree.fromstring(text).iter("testcase"))
    assert [one.get("name") for one in cases] == ["u", "v"]
    assert all(one.get("time") is None for one in cases)
    (failure,) = ElementTree.fromstring(text).iter("failure")
    assert (failure.get("message") or "").startswith("300 of 400 checkpoints, first iter 100 / u: ")
    assert "280 more checkpoints" in (failure.text or "")
    assert len(text) < 8000


@pytest.mark.parametrize(
    ("first", "last", "part"),
    [(3, 3, (0, 44)), (5000, 5000, (4960, 5041)), (40_000, 44_000, (39_500, 44_501))],
)
def test_the_part_of_a_long_line_that_differs_is_drawn_and_named(
    first: int, last: int, part: tuple[int, int]
) -> None:
    golden = np.sin(np.arange(100_000) / 1e4)
    new = golden.copy()
    new[first : last + 1] += 0.5
    found = api.compare_arrays(golden, new, atol=1e-6)
    assert found.details is not None
    zoom = found.details.zoom
    assert zoom is not None
    assert (zoom.start, zoom.stop) == part
    page = html.unescape(render_html(run_of(found)))
    assert f"the part [{part[0]}:{part[1]}]" in page


def test_all_rows_of_a_run_have_one_axis_of_iterations() -> None:
    early = [one_of("early", iteration, at_fault=iteration == 2) for iteration in (1, 2, 3)]
    late = [one_of("late", iteration, at_fault=True) for iteration in (7, 8)]
    page = render_html(run_of(*early, *late))
    beats = re.findall(r'class="beat"[^>]*width="(\d+)".*?<title>(\d) iterations: ([^<]*)<', page)
    assert {width for width, _, _ in beats} == {"60"}
    assert {(count, words) for _, count, words in beats} == {
        ("3", "2 match, 1 differs"),
        ("2", "2 differ"),
    }


def one_of(name: str, iteration: int, *, at_fault: bool) -> VariableResult:
    values = np.arange(9.0)
    found = api.compare_arrays(values, values + at_fault, atol=1e-6)
    return replace(found, name=name, iteration=iteration)


def test_a_few_elements_are_not_spread_over_an_array() -> None:
    golden = np.random.default_rng(0).random((30, 30))
    new = golden.copy()
    new[0, 0] += 0.3
    new[29, 29] += 0.7
    page = render_html(run_of(api.compare_arrays(golden, new, atol=1e-6)))
    assert "pread over" not in page.split("<style>")[0] + page.split("</style>")[1]
    assert "first at [0, 0]" in page.lower().replace("\u00a0", " ")


def test_hidden_axes_and_the_middle_of_a_scale_are_told() -> None:
    assert axes_words([2]) == "axis 2"
    assert axes_words([0, 1, 4]) == "axes 0, 1 and 4"
    assert scale_ticks(-1e308, 1e308) == ("-1e308", "0", "1e308")
    assert scale_ticks(1.0, 1.7e308) == ("0", "8.5e307", "1.7e308")
    assert scale_ticks(2.0, 3.0) == ("2", "2.5", "3")


def test_differences_at_the_faces_are_placed_there() -> None:
    golden = np.random.default_rng(0).random((60, 60))
    new = golden.copy()
    new[:, [0, -1]] += np.random.default_rng(1).random((60, 2))
    page = render_html(run_of(api.compare_arrays(golden, new, atol=1e-6)))
    assert "At the boundary of axis 1" in page
    assert "pread over the whole array" not in page


def test_the_terminal_tells_a_check_of_a_run_by_variables() -> None:
    results = [one_of("u", iteration, at_fault=iteration > 2) for iteration in range(1, 6)]
    stream = io.StringIO()
    render(run_of(*results), make_console(stream, color=False))
    text = " ".join(stream.getvalue().split())
    assert "DIFFER u: from iteration 3 on; 27 of 27 values differ there; up to 1e6 x" in text
    assert text.count("DIFFER u") == 1
    assert "u ..###" in text
