"""What repeated runs came to, in words and as a page: safe, bounded, and saying what it should."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

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
from ciwrap.report.paths import relative_to
from ciwrap.report.repeat_html import MOST_CURVES, render_repeat_html
from ciwrap.report.repeat_words import (
    factor_words,
    headline,
    present_words,
    suggestion_words,
    variable_words,
)

HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m\n"
BOUND = BoundSuggestion(2e-6, 0.0, 3, 9, 0.95, 0.717, noise_multiple=14.2)
NOISE = RepeatedVariable(
    "mesh", "density", Behaviour.NOISE, (1, 2, 2), 2, max_abs=5e-7, max_abs_run=2,
    suggested_bound=BOUND, present_bound=ErrorBound(1e-3), present_share=5e-4,
    present_fit=BoundFit.TOO_WIDE,
)  # fmt: skip
EQUAL = RepeatedVariable("mesh", "id", Behaviour.EQUAL, (1, 1, 1), 1, max_abs=0.0)
GROWING = replace(
    NOISE, name="flow", kind=Behaviour.GROWING, growth_rate=0.5, compare_until=20, spread=1.0,
    by_iteration=tuple(
        IterationSpread(10 * n, 3, 10.0 ** (n - 12), 10.0 ** (n - 13)) for n in range(8)
    ),
)  # fmt: skip
RUNS = tuple(RepeatedRun(number, number, seconds=1.0, exit_code=0) for number in (1, 2, 3))


def result(*variables: RepeatedVariable, **more: object) -> RepeatResult:
    runs = more.pop("runs", RUNS)
    made = RepeatResult("What was found", 0, runs=runs, variables=variables)  # type: ignore[arg-type]
    return replace(made, **more)  # type: ignore[arg-type]


def test_the_first_sentence() -> None:
    assert headline((NOISE, EQUAL), RUNS) == (
        "1 of 2 variables varies, at most 5e-7; `atol: 2e-6` would hold; nothing grows"
    )
    assert headline((EQUAL,), RUNS) == "all 1 variable is equal to the bit in 3 runs"
    other = replace(NOISE, name="x", suggested_bound=replace(BOUND, atol=0.0, rtol=1e-9))
    assert "`atol: 2e-6` and `rtol: 1e-9` would hold" in headline((NOISE, other), RUNS)
    assert headline((GROWING,), RUNS).endswith(
        "flow grows exponentially, compare up to iteration 20"
    )


def test_the_first_sentence_tells_of_what_failed_before_all_else() -> None:
    failed = (*RUNS, RepeatedRun(4, 4, problem="it broke"))
    fault = replace(NOISE, kind=Behaviour.NOT_COMPARABLE, reason="NaN", suggested_bound=None)
    found = headline((fault, EQUAL), failed)
    assert found.startswith("run 4 of 4 was not compared; 1 variable cannot be compared (density)")


@pytest.mark.parametrize(
    ("fit", "share", "words"),
    [
        (BoundFit.FITS, 0.25, "fits (25 % used)"),
        (BoundFit.TOO_TIGHT, 4.0, "is too tight (400 % used)"),
        (BoundFit.TOO_WIDE, 5e-4, "is too wide (< 0.1 % used)"),
    ],
)
def test_what_the_present_bound_is(fit: BoundFit, share: float, words: str) -> None:
    said = present_words(replace(NOISE, present_fit=fit, present_share=share))
    assert said == f"the present bound atol=0.001 rtol=0 {words}"


def test_what_a_suggestion_rests_on() -> None:
    assert suggestion_words(BOUND) == (
        "atol: 2e-6 would hold (3 x largest of 9 differences, 14.2 times the typical noise)"
    )


def test_what_a_factor_does() -> None:
    found = FactorFinding("threads", "mesh", "x", 8, 8, 4, 0, 1.0, 5e-13, changes=True)
    assert factor_words(found) == "changes x: 8 of 8 pairs of runs differ, |d| up to 5e-13"
    none = replace(found, differing=0, differing_share=0.0, max_abs=0.0, changes=False)
    assert factor_words(none) == "does not change x: 0 of 8 pairs of runs differ"


def test_the_page_says_it_all() -> None:
    text = render_repeat_html(
        result(
            NOISE, EQUAL, GROWING,
            messages=(Message(MessageLevel.ERROR, "run 2: it broke"),),
            factors=(FactorFinding("threads", "mesh", "density", 8, 8, 4, 0, changes=True),),
        )
    )  # fmt: skip
    for words in ("What was found", "density", "run 2: it broke", "changes density", "until 20"):
        assert words in text
    assert "14.2 times the typical noise" in text
    assert text.count('class="chart"') == 2  # classes, and the one history


def test_nothing_of_a_name_gets_out_unescaped() -> None:
    hostile = replace(GROWING, name=HOSTILE, check=HOSTILE, reason=HOSTILE)
    text = render_repeat_html(
        result(
            hostile,
            headline=HOSTILE,
            messages=(Message(MessageLevel.ERROR, HOSTILE),),
            runs=(RepeatedRun(1, 1, factors={HOSTILE: "on"}, problem=HOSTILE),),
            factors=(FactorFinding(HOSTILE, HOSTILE, HOSTILE, 1, 1, 0, 0, changes=True),),
        )
    )
    assert "<script" not in text
    assert not re.search("[\u202e\x1b]", text)


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    text = render_repeat_html(result(NOISE))
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'" in text
    assert not re.search(r'(?:src|href)="(?!data:,|#)', text)
    assert 'style="' not in text


def test_the_page_is_bounded() -> None:
    many = tuple(replace(GROWING, name=f"v{number}") for number in range(3000))
    runs = tuple(RepeatedRun(number, 0) for number in range(1, 2001))
    text = render_repeat_html(result(*many, runs=runs))
    assert len(text) < 1_000_000
    assert text.count("until 20") == MOST_CURVES
    assert "more variables; the JSON result has everything" in text


def test_paths_leave_the_machine_relative() -> None:
    folder = "/home/me/p/.ciwrap/repeat/run_1"
    found = result(NOISE, runs=(RepeatedRun(1, 1, problem="/home/me/p/out/x: bad", folder=folder),))
    (run,) = relative_to(found, Path("/home/me/p")).runs
    assert run.folder == ".ciwrap/repeat/run_1"
    assert run.problem == "out/x: bad"
    assert "/home/me" not in render_repeat_html(found)


def test_kinds_in_words() -> None:
    assert variable_words(EQUAL) == ["equal in all runs"]
    assert variable_words(NOISE)[:2] == ["2 different results", "|d| up to 5e-7 (run 2)"]
    assert "grows by e every 2 iterations" in variable_words(GROWING)
