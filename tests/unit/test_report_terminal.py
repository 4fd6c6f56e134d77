"""What people read: short, the worst first, and nothing from a file unescaped."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap import api
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    CommandOutcome,
    DifferingElement,
    ErrorBound,
    Evidence,
    Message,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.variable_result import Cause, Explanation
from ciwrap.report.console import make_console
from ciwrap.report.digest_words import share_interval_words
from ciwrap.report.terminal import render
from ciwrap.report.text import (
    at_most_text,
    bytes_text,
    percent_text,
    rounded_down,
    rounded_up,
    safe_name,
    safe_text,
    share_text,
)
from ciwrap.report.where import timeline_lines, timelines_of
from ciwrap.report.words import headline, interval_text

BOUND = ErrorBound(1e-6)


def shown(result: RunResult, **options: Any) -> str:
    stream = io.StringIO()
    render(result, make_console(stream), **options)
    return stream.getvalue()


def run_of(*variables: VariableResult, **more: Any) -> RunResult:
    verdict = Verdict.worst(variable.verdict for variable in variables)
    check = CheckResult("mesh", verdict, variables, golden_path="golden/mesh.golden", **more)
    return RunResult(verdict, (check,))


def match(name: str, share: float | None = None) -> VariableResult:
    return VariableResult(
        name,
        Verdict.MATCH,
        evidence=Evidence.RESIDUES,
        bound=BOUND,
        element_count=10,
        differing_count=0,
        max_drift_share=share,
    )


def differ(name: str, share: float = 42.0, **more: Any) -> VariableResult:
    return VariableResult(
        name,
        Verdict.DIFFER,
        evidence=Evidence.DATA,
        bound=BOUND,
        element_count=100,
        differing_count=3,
        first_index=(3, 7),
        first_differences=(DifferingElement((3, 7), "1.0", "1.000042", 4.2e-5, share),),
        max_abs_difference=4.2e-5,
        max_abs_index=(3, 7),
        max_bound_share=share,
        **more,
    )


def lost(name: str) -> VariableResult:
    return VariableResult(name, Verdict.NOT_COMPARABLE, reason="is not in the outputs")


def test_the_verdict_comes_first_and_the_worst_leads() -> None:
    text = shown(run_of(match("a"), differ("b", 2.0), differ("c", 50.0), lost("d")))
    lines = text.splitlines()
    assert lines[0].startswith("NOT COMPARABLE  4 variables: 1 not comparable, 2 differ, 1 match")
    order = [text.index(words) for words in ("d: is not", "c [data]: ", "b [data]: ")]
    assert order == sorted(order)


def test_a_difference_says_where_and_how_much() -> None:
    text = shown(run_of(differ("density")))
    assert "3 of 100 values differ by more than the bound (atol=1e-6)" in text
    assert "first at [3, 7]: golden 1.0, new 1.000042" in text
    assert "42 x the bound" in text


def test_matches_are_one_line_that_tells_of_the_drift() -> None:
    text = shown(run_of(match("a", 0.31), match("b", 0.1)))
    assert "match  2 variables [residues], at most 31 % of the bound used (by a)" in text
    assert text.splitlines()[-1] == "    compared 2 variables, 20 values"
    assert len(text.splitlines()) == 4


def test_the_evidence_is_always_told() -> None:
    mixed = [match("a"), match("b"), replace(match("c"), evidence=Evidence.TREE)]
    assert "match  3 variables [2 residues, 1 tree]" in shown(run_of(*mixed))
    assert "DIFFER  density [data]: 3 of" in shown(run_of(differ("density")))


def test_suspects_on_residues_are_not_sold_as_proof() -> None:
    variable = VariableResult(
        "vx",
        Verdict.DIFFER,
        evidence=Evidence.RESIDUES,
        bound=BOUND,
        element_count=100,
        differing_count_at_least=0,
        differing_count_at_most=64,
        chunk_count=2,
        suspect_chunks=1,
        suspect_ranges=(ChunkRange(0, 63, (0, 0), (6, 3)),),
        suspect_range_count=1,
        residue_levels=15,
        guaranteed_share=0.875,
    )
    text = shown(run_of(variable))
    assert "in it, a value moved by more than 87.5 % of the bound (atol=1e-6 rtol=0)" in text
    assert "in values [0, 0] to [6, 3]" in text


def test_suspects_of_a_plain_tree_may_be_false_alarms() -> None:
    variable = VariableResult(
        "vx",
        Verdict.DIFFER,
        evidence=Evidence.TREE,
        bound=BOUND,
        element_count=100,
        differing_count_at_least=0,
        differing_count_at_most=64,
        chunk_count=2,
        suspect_chunks=1,
    )
    assert "whether beyond its bound (atol=1e-6 rtol=0)" in shown(run_of(variable))


def test_sure_suspects_give_limits() -> None:
    variable = VariableResult(
        "id",
        Verdict.DIFFER,
        evidence=Evidence.TREE,
        bound=ErrorBound(),
        element_count=100,
        differing_count_at_least=1,
        differing_count_at_most=64,
        chunk_count=2,
        suspect_chunks=1,
    )
    assert "from 1 to 64 of 100 values differ" in shown(run_of(variable))


def test_one_reason_for_many_variables_is_one_line() -> None:
    text = shown(run_of(*(lost(f"v{number}") for number in range(30))))
    assert "v0, v1, v10, v11 and 26 more: is not in the outputs" in text
    assert "compared nothing; not compared: 30 variables not comparable" in text
    assert len(text.splitlines()) == 4


def test_a_difference_says_how_to_accept_it() -> None:
    text = shown(run_of(differ("density")))
    assert text.splitlines()[-1].strip() == (
        "if the new numbers are right: ciwrap accept mesh --reason '...'"
    )
    assert "accept" not in shown(run_of(match("density")))


def test_long_lists_are_cut_and_say_so() -> None:
    variables = [
        replace(differ(f"v{number}"), max_abs_difference=1.5 + number) for number in range(30)
    ]
    text = shown(run_of(*variables))
    assert "... and 22 more" in text
    assert "v29 [data]: " in shown(run_of(*variables), verbose=True)


def test_the_first_divergence_of_a_history() -> None:
    variables = [
        differ("late", 100.0, iteration=30, rank=0),
        differ("early", 2.0, iteration=20, rank=1),
        VariableResult(
            "x", Verdict.MATCH, iteration=10, element_count=1, differing_count=0, bound=BOUND
        ),
    ]
    assert "first difference: iter 20 / rank 1 / early" in shown(run_of(*variables))


def test_a_failed_command_shows_the_end_of_its_output() -> None:
    outcome = CommandOutcome("make run", "/w", 2, 1.0, output_tail="one\ntwo\x1b[31m\n")
    result = RunResult(Verdict.NOT_COMPARABLE, command=outcome)
    text = shown(result)
    assert "command 'make run' ended with exit code 2" in text
    assert "| two\\x1b[31m" in text


EVIL = "x\x1b[2J\r\n\x07\u202evil\u2066\ud800[bold]"


def test_names_from_files_are_harmless() -> None:
    message = Message(MessageLevel.ERROR, f"{EVIL} is bad")
    evil = differ(EVIL)
    check = CheckResult(EVIL, Verdict.DIFFER, (evil,), golden_path=EVIL, messages=(message,))
    text = shown(RunResult(Verdict.DIFFER, (check,), messages=(message,)), verbose=True)
    assert all(line.isprintable() for line in text.splitlines())
    assert "\\x1b[2J" in text
    assert "[bold]" in text
    text.encode("utf-8")


def test_values_from_files_are_harmless() -> None:
    element = DifferingElement((0,), EVIL, "\x9b2J")
    variable = VariableResult(
        "s",
        Verdict.DIFFER,
        evidence=Evidence.DATA,
        element_count=1,
        differing_count=1,
        first_differences=(element,),
    )
    assert all(line.isprintable() for line in shown(run_of(variable)).splitlines())


def test_plain_unless_asked() -> None:
    assert "\x1b" not in shown(run_of(differ("a")))
    stream = io.StringIO()
    render(run_of(differ("a")), make_console(stream, color=True))
    assert "\x1b[" in stream.getvalue()


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 % of the bound"),
        (0.0001, "< 0.1 % of the bound"),
        (0.31, "31 % of the bound"),
        (0.99999, "99.9 % of the bound"),
        (1.0, "100 % of the bound"),
        (1.001, "just beyond the bound"),
        (1.5, "1.50 x the bound"),
        (9.999, "10.00 x the bound"),
        (42.0, "42 x the bound"),
        (1e9, "1e9 x the bound"),
        (float("inf"), "far beyond the bound"),
    ],
)
def test_shares_in_words(share: float, text: str) -> None:
    assert share_text(share) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "at most 0 %"),
        (0.0009, "less than 0.1 %"),
        (0.31, "at most 31 %"),
        (0.31 * (1 + 1e-15), "at most 31 %"),
        (0.31001, "at most 31.1 %"),
        (1 / 3, "at most 33.4 %"),
        (0.09999, "at most 10 %"),
        (0.998, "at most 99.8 %"),
        (0.99996, "less than 100 %"),
        (1.0, "at most 100 %"),
    ],
)
def test_what_something_does_not_pass_is_rounded_up(share: float, text: str) -> None:
    assert at_most_text(share) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, 0.03125, "less than 3.13 %"),
        (0.0, 1.0, "less than 100 %"),
        (0.4995, 0.5625, "49.9 to 56.3 %"),
        (0.49999904, 0.515625, "50 to 51.6 %"),
        (0.30781728, 1.0, "30.7 to 100 %"),
        (0.9997, 0.9999, "99.9 to 100 %"),
    ],
)
def test_both_ends_of_an_interval_are_rounded_outwards(low: float, high: float, text: str) -> None:
    assert interval_text(low, high) == f"{text} of the bound"


def test_what_moved_by_more_than_a_share_did() -> None:
    """The share is made a hair smaller than what the steps come to, which is not told."""
    random = np.random.default_rng(0)
    for value in (10 ** random.uniform(-3, 5, 500)).tolist():
        assert value * 0.99 < rounded_down(value) <= value * (1 + 3e-6)
        assert value * (1 - 1e-9) <= rounded_up(value) < value * 1.01
    assert share_interval_words(1.3749, 1.3751) == "1.37 to 1.38 x the bound"
    assert share_interval_words(1.375, 1.375) == "1.38 x the bound"
    golden = random.normal(size=2000)
    for bound in ({"atol": 1e-6, "rtol": 0.1}, {"rtol": 0.05}, {"atol": 1e-3, "rtol": 1e-2}):
        for levels in (3, 5, 15, 63):
            made = api.make_golden(
                {"x": golden}, evidence="residues", residue_levels=levels, **bound
            )
            found = api.check_array(golden * (1 + 9 * bound["rtol"]), made.variables[0])
            assert found.guaranteed_share is not None
            assert found.least_share is not None
            if not found.moved_elements:
                (said,) = re.findall(r"at least ([0-9.]+) x the bound", headline(found))
                assert float(said) <= found.least_share * (1 + 3e-6)
                assert found.least_share <= 9


def test_what_is_below_the_bound_is_never_shown_as_all_of_it() -> None:
    assert percent_text(1 - 1e-12) == "99.9 %"


def test_sizes_in_words() -> None:
    assert [bytes_text(count) for count in (1, 512, 1536, 5 << 30)] == [
        "1 byte",
        "512 bytes",
        "1.5 KiB",
        "5.0 GiB",
    ]


def test_safe_text_leaves_ordinary_text_alone() -> None:
    assert safe_text("dichte_äß 密度 [a]") == "dichte_äß 密度 [a]"
    assert safe_name("n" * 500).startswith("nnn")
    assert len(safe_name("n" * 500)) <= 200


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_several_lines_are_broken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    stream = Terminal()
    make_console(stream, color=False).print("  a  one two three four five six\n  b  two\n\nc")
    assert stream.getvalue() == "  a  one two three four\n    five six\n  b  two\n\nc\n"
    styled = Terminal()
    make_console(styled, color=True).print("a\nb", "bold")
    assert styled.getvalue() == "\x1b[1ma\x1b[0m\n\x1b[1mb\x1b[0m\n"


def many_checks(count: int, bad: int) -> RunResult:
    """So many checks of two variables each; the first few differ, alike."""
    checks = []
    for number in range(count):
        is_bad = number < bad
        one = differ("b") if is_bad else match("b")
        verdict = Verdict.DIFFER if is_bad else Verdict.MATCH
        checks.append(CheckResult(f"c{number:04d}", verdict, (one, match("a"))))
    worst = Verdict.DIFFER if bad else Verdict.MATCH
    return RunResult(worst, tuple(checks))


def test_all_checks_that_match_are_one_line() -> None:
    lines = shown(many_checks(1000, 0)).splitlines()
    assert len(lines) == 4
    assert lines[1] == "  match  c0000, c0001, c0002, c0003 and 996 more"
    assert lines[2].startswith("    match  2,000 variables")


def test_a_thousand_checks_take_a_screen_and_the_alike_stand_together() -> None:
    text = shown(many_checks(1000, 30))
    lines = text.splitlines()
    assert len(lines) <= 60
    # What fails comes last, where a log is opened.
    assert lines[1].startswith("  match  c0030")
    assert "    likewise: c0001, c0002, c0003, c0004 and 25 more" in lines
    assert "c0999" in shown(many_checks(1000, 30), verbose=True)


def test_checks_that_differ_otherwise_are_counted_where_there_is_no_room() -> None:
    run = many_checks(60, 60)
    checks = tuple(
        replace(one, variables=(differ(f"v{number}"),)) for number, one in enumerate(run.checks)
    )
    lines = shown(replace(run, checks=checks)).splitlines()
    assert len(lines) <= 60
    (rest,) = (line for line in lines if "more checks" in line)
    told = sum(line.startswith("  DIFFER") for line in lines)
    assert f"{60 - told} more checks, not shown: {60 - told} differ" in rest


def history(*shares: float, **more: Any) -> CheckResult:
    """`u` in iterations 0, 10, ...; it differs where the share is above 1."""
    found = [
        replace(match("u", share) if share <= 1 else differ("u", share, **more), iteration=10 * at)
        for at, share in enumerate(shares)
    ]
    return CheckResult("basin", Verdict.DIFFER, tuple(found), golden_path="golden/basin.golden")


@pytest.mark.parametrize(
    ("shares", "legend"),
    [
        ((0.0, 0.5, 3.0), "over iterations 0 to 20 (. match, ~ within the bound, # beyond)"),
        ((0.0, 3.0), "over iterations 0 to 10 (. match, # beyond)"),
    ],
)
def test_the_legend_has_the_marks_that_are_there(shares: tuple[float, ...], legend: str) -> None:
    assert next(timeline_lines(timelines_of(history(*shares)))) == legend


def test_the_last_lines_say_where_it_began_before_they_offer_to_accept() -> None:
    lines = shown(RunResult(Verdict.DIFFER, (history(0.0, 0.5, 3.0),))).splitlines()
    assert lines[-2:] == [
        "  look at what computes or writes `u` between iterations 10 and 20",
        "  if the new numbers are right: ciwrap accept basin --reason '...'",
    ]
    lines = shown(RunResult(Verdict.DIFFER, (history(3.0, 3.0),))).splitlines()
    assert lines[-2] == "  look at what computes or writes `u` up to iteration 0"


@pytest.mark.parametrize(("new", "word"), [("nan", "NaN"), ("-inf", "infinite")])
def test_what_became_nan_is_looked_for_before_it_is_accepted(new: str, word: str) -> None:
    element = DifferingElement((3, 7), "1.0", new, None, math.inf)
    check = history(0.0, 3.0)
    lost = replace(check.variables[1], first_differences=(element,))
    lines = shown(
        RunResult(Verdict.DIFFER, (replace(check, variables=(check.variables[0], lost)),))
    ).splitlines()
    assert lines[-2:] == [
        f"  look at what makes `u` {word} between iterations 0 and 10",
        f"  if {word} is meant to be there: ciwrap accept basin --reason '...'",
    ]


def test_every_variable_has_its_cause_in_a_word() -> None:
    told = (Explanation(Cause.SIGN_FLIPPED, 3, 3),)
    check = history(0.0, 3.0, 4.0)
    others = [
        replace(one, name="v", explanations=told if one.verdict is Verdict.DIFFER else ())
        for one in history(0.0, 0.5, 4.0).variables
    ]
    text = shown(
        RunResult(Verdict.DIFFER, (replace(check, variables=(*check.variables, *others)),))
    )
    assert "DIFFER  v: sign flipped; in iteration 20 only" in text
    assert "DIFFER  u: from iteration 10 on" in text


def test_what_has_no_iteration_is_not_called_the_first() -> None:
    """Totals that are written at the end differ whenever anything does."""
    check = history(0.0, 3.0)
    total = differ("total", 1.5)
    text = shown(RunResult(Verdict.DIFFER, (replace(check, variables=(total, *check.variables)),)))
    assert "first difference: iter 10 / u" in text
