"""Where two texts differ that are too long to be shown whole."""

from __future__ import annotations

import pytest

from ciwrap.report.text_difference import text_difference_lines

SIDES = ("golden", "new")
LINES = [f"line {number} of a text" for number in range(20)]


def differences(golden: str, new: str) -> list[str] | None:
    return text_difference_lines(repr(golden), repr(new), SIDES)


def changed(**lines: str | None) -> str:
    found = {f"l{number}": line for number, line in enumerate(LINES)} | lines
    return "\n".join(line for line in found.values() if line is not None)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (changed(l3="other"), ["line 4: golden 'line 3 of a text', new 'other'"]),
        (changed(l3=None), ["line 4: only golden has 'line 3 of a text'"]),
        (changed(l20="more"), ["line 21: only new has 'more'"]),
        (
            changed() + "\n",
            [
                (
                    r"from character 330 on: golden 'xt\nline 19 of a text',"
                    r" new 'xt\nline 19 of a text\n'"
                )
            ],
        ),
        (
            changed(**{f"l{number}": "x" for number in range(8)}),
            [
                *[f"line {n + 1}: golden 'line {n} of a text', new 'x'" for n in range(5)],
                "3 more lines differ",
            ],
        ),
    ],
    ids=["changed", "gone", "more", "last line break", "many"],
)
def test_lines(new: str, said: list[str]) -> None:
    assert differences(changed(), new) == said


def test_a_long_line_is_shown_around_the_first_character() -> None:
    golden, new = "a" * 200 + "b" + "c" * 200, "a" * 200 + "d" + "c" * 200
    (line,) = differences(golden, new) or []
    assert line.startswith(f"from character 181 on: golden '{'a' * 20}bccc")
    assert f"new '{'a' * 20}dccc" in line
    assert len(line) < 300


def test_very_long_texts_name_the_first_line() -> None:
    many = "\n".join(map(str, range(5000)))
    assert differences(many, many.replace("\n77\n", "\n\n")) == [
        "line 78 is the first that differs"
    ]


@pytest.mark.parametrize(
    ("golden", "new"), [("'ab'", "'ac'"), ("0.1", "0.2"), ("'\\U00110000'", "'\\U00110001'")]
)
def test_short_texts_and_numbers_are_shown_whole(golden: str, new: str) -> None:
    assert text_difference_lines(golden, new, SIDES) is None
