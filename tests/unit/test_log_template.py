"""Templates against Python's own regular expressions, on lines rendered from known values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.formats.log_template import Problem, Template, printed_digits
from ciwrap.model.settings import FormError

WHITE = st.text(" \t", max_size=3)
SOME_WHITE = st.text(" \t", min_size=1, max_size=3)
# Words that hold what regular expressions and people give a meaning.
WORDS = st.sampled_from(
    ["ENERGY|", "(QS)", "[a.u.]:", "E=", "***", "k=", "total", "!", "$x^", "a+b", "Å", "{{", "}}"]
)
NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e9, 1e9).map(lambda value: f"{value:.6f}"),
    st.floats(-1e9, 1e9).map(lambda value: f"{value:.6E}".replace("E", "D")),
    st.sampled_from([".5", "-.25D-03", "1.", "+7", "0.123-101"]),
)
ORACLE_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+|[+-]\d{3})?"


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, str, list[str]]:
    """A template, a line that it describes, an expression that does, too, and what it holds."""
    template, line, oracle, values = "", "", "", []
    for position in range(draw(st.integers(1, 4))):
        word = draw(WORDS)
        plain = word.replace("{{", "{").replace("}}", "}")
        # A number in the words keeps each of them alone in its line.
        template += f"<{position}>{word} "
        line += f"<{position}>{plain}" + draw(SOME_WHITE)
        oracle += re.escape(f"<{position}>{plain}") + r"\s+"
        kind = draw(st.sampled_from(["number", "skip", "text"]))
        if kind == "number":
            values.append(draw(NUMBERS))
            template += f"{{v{position}}} "
            line += values[-1] + draw(SOME_WHITE)
            oracle += rf"({ORACLE_NUMBER})\s+"
        elif kind == "skip":
            template += "{*} "
            line += draw(st.text("abc 123.-=", max_size=10)) + draw(SOME_WHITE)
            oracle += r".*?"
        else:
            values.append(draw(st.text("abcxyz.()-", min_size=1, max_size=6)))
            template += f"{{v{position}:text}} "
            line += values[-1] + draw(SOME_WHITE)
            oracle += r"(\S+)\s+"
    before = draw(st.text("abc =", max_size=8))
    return template.rstrip(" "), before + line, oracle, values


@settings(max_examples=examples(400))
@given(cases())
def test_finds_what_a_regular_expression_finds(case: tuple[str, str, str, list[str]]) -> None:
    template, line, oracle, values = case
    expected = re.search(oracle, line)
    assert expected is not None
    assert list(expected.groups()) == values
    data = line.encode()
    found = Template(template).match(data)
    assert isinstance(found, tuple)
    assert [data[one.start : one.end].decode() for one in found] == values


@settings(max_examples=examples(200))
@given(cases(), st.integers(0, 3))
def test_misses_a_line_without_one_of_its_words(
    case: tuple[str, str, str, list[str]], word: int
) -> None:
    template, line, oracle, _ = case
    damaged = line.replace(f"<{word}>", "<>")
    found = Template(template).match(damaged.encode())
    assert (found is None) == (re.search(oracle, damaged) is None)


@pytest.mark.parametrize(
    ("template", "line", "texts"),
    [
        ("! total energy = {e} {unit:text}", "!    total energy   =   -15.79 Ry", ["-15.79", "Ry"]),
        ("energy [{unit:text}]: {e}", " energy [a.u.]:   -17.1", ["a.u.", "-17.1"]),
        ("cycle= {iteration:int} E= {e} {*}", "cycle= 3 E=-76.0  d= 1", ["3", "-76.0"]),
        ("{x}eV", "gap 1.5eV", ["1.5"]),
        ("{x} %", "2 of 3: 66.7 % done", ["66.7"]),
        ("^E = {x}", "   E = 1", ["1"]),
        ("^{*}E = {x}", "other E = 1", ["1"]),
        ("E {x}, {y}", "E 1, 2", ["1", "2"]),
        ("x {*} = {x}", "x y z = nan", ["nan"]),
        ("a{{{x}}}", "a{3}", ["3"]),
        ("E = {x}{$}", "E = 1 a, E = 2 ", ["2"]),
        ("^{x} {$}", " 3\t", ["3"]),
        ("{x} a {*} {$}", "3 a b c", ["3"]),
        ("{x} {{$}}", "3 {$}", ["3"]),
        ("({x},{y})", "(1,2)", ["1", "2"]),
        ("{x} x 10^{n:int}", "1.5 x 10^-3", ["1.5", "-3"]),
        ("grid {x}", "grid 12 x 10 x 3", ["12"]),
        ("x {x}", "x 1, 2", ["1"]),
        ("from {a:int}-{b:int}", "from 3-5", ["3", "5"]),
        ("{x}(", "1.5(3)", ["1.5"]),
        ("{x} +/- {y}", "1.5+/-0.1", ["1.5", "0.1"]),
        ("step {n:int}/{of:int}", "step 3/10", ["3", "10"]),
        ("step {n:int}/{*}", "step 3/10 E = 1", ["3"]),
        ("step {n:int} / {of:int}", "step 3/10", ["3", "10"]),
        ("levels {a:int}..{b:int}", "levels 3..5", ["3", "5"]),
        ("at {x} kJ", "at 1.5 kJ/mol", ["1.5"]),
        ("v {x}", "v 1.5/s", ["1.5"]),
        ("{x} eV", "1/3 or 5 eV", ["5"]),
        ("gap {x}", "gap 1.5(eV)", ["1.5"]),
        ("{x} eV", "orbital 3d -5.2 eV", ["-5.2"]),
        ("{x} eV", "10^3 or 5 eV", ["5"]),
        # An uncertainty is no part of the number before it, and no number of its own.
        ("E = {x}", "E = 1.5 +/- 0.1 eV", ["1.5"]),
        ("E = ({x}", "E = (1.5 \u00b1 0.1) eV", ["1.5"]),
        ("({x} +/- {y})e{n:int}", "(1.5+/-0.1)e-3", ["1.5", "0.1", "-3"]),
        ("{x} \\times 10^{n:int}", "1.5\\times10^-3", ["1.5", "-3"]),
        ("{x};{y}", "1;5", ["1", "5"]),
        ("{x}~{*}", "1~5", ["1"]),
        ("x {x}", "x 1; y 2", ["1"]),
        ("\u03b1 {x}", "\u03b1 1.5", ["1.5"]),
        ("{x} eV", "\u03b1 1.5 eV", ["1.5"]),
        # Two numbers of a sum are two; one with an imaginary part is one of them.
        ("E = {x}", "E = 1.5 + 2.5 items", ["1.5"]),
        ("{x} + {y}im", "1.5 + 2.5im", ["1.5", "2.5"]),
        ("{x} - {y}", "1.5 - 2.5", ["1.5", "2.5"]),
        # A template may say where a minus stands, and what is between two numbers.
        ("E - {x} eV", "E - 1.5 eV", ["1.5"]),
        ("{x} eV", "T \u2014 1.5 eV", ["1.5"]),
        ("{x}\u2192{y}", "1.5\u21922.5", ["1.5", "2.5"]),
        ("{x} \u2502", "\u2502 1.5 \u2502 2.5 \u2502", ["1.5"]),
        # Words that are no numbers at all are another place.
        ("in {x}", "in this part in 5", ["5"]),
    ],
)
def test_lines_as_programs_print_them(template: str, line: str, texts: list[str]) -> None:
    found = Template(template).match(line.encode())
    assert isinstance(found, tuple)
    assert [line.encode()[one.start : one.end].decode() for one in found] == texts


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("^E = {x}", "other E = 1"),
        ("E {x}", "E1"),  # a number set apart by the template is a word of its own
        ("step {n:int} done", "step 3"),
        ("{x} %", "no number here %"),
        ("^e1{$}", "e10"),
        ("^e1{$}", "e1 e"),
        ("e1 {$}", "e1 = 3"),
        ("{n:int} done{$}", "3 done by 4"),
        ("{x} eV", "the levels in eV, A1 eV and (0) eV"),
        ("{x} eV and {y} K", "5 eV or 6"),
    ],
)
def test_lines_that_do_not_match(template: str, line: str) -> None:
    assert Template(template).match(line.encode()) is None


@pytest.mark.parametrize(
    ("template", "line", "said"),
    [
        ("level (ev): {x}", "level (ev): level", "'level', not a number"),
        ("E = {x} Ha", "E = ****** Ha", "too long for its field"),
        ("n {n:int}", "n 1.5", "not a whole number"),
        ("E = {x}", "E = 1.2.3", "not a number"),
        ("E = {x}", "E = 12abc", "not a number"),
        ("E = {x}", "E = 1,234.5", "'1,234.5', not a"),
        ("E = {x} Ha", "E = 1,5 Ha", "'1,5', not a"),
        ("n {n:int}", "n 1'000", ", not a"),
        ("time {t}", "time 1:30", "'1:30', not a"),
        ("time {minutes:int}", "time 01:30.5", "'01:30.5', not a"),
        ("{t} elapsed", "1:30 elapsed", "'1:30', not a"),
        ("E = {x}", "E = 1.5 x 10^-3", ", not a"),
        ("E = {x}", "E = 1.5\u00d710\u207b\u00b3", ", not a"),
        ("E = {x}", "E = 1.5*^-3", ", not a"),
        ("E = {x}", "E = 10^3", ", not a"),
        ("E = {x} Ha", "E = 10**-3 Ha", ", not a"),
        ("E = {x}", "E = 10^(-3)", ", not a"),
        ("E = {x}", "E = 10\u207b\u00b3", ", not a"),
        ("n {n:int}", "n 10^3", ", not a"),
        # An exponent without its letter, as NASTRAN prints it, and parts of a range.
        ("E = {x}", "E = 1.0+05", "'1.0+05', not a"),
        ("E = {x}", "E = 1.+05", "'1.+05', not a"),
        ("E = {x}", "E = 1.5-1000", ", not a"),
        ("E = {x} {*}", "E = 1.5 E+05 Ha", "'1.5 E+05', not a"),
        ("n {n:int}", "n 3-5", ", not a"),
        ("n {n:int}", "n 3\u22125", ", not a"),
        ("E = {x}", "E = 3*0.5", "'3*0.5', not a"),  # three of them, in Fortran
        ("E = {x}", "E = 1.#QNAN", "'1.#QNAN', not a"),  # as Windows printed NaN
        ("E = {x}", "E = -1.#INF", ", not a"),
        ("E = {x}", "E = 1.5(3)e-5", ", not a"),
        ("E = {x}", "E = 1.5(3) x 10^-5", ", not a"),
        ("E = {x}", "E = 1\u202f000", ", not a"),
        ("E = {x}", "E = 1\u00b75", ", not a"),
        ("E = {x}", "E = 1/3", "'1/3', not a"),
        ("E = {x}", "E = 1\u20443", ", not a"),
        ("E = {x}", "E = 1\u00bd", "'1\u00bd', not a"),
        ("day {n:int}", "day 12/31/2026", ", not a"),
        ("n {n:int}", "n 1..5", "'1..5', not a"),
        ("n {n:int}", "n 1...5", "'1...5', not a"),
        ("E = {x}", "E = 1.0..5.0", ", not a"),
        ("at {x}", "at 10\u00b030'", ", not a"),
        ("n {n:int}", "n 1~5", "'1~5', not a"),
        ("n {n:int}", "n 1\u301c5", ", not a"),
        ("n {n:int}", "n 1\u20265", ", not a"),
        ("E = {x}", "E = 1;5", "'1;5', not a"),
        ("E = {x}", "E = 1\\times10^3", ", not a"),
        ("E = {x}", "E = 1 \\cdot 10^{3}", ", not a"),
        ("E = {x}", "E = 1\u221910^3", ", not a"),
        ("E = {x}", "E = 1\uff12", "'1\uff12', not a"),
        ("E = {x}", "E = \uff11\uff12", "not a number"),
        ("E = {x}", "E = 1\uff0e5", ", not a"),
        ("E = {x}", "E = 1\u2082", ", not a"),
        ("E = {x}", "E = 1\u200b5", ", not a"),
        ("E = ({x}", "E = (1.5) x 10^-3", ", not a"),
        # Two processes that write into one line: what stands further on is not the value.
        ("E = {x}", "E = 1.5E = 9", "'1.5E', not a number"),
        ("E = {x}", "E = ***** E = 9", "too long for its field"),
        ("E = {x} Ha", "E = 1,5 Ha E = 9 Ha", "'1,5', not a"),
        ("E = {x}", "E = 1.5\u00b10.1", ", not a number"),
        ("E = {x}", "E = 1.5\u00a0\u00b1\u00a00.1", ", not a number"),
        ("E = {x}", "E = 1.5\u00b5s", ", not a number"),
        ("E = {x}", "E = 1.5\x1b[0meV", ", not a number"),
        # Where the template begins with the number.
        ("{x} eV", "1~5 eV", "'1~5', not a"),
        ("{x} eV", "1.5\u00b10.1 eV", "'1.5\u00b10.1', not a number"),
        ("{x} eV", "1.5+/-0.1 eV", "not a number"),
        ("{x} eV", "1/3 eV", "'1/3', not a"),
        ("{x} eV", "1\u20443 eV", ", not a"),
        ("{x} MB", "1,234.5 MB", "'1,234.5', not a"),
        ("{x} eV", "gap 1.5 x 10^-3 eV", "'1.5 x 10^-3', not a"),
        ("{x} eV", "10^3 eV", ", not a"),
        ("{x} eV", "10**-3 eV", ", not a"),
        ("{x} eV", "gap \u22121.0 eV", "'\u22121.0', not a number"),
        ("{x} eV", "1e\u22125 eV", "not a number"),
        ("{x} eV", "1.0+05 eV", "'1.0+05', not a"),
        ("{x} eV", "3*0.5 eV", ", not a"),
        ("{x} eV", "1.5(3)e-5 eV", ", not a"),
        ("{x} eV", "gap --1 eV", "not a number"),
        ("{x} eV", "gap ***** eV", "too long for its field"),
        ("^{x} eV", " ***** eV", "too long for its field"),
        ("{x}eV", "10^-3eV", "'10^-3eV', not a number"),
        # Between sign and digits a program may fill up, and `{*}` takes whatever comes.
        ("E {*} {x}", "E is -  1.5", "'-  1.5', a minus apart from its number"),
        ("{x} eV", "- 1.5 eV", "a minus apart from its number"),
        ("^{x} eV", "  \u2212 1.5 eV", "a minus apart from its number"),
        ("{x} eV", "gap 1.5 E+05 eV", ", not a"),
        ("{x} eV", "gap 1.5 + 2im eV", ", not a"),
        # Whatever stands between two digits, thousands of Switzerland among it.
        ("E = {x}", "E = 1\u2019234.5", ", not a"),
        ("{x} eV", "1\u2019234.5 eV", ", not a"),
        ("E = {x}", "E = 1\u2009234.5", ", not a"),
        ("E = {x}", "E = 1\u066c234", ", not a"),
        ("{x} eV", "5\u22481.5 eV", ", not a"),
        ("E = {x}", "E = 1.5 + 2.5im", ", not a"),
        ("E = {x}", "E = 1.5 - 2.5i", ", not a"),
        # What a terminal shows as one number, or in another colour.
        ("E = {x}", "E = 1.\x1b[1m5\x1b[0m", ", not a"),
        ("E = {x}", "E = 10\b\b20", ", not a"),
        ("{x} eV", "10\b\b20 eV", ", not a"),
        ("{x} eV", "\x1b[31m1.5\x1b[0m eV", "not a number"),
    ],
)
def test_words_that_are_no_numbers_are_told(template: str, line: str, said: str) -> None:
    found = Template(template).match(line.encode())
    assert isinstance(found, Problem)
    assert said in found.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing to look for"),
        ("{*}", "nothing to look for"),
        ("{a}{b}", "there is nothing between"),
        ("{a} x {a}", "twice"),
        ("{a:float}", "':int' or ':text'"),
        ("{a b}", "not a field"),
        ("x { y", "single brace"),
        ("x {$} y", "stands at the end"),
        ("{$}", "nothing to look for"),
        ("x" * 3000, "longer than"),
    ],
)
def test_what_is_no_template(text: str, said: str) -> None:
    with pytest.raises(FormError, match=re.escape(said)):
        Template(text)


@pytest.mark.parametrize(
    ("text", "digits", "exponent"),
    [
        ("-17.160", 5, -3),
        ("0.0012", 2, -4),
        ("-0.171584196159E+02", 12, -10),
        ("1.5D-03", 2, -4),
        ("12", 2, 0),
        ("0.000", 1, -3),
        ("nan", 0, 0),
    ],
)
def test_printed_digits(text: str, digits: int, exponent: int) -> None:
    assert printed_digits(text) == (digits, exponent)
