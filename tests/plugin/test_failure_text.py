"""What a failure says, in at most 20 lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.api import compare_arrays
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    DifferingElement,
    ErrorBound,
    Evidence,
    Message,
    MessageLevel,
    VariableResult,
    Verdict,
)
from ciwrap.report.failure import MOST_LINES, failure_lines

if TYPE_CHECKING:
    from plugin.conftest import Suite


HINT = (
    "if they are right: ciwrap accept tests/test_it.py::test_it::velocity --reason '...'"
    "  (to look closer: ciwrap review)"
)


def messages(result: pytest.RunResult) -> list[str]:
    return [line[1:].strip() for line in result.outlines if line.startswith("E ")]


def failing(suite: Suite, before: str, after: str) -> list[str]:
    text = "def test_it(ciwrap):\n    {}\n"
    suite.write(text.format(before))
    suite.run("--ciwrap-update=new")
    suite.write(text.format(after))
    lines = messages(suite.run())
    assert 0 < len(lines) <= MOST_LINES
    return lines


def test_one_array(suite: Suite) -> None:
    x = "np.arange(600.0).reshape(20, 30)"
    lines = failing(
        suite,
        f"ciwrap.check({x}, 'velocity', atol=1e-3)",
        f"x = {x}; x[3, 4:8] += 0.5; x[5, 5] = np.nan; x[9, 9] = np.inf;"
        " ciwrap.check(x, 'velocity', atol=1e-3)",
    )
    assert lines == [
        (
            "ciwrap.GoldenMismatch: velocity: 6 of 600 values (1 %) differ by more than the bound"
            " (atol=0.001)"
        ),
        "float64, shape 20x30, golden keeps data",
        "first at [3, 4]: golden 94.0, new 94.5, |difference| 0.5 = 500 x the bound",
        "then [3, 5]: golden 95.0, new 95.5",
        "then [3, 6]: golden 96.0, new 96.5",
        "then [3, 7]: golden 97.0, new 97.5",
        "largest |difference| 0.5 at [3, 4]; largest relative 0.00532",
        "1 value NaN without a match, 1 value infinite without a match",
        "mean |difference| 0.00334, mean relative 3.51e-5",
        "golden: golden/tests/test_it/test_it-velocity.golden",
        "the new numbers wait in .ciwrap/pending/tests/test_it/test_it-velocity.golden",
        HINT,
    ]


def test_by_how_many_bounds_comes_first(suite: Suite) -> None:
    """The summary of a run shows the first words alone."""
    lines = failing(
        suite,
        "ciwrap.check(1.0, 'velocity', atol=1e-6)",
        "ciwrap.check(1.006, 'velocity', atol=1e-6)",
    )
    # Of a single number nothing is said of places, shares and means.
    assert lines[0] == (
        "ciwrap.GoldenMismatch: velocity: 6,000 x the bound: 1 of 1 value differs"
        " by more than the bound (atol=1e-6)"
    )
    assert lines[1:3] == [
        "float64, a single number, golden keeps data",
        "golden 1.0, new 1.006, |difference| 0.006 = 6,000 x the bound; relative 0.006",
    ]
    two = "ciwrap.check({{'a': [1.0, 2.0], 'b': [{}, 2.0]}}, 'both', atol=1e-6)"
    lines = failing(suite, two.format(1.0), two.format(1.006))
    assert lines[0].endswith("both: up to 6,000 x the bound: 1 of 2 variables differs")
    assert lines[1].startswith("b: up to 6,000 x the bound: 1 of 2 values (50 %) differs")


def test_many_variables(suite: Suite) -> None:
    lines = failing(
        suite,
        "ciwrap.check({f'v{n}': 1.0 for n in range(40)})",
        "ciwrap.check({f'v{n}': 1.0 + (n > 4) for n in range(40)})",
    )
    assert lines[0].endswith("test_it: 35 of 40 variables differ")
    assert "5 other variables match" in lines
    assert any(line.startswith("... and ") for line in lines)


def test_what_only_residues_and_trees_know_is_not_made_up(suite: Suite) -> None:
    for evidence in ("residues", "tree"):
        text = "x = np.arange(5000.0); ciwrap.check(x{}, 'x', atol=1e-3, evidence='{}')"
        lines = failing(suite, text.format("", evidence), text.format("+ (x > 4990)", evidence))
        assert f"the golden keeps {'residues' if evidence == 'residues' else 'a tree'}, not" in (
            "\n".join(lines)
        )
        assert not any("first at" in line for line in lines)
        assert any("in values [4608:5000]" in line for line in lines)
        for path in (suite.root / "golden/tests/test_it").iterdir():
            path.unlink()


def test_hostile_text_in_names_is_shown_as_text(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.parametrize("x", [1.0], ids=["a'$(touch pwned)' \\u202e"])
        def test_it(x, ciwrap): ciwrap.check(x, "name; rm -rf /")
    """)
    text = suite.run().stdout.str()
    assert "ciwrap accept 'tests/test_it.py::test_it[a'\"'\"'$(touch pwned)" in text
    assert "\u202e" not in text


elements = st.builds(
    DifferingElement, st.tuples(st.integers(0, 9)), st.text(max_size=500), st.text(max_size=500)
)


@st.composite
def variables(draw: st.DrawFn) -> VariableResult:
    verdict = draw(st.sampled_from([one for one in Verdict if not one.is_statistical]))
    known = draw(st.booleans())
    differing = 0 if verdict is Verdict.MATCH else (3 if known else None)
    return VariableResult(
        draw(st.text(min_size=1)),
        verdict,
        reason=draw(st.text(min_size=1)) if verdict is Verdict.NOT_COMPARABLE else None,
        evidence=draw(st.sampled_from(Evidence)),
        dtype=draw(st.sampled_from(["<f8", ">i4", "|b1", "<bf2", "|S3", "<U4", None])),
        shape=draw(st.none() | st.tuples(st.integers(0, 9))),
        bound=draw(st.none() | st.just(ErrorBound(1e-6))),
        element_count=10,
        differing_count=differing,
        first_differences=tuple(draw(st.lists(elements, max_size=10))),
        chunk_count=4,
        suspect_chunks=2,
        suspect_ranges=tuple(draw(st.lists(st.just(ChunkRange(0, 3, (0,), (3,))), max_size=9))),
        max_abs_difference=draw(st.none() | st.floats(0)),
        max_abs_index=(1,),
        mean_abs_difference=draw(st.none() | st.floats(0)),
        mean_rel_difference=draw(st.none() | st.floats(0)),
        nan_mismatch_count=draw(st.integers(0, 2)),
        guaranteed_share=0.875,
        residue_levels=15,
    )


@given(
    st.lists(variables(), max_size=30),
    st.lists(st.builds(Message, st.sampled_from(MessageLevel), st.text()), max_size=9),
    st.lists(st.text(max_size=80).filter(str.isprintable), max_size=4),
)
def test_never_more_than_20_lines(
    found: list[VariableResult], notes: list[Message], tail: list[str]
) -> None:
    verdict = Verdict.NOT_COMPARABLE
    lines = failure_lines(
        "x", CheckResult("x", verdict, variables=tuple(found), messages=tuple(notes)), tail
    )
    assert 1 <= len(lines) <= MOST_LINES
    assert all(line.isprintable() and len(line) <= 400 for line in lines)
    assert lines[len(lines) - len(tail) :] == tail


@pytest.mark.parametrize(
    ("golden", "new", "bound"),
    [
        ([2.4e-16, 1.0], [7e-17, 1.0], {"rtol": 1e-6}),
        ([1.0, 2.0], [1.0, 2.0005], {}),
        ([1e300, -1e300], [1e300, -0.9995e300], {"atol": 1e296}),
        ([1.0], [1.0 + 2**-52], {}),
    ],
)
def test_the_bound_that_would_have_passed_does(
    suite: Suite, golden: list[float], new: list[float], bound: dict[str, float]
) -> None:
    suite.write(f"def test_it(ciwrap): ciwrap.check({golden}, **{bound})")
    suite.run("--ciwrap-update=new")
    suite.write(f"def test_it(ciwrap): ciwrap.check({new}, **{bound})")
    (line,) = [
        one for one in suite.run().outlines if "all of this variable would match with" in one
    ]
    told = dict(re.findall(r"(atol|rtol)=([^ ,;]+)", line))
    wide = {**bound, **{key: float(number) for key, number in told.items()}}
    assert compare_arrays(np.array(golden), np.array(new), **wide).verdict == "match"
    narrow = {**wide, "atol": wide["atol"] * 0.9}
    assert compare_arrays(np.array(golden), np.array(new), **narrow).verdict == "differ"


def test_no_bound_is_named_where_none_would_pass(suite: Suite) -> None:
    suite.write("def test_it(ciwrap): ciwrap.check([1.0, 2.0], atol=1e-6)")
    suite.run("--ciwrap-update=new")
    suite.write("def test_it(ciwrap): ciwrap.check([1.5, float('nan')], atol=1e-6)")
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "would match" not in result.stdout.str()


def test_a_defect_is_told_with_its_cause_and_no_bound_that_hides_it(suite: Suite) -> None:
    """By how many bounds it is off is said once, but for the first element."""
    text = "x = np.linspace(1, 2, 50); ciwrap.check({}, 'x', atol=1e-6)"
    lines = failing(suite, text.format("x"), text.format("np.where(x > 1.7, -x, x)"))
    assert lines[0].startswith("ciwrap.GoldenMismatch: x: up to 4e6 x the bound: 15 of 50")
    assert lines[2] == "in all 15 values that differ, the sign is flipped: new = -golden"
    assert lines[3].startswith("first at [35]: ")
    assert [line[:6] for line in lines[4:7]] == ["then ["] * 3
    assert not any("would match" in line for line in lines)
    assert sum("4e6 x" in line for line in lines) == 1
