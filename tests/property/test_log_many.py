"""What is taken from many lines of a log at once is what is taken line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.errors import CiwrapError
from ciwrap.readers import log_lines, log_many
from ciwrap.readers.log import LogReader

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RULES: list[dict[str, Any]] = [
    {"values": {"e": "E = {e}"}},
    {"values": {"e": "E = {e} {unit:text}"}},
    {"values": {"e": {"match": "E = {e} n {n:int}", "absolute": True}}},
    {"values": {"e": "E = {e} , n {n:int} {*}"}},
    {"values": {"e": {"match": "n {iteration:int} E = {e}", "duplicates": "all"}}},
    {"values": {"e": "n {iteration:int} E = {e} {*}"}},
    {"values": {"e": "E = {e}eV"}},
    {"values": {"n": "n {n:int}"}, "counts": {"others": "E ="}},
    {"values": {"w": "n {w:text}"}},
    {"values": {"e": {"match": "E = {e}", "step": "s"}}, "steps": {"s": "n {iteration:int}"}},
    {"values": {"e": "E = {e} {$}"}},
    {"values": {"e": "^ E = {e}"}},
    {"tables": {"t": {"header": "E n *", "end": "done"}}},
    {"tables": {"t": {"header": "E n *", "end": "done", "iteration": "n", "duplicates": "all"}}},
    {"tables": {"t": {"header": "E n", "end": "done", "iteration": "n"}}, "counts": {"c": "WARN"}},
]
NUMBERS = st.one_of(
    st.sampled_from(
        [
            "1",
            "12",
            "-3",
            "+4",
            "12.",
            ".5",
            "1.5",
            "1e5",
            "1.5D-03",
            "0.5-101",
            "5-100",
            "nan",
            "inf",
            "1e999",
            "-inf",
            "****",
            "1_0",
            "abc",
            "12abc",
            "1.2.3",
            "0x1p3",
            "1234567890123456789",
            "-nan",
            "infinity",
            "1,234.5",
            "1.5 x 10^3",
        ]
    ),
    st.integers(-9, 999).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
GAPS = st.sampled_from(["", " ", "  ", "\t"])
PIECES = st.one_of(
    st.sampled_from(["E =", "E", "=", "n", "eV", "Ha", ",", "done", "WARN", "E n", "x", "\r"]),
    NUMBERS,
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Lines that match, lines that nearly do, and lines of anything."""
    kind = draw(st.integers(0, 9))
    number, other = draw(NUMBERS), draw(NUMBERS)
    if kind < 3:
        return f"E = {number} n {draw(st.integers(0, 9))}"
    if kind < 5:
        return f" n {draw(st.integers(0, 99))}  E = {number}{draw(GAPS)}eV"
    if kind < 8:
        return f"  {number}  {other}"
    return "".join(one + draw(GAPS) for one in draw(st.lists(PIECES, max_size=8)))


def said(path: Path, rules: dict[str, Any], fewest: int, patch: pytest.MonkeyPatch) -> Any:
    """All that reading comes to, in plain values."""
    patch.setattr(log_many, "_FEWEST_LINES", fewest)
    try:
        source = LogReader().open(path, options=rules)
    except CiwrapError as error:
        return str(error)
    found = []
    with source:
        for info in source.variables:
            array = source.elements_of(info.name)
            facts = source.facts(info.name)
            places = None
            if facts is not None:
                places = [facts.place(at) for at in range(array.size)]
                places += [facts.printed_digits, facts.printed_exponent]
            found.append((info, array.tobytes(), places))
    return found


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rules=st.sampled_from(RULES),
    text=st.lists(lines(), max_size=12),
    ending=st.sampled_from(["\n", "\r\n"]),
    block=st.sampled_from([64, 4 << 20]),
    is_uniform=st.booleans(),
)
@example(RULES[0], ["E = 1e999"], "\n", 64, False)
@example(RULES[12], ["E n", "1 1_0"], "\n", 64, False)
@example(RULES[13], ["E n", "1 2", "  3", " 4", "5 6", "done"], "\n", 4096, False)
def test_many_lines_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rules: dict[str, Any],
    text: list[str],
    ending: str,
    block: int,
    is_uniform: bool,
) -> None:
    monkeypatch.setattr(log_lines, "_BLOCK_BYTES", block)
    if is_uniform:
        text = ["E n", *(["3.5 7", "E = 2.5 n 3", "n 4 E = 7.25"] * 3), *text[:1]]
    path = tmp_path / "a.log"
    path.write_text("".join(one + ending for one in text), encoding="utf-8", newline="")
    assert said(path, rules, 1, monkeypatch) == said(path, rules, 1 << 40, monkeypatch)


def test_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of such lines goes this way, so that the test above compares two ways."""
    path = tmp_path / "a.log"
    rows = [f"n {at} E = {at / 3!r} Ha\n" for at in range(5000)]
    path.write_text("".join([*rows, "E n\n", *("1.5 2\n" * 5000), "done\n"]))
    heard = []
    monkeypatch.setattr(log_lines, "_line_starts", lambda *_: heard.append(1) or iter(()))
    with LogReader().open(path, options={"values": {"e": "n {iteration:int} E = {e} {*}"}}) as one:
        assert not heard
        np.testing.assert_array_equal(one.elements_of("e"), [at / 3 for at in range(5000)])


def test_rows_that_do_not_fit_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time would grow with the square of a block's lines."""
    rows = ["1.5 2\n"] * 3000
    rows[2000] = "1.5D0 2\n"
    path = tmp_path / "a.log"
    path.write_text("".join(["E n\n", *rows, "done\n", "E n\n", *("2.5 3\n" * 3000), "done\n"]))
    called = []
    rows_of = log_many.rows_of

    def counted(*arguments: Any) -> bool:
        called.append(rows_of(*arguments))
        return called[-1]

    monkeypatch.setattr("ciwrap.readers.log_listeners.rows_of", counted)
    options = {"tables": {"t": {"header": "E n", "end": "done"}}}
    with LogReader().open(path, options=options) as one:
        expected = [1.5] * 3000 + [2.5] * 3000
        np.testing.assert_array_equal(one.elements_of("t.E"), expected)
    assert called[:2] == [False, True]
    assert len(called) <= 4
