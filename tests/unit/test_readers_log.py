"""The reader of logs: what it finds, where, and what it refuses to take for a number."""

from __future__ import annotations

import contextlib
import os
import re
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, ReaderPluginError
from ciwrap.formats.log import LogReader, LogSource
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

DATA = Path(__file__).resolve().parents[1] / "data/logs"


class TestLog(ReaderSuite):
    suffix = ".log"
    dtypes: ClassVar[tuple[str, ...]] = ("<f8",)
    shapes: ClassVar[tuple[tuple[int, ...], ...]] = ((1,), (7,), (1000,))
    fixed_size = False
    allows_tail = True
    slowly = 7

    def make_reader(self) -> Reader:
        return LogReader()

    def write(self, path: Path, variables: Arrays) -> None:
        lines = [
            f"{name} = {value!r}\n"
            for name, values in variables.items()
            for value in values.reshape(-1).tolist()
        ]
        path.write_text("".join(lines), encoding="utf-8")

    def options(self, variables: Arrays) -> Mapping[str, Any]:
        return {"values": {name: f"^{name} = {{{name}}}" for name in variables}}


def opened(folder: Path, text: str | bytes, **rules: Any) -> LogSource:
    path = folder / "out.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return LogReader().open(path, options=rules)


def values(source: LogSource, name: str) -> list[Any]:
    info = source.info(name)
    assert info.fault is None, info.fault
    found: list[Any] = source.read(name, 0, info.element_count).tolist()
    return found


def fault(source: LogSource, name: str) -> str:
    found = source.info(name).fault
    assert found is not None
    return found


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(lambda one: f"E= {one!r}"),
            st.text("abcE .\t", max_size=12),
            st.sampled_from(["", "E= ", "xE= 3 y", "E= 4 E= 5", "\r", "é E=7"]),
        ),
        max_size=40,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_values_are_those_that_python_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, ends: bool
) -> None:
    text = end.join(lines) + (end if ends else "")
    # Of each line the first match counts; blanks are no more than that.
    found = [
        (number, match.start(1), float(match[1]))
        for number, line in enumerate(text.split("\n"), 1)
        if (match := re.search(r"E=[ \t\r]*([+-]?[0-9.][0-9.e+-]*)(?![\w.])", line))
    ]
    source = opened(
        tmp_path_factory.mktemp("log"),
        text,
        values={"e": "E= {e}", "n": {"match": "E= {n}", "take": "last"}},
        counts={"lines": "E="},
    )
    with source:
        if not found:
            assert source.info("e").fault is not None
            return
        assert values(source, "e") == [value for *_, value in found]
        assert values(source, "n") == [found[-1][2]]
        facts = source.facts("e")
        assert facts is not None
        for element, (number, at, value) in enumerate(found):
            place = facts.place(element)
            assert place is not None
            line = text.split("\n")[number - 1]
            assert place.line == number
            assert place.column == len(line[:at].encode()) + 1
            assert float(place.text) == value


def test_steps_label_what_follows_or_what_comes_before(tmp_path: Path) -> None:
    text = "E 9\nstep 1\nE 1\nE 2\nstep 5\nE 3\nE 4\n"
    rules = {"values": {"e": {"match": "E {e}", "step": "s", "duplicates": "all"}}}
    with opened(tmp_path, text, **rules, steps={"s": "step {iteration:int}"}) as source:
        assert values(source, "e.step") == [-1, 1, 1, 5, 5]
    before = {"s": {"match": "step {iteration:int}", "covers": "before"}}
    with opened(tmp_path, text, **rules, steps=before) as source:
        assert values(source, "e.step") == [1, 5, 5, -1, -1]


@pytest.mark.parametrize(
    ("duplicates", "expected"), [("first", [1.0, 2.0]), ("last", [2.0, 3.0]), ("all", [1, 2, 2, 3])]
)
def test_a_step_that_is_there_twice(tmp_path: Path, duplicates: str, expected: list[float]) -> None:
    text = "step 1 E 1\nstep 2 E 2\nstep 1 E 2\nstep 2 E 3\n"
    rule = {"match": "step {iteration:int} E {e}"}
    with opened(tmp_path, text, values={"e": rule}) as source:
        assert "step 1 occurs twice, in lines 1 and 3" in fault(source, "e")
    with opened(tmp_path, text, values={"e": {**rule, "duplicates": duplicates}}) as source:
        assert values(source, "e") == expected
        told = f"'e' has a step more than once, the {duplicates} one alone counts (2 left out)"
        assert [told in note for note in source.notes] == [True] * (duplicates != "all")


def test_sections_and_lines_after_a_match(tmp_path: Path) -> None:
    text = "E 1\nbegin\nE 2\nk = 0 bands (ev):\n\n 1.0 2.0\n 3.0\n\n 7.0\nend\nE 3\n"
    section = {"start": "begin", "end": "end"}
    rules = {
        "in": {"match": "E {in}", "section": section},
        "bands": {"match": "k ={*}bands (ev):", "lines": {"skip": 1}},
        "two": {"match": "k ={*}bands", "lines": {"skip": 1, "count": 1}},
        "to": {"match": "k ={*}bands", "lines": {"skip": 1, "until": "3.0"}},
    }
    with opened(tmp_path, text, values=rules) as source:
        assert values(source, "in") == [2.0]
        assert values(source, "bands") == [1.0, 2.0, 3.0]
        assert values(source, "two") == [1.0, 2.0]
        assert values(source, "to") == [1.0, 2.0]


def test_tables_of_several_runs(tmp_path: Path) -> None:
    text = (
        "Step Temp E_pair\n 0 3.0 -1\n 50 2.0 -2\nWARNING: once\n 60 1.0 -3\nLoop time of 1\n"
        "Step Temp Press\n 60 1.5 7\n 70 1.0 8\nLoop time of 1\n 99 9 9\n"
    )
    table = {"header": "Step *", "end": "Loop time of", "iteration": "Step", "duplicates": "last"}
    with opened(tmp_path, text, tables={"t": table}) as source:
        assert values(source, "t.Step") == [0, 50, 60, 70]
        (note,) = source.notes
        assert "'t' has a step more than once, the last one alone counts (1 left out)" in note
        assert values(source, "t.Temp") == [3.0, 2.0, 1.5, 1.0]
        assert values(source, "t.E_pair") == [-1.0, -2.0, -3.0]
        assert values(source, "t.E_pair.step") == [0, 50, 60]
        assert values(source, "t.Press.step") == [60, 70]
    with opened(tmp_path, "Step Temp\n 0 1\n 1 2 3\n", tables={"t": "Step *"}) as source:
        assert "line 3 has 3 words where the table has 2 columns" in fault(source, "t.Temp")


def test_words_in_columns_and_units(tmp_path: Path) -> None:
    text = "highest level (ev): level 6.0\nE 1.0 Ry\nE 2.0 eV\nF -3 Ha\n"
    rules = {
        "homo": {"line": "highest", "column": 4},
        "last": {"line": "highest", "column": -1},
        "far": {"line": "highest", "column": 9},
        "e": "E {e} {unit:text}",
        "f": {"match": "F {f} {unit:text}", "absolute": True},
        "word": "highest {word:text}",
    }
    with opened(tmp_path, text, values=rules) as source:
        assert fault(source, "homo") == "line 1, word 4 is 'level', not a number"
        assert values(source, "last") == [6.0]
        assert fault(source, "far") == "line 1 has 5 words, and no word 9"
        assert fault(source, "e") == "unit is 'Ry' in line 2, 'eV' in line 3"
        assert values(source, "f") == [3.0]
        assert source.info("f").labels == (("unit", "Ha"),)
        assert values(source, "word") == ["level"]


@pytest.mark.parametrize("lines", [3, 2000])
@pytest.mark.parametrize("odd", ["9007199254740993", "1e-400", "-3E-400", "1e400"])
def test_numbers_that_no_double_holds(tmp_path: Path, lines: int, odd: str) -> None:
    """Another number would become the same double; many lines at once are read as few are."""
    text = "E 0.0\n" * lines + f"E {odd}\n"
    with opened(tmp_path, text, values={"e": "E {e}"}) as source:
        told = fault(source, "e")
    assert told.startswith(f"line {lines + 1}, word 2 is '{odd}', which is ")


def test_fortran_numbers_and_fields_that_were_too_narrow(tmp_path: Path) -> None:
    text = "E 1.5D+02\nE 0.25-101\nF ********\nG 1e999\n"
    with opened(tmp_path, text, values={"e": "E {e}", "f": "F {f}", "g": "G {g}"}) as source:
        assert values(source, "e") == [150.0, 0.25e-101]
        assert "too long for its field" in fault(source, "f")
        assert fault(source, "g").startswith("line 4, word 2 is '1e999'")


def test_what_finds_nothing_names_the_nearest_line(tmp_path: Path) -> None:
    text = "a\nhighest occupied, lowest unoccupied level (ev):  6.0\n"
    rule = "highest occupied level (ev): {homo}"
    with opened(tmp_path, text, values={"homo": rule}) as source:
        assert fault(source, "homo") == (
            "values.homo finds nothing; nearest, line 2: 'highest occupied, lowest unoccupied level"
            " (ev):  6.0'"
        )
    optional = {"match": rule, "optional": True}
    with opened(tmp_path, text, values={"homo": optional}, counts={"n": "a"}) as source:
        assert [one.name for one in source.variables] == ["n"]


def test_required_and_forbidden_lines(tmp_path: Path) -> None:
    with opened(tmp_path, "x\nERROR: y\n", require=["DONE"], forbid=["ERROR"]) as source:
        told = [str(one) for one in source.faults]
    assert "no line matches 'DONE', which 'require' asks for" in told[0]
    assert "line 2 matches 'ERROR', which 'forbid' rules out: 'ERROR: y'" in told[1]


def test_regular_expressions_need_re2_and_run_in_linear_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("re2")
    text = "x 1 y 2 Ha\nx 3 y 4 Ha\n" + "a " * 30_000 + "\n"
    rules = {
        "plain": {"regex": r"x (\d+)"},
        "two": {"regex": r"x (?P<x>\d+) y (?P<y>\d+) (?P<unit>\w+)"},
        "evil": {"regex": r"^((\S+\s*)+):$", "optional": True},
        "ended": {"regex": r"y (\d) Ha$"},
    }
    with opened(tmp_path, text, values=rules) as source:
        assert values(source, "plain") == [1.0, 3.0]
        assert values(source, "two.x") == [1.0, 3.0]
        assert values(source, "two.y") == [2.0, 4.0]
        assert values(source, "ended") == [2.0, 4.0]
        assert source.info("two.y").labels == (("unit", "Ha"),)
    with pytest.raises(ConfigError, match=r"RE2 knows no \(\?="):
        opened(tmp_path, text, values={"e": {"regex": r"x(?= )(\d)"}})
    for without in (r"x", r"x (?P<iteration>\d+)", r"(?P<unit>Ha)"):
        with pytest.raises(ConfigError, match="no group"):
            opened(tmp_path, text, values={"e": {"regex": without}})
    steps = {"s": {"regex": r"x (\d)"}}
    with opened(
        tmp_path, text, values={"e": {"match": "y {e}", "step": "s"}}, steps=steps
    ) as source:
        assert values(source, "e.step") == [1, 3]
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    with pytest.raises(ReaderPluginError, match="pip install google-re2"):
        opened(tmp_path, text, values={"e": {"regex": r"x (\d)"}})


def test_latin_1_is_read_and_told_once(tmp_path: Path) -> None:
    with opened(tmp_path, "E 1 Å\nÅ = 2\n".encode("latin-1"), values={"a": "Å = {a}"}) as source:
        assert values(source, "a") == [2.0]
        assert len(source.notes) == 1
        assert "Latin-1" in source.notes[0]
    with opened(tmp_path, "E 1 Å\nÅ = 2\n", values={"a": "Å = {a}"}) as source:
        assert values(source, "a") == [2.0]
        assert source.notes == ()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\nE 1\0\n", "line 2 holds a zero byte"),
        (b"a\n" + b"x" * 70_000 + b"\n", "line 2 is longer than 64 KiB"),
        (b"a\n" + b"x" * 9_000_000, "line 2 is longer than 64 KiB"),
        (b"1" * 60_000 + b"!\n", "begins there more often than can be tried"),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(CiwrapError, match=said):
        opened(tmp_path, data, values={"e": "1{e}?"})


def test_a_log_of_many_blocks_is_streamed(tmp_path: Path) -> None:
    steps = 40_000
    lines = [f"step {n}\n" + "filler " * 40 + f"\nE = {n / 7!r} Ha\n" for n in range(steps)]
    path = tmp_path / "long.log"
    path.write_text("".join(lines), encoding="utf-8")
    rules = {
        "values": {"e": {"match": "E = {e} {unit:text}", "step": "s"}},
        "steps": {"s": "^step {iteration:int}"},
    }
    tracemalloc.start()
    with LogReader().open(path, options=rules) as source:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert np.array_equal(source.read("e", 0, steps), np.arange(steps) / 7)
        assert values(source, "e.step") == list(range(steps))
        place = source.facts("e").place(steps - 1)  # type: ignore[union-attr]
        assert place is not None
        assert (place.line, place.text) == (3 * steps, repr((steps - 1) / 7))
    # Blocks of 4 MiB a few times over, and some 40 bytes for each value.
    assert peak < 32 << 20
    assert path.stat().st_size > 10 << 20


RULE_TEXTS = st.text("ab1 {}*:^int.xE\\(+)?$[", max_size=30)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.one_of(st.binary(max_size=400), st.text("ab1 \n.E*-=", max_size=400).map(str.encode)),
    RULE_TEXTS,
    RULE_TEXTS,
    st.integers(-4, 4),
)
def test_any_bytes_and_any_rules_end_in_an_error_of_ours_or_in_numbers(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, one: str, two: str, column: int
) -> None:
    rules: dict[str, Any] = {
        "values": {"a": one, "b": {"line": two, "column": column}, "c": {"regex": one}},
        "tables": {"t": two},
        "steps": {"s": one},
        "counts": {"n": two},
        "forbid": [one],
    }
    for key in rules:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(CiwrapError))
            source = stack.enter_context(
                opened(tmp_path_factory.mktemp("log"), data, **{key: rules[key]})
            )
            for info in source.variables:
                if info.fault is None:
                    found = source.read(info.name, 0, info.element_count)
                    assert found.size == info.element_count
                    assert info.element_count or info.name.endswith((".step", ".iteration"))


def test_a_number_is_never_made_of_a_part_of_a_word(tmp_path: Path) -> None:
    text = "E 12abc\nE 1.2.3\nE H2O\n"
    with opened(tmp_path, text, values={"e": "E {e}"}) as source:
        assert "not a number" in fault(source, "e")


def test_lines_that_write_over_one_another_all_count(tmp_path: Path) -> None:
    """As progress bars do: between carriage returns each is looked at by itself."""
    text = "E = 1\rE = 2\rE = 3 Ha\r\nE = 4\n"
    rules = {"values": {"e": "E = {e}"}, "counts": {"n": "E ="}}
    with opened(tmp_path, text, **rules) as source:
        assert values(source, "e") == [1, 2, 3, 4]
        assert values(source, "n") == [4]
        facts = source.facts("e")
        assert facts is not None
        place = facts.place(2)
        assert place is not None
        assert (place.line, place.column, place.text) == (1, 17, "3")


def test_a_row_may_begin_with_any_number(tmp_path: Path) -> None:
    text = "a b\n1 2\nInfinity 3\n-nan 4\n"
    for table in ({"header": "a b"}, {"header": "a b", "end": "done"}):
        with opened(tmp_path, text, tables={"t": table}) as source:
            assert values(source, "t.b") == [2, 3, 4]


def test_a_template_may_go_on_with_digits(tmp_path: Path) -> None:
    with opened(tmp_path, "x 1 5abc\n" * 1000, values={"x": "x {x} 5abc"}) as source:
        assert values(source, "x") == [1] * 1000
    with opened(tmp_path, "x15abc\n" * 1000, values={"x": "x{x}5abc"}) as source:
        assert "'15abc', not a number" in fault(source, "x")


@pytest.mark.parametrize("expression", [r"E = (\d)$", r"^E = (\d)"])
def test_expressions_know_all_ends_of_lines(tmp_path: Path, expression: str) -> None:
    pytest.importorskip("re2")
    rules = {"values": {"e": {"regex": expression}}}
    with opened(tmp_path, "E = 1\r\n50 %\rE = 2\r\n", **rules) as source:
        assert values(source, "e") == [1, 2]


def test_a_match_without_its_step_is_told(tmp_path: Path) -> None:
    """Else the steps of other matches would be taken for its own."""
    pytest.importorskip("re2")
    expression = r"(?:it (?P<iteration>\d+) )?E = (?P<e>\d)"
    rules = {"values": {"e": {"regex": expression, "duplicates": "last"}}}
    with opened(tmp_path, "it 1 E = 1\nE = 2\nit 1 E = 3\n", **rules) as source:
        assert "line 2, word 3 belongs to no step" in fault(source, "e")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    source = opened(tmp_path, "\ufeffE = 1\nE = 2\n", values={"E": "^E = {E}"})
    with source:
        assert values(source, "E") == [1.0, 2.0]
        facts = source.facts("E")
        assert facts is not None
        place = facts.place(0)
        assert place is not None
        assert (place.line, place.column, place.text) == (1, 5, "1")


@pytest.mark.parametrize("number", ["****", "12abc", "none", "1.0+05"])
def test_a_line_that_fits_but_for_its_number_is_none(tmp_path: Path, number: str) -> None:
    text = f"E = {number}\nE = 1\n"
    found: dict[str, Any] = {"counts": {"lines": "E = {e}"}}
    with opened(tmp_path, text, **found) as source:
        assert values(source, "lines") == [1]
    with opened(tmp_path, text.partition("\n")[0], require=["E = {e}"], **found) as source:
        assert str(source.faults[0]).startswith(f"{source.path}: no line matches")
    with opened(tmp_path, text, forbid=["E = {e}"], **found) as source:
        assert str(source.faults[0]).startswith(f"{source.path}: line 1 matches")


@pytest.mark.parametrize("end", [None, "Loop"])
def test_a_row_may_begin_with_what_means_to_be_a_number(tmp_path: Path, end: str | None) -> None:
    for word in ("\u22121", "\x1b[31m1"):
        text = f"T Step\n1 2\n{word} 3\n2 4\nLoop\n"
        table = {"header": "T Step"} if end is None else {"header": "T Step", "end": end}
        with opened(tmp_path, text, tables={"t": table}) as source:
            assert f"{word!r}, not a number" in fault(source, "t.T")
        rule = {"match": "T Step", "lines": {"until": "words"}}
        with opened(tmp_path, text, values={"v": rule}) as source:
            assert f"{word!r}, not a number" in fault(source, "v")


def test_another_line_ends_no_section_and_no_table(tmp_path: Path) -> None:
    """One with a word where the template has a number; a damaged number ends it all the same."""
    for words, expected in (("limit 3", [1.0, 2.0]), ("**** of 3", [1.0])):
        text = f"begin\nE = 1\npass {words}\nE = 2\npass 5\nE = 3\n"
        rule = {"match": "E = {E}", "section": {"start": "begin", "end": "pass {n:int}"}}
        with opened(tmp_path, text, values={"E": rule}) as source:
            assert values(source, "E") == expected
        text = f"Step T\n1 1\npass {words}\n2 2\npass 5\n3 3\n"
        with opened(tmp_path, text, tables={"t": {"header": "Step T", "end": "pass {n:int}"}}) as t:
            assert values(t, "t.T") == expected


def test_no_number_of_a_rule_is_left_unread(tmp_path: Path) -> None:
    """Numbers of lines after a match are the value, as is the word of a column."""
    said: dict[str, Any] = {"match": "k = {k} bands", "lines": {"until": "blank"}}
    with pytest.raises(ConfigError, match="holds a field"):
        opened(tmp_path, "k = 1 bands\n1 2\n\n", values={"bands": said})
    pytest.importorskip("re2")
    said = {"regex": r"k = (?P<k>\d+) bands", "lines": {"until": "blank"}}
    with pytest.raises(ConfigError, match="named groups"):
        opened(tmp_path, "k = 1 bands\n1 2\n\n", values={"bands": said})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("E = - 1.5", "a minus apart from its number"),
        ("E = 1.5 E+05", ", not a number"),
        ("E = 1.5 x 10^-3", ", not a number"),
    ],
)
def test_a_word_of_a_column_is_a_whole_number(tmp_path: Path, line: str, told: str) -> None:
    column = -1 if "- " in line else 3
    with opened(tmp_path, f"{line}\n", values={"E": {"line": "E =", "column": column}}) as source:
        assert told in fault(source, "E")
    with opened(tmp_path, f"{line}\n", values={"E": {"line": "E = -", "column": -1}}) as source:
        assert ("finds nothing" in fault(source, "E")) if column == 3 else values(source, "E")


def test_expressions_take_no_number_without_its_exponent(tmp_path: Path) -> None:
    pytest.importorskip("re2")
    for text in ("1.5D+05", "1.5e-3", "1.5-103"):
        with opened(tmp_path, f"E {text}\n", values={"E": {"regex": r"E ([0-9.]+)"}}) as source:
            assert f"{text!r}, not a number" in fault(source, "E")
    with opened(tmp_path, "E 1.5eV\n", values={"E": {"regex": r"E ([0-9.]+)"}}) as source:
        assert values(source, "E") == [1.5]
    with opened(tmp_path, "E 1.5e-3\n", values={"E": {"regex": r"E ([0-9.]+)e-3"}}) as source:
        assert values(source, "E") == [1.5]


@pytest.mark.parametrize("expression", [r"(?-m)^E ([0-9]+)", r"(?i-m:^)E ([0-9]+)(?-m:$)"])
def test_expressions_may_leave_the_mode_of_lines(tmp_path: Path, expression: str) -> None:
    pytest.importorskip("re2")
    with opened(tmp_path, "E 1\nE 2\nE 3\n", values={"E": {"regex": expression}}) as source:
        assert values(source, "E") == [1.0, 2.0, 3.0]


def test_an_expression_that_matches_without_its_number_is_told(tmp_path: Path) -> None:
    pytest.importorskip("re2")
    text = "E=1\nF=2\n"
    with opened(tmp_path, text, values={"x": {"regex": r"E=(\d+)|F=(\d+)"}}) as source:
        assert "line 2" in fault(source, "x")
    with opened(tmp_path, text, values={"x": {"regex": r"E=(\d+)|F=2()"}}) as source:
        assert "line 2" in fault(source, "x")
    both = {"x": {"regex": r"E=(?P<a>\d+)|F=(?P<b>\d+)"}}
    with opened(tmp_path, text, values=both) as source:
        assert (values(source, "x.a"), values(source, "x.b")) == ([1.0], [2.0])


@pytest.mark.parametrize(
    "rules",
    [
        {"values": {"r": {"match": "res {r} at {step}", "step": "it"}}},
        {
            "values": {
                "r": {"match": "res {r} at", "step": "it"},
                "r.step": {"line": "res", "column": 4},
            }
        },
        {
            "values": {"r": {"match": "res {r} at", "step": "it"}},
            "counts": {"r.step": "res"},
        },
        {"tables": {"t": {"header": "Step *", "iteration": "Step"}}},
    ],
)
def test_steps_never_take_the_name_of_a_value(tmp_path: Path, rules: dict[str, Any]) -> None:
    text = "iteration 1\nres 1 at 10\nStep T T.step\n1 2 3\nx\nStep V\n3 4\n"
    steps = {"it": "iteration {iteration:int}"}
    with pytest.raises(ConfigError, match=r"two rules give the variable '(r|t\.T)\.step'"):
        opened(tmp_path, text, steps=steps, **rules)


def test_a_log_that_becomes_shorter_says_where_it_ends(tmp_path: Path) -> None:
    """The text of a number is read once more, where a message shows it."""
    text = "".join(f"x = {number}.5\n" for number in range(10))
    with opened(tmp_path, text, values={"x": "x = {x}"}) as source:
        facts = source.facts("x")
        assert facts is not None
        os.truncate(source.path, 5)
        with pytest.raises(CorruptFileError, match="ends after 5 bytes, but 71 are expected"):
            facts.place(8)


@pytest.mark.parametrize("kind", ["", ":int"])
@pytest.mark.parametrize("lines", [1, 2000])
def test_the_minus_of_an_angle_is_not_lost(tmp_path: Path, kind: str, lines: int) -> None:
    text = "d = 1 30\n" * lines + "d = -00 30\n"
    with opened(tmp_path, text, values={"d": f"d = {{d{kind}}}"}) as source:
        assert f"line {lines + 1}, word 3 is '-00', which has a minus" in fault(source, "d")


def test_what_ends_lines_and_tables_is_not_looked_for_without_end(tmp_path: Path) -> None:
    ends, text = "a {x} b", f"Step T\n1 2\n{'a ' * 300}\n"
    rules: tuple[dict[str, Any], ...] = (
        {"values": {"v": {"match": "Step", "lines": {"until": ends}}}},
        {"tables": {"v": {"header": "Step T", "end": ends}}},
    )
    for one in rules:
        with pytest.raises(CorruptFileError, match=r"line 3: the template .* begins there"):
            opened(tmp_path, text, **one)


def test_a_step_of_a_table_is_told_to_be_no_whole_number(tmp_path: Path) -> None:
    rule = {"header": "Step T", "iteration": "Step"}
    with opened(tmp_path, "Step T\n1.0 2\n", tables={"t": rule}) as source:
        assert fault(source, "t.Step") == "line 2, word 1 is '1.0', not a whole number"
