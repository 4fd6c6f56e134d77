"""Sentences and marks of the page that once said more than was known, or less than was there."""

from __future__ import annotations

import html
import io
import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from zlib import decompress

import numpy as np
import pytest
import report_cases as cases
from msgspec.structs import replace

from ciwrap import api
from ciwrap.model import (
    CheckResult,
    ErrorBound,
    Evidence,
    Message,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import BOUND_CLASS, Cause, Explanation, IndexBox, TextResult
from ciwrap.report import lead as findings
from ciwrap.report.cause_words import cause_words
from ciwrap.report.console import make_console
from ciwrap.report.digest_words import by_digests_sentence
from ciwrap.report.document import from_document
from ciwrap.report.failure import failure_lines
from ciwrap.report.markdown import render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.place_words import box_text
from ciwrap.report.terminal import render
from ciwrap.report.text import index_text, numbers_apart
from ciwrap.report.view import _shrunk

if TYPE_CHECKING:
    from pathlib import Path


def run_of(*variables: VariableResult, **more: Any) -> RunResult:
    verdict = Verdict.worst(one.verdict for one in variables)
    return RunResult(verdict, (CheckResult("c", verdict, variables, **more),))


def _names(run: RunResult) -> str:
    """The page with names as the terminal has them."""
    return re.sub("</?code>", "`", render_html(run))


def text_of(run: RunResult) -> str:
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", _names(run), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(page)).replace("\u00a0", " ").replace("\u00d7", "x")


def differing(iteration: int, columns: tuple[int, int], **more: Any) -> VariableResult:
    return VariableResult(
        "u",
        Verdict.DIFFER,
        iteration=iteration,
        evidence=Evidence.DATA,
        dtype="<f8",
        shape=(10, 40),
        bound=ErrorBound(1e-6),
        element_count=400,
        differing_count=10,
        first_index=(0, columns[0]),
        differing_box=IndexBox((0, columns[0]), (9, columns[1])),
        max_bound_share=10.0,
        max_abs_difference=1e-5,
        **more,
    )


def test_all_outputs_count_the_same_elements() -> None:
    """Those that differ, of those of the checkpoints in which some do."""
    rest = replace(differing(3, (5, 8)), verdict=Verdict.MATCH, differing_count=0)
    rest = replace(rest, max_bound_share=0.5, differing_box=None, first_index=None)
    run = run_of(differing(1, (5, 8)), differing(2, (5, 8)), rest, source_path="b")
    printed = io.StringIO()
    render(run, make_console(printed))
    for output in (printed.getvalue(), text_of(run), render_markdown(run)):
        assert "20 of 800" in output
        assert "of 1,200" not in output


def test_what_is_true_of_the_first_alone_is_not_said_of_all() -> None:
    moved = (Explanation(Cause.CONSTANT_OFFSET, 10, 10, values=(1e-5,)),)
    more = (Explanation(Cause.CONSTANT_OFFSET, 10, 10, values=(4e-5,)),)
    wider = text_of(run_of(differing(1, (5, 8)), differing(2, (5, 30))))
    assert "at first all within [:, 5:9]" in wider
    same = text_of(run_of(differing(1, (5, 8)), differing(2, (6, 8))))
    assert "all within [:, 5:9]" in same
    assert "at first all within" not in same
    pair = differing(1, (5, 8), explanations=moved), differing(2, (5, 8), explanations=more)
    assert "in iteration 1 offset 1e-5" in text_of(run_of(*pair))
    pair = differing(1, (5, 8), explanations=moved), differing(2, (5, 8), explanations=moved)
    assert "in iteration 1 offset" not in text_of(run_of(*pair))
    # Of a checkpoint without a box nobody knows where in it.
    unknown = replace(differing(2, (5, 8)), differing_box=None)
    assert "at first all within" in text_of(run_of(differing(1, (5, 8)), unknown))


def test_a_run_whose_defect_grows_is_told_so(tmp_path: Path) -> None:
    cases.make("growing_patch", tmp_path / "growing")
    page = text_of(read(tmp_path / "growing"))
    assert "the difference doubles in each iteration, from iteration 5 on" in page
    assert "B = A + 1e-5" in page
    assert "grows; all within [10:14, 20:30]" in page


def read(folder: Path) -> RunResult:
    return from_document(json.loads((folder / "result.json").read_text()))


@pytest.mark.parametrize(
    ("cause", "values", "axes", "words"),
    [
        (Cause.CONSTANT_OFFSET, (0.25,), (), "in all 9 values that differ, B = A + 0.25"),
        (Cause.CONSTANT_OFFSET, (-0.25,), (), "in all 9 values that differ, B = A - 0.25"),
        (Cause.OTHER_ORDER, (), (0,), "B has the rows of A in another order"),
        (
            *(Cause.TRANSPOSED, (), (0, 1)),
            "in all 9 values that differ, B is A transposed: B[i, j] = A[j, i]",
        ),
        (
            *(Cause.TRANSPOSED, (), (0, 2)),
            "in all 9 values that differ, B is A with axes 0 and 2 exchanged",
        ),
        (
            *(Cause.EXCHANGED, (2.0, 0.0), (1,)),
            "in all 9 values that differ, B is A with components 0 and 2 of axis 1 exchanged",
        ),
        (
            *(Cause.EXCHANGED, (2.0, 0.0, 1.0), (1,)),
            (
                "in all 9 values that differ, B is A with components 0, 1 and 2 of axis 1 in the"
                " order 2, 0, 1"
            ),
        ),
        (
            *(Cause.SHIFTED, (-2.0,), (1,)),
            "in all 9 values that differ, B is A shifted by -2 along axis 1: B[i] = A[i + 2]",
        ),
        (Cause.BOUNDARY, (1.0,), (2,), "all at the boundary of axis 2, in its first or last layer"),
        (
            *(Cause.BOUNDARY, (2.0,), (2,)),
            "all at the boundary of axis 2, in its first or last 2 layers",
        ),
        (
            *(Cause.STRIPE, (2.0, 8.0), (0,)),
            "all in the rows of axis 0 that OpenMP would deal to thread 2 of 8",
        ),
    ],
)
def test_causes_are_sentences(
    cause: Cause, values: tuple[float, ...], axes: tuple[int, ...], words: str
) -> None:
    told = Explanation(cause, 9, 9, values=values, axes=axes)
    assert cause_words(told, ("A", "B"), "x") == words


@pytest.mark.parametrize(
    ("held", "last", "words"),
    [
        (8, (3, 1), "in 8 of 9 values that differ (the other one is at [3, 1]), B = -A"),
        (
            7,
            (5, 9),
            "in 7 of 9 values that differ (the other 2 lie between [3, 1] and [5, 9]), B = -A",
        ),
    ],
)
def test_a_cause_says_where_it_does_not_hold(held: int, last: tuple[int, int], words: str) -> None:
    told = Explanation(Cause.SIGN_FLIPPED, held, 9, unexplained=IndexBox((3, 1), last))
    said = cause_words(told, ("A", "B"), "x").replace("the sign is flipped: ", "")
    assert said == words


def test_of_equal_numbers_the_range_is_one_number() -> None:
    flat = np.full(50, 2.5)
    result = api.compare_arrays(flat, flat + 0.5)
    assert "range of the golden 2.5 throughout" in text_of(run_of(result))
    result = api.compare_arrays(np.arange(50.0), np.arange(50.0) + 0.5)
    assert "range of the golden 0 to 49" in text_of(run_of(result))


def test_a_wider_bound_leaves_rtol_as_it_is() -> None:
    golden = np.linspace(1, 2, 50)
    result = api.compare_arrays(golden, golden + 1e-5, rtol=1e-6)
    (said,) = (one for one in result.explanations if one.cause is Cause.WIDER_BOUND)
    assert cause_words(said, ("A", "B"), "x").endswith("(rtol as it is)")


def test_a_single_cell_is_seen_in_a_thumb() -> None:
    for at in range(0, 2000, 37):
        values = bytes(30 if cell == at else 0 for cell in range(2000))
        shrunk, rows, columns = _shrunk(values, 1, 2000, 14)
        assert (rows, columns) == (1, 22)
        assert [cell for cell in shrunk if cell] == [30]
        assert shrunk.index(30) == at * 22 // 2000


def test_a_spike_in_a_long_line_is_seen_in_the_table(tmp_path: Path) -> None:
    cases.make("pictures", tmp_path / "pictures")
    page = render_html(read(tmp_path / "pictures"))
    (row,) = re.findall(r'<tr data-v="differ">(?:(?!</tr>).)*>spike<.*?</tr>', page, re.S)
    (uri,) = re.findall(r"data:image/png;base64,([^\"]+)", row)
    png = b64decode(uri)
    at = png.index(b"IDAT")
    line = decompress(png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at], "big")])[1:]
    assert len(line) <= 22
    assert max(line) >= 18
    # NaN is left out of sums, and the page says so.
    text = text_of(read(tmp_path / "pictures"))
    assert "9,750; mean, range and sum are of these" in text
    assert "sum of the others" in text


def test_marks_of_a_timeline_are_told_apart() -> None:
    lost = VariableResult("u", Verdict.NOT_COMPARABLE, iteration=2, reason="is gone")
    both = text_of(run_of(differing(1, (5, 8)), lost))
    assert "cross: does not match; dash: not compared; frame: the first of these" in both
    assert "dash: not compared" not in text_of(run_of(differing(1, (5, 8)), differing(2, (5, 8))))
    matching = VariableResult("u", Verdict.MATCH, iteration=1, differing_count=0)
    alone = text_of(run_of(matching, lost))
    assert "dash: not compared" in alone
    assert "a cross" not in alone


@pytest.mark.parametrize(("iterations", "ranks", "each"), [(200, 64, 8), (100, 16, 1), (101, 1, 2)])
def test_a_cell_of_several_checkpoints_says_so(iterations: int, ranks: int, each: int) -> None:
    variables = [
        replace(differing(iteration, (5, 8)), rank=rank)
        for iteration in range(iterations)
        for rank in range(ranks)
    ]
    said = "a checkpoint" if each == 1 else f"the worst of up to {each} checkpoints"
    assert f"one cell for {said};" in text_of(run_of(*variables))


def test_nothing_that_was_not_compared_is_said_to_have_been(tmp_path: Path) -> None:
    cases.make("same_reason", tmp_path / "same")
    page = text_of(read(tmp_path / "same"))
    assert "Compared nothing" in page
    assert "were compared value by value" not in page
    # Columns of numbers have nothing to say there.
    assert "how many differ" not in page
    assert "Hint : float32 on one side" in page
    assert "hint:" not in page


def test_a_file_that_cannot_be_read_is_the_reason(tmp_path: Path) -> None:
    cases.make("unreadable", tmp_path / "cut")
    run = read(tmp_path / "cut")
    stream = io.StringIO()
    render(run, make_console(stream, color=False))
    for text in (text_of(run), re.sub(r"\s+", " ", stream.getvalue())):
        assert "as far as files could be read; first fix what the errors name" in text
        assert "write it in both runs" not in text


def test_arrays_of_a_run_are_not_called_variables() -> None:
    lost = VariableResult("u", Verdict.NOT_COMPARABLE, iteration=2, reason="is gone")
    run = run_of(differing(1, (5, 8)), lost, replace(lost, iteration=3))
    assert run.coverage.not_compared == ("2 arrays not comparable",)
    one = replace(lost, iteration=None)
    assert run_of(one).coverage.not_compared == ("1 variable not comparable",)


def test_large_counts_have_separators() -> None:
    told = VariableResult(
        "u",
        Verdict.DIFFER,
        evidence=Evidence.RESIDUES,
        bound=ErrorBound(1e-6),
        element_count=65536,
        suspect_chunks=1000,
        chunk_count=1280,
        differing_count_at_least=1752,
        differing_count_at_most=5120,
    )
    said = "1,000 of 1,280 blocks differ: from 1,752 to 5,120 of 65,536 values differ"
    assert by_digests_sentence(told).startswith(said)


def test_one_variable_matches() -> None:
    one = api.compare_arrays(np.ones(9), np.ones(9), atol=1e-6)
    assert "1 variable in 1 check matches" in text_of(run_of(one))


def test_all_elements_are_not_first_at_the_first() -> None:
    found = api.compare_arrays(np.arange(8.0), np.arange(8.0) + 1, atol=1e-6)
    page = text_of(run_of(found))
    assert "in every value" in page
    assert "first at [0]" not in page


def test_the_id_that_names_the_rows_is_named(tmp_path: Path) -> None:
    cases.make("orders", tmp_path / "orders")
    run = read(tmp_path / "orders")
    told = {
        variable.name: [one.remedy for one in variable.explanations if one.remedy][:1]
        for variable in run.checks[0].variables
    }
    assert told["id"] == told["velocity"] == ["align_by: id"]
    assert "align_by: ID" not in text_of(run)
    # Whole numbers are equal or are not, whatever bound there is.
    found = api.compare_arrays(np.arange(9), np.arange(9) + 1, atol=1e-9)
    assert "a bound of 0" not in text_of(run_of(found))


def test_a_summary_says_what_to_do_next(tmp_path: Path) -> None:
    cases.make("orders", tmp_path / "orders")
    summary = html.unescape(render_markdown(read(tmp_path / "orders")))
    assert "- hint: id holds the same values in another order: try --align-by id" in summary
    named = "**align_by: id** would help id, velocity, if the order of rows means nothing"
    assert f"- {named}" in summary
    # Of equal numbers, rounding leaves something.
    named = "**{atol: 1.8e-15, period: [12.5, 12.5, 12.5]}** would help position, if the values lie"
    assert named in summary
    assert "To decide" not in summary
    cases.make("undecided", tmp_path / "undecided")
    summary = html.unescape(render_markdown(read(tmp_path / "undecided")))
    assert "To decide, run the old version again" in summary
    assert "ciwrap accept t r --reason" in summary


def test_messages_keep_their_level() -> None:
    one = api.compare_arrays(np.ones(9), np.ones(9))
    notes = (
        Message(MessageLevel.NOTE, "hint: try it"),
        Message(MessageLevel.WARNING, "a hint: no"),
    )
    page = text_of(replace(run_of(one), messages=notes))
    assert "Warning : a hint: no" in page
    assert "Hint : try it" in page


def lines_of(one: VariableResult) -> str:
    stream = io.StringIO()
    render(run_of(one), make_console(stream))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("golden", "new", "bound", "words"),
    [
        (0.0, 1e-3, {"rtol": 1e-6}, "|difference| 0.001, beyond a bound of 0"),
        (0.0, 1e300, {"atol": 1e-300}, "|difference| 1e300, far beyond the bound"),
        (1e-300, 1e300, {"rtol": 1e-6}, "|difference| 1e300, far beyond the bound"),
        (1.0, 3.0, {"atol": 1.0}, "|difference| 2 = 2.00 x the bound"),
    ],
)
def test_nothing_equals_what_is_no_multiple_of_the_bound(
    golden: float, new: float, bound: dict[str, float], words: str
) -> None:
    found = api.compare_arrays(np.array([golden, 1.0]), np.array([new, 1.0]), **bound)
    assert f"{words}\n" in lines_of(found)
    if "bound of 0" not in words:
        assert "a bound of 0" not in text_of(run_of(found))


def test_all_outputs_tell_variables_in_one_order() -> None:
    """Where several are infinitely many bounds off, all have to agree which one is the worst."""
    golden = {"a": np.array([1.0, 2.0]), "b": np.ones(9), "c": np.ones(3)}
    new = {"a": np.array([np.nan, 2.5]), "b": np.full(9, np.nan), "c": np.full(3, np.nan)}
    run = run_of(
        *(
            replace(api.compare_arrays(golden[name], new[name], atol=1e-3), name=name)
            for name in golden
        )
    )
    stream = io.StringIO()
    render(run, make_console(stream))
    assert re.findall(r"DIFFER  ([a-c]) ", stream.getvalue()) == ["a", "b", "c"]
    assert re.findall(r"\| (\w) \|", render_markdown(run)) == ["a", "b", "c"]
    assert re.findall(r"^  (\w): ", "\n".join(failure_lines("c", run.checks[0], [])), re.M) == [
        "a",
        "b",
        "c",
    ]
    assert findings.lead(run)[0].startswith("Worst: `a`: ")


def test_what_is_called_the_largest_difference_is_the_largest() -> None:
    """A flag that is compared exactly comes before numbers that are far beyond their bound."""
    flag = api.compare_arrays(np.array([True, False]), np.array([True, True]))
    number = api.compare_arrays(np.array([0, 7]), np.array([1 << 60, 7]), atol=3)
    run = run_of(replace(flag, name="flag"), replace(number, name="number"))
    assert findings.lead(run)[0].startswith("Worst: `flag`: ")
    other = api.compare_arrays(np.array([0, 7]), np.array([1 << 60, 7]))
    run = run_of(replace(flag, name="flag"), replace(other, name="number"))
    assert findings.lead(run)[0].startswith("Largest difference: `number`: ")


def test_what_doubles_cannot_tell_of_whole_numbers_is_not_told() -> None:
    big = np.array([(1 << 63) - 2])
    page = text_of(run_of(api.compare_arrays(big, big + 1)))
    assert "root mean square" not in page
    assert "conserved" not in page
    assert "in the interior" not in page
    assert "largest |difference| 1 " in page


def test_no_mean_of_nothing_is_told() -> None:
    found = api.compare_arrays(np.ones(3), np.full(3, np.nan), atol=1e-3)
    assert "mean |difference|" not in "\n".join(failure_lines("c", run_of(found).checks[0], []))


def test_of_complex_numbers_parts_are_counted_where_there_is_no_number() -> None:
    """More elements were lost than there are; and within the bound is no largest difference."""
    golden = np.array([1 + 1j, 2 + 2j])
    new = np.array([1 + 1e-9 + 1j, complex(np.nan, np.nan)])
    run = run_of(api.compare_arrays(golden, new, atol=1e-3))
    texts = [text_of(run), lines_of(run.checks[0].variables[0]), render_markdown(run)]
    assert all("values NaN" not in text for text in texts)
    assert all("2 parts NaN without a match" in text for text in texts)
    assert "largest |difference|" not in texts[1]
    new[0] = 7
    both = lines_of(api.compare_arrays(golden, new, atol=1e-3))
    assert "largest |difference| 6" in both


def test_no_difference_of_finite_numbers_is_infinite() -> None:
    found = api.compare_arrays(np.array([1e308, 1.0]), np.array([-1e308, 1.0]), atol=1.0)
    run = run_of(found)
    failure = "\n".join(failure_lines("c", run.checks[0], []))
    for text in (text_of(run), lines_of(found), html.unescape(render_markdown(run)), failure):
        assert "|difference| over 1.79e308" in text
        assert "|difference| inf" not in text
        assert "relative inf" not in text
        # It is 2; and the mean is 1e308.
        assert "relative over" not in text
        assert "mean |difference| over" not in text
    assert not re.search("mean .difference. *over", text_of(run))


def test_an_exact_golden_of_digests_alone_has_no_infinite_share() -> None:
    old = np.arange(3000)
    new = old + (old == 9)
    made = api.make_golden({"i": old, "m": old == 9}, atol=1e-6, evidence="tree")
    pairs = zip((new, old == 8), made.variables, strict=True)
    found = [api.check_array(array, one) for array, one in pairs]
    run = run_of(*(replace(one, name=f"v{at}") for at, one in enumerate(found)))
    for text in (text_of(run), render_markdown(run)):
        assert "inf " not in text
        assert "Largest difference" not in text


def test_a_text_is_no_single_number() -> None:
    text = VariableResult(
        "log",
        Verdict.MATCH,
        evidence=Evidence.DATA,
        dtype="text",
        shape=(),
        element_count=9,
        differing_count=0,
        text=TextResult((2, 2), (0, 0), (0, 0), numbers=9, differing=0, ignored=0),
    )
    failure = "\n".join(failure_lines("c", run_of(text).checks[0], []))
    assert "text, golden keeps data" in failure
    assert "single number" not in failure


def test_a_question_ends_a_sentence() -> None:
    message = Message(MessageLevel.ERROR, "unknown key; did you mean 'ignore'?")
    lead = findings.lead(RunResult(Verdict.NOT_COMPARABLE, (), messages=(message,)))
    assert lead == ["unknown key; did you mean 'ignore'?"]


@pytest.mark.parametrize(("atol", "share"), [(0.5, None), (1.5, 2.0)])
def test_pictures_of_whole_numbers_tell_the_share_that_the_verdict_tells(
    atol: float, share: float | None
) -> None:
    """Whole numbers may be `atol`, rounded down, apart."""
    golden = np.arange(60).reshape(6, 10)
    new = golden.copy()
    new[2, 3] += 2
    result = api.compare_arrays(golden, new, atol=atol)
    assert result.max_bound_share == (np.inf if share is None else share)
    assert result.details is not None
    assert result.details.picture is not None
    classes = b64decode(result.details.picture.classes)
    assert max(classes) == (33 if share is None else 19)
    said = text_of(run_of(result))
    assert ("Where they differ" in said) == (share is None)
    assert ("|difference| / bound" in said) == (share is not None)


def test_a_view_and_a_histogram_have_exactly_the_bound_within_it() -> None:
    golden = np.zeros((4, 10))
    new = golden.copy()
    new[0, :5] = 0.5, 0.4999, 0.5001, 2.0, 0.25
    result = api.compare_arrays(golden, new, atol=0.5)
    assert result.differing_count == 2
    assert result.bound_share_histogram is not None
    assert sum(result.bound_share_histogram[BOUND_CLASS:]) == 2
    assert sum(result.bound_share_histogram) == golden.size
    assert result.details is not None
    assert result.details.view is not None
    (plane,) = result.details.view.planes
    codes = np.frombuffer(b64decode(plane), "<u2")[-golden.size :]
    # 32768 is the bound; the page has what is above it beyond, and colours from there on.
    assert np.flatnonzero(codes > 32768).tolist() == [2, 3]
    assert np.flatnonzero(codes >= 32768).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((1, 10), "Largest |difference| 1 at first, largest |difference| 10 at iteration 2."),
        ((10, 1), "Largest |difference| 10."),
        ((2, 2), "Largest |difference| 2."),
    ],
)
def test_the_largest_difference_of_what_is_compared_exactly_is_that_of_all_checkpoints(
    moved: tuple[int, int], words: str
) -> None:
    golden = np.arange(20)
    results = [
        replace(api.compare_arrays(golden, golden + (golden == 3) * one), name="n", iteration=at)
        for at, one in enumerate(moved, 1)
    ]
    assert f"How much {words}" in text_of(run_of(*results))


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (-45123.0, -45113.0, ["-45123", "-45113"]),
        (100425.0, 102225.0, ["100420", "102220"]),
        (0.0, 1.0, ["0", "1"]),
        (-0.1234567, 3.7654321, ["-0.123", "3.77"]),
        (7.0, 7.0, ["7", "7"]),
        (-1e300, 1e300, ["-1e300", "1e300"]),
    ],
)
def test_the_ends_of_a_range_are_told_apart(low: float, high: float, shown: list[str]) -> None:
    assert numbers_apart(low, high) == shown


def test_one_share_is_the_same_number_everywhere() -> None:
    """What a sentence calls `at most 19.6 %` is no 19.5 % in a column."""
    from ciwrap.report.text import at_most_text
    from ciwrap.report.words import interval_text

    for share in (0.19517, 0.1878, 0.0399, 0.5, 0.9996):
        told = at_most_text(share).removeprefix("at most ").removeprefix("less than ")
        assert interval_text(share, share).startswith(told if share < 0.999 else "99.9 %")


def test_indices_as_fortran_counts_stand_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    box, shape = IndexBox((0, 3), (5, 6)), (6, 9)
    assert (index_text((22, 16)), box_text(box, shape)) == ("[22, 16]", "[:, 3:7]")
    monkeypatch.setenv("CIWRAP_INDICES", "fortran")
    assert index_text((22, 16)) == "[22, 16] = (17, 23) in Fortran"
    assert index_text(()) == "[]"
    assert box_text(box, shape) == "[:, 3:7] = (4:7, 1:6) in Fortran"


@pytest.mark.parametrize(("chunks", "inside"), [(1, "in it"), (3, "in each")])
def test_what_residues_leave_open_is_said_once(chunks: int, inside: str) -> None:
    one = VariableResult(
        "u",
        Verdict.UNDECIDED,
        evidence=Evidence.RESIDUES,
        bound=ErrorBound(1e-6),
        element_count=1536,
        suspect_chunks=chunks,
        chunk_count=3,
        differing_count_at_most=512 * chunks,
        guaranteed_share=0.875,
    )
    page = text_of(run_of(one))
    assert f"may differ: {inside}, a value moved by more than 87.5 % of the bound" in page
    size = "More than 87.5 % of the bound; no values were kept that show how much more."
    assert page.count(size) == 1
